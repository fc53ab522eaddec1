// What a list of units is, wherever it comes from: a page of rows at a time, and what all of them add up to.

import { csv } from "./csv";
import type { ChoiceKey, HeatAxis, ListState } from "./liststate";
import type { View } from "./api";
import type { Row, Totals } from "./units";

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
  /** `fresh`: ask the server again, although the filters are the same. `shown`: keys of the columns that the reader sees. */
  page(list: ListState, view: View, size: number, fresh: boolean, signal: AbortSignal, shown?: readonly string[]): Promise<Page>;
  summary(list: ListState, view: View, signal: AbortSignal): Promise<Summary>;
  /** null: the server has none. */
  heat(list: ListState, view: View, axis: HeatAxis, signal: AbortSignal): Promise<Heat | null>;
  /** The whole list as CSV. */
  file(list: ListState, view: View): Promise<Blob>;
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
