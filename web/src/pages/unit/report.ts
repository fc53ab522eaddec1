// The report of a unit as the server sends it (docs/report.md): what of it the page shows, and how it is asked for.

import type { Query, Unit } from "../../data/api";

export type Severity = "important" | "suggest" | "info" | "good";
export type Confidence = "sure" | "likely" | "maybe";

export interface Suggestion {
  rule: string;
  severity: Severity;
  confidence: Confidence;
  runs: number; // of the last eight, in which it was true
  text: string; // in the language that was asked for
  lines: { type: string; was: string | null }[]; // as users of the manager write them
  saves: number | null; // kWh
}

export interface Report {
  running: boolean;
  partial: boolean; // too little is known for the rules that need measurements
  coverage: number | null; // share of the node time, 0 to 1; null: not measured
  elapsed: number | null; // s
  idle: number | null; // kWh of the idle power of the reservation
  notUsed: number | null; // kWh of it of what was not used at that time
  suggestions: Suggestion[]; // the most useful first
}

export const kMaxSuggestions = 3;
/** The server does not judge shorter runs. */
export const kMinRunSeconds = 300;

const kMaxText = 600;
const kMaxLine = 200;

/** One line without characters that are not seen or that change the order of others: what is copied is what was read. */
export function plain(text: string, most: number): string {
  const clean = text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").replace(/\p{Cf}/gu, "").trim();
  return clean.length > most ? `${[...clean].slice(0, most - 1).join("")}…` : clean;
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

function lineOf(line: unknown): string {
  const text = typeof line === "string" ? plain(line, kMaxLine) : "";
  // A line that was cut would be another one.
  return text.endsWith("…") ? "" : text;
}

function suggestionOf(value: unknown): Suggestion | null {
  const { rule, severity, confidence, runs, text, lines, saves } = object(value);
  if (typeof text !== "string" || plain(text, kMaxText) === "") return null;
  return {
    rule: typeof rule === "string" ? plain(rule, 40) : "",
    severity: severity === "important" || severity === "info" || severity === "good" ? severity : "suggest",
    confidence: confidence === "sure" || confidence === "likely" ? confidence : "maybe",
    runs: Math.max(1, Math.floor(number(runs) ?? 1)),
    text: plain(text, kMaxText),
    lines: (Array.isArray(lines) ? lines : []).flatMap((line) => {
      const type = lineOf(object(line).type);
      return type ? [{ type, was: lineOf(object(line).was) || null }] : [];
    }),
    saves: number(object(saves).kwh),
  };
}

/** null if the server sent something else. */
export function readReport(data: unknown): Report | null {
  const first = object(Array.isArray(data) ? data[0] : null);
  if (typeof first.state !== "string" || !Array.isArray(first.findings)) return null;
  return {
    running: first.state === "so_far",
    partial: first.state === "partial",
    coverage: number(first.coverage),
    elapsed: number(object(first.job).elapsed_s),
    idle: number(object(first.energy).idle_kwh),
    notUsed: number(object(first.energy).not_used_kwh),
    suggestions: first.findings.flatMap((finding) => suggestionOf(finding) ?? []).slice(0, kMaxSuggestions),
  };
}

export const kForms = { text: "txt", markdown: "md", html: "html" } as const;
export type ReportForm = keyof typeof kForms;

/** What selects this run. A unit that runs has a report only if it is asked for. */
export function reportQuery(unit: Unit, language: string, running: boolean, form: ReportForm | null = null): Query {
  const query: Query = [
    ["cluster_id", unit.cluster_id ?? ""],
    ["uuid", unit.uuid],
  ];
  if (unit.started_at_ts) query.push(["start", String(unit.started_at_ts)]);
  query.push(["lang", language]);
  if (running) query.push(["so_far", "true"]);
  if (form) query.push(["format", form]);
  return query;
}

/** Identifiers are anybody's text; a file name is not. */
export function fileName(uuid: string, form: ReportForm): string {
  const id = uuid.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, 64);
  return `report-${id}.${kForms[form]}`;
}
