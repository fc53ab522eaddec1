import assert from "node:assert/strict";
import { test } from "node:test";

import { moved } from "./keys";

test("keys move the cursor of a chart and stop at its ends", () => {
  const to = (key: string, at: number) => moved(key, at, 30);
  assert.deepEqual(["ArrowRight", "ArrowLeft", "PageDown", "PageUp", "Home", "End"].map((key) => to(key, 12)), [13, 11, 22, 2, 0, 29]);
  assert.deepEqual(["ArrowRight", "PageDown", "End"].map((key) => to(key, 29)), [29, 29, 29]);
  assert.deepEqual(["ArrowLeft", "PageUp", "Home"].map((key) => to(key, 0)), [0, 0, 0]);
  assert.equal(to("PageDown", 25), 29);
  assert.equal(to("PageUp", 4), 0);
});

test("the first key enters a chart from the side that it points away from", () => {
  const to = (key: string) => moved(key, -1, 30);
  assert.deepEqual(["ArrowRight", "ArrowLeft", "PageDown", "PageUp", "Home", "End"].map(to), [0, 29, 9, 20, 0, 29]);
});

test("other keys do not move, and an empty chart has nowhere to go", () => {
  for (const key of ["Enter", "Escape", "Tab", "ArrowUp", "ArrowDown", "+", "a"]) assert.equal(moved(key, 3, 30), null, key);
  for (const key of ["ArrowRight", "End"]) assert.equal(moved(key, -1, 0), null, key);
  assert.equal(moved("ArrowLeft", -1, 1), 0);
  assert.equal(moved("PageUp", -1, 1), 0);
});
