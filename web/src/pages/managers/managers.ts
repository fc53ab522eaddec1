// Bills, budgets and idle reservations: docs/api/insight.md. Their pages are loaded when they are needed, with their texts.

import { monthText, type Month } from "../../data/period";
import { ApiError, failureOf as inGeneral, pathOf, scopeOf, type Api, type Missing, type Query, type View } from "../../data/api";
import { element } from "../../tables/cells";
import * as format from "../../text/format";
import { addTexts, currentLanguage, t } from "../../text/i18n";
import en from "../../text/locales/managers.en.json";
import { fieldText } from "../../data/usage";

export async function loadTexts(): Promise<void> {
  const language = currentLanguage();
  try {
    addTexts(en, language === "de" ? (await import("../../text/locales/managers.de.json")).default : language === "fr" ? (await import("../../text/locales/managers.fr.json")).default : null);
  } catch {
    addTexts(en, null); // the file belongs to another version of the page
  }
}

export type Fields = Record<string, unknown>;

export const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");
export const list = (value: unknown): Fields[] => (Array.isArray(value) ? (value as unknown[]).filter((one): one is Fields => typeof one === "object" && one !== null) : []);

/** An answer with the time of the server. */
export interface Told<T> {
  data: T;
  missing: Missing[];
  serverTime: number;
}

async function ask<T>(api: Api, path: string, query: Query, signal: AbortSignal, of: (rows: Fields[]) => T): Promise<Told<T>> {
  const answer = await api.get<unknown>(path, query, signal);
  return { data: of(list(answer.data)), missing: answer.missing, serverTime: answer.serverTime };
}

/** A day in the zone of the server, at whose midnight months and bills begin; in that of the browser if it does not know that one. */
export function dayText(ms: number, timeZone: string | undefined): string {
  const look = { day: "numeric", month: "short", year: "numeric" } as const;
  try {
    return format.date(ms, { ...look, ...(timeZone ? { timeZone } : {}) });
  } catch {
    return format.date(ms, look);
  }
}

/** A period of days; its end does not count. */
export const daysText = (from: number, to: number, zone: string | undefined): string => t("bill.dates", { from: dayText(from, zone), to: dayText(to - 1, zone) });

// The bill

/** In the order of the table: the first four add up to `nodes`, and all further ones with it to `meter`. */
export const kParts = ["active", "reserved_idle", "system", "unallocated", "nodes", "other", "cooling", "unexplained", "meter"] as const;
export type Part = (typeof kParts)[number];
export const kNodeParts = kParts.slice(0, 4);
const kSums: readonly Part[] = ["nodes", "meter"];
const kHows = ["measured", "derived", "modelled", "configured"] as const;
export const kHints = ["uncovered_nodes", "modelled_nodes", "psu_losses", "bill_clock"] as const;

export interface BillRow {
  part: Part;
  kwh: number | null;
  share: number | null; // 0 to 1
  how: (typeof kHows)[number] | null;
  billed: number | null; // kWh, scaled to the bill
  cost: number | null;
  begin: number; // of the bar, in percent of the widest
  width: number;
}

export interface OneBill {
  from: number; // ms
  to: number;
  kwh: number | null;
  cost: number | null;
  currency: string;
  market: number | null; // kg CO2e
}

export interface Bill {
  rows: BillRow[];
  nodes: number;
  coverage: number | null; // 0 to 1
  measured: number | null;
  days: { times: number[]; values: number[][] }; // kWh of the first four parts
  hints: { kind: (typeof kHints)[number]; kwh: number; hours: number | null }[];
  from: number | null; // ms: the period of the bills, which may not be the month
  to: number | null;
  bills: OneBill[];
  hours: number | null; // 0 to 1: part of the hours of the bills in which nodes were read
  factor: number | null; // null: the site does not scale to the bill
  price: number | null; // of a kWh, the mean of the bills
  currency: string;
}

export function billOf(data: Fields[]): Bill {
  const found = (part: Part) => data.find((row) => row.part === part) ?? {};
  const meter = found("meter");
  const bills = list(meter.bills).flatMap((one) => {
    const [from, to] = [number(one.period_start), number(one.period_end)];
    return from === null || to === null ? [] : [{ from, to, kwh: number(one.kwh), cost: number(one.cost), currency: text(one.currency), market: number(one.kgco2_market) }];
  });
  const price = meanPrice(bills);
  let at = 0;
  const rows = kParts.map((part): BillRow => {
    const row = found(part);
    const kwh = number(row.kwh);
    const begin = kSums.includes(part) ? 0 : Math.min(at, at + (kwh ?? 0));
    if (!kSums.includes(part)) at += kwh ?? 0;
    const how = kHows.find((one) => one === row.how) ?? null;
    return { part, kwh, share: number(row.share), how, billed: number(row.billed_kwh), cost: price === null || kwh === null ? null : kwh * price, begin, width: Math.abs(kwh ?? 0) };
  });
  const widest = Math.max(...rows.map((row) => row.begin + row.width));
  for (const row of rows) {
    row.begin = widest > 0 ? (100 * Math.max(0, row.begin)) / widest : 0;
    row.width = widest > 0 ? Math.min((100 * row.width) / widest, 100 - row.begin) : 0;
  }
  const nodes = found("nodes");
  const days = (Array.isArray(nodes.days) ? (nodes.days as unknown[]) : []).filter((day): day is number[] => Array.isArray(day) && day.length > kNodeParts.length && day.every((value) => number(value) !== null));
  return {
    rows,
    nodes: number(nodes.nodes) ?? 0,
    coverage: number(nodes.coverage),
    measured: number(nodes.measured),
    days: { times: days.map((day) => day[0]!), values: kNodeParts.map((_, i) => days.map((day) => day[i + 1]!)) },
    hints: list(found("unexplained").hints).flatMap((hint) => {
      const kind = kHints.find((one) => one === hint.kind);
      return kind ? [{ kind, kwh: number(hint.kwh) ?? 0, hours: number(hint.node_hours) }] : [];
    }),
    from: number(meter.period_start),
    to: number(meter.period_end),
    bills,
    hours: number(meter.hours),
    factor: data.some((row) => "billed_kwh" in row) ? number(meter.factor) : null,
    price,
    currency: bills[0]?.currency ?? "",
  };
}

/** Of a kWh, where every bill says what it cost in one currency. */
function meanPrice(bills: readonly OneBill[]): number | null {
  const kwh = bills.reduce((sum, bill) => sum + (bill.kwh ?? 0), 0);
  const known = kwh > 0 && bills.every((bill) => bill.cost !== null && bill.kwh !== null && bill.currency === bills[0]!.currency);
  return known ? bills.reduce((sum, bill) => sum + bill.cost!, 0) / kwh : null;
}

export const bill = (api: Api, month: Month, cluster: string, signal: AbortSignal) =>
  ask(api, "insight/bill/admin", [["month", monthText(month)], ...(cluster ? ([["cluster_id", cluster]] as Query) : [])], signal, billOf);

// Budgets

export type Standing = "ok" | "warn" | "over" | "ended" | "unknown";

export interface BudgetRow {
  key: string;
  project: string;
  cluster: string; // empty: all together
  unit: "kwh" | "kgco2" | "cost";
  amount: number;
  used: number | null; // null: the price of a day is not known
  share: number | null; // 0 to 1 and above
  low: number | null; // forecast of the end
  high: number | null;
  period: string;
  from: number | null; // ms
  to: number | null;
  standing: Standing;
  passed: number | null; // 0 to 1: the highest share that was warned of
}

export function budgetsOf(data: Fields[]): BudgetRow[] {
  return data.flatMap((row, i) => {
    const amount = number(row.amount);
    const unit = (["kwh", "kgco2", "cost"] as const).find((one) => one === row.unit);
    if (amount === null || amount <= 0 || !unit) return [];
    const [low, high] = Array.isArray(row.forecast) ? (row.forecast as unknown[]).map(number) : [];
    const state = text(row.state);
    const passed = state.startsWith("warn_") ? number(Number(state.slice(5))) : null;
    const standing = passed !== null ? "warn" : ((["ok", "over", "ended"] as const).find((one) => one === state) ?? "unknown");
    return [{
      key: String(i), // a project may have several
      project: text(row.project),
      cluster: text(row.cluster_id),
      unit,
      amount,
      used: number(row.used),
      share: number(row.used_share),
      low: low ?? null,
      high: high ?? null,
      period: text(row.period),
      from: number(row.from_ts),
      to: number(row.to_ts),
      standing,
      passed,
    }];
  });
}

/** The project of a budget of all projects together: the target of the site. */
export const kAllProjects = "*";

export const projectText = (row: BudgetRow): string => (row.project === kAllProjects ? t("budget.site") : row.project);

/** What the site may use in a month of this year, in kWh; null: no target is set. */
export function monthTarget(rows: readonly BudgetRow[], year: number): number | null {
  const target = rows.find((row) => row.project === kAllProjects && !row.cluster && row.unit === "kwh" && row.period === String(year));
  return target ? target.amount / 12 : null;
}

export const budgets = (api: Api, signal: AbortSignal) => ask(api, "insight/budgets", [], signal, budgetsOf);

export function budgetText(row: Pick<BudgetRow, "unit">, amount: number | null, currency: string): string {
  if (amount === null) return format.kNone;
  if (row.unit === "kwh") return format.energy(amount);
  return row.unit === "kgco2" ? `${format.emissions(1000 * amount)} CO2e` : fieldText("cost", amount, currency);
}

/** What the forecast means for the budget; null: not known, or over already. */
export function outlook(row: BudgetRow): "below" | "may" | "will" | null {
  if (row.low === null || row.high === null || row.standing === "over" || row.standing === "ended") return null;
  return row.high <= row.amount ? "below" : row.low <= row.amount ? "may" : "will";
}

export const kStandingBadges = { ok: "done", warn: "warn", over: "failed", ended: "ended", unknown: "waiting" } as const;

export function standingText(row: BudgetRow): string {
  return row.standing === "warn" ? t("budget.warn", { share: format.percent(100 * (row.passed ?? 0)) }) : t(`budget.${row.standing}`);
}

/** The range of the forecast, which names what it counts once, and on a line of its own what it means. */
export function forecastText(row: BudgetRow, currency: string): string {
  const look = outlook(row);
  return `${t("budget.range", { low: budgetText(row, row.low, currency).replace(/\sCO2e$/, ""), high: budgetText(row, row.high, currency) })}${look === null ? "" : `\n${t(`budget.${look}`)}`}`;
}

/** Where the bar, the forecast and the limit are, in percent of the widest. */
export function gauge(row: BudgetRow): { used: number; low: number; high: number; limit: number } {
  const widest = Math.max(row.amount, row.used ?? 0, row.high ?? 0);
  const at = (value: number | null) => (100 * Math.max(0, value ?? 0)) / widest;
  return { used: at(row.used), low: at(row.low), high: at(row.high), limit: at(row.amount) };
}

/** What was used, the range of the forecast, and a line at the budget; the text beside it says the same. */
export function gaugeBar(row: BudgetRow): HTMLElement {
  const bar = element("span", { class: "gauge", "aria-hidden": "true" }, element("span", {}), element("span", {}), element("span", {}));
  const at = gauge(row);
  for (const [name, value] of Object.entries({ "--used": at.used, "--low": at.low, "--range": at.high - at.low, "--limit": at.limit })) bar.style.setProperty(name, `${value}%`);
  return bar;
}

// Idle reservations

export interface IdleRow {
  key: string;
  cluster: string;
  uuid: string;
  user: string;
  project: string;
  partition: string;
  since: number | null; // ms
  seconds: number | null;
  cpus: number | null;
  gpus: number | null;
  watts: number | null;
  kwh: number | null;
  cost: number | null;
  exempt: boolean;
}

export function idleOf(data: Fields[]): IdleRow[] {
  const rows = data.map((row) => ({
    key: `${text(row.cluster_id)}\n${text(row.uuid)}`,
    cluster: text(row.cluster_id),
    uuid: text(row.uuid),
    user: text(row.user),
    project: text(row.project),
    partition: text(row.partition),
    since: number(row.since_ts),
    seconds: number(row.idle_s),
    cpus: number(row.cpus),
    gpus: number(row.gpus),
    watts: number(row.watts),
    kwh: number(row.kwh),
    cost: number(row.cost),
    exempt: text(row.exempt) !== "",
  }));
  return [...new Map(rows.map((row) => [row.key, row])).values()]; // one run of each
}

export const kShareBy = ["project", "user", "partition", "cluster"] as const;

/** Energy of the idle power of what units that ended had reserved, and of what they did not use of it. null: not measured. */
export interface ShareRow {
  value: string;
  units: number | null;
  kwh: number | null;
  measured: number | null;
  idle: number | null;
  share: number | null; // 0 to 1
  notUsedOf: number | null; // energy of the units where it is known
  notUsed: number | null;
  notUsedShare: number | null; // 0 to 1
}

export function sharesOf(data: Fields[]): ShareRow[] {
  return data.map((row) => ({
    value: text(row.value),
    units: number(row.units),
    kwh: number(row.kwh),
    measured: number(row.measured_kwh),
    idle: number(row.idle_kwh),
    share: number(row.share),
    notUsedOf: number(row.not_used_of_kwh),
    notUsed: number(row.not_used_kwh),
    notUsedShare: number(row.not_used_share),
  }));
}

export const idle = (api: Api, view: View, signal: AbortSignal) => ask(api, pathOf("insight/idle", view), scopeOf(view), signal, idleOf);
export const idleShares = (api: Api, view: View, by: string, signal: AbortSignal) =>
  ask(api, pathOf("insight/idle", view), [["by", by], ...scopeOf(view)], signal, sharesOf);

/** What runs reserved less after a suggestion. null: not measured. */
export interface HelpedRow {
  key: string;
  cluster: string;
  project: string;
  rule: string;
  kinds: number;
  runs: number;
  coreHours: number;
  gpuHours: number;
  gibHours: number;
  kwh: number | null;
}

/** The most energy first. */
export function helpedOf(data: Fields[]): HelpedRow[] {
  const rows = data.map((row) => ({
    key: JSON.stringify([row.cluster_id, row.project, row.rule]),
    cluster: text(row.cluster_id),
    project: text(row.project),
    rule: text(row.rule),
    kinds: number(row.kinds) ?? 0,
    runs: number(row.runs) ?? 0,
    coreHours: number(row.core_hours) ?? 0,
    gpuHours: number(row.gpu_hours) ?? 0,
    gibHours: number(row.gib_hours) ?? 0,
    kwh: number(row.kwh),
  }));
  return rows.sort((a, b) => (b.kwh ?? -Infinity) - (a.kwh ?? -Infinity) || b.runs - a.runs);
}

export const helped = (api: Api, view: View, signal: AbortSignal) => ask(api, pathOf("insight/helped", view), scopeOf(view), signal, helpedOf);

/** What people said of the suggestions of a rule. */
export interface FeedbackRow {
  rule: string;
  answers: number;
  people: number;
  wrong: number; // share of the answers that it did not help or does not apply, 0 to 1
}

/** The rules that most often did not help first. */
export function feedbackOf(data: Fields[]): FeedbackRow[] {
  const rows = data.map((row) => ({ rule: text(row.rule), answers: number(row.answers) ?? 0, people: number(row.people) ?? 0, wrong: number(row.false_share) ?? 0 }));
  return rows.sort((a, b) => b.wrong - a.wrong || b.answers - a.answers);
}

export const feedback = (api: Api, signal: AbortSignal) => ask(api, "insight/feedback/admin", [], signal, feedbackOf);

/** In a sentence: what went wrong, or that the server does not have such answers yet. */
export function failureOf(error: unknown): ApiError {
  const failure = inGeneral(error);
  return failure.status === 404 ? new ApiError(404, t("managers.older")) : failure;
}
