import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as format from "./format";

test("numbers keep three digits and never an exponent", () => {
  assert.equal(format.number3(0), "0");
  assert.equal(format.number3(0.012345), "0.0123");
  assert.equal(format.number3(12.345), "12.3");
  assert.equal(format.number3(999.6), "1,000");
  assert.equal(format.number3(1234567), "1,234,567");
  assert.equal(format.number3(Number.NaN), "–");
  assert.equal(format.number3(Number.POSITIVE_INFINITY), "–");
});

test("energy is joules below one watt hour and scales above", () => {
  assert.equal(format.energy(0), "0 J");
  assert.equal(format.energy(41 / 3.6e6), "41 J");
  assert.equal(format.energy(0.25 / 3.6e6), "250 mJ");
  assert.equal(format.energy(0.0005), "1,800 J");
  assert.equal(format.energy(0.001), "1 Wh");
  assert.equal(format.energy(0.02504), "25 Wh");
  assert.equal(format.energy(0.2504), "0.25 kWh");
  assert.equal(format.energy(0.99996), "1 kWh");
  assert.equal(format.energy(1234.5), "1.23 MWh");
  assert.equal(format.energy(2.5e6), "2.5 GWh");
});

test("a column has the unit that its largest value calls for", () => {
  const column = (...values: (number | null)[]) => values.map((value) => (value === null ? null : format.energies(values)(value)));
  assert.deepEqual(column(0.25, null, 0.0154, 41 / 3.6e6, 0), ["250 Wh", null, "15.4 Wh", "0.011 Wh", "0 Wh"]);
  assert.deepEqual(column(1, 0.25, 0.0154, 0.00066), ["1 kWh", "0.25 kWh", "0.015 kWh", "< 0.01 kWh"]);
  assert.deepEqual(column(0.01, 0.00999), ["10 Wh", "9.99 Wh"]);
  assert.deepEqual(column(0.0999, 0.000002), ["99.9 Wh", "< 0.01 Wh"]);
  assert.deepEqual(column(9999, 12.34, 0.1), ["9,999 kWh", "12.3 kWh", "0.1 kWh"]);
  assert.deepEqual(column(118_000, -4012, 3), ["118 MWh", "−4.01 MWh", "< 0.01 MWh"]);
  assert.deepEqual(column(2.5e7, 1e6), ["25 GWh", "1 GWh"]);
  assert.deepEqual(column(null), [null]);
  assert.equal(format.energies([])(0), "0 Wh");
  assert.equal(format.energies([5])(99_999), "99,999 kWh");
  assert.equal(format.energies([5])(123_456), "123 MWh", "the sum of many is not written with many digits");
  assert.equal(format.energies([1])(Number.NaN), "–");
  assert.equal(format.masses([14, 0.00064])(0.00064), "< 0.01 g");
  assert.equal(format.masses([14, 0.859])(0.859), "0.859 g");
  assert.equal(format.masses([12_000])(980), "0.98 kg");
  assert.equal(format.masses([0.05])(0.00233), "2.33 mg");
  format.setLocale("de-DE");
  assert.equal(format.energies([1])(0.001), "< 0,01 kWh");
  format.setLocale("en-GB");
});

test("emissions go from micrograms to tonnes", () => {
  assert.equal(format.emissions(0), "0 g");
  assert.equal(format.emissions(0.000638), "638 µg");
  assert.equal(format.emissions(0.2874), "287 mg");
  assert.equal(format.emissions(999.7), "1 kg");
  assert.equal(format.emissions(3.21e6), "3.21 t");
});

test("bytes are binary and reach the next unit exactly", () => {
  assert.equal(format.bytes(0), "0 B");
  assert.equal(format.bytes(1000), "1,000 B");
  assert.equal(format.bytes(1024), "1 KiB");
  assert.equal(format.bytes(2 ** 30), "1 GiB");
  assert.equal(format.bytes(300 * 2 ** 20), "300 MiB");
  assert.equal(format.bytes(1.5 * 2 ** 40), "1.5 TiB");
});

test("percentages tell little from nothing", () => {
  assert.equal(format.percent(0), "0 %");
  assert.equal(format.percent(0.04), "< 0.1 %");
  assert.equal(format.percent(3.14), "3.1 %");
  assert.equal(format.percent(98.4), "98 %");
  assert.equal(format.percent(150), "150 %");
});

test("amounts are written as by the server", () => {
  const table = JSON.parse(readFileSync("../tests/formats.json", "utf8")) as { what: "energy" | "emissions" | "bytes" | "percent" | "money" | "duration"; value: number; currency?: string; en: string; de: string; fr: string }[];
  for (const one of table) {
    for (const [language, locale] of [["en", "en-GB"], ["de", "de-DE"], ["fr", "fr-FR"]] as const) {
      format.setLocale(locale);
      const text = one.what === "money" ? format.money(one.value, one.currency ?? "") : format[one.what](one.value);
      assert.equal(text, one[language], `${one.what} ${one.value} ${language}`);
    }
  }
  format.setLocale("en-GB");
});

test("durations show their two largest parts", () => {
  assert.equal(format.duration(0), "0 s");
  assert.equal(format.duration(4.86), "4.9 s");
  assert.equal(format.duration(59.6), "1 min");
  assert.equal(format.duration(125), "2 min 05 s");
  assert.equal(format.duration(7260), "2 h 01 min");
  assert.equal(format.duration(3 * 86400 + 3600), "3 d 1 h");
  assert.equal(format.duration(-1), "–");
  format.setLocale("fr-FR");
  assert.equal(format.duration(3 * 86400 + 3600), "3 j 1 h");
  format.setLocale("en-GB");
});

test("moments leave out today's date and this year", () => {
  const at = (year: number, month: number, day: number, hour = 12, minute = 0, second = 0) => new Date(year, month, day, hour, minute, second).getTime();
  const now = at(2031, 3, 5);
  assert.equal(format.moment(at(2031, 3, 5, 6, 7, 8), now), "06:07:08");
  assert.equal(format.moment(at(2031, 3, 4, 23, 59), now), "4 Apr, 23:59");
  assert.equal(format.moment(at(2030, 3, 4, 23, 59), now), "4 Apr 2030, 23:59");
  assert.equal(format.moment(at(2030, 3, 5), now), "5 Apr 2030, 12:00");
  assert.equal(format.moment(Number.NaN, now), "–");
});

test("counts agree in number", () => {
  assert.equal(format.count(1, "unit"), "1 unit");
  assert.equal(format.count(1204, "unit"), "1,204 units");
  assert.equal(format.whole(1204), "1,204");
});
