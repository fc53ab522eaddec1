import assert from "node:assert/strict";
import { test } from "node:test";

import { read, write, type Route } from "../address";
import { addTexts } from "../../text/i18n";
import en from "../../text/locales/unit.en.json";
import { differenceOf, kWhole, labelsOf, sinceStart, textsOf, type Field } from "./compare";

addTexts(en, null);

test("addresses of comparisons keep every name, and drop what is too much", () => {
  const units = [
    { cluster: "hpc-a", uuid: "48190", started: 1_767_225_600_000 },
    { cluster: "a/b &c", uuid: "x/y=?#%", started: null },
    { cluster: "", uuid: "7", started: 5 },
  ];
  for (const share of [false, true]) {
    const route: Route = { page: "compare", units, share };
    assert.deepEqual(read(write(route)), route);
  }
  assert.equal(write({ page: "compare", units: [], share: false }), "#/compare");
  assert.deepEqual(read("#/compare"), { page: "compare", units: [], share: false });
  const many = Array.from({ length: 9 }, (_, i) => `u=c/${i}`).join("&");
  assert.equal((read(`#/compare?${many}&u=c/1`) as { units: unknown[] }).units.length, 6);
  const twice = read("#/compare?u=c/1&u=c/1/&u=c&u=/&u=c/2/3/4&v=c/9&time=x");
  assert.deepEqual(twice, { page: "compare", units: [{ cluster: "c", uuid: "1", started: null }], share: false });
});

test("series begin at 0 of their run, in seconds or in hundredths", () => {
  const series = { name: "cpu", unit: "cores", points: [[10_000, 1], [20_000, 2], [30_000, 4]] as [number, number | null][] };
  assert.deepEqual(sinceStart(series, 10_000, 50_000, false), { times: [0, 10, 20], values: [1, 2, 4] });
  assert.deepEqual(sinceStart(series, 10_000, 50_000, true).times, [0, 25, 50]);
  assert.deepEqual(sinceStart(undefined, 1, 2, true), { times: [], values: [] });
  assert.equal(kWhole, 100);
});

test("runs of the same name are told apart", () => {
  const row = (name: string, uuid: string, started: number | null = null) => ({ name, uuid, started });
  assert.deepEqual(labelsOf([row("a", "1"), row("b", "2")]), ["a", "b"]);
  assert.deepEqual(labelsOf([row("a", "1"), row("a", "2")]), ["a 1", "a 2"]);
  const [one, two] = labelsOf([row("7", "7", Date.UTC(2031, 3, 5, 1)), row("7", "7", Date.UTC(2031, 3, 5, 2))]);
  assert.deepEqual([one, two], ["7, 01:00:00", "7, 02:00:00"]);
});

test("a row of a comparison has one unit, for its differences too", () => {
  const row = (field: Field, ...values: (number | null)[]) => values.map(textsOf(field, values, "EUR"));
  assert.deepEqual(row("kwh", 0.29, 0.0733, 0.000011), ["290 Wh", "73.3 Wh", "0.011 Wh"]);
  assert.deepEqual(row("kwh", 2, 0.0733, null), ["2 kWh", "0.073 kWh", "–"]);
  assert.deepEqual(row("grams", 16_300, 4.11), ["16.3 kg CO2e", "< 0.01 kg CO2e"]);
  assert.deepEqual(row("memory", 2 ** 34, 2 ** 29), ["16 GiB", "0.5 GiB"]);
  assert.deepEqual(row("peak", 2 ** 20, 1000), ["1 MiB", "< 0.01 MiB"]);
  assert.deepEqual(row("peak", 0, 12), ["0 B", "12 B"]);
  assert.deepEqual(row("cost", 1.5, 0.016), ["EUR 1.50", "EUR 0.02"]);
  const text = textsOf("kwh", [2, 2.0733]);
  assert.equal(differenceOf("kwh", 2, 2.0733, text)?.text, "+0.073 kWh, +3.7 %");
});

test("a difference has a sign, a share and a word where one is better", () => {
  const difference = (field: Field, base: number | string | null, value: number | string | null, currency?: string) => differenceOf(field, base, value, textsOf(field, [base, value], currency));
  assert.deepEqual(difference("kwh", 4, 3), { text: "−1 kWh, −25 %", word: "better" });
  assert.deepEqual(difference("kwh", 2, 3), { text: "+1 kWh, +50 %", word: "worse" });
  assert.deepEqual(difference("cpu", 20, 60.5), { text: "+40.5 points", word: "better" });
  assert.deepEqual(difference("cpus", 8, 4), { text: "−4, −50 %", word: null });
  assert.deepEqual(difference("unused", 0, 2), { text: "+2 kWh", word: "worse" }, "a part of zero is not known");
  assert.deepEqual(difference("cost", 1, 2, "EUR"), { text: "+EUR 1.00, +100 %", word: "worse" });
  for (const [base, value] of [[3, 3], [null, 3], [3, null], [3, 3.0001], ["FAILED", "COMPLETED"]] as const) {
    assert.equal(difference("kwh", base, value), null, `${base} ${value}`);
  }
  assert.equal(textsOf("peak", [2 ** 31])(2 ** 31), "2 GiB");
  assert.equal(textsOf("grams", [])(null), "–");
  assert.equal(textsOf("wall", [])(3661), "1 h 01 min");
});
