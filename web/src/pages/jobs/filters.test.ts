import assert from "node:assert/strict";
import { test } from "node:test";

import { defaultList } from "../../data/liststate";
import { read } from "../address";
import { chips, customPeriod, dayOf, fieldNumber, periodText, periodValue } from "./filters";
import { kBuiltIn, kMaxViews, readViews, removeView, saveView } from "./views";

test("each filter is a chip that takes it away", () => {
  const list = defaultList();
  list.choices.state = ["FAILED", "TIMEOUT"];
  list.ranges.gpu = { least: null, most: 20 };
  list.ranges.wall = { least: 7200, most: 36000 };
  list.cursor = "x";
  const found = chips(list);
  assert.deepEqual(found.map((chip) => chip.text), ["State: Failed", "State: Timeout", "GPU use at most 20 %", "Elapsed 2 h to 10 h"]);
  assert.deepEqual(found[0]!.without, { ...list, cursor: "", choices: { ...list.choices, state: ["TIMEOUT"] } });
  assert.deepEqual(found[2]!.without.ranges.gpu, { least: null, most: null });
  assert.deepEqual(chips(defaultList()), []);
});

test("periods have names", () => {
  assert.equal(periodText({ kind: "hours", hours: 24 }), "in the last 24 hours");
  assert.equal(periodText({ kind: "hours", hours: 5 }), "in the last 5 hours");
  assert.equal(periodValue({ kind: "month", back: 1 }), "last");
  const custom = customPeriod("2031-04-01", "2031-04-03");
  assert.deepEqual(custom, { kind: "custom", from: Date.UTC(2031, 3, 1) / 1000, to: Date.UTC(2031, 3, 4) / 1000 });
  assert.equal(periodText(custom!), "from 2031-04-01 to 2031-04-03");
  assert.equal(periodText({ kind: "custom", from: Date.UTC(2031, 3, 1, 13) / 1000, to: Date.UTC(2031, 3, 1, 14) / 1000 }), "from 1 Apr 2031, 13:00 to 1 Apr 2031, 14:00");
  assert.equal(periodText({ kind: "hours", hours: 72 }), "in the last 3 days");
  assert.equal(periodValue(custom!), "custom");
  assert.equal(customPeriod("2031-04-03", "2031-04-01"), null);
  assert.equal(customPeriod("", "2031-04-01"), null);
  assert.equal(dayOf(Date.UTC(2031, 3, 1) / 1000), "2031-04-01");
});

test("fields accept numbers only", () => {
  assert.equal(fieldNumber("cpu", " 12,5 "), 12.5);
  assert.equal(fieldNumber("wall", "2"), 7200);
  for (const text of ["", " ", "-1", "x", "1e999"]) assert.equal(fieldNumber("cpu", text), null, text);
});

function store(full = false) {
  let text: string | null = null;
  return {
    getItem: () => text,
    setItem: (_: string, value: string) => {
      if (full) throw new Error("full");
      text = value;
    },
  };
}

test("views are saved, replaced and removed, at most fifty", () => {
  const s = store();
  assert.deepEqual(readViews(s), []);
  assert.deepEqual(saveView(s, " mine ", "#/jobs?q=a"), [{ name: "mine", address: "#/jobs?q=a" }]);
  assert.deepEqual(saveView(s, "mine", "#/jobs?q=b"), [{ name: "mine", address: "#/jobs?q=b" }]);
  assert.equal(saveView(s, "  ", "#/jobs"), null);
  for (let i = 1; i < kMaxViews; ++i) assert.ok(saveView(s, `v${i}`, "#/jobs"));
  assert.equal(saveView(s, "one more", "#/jobs"), null);
  assert.equal(removeView(s, "mine")?.length, kMaxViews - 1);
  assert.equal(saveView(store(true), "mine", "#/jobs"), null);
});

test("what a store should not hold is skipped", () => {
  const holding = (text: string) => readViews({ getItem: () => text, setItem: () => {} });
  assert.deepEqual(holding("{"), []);
  assert.deepEqual(holding('{"name":"a"}'), []);
  assert.deepEqual(holding('[null, 1, {"name":"a","address":"javascript:alert(1)"}, {"name":"","address":"#/jobs"}, {"name":"b","address":"#/jobs"}]'), [{ name: "b", address: "#/jobs" }]);
  const throwing = { getItem: () => { throw new Error("off"); }, setItem: () => {} };
  assert.deepEqual(readViews(throwing), []);
});

test("the views that come with the page are addresses of lists", () => {
  for (const view of kBuiltIn) assert.equal(read(view.address).page, "jobs");
});
