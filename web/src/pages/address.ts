// The fragment of the address: the page and its state, so that a link, a bookmark and the Back button give the same view again.
// What is a default is left out. read() accepts anything and ignores what it does not understand; read(write(x)) equals x.

import type { Span } from "../charts/zoom";
import { kMaxText, readList, writeList, type ListState } from "../data/liststate";
import { readNodes, writeNodes, type NodesState } from "../data/nodestate";
import { kYearGroups, positive, readMonth, readPeriod, writeMonth, type Month, type YearGroup } from "../data/period";
import { readTable, writeTable, type TableState } from "../tables/tablestate";
import { readOverview, writeOverview, type OverviewState } from "./overview/overviewstate";

/** What identifies a run. */
export interface UnitId {
  cluster: string;
  uuid: string;
  started: number | null; // ms
}
export const kMaxCompared = 6;

export type Route =
  | { page: "overview"; overview: OverviewState }
  | { page: "projects"; month: Month | null }
  | { page: "project"; cluster: string; name: string; month: Month | null } // an empty cluster: all
  | { page: "user"; name: string; month: Month | null }
  | { page: "jobs"; list: ListState }
  | { page: "unit"; cluster: string; uuid: string; started: number | null; span: Span | null } // span: what the charts show
  | { page: "compare"; units: UnitId[]; share: boolean } // share: of each run instead of time since its start
  | { page: "help"; at: "profiles" | null }
  | { page: "users"; month: Month | null }
  | { page: "site"; month: Month | null }
  | { page: "nodes"; nodes: NodesState }
  | { page: "node"; cluster: string; host: string; hours: number } // hours: how far back
  | { page: "grid" | "tokens" }
  | { page: "card"; cluster: string; uuid: string | null } // null: the last units
  | { page: "bill"; month: Month | null; cluster: string } // an empty cluster: the site
  | { page: "reports"; kind: string; period: string | null; cluster: string } // a year or a month; null: the present one
  | { page: "year"; year: number | null; by: YearGroup }
  | { page: "budgets" | "idle"; table: TableState }
  | { page: "unknown" };

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
  if (parts.length === 2 && parts[0] === "help" && parts[1] === "numbers") return { page: "help", at: null };
  if (parts.length === 2 && parts[0] === "help" && parts[1] === "profiles") return { page: "help", at: "profiles" };
  const month = readMonth(query.get("month"));
  if (parts[0] === "projects" && parts.length === 1) return { page: "projects", month };
  if (parts[0] === "project" && parts.length === 3 && parts[2]) return { page: "project", cluster: parts[1] ?? "", name: parts[2], month };
  if (parts[0] === "user" && parts.length === 2 && parts[1]) return { page: "user", name: parts[1], month };
  return readSite(parts, query) ?? { page: "unknown" };
}

/** The pages of the whole site, and what is shown elsewhere. */
function readSite(parts: readonly string[], query: URLSearchParams): Route | null {
  const [page, cluster, host] = parts;
  if (parts.length === 1 && (page === "users" || page === "site")) return { page, month: readMonth(query.get("month")) };
  if (parts.length === 1 && page === "nodes") return { page, nodes: readNodes(query) };
  if (parts.length === 1 && (page === "grid" || page === "tokens")) return { page };
  if (page === "card" && (parts.length === 1 || parts.length === 3)) return { page, cluster: cluster ?? "", uuid: host || null };
  if (parts.length === 1 && page === "bill") return { page, month: readMonth(query.get("month")), cluster: (query.get("cluster") ?? "").slice(0, kMaxText) };
  if (parts.length === 1 && page === "reports") {
    const kind = /^[a-z][a-z0-9-]{0,31}$/.exec(query.get("kind") ?? "");
    const period = /^[1-9]\d{3}(-(0[1-9]|1[0-2]))?$/.exec(query.get("period") ?? "");
    return { page, kind: kind?.[0] ?? kReportKind, period: period?.[0] ?? null, cluster: (query.get("cluster") ?? "").slice(0, kMaxText) };
  }
  if (parts.length === 1 && page === "year") {
    const year = /^[1-9]\d{3}$/.exec(query.get("year") ?? "");
    return { page, year: year ? Number(year[0]) : null, by: kYearGroups.find((by) => by === query.get("by")) ?? "project" };
  }
  if (parts.length === 1 && (page === "budgets" || page === "idle")) return { page, table: readTable(query) };
  if (parts.length === 3 && page === "node" && cluster && host) {
    const period = readPeriod(query);
    const hours = period?.kind === "hours" ? Math.min(period.hours, kMaxNodeHours) : kNodeHours;
    return { page, cluster, host, hours };
  }
  return null;
}

const kReportKind = "year";
const kNodeHours = 24;
const kMaxNodeHours = 31 * 24; // what the server has

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
      return route.at === null ? "#/help/numbers" : `#/help/${route.at}`;
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
    case "tokens":
      return `#/${route.page}`;
    case "bill": {
      const query = new URLSearchParams(writeMonth(route.month));
      if (route.cluster) query.set("cluster", route.cluster);
      return asked("#/bill", query);
    }
    case "reports": {
      const query = new URLSearchParams();
      if (route.kind !== kReportKind) query.set("kind", route.kind);
      if (route.period !== null) query.set("period", route.period);
      if (route.cluster) query.set("cluster", route.cluster);
      return asked("#/reports", query);
    }
    case "year": {
      const query = new URLSearchParams();
      if (route.year !== null) query.set("year", String(route.year));
      if (route.by !== "project") query.set("by", route.by);
      return asked("#/year", query);
    }
    case "budgets":
    case "idle":
      return `#/${route.page}${writeTable(route.table)}`;
    case "card":
      return route.uuid === null ? "#/card" : `#/card/${idOf({ ...route, uuid: route.uuid, started: null })}`;
    case "unknown":
      return "#/unknown";
  }
}

export function unitAddress(cluster: string, uuid: string, started: number | null): string {
  return `#/unit/${idOf({ cluster, uuid, started })}`;
}

const asked = (address: string, query: URLSearchParams): string => (query.size ? `${address}?${query}` : address);

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
  return [...units.values()].slice(0, kMaxCompared);
}

function part(text: string): string {
  return encodeURIComponent(wellFormed(text));
}

function readSpan(text: string | null): Span | null {
  const match = /^(\d{1,16})\.\.(\d{1,16})$/.exec(text ?? "");
  const span = match && { from: Number(match[1]), to: Number(match[2]) };
  return span && span.from < span.to ? span : null;
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
