// Lists of units, a page at a time: from the server's own lists, or, where a server has none, from all units of the period.

import { kRanges, windowOf, type ChoiceKey, type HeatAxis, type ListState, type RangeKey } from "../pages/address";
import { ApiError, type Api, type Query, type Unit, type View } from "./api";
import { csv } from "./csv";
import { t } from "../text/i18n";
import { ServerList } from "./serverlist";
import { isRunning, matches, sorted, toRow, totals, type Row, type Totals } from "./units";

/** Rows of a page, and cards where the screen is narrow. */
export const kPageRows = 100;
export const kPageCards = 20;

export interface Page {
  rows: Row[];
  next: string | null; // cursors
  previous: string | null;
  serverTime: number; // ms
  warnings: string[]; // of the server
  notes: string[]; // what the reader should know about the list
}

export interface Facet {
  value: string;
  count: number;
}

export interface Summary {
  totals: Totals;
  facets: Partial<Record<ChoiceKey, Facet[]>>; // the most frequent values
}

/** How many units use how much of two things. */
export interface Heat {
  bins: number; // from 0 to 100 %
  cells: HeatCell[]; // those that are not empty
}
export interface HeatCell {
  x: number;
  y: number;
  count: number;
  kwh: number | null;
}

export interface ListSource {
  /** `fresh`: ask the server again, although the filters are the same. */
  page(list: ListState, view: View, size: number, fresh: boolean, signal: AbortSignal): Promise<Page>;
  summary(list: ListState, view: View, signal: AbortSignal): Promise<Summary>;
  /** null: the server has none. */
  heat(list: ListState, view: View, axis: HeatAxis, signal: AbortSignal): Promise<Heat | null>;
  /** The whole list as CSV. */
  file(list: ListState, view: View): Promise<Blob>;
}

/** The lists of the server, or our own if it has none. */
export class Lists implements ListSource {
  private source: ListSource;

  constructor(private readonly api: Api) {
    this.source = new ServerList(api);
  }

  page(list: ListState, view: View, size: number, fresh: boolean, signal: AbortSignal): Promise<Page> {
    return this.either((source) => source.page(list, view, size, fresh, signal));
  }

  summary(list: ListState, view: View, signal: AbortSignal): Promise<Summary> {
    return this.either((source) => source.summary(list, view, signal));
  }

  heat(list: ListState, view: View, axis: HeatAxis, signal: AbortSignal): Promise<Heat | null> {
    return this.either((source) => source.heat(list, view, axis, signal));
  }

  file(list: ListState, view: View): Promise<Blob> {
    return this.either((source) => source.file(list, view));
  }

  private async either<T>(ask: (source: ListSource) => Promise<T>): Promise<T> {
    try {
      return await ask(this.source);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      // Page and summary may both find out.
      if (this.source instanceof ServerList) this.source = new LocalList(this.api);
      return ask(this.source);
    }
  }
}

/** The filters apart from the period. */
export function wanted(row: Row, list: ListState): boolean {
  if (list.show !== "all" && isRunning(row) !== (list.show === "running")) return false;
  const { choices, ranges } = list;
  const among = (values: readonly string[], value: string) => values.length === 0 || values.includes(value);
  if (!among(choices.state, row.rawState) || !among(choices.project, row.project)) return false;
  if (!among(choices.cluster, row.cluster) || !among(choices.user, row.owner) || choices.partition.length > 0 || choices.advice.length > 0) return false;
  const values: Record<RangeKey, number | null> = {
    cpu: row.cpuPercent,
    mem: row.memoryPercent,
    gpu: row.gpuPercent,
    kwh: row.energyKwh,
    unused: row.unusedKwh,
    wall: row.elapsed,
  };
  for (const key of kRanges) {
    const { least, most } = ranges[key];
    if (least === null && most === null) continue;
    const value = values[key];
    if (value === null || value < (least ?? -Infinity) || value > (most ?? Infinity)) return false;
  }
  return matches(row, list.q);
}

// Only the fields that the table needs, because a site has many units.
const kFields = [
  "cluster_id", "uuid", "name", "project", "username", "started_at_ts", "ended_at_ts", "elapsed", "state", "allocation",
  "total_time_seconds", "avg_cpu_usage", "avg_cpu_mem_usage", "avg_gpu_usage", "total_cpu_energy_usage_kwh", "total_gpu_energy_usage_kwh",
  "total_cpu_emissions_gms", "total_gpu_emissions_gms",
];
/** The most that the server returns at once, and what a browser handles at ease. */
export const kMostUnits = 5000;
const kFacetValues = 20;

function facet(rows: readonly Row[], of: (row: Row) => string): Facet[] {
  const counts = new Map<string, number>();
  for (const row of rows) if (of(row)) counts.set(of(row), (counts.get(of(row)) ?? 0) + 1);
  return [...counts]
    .map(([value, n]) => ({ value, count: n }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
    .slice(0, kFacetValues);
}

/** Sorts and filters here what the server returns for the period. */
export class LocalList implements ListSource {
  private question = "";
  private pending: { question: string; done: Promise<void> } | null = null;
  private units: Unit[] = [];
  private serverTime = 0;
  private warnings: string[] = [];
  private cut = false;

  constructor(private readonly api: Api) {}

  async page(list: ListState, view: View, size: number, fresh: boolean, signal: AbortSignal): Promise<Page> {
    await this.load(list, view, fresh, signal);
    const rows = sorted(this.rows().filter((row) => wanted(row, list)), list.sort, list.descending);
    const notes = [t("list.older")];
    if (this.cut) {
      notes.push(t("list.cut", { n: kMostUnits }));
    }
    const at = Math.min(Number(list.cursor) || 0, Math.max(0, rows.length - 1));
    return {
      rows: rows.slice(at, at + size),
      next: at + size < rows.length ? String(at + size) : null,
      previous: at > 0 ? String(Math.max(0, at - size)) : null,
      serverTime: this.serverTime,
      warnings: this.warnings,
      notes,
    };
  }

  async summary(list: ListState, view: View, signal: AbortSignal): Promise<Summary> {
    await this.load(list, view, false, signal);
    const all = this.rows();
    return {
      totals: totals(all.filter((row) => wanted(row, list))),
      facets: {
        state: facet(all, (row) => row.rawState),
        project: facet(all, (row) => row.project),
        cluster: facet(all, (row) => row.cluster),
        user: facet(all, (row) => row.owner),
      },
    };
  }

  async heat(): Promise<Heat | null> {
    return null;
  }

  async file(list: ListState, view: View): Promise<Blob> {
    await this.load(list, view, false);
    const rows = sorted(this.rows().filter((row) => wanted(row, list)), list.sort, list.descending);
    return new Blob([rowsCsv(rows)], { type: "text/csv" });
  }

  private rows(): Row[] {
    return this.units.map((unit) => toRow(unit, this.serverTime));
  }

  private async load(list: ListState, view: View, fresh: boolean, signal?: AbortSignal): Promise<void> {
    const { from, to } = windowOf(list.period, Date.now());
    const query: Query = [["from", String(from)], ["to", String(to)], ["sort", "ended_at"], ["limit", String(kMostUnits)]];
    if (list.show !== "ended") query.unshift(["running", "1"]);
    for (const field of kFields) query.push(["field", field]);
    const question = `${view} ${new URLSearchParams(query)}`;
    if (!fresh && this.pending?.question === question) return this.pending.done;
    if (!fresh && question === this.question) return;
    const done = this.ask(question, view, query, signal);
    this.pending = { question, done };
    try {
      await done;
    } finally {
      if (this.pending?.done === done) this.pending = null;
    }
  }

  private async ask(question: string, view: View, query: Query, signal?: AbortSignal): Promise<void> {
    const answer = await this.api.units(view, query, signal);
    this.question = question;
    this.units = answer.data;
    this.serverTime = answer.serverTime;
    this.warnings = answer.warnings;
    this.cut = answer.next !== null;
  }
}

const kCsvColumns = [
  "cluster_id", "uuid", "name", "username", "project", "state", "started_at_ts", "ended_at_ts", "elapsed_seconds", "cpus", "cpu_percent",
  "memory_bytes", "memory_percent", "gpus", "gpu_percent", "energy_kwh", "emissions_grams",
];

/** Rows that the page has, as a file. */
export function rowsCsv(rows: readonly Row[]): string {
  return csv(kCsvColumns, rows.map(csvRow));
}

function csvRow(row: Row): (string | number | null)[] {
  return [
    row.cluster, row.uuid, row.name, row.owner, row.project, row.rawState, row.started, row.ended, row.elapsed, row.cpus, row.cpuPercent,
    row.memoryLimit, row.memoryPercent, row.gpus, row.gpuPercent, row.energyKwh, row.emissionGrams,
  ];
}
