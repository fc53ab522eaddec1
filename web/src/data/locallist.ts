// Lists for a server that has none: all units of the period, sorted, filtered and cut into pages here.

import { kRanges, type ListState, type RangeKey } from "./liststate";
import { windowOf } from "./period";
import type { Api, Query, Unit, View } from "./api";
import { t } from "../text/i18n";
import { rowsCsv, type Facet, type Heat, type ListSource, type Page, type Summary } from "./list";
import { isRunning, matches, sorted, toRow, totals, type Row } from "./units";

/** The filters apart from the period. */
export function wanted(row: Row, list: ListState): boolean {
  if (list.show === "running" ? row.kind !== "running" : list.show === "ended" && isRunning(row)) return false;
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
    not_used: row.notUsedKwh,
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
export const kMaxUnits = 5000;
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
  private pending: { question: string; done: Promise<void>; signal: AbortSignal | undefined } | null = null;
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
      notes.push(t("list.cut", { n: kMaxUnits }));
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
    const query: Query = [["from", String(from)], ["to", String(to)], ["sort", "ended_at"], ["limit", String(kMaxUnits)]];
    if (list.show !== "ended") query.unshift(["running", "1"]);
    for (const field of kFields) query.push(["field", field]);
    const question = `${view} ${new URLSearchParams(query)}`;
    // What its own asker gave up never comes.
    if (!fresh && this.pending?.question === question && !this.pending.signal?.aborted) return this.pending.done;
    if (!fresh && question === this.question) return;
    const done = this.ask(question, view, query, signal);
    this.pending = { question, done, signal };
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
