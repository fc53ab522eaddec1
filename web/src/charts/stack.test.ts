import assert from "node:assert/strict";
import { test } from "node:test";

import { stackOf } from "./stack";

const part = (label: string, points: [number, number | null][]) => ({ label, series: { name: "power", unit: "watts", points } });
const sum = { times: [0, 1, 2, 3], values: [10, 20, null, 40] };

test("parts are on one another at the times of the sum", () => {
  const stack = stackOf(sum, [part("GPUs", [[0, 6], [1, 15], [2, 9], [3, 30]]), part("none", []), part("CPUs", [[0, 4], [1, null], [3, 10]])]);
  assert.deepEqual(stack.map(({ label, values, upTo }) => ({ label, values, upTo })), [
    { label: "GPUs", values: [6, 15, null, 30], upTo: [6, 15, null, 30] },
    { label: "CPUs", values: [4, null, null, 10], upTo: [10, 15, null, 40] },
  ]);
});

test("one part, or parts read at other times, do not make a stack", () => {
  assert.deepEqual(stackOf(sum, [part("GPUs", [[0, 6], [1, 15]])]), []);
  assert.deepEqual(stackOf(sum, [part("a", [[0.5, 6], [1.5, 6], [0, 1]]), part("b", [[0.5, 6], [0, 1]])]), []);
  assert.deepEqual(stackOf({ times: [], values: [] }, []), []);
});
