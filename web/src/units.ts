// State, sums, filters and order of units. Does not use the DOM.

import type { MetricMap, Unit } from "./api";
import { emissionsOf, type Source } from "./emissions";

export type StateKind = "running" | "done" | "failed" | "cancelled" | "waiting" | "ended";

/** The kind determines shape and colour; the state from the resource manager is shown beside it. */
export function stateKind(unit: Unit): StateKind {
  const word = (unit.state ?? "").toUpperCase();
  if (/^(COMPLETED|COMPLETING|SUCCEEDED|SUCCESS|DONE$|FINISHED$)/.test(word)) return "done";
  if (/^(FAILED|NODE_FAIL|OUT_OF_ME|TIMEOUT|BOOT_FAIL|DEADLINE|ERROR|PREEMPTED|OOM|EXIT$)/.test(word)) return "failed";
  if (/^(CANCELLED|DELETED|REVOKED)/.test(word)) return "cancelled";
  if (unit.ended_at_ts) return "ended";
  if (!unit.started_at_ts || /^(PENDING|BUILD|CONFIGURING)/.test(word)) return "waiting";
  return "running";
}

/** "OUT_OF_MEMORY" becomes "Out of memory"; user names in states stay unchanged. */
export function stateText(unit: Unit): string {
  const text = (unit.state ?? "").trim();
  if (!text) return unit.ended_at_ts ? "Ended" : unit.started_at_ts ? "Running" : "Not started";
  const [word = "", ...rest] = text.split(" ");
  const plain = /^[A-Z_]+$/.test(word) ? word.toLowerCase().replaceAll("_", " ") : word;
  return [plain.charAt(0).toUpperCase() + plain.slice(1), ...rest].join(" ");
}

/** Identifies a run, because resource managers reuse identifiers. */
export function unitKey(unit: Unit): string {
  return `${unit.cluster_id ?? ""}/${unit.uuid}/${unit.started_at_ts ?? 0}`;
}

export interface Row {
  key: string;
  unit: Unit;
  kind: StateKind;
  state: string;
  name: string;
  owner: string;
  started: number | null; // ms
  elapsed: number | null; // s
  cpuPercent: number | null; // of the allocation
  cpuSeconds: number | null;
  memoryPercent: number | null;
  memoryLimit: number | null; // bytes
  energyKwh: number | null; // CPU and GPU
  emissionGrams: number | null;
  emissionSource: Source | null;
}

function value(map: MetricMap | undefined, key: string): number | null {
  const found = map?.[key];
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}

/** Sum of the known values; null if there are none. */
function sum(...values: (number | null)[]): number | null {
  const known = values.filter((v) => v !== null);
  return known.length ? known.reduce((a, b) => a + b, 0) : null;
}

/** Seconds of "[D-]HH:MM:SS"; null for anything else. */
export function elapsedSeconds(text: string | undefined): number | null {
  const match = /^(?:(\d+)-)?(\d+):(\d\d):(\d\d)$/.exec(text ?? "");
  if (!match) return null;
  const [, days = "0", hours, minutes, seconds] = match;
  return ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
}

export function toRow(unit: Unit, now: number): Row {
  const started = unit.started_at_ts || null;
  const kind = stateKind(unit);
  const fromClock = started === null ? null : Math.max(0, ((unit.ended_at_ts || now) - started) / 1000);
  const cpu = emissionsOf(unit.total_cpu_emissions_gms)[0];
  const gpu = emissionsOf(unit.total_gpu_emissions_gms).find((e) => !cpu || e.source.key === cpu.source.key);
  const memory = unit.allocation?.mem;
  return {
    key: unitKey(unit),
    unit,
    kind,
    state: stateText(unit),
    name: unit.name || unit.uuid,
    owner: unit.username ?? "",
    started,
    // The resource manager does not count suspended time, so its value is used once it is final.
    elapsed: unit.ended_at_ts ? (elapsedSeconds(unit.elapsed) ?? fromClock) : fromClock,
    cpuPercent: value(unit.avg_cpu_usage, "global"),
    cpuSeconds: value(unit.total_time_seconds, "used_cputime"),
    memoryPercent: value(unit.avg_cpu_mem_usage, "global"),
    memoryLimit: typeof memory === "number" && memory > 0 ? memory : null,
    energyKwh: sum(value(unit.total_cpu_energy_usage_kwh, "total"), value(unit.total_gpu_energy_usage_kwh, "total")),
    emissionGrams: sum(cpu?.grams ?? null, gpu?.grams ?? null),
    emissionSource: cpu?.source ?? gpu?.source ?? null,
  };
}

export type Show = "all" | "running" | "ended";

export function isRunning(row: Row): boolean {
  return row.kind === "running" || row.kind === "waiting";
}

/** Every word of the text must occur in name, identifier, owner, project, cluster or state. */
export function matches(row: Row, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const { unit } = row;
  const hay = [row.name, unit.uuid, row.owner, unit.project, unit.cluster_id, row.state].join("\n").toLowerCase();
  return words.every((word) => hay.includes(word));
}

export type Column = "name" | "owner" | "state" | "started" | "elapsed" | "cpu" | "memory" | "energy" | "emissions";

export interface Order {
  column: Column;
  descending: boolean;
}

const kStateOrder: readonly StateKind[] = ["running", "waiting", "failed", "cancelled", "ended", "done"];
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function sortValue(row: Row, column: Column): string | number | null {
  switch (column) {
    case "name":
      return row.name;
    case "owner":
      return row.owner;
    case "state":
      return kStateOrder.indexOf(row.kind);
    case "started":
      return row.started;
    case "elapsed":
      return row.elapsed;
    case "cpu":
      return row.cpuPercent;
    case "memory":
      return row.memoryPercent;
    case "energy":
      return row.energyKwh;
    case "emissions":
      return row.emissionGrams;
  }
}

/** A sorted copy. Rows without a value come last in both directions; ties by start, newest first, then by key. */
export function sorted(rows: readonly Row[], order: Order): Row[] {
  const sign = order.descending ? -1 : 1;
  return [...rows].sort((x, y) => {
    const a = sortValue(x, order.column);
    const b = sortValue(y, order.column);
    if (a === null || b === null) {
      if (a !== b) return a === null ? 1 : -1;
    } else {
      const by = typeof a === "string" ? collator.compare(a, String(b)) : a - Number(b);
      if (by !== 0) return sign * by;
    }
    return (y.started ?? 0) - (x.started ?? 0) || (x.key < y.key ? -1 : 1);
  });
}

export interface Totals {
  units: number;
  running: number;
  cpuSeconds: number | null;
  cpuPercent: number | null; // weighted by allocated CPU time
  memoryPercent: number | null; // weighted by allocated memory time
  energyKwh: number | null;
  emissionGrams: number | null;
}

export function totals(rows: readonly Row[]): Totals {
  const mean = (of: (row: Row) => number | null, weightKey: string) => {
    let weights = 0;
    let weighted = 0;
    for (const row of rows) {
      const v = of(row);
      const weight = value(row.unit.total_time_seconds, weightKey) ?? 0;
      if (v === null || weight <= 0) continue;
      weights += weight;
      weighted += v * weight;
    }
    return weights > 0 ? weighted / weights : null;
  };
  return {
    units: rows.length,
    running: rows.filter(isRunning).length,
    cpuSeconds: sum(...rows.map((row) => row.cpuSeconds)),
    cpuPercent: mean((row) => row.cpuPercent, "alloc_cputime"),
    memoryPercent: mean((row) => row.memoryPercent, "alloc_cpumemtime"),
    energyKwh: sum(...rows.map((row) => row.energyKwh)),
    emissionGrams: sum(...rows.map((row) => row.emissionGrams)),
  };
}
