import assert from "node:assert/strict";
import { test } from "node:test";

import { customMetrics } from "./custom";

test("custom metrics of all kinds become rows", () => {
  assert.deepEqual(customMetrics({ uuid: "1" }), []);
  assert.deepEqual(
    customMetrics({
      uuid: "1",
      total_custom_stats: { misses: 5 },
      avg_custom_stats: { temp: 60.5 },
      min_custom_stats: { temp: 41 },
      max_custom_stats: { temp: 78, constructor: 0 },
    }),
    [
      { name: "constructor", total: null, average: null, least: null, greatest: 0 },
      { name: "misses", total: 5, average: null, least: null, greatest: null },
      { name: "temp", total: null, average: 60.5, least: 41, greatest: 78 },
    ],
  );
});
