import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { defaultList } from "../data/liststate";
import { chips } from "../pages/jobs/filters";
import * as format from "./format";
import { bestLanguage, currentLanguage, setLanguage, t, type Table } from "./i18n";
import de from "./locales/de.json";
import en from "./locales/en.json";
import fr from "./locales/fr.json";
import alertsDe from "./locales/alerts.de.json";
import alertsEn from "./locales/alerts.en.json";
import alertsFr from "./locales/alerts.fr.json";
import fleetDe from "./locales/fleet.de.json";
import fleetEn from "./locales/fleet.en.json";
import fleetFr from "./locales/fleet.fr.json";
import helpDe from "./locales/help.de.json";
import helpEn from "./locales/help.en.json";
import helpFr from "./locales/help.fr.json";
import jobsDe from "./locales/jobs.de.json";
import jobsEn from "./locales/jobs.en.json";
import jobsFr from "./locales/jobs.fr.json";
import managersDe from "./locales/managers.de.json";
import managersEn from "./locales/managers.en.json";
import managersFr from "./locales/managers.fr.json";
import paletteDe from "./locales/palette.de.json";
import paletteEn from "./locales/palette.en.json";
import paletteFr from "./locales/palette.fr.json";
import tokensDe from "./locales/tokens.de.json";
import tokensEn from "./locales/tokens.en.json";
import tokensFr from "./locales/tokens.fr.json";
import unitDe from "./locales/unit.de.json";
import unitEn from "./locales/unit.en.json";
import unitFr from "./locales/unit.fr.json";

const tables: Record<string, Table> = {
  en: { ...en, ...alertsEn, ...fleetEn, ...jobsEn, ...managersEn, ...paletteEn, ...tokensEn, ...unitEn },
  de: { ...de, ...alertsDe, ...fleetDe, ...jobsDe, ...managersDe, ...paletteDe, ...tokensDe, ...unitDe },
  fr: { ...fr, ...alertsFr, ...fleetFr, ...jobsFr, ...managersFr, ...paletteFr, ...tokensFr, ...unitFr },
};
const source: Table = tables.en!;
const placeholders = (text: string) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort();
const forms = (entry: Table[string]) => (typeof entry === "string" ? [entry] : Object.values(entry));

test("every language has every text, with the same values in it", () => {
  for (const [name, table] of Object.entries(tables)) {
    assert.deepEqual(Object.keys(table).sort(), Object.keys(source).sort(), name);
    for (const [key, entry] of Object.entries(table)) {
      const english = forms(source[key]!).at(-1)!;
      for (const text of forms(entry)) {
        assert.ok(text.trim() !== "", `${name} ${key}`);
        // "The newest unit" needs no number; everything else keeps its values.
        const missing = placeholders(english).filter((value) => !text.includes(value) && value !== "{n}");
        assert.deepEqual(missing, [], `${name} ${key}`);
        assert.deepEqual(placeholders(text).filter((value) => !placeholders(english).includes(value)), [], `${name} ${key}`);
      }
      assert.equal(typeof entry, typeof source[key], `${name} ${key}: plural`);
      if (typeof entry !== "string") {
        const wanted = new Intl.PluralRules(name).resolvedOptions().pluralCategories.filter((rule) => rule !== "many");
        assert.deepEqual(Object.keys(entry).sort(), [...wanted].sort(), `${name} ${key}`);
      }
    }
  }
});

test("no text is in two files", () => {
  assert.deepEqual([...Object.keys(managersEn), ...Object.keys(fleetEn), ...Object.keys(jobsEn), ...Object.keys(alertsEn), ...Object.keys(paletteEn), ...Object.keys(tokensEn), ...Object.keys(unitEn)].filter((key) => key in en), []);
});

test("the help says the same in every language", () => {
  const keys = Object.keys(helpEn);
  for (const table of [helpDe, helpFr]) assert.deepEqual(Object.keys(table), keys);
  // The figures of the examples are worked out: shares of idle and active power.
  assert.equal((150 * 16) / 64 + (250 * 8) / 32, 100);
  for (const table of [helpEn, helpDe, helpFr]) {
    for (const figure of ["150 W · 16 / 64 + 250 W · 8 / 32 = 100 W"]) assert.ok(table.energyExample.includes(figure));
    assert.match(table.unusedExample, /= 37[.,]5 W/);
  }
});

test("every text is used, and nothing else is asked for", () => {
  const sources = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(svelte|ts)$/.test(name) && !name.endsWith(".test.ts"))
    .map((name) => readFileSync(`src/${name}`, "utf8"))
    .join("\n");
  const literal = [...sources.matchAll(/"([\w]+(?:\.[\w]+)*)"/g)].map((match) => match[1]!);
  const families = [...sources.matchAll(/t\(`(\w+)\.\$\{/g)].map((match) => match[1]!);
  const used = new Set(literal);
  const unused = Object.keys(source).filter((key) => {
    const [plain = "", kind] = key.split("@");
    return (!used.has(plain) && !families.includes(plain.split(".")[0]!)) || (kind !== undefined && (!["job", "vm", "pod"].includes(kind) || !(plain in source)));
  });
  assert.deepEqual(unused, []);
});

test("plurals and numbers follow the language", () => {
  assert.equal(t("n.units", { n: 1 }), "1 unit");
  assert.equal(t("n.units", { n: 1204 }), "1,204 units");
  assert.equal(t("jobs.unloaded", { problem: "{n} <b>" }), "The units could not be loaded: {n} <b>.");
  try {
    setLanguage("de", de);
    assert.equal(currentLanguage(), "de");
    assert.equal(t("n.units", { n: 1 }), "1 Einheit");
    assert.equal(t("n.units", { n: 1204 }), "1.204 Einheiten");
    assert.equal(format.energy(1234.5), "1,23 MWh");
    assert.equal(format.moment(new Date(2031, 3, 4, 23, 59).getTime(), new Date(2031, 3, 5).getTime()), "4. Apr., 23:59");
    const list = { ...defaultList(), ranges: { ...defaultList().ranges, cpu: { least: null, most: 20 } } };
    assert.deepEqual(chips(list).map((chip) => chip.text), ["CPU-Nutzung höchstens 20 %"]);
    setLanguage("fr", fr);
    assert.equal(t("n.units", { n: 0 }), "0 unité", "French counts nothing as one");
    assert.equal(t("n.units", { n: 2 }), "2 unités");
  } finally {
    setLanguage("en", en);
  }
});

test("the language is the first wish that the page has", () => {
  assert.equal(bestLanguage(["pt-BR", "de-AT", "fr"]), "de");
  assert.equal(bestLanguage(["FR"]), "fr");
  assert.equal(bestLanguage(["zz", "__proto__", "constructor"]), "en");
  assert.equal(bestLanguage([]), "en");
});
