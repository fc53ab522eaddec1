import assert from "node:assert/strict";
import { test } from "node:test";

import { barsOf, readStrip, summaryOf } from "./strip";

const unknown = ".".repeat(24);

test("a strip has 24 parts of the CPUs, and as many of the GPUs where there are some", () => {
  const strip = readStrip("0W_" + ".".repeat(20) + "_");
  assert.deepEqual(strip?.cpu.slice(0, 4), [0, (100 * 32) / 63, 100, null]);
  assert.equal(strip?.cpu.length, 24);
  assert.equal(strip?.gpu, null);
  assert.deepEqual(readStrip(unknown + "-".repeat(24))?.gpu, Array(24).fill((100 * 62) / 63));
});

test("any other text is none", () => {
  for (const text of ["", "0", unknown + "0", "<".repeat(24), "é".repeat(24), unknown + unknown + unknown, unknown + "\n"]) assert.equal(readStrip(text), null, text);
});

test("a line in words leaves out what is not known", () => {
  assert.deepEqual(summaryOf([0, null, 50, 100]), { mean: 50, low: 0, high: 100, unknown: 1 });
  assert.equal(summaryOf([null, null]), null);
});

test("bars are as high as their part, and what is not known has none", () => {
  assert.equal(barsOf([100, null, 0, 50, 130], 20), "M0 20v-20h3.4v20zM8 20v-0.6h3.4v0.6zM12 20v-10h3.4v10zM16 20v-20h3.4v20z");
  assert.equal(barsOf([null], 20), "");
});
