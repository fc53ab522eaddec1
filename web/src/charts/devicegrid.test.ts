import assert from "node:assert/strict";
import { test } from "node:test";

import type { Series } from "../data/api";
import { deviceAt, deviceGrid, layoutOf, placeOf, shadeOf, valueOf } from "./devicegrid";

const line = (hostname: string, index: string, points: [number, number | null][], more: Record<string, string> = {}): Series => ({ name: "gpu_use", unit: "percent", labels: { hostname, index, gpuuuid: `GPU-${index}`, ...more }, points });

test("devices are under their nodes, in the order of their names, with the mean of what is known", () => {
  const grid = deviceGrid([line("n10", "1", [[1000, 50], [2000, 100]]), line("n10", "0", [[2000, 20]]), line("n9", "", [[1000, null], [2000, Number.NaN]])], "gpu_use")!;
  assert.deepEqual(grid.times, [1000, 2000]);
  assert.equal(grid.most, 2);
  assert.deepEqual(grid.nodes.map(({ host, devices }) => [host, devices.map(({ label }) => label)]), [["n9", ["GPU-"]], ["n10", ["0", "1"]]]);
  const [first, second] = grid.nodes[1]!.devices;
  assert.deepEqual([first!.values, first!.mean], [[null, 20], 20]);
  assert.deepEqual([valueOf(second!, -1), valueOf(second!, 0), valueOf(second!, 1), valueOf(second!, 7)], [75, 50, 100, null]);
  assert.equal(grid.nodes[0]!.devices[0]!.mean, null);
  assert.equal(deviceGrid([], "gpu_use"), null);
  assert.equal(deviceGrid([line("n1", "0", [])], "gpu_use"), null);
  assert.equal(deviceGrid([line("", "", [[1, 2]], { quantile: "0.5" })], "gpu_use"), null, "a quantile is not a device");
  assert.equal(deviceGrid([line("n1", "0", [[1000, 1]], { gpuiid: "3" })], "gpu_use")!.nodes[0]!.devices[0]!.label, "0/3");
});

test("512 nodes with 8 devices fit into a picture, and each point is one device", () => {
  const grid = deviceGrid(Array.from({ length: 4096 }, (_, i) => line(`n${i >> 3}`, String(i % 8), [[1000, i % 101]])), "gpu_use")!;
  for (const width of [1180, 800, 340, 1]) {
    const layout = layoutOf(grid.nodes.length, grid.most, width);
    assert.ok(layout.cell >= 6 && layout.cell <= 16 && (layout.columns * layout.cell <= width || layout.columns === 1));
    for (const node of [0, 1, 255, 511]) {
      const [x, y] = placeOf(node, layout);
      assert.ok(y + 8 * layout.cell <= layout.height);
      assert.deepEqual(deviceAt(x, y, grid, layout), [node, 0]);
      assert.deepEqual(deviceAt(x + layout.cell - 1, y + 8 * layout.cell - 1, grid, layout), [node, 7]);
      assert.equal(deviceAt(x, y + 8 * layout.cell + 1, grid, layout), null, "between two bands");
    }
    assert.equal(deviceAt(-1, 0, grid, layout), null);
    assert.equal(deviceAt(0, layout.height + 50, grid, layout), null);
  }
  assert.deepEqual([0, 0.4, 0.5, 16, 17, 50, 100, 140].map(shadeOf), [0, 0, 1, 1, 2, 3, 6, 6]);
});
