// Lists that the server sorts, filters and cuts into pages: docs/api/lists.md.

import { kChoices, kRanges, oneOf, writeRange, type ChoiceKey, type HeatAxis, type ListState } from "./liststate";
import { windowOf } from "./period";
import { ApiError, pathOf, scopeOf, type Api, type Query, type View } from "./api";
import { t } from "../text/i18n";
import type { Facet, Heat, ListSource, Page, Summary } from "./list";
import { readStrip } from "./strip";
import { kVerdicts, stateKind, stateText, type Row } from "./units";

const kColumns = [
  "cluster_id", "uuid", "array", "started", "name", "user", "project", "state", "ended", "wall", "cpus", "gpus", "memory", "cpu", "mem", "gpu", "kwh", "grams", "unused", "not_used", "verdict", "advice",
] as const;
/** The columns of the server that a column of the page needs besides. */
const kMore: Record<string, string> = { waited: "created", nodes: "nodes", partition: "partition", peak: "peak", cost: "cost", strip: "strip" };

const kParameters: Record<ChoiceKey, string> = { state: "state", project: "project", cluster: "cluster_id", user: "user", partition: "partition", advice: "advice" };

/** The filters and the period as parameters. */
export function filterQuery(list: ListState, view: View, now: number): Query {
  const query: Query = [];
  const words = list.q.trim();
  // A search for words may go without a period; anything else needs one.
  if (list.period.kind !== "all" || words === "") {
    const { from, to } = windowOf(list.period, now);
    query.push(["from", String(from)], ["to", String(to)]);
  }
  if (list.show !== "ended") query.push(["running", "1"]);
  if (words !== "") query.push(["q", words]);
  const states = list.choices.state;
  if (list.show === "running" && states.length === 0) query.push(["state", "running"]);
  for (const key of kChoices) for (const value of list.choices[key]) query.push([kParameters[key], value]);
  for (const key of kRanges) {
    const range = writeRange(list.ranges[key]);
    if (range) query.push([key, range]);
  }
  return [...query, ...scopeOf(view)];
}

export interface ListAnswer {
  columns: string[];
  rows: unknown[][];
  partial?: boolean; // older units are still being added
  searched?: string; // "ids": only these
}

type Cell = string | number | null;

/** A row of any order of columns; what has the wrong type counts as unknown. */
export function readRow(columns: readonly string[], cells: readonly unknown[], now: number): Row {
  const cell = (name: string): Cell => {
    const value = cells[columns.indexOf(name)];
    return typeof value === "string" || (typeof value === "number" && Number.isFinite(value)) ? value : null;
  };
  const advice = cells[columns.indexOf("advice")];
  const text = (name: string) => String(cell(name) ?? "");
  const number = (name: string) => {
    const value = cell(name);
    return typeof value === "number" ? value : null;
  };
  const some = (name: string) => number(name) || null; // 0 of these is none
  const started = some("started");
  const ended = some("ended");
  const created = some("created");
  const unit = { uuid: text("uuid"), state: text("state"), started_at_ts: started ?? undefined, ended_at_ts: ended ?? undefined };
  const wall = number("wall");
  const cpus = some("cpus");
  const gpus = some("gpus");
  return {
    key: `${text("cluster_id")}/${unit.uuid}/${started ?? 0}`,
    cluster: text("cluster_id"),
    uuid: unit.uuid,
    shown: text("array") || unit.uuid,
    kind: stateKind(unit),
    state: stateText(unit),
    rawState: unit.state,
    name: text("name") || unit.uuid,
    owner: text("user"),
    project: text("project"),
    started,
    ended,
    // Time that was counted, once it is final; until then the clock.
    elapsed: started === null ? null : ended !== null && wall !== null ? wall : Math.max(0, ((ended ?? now) - started) / 1000),
    cpus,
    cpuPercent: number("cpu"),
    cpuSeconds: null,
    memoryPercent: number("mem"),
    memoryLimit: some("memory"),
    gpus,
    gpuPercent: gpus === null ? null : number("gpu"),
    energyKwh: number("kwh"),
    wall,
    unusedKwh: number("unused"),
    notUsedKwh: number("not_used"),
    emissionGrams: number("grams"),
    emissionSource: null,
    verdict: oneOf(text("verdict"), kVerdicts),
    advice: Array.isArray(advice) ? advice.filter((rule) => typeof rule === "string" && rule !== "good") : [],
    strip: readStrip(text("strip")),
    waited: started !== null && created !== null ? Math.max(0, (started - created) / 1000) : null,
    nodes: some("nodes"),
    partition: text("partition"),
    peakBytes: some("peak"),
    cost: number("cost"),
    cpuWeight: 0,
    memoryWeight: 0,
    gpuWeight: 0,
  };
}

export interface SummaryAnswer {
  count: number;
  running: number;
  kwh: number | null;
  grams: number | null;
  cost: number | null;
  core_hours: number | null;
  core_hours_measured: number | null;
  core_hours_used: number | null;
  gpu_hours: number | null;
  gpu_hours_measured: number | null;
  gpu_hours_used: number | null;
  idle_kwh: number | null;
  idle_of_kwh: number | null;
  not_used_kwh: number | null;
  not_used_of_kwh: number | null;
  facets?: Partial<Record<ChoiceKey, [string | null, number, number | null][]>>;
}

export function readSummary(answer: SummaryAnswer): Summary {
  const share = (used: number | null, measured: number | null) => (used !== null && measured ? (100 * used) / measured : null);
  const facets: Partial<Record<ChoiceKey, Facet[]>> = {};
  for (const key of kChoices) {
    facets[key] = (answer.facets?.[key] ?? []).flatMap(([value, count]) =>
      // What is in brackets is the rest, not a value. The server takes a comma for the end of a value, so it cannot filter by one.
      value === null || value === "" || value.startsWith("(") || value.includes(",") ? [] : [{ value, count }],
    );
  }
  return {
    totals: {
      count: answer.count,
      running: answer.running,
      coreHours: answer.core_hours || null,
      cpuPercent: share(answer.core_hours_used, answer.core_hours_measured),
      memoryPercent: null, // not added up
      gpuHours: answer.gpu_hours || null,
      gpuPercent: share(answer.gpu_hours_used, answer.gpu_hours_measured),
      energyKwh: answer.kwh,
      unusedKwh: answer.idle_kwh,
      unusedOfKwh: answer.idle_of_kwh,
      notUsedKwh: answer.not_used_kwh,
      notUsedOfKwh: answer.not_used_of_kwh,
      emissionGrams: answer.grams,
      cost: answer.cost,
    },
    facets,
  };
}

const kHeatBins = 20;

/** null if the server sent something else. */
export function readHeat(value: unknown): Heat | null {
  const { bins, cells } = (typeof value === "object" && value !== null ? value : {}) as { bins?: unknown; cells?: unknown };
  if (!Number.isInteger(bins) || (bins as number) < 1 || !Array.isArray(cells)) return null;
  const most = (bins as number) - 1;
  const inside = (n: unknown): n is number => Number.isInteger(n) && (n as number) >= 0 && (n as number) <= most;
  return {
    bins: bins as number,
    cells: cells.flatMap((cell: unknown) => {
      const [x, y, count, kwh] = Array.isArray(cell) ? (cell as unknown[]) : [];
      return inside(x) && inside(y) && typeof count === "number" && count > 0 ? [{ x, y, count, kwh: typeof kwh === "number" ? kwh : null }] : [];
    }),
  };
}

export class ServerList implements ListSource {
  constructor(private readonly api: Api) {}

  async page(list: ListState, view: View, size: number, _fresh: boolean, signal: AbortSignal, shown: readonly string[] = []): Promise<Page> {
    const query: Query = [
      ...filterQuery(list, view, Date.now()),
      ["sort", list.sort],
      ["order", list.descending ? "desc" : "asc"],
      ["limit", String(size)],
      ["columns", [...kColumns, ...shown.flatMap((key) => kMore[key] ?? [])].join(",")],
    ];
    if (list.cursor) query.push(["cursor", list.cursor]);
    const answer = await this.api.get<ListAnswer>(pathOf("units/list", view), query, signal);
    const data = answer.data;
    if (data === null || !Array.isArray(data.columns) || !Array.isArray(data.rows)) throw new ApiError(0, t("list.noList"));
    const notes: string[] = [];
    if (data.partial) notes.push(t("list.partial"));
    if (data.searched === "ids") notes.push(t("list.ids"));
    return {
      rows: data.rows.map((row) => readRow(data.columns, row, answer.serverTime)),
      next: answer.next,
      previous: answer.previous,
      serverTime: answer.serverTime,
      warnings: answer.warnings,
      notes,
    };
  }

  async summary(list: ListState, view: View, signal: AbortSignal): Promise<Summary> {
    const query: Query = [...filterQuery(list, view, Date.now()), ["facets", kChoices.join(",")]];
    const answer = await this.api.get<SummaryAnswer>(pathOf("units/summary", view), query, signal);
    if (answer.data === null) throw new ApiError(0, t("list.noSummary"));
    return readSummary(answer.data);
  }

  async heat(list: ListState, view: View, axis: HeatAxis, signal: AbortSignal): Promise<Heat | null> {
    const query: Query = [...filterQuery(list, view, Date.now()), ["heat", `cpu,${axis}`], ["bins", String(kHeatBins)]];
    const answer = await this.api.get<{ heat?: unknown }>(pathOf("units/summary", view), query, signal);
    return readHeat(answer.data?.heat);
  }

  file(list: ListState, view: View): Promise<Blob> {
    const query: Query = [...filterQuery(list, view, Date.now()), ["sort", list.sort], ["order", list.descending ? "desc" : "asc"], ["format", "csv"]];
    return this.api.file(pathOf("units/list", view), query);
  }
}
