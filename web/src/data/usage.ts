// Sums by hour, day or month and by group: docs/api/lists.md, usage/series.

import type { Month, Period } from "./period";
import { ApiError, pathOf, scopeOf, type Api, type Query, type View } from "./api";
import * as format from "../text/format";
import { t } from "../text/i18n";

export const kFields = ["kwh", "grams", "cost", "core_hours", "gpu_hours", "idle_kwh", "not_used_kwh", "units"] as const;
/** Fields that are a part of another one: all energy of the units for which they are known. */
export const kWholes: Partial<Record<Field, Field>> = { idle_kwh: "idle_of_kwh", not_used_kwh: "not_used_of_kwh" };
/** Emissions by the grid and by the bills of suppliers, each with the energy for which its factor is known. */
export const kEmissions = ["grams", "grams_of_kwh", "market_grams", "market_of_kwh"] as const;
export type Field = (typeof kFields)[number] | (typeof kEmissions)[number] | "idle_of_kwh" | "not_used_of_kwh";
type Value = number | null; // null: not measured

export interface Usage {
  groups: string[]; // a name in brackets is none: the others, all
  step?: string;
  times: number[]; // ms, the starts of hours, days or months
  values: Partial<Record<Field, Value[][]>>; // by group, then time
  totals: Partial<Record<Field, Value[]>>; // by group
  market?: { bills: boolean; source: string; kwh: number }[]; // where market-based factors come from
  missing?: { cluster_id: string }[]; // by hour: clusters whose energy is not in it
  previous?: { times: number[]; values: Partial<Record<Field, Value[][]>>; totals: Partial<Record<Field, Value[]>> };
  compared?: Compared; // absent where no day of the period has ended
}

/** The same days of the period and of the one before. */
export interface Compared {
  days: number;
  coverage: number; // 0 to 1, of the period with less
  energy_coverage: number;
  idle_coverage?: number; // of the energy of idle power; older servers do not say
  not_used_coverage?: number;
  now: Partial<Record<Field, Value[]>>;
  before: Partial<Record<Field, Value[]>>;
}

/** Two periods that are known less are not compared. */
const kLeastCoverage = 0.8;
const kOfEnergy: readonly Field[] = ["kwh", "grams", "market_grams", "idle_kwh", "not_used_kwh"];

const kCounts: readonly Field[] = ["core_hours", "gpu_hours", "units"];

/** How much of both periods is known, if that is too little to compare a field; else null. */
export function uncovered(usage: Usage, field: Field): number | null {
  if (!usage.compared) return null;
  const { coverage, energy_coverage: energy, idle_coverage: idle = 1, not_used_coverage: notUsed = 1 } = usage.compared;
  const share = Math.min(coverage, kOfEnergy.includes(field) ? energy : 1, field === "idle_kwh" ? idle : field === "not_used_kwh" ? notUsed : 1);
  return share < kLeastCoverage ? share : null;
}

/** Why fields are not compared: once for all of which the same share is known, and with their names if there are several shares. */
export function notCompared(of: readonly { field: (typeof kFields)[number]; less: number | null }[]): string[] {
  const found = new Map<string, string[]>(); // by the share as it is written; "": nothing is known
  for (const { field, less } of of) {
    if (less === null) continue;
    const share = less > 0 ? format.percent(100 * less) : "";
    found.set(share, [...(found.get(share) ?? []), fieldName(field)]);
  }
  return [...found].map(([share, names]) => {
    if (found.size === 1) return share ? t("change.uncovered", { share }) : t("change.noData");
    return t(share ? "change.uncoveredOf" : "change.noDataOf", { share, fields: names.join(", ") });
  });
}

/** The change of a field against the same days before, of one group or of all. */
export function changeIn(usage: Usage, field: Field, when: string, group?: number): Change | null {
  if (!usage.compared || uncovered(usage, field) !== null) return null;
  const of = (totals: Value[] | undefined) => (group === undefined ? sumOf(totals) : (totals?.[group] ?? null));
  return changeOf(of(usage.compared.now[field]), of(usage.compared.before[field]), when, kCounts.includes(field));
}

export const kGroupings = ["component", "project", "user", "cluster"] as const;
export type Grouping = (typeof kGroupings)[number];

export interface Question {
  days: Days;
  by: "none" | Grouping;
  fields: readonly Field[];
  step?: "hour" | "day" | "month";
  top?: number;
  previous?: boolean;
  narrow?: Query; // cluster_id, project, user
}

function queryOf(question: Question, view: View): Query {
  return [
    ["from", String(question.days.from)],
    ["to", String(question.days.to)],
    ["step", question.step ?? "day"],
    ["by", question.by],
    ["top", String(question.top ?? 5)],
    ["field", question.fields.flatMap((field) => [field, kWholes[field] ?? []].flat()).join(",")],
    ...(question.previous ? ([["previous", "1"]] as Query) : []),
    ...(question.narrow ?? []),
    ...scopeOf(view),
  ];
}

/** All groups as a file, which the server writes. */
export const usageFile = (api: Api, view: View, question: Question, kind: "csv" | "xlsx"): Promise<Blob> =>
  api.file(pathOf("usage/series", view), [...queryOf(question, view).filter(([name]) => name !== "top"), ["format", kind]]);

export async function usage(api: Api, view: View, question: Question, signal: AbortSignal): Promise<{ data: Usage; serverTime: number }> {
  const answer = await api.get<Usage>(pathOf("usage/series", view), queryOf(question, view), signal);
  const data = answer.data;
  if (data === null || !Array.isArray(data.groups) || !Array.isArray(data.times)) throw new ApiError(0, t("usage.none"));
  return { data, serverTime: answer.serverTime };
}

/** Asks for one kind of sums after the other. */
export const asker = (api: Api, view: View, narrow: Query, signal: AbortSignal) =>
  (days: Days, by: Question["by"], fields: readonly Field[], top: number, step: "day" | "month", previous = false) =>
    usage(api, view, { days, by, fields, top, step, previous, narrow }, signal).then((answer) => answer.data);

/** The sums of a month and of the month before, its days by group, and the days of the month before as one line. */
export async function monthUsage(ask: ReturnType<typeof asker>, month: Month, by: Question["by"]): Promise<{ sums: Usage; days: Usage; line: Value[] }> {
  const [here, before] = [daysOfMonth(month), daysOfMonth(monthsLater(month, -1))];
  const [sums, days, line] = await Promise.all([
    ask(here, "none", kFields, 1, "month", true),
    ask(here, by, ["kwh"], 5, "day"),
    ask(before, "none", ["kwh"], 1, "day"),
  ]);
  return { sums, days, line: line.values.kwh?.[0] ?? [] };
}

/** Energy by hour if there are few days, and by day if there are more or nothing is known by hour. */
export async function energyOf(api: Api, view: View, question: Question, signal: AbortSignal): Promise<Usage> {
  if (dayCount(question.days) <= 3) {
    try {
      const { data } = await usage(api, view, { ...question, days: hoursOf(question.days, Date.now()), step: "hour" }, signal);
      if (data.values.kwh?.some((line) => line.some((value) => value))) return data;
    } catch {
      signal.throwIfAborted(); // a TSDB that does not answer, too many units, or an older server
    }
  }
  return (await usage(api, view, question, signal)).data;
}

/** The sum of all groups; null if nothing was measured. */
export function sumOf(totals: Value[] | undefined): number | null {
  const known = (totals ?? []).filter((v): v is number => typeof v === "number");
  return known.length ? known.reduce((a, b) => a + b, 0) : null;
}

export interface Days {
  from: number; // seconds: noon of the first day
  to: number; // noon of the last day
}

/** Days as they are meant, although the server may be in another time zone: noon is the same day nearly everywhere. */
export function daysOf(period: Period, now: number): Days {
  const noon = (date: Date, days = 0) => new Date(date.getFullYear(), date.getMonth(), date.getDate() + days, 12).getTime() / 1000;
  const today = new Date(now);
  if (period.kind === "month") {
    const first = new Date(today.getFullYear(), today.getMonth() - period.back, 1);
    return { from: noon(first), to: period.back === 0 ? noon(today) : noon(new Date(first.getFullYear(), first.getMonth() + 1, 0)) };
  }
  if (period.kind === "hours") return { from: noon(today, 1 - Math.max(1, Math.round(period.hours / 24))), to: noon(today) };
  if (period.kind === "custom") return { from: noon(new Date(period.from * 1000)), to: noon(new Date((period.to - 1) * 1000)) };
  return { from: noon(today, -364), to: noon(today) };
}

/** From the beginning of the first day to the end of the last one, or until now. */
export function hoursOf({ from, to }: Days, now: number): Days {
  return { from: new Date(from * 1000).setHours(0, 0, 0, 0) / 1000, to: Math.floor(Math.min(now, new Date(to * 1000).setHours(24, 0, 0, 0) - 1) / 1000) };
}

export function dayCount({ from, to }: Days): number {
  return Math.round((to - from) / 86400) + 1;
}

export function monthOf(now: number): Month {
  const date = new Date(now);
  return { year: date.getFullYear(), month: date.getMonth() + 1 };
}

export function monthsLater({ year, month }: Month, by: number): Month {
  const date = new Date(year, month - 1 + by, 1);
  return { year: date.getFullYear(), month: date.getMonth() + 1 };
}

export function daysOfMonth({ year, month }: Month): Days {
  return { from: new Date(year, month - 1, 1, 12).getTime() / 1000, to: new Date(year, month, 0, 12).getTime() / 1000 };
}

export function monthName({ year, month }: Month): string {
  return new Date(year, month - 1, 1).toLocaleDateString(format.locale(), { month: "long", year: "numeric" });
}

/** A day of a month at its bar; `long`: with the month. Days of a server in another zone are the same days. */
export const dayOfMonth = (ms: number, long: boolean): string =>
  new Date(ms + 12 * 3600_000).toLocaleDateString(format.locale(), long ? { day: "numeric", month: "short", year: "numeric" } : { day: "numeric" });

/** The period of a whole month. */
export function monthPeriod(month: Month): Period {
  const start = ({ year, month }: Month) => new Date(year, month - 1, 1).getTime() / 1000;
  return { kind: "custom", from: start(month), to: start(monthsLater(month, 1)) };
}

/** The period of units that ended on a day, from a time within it. */
export function dayPeriod(ms: number): Period {
  const day = new Date(ms + 12 * 3600_000);
  const start = (days: number) => new Date(day.getFullYear(), day.getMonth(), day.getDate() + days).getTime() / 1000;
  return { kind: "custom", from: start(0), to: start(1) };
}

export interface Change {
  arrow: string;
  brief: string; // where what it is compared with stands above
  text: string;
}

/** How much more or less than before; null if one of them is not known, or there was nothing before. `when`: the time before, in words;
 * `counted`: of things that are many, not much. */
export function changeOf(now: number | null, before: number | null, when: string, counted = false): Change | null {
  if (now === null || before === null || before <= 0) return null;
  const percent = (100 * (now - before)) / before;
  if (Math.abs(percent) < 0.5) return { arrow: "=", brief: t("change.same"), text: t("change.same") };
  if (percent >= 1000) return { arrow: "▲", brief: `${format.number3(now / before)} ×`, text: t(counted ? "change.timesMany" : "change.times", { size: format.number3(now / before), before: when }) };
  const size = format.percent(Math.abs(percent));
  return percent > 0 ? { arrow: "▲", brief: size, text: t("change.more", { size, before: when }) } : { arrow: "▼", brief: size, text: t(counted ? "change.fewer" : "change.less", { size, before: when }) };
}

/** The columns of files, with their units. */
export const kCsvNames: Record<Field, string> = {
  kwh: "energy_kwh", grams: "emissions_grams", cost: "cost", core_hours: "core_hours", gpu_hours: "gpu_hours", idle_kwh: "idle_power_kwh", not_used_kwh: "not_used_kwh", units: "units",
  idle_of_kwh: "idle_power_of_kwh", not_used_of_kwh: "not_used_of_kwh", grams_of_kwh: "emissions_of_kwh", market_grams: "emissions_market_grams", market_of_kwh: "emissions_market_of_kwh",
};

export const fieldName = (field: (typeof kFields)[number]): string => t(field === "not_used_kwh" ? "column.not_used" : `field.${field}`);
/** What stands above a column of its values, which then need not say it. */
export const columnName = (field: (typeof kFields)[number]): string => (field === "grams" ? `${fieldName(field)} ${kGas}` : fieldName(field));
export const inColumn = (text: string): string => text.replace(` ${kGas}`, "");

/** What a month is compared with: the month before, or as many of its days as have ended of this one. */
export function monthBefore(month: Month, usage: Usage | null): string {
  const name = monthName(monthsLater(month, -1));
  const days = usage?.compared?.days ?? 0;
  return days > 0 && days < dayCount(daysOfMonth(month)) ? t("before.sameDays", { n: days, month: name }) : t("before.month", { month: name });
}

export type FieldText = (field: Field, value: Value) => string;

const kGas = "CO2e";

/** How a page writes its sums and their parts: energy and emissions in the unit of the whole, so that a sum reads the same wherever it is. */
export function fieldTexts(whole: Usage, currency: string): FieldText {
  const energy = format.energies([sumOf(whole.totals.kwh)]);
  const mass = format.masses([sumOf(whole.totals.grams)]);
  return (field, value) =>
    value === null ? format.kNone : field.endsWith("kwh") ? energy(value) : field === "grams" ? `${mass(value)} ${kGas}` : fieldText(field, value, currency);
}

export function fieldText(field: Field, value: number | null, currency = ""): string {
  if (value === null) return format.kNone;
  switch (field) {
    case "kwh":
    case "idle_kwh":
    case "not_used_kwh":
      return format.energy(value);
    case "grams":
      return `${format.emissions(value)} ${kGas}`;
    case "cost":
      return format.money(value, currency);
    case "units":
      return format.whole(value);
    default:
      return format.number3(value);
  }
}

export function groupText(name: string, by: Question["by"]): string {
  if (name === "(others)") return t("group.others");
  if (name === "(all)") return t("group.all");
  if (by === "component") return name === "cpu" ? t("group.cpu") : name === "gpu" ? t("group.gpu") : name;
  return name;
}
