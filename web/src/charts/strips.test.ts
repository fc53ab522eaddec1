import assert from "node:assert/strict";
import { test } from "node:test";

import { areaOf, lowSince, stripsOf } from "./strips";

const line = (labels: Record<string, string>, values: number[], name = "gpu_use") => ({
  name,
  unit: "percent",
  labels,
  points: values.map((value, i) => [i * 1000, value] as [number, number]),
});

test("strips are those of one chart, the least used first", () => {
  const strips = stripsOf([line({ index: "0" }, [90, 80]), line({ index: "1" }, [0, 0]), line({ index: "2" }, []), line({ index: "0" }, [1], "gpu_power")], "gpu_use");
  assert.deepEqual(
    strips.map((strip) => [strip.labels.index, strip.mean]),
    [
      ["1", 0],
      ["0", 85],
    ],
  );
});

test("quantiles stay in their order", () => {
  const strips = stripsOf([line({ quantile: "1" }, [99]), line({ quantile: "0" }, [1])], "gpu_use");
  assert.deepEqual(strips.map((strip) => strip.labels.quantile), ["1", "0"]);
});

test("the area has a step for each reading and none where there is none", () => {
  const track = { times: [0, 1000, 2000, 3000], values: [50, null, 100, 0] };
  assert.equal(areaOf(track, 0, 4000, 100), "M0 100V50H250V100ZM500 100V0H750V100H1000V100Z");
  assert.equal(areaOf(track, 2000, 3000, 100), "M0 100V0H1000V100Z");
  assert.equal(areaOf({ times: [], values: [] }, 0, 1000, 100), "");
  const wave = { times: Array.from({ length: 240 }, (_, i) => 1000 * i), values: Array.from({ length: 240 }, (_, i) => (i % 3 === 0 ? 40 : 60)) };
  const path = areaOf(wave, 0, 240_000, 100);
  assert.equal(path.match(/M/g)?.length, 1, "one outline");
  assert.ok(path.length < 160 * 10, `${path.length}: equal readings are one step`);
});

test("a device is idle since the first reading after its last use, over gaps", () => {
  const strip = (...values: (number | null)[]) => stripsOf([{ name: "g", unit: "percent", labels: {}, points: values.map((value, i) => [1000 * i, value]) }], "g")[0]!;
  assert.equal(lowSince(strip(90, 0.4, 0, null, 0), 0.5), 1000);
  assert.equal(lowSince(strip(0, 0), 0.5), 0, "never used");
  assert.equal(lowSince(strip(0, 0, 0.5), 0.5), null);
  assert.equal(lowSince(strip(null, null), 0.5), null, "nothing was read");
});
