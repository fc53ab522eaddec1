import assert from "node:assert/strict";
import { test } from "node:test";

import type { Usage } from "../../data/usage";
import { addTexts } from "../../text/i18n";
import en from "../../text/locales/managers.en.json";
import { begun, daysOfYear, emittedIn, marketSources, monthText, yearBefore } from "./year";

addTexts(en, null);
const usage = (days: number): Usage => ({ groups: [], times: [], values: {}, totals: {}, compared: { days, coverage: 1, energy_coverage: 1, now: {}, before: {} } });

test("a year is from noon of its first day to noon of its last", () => {
  const { from, to } = daysOfYear(2026);
  assert.equal(new Date(1000 * from).toString().slice(0, 21), "Thu Jan 01 2026 12:00");
  assert.equal(new Date(1000 * to).toString().slice(0, 21), "Thu Dec 31 2026 12:00");
});

test("months to come have no bar", () => {
  const times = Array.from({ length: 12 }, (_, i) => new Date(2026, i, 1).getTime());
  assert.equal(begun(times, new Date(2026, 0, 1).getTime()), 1);
  assert.equal(begun(times, new Date(2026, 10, 28).getTime()), 11);
  assert.equal(begun(times, new Date(2027, 3, 1).getTime()), 12);
  assert.equal(begun([], 0), 0);
});

test("a year that has not ended is compared with the same days", () => {
  assert.equal(yearBefore(2026, usage(40)), "on the first 40 days of 2025");
  assert.equal(yearBefore(2026, usage(1)), "on the first day of 2025");
  assert.equal(yearBefore(2026, usage(365)), "2025");
  assert.equal(yearBefore(2024, usage(365)), "on the first 365 days of 2023"); // a leap year
});

test("emissions of a year are those of its months, and say of how many", () => {
  const months: Usage = {
    ...usage(365),
    values: { kwh: [[100, 200, null, 0, 50, 0]], grams: [[5000, 9000, null, 0, 2000, 0]], grams_of_kwh: [[100, 180, 0, 0, 50, 0]], market_grams: [[1000, 0, null, 0, null, 0]], market_of_kwh: [[100, 200, 0, 0, 0, 0]] },
  };
  const [location, market] = emittedIn(months, 5);
  assert.deepEqual(location, { kind: "location", grams: 16_000, months: 3, share: 330 / 350 });
  assert.deepEqual(market, { kind: "market", grams: 1000, months: 3, share: 300 / 350 });
  assert.deepEqual(emittedIn(months, 1)[1], { kind: "market", grams: 1000, months: 1, share: 1 });
  const unknown = emittedIn({ ...months, values: { kwh: [[100]], market_grams: [[null]], market_of_kwh: [[0]] } }, 1);
  assert.deepEqual(unknown, [{ kind: "location", grams: null, months: 0, share: 0 }, { kind: "market", grams: null, months: 0, share: 0 }]);
  assert.equal(emittedIn({ ...months, values: { kwh: [[null]] } }, 1)[1]!.share, null);
});

test("market-based factors are named with the energy that they are for, the most first", () => {
  const market = [{ bills: false, source: "hydro, nos. 1 to 9", kwh: 2.5 }, { bills: true, source: "", kwh: 40 }];
  assert.equal(marketSources({ ...usage(365), market }), "imported bills (40 kWh); hydro, nos. 1 to 9 (2.5 kWh)");
  assert.equal(marketSources({ ...usage(365), market: [] }), "");
  assert.equal(marketSources(usage(365)), "", "an older server");
});

test("months have short names at bars, and long ones where they are read", () => {
  const ms = new Date(2026, 4, 1).getTime();
  assert.equal(monthText(ms, false), "May");
  assert.equal(monthText(ms, true), "May 2026");
});
