import assert from "node:assert/strict";
import { test } from "node:test";

import { step, widthOf } from "./table";

test("keys move inside the table and never out of it", () => {
  const from = { row: 2, column: 1 };
  const to = (key: string, control = false) => step(key, from, 5, 3, control);
  assert.deepEqual(to("ArrowDown"), { row: 3, column: 1 });
  assert.deepEqual(to("ArrowUp"), { row: 1, column: 1 });
  assert.deepEqual(to("ArrowRight"), { row: 2, column: 2 });
  assert.deepEqual(to("ArrowLeft"), { row: 2, column: 0 });
  assert.deepEqual(to("PageDown"), { row: 4, column: 1 });
  assert.deepEqual(to("PageUp"), { row: 0, column: 1 });
  assert.deepEqual(to("Home"), { row: 2, column: 0 });
  assert.deepEqual(to("End"), { row: 2, column: 2 });
  assert.deepEqual(to("Home", true), { row: 0, column: 0 });
  assert.deepEqual(to("End", true), { row: 4, column: 2 });
  assert.equal(to("x"), null);
  assert.equal(to("Tab"), null);
  assert.deepEqual(step("ArrowDown", { row: 4, column: 0 }, 5, 3, false), { row: 4, column: 0 });
});

test("a column is as wide as its values and the longest word of its heading", () => {
  assert.equal(widthOf({ label: "CPU use", width: 6.4 }), 6.4);
  assert.equal(widthOf({ label: "CPU-Auslastung je Kern", width: 6.4 }), 0.62 * 14 + 0.85);
  assert.equal(widthOf({ label: "Kosten" }), 0.62 * 6 + 0.85);
});
