import assert from "node:assert/strict";
import { test } from "node:test";

import { defaultList } from "../data/liststate";
import { read, write } from "../pages/address";
import { cellText, countText, edgesOf, kShades, narrowed, shade, shaded, stepTo } from "./heat";
import { readHeat } from "../data/serverlist";
import { addTexts } from "../text/i18n";
import texts from "../text/locales/jobs.en.json";

addTexts(texts, null);

const heat = { bins: 20, cells: [{ x: 4, y: 0, count: 31, kwh: 402 }, { x: 19, y: 19, count: 1, kwh: null }] };

test("shades are steps of a logarithmic scale", () => {
  assert.equal(shade(0, 1, 100), 0);
  assert.equal(shade(1, 1, 128), 1);
  assert.equal(shade(2, 1, 128), 2);
  assert.equal(shade(127, 1, 128), kShades);
  assert.equal(shade(128, 1, 128), kShades);
  assert.equal(shade(5, 5, 5), kShades, "one value is all there is");
  assert.deepEqual(shaded(heat, "units").map((one) => one.shade), [7, 1]);
  assert.deepEqual(shaded(heat, "kwh").map((one) => one.shade), [7, 0], "what is not known has no colour");
});

test("a cell says what it holds and leads to the list of it", () => {
  assert.equal(cellText(4, 0, "mem", heat), "CPU use 20 to 25 %, Memory use 0 to 5 %: 31 units, 402 kWh");
  assert.equal(cellText(19, 19, "gpu", heat), "CPU use at least 95 %, GPU use at least 95 %: 1 unit");
  assert.equal(cellText(0, 0, "mem", heat), "CPU use 0 to 5 %, Memory use 0 to 5 %: none");
  assert.deepEqual(edgesOf(19, 20), { least: 95, most: null }, "more than all counts in the last one");
  const list = { ...defaultList(), heat: "mem" as const, q: "x" };
  assert.equal(write({ page: "jobs", list: narrowed(list, 4, 19, "mem", 20) }), "#/jobs?q=x&cpu=20..24.99&mem=95..");
  assert.deepEqual(read(write({ page: "jobs", list })), { page: "jobs", list });
  assert.equal((read("#/jobs?heat=wall") as { list: { heat: unknown } }).list.heat, null);
});

test("large counts are short", () => {
  assert.deepEqual([1, 999, 1000, 1249, 9960, 12_400, 999_499, 1_250_000, 12_000_000].map(countText), ["1", "999", "1k", "1.2k", "10k", "12k", "999k", "1.3M", "12M"]);
});

test("arrows move inside the map, up is more", () => {
  assert.deepEqual(stepTo("ArrowUp", { x: 3, y: 3 }, 20), { x: 3, y: 4 });
  assert.deepEqual(stepTo("ArrowDown", { x: 3, y: 0 }, 20), { x: 3, y: 0 });
  assert.deepEqual(stepTo("End", { x: 3, y: 7 }, 20), { x: 19, y: 7 });
  assert.equal(stepTo("x", { x: 0, y: 0 }, 20), null);
});

test("cells of a server that are none are left out", () => {
  assert.deepEqual(readHeat({ bins: 2, cells: [[0, 1, 3, 0.5], [2, 0, 1, 1], [0, -1, 1, 1], [0, 0, 0, 0], [1, 1, 2, null], "x", null, [0.5, 0, 1, 1]] }), {
    bins: 2,
    cells: [{ x: 0, y: 1, count: 3, kwh: 0.5 }, { x: 1, y: 1, count: 2, kwh: null }],
  });
  for (const wrong of [null, undefined, 3, {}, { bins: 0, cells: [] }, { bins: 2 }, { bins: "2", cells: [] }]) assert.equal(readHeat(wrong), null);
});
