import assert from "node:assert/strict";
import { test } from "node:test";

import type { Unit } from "../../data/api";
import { nodeCharts } from "./charts";
import { lineOf, nodesOf } from "./nodes";

const line = (name: string, hostname: string, values: (number | null)[]) => ({ name, unit: "", labels: hostname ? { hostname } : {}, points: values.map((value, i) => [1000 * i, value] as [number, number | null]) });

test("the node that differs most comes first, and the median is of all nodes", () => {
  const found = nodesOf(
    [line("cpu", "n10", [8, 8]), line("cpu", "n2", [8, 8]), line("cpu", "slow", [2, 2]), line("cpu", "", [1, 1]), line("power", "n2", [100, 140]), line("power", "n10", [100, null]), line("power", "slow", []), line("x", "n2", [1])],
    ["cpu", "power"],
  );
  assert.deepEqual(found.nodes.map((node) => node.host), ["slow", "n2", "n10"]);
  assert.deepEqual(found.medians.get("cpu")!.values, [8, 8]);
  assert.deepEqual(found.medians.get("power")!.values, [100, 140]);
  assert.deepEqual([...found.top], [["cpu", 8], ["power", 140]]);
  assert.equal(found.nodes[0]!.means.has("power"), false);
  assert.deepEqual(nodesOf([], ["cpu"]).nodes, []);
});

test("a small line has gaps where nothing was read, and stays in its box", () => {
  const track = { times: [0, 1000, 2000, 3000, 9000], values: [0, 5, null, 20, 1] };
  assert.equal(lineOf(track, 0, 4000, 10), "M0 98L250 50M750 2");
  assert.equal(lineOf(undefined, 0, 4000, 10), "");
});

test("rows of nodes show GPUs where the unit has some", () => {
  const names = (gpus: number) => nodeCharts({ uuid: "1", allocation: { gpus } } as unknown as Unit).map((kind) => kind.name);
  assert.deepEqual(names(4), ["gpu_use", "cpu", "memory", "power"]);
  assert.deepEqual(names(0), ["cpu", "memory", "power"]);
});
