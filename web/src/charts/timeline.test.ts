import assert from "node:assert/strict";
import { test } from "node:test";

import { keySpan, marks, neighbour, pan, place, type Bar } from "./timeline";

const bar = (key: string, from: number, to: number): Bar => ({ key, from, to });
const kHour = 3_600_000;

test("bars that overlap lie in lanes, others in the first that is free", () => {
  const bars = [bar("c", 60, 80), bar("a", 0, 50), bar("b", 20, 40), bar("out", 200, 300), bar("before", -50, 0)];
  const { placed, lanes } = place(bars, { from: 0, to: 100 }, 1000, 12);
  assert.equal(lanes, 2);
  assert.deepEqual(placed.map(({ bar: { key }, lane, x, width }) => [key, lane, x, width]), [["a", 0, 0, 500], ["b", 1, 200, 200], ["c", 0, 600, 200]]);
});

test("bars end at the edges, the shortest can be seen, and lanes are limited", () => {
  const cut = place([bar("a", -50, 50), bar("b", 99.99, 500)], { from: 0, to: 100 }, 100, 12).placed;
  assert.deepEqual(cut.map(({ x, width }) => [x, Math.round(width)]), [[0, 50], [99.99, 2]]);
  const many = Array.from({ length: 30 }, (_, i) => bar(String(i), 0, 100));
  const { placed, lanes } = place(many, { from: 0, to: 100 }, 100, 12);
  assert.equal(lanes, 12);
  assert.equal(placed.length, 30);
  assert.equal(Math.max(...placed.map(({ lane }) => lane)), 11);
  assert.deepEqual(place([], { from: 0, to: 100 }, 100, 12), { placed: [], lanes: 1 });
});

test("marks are round in the zone of the browser and not more than there is room for", () => {
  const day = { from: 10 * kHour + 1, to: 34 * kHour };
  assert.deepEqual(marks(day, 8, 0).map((ms) => ms / kHour), [12, 15, 18, 21, 24, 27, 30, 33]);
  assert.deepEqual(marks(day, 3, 0).map((ms) => ms / kHour), [12, 24]);
  assert.deepEqual(marks({ from: 0, to: 24 * kHour }, 4, 2 * kHour).map((ms) => (ms + 2 * kHour) / kHour % 6), [0, 0, 0, 0]);
  assert.ok(marks({ from: 0, to: 1e15 }, 1, 0).length > 0, "even a span that is too long has marks");
});

test("keys and buttons move and zoom inside the whole", () => {
  const whole = { from: 0, to: 100 * kHour };
  const half = { from: 50 * kHour, to: 100 * kHour };
  assert.deepEqual(pan(half, whole, -0.5), { from: 25 * kHour, to: 75 * kHour });
  assert.deepEqual(pan(half, whole, 5), half, "there is nothing later");
  assert.deepEqual(keySpan("+", whole, whole), { from: 25 * kHour, to: 75 * kHour });
  assert.deepEqual(keySpan("-", half, whole), whole);
  assert.deepEqual(keySpan("Escape", half, whole), whole);
  assert.deepEqual(keySpan("PageUp", half, whole), { from: 25 * kHour, to: 75 * kHour });
  assert.equal(keySpan("a", half, whole), null);
});

test("arrows lead from bar to bar, and to the nearest in time of the next row", () => {
  const rows = [[bar("b", 50, 60), bar("a", 0, 10)], [], [bar("c", 0, 5), bar("d", 48, 70)]];
  const key = (current: string | null, arrow: string) => neighbour(rows, current, arrow)?.key ?? null;
  assert.equal(key(null, "ArrowDown"), "a", "the first bar of all");
  assert.equal(key("gone", "Home"), "a");
  assert.equal(key("a", "ArrowRight"), "b");
  assert.equal(key("b", "ArrowRight"), "b");
  assert.equal(key("b", "Home"), "a");
  assert.equal(key("a", "End"), "b");
  assert.equal(key("b", "ArrowDown"), "d", "over a row without bars");
  assert.equal(key("c", "ArrowUp"), "a");
  assert.equal(key("a", "ArrowUp"), "a");
  assert.equal(key("a", "x"), null);
  assert.equal(neighbour([], null, "ArrowDown"), null);
});
