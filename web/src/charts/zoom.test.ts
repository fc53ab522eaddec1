import assert from "node:assert/strict";
import { test } from "node:test";

import { within, zoom } from "./zoom";

const kWhole = { from: 0, to: 1_000_000 };

test("zooming keeps the moment in its place and stays inside", () => {
  assert.deepEqual(zoom(kWhole, kWhole, 0.5), { from: 250_000, to: 750_000 });
  assert.deepEqual(zoom(kWhole, kWhole, 0.5, 0), { from: 0, to: 500_000 });
  assert.deepEqual(zoom({ from: 250_000, to: 750_000 }, kWhole, 0.5, 300_000), { from: 275_000, to: 525_000 });
  assert.equal(zoom({ from: 250_000, to: 750_000 }, kWhole, 2), null, "all");
  assert.equal(zoom({ from: 250_000, to: 750_000 }, { from: 0, to: 1_030_000 }, 2), null, "all, although the unit runs on");
  assert.deepEqual(zoom({ from: 0, to: 400_000 }, kWhole, 2), { from: 0, to: 800_000 }, "not before the start");
  assert.deepEqual(zoom({ from: 0, to: 12_000 }, kWhole, 0.5, 6000), { from: 1000, to: 11_000 }, "ten seconds at least");
});

test("only what shows something of the unit is a span", () => {
  assert.equal(within(null, kWhole), null);
  assert.equal(within({ from: -5, to: 2_000_000 }, kWhole), null);
  assert.deepEqual(within({ from: -5, to: 500_000 }, kWhole), { from: 0, to: 500_000 });
  assert.equal(within({ from: 2_000_000, to: 3_000_000 }, kWhole), null);
  assert.equal(within({ from: 5000, to: 6000 }, kWhole), null);
});
