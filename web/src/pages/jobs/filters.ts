// What a list is narrowed to, in words.

import { changed, kChoices, kRanges, type ChoiceKey, type ListState, type Range, type RangeKey } from "../../data/liststate";
import type { Period } from "../../data/period";
import * as format from "../../text/format";
import { isKey, t, type Key } from "../../text/i18n";
import { stateWords } from "../../data/units";

export const kPeriods: readonly { value: string; period: Period; text: () => string }[] = [
  { value: "1", period: { kind: "hours", hours: 1 }, text: () => t("period.1") },
  { value: "24", period: { kind: "hours", hours: 24 }, text: () => t("period.24") },
  { value: "72", period: { kind: "hours", hours: 72 }, text: () => t("period.72") },
  { value: "168", period: { kind: "hours", hours: 168 }, text: () => t("period.168") },
  { value: "720", period: { kind: "hours", hours: 720 }, text: () => t("period.720") },
  { value: "month", period: { kind: "month", back: 0 }, text: () => t("period.month") },
  { value: "last", period: { kind: "month", back: 1 }, text: () => t("period.last") },
  { value: "all", period: { kind: "all" }, text: () => t("period.all") },
];

/** The choice that stands for a period. */
export function periodValue(period: Period): string {
  const same = (a: Period) => JSON.stringify(a) === JSON.stringify(period);
  return kPeriods.find((choice) => same(choice.period))?.value ?? (period.kind === "hours" ? "hours" : "custom");
}

export function periodText(period: Period): string {
  const known = kPeriods.find((choice) => choice.value === periodValue(period));
  if (known) return known.text();
  if (period.kind === "hours") return t("period.hours", { n: period.hours });
  if (period.kind !== "custom") return "";
  const hours = (seconds: number) => format.moment(seconds * 1000, 0);
  return period.to - period.from < 23 * 3600
    ? t("period.days", { first: hours(period.from), last: hours(period.to) })
    : t("period.days", { first: dayOf(period.from), last: dayOf(period.to - 1) });
}

/** Days of the browser's zone, as a date field has them. */
export function dayOf(seconds: number): string {
  const date = new Date(seconds * 1000);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Both days included; null if either is not a day, or if they are in the wrong order. */
export function customPeriod(first: string, last: string): Period | null {
  const parts = (text: string) => /^(\d{4})-(\d\d)-(\d\d)$/.exec(text)?.slice(1).map(Number);
  const a = parts(first);
  const b = parts(last);
  if (!a || !b) return null;
  const from = new Date(a[0]!, a[1]! - 1, a[2]!).getTime() / 1000;
  const to = new Date(b[0]!, b[1]! - 1, b[2]! + 1).getTime() / 1000;
  return from > 0 && from < to ? { kind: "custom", from, to } : null;
}

export const choiceName = (key: ChoiceKey): string => t(`choice.${key}`);
export const rangeName = (key: RangeKey): string => t(`range.${key}`);
export const kRangeUnits: Record<RangeKey, { unit: string; factor: number }> = {
  cpu: { unit: "%", factor: 1 },
  mem: { unit: "%", factor: 1 },
  gpu: { unit: "%", factor: 1 },
  kwh: { unit: "kWh", factor: 1 },
  unused: { unit: "kWh", factor: 1 },
  not_used: { unit: "kWh", factor: 1 },
  wall: { unit: "h", factor: 3600 }, // the address has seconds
};

export function rangeText(key: RangeKey, { least, most }: Range): string {
  const { unit, factor } = kRangeUnits[key];
  const name = rangeName(key);
  const part = (value: number) => `${format.number3(value / factor)} ${unit}`;
  if (least !== null && most !== null) return t("range.between", { name, least: part(least), most: part(most) });
  return least !== null ? t("range.least", { name, least: part(least) }) : t("range.most", { name, most: part(most!) });
}

export function choiceText(key: ChoiceKey, value: string): string {
  if (key === "advice") return isKey(`rule.${value}`) ? t(`rule.${value}` as Key) : value; // a rule of the site has its identifier
  return key === "state" ? stateWords(value) : value;
}

/** Two rules in words, and how many more there are; the page of the unit has all of them. */
export function reasonsOf(rules: readonly string[]): string {
  const words = rules.slice(0, 2).map((rule) => choiceText("advice", rule)).join("; ");
  return rules.length > 2 ? `${words}; ${t("verdict.more", { n: rules.length - 2 })}` : words;
}

export interface Chip {
  text: string;
  without: ListState; // the list without this filter
}

export function chips(list: ListState): Chip[] {
  const found: Chip[] = [];
  for (const key of kChoices) {
    for (const value of list.choices[key]) {
      const rest = list.choices[key].filter((other) => other !== value);
      found.push({ text: `${choiceName(key)}: ${choiceText(key, value)}`, without: changed(list, { choices: { ...list.choices, [key]: rest } }) });
    }
  }
  for (const key of kRanges) {
    const range = list.ranges[key];
    if (range.least === null && range.most === null) continue;
    found.push({ text: rangeText(key, range), without: changed(list, { ranges: { ...list.ranges, [key]: { least: null, most: null } } }) });
  }
  return found;
}

export const hasRanges = ({ ranges }: ListState): boolean => kRanges.some((key) => ranges[key].least !== null || ranges[key].most !== null);

/** The number in a field, in the unit of the address; null if it is empty or no number. */
export function fieldNumber(key: RangeKey, text: string): number | null {
  const number = Number(text.trim().replace(",", "."));
  return text.trim() !== "" && Number.isFinite(number) && number >= 0 ? number * kRangeUnits[key].factor : null;
}
