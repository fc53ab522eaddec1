import assert from "node:assert/strict";
import { test } from "node:test";

import { labelled, stack } from "./bars";

test("parts of a bar stand on each other and reach the sum", () => {
  const { bars, marks } = stack([[1, 0, null], [3, 2, null]], 3, { width: 340, height: 100, left: 40 });
  assert.deepEqual(bars.map((bar) => bar.total), [4, 2, null]);
  assert.deepEqual(marks.map((mark) => mark.value), [0, 1, 2, 3, 4]);
  assert.deepEqual(bars[0]!.parts, [{ y: 75, height: 25, group: 0 }, { y: 0, height: 75, group: 1 }]);
  assert.deepEqual(bars[1]!.parts, [{ y: 50, height: 50, group: 1 }]);
  assert.deepEqual(bars[2]!.parts, []);
  assert.deepEqual([bars[0]!.x, bars[0]!.width, bars[2]!.x], [50, 80, 250]);
});

test("a limit above all bars has its place on the axis", () => {
  const { marks, limit } = stack([[1, 2]], 2, { width: 340, height: 100, left: 40 }, [], 8);
  assert.deepEqual([marks.at(-1)!.value, limit], [8, 0]);
  assert.equal(stack([[1, 2]], 2, { width: 340, height: 100, left: 40 }).limit, null);
});

test("nothing beside what was not measured is not known to be nothing", () => {
  assert.deepEqual(stack([[0, 0, 2], [null, 0, null]], 3, { width: 340, height: 100, left: 40 }).bars.map((bar) => bar.total), [null, 0, 2]);
  assert.deepEqual(stack([], 2, { width: 340, height: 100, left: 40 }).bars.map((bar) => bar.total), [null, null]);
});

test("nothing and very little are drawn without harm", () => {
  const none = stack([[0, null]], 2, { width: 100, height: 50, left: 0 });
  assert.ok(none.marks.every((mark) => Number.isFinite(mark.y)));
  assert.deepEqual(none.bars[0]!.parts, []);
  assert.deepEqual(stack([], 0, { width: 100, height: 50, left: 0 }).bars, []);
  const little = stack([[1e-9]], 1, { width: 100, height: 50, left: 0 });
  assert.ok(little.bars[0]!.parts[0]!.height > 20 && little.bars[0]!.parts[0]!.height <= 50);
});

test("labels keep their distance", () => {
  assert.deepEqual([0, 1, 2, 3].map((i) => labelled(i, 4, 20, 40)), [true, false, true, false]);
  assert.deepEqual([0, 1].map((i) => labelled(i, 2, 100, 40)), [true, true]);
  const hours = (slot: number) => Array.from({ length: 24 }, (_, hour) => hour).filter((hour) => labelled(hour, 72, slot, 44, true));
  assert.deepEqual(hours(10), [0, 6, 12, 18], "not every 5 hours, which midnight would not be among");
  assert.deepEqual(hours(3.8), [0, 12]);
  assert.deepEqual(hours(3), [0]);
  assert.deepEqual(hours(0.5), [0]);
  assert.equal(hours(60).length, 24);
});
