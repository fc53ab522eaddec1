// What a list of units is narrowed to and sorted by, and how an address says it.

import { kViews, type View } from "./api";
import { positive, readPeriod, writePeriod, type Period } from "./period";

export type Show = "all" | "running" | "ended";

export const kSortKeys = ["name", "user", "state", "verdict", "started", "ended", "wall", "cpu", "mem", "gpu", "kwh", "grams", "unused", "not_used", "nodes", "partition", "peak"] as const;
export type SortKey = (typeof kSortKeys)[number];

/** Both ends included; null: no limit on that side. */
export interface Range {
  least: number | null;
  most: number | null;
}

export const kRanges = ["cpu", "mem", "gpu", "kwh", "unused", "not_used", "wall"] as const; // percent, percent, percent, kWh, kWh, kWh, seconds
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
  kinds: KindSort | null; // kinds of units are shown in this order, the most first
  thumbnails: boolean; // units are shown by what they used over time
}
export const kHeatAxes = ["mem", "gpu"] as const;
export type HeatAxis = (typeof kHeatAxes)[number];
export const kKindSorts = ["not_used", "unused", "kwh", "units", "ended"] as const;
export type KindSort = (typeof kKindSorts)[number];

const kMaxChoices = 20;
export const kMaxText = 500;
const kAny: Range = { least: null, most: null };

export function defaultList(): ListState {
  return {
    q: "",
    show: "all",
    period: { kind: "hours", hours: 24 },
    view: null,
    choices: { state: [], project: [], cluster: [], user: [], partition: [], advice: [] },
    ranges: { cpu: kAny, mem: kAny, gpu: kAny, kwh: kAny, unused: kAny, not_used: kAny, wall: kAny },
    sort: "ended",
    descending: true,
    cursor: "",
    at: 0,
    heat: null,
    kinds: null,
    thumbnails: false,
  };
}

/** The direction in which a column is sorted first: texts from A, numbers from the greatest, times from the newest. */
export function descendsFirst(key: SortKey): boolean {
  return key !== "name" && key !== "user" && key !== "state" && key !== "partition";
}

/** The first page of a changed list. */
export function changed(list: ListState, change: Partial<ListState>): ListState {
  return { ...list, cursor: "", at: 0, ...change };
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
  list.kinds = list.heat === null ? oneOf(query.get("kinds"), kKindSorts) : null;
  list.thumbnails = list.heat === null && list.kinds === null && query.get("form") === "thumbnails";
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
  if (list.kinds !== null) query.set("kinds", list.kinds);
  if (list.thumbnails) query.set("form", "thumbnails");
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

export function oneOf<T extends string>(text: string | null, values: readonly T[]): T | null {
  return values.find((value) => value === text) ?? null;
}
