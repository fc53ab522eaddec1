import assert from "node:assert/strict";
import { test } from "node:test";

import { changed, defaultList, kChoices, kRanges, kSortKeys, type ListState } from "../data/liststate";
import { defaultOverview } from "./overview/overviewstate";
import { kGroupings } from "../data/usage";
import { read, unitAddress, write, type Route } from "./address";
import { windowOf } from "../data/period";

// A fixed sequence, so that a failure can be repeated.
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const kNasty = ["", "a b", "50%", "&q=x", "#/unit", "?", "é", "日本", "😀", "<b>", "+", "=", "..", "%zz", "\n", "\u0000", "job[1-5]", "a/b", "\u202e"];

function randomList(random: () => number): ListState {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const text = () => Array.from({ length: Math.floor(random() * 4) }, () => pick(kNasty)).join("");
  const number = () => pick([0, 1, 20, 99.5, 1e-7, 1e21, 3600, Math.round(random() * 1e6) / 1000]);
  const list = defaultList();
  list.q = text();
  list.show = pick(["all", "running", "ended"] as const);
  list.period = pick([
    { kind: "hours", hours: pick([1, 24, 168, 720, 99999]) } as const,
    { kind: "month", back: pick([0, 1]) } as const,
    { kind: "all" } as const,
    { kind: "custom", from: 1 + Math.floor(random() * 1e9), to: 2e9 } as const,
  ]);
  list.view = pick([null, "own", "led", "mine", "all"] as const);
  for (const key of kChoices) list.choices[key] = [...new Set([text(), text()].filter(Boolean))];
  for (const key of kRanges) list.ranges[key] = { least: pick([null, number()]), most: pick([null, number()]) };
  list.sort = pick(kSortKeys);
  list.descending = random() < 0.5;
  list.cursor = pick(["", "AQOwbfgABWhwYy1hAAQ3MDAxABgy", "a+/="]);
  list.at = list.cursor === "" ? 0 : Math.floor(random() * 5000);
  return list;
}

test("what is written to the address is read again, whatever it is", () => {
  const random = generator(7);
  for (let i = 0; i < 3000; ++i) {
    const route: Route = { page: "jobs", list: randomList(random) };
    const address = write(route);
    assert.match(address, /^#[\x21-\x7e]*$/);
    assert.deepEqual(read(address), route, address);
    // Browsers give the fragment back as it was written.
    assert.deepEqual(read(new URL(`http://h/ui/${address}`).hash), route, address);
  }
});

test("the other pages keep their state, too", () => {
  const routes: Route[] = [
    { page: "help", at: null },
    { page: "help", at: "profiles" },
    { page: "tokens" },
    { page: "card", cluster: "", uuid: null },
    { page: "card", cluster: "a/b", uuid: "50%/é#?" },
    { page: "year", year: null, by: "project" },
    { page: "year", year: 2025, by: "user" },
    { page: "reports", kind: "year", period: null, cluster: "" },
    { page: "reports", kind: "green-disc", period: "2026", cluster: "a b&kind=<" },
    { page: "reports", kind: "month", period: "2026-11", cluster: "" },
    { page: "projects", month: null },
    { page: "projects", month: { year: 2026, month: 1 } },
    { page: "user", name: "a/b ?#&%", month: { year: 2026, month: 12 } },
  ];
  for (const name of kNasty.filter(Boolean)) routes.push({ page: "project", cluster: name, name, month: null }, { page: "project", cluster: "", name, month: { year: 9999, month: 9 } });
  for (const view of [null, "own", "all"] as const) {
    for (const period of [{ kind: "hours", hours: 24 }, { kind: "hours", hours: 168 }, { kind: "month", back: 0 }, { kind: "month", back: 1 }, { kind: "custom", from: 1, to: 2 }, { kind: "all" }] as const) {
      for (const by of kGroupings) routes.push({ page: "overview", overview: { view, period, by } });
    }
  }
  for (const route of routes) assert.deepEqual(read(new URL(`http://h/${write(route)}`).hash), route, write(route));
  for (const month of ["2026-13", "2026-0", "x", "0000-01", "2026-1", ""]) assert.deepEqual(read(`#/projects?month=${month}`), { page: "projects", month: null });
});

test("defaults are left out", () => {
  assert.equal(write({ page: "jobs", list: defaultList() }), "#/jobs");
  assert.deepEqual(read("#/jobs"), { page: "jobs", list: defaultList() });
  assert.deepEqual(read("#/units"), { page: "jobs", list: defaultList() });
  assert.deepEqual(read(""), { page: "overview", overview: defaultOverview() });
  assert.deepEqual(read("#/"), { page: "overview", overview: defaultOverview() });
  assert.equal(write({ page: "overview", overview: defaultOverview() }), "#/");
  assert.equal(write({ page: "jobs", list: { ...defaultList(), sort: "kwh" } }), "#/jobs?sort=kwh");
  assert.equal(write({ page: "jobs", list: { ...defaultList(), sort: "kwh", descending: false } }), "#/jobs?sort=kwh&order=asc");
  const list = { ...defaultList(), ranges: { ...defaultList().ranges, cpu: { least: null, most: 20 } } };
  assert.equal(write({ page: "jobs", list }), "#/jobs?cpu=..20");
});

test("what an address should not hold is ignored", () => {
  for (const query of ["show=x", "period=0h", "period=-1h", "period=1e9h", "view=root", "sort=password", "order=up", "cpu=x..y", "cpu=..", "cpu=-1..", "cpu=Infinity..",
    "from=5", "from=9&to=3", "from=1.5&to=3", "at=100", "state=", "nothing=1", "%"]) {
    assert.deepEqual(read(`#/jobs?${query}`), { page: "jobs", list: defaultList() }, query);
  }
  const many = Array.from({ length: 100 }, (_, i) => `user=u${i}`).join("&");
  const route = read(`#/jobs?${many}&user=u1`);
  assert.equal(route.page === "jobs" && route.list.choices.user.length, 20);
});

test("addresses of units survive any identifier", () => {
  const address = unitAddress("a/b", "50%/é#?", 123);
  assert.deepEqual(read(address), { page: "unit", cluster: "a/b", uuid: "50%/é#?", started: 123, span: null });
  assert.deepEqual(read(unitAddress("lsf", "6[1]", 5)), { page: "unit", cluster: "lsf", uuid: "6[1]", started: 5, span: null });
  assert.deepEqual(read(unitAddress("pbs", "12[3].srv|*", null)), { page: "unit", cluster: "pbs", uuid: "12[3].srv|*", started: null, span: null });
  assert.deepEqual(read("#/unit/c/u"), { page: "unit", cluster: "c", uuid: "u", started: null, span: null });
  assert.deepEqual(read("#/unit/c/%E0%A4%A"), { page: "unit", cluster: "c", uuid: "%E0%A4%A", started: null, span: null });
  const zoomed: Route = { page: "unit", cluster: "c", uuid: "u?t=1..2", started: 5, span: { from: 1767139200000, to: 1767139260000 } };
  assert.deepEqual(read(write(zoomed)), zoomed);
  for (const span of ["5..1", "x..y", "1..", "..", "1"]) assert.deepEqual(read(`#/unit/c/u?t=${span}`), { page: "unit", cluster: "c", uuid: "u", started: null, span: null });
  assert.deepEqual(read("#/nothing"), { page: "unknown" });
  assert.equal(unitAddress("c", "\ud800x", null), "#/unit/c/%EF%BF%BDx");
});

test("a change leads to the first page", () => {
  const list = { ...defaultList(), cursor: "x", at: 100 };
  assert.deepEqual(changed(list, { q: "a" }), { ...defaultList(), q: "a" });
});

test("the same window is asked for until the next quarter of an hour", () => {
  const now = Date.UTC(2031, 3, 5, 12, 1, 0);
  const day = { kind: "hours", hours: 24 } as const;
  assert.deepEqual(windowOf(day, now), { from: Date.UTC(2031, 3, 4, 12) / 1000, to: Date.UTC(2031, 3, 5, 12, 15) / 1000 });
  assert.deepEqual(windowOf(day, now + 12 * 60_000), windowOf(day, now));
  // Less than a minute ahead would be too little for a clock that differs.
  assert.equal(windowOf(day, now + 13.5 * 60_000).to, Date.UTC(2031, 3, 5, 12, 30) / 1000);
  assert.deepEqual(windowOf({ kind: "custom", from: 5, to: 7 }, now), { from: 5, to: 7 });
  assert.deepEqual(windowOf({ kind: "month", back: 1 }, now), { from: Date.UTC(2031, 2, 1) / 1000, to: Date.UTC(2031, 3, 1) / 1000 });
  assert.deepEqual(windowOf({ kind: "month", back: 0 }, now).from, Date.UTC(2031, 3, 1) / 1000);
  assert.deepEqual(windowOf({ kind: "month", back: 1 }, Date.UTC(2031, 0, 5)), { from: Date.UTC(2030, 11, 1) / 1000, to: Date.UTC(2031, 0, 1) / 1000 });
});
