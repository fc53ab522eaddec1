// The languages of the page. English is part of it; others are loaded alone. What the server and the resource manager say stays as it is.

import { setLocale } from "./format";
import type { Kind } from "./kinds";
import en from "./locales/en.json";
import type alerts from "./locales/alerts.en.json";
import type fleet from "./locales/fleet.en.json";
import type jobs from "./locales/jobs.en.json";
import type managers from "./locales/managers.en.json";
import type palette from "./locales/palette.en.json";
import type tokens from "./locales/tokens.en.json";
import type unit from "./locales/unit.en.json";

/** A key with "@job" is what its text is where units are jobs. */
export type Key = Exclude<keyof typeof en | keyof typeof alerts | keyof typeof fleet | keyof typeof jobs | keyof typeof managers | keyof typeof palette | keyof typeof tokens | keyof typeof unit, `${string}@${string}`>;
/** Forms by plural rule, chosen by the value n. */
export type Entry = string | Partial<Record<Intl.LDMLPluralRule, string>>;
export type Table = Record<string, Entry>;

/** Languages in their own words, and how their numbers and dates look. */
export const kLanguages = { en: "English", de: "Deutsch", fr: "Français" } as const;
export type Language = keyof typeof kLanguages;
const kLocales: Record<Language, string> = { en: "en-GB", de: "de-DE", fr: "fr-FR" };
const kStorageKey = "ceems.language";

let english: Table = en;
let table: Table = en;
let language: Language = "en";
let units: Kind = "unit";
let rules = new Intl.PluralRules("en");
let numbers = new Intl.NumberFormat("en-GB");

/** The text of a key. {name} stands for a value; a number is written as the language does. `kind`: what the unit is that it is about, if it
 * is one. */
export function t(key: Key, values: Record<string, string | number> = {}, kind: Kind = units): string {
  const entry = table[`${key}@${kind}`] ?? table[key] ?? english[key]!;
  const text = typeof entry === "string" ? entry : (entry[rules.select(Number(values.n))] ?? entry.other ?? "");
  if (!text.includes("{")) return text;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? numbers.format(value) : value;
  });
}

/** Whether there is a text for it. The build adds one for each rule that the server carries: "rule.gpu-low" (rules.mjs). */
export function isKey(key: string): boolean {
  return Object.hasOwn(english, key);
}

/** What units are called where several are meant. */
export function nameUnits(kind: Kind): void {
  units = kind;
}

export function currentLanguage(): Language {
  return language;
}

export function isLanguage(text: string | null): text is Language {
  return text !== null && Object.hasOwn(kLanguages, text);
}

/** The first wish that the page can fulfil; wishes are names of languages such as "de-AT". */
export function bestLanguage(wishes: readonly string[]): Language {
  for (const wish of wishes) {
    const short = wish.toLowerCase().split("-")[0] ?? "";
    if (isLanguage(short)) return short;
  }
  return "en";
}

export function chosenLanguage(): Language {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem(kStorageKey);
  } catch {
    // The browser has no storage for this page.
  }
  return isLanguage(kept) ? kept : bestLanguage(navigator.languages);
}

export function keepLanguage(chosen: Language): void {
  try {
    localStorage.setItem(kStorageKey, chosen);
  } catch {
    // It holds until the page is loaded again.
  }
}

export function setLanguage(chosen: Language, texts: Table): void {
  table = texts;
  language = chosen;
  rules = new Intl.PluralRules(chosen);
  numbers = new Intl.NumberFormat(kLocales[chosen]);
  setLocale(kLocales[chosen]);
}

/** The texts of a language by their keys. They are loaded as a list in the order of English (vite.config.ts). */
export function named<T extends object>(more: T, texts: object): T {
  const values = Object.values(texts) as unknown[];
  return Object.fromEntries(Object.keys(more).map((key, i) => [key, values[i]])) as T;
}

/** Texts of pages that are loaded when they are needed: in English, and as they were loaded in the language of the page. */
export function addTexts(more: Table, texts: object | null): void {
  const same = table === english;
  english = Object.assign(english === en ? { ...en } : english, more); // to copy hundreds of texts for each part takes its time
  table = same && texts === null ? english : { ...table, ...(texts === null ? more : named(more, texts)) };
}

/** Loads a language. The page is in English if that fails. */
export async function loadLanguage(chosen: Language): Promise<void> {
  try {
    if (chosen === "de") setLanguage("de", named(en, (await import("./locales/de.json")).default));
    if (chosen === "fr") setLanguage("fr", named(en, (await import("./locales/fr.json")).default));
  } catch {
    // The file belongs to another version of the page.
  }
}
