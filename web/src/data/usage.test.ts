import assert from "node:assert/strict";
import { test } from "node:test";

import { Api } from "./api";
import { changeIn, changeOf, columnName, dayCount, dayPeriod, daysOf, daysOfMonth, energyOf, fieldText, hoursOf, inColumn, monthName, monthsLater, notCompared, sumOf, uncovered, usage, type Usage } from "./usage";

const kNow = Date.UTC(2031, 3, 5, 8, 15);
const noon = (...ymd: [number, number, number]) => Date.UTC(...ymd, 12) / 1000;

test("idle power is compared only where it was known on most days", () => {
  const compared = { days: 28, coverage: 1, energy_coverage: 0.9, idle_coverage: 0.2, not_used_coverage: 0.1, now: { idle_kwh: [5], kwh: [9] }, before: { idle_kwh: [1], kwh: [9] } };
  const months: Usage = { groups: ["(all)"], times: [], values: {}, totals: {}, compared };
  assert.equal(uncovered(months, "idle_kwh"), 0.2);
  assert.equal(uncovered(months, "not_used_kwh"), 0.1);
  assert.equal(changeIn(months, "idle_kwh", "before"), null);
  assert.equal(uncovered(months, "kwh"), null);
  assert.equal(uncovered({ ...months, compared: { ...compared, idle_coverage: 0.8 } }, "idle_kwh"), null);
});

test("the note below the tiles says of each field what its own data lacks", () => {
  const of = (kwh: number | null, grams: number | null, idle_kwh: number | null) => notCompared([{ field: "kwh", less: kwh }, { field: "grams", less: grams }, { field: "idle_kwh", less: idle_kwh }, { field: "units", less: null }]);
  assert.deepEqual(of(0.6, 0.6, 0), ["Energy, Emissions: not compared, because only 60 % of one period has data; 80 % is needed.", "Idle power: not compared, because one period has no data."]);
  assert.deepEqual(of(null, 0.25, 0.6), ["Emissions: not compared, because only 25 % of one period has data; 80 % is needed.", "Idle power: not compared, because only 60 % of one period has data; 80 % is needed."]);
  assert.deepEqual(of(0.6, 0.6, 0.6001), ["Not compared: only 60 % of one period has data; 80 % is needed."], "what reads the same is said once");
  assert.deepEqual(of(0, 0, 0), ["Not compared: one period has no data."]);
  assert.deepEqual(of(null, null, 0), ["Not compared: one period has no data."]);
  assert.deepEqual(of(null, null, null), []);
});

test("periods become days, from noon to noon", () => {
  assert.deepEqual(daysOf({ kind: "month", back: 0 }, kNow), { from: noon(2031, 3, 1), to: noon(2031, 3, 5) });
  assert.deepEqual(daysOf({ kind: "month", back: 1 }, kNow), { from: noon(2031, 2, 1), to: noon(2031, 2, 31) });
  assert.deepEqual(daysOf({ kind: "month", back: 1 }, Date.UTC(2032, 2, 31)), { from: noon(2032, 1, 1), to: noon(2032, 1, 29) });
  assert.equal(dayCount(daysOf({ kind: "hours", hours: 168 }, kNow)), 7);
  assert.equal(dayCount(daysOf({ kind: "hours", hours: 1 }, kNow)), 1);
  assert.equal(dayCount(daysOf({ kind: "all" }, kNow)), 365);
  assert.deepEqual(daysOf({ kind: "custom", from: Date.UTC(2031, 0, 1) / 1000, to: Date.UTC(2031, 0, 3) / 1000 }, kNow), { from: noon(2031, 0, 1), to: noon(2031, 0, 2) });
  assert.deepEqual(daysOfMonth({ year: 2031, month: 2 }), { from: noon(2031, 1, 1), to: noon(2031, 1, 28) });
  assert.deepEqual(dayPeriod(Date.UTC(2031, 0, 3)), { kind: "custom", from: Date.UTC(2031, 0, 3) / 1000, to: Date.UTC(2031, 0, 4) / 1000 });
});

test("months follow each other over the year", () => {
  assert.deepEqual(monthsLater({ year: 2031, month: 12 }, 1), { year: 2032, month: 1 });
  assert.deepEqual(monthsLater({ year: 2031, month: 1 }, -1), { year: 2030, month: 12 });
  assert.equal(monthName({ year: 2031, month: 1 }), "January 2031");
});

test("a change is an arrow, a word and a number, and nothing where one is not known", () => {
  assert.deepEqual(changeOf(112, 100, "May"), { arrow: "▲", brief: "12 %", text: "12 % more than May" });
  assert.deepEqual(changeOf(80, 100, "May"), { arrow: "▼", brief: "20 %", text: "20 % less than May" });
  assert.deepEqual(changeOf(100.4, 100, "May"), { arrow: "=", brief: "as before", text: "as before" });
  assert.deepEqual(changeOf(2500, 100, "May"), { arrow: "▲", brief: "25 ×", text: "25 times as much as May" });
  assert.deepEqual(changeOf(0, 100, "May"), { arrow: "▼", brief: "100 %", text: "100 % less than May" });
  assert.deepEqual(changeOf(80, 100, "May", true), { arrow: "▼", brief: "20 %", text: "20 % fewer than May" });
  assert.deepEqual(changeOf(2500, 100, "May", true), { arrow: "▲", brief: "25 ×", text: "25 times as many as May" });
  assert.equal(changeOf(5, 0, "May"), null);
  assert.equal(changeOf(null, 5, "May"), null);
  assert.equal(changeOf(5, null, "May"), null);
});

test("what was not measured is not added as zero", () => {
  assert.equal(sumOf([1, null, 2]), 3);
  assert.equal(sumOf([null, null]), null);
  assert.equal(sumOf([]), null);
  assert.equal(sumOf(undefined), null);
  assert.equal(sumOf([0]), 0);
  assert.equal(fieldText("kwh", null), "–");
  assert.equal(fieldText("cost", 1234.5, "EUR"), "EUR 1,234.50");
  assert.equal(fieldText("grams", 1500), "1.5 kg CO2e");
  assert.deepEqual([columnName("grams"), inColumn(fieldText("grams", 1500)), columnName("kwh"), inColumn(fieldText("kwh", 2))], ["Emissions CO2e", "1.5 kg", "Energy", "2 kWh"]);
});

test("sums are asked for with what the page needs", async () => {
  let seen = new URL("http://h");
  const body = { status: "success", data: { groups: ["(all)"], times: [1], values: { kwh: [[1]] }, totals: { kwh: [1] } } };
  const api = new Api("http://h/", null, async (input) => {
    seen = new URL(String(input));
    return new Response(JSON.stringify(body));
  });
  const { data } = await usage(api, "led", { days: { from: 1, to: 2 }, by: "user", fields: ["kwh", "grams"], top: 9, previous: true, narrow: [["project", "p"]] }, new AbortController().signal);
  assert.equal(sumOf(data.totals.kwh), 1);
  assert.equal(seen.pathname + seen.search, "/api/v1/usage/series?from=1&to=2&step=day&by=user&top=9&field=kwh%2Cgrams&previous=1&project=p&scope=led");
  const broken = new Api("http://h/", null, async () => new Response('{"status":"success","data":[]}'));
  await assert.rejects(usage(broken, "all", { days: { from: 1, to: 2 }, by: "none", fields: ["kwh"] }, new AbortController().signal), { message: "the answer has no sums" });
});

test("hours go from the beginning of the first day to the end of the last one, or until now", () => {
  const days = { from: noon(2031, 3, 3), to: noon(2031, 3, 5) };
  assert.deepEqual(hoursOf(days, kNow), { from: Date.UTC(2031, 3, 3) / 1000, to: kNow / 1000 });
  assert.deepEqual(hoursOf(days, kNow + 86400_000), { from: Date.UTC(2031, 3, 3) / 1000, to: Date.UTC(2031, 3, 6) / 1000 - 1 });
});

/** What is asked for, and the step of what is shown, where a server answers hours like this. */
async function hourly(view: "own" | "all", days: number, hours: { status: number; values?: (number | null)[][] }): Promise<[asked: string[], step: string | undefined]> {
  const asked: string[] = [];
  const api = new Api("http://h/", null, async (input) => {
    const url = new URL(String(input));
    const step = url.searchParams.get("step");
    asked.push(`${url.pathname} ${step} ${url.searchParams.get("from")}`);
    if (step === "hour" && hours.status !== 200) return new Response(JSON.stringify({ status: "error", error: "no" }), { status: hours.status });
    const kwh = step === "hour" ? hours.values : [[7]];
    return new Response(JSON.stringify({ status: "success", data: { step, groups: ["cpu"], times: [1, 2], values: { kwh }, totals: { kwh: [1] }, missing: [] } }));
  });
  const to = noon(2031, 3, 5);
  const narrow: [string, string][] = view === "own" ? [["user", "ada"]] : [];
  const data = await energyOf(api, view, { days: { from: to - (days - 1) * 86400, to }, by: "component", fields: ["kwh"], narrow }, new AbortController().signal);
  return [asked, data.step];
}

test("energy is by hour for three days at most, and by day where hours are not known", async () => {
  const start = (days: number) => Date.UTC(2031, 3, 6 - days) / 1000;
  const known = { status: 200, values: [[0, null, 3]] };
  assert.deepEqual(await hourly("own", 3, known), [[`/api/v1/usage/series hour ${start(3)}`], "hour"]);
  assert.deepEqual(await hourly("all", 1, known), [[`/api/v1/usage/series/admin hour ${start(1)}`], "hour"], "as days are asked for");
  assert.deepEqual(await hourly("own", 4, known), [[`/api/v1/usage/series day ${noon(2031, 3, 2)}`], "day"]);
  const both = [`/api/v1/usage/series/admin hour ${start(2)}`, `/api/v1/usage/series/admin day ${noon(2031, 3, 4)}`];
  for (const status of [400, 503]) assert.deepEqual(await hourly("all", 2, { status }), [both, "day"], String(status));
  assert.deepEqual(await hourly("all", 2, { status: 200, values: [[0, null]] }), [both, "day"], "days may know more");
  assert.deepEqual(await hourly("all", 2, { status: 200, values: [] }), [both, "day"]);
});

test("a question for hours that is not wanted any more is not asked again by day", async () => {
  const stop = new AbortController();
  let asked = 0;
  const api = new Api("http://h/", null, async () => {
    asked++;
    stop.abort();
    throw new Error("aborted");
  });
  await assert.rejects(energyOf(api, "all", { days: { from: 1, to: 2 }, by: "none", fields: ["kwh"] }, stop.signal));
  assert.equal(asked, 1);
});
