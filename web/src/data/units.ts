// State, sums, filters and order of units. Does not use the DOM.

import type { SortKey } from "./liststate";
import type { MetricMap, Unit } from "./api";
import { emissionsOf, type Source } from "./emissions";
import type { Strip } from "./strip";
import { t } from "../text/i18n";

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

export function stateText(unit: Unit): string {
  const text = (unit.state ?? "").trim();
  return text ? stateWords(text) : t(unit.ended_at_ts ? "state.ended" : unit.started_at_ts ? "state.running" : "state.waiting");
}

/** "OUT_OF_MEMORY" becomes "Out of memory"; user names in states stay unchanged. */
export function stateWords(text: string): string {
  const [word = "", ...rest] = text.split(" ");
  const plain = /^[A-Z_]+$/.test(word) ? word.toLowerCase().replaceAll("_", " ") : word;
  return [plain.charAt(0).toUpperCase() + plain.slice(1), ...rest].join(" ");
}

/** What the report of a unit comes to, the worst last. */
export const kVerdicts = ["fits", "smaller", "look"] as const;
export type Verdict = (typeof kVerdicts)[number];

/** Identifies a run, because resource managers reuse identifiers. */
export function unitKey(unit: Unit): string {
  return `${unit.cluster_id ?? ""}/${unit.uuid}/${unit.started_at_ts ?? 0}`;
}

/** The id that squeue and sacct show of a task of an array or a part of a heterogeneous job; of others, their own. */
export function shownId(unit: Unit): string {
  for (const [job, place, mark] of [["array_job", "array_task", "_"], ["het_job", "het_offset", "+"]] as const) {
    const [first, second] = [unit.allocation?.[job], unit.allocation?.[place]];
    if (typeof first === "number" && typeof second === "number") return `${first}${mark}${second}`;
  }
  return unit.uuid;
}

export interface Row {
  key: string;
  cluster: string;
  uuid: string;
  shown: string; // shownId()
  kind: StateKind;
  state: string;
  rawState: string; // as the resource manager writes it
  name: string;
  owner: string;
  project: string;
  started: number | null; // ms
  ended: number | null; // ms
  elapsed: number | null; // s
  cpus: number | null;
  cpuPercent: number | null; // of the allocation
  cpuSeconds: number | null;
  memoryPercent: number | null;
  memoryLimit: number | null; // bytes
  gpus: number | null; // null: none
  gpuPercent: number | null;
  energyKwh: number | null; // CPU and GPU
  wall: number | null; // s in which the energy was used
  unusedKwh: number | null; // idle power of the reservation
  notUsedKwh: number | null; // the part that was not used at that time; null also for units from before it was counted
  emissionGrams: number | null;
  emissionSource: Source | null;
  verdict: Verdict | null; // null: no report yet, or too little was measured
  advice: string[]; // rules that have something to say about it
  // Where a list asks for them
  strip: Strip | null; // use over its life; null also where the reader may not see it
  waited: number | null; // s between submission and start
  nodes: number | null;
  partition: string;
  peakBytes: number | null; // most memory on one node
  cost: number | null;
  // What averages are weighted with: seconds times what was given.
  cpuWeight: number;
  memoryWeight: number;
  gpuWeight: number;
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
  const given = (...keys: string[]) => {
    const found = keys.map((key) => unit.allocation?.[key]).find((v) => typeof v === "number" && v > 0);
    return typeof found === "number" ? found : null;
  };
  const gpus = given("gpus", "vgpus");
  return {
    key: unitKey(unit),
    cluster: unit.cluster_id ?? "",
    uuid: unit.uuid,
    shown: shownId(unit),
    kind,
    state: stateText(unit),
    rawState: unit.state ?? "",
    name: unit.name || unit.uuid,
    owner: unit.username ?? "",
    project: unit.project ?? "",
    started,
    ended: unit.ended_at_ts || null,
    cpus: given("cpus", "vcpus"),
    // The resource manager does not count suspended time, so its value is used once it is final.
    elapsed: unit.ended_at_ts ? (elapsedSeconds(unit.elapsed) ?? fromClock) : fromClock,
    cpuPercent: value(unit.avg_cpu_usage, "global"),
    cpuSeconds: value(unit.total_time_seconds, "used_cputime"),
    memoryPercent: value(unit.avg_cpu_mem_usage, "global"),
    memoryLimit: given("mem"),
    gpus,
    gpuPercent: gpus === null ? null : value(unit.avg_gpu_usage, "global"),
    energyKwh: sum(value(unit.total_cpu_energy_usage_kwh, "total"), value(unit.total_gpu_energy_usage_kwh, "total")),
    wall: value(unit.total_time_seconds, "walltime"),
    unusedKwh: null, // neither is part of these answers
    notUsedKwh: null,
    emissionGrams: sum(cpu?.grams ?? null, gpu?.grams ?? null),
    emissionSource: cpu?.source ?? gpu?.source ?? null,
    verdict: null,
    advice: [],
    strip: null,
    waited: started !== null && unit.created_at_ts ? Math.max(0, (started - unit.created_at_ts) / 1000) : null,
    nodes: given("nodes"),
    partition: typeof unit.tags?.partition === "string" ? unit.tags.partition : "",
    peakBytes: null,
    cost: null,
    cpuWeight: value(unit.total_time_seconds, "alloc_cputime") ?? 0,
    memoryWeight: value(unit.total_time_seconds, "alloc_cpumemtime") ?? 0,
    gpuWeight: value(unit.total_time_seconds, "alloc_gputime") ?? 0,
  };
}

/** Runs or waits. */
export function isRunning(row: Row): boolean {
  return row.kind === "running" || row.kind === "waiting";
}

/** Every word of the text must occur in name, identifier, owner, project, cluster or state. */
export function matches(row: Row, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const hay = [row.name, row.uuid, row.shown, row.owner, row.project, row.cluster, row.state].join("\n").toLowerCase();
  return words.every((word) => hay.includes(word));
}

const kStateOrder: readonly StateKind[] = ["running", "waiting", "failed", "cancelled", "ended", "done"];
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const kRowFields = {
  name: "name", user: "owner", started: "started", wall: "elapsed", cpu: "cpuPercent", mem: "memoryPercent", gpu: "gpuPercent", kwh: "energyKwh", grams: "emissionGrams",
  unused: "unusedKwh", not_used: "notUsedKwh", nodes: "nodes", partition: "partition", peak: "peakBytes",
} as const satisfies Record<Exclude<SortKey, "state" | "ended" | "verdict">, keyof Row>;

function sortValue(row: Row, key: SortKey): string | number | null {
  if (key === "state") return kStateOrder.indexOf(row.kind);
  if (key === "verdict") return row.verdict && kVerdicts.indexOf(row.verdict);
  return key === "ended" ? (row.ended ?? Number.MAX_SAFE_INTEGER) : row[kRowFields[key]]; // what runs is the newest
}

/** A sorted copy. Rows without a value come last in both directions; ties by start, newest first, then by key. */
export function sorted(rows: readonly Row[], key: SortKey, descending: boolean): Row[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((x, y) => {
    const a = sortValue(x, key);
    const b = sortValue(y, key);
    if (a === null || b === null) {
      if (a !== b) return a === null ? 1 : -1;
    } else {
      const by = typeof a === "string" ? collator.compare(a, String(b)) : a - Number(b);
      if (by !== 0) return sign * by;
    }
    return (y.started ?? 0) - (x.started ?? 0) || (x.key < y.key ? -1 : 1);
  });
}

/** What a list adds up to. */
export interface Totals {
  count: number;
  running: number;
  coreHours: number | null; // given
  cpuPercent: number | null; // weighted by allocated CPU time
  memoryPercent: number | null; // weighted by allocated memory time
  gpuHours: number | null; // given; null: no GPUs
  gpuPercent: number | null;
  energyKwh: number | null;
  unusedKwh: number | null;
  unusedOfKwh: number | null; // all energy of the units where it is known
  notUsedKwh: number | null;
  notUsedOfKwh: number | null; // all energy of the units where it is known
  emissionGrams: number | null;
  cost: number | null; // in the currency of the site; null: it has no price
}

export function totals(rows: readonly Row[]): Totals {
  const mean = (of: (row: Row) => number | null, weight: (row: Row) => number) => {
    let weights = 0;
    let weighted = 0;
    for (const row of rows) {
      const v = of(row);
      if (v === null || weight(row) <= 0) continue;
      weights += weight(row);
      weighted += v * weight(row);
    }
    return weights > 0 ? weighted / weights : null;
  };
  const hours = (of: (row: Row) => number) => {
    const seconds = rows.reduce((a, row) => a + of(row), 0);
    return seconds > 0 ? seconds / 3600 : null;
  };
  const all = (of: (row: Row) => number | null) => {
    let found: number | null = null;
    for (const row of rows) {
      const v = of(row);
      if (v !== null) found = (found ?? 0) + v;
    }
    return found;
  };
  return {
    count: rows.length,
    running: rows.filter((row) => row.kind === "running").length,
    coreHours: hours((row) => row.cpuWeight),
    cpuPercent: mean((row) => row.cpuPercent, (row) => row.cpuWeight),
    memoryPercent: mean((row) => row.memoryPercent, (row) => row.memoryWeight),
    gpuHours: hours((row) => row.gpuWeight),
    gpuPercent: mean((row) => row.gpuPercent, (row) => row.gpuWeight),
    energyKwh: all((row) => row.energyKwh),
    unusedKwh: all((row) => row.unusedKwh),
    unusedOfKwh: all((row) => (row.unusedKwh === null ? null : row.energyKwh)),
    notUsedKwh: all((row) => row.notUsedKwh),
    notUsedOfKwh: all((row) => (row.notUsedKwh === null ? null : row.energyKwh)),
    emissionGrams: all((row) => row.emissionGrams),
    cost: null,
  };
}
