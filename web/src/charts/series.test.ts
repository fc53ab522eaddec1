import assert from "node:assert/strict";
import { test } from "node:test";

import type { Series } from "../data/api";
import { highestOf, pathOf, readingAt, scaleOf } from "./lines";
import { axisStep, summary, toTrack, whyNone } from "./series";

test("the line breaks where readings are missing, and nowhere else", () => {
  const points: [number, number | null][] = [[0, 1], [5, 2], [10, 3], [30, 4], [35, null], [40, 6]];
  const track = toTrack({ name: "cpu", unit: "cores", points });
  assert.deepEqual(track.times, [0, 5, 10, 15, 30, 35, 40]);
  assert.deepEqual(track.values, [1, 2, 3, null, 4, null, 6]);
  assert.deepEqual(summary(track), { readings: 5, lowest: 1, mean: 3.2, highest: 6 });
  assert.equal(summary(toTrack(undefined)), null);
});

test("axis marks are round", () => {
  assert.equal(axisStep(15.6, 4, false), 5);
  assert.equal(axisStep(1, 4, false), 0.5);
  assert.equal(axisStep(0.03, 4, false), 0.01);
  assert.equal(axisStep(300 * 2 ** 20, 4, true), 128 * 2 ** 20);
  assert.equal(axisStep(0, 4, false), 1);
});

test("lines stay in their box, and gaps stay open", () => {
  const box = { width: 110, height: 100, left: 10 };
  const track = { times: [0, 10, 20, 30, 40], values: [0, 5, null, 10, 20] };
  assert.equal(pathOf(track, 0, 40, 10, box), "M10 100L35 50M85 0L110 0");
  assert.equal(pathOf(track, 0, 30, 10, box), "M10 100L43.3 50M110 0h0.1", "a reading alone is a dot");
  assert.equal(pathOf({ times: [], values: [] }, 0, 1, 1, box), "");
  assert.equal(highestOf([track, { times: [1], values: [null] }]), 20);
  assert.deepEqual(scaleOf(20, false), { top: 25, marks: [0, 5, 10, 15, 20, 25] });
  assert.deepEqual(scaleOf(0, false).marks[0], 0);
  assert.equal(scaleOf(3 * 2 ** 30, true).top % 2 ** 30, 0);
  assert.equal(readingAt(track, 12, 5), 5);
  assert.equal(readingAt(track, 21, 5), null, "nothing was read there");
});

test("an empty chart says why it is empty, as far as that is known", () => {
  const none = (more: Partial<Series>) => whyNone({ name: "power", unit: "", points: [], ...more }, "power");
  assert.equal(none({ none: "too_short" }), "No readings of power: the time is too short to measure.");
  assert.equal(none({ none: "not_collected" }), "No readings of power: not measured here.");
  assert.equal(none({ none: "not_collected", collector: "energy" }), "No readings of power: not measured here (collector energy).");
  assert.equal(none({}), "No readings of power.");
  assert.equal(whyNone(undefined, "power"), "No readings of power.");
});
