import assert from "node:assert/strict";
import { test } from "node:test";

import { addTexts } from "../../text/i18n";
import en from "../../text/locales/unit.en.json";
import { commonResults, comparedResult, partsOf, perResult, readMarks, trendOf, type Marks, type Result } from "./marks";

addTexts(en, null);

const kPhase = { region: "solve", count: 1250, nodes: 2, seconds: 58822, share: 0.87, kwh: 36, self_kwh: 30, watts: 1100, slowest: "g15", longer: 0.09 };
const kResult = { result: "step", unit: null, n: 1250, joules_per: 26000, family_joules_per: 27100, family: Array.from({ length: 19 }, (_, i) => ({ uuid: `${i}`, started_at_ts: 1_767_225_600_000, joules_per: 27000 + i })) };
const report = (more: Record<string, unknown>) => [{ v: 1, state: "final", energy: { kwh: 40 }, phases: [], results: [], fom: [], findings: [], ...more }];
const result = (more: Partial<Result> = {}): Result => ({ name: "step", unit: "", n: 1250, joules: 26000, familyJoules: 27100, family: Array.from({ length: 19 }, (_, i) => ({ uuid: `${i}`, started: 1_767_225_600_000, joules: 27000 + i })), ...more });

test("a report gives what the job has marked", () => {
  assert.deepEqual(readMarks(report({ phases: [kPhase], results: [kResult], fom: [{ fom: "speed", unit: "ns/day", last: 83.2, mean: 81.4 }] })), {
    phases: [{ name: "solve", count: 1250, seconds: 58822, share: 0.87, kwh: 36, selfKwh: 30, watts: 1100, slowest: "g15", longer: 0.09 }],
    results: [result()],
    merits: [{ name: "speed", unit: "ns/day", last: 83.2, mean: 81.4 }],
    kwh: 40,
  });
  assert.equal(readMarks(report({ phases: [{ region: "read", kwh: null }] }))?.phases[0]?.kwh, null, "not measured is not 0");
});

test("without marks there is nothing, and what is odd in them does no harm", () => {
  for (const data of [null, undefined, {}, [], [null], report({}), report({ phases: "x", results: {}, fom: [null, 7] }), [{ state: "final" }]]) assert.equal(readMarks(data), null, JSON.stringify(data));
  const odd = readMarks(
    report({
      phases: [null, 1, {}, { region: " \n " }, { region: "a\u202e\nb", count: -1, seconds: "9", longer: NaN, slowest: 7 }],
      results: [{ result: "step" }, { result: "x", n: -1 }, { result: "y".repeat(100), n: 0 }],
      fom: [{ fom: "loss", last: -2.5 }, { fom: "nan", last: "1" }],
    }),
  );
  assert.deepEqual(odd?.phases, [{ name: "a b", count: null, seconds: null, share: null, kwh: null, selfKwh: null, watts: null, slowest: "", longer: null }]);
  assert.deepEqual(odd?.results.map(({ name, n }) => [name.length, n]), [[40, 0]]);
  assert.deepEqual(odd?.merits, [{ name: "loss", unit: "", last: -2.5, mean: null }]);
  const many = Array.from({ length: 1000 }, () => kPhase);
  assert.equal(readMarks(report({ phases: many }))?.phases.length, 32);
});

test("the bar has each joule once", () => {
  const marks = readMarks(report({ phases: [kPhase, { ...kPhase, self_kwh: 6 }, { ...kPhase, self_kwh: null }] }))!;
  assert.deepEqual(partsOf(marks), [
    { phase: 0, x: 0, width: 75 },
    { phase: 1, x: 75, width: 15 },
    { phase: null, x: 90, width: 10 },
  ]);
  const rest = { ...marks, kwh: 36.1 };
  assert.deepEqual(partsOf(rest).map((part) => part.phase), [0, 1], "rounding adds no part");
  assert.deepEqual(partsOf({ ...marks, kwh: 20 }).map((part) => Math.round(part.width)), [83, 17], "parts are never more than the whole");
  assert.deepEqual(partsOf({ ...marks, phases: [] }), []);
});

test("a result says what so many of it take, and how that compares", () => {
  assert.equal(perResult(result()), "7.22 Wh per step");
  assert.equal(perResult(result({ joules: 1500 })), "0.417 kWh per 1,000 step");
  assert.equal(perResult(result({ joules: 0.0036, name: "simulated", unit: "ns" })), "1 Wh per 1,000,000 ns (simulated)");
  assert.equal(comparedResult(result()), "4 % less than the median of 19 earlier runs");
  assert.equal(comparedResult(result({ joules: 28000 })), "3 % more than the median of 19 earlier runs");
  assert.equal(comparedResult(result({ joules: 27101 })), "as much as the median of 19 earlier runs");
  for (const few of [{ family: result().family.slice(0, 3) }, { familyJoules: null }, { familyJoules: 0 }, { joules: null }]) assert.equal(comparedResult(result(few)), "", JSON.stringify(few));
});

test("the trend of a result ends with this run", () => {
  const bars = trendOf(result({ joules: 13509 }), 1_767_225_600_000);
  assert.equal(bars.length, 20);
  assert.deepEqual(bars[0]?.run, { uuid: "18", started: 1_767_225_600_000 });
  assert.equal(bars[0]?.height, 32);
  assert.match(bars[0]!.words, /: 7\.51 Wh$/);
  assert.deepEqual(bars.at(-1), { height: 16, words: "this run: 3.75 Wh", run: null });
  assert.deepEqual(trendOf(result({ family: [] }), 0), []);
  assert.deepEqual(trendOf(result({ joules: null }), 0), []);
  assert.deepEqual(trendOf(result({ joules: 0, family: [{ uuid: "1", started: 0, joules: 0 }] }), 0).map((bar) => bar.height), [2, 2]);
  const odd = readMarks(report({ results: [{ ...kResult, family: [null, 7, { uuid: 7 }, { uuid: "1", started_at_ts: "x" }, { uuid: "2", started_at_ts: 1, joules_per: null }] }] }));
  assert.deepEqual(odd?.results[0]?.family, []);
});

test("runs are compared by the results that all of them have", () => {
  const marks = (results: Result[]): Marks => ({ phases: [], results, merits: [], kwh: null });
  const ns = result({ name: "simulated", unit: "ns", joules: 5 });
  assert.deepEqual(commonResults([marks([ns, result()]), marks([result({ joules: 1 }), result({ name: "simulated", unit: "ps" })])]), [{ word: "step", joules: [26000, 1] }]);
  assert.deepEqual(commonResults([marks([result()]), null]), []);
  assert.deepEqual(commonResults([marks([result()]), marks([result({ joules: null })])]), []);
  assert.deepEqual(commonResults([]), []);
});
