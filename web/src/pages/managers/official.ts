// Reports that rules ask for: docs/api/insight.md, "insight/report/admin". Their own texts are English, as the server writes them.

import type { Api, Query } from "../../data/api";
import { readMonth } from "../../data/period";
import { monthName } from "../../data/usage";
import * as format from "../../text/format";
import { daysText, list, number, text, type Fields } from "./managers";

export const kHows = ["measured", "derived", "modelled", "declared", "missing"] as const;
export type How = (typeof kHows)[number];
export const kFormats = ["md", "csv", "json", "xlsx", "html"] as const;
export type Format = (typeof kFormats)[number];

export interface ReportKind {
  kind: string;
  title: string;
  year: boolean; // there is one of a year
  month: boolean;
}

export interface ReportLine {
  id: string;
  label: string;
  value: number | null;
  unit: string; // empty: a ratio or a number of things
  how: How;
  coverage: number | null; // 0 to 1
  note: string;
  factor: string; // with its unit, source and date; empty: none
  formula: string;
}

export interface Report {
  title: string;
  site: string;
  days: string;
  written: string; // in the time zone of the server
  by: string;
  notes: string[];
  sections: { name: string; lines: ReportLine[] }[];
  sources: { what: string; detail: string; sha256: string }[];
}

export const kindsOf = (data: unknown): ReportKind[] =>
  list(data).map((row) => ({ kind: text(row.kind), title: text(row.title), year: row.year === true, month: row.month === true })).filter(({ kind }) => kind !== "");

/** A value with six digits, or all before the point; never in exponent form. */
export function valueText(value: number): string {
  const whole = Math.trunc(Math.abs(value)).toString().length;
  return value.toLocaleString(format.locale(), { maximumSignificantDigits: Math.min(21, Math.max(6, whole)) });
}

function lineOf(row: Fields): ReportLine {
  const value = number(row.value);
  const factor = number(row.factor);
  const [unit, source, date] = [text(row.factor_unit), text(row.factor_source), text(row.factor_date)];
  return {
    id: text(row.id),
    label: text(row.label),
    value,
    unit: row.unit === "1" ? "" : text(row.unit),
    how: value === null ? "missing" : (kHows.find((one) => one === row.how) ?? "missing"),
    coverage: number(row.coverage),
    note: text(row.note),
    factor: [factor === null ? "" : `${valueText(factor)} ${unit}`.trim(), source, date].filter(Boolean).join(", "),
    formula: text(row.formula),
  };
}

/** The day of a time with an offset, as if it were in UTC. */
const dayOf = (time: unknown): number => Date.parse(text(time).slice(0, 10));

export function reportOf(data: unknown): Report | null {
  if (typeof data !== "object" || data === null) return null;
  const fields = data as Fields;
  const sections: Report["sections"] = [];
  for (const row of list(fields.lines)) {
    const name = text(row.section);
    if (sections.at(-1)?.name !== name) sections.push({ name, lines: [] });
    sections.at(-1)!.lines.push(lineOf(row));
  }
  return {
    title: text(fields.title),
    site: text(fields.site),
    days: daysText(dayOf(fields.from), dayOf(fields.to), "UTC"),
    written: text(fields.written).replace("T", " "),
    by: text(fields.by),
    notes: (Array.isArray(fields.notes) ? (fields.notes as unknown[]) : []).map(text).filter(Boolean),
    sections,
    sources: list(fields.sources).map((row) => ({ what: text(row.what), detail: text(row.detail), sha256: text(row.sha256) })),
  };
}

/** How many lines are known in which way, where there are some. */
export function evidenceOf(report: Report): { how: How; count: number }[] {
  const lines = report.sections.flatMap((section) => section.lines);
  return kHows.map((how) => ({ how, count: lines.filter((line) => line.how === how).length })).filter(({ count }) => count > 0);
}

const pad = (number: number) => String(number).padStart(2, "0");

export function presentMonth(now: number): string {
  const today = new Date(now);
  return `${today.getFullYear()}-${pad(today.getMonth() + 1)}`;
}

/** The period of a report of this kind that fits the address: the year of a month, or the last month of a year; without one, the present. */
export function periodFor(kind: ReportKind | undefined, period: string | null, now: number): string {
  const month = presentMonth(now);
  const year = month.slice(0, 4);
  if (kind?.year !== false) return period === null ? year : kind?.month === false ? period.slice(0, 4) : period;
  if (period === null || period === year) return month;
  return period.length > year.length ? period : `${period}-12`;
}

/** The year or month before or after. */
export function periodsLater(period: string, by: number): string {
  const month = readMonth(period);
  if (!month) return String(Number(period) + by);
  const count = month.year * 12 + month.month - 1 + by;
  return `${Math.floor(count / 12)}-${pad((count % 12) + 1)}`;
}

export function periodText(period: string): string {
  const month = readMonth(period);
  return month ? monthName(month) : period;
}

const kYears = 10;
const kMonths = 24;

/** What may be chosen, the newest first; `shown` is always there. */
export function choices(kind: ReportKind | undefined, shown: string, now: number): { years: string[]; months: string[] } {
  const some = (wanted: boolean, length: number, first: string) => {
    const found = wanted ? Array.from({ length }, (_, i) => periodsLater(first, -i)) : [];
    return shown.length === first.length && !found.includes(shown) ? [...found, shown] : found;
  };
  const month = presentMonth(now);
  return { years: some(kind?.year ?? true, kYears, month.slice(0, 4)), months: some(kind?.month ?? true, kMonths, month) };
}

const kPath = "insight/report/admin";
const queryOf = (kind: string, period: string, cluster: string): Query => [["kind", kind], ["period", period], ...(cluster ? ([["cluster_id", cluster]] as Query) : [])];

export const reportKinds = async (api: Api, signal: AbortSignal): Promise<ReportKind[]> => kindsOf((await api.get("insight/report/kinds/admin", [], signal)).data);
export const report = async (api: Api, kind: string, period: string, cluster: string, signal: AbortSignal): Promise<Report | null> =>
  reportOf((await api.get(kPath, queryOf(kind, period, cluster), signal)).data);
export const reportFile = (api: Api, kind: string, period: string, cluster: string, as: Format): Promise<Blob> => api.file(kPath, [...queryOf(kind, period, cluster), ["format", as]]);
