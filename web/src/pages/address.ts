// The fragment of the address: the page and its state, so that a link, a bookmark and the Back button give the same view again.
// What is a default is left out. read() accepts anything and ignores what it does not understand; read(write(x)) equals x.

import type { View } from "../data/api";
import { readNodes, writeNodes, type NodesState } from "./nodes/nodestate";
import { kViews, readTable, writeTable, type TableState } from "../tables/tablestate";
import type { Span } from "../charts/zoom";

export type Show = "all" | "running" | "ended";

export const kSortKeys = ["name", "user", "state", "started", "ended", "wall", "cpu", "mem", "gpu", "kwh", "grams", "unused"] as const;
export type SortKey = (typeof kSortKeys)[number];

/** Both ends included; null: no limit on that side. */
export interface Range {
  least: number | null;
  most: number | null;
}

export type Period =
  | { kind: "hours"; hours: number } // the last hours
  | { kind: "month"; back: number } // a calendar month: 0 the current one, 1 the last one
  | { kind: "custom"; from: number; to: number } // seconds since 1970
  | { kind: "all" };

export const kRanges = ["cpu", "mem", "gpu", "kwh", "unused", "wall"] as const; // percent, percent, percent, kWh, kWh, seconds
export type RangeKey = (typeof kRanges)[number];
export const kChoices = ["state", "project", "cluster", "user", "partition", "advice"] as const;
export type ChoiceKey = (typeof kChoices)[number];

export interface ListState {
  q: string;
  show: Show;
  period: Period;
  view: View | null; // null: the default of the role
  choices: Record<ChoiceKey, string[]>; // empty: any
  ranges: Record<RangeKey, Range>;
  sort: SortKey;
  descending: boolean;
  cursor: string; // position of the page; empty: the first one
  at: number; // rows before the page
  heat: HeatAxis | null; // the heat map is shown, with this against CPU use
}
export const kHeatAxes = ["mem", "gpu"] as const;
export type HeatAxis = (typeof kHeatAxes)[number];

/** What identifies a run. */
export interface UnitId {
  cluster: string;
  uuid: string;
  started: number | null; // ms
}
export const kMostCompared = 6;

export interface OverviewState {
  view: View | null;
  period: Period;
  by: Grouping;
}
export const kGroupings = ["component", "project", "user", "cluster"] as const;
export type Grouping = (typeof kGroupings)[number];

/** A calendar month; null: the current one. */
export interface Month {
  year: number;
  month: number; // 1 to 12
}

export type Route =
  | { page: "overview"; overview: OverviewState }
  | { page: "projects"; month: Month | null }
  | { page: "project"; cluster: string; name: string; month: Month | null } // an empty cluster: all
  | { page: "user"; name: string; month: Month | null }
  | { page: "jobs"; list: ListState }
  | { page: "unit"; cluster: string; uuid: string; started: number | null; span: Span | null } // span: what the charts show
  | { page: "compare"; units: UnitId[]; share: boolean } // share: of each run instead of time since its start
  | { page: "help" }
  | { page: "users"; month: Month | null }
  | { page: "site"; month: Month | null }
  | { page: "nodes"; nodes: NodesState }
  | { page: "node"; cluster: string; host: string; hours: number } // hours: how far back
  | { page: "grid" }
  | { page: "bill"; month: Month | null; cluster: string } // an empty cluster: the site
  | { page: "budgets" | "idle"; table: TableState }
  | { page: "unknown" };

const kMaxChoices = 20;
const kMaxText = 500;
const kAny: Range = { least: null, most: null };

export function defaultList(): ListState {
  return {
    q: "",
    show: "all",
    period: { kind: "hours", hours: 24 },
    view: null,
    choices: { state: [], project: [], cluster: [], user: [], partition: [], advice: [] },
    ranges: { cpu: kAny, mem: kAny, gpu: kAny, kwh: kAny, unused: kAny, wall: kAny },
    sort: "ended",
    descending: true,
    cursor: "",
    at: 0,
    heat: null,
  };
}

/** The direction in which a column is sorted first: texts from A, numbers from the greatest, times from the newest. */
export function descendsFirst(key: SortKey): boolean {
  return key !== "name" && key !== "user" && key !== "state";
}

/** The first page of a changed list. */
export function changed(list: ListState, change: Partial<ListState>): ListState {
  return { ...list, cursor: "", at: 0, ...change };
}

export function read(hash: string): Route {
  const text = hash.replace(/^#?\/?/, "");
  const mark = text.indexOf("?");
  const parts = (mark < 0 ? text : text.slice(0, mark)).split("/").map(decode);
  const query = new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1));
  if (parts.length === 1 && parts[0] === "") return { page: "overview", overview: readOverview(query) };
  if (parts.length === 1 && (parts[0] === "jobs" || parts[0] === "units")) return { page: "jobs", list: readList(query) };
  if (parts[0] === "unit" && (parts.length === 3 || parts.length === 4) && parts[2]) {
    return { page: "unit", cluster: parts[1] ?? "", uuid: parts[2], started: positive(parts[3]), span: readSpan(query.get("t")) };
  }
  if (parts.length === 1 && parts[0] === "compare") {
    return { page: "compare", units: readUnits(mark < 0 ? "" : text.slice(mark + 1)), share: query.get("time") === "share" };
  }
  if (parts.length === 2 && parts[0] === "help" && parts[1] === "numbers") return { page: "help" };
  const month = readMonth(query.get("month"));
  if (parts[0] === "projects" && parts.length === 1) return { page: "projects", month };
  if (parts[0] === "project" && parts.length === 3 && parts[2]) return { page: "project", cluster: parts[1] ?? "", name: parts[2], month };
  if (parts[0] === "user" && parts.length === 2 && parts[1]) return { page: "user", name: parts[1], month };
  return readSite(parts, query) ?? { page: "unknown" };
}

/** The pages of the whole site. */
function readSite(parts: readonly string[], query: URLSearchParams): Route | null {
  const [page, cluster, host] = parts;
  if (parts.length === 1 && (page === "users" || page === "site")) return { page, month: readMonth(query.get("month")) };
  if (parts.length === 1 && page === "nodes") return { page, nodes: readNodes(query) };
  if (parts.length === 1 && page === "grid") return { page };
  if (parts.length === 1 && page === "bill") return { page, month: readMonth(query.get("month")), cluster: (query.get("cluster") ?? "").slice(0, kMaxText) };
  if (parts.length === 1 && (page === "budgets" || page === "idle")) return { page, table: readTable(query) };
  if (parts.length === 3 && page === "node" && cluster && host) {
    const period = readPeriod(query);
    const hours = period?.kind === "hours" ? Math.min(period.hours, kMostNodeHours) : kNodeHours;
    return { page, cluster, host, hours };
  }
  return null;
}

const kNodeHours = 24;
const kMostNodeHours = 31 * 24; // what the server has

export function write(route: Route): string {
  switch (route.page) {
    case "jobs": {
      const query = writeList(route.list).toString();
      return query ? `#/jobs?${query}` : "#/jobs";
    }
    case "overview":
      return writeOverview(route.overview);
    case "projects":
      return `#/projects${writeMonth(route.month)}`;
    case "project":
      return `#/project/${part(route.cluster)}/${part(route.name)}${writeMonth(route.month)}`;
    case "user":
      return `#/user/${part(route.name)}${writeMonth(route.month)}`;
    case "unit":
      return unitAddress(route.cluster, route.uuid, route.started) + (route.span === null ? "" : `?t=${route.span.from}..${route.span.to}`);
    case "compare": {
      const query = [...route.units.map((unit) => `u=${idOf(unit)}`), ...(route.share ? ["time=share"] : [])].join("&");
      return query ? `#/compare?${query}` : "#/compare";
    }
    case "help":
      return "#/help/numbers";
    case "users":
    case "site":
      return `#/${route.page}${writeMonth(route.month)}`;
    case "nodes": {
      const query = writeNodes(route.nodes).toString();
      return query ? `#/nodes?${query}` : "#/nodes";
    }
    case "node":
      return `#/node/${part(route.cluster)}/${part(route.host)}${route.hours === kNodeHours ? "" : `?period=${route.hours}h`}`;
    case "grid":
      return "#/grid";
    case "bill": {
      const query = new URLSearchParams(writeMonth(route.month));
      if (route.cluster) query.set("cluster", route.cluster);
      return query.size ? `#/bill?${query}` : "#/bill";
    }
    case "budgets":
    case "idle":
      return `#/${route.page}${writeTable(route.table)}`;
    case "unknown":
      return "#/unknown";
  }
}

export function unitAddress(cluster: string, uuid: string, started: number | null): string {
  return `#/unit/${idOf({ cluster, uuid, started })}`;
}

function idOf({ cluster, uuid, started }: UnitId): string {
  return [cluster, uuid, ...(started ? [String(started)] : [])].map(part).join("/");
}

/** From the query as it is written, because a decoded part may hold a slash. Each run once. */
function readUnits(query: string): UnitId[] {
  const units = new Map<string, UnitId>();
  for (const pair of query.split("&")) {
    const parts = /^u=(.*)$/.exec(pair)?.[1]?.split("/").map(decode) ?? [];
    if (parts.length < 2 || parts.length > 3 || !parts[1]) continue;
    const unit = { cluster: parts[0] ?? "", uuid: parts[1], started: positive(parts[2]) };
    units.set(idOf(unit), unit);
  }
  return [...units.values()].slice(0, kMostCompared);
}

export function defaultOverview(): OverviewState {
  return { view: null, period: { kind: "month", back: 0 }, by: "component" };
}

function readOverview(query: URLSearchParams): OverviewState {
  const overview = defaultOverview();
  overview.view = oneOf(query.get("view"), kViews);
  overview.period = readPeriod(query) ?? overview.period;
  overview.by = oneOf(query.get("by"), kGroupings) ?? overview.by;
  return overview;
}

function writeOverview({ view, period, by }: OverviewState): string {
  const query = new URLSearchParams();
  if (view !== null) query.set("view", view);
  if (!(period.kind === "month" && period.back === 0)) writePeriod(period, query, true);
  if (by !== "component") query.set("by", by);
  return query.size ? `#/?${query}` : "#/";
}

function readMonth(text: string | null): Month | null {
  const match = /^([1-9]\d{3})-(0[1-9]|1[0-2])$/.exec(text ?? "");
  return match ? { year: Number(match[1]), month: Number(match[2]) } : null;
}

function writeMonth(month: Month | null): string {
  return month === null ? "" : `?month=${monthText(month)}`;
}

export function monthText({ year, month }: Month): string {
  return `${year}-${String(month).padStart(2, "0")}`;
}

function part(text: string): string {
  return encodeURIComponent(wellFormed(text));
}

export function readList(query: URLSearchParams): ListState {
  const list = defaultList();
  list.q = (query.get("q") ?? "").slice(0, kMaxText);
  list.show = oneOf(query.get("show"), ["all", "running", "ended"] as const) ?? list.show;
  list.period = readPeriod(query) ?? list.period;
  list.view = oneOf(query.get("view"), kViews) ?? null;
  for (const key of kChoices) {
    list.choices[key] = [...new Set(query.getAll(key).filter((text) => text !== "" && text.length <= kMaxText))].slice(0, kMaxChoices);
  }
  for (const key of kRanges) list.ranges[key] = readRange(query.get(key));
  list.sort = oneOf(query.get("sort"), kSortKeys) ?? list.sort;
  const order = oneOf(query.get("order"), ["asc", "desc"] as const);
  list.descending = order === null ? descendsFirst(list.sort) : order === "desc";
  list.cursor = query.get("cursor") ?? "";
  list.at = list.cursor === "" ? 0 : Math.floor(positive(query.get("at") ?? "") ?? 0);
  list.heat = oneOf(query.get("heat"), kHeatAxes);
  return list;
}

export function writeList(list: ListState): URLSearchParams {
  const query = new URLSearchParams();
  if (list.q) query.set("q", list.q);
  if (list.show !== "all") query.set("show", list.show);
  writePeriod(list.period, query);
  if (list.view !== null) query.set("view", list.view);
  for (const key of kChoices) for (const text of list.choices[key]) query.append(key, text);
  for (const key of kRanges) {
    const range = writeRange(list.ranges[key]);
    if (range) query.set(key, range);
  }
  if (list.sort !== "ended") query.set("sort", list.sort);
  if (list.descending !== descendsFirst(list.sort)) query.set("order", list.descending ? "desc" : "asc");
  if (list.cursor) {
    query.set("cursor", list.cursor);
    if (list.at > 0) query.set("at", String(list.at));
  }
  if (list.heat !== null) query.set("heat", list.heat);
  return query;
}

/** "20..80", "20..", "..80"; empty: any. */
export function writeRange({ least, most }: Range): string {
  return least === null && most === null ? "" : `${least ?? ""}..${most ?? ""}`;
}

function readRange(text: string | null): Range {
  const match = /^(\d+(?:\.\d+)?(?:e[+-]?\d+)?)?\.\.(\d+(?:\.\d+)?(?:e[+-]?\d+)?)?$/.exec(text ?? "");
  const number = (part: string | undefined) => (part !== undefined && Number.isFinite(Number(part)) ? Number(part) : null);
  return { least: number(match?.[1]), most: number(match?.[2]) };
}

function readSpan(text: string | null): Span | null {
  const match = /^(\d{1,16})\.\.(\d{1,16})$/.exec(text ?? "");
  const span = match && { from: Number(match[1]), to: Number(match[2]) };
  return span && span.from < span.to ? span : null;
}

function readPeriod(query: URLSearchParams): Period | null {
  const from = positive(query.get("from") ?? "");
  const to = positive(query.get("to") ?? "");
  if (from !== null && to !== null && Number.isInteger(from) && Number.isInteger(to) && from < to) return { kind: "custom", from, to };
  const text = query.get("period") ?? "";
  if (text === "month") return { kind: "month", back: 0 };
  if (text === "all") return { kind: "all" };
  if (text === "last-month") return { kind: "month", back: 1 };
  const match = /^([1-9]\d{0,4})h$/.exec(text);
  return match ? { kind: "hours", hours: Number(match[1]) } : null;
}

function writePeriod(period: Period, query: URLSearchParams, always = false): void {
  if (period.kind === "custom") {
    query.set("from", String(period.from));
    query.set("to", String(period.to));
  } else if (period.kind === "month") {
    query.set("period", period.back === 0 ? "month" : "last-month");
  } else if (period.kind === "all") {
    query.set("period", "all");
  } else if (always || period.hours !== 24) {
    query.set("period", `${period.hours}h`);
  }
}

const kQuarter = 900; // s

/** The period in seconds. Rounded outwards to 15 minutes, so that the same question is asked until the next quarter of an hour and the
 * server can answer that nothing has changed. A minute ahead, because the clocks may differ. */
export function windowOf(period: Period, now: number): { from: number; to: number } {
  const until = Math.ceil((now / 1000 + 60) / kQuarter) * kQuarter;
  if (period.kind === "hours") return { from: Math.floor((now / 1000 - period.hours * 3600) / kQuarter) * kQuarter, to: until };
  if (period.kind === "custom") return { from: period.from, to: period.to };
  if (period.kind === "all") return { from: 1, to: until };
  const today = new Date(now);
  const start = (back: number) => new Date(today.getFullYear(), today.getMonth() - back, 1).getTime() / 1000;
  return { from: start(period.back), to: period.back === 0 ? until : start(period.back - 1) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Half of a surrogate pair, which JSON can hold, cannot be written as UTF-8. */
function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udfff]/gu, "\ufffd");
}

function positive(text: string | undefined): number | null {
  const number = Number(text);
  return Number.isFinite(number) && number > 0 ? number : null;
}

function oneOf<T extends string>(text: string | null, values: readonly T[]): T | null {
  return values.find((value) => value === text) ?? null;
}
