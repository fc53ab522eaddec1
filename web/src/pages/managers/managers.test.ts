import assert from "node:assert/strict";
import { test } from "node:test";

import { read, write, type Route } from "../address";
import { csv } from "../../data/csv";
import { addTexts, named, setLanguage, t } from "../../text/i18n";
import en from "../../text/locales/en.json";
import german from "../../text/locales/managers.de.json";
import texts from "../../text/locales/managers.en.json";
import { billOf, budgetsOf, budgetText, dayText, feedbackOf, gauge, helpedOf, idleOf, kParts, outlook, sharesOf, type BudgetRow } from "./managers";
import { matches, sorted } from "../../tables/table";
import { defaultTable, readTable, writeTable } from "../../tables/tablestate";

addTexts(texts, null);

/** A bill as the server tells it, with some rows changed. */
function bill(kwh: Partial<Record<(typeof kParts)[number], number | null>>, more: Record<string, Record<string, unknown>> = {}) {
  return billOf(kParts.map((part) => ({ part, kwh: kwh[part] ?? null, share: null, how: "measured", ...more[part] })));
}

const kMonth = { active: 60, reserved_idle: 15, system: 5, unallocated: 10, nodes: 90, other: 10, cooling: 16, unexplained: 4, meter: 120 };

test("the bars of a bill follow each other and end where the sum ends", () => {
  const { rows } = bill(kMonth);
  const row = (part: string) => rows.find((one) => one.part === part)!;
  const end = (part: string) => row(part).begin + row(part).width;
  const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 1e-9, `${a} ${b}`);
  near(row("active").begin, 0);
  near(end("active"), 50);
  near(row("reserved_idle").begin, end("active"));
  near(row("unallocated").begin, end("system"));
  near(end("unallocated"), end("nodes"));
  near(row("nodes").begin, 0);
  near(row("other").begin, end("nodes"));
  near(end("unexplained"), 100);
  near(end("meter"), 100);
});

test("a meter that shows less than is known leads backwards, and nothing leaves the picture", () => {
  const { rows } = bill({ ...kMonth, unexplained: -36, meter: 80 });
  const of = (part: string) => rows.find((one) => one.part === part)!;
  assert.ok(of("unexplained").begin < of("cooling").begin + of("cooling").width);
  assert.ok(Math.abs(of("unexplained").begin - (of("meter").begin + of("meter").width)) < 1e-9);
  for (const row of rows) assert.ok(row.begin >= 0 && row.width >= 0 && row.begin + row.width <= 100 + 1e-9, JSON.stringify(row));
  for (const kwh of [{}, { meter: 5 }, { unexplained: -5, meter: 0 }]) {
    for (const row of bill(kwh).rows) assert.ok(row.begin >= 0 && row.width >= 0 && row.begin + row.width <= 100 + 1e-9 && Number.isFinite(row.width), JSON.stringify(row));
  }
});

test("a bill has costs if all of it has one price", () => {
  const one = { period_start: 1, period_end: 2, kwh: 100, cost: 20, currency: "EUR" };
  const told = (bills: unknown[]) => bill(kMonth, { meter: { bills } });
  const single = told([one]);
  assert.equal(single.price, 0.2);
  assert.equal(single.currency, "EUR");
  assert.equal(single.rows[1]!.cost, 3);
  assert.equal(told([one, { ...one, kwh: 300, cost: 100 }]).price, 0.3);
  for (const bills of [[], [{ ...one, cost: null }], [one, { ...one, cost: null }], [one, { ...one, currency: "USD" }], [{ ...one, kwh: 0 }]]) {
    assert.equal(told(bills).price, null);
    assert.ok(told(bills).rows.every((row) => row.cost === null));
  }
});

test("of a bill, only what the page knows is taken, and missing is never 0", () => {
  const told = billOf([
    { part: "nodes", kwh: "88", how: "guessed", nodes: 3, days: [[1, 2, 3, 4, 5], [1, 2], "x", [1, 2, 3, 4, null]] },
    { part: "unexplained", kwh: null, hints: [{ kind: "<b>", kwh: 1 }, { kind: "psu_losses", kwh: 2 }, null] },
    { part: "__proto__", kwh: 5 },
  ]);
  assert.deepEqual(told.rows.map((row) => row.part), [...kParts]);
  assert.ok(told.rows.every((row) => row.kwh === null && row.how === null));
  assert.deepEqual(told.days, { times: [1], values: [[2], [3], [4], [5]] });
  assert.deepEqual(told.hints, [{ kind: "psu_losses", kwh: 2, hours: null }]);
  assert.equal(told.factor, null);
  assert.equal(bill(kMonth, { meter: { factor: 1.03 } }).factor, null, "a factor nobody asked for is not shown");
  assert.equal(bill(kMonth, { meter: { factor: 1.03, billed_kwh: 5 } }).factor, 1.03);
});

const kBudget: BudgetRow = {
  key: "0", project: "p", cluster: "", unit: "kwh", amount: 100, used: 40, share: 0.4, low: 80, high: 100, period: "2026", from: 1, to: 2, standing: "ok", passed: null,
};

test("the outlook of a budget compares the forecast with the amount", () => {
  assert.equal(outlook(kBudget), "below");
  assert.equal(outlook({ ...kBudget, high: 100.1 }), "may");
  assert.equal(outlook({ ...kBudget, low: 100, high: 101 }), "may");
  assert.equal(outlook({ ...kBudget, low: 100.1, high: 101 }), "will");
  assert.equal(outlook({ ...kBudget, low: null }), null);
  assert.equal(outlook({ ...kBudget, standing: "over" }), null);
  assert.deepEqual(gauge({ ...kBudget, low: 150, high: 200 }), { used: 20, low: 75, high: 100, limit: 50 });
  assert.deepEqual(gauge({ ...kBudget, used: null, low: null, high: null }), { used: 0, low: 0, high: 0, limit: 100 });
  assert.deepEqual(gauge({ ...kBudget, used: -5, low: null, high: null }).used, 0, "prices may be negative");
});

test("budgets are read as the server tells them", () => {
  const row = { project: "p", cluster_id: null, unit: "kgco2", amount: 1500, used: 1104, used_share: 0.736, forecast: [1420, 1580], period: "2026", from_ts: 1, to_ts: 2, state: "warn_0.5" };
  const [one] = budgetsOf([row]);
  assert.deepEqual(one, { key: "0", project: "p", cluster: "", unit: "kgco2", amount: 1500, used: 1104, share: 0.736, low: 1420, high: 1580, period: "2026", from: 1, to: 2, standing: "warn", passed: 0.5 });
  const standing = (state: unknown) => budgetsOf([{ ...row, state }])[0]!.standing;
  assert.deepEqual(["ok", "over", "ended", "unknown", "warn_x", "new", null].map(standing), ["ok", "over", "ended", "unknown", "unknown", "unknown", "unknown"]);
  assert.deepEqual(budgetsOf([{ ...row, unit: "joule" }, { ...row, amount: 0 }, {}]), []);
  assert.equal(budgetText(one!, 1104, "EUR"), "1.1 t CO2e");
  assert.equal(budgetText({ unit: "cost" }, 9000, "EUR"), "EUR 9,000.00");
  assert.equal(budgetText({ unit: "kwh" }, null, "EUR"), "–");
});

test("idle units and shares keep what is not known apart from 0", () => {
  const [unit] = idleOf([{ cluster_id: "c", uuid: "5", user: "u", project: "p", partition: "", since_ts: 7, idle_s: 3600, cpus: 4, gpus: 0, watts: null, kwh: null, exempt: null }]);
  assert.deepEqual(unit, { key: "c\n5", cluster: "c", uuid: "5", user: "u", project: "p", partition: "", since: 7, seconds: 3600, cpus: 4, gpus: 0, watts: null, kwh: null, cost: null, exempt: false });
  assert.equal(idleOf([{ exempt: "partition" }])[0]!.exempt, true);
  assert.equal(idleOf([{ uuid: "5", watts: 1 }, { uuid: "5", watts: 2 }, { uuid: "6" }]).length, 2, "two runs of one identifier are one row");
  assert.deepEqual(sharesOf([{ value: "p", units: 1, kwh: 2, measured_kwh: 0, idle_kwh: null, share: null, not_used_of_kwh: 2, not_used_kwh: 1, not_used_share: 0.5 }]), [
    { value: "p", units: 1, kwh: 2, measured: 0, idle: null, share: null, notUsedOf: 2, notUsed: 1, notUsedShare: 0.5 },
  ]);
});

test("what helped is sorted by energy, and what is not known is no 0", () => {
  const rows = helpedOf([{ project: "p", rule: "oom", runs: 9, kwh: null }, { project: "q", rule: "idle", runs: 1, kwh: -1 }, { project: "p", rule: "gpu-none", runs: 2, kwh: 3 }, { project: 5 }]);
  assert.deepEqual(rows.map((row) => [row.project, row.kwh]), [["p", 3], ["q", -1], ["p", null], ["", null]]);
  assert.equal(rows[3]!.runs, 0);
});

test("lists are sorted with what is not known last, and filtered by words", () => {
  const rows = [{ v: 2 }, { v: null }, { v: 10 }, { v: 1 }];
  const values = (descending: boolean) => sorted(rows, (row) => row.v, descending).map((row) => row.v);
  assert.deepEqual(values(true), [10, 2, 1, null]);
  assert.deepEqual(values(false), [1, 2, 10, null]);
  assert.deepEqual(sorted(["b", "a"], (text) => text, false), ["a", "b"]);
  assert.ok(matches("", []) && matches(" FLU hpc ", ["fluids", "hpc-a"]));
  assert.ok(!matches("fluids x", ["fluids"]));
});

test("a project name in a CSV file is text, not a formula", () => {
  assert.equal(csv(["project"], [["=1+1<img>"]]), "project\r\n'=1+1<img>\r\n");
});

test("the state of a table and of a bill keeps in the address", () => {
  const nasty = ["", "a b", "50%", "&q=x", "#/x", "é", "😀", "<b>", "+", "a/b"];
  for (const text of nasty) {
    const table = { ...defaultTable(), q: text, cluster: text, by: text, sort: text, view: "led" as const, descending: false, at: 100 };
    for (const route of [{ page: "idle", table }, { page: "budgets", table: { ...defaultTable(), q: text } }, { page: "bill", month: { year: 2026, month: 2 }, cluster: text }, { page: "bill", month: null, cluster: text }] as Route[]) {
      assert.deepEqual(read(new URL(`http://h/${write(route)}`).hash), route, write(route));
    }
  }
  assert.equal(write({ page: "idle", table: defaultTable() }), "#/idle");
  assert.equal(write({ page: "bill", month: null, cluster: "" }), "#/bill");
  for (const query of ["at=-1", "at=x", "at=1.5", "order=up", "view=root"]) assert.deepEqual(readTable(new URLSearchParams(query)), defaultTable(), query);
  assert.equal(writeTable({ ...defaultTable(), at: 20 }), "?at=20");
});

test("days are those of the server, whatever its zone is called", () => {
  const midnight = Date.UTC(2026, 9, 31, 23); // in Paris
  assert.equal(dayText(midnight, "Europe/Paris"), "1 Nov 2026");
  assert.equal(dayText(midnight, "UTC"), "31 Oct 2026");
  assert.equal(dayText(midnight, "Local"), "31 Oct 2026");
});

test("texts that come later are added to those of the language, in the order of English", () => {
  try {
    setLanguage("de", named(en, Object.values(en).map(() => "x")));
    assert.equal(t("app.bill"), "x");
    addTexts(texts, null);
    assert.equal(t("budget.none"), "No budget.", "in English if they could not be loaded");
    addTexts(texts, Object.values(german));
    assert.equal(t("budget.none"), "Kein Budget.");
    assert.equal(t("app.bill"), "x");
  } finally {
    setLanguage("en", en);
    addTexts(texts, null);
  }
});

test("rules that most often did not help come first, and what is not known is nothing", () => {
  const rows = feedbackOf([{ rule: "a", answers: 9, people: 5, false_share: 0.1 }, { rule: "b", answers: 6, people: 6, false_share: 0.5 }, { rule: 5 }, { rule: "c", answers: 7, people: 6, false_share: 0.5 }]);
  assert.deepEqual(rows.map((row) => [row.rule, row.answers, row.people, row.wrong]), [["c", 7, 6, 0.5], ["b", 6, 6, 0.5], ["a", 9, 5, 0.1], ["", 0, 0, 0]]);
});
