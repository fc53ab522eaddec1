// Several runs side by side: their series on a common axis, and what is different.

import type { UnitId } from "../address";
import * as format from "../../text/format";
import { t } from "../../text/i18n";
import { toTrack, type Track } from "../../charts/series";
import type { Series } from "../../data/api";
import type { Row } from "../../data/units";

/** A run with what its lists say. */
export interface Compared {
  id: UnitId;
  row: Row;
  peak: number | null; // bytes
  cost: number | null;
  label: string; // tells it from the others
}

/** The axis ends at 100 of the longest run, or of each. */
export const kWhole = 100;

/** A series since the start of its run: in seconds, or in hundredths of the run. */
export function sinceStart(series: Series | undefined, started: number, ended: number, share: boolean): Track {
  const track = toTrack(series);
  const length = Math.max(1, ended - started);
  return { times: track.times.map((time) => (share ? (kWhole * (time - started)) / length : (time - started) / 1000)), values: track.values };
}

/** Names, and identifiers where names are the same. */
export function labelsOf(rows: readonly Pick<Row, "name" | "uuid" | "started">[]): string[] {
  return rows.map((row) => {
    const same = rows.filter((other) => other.name === row.name);
    if (same.length === 1) return row.name;
    const runs = same.filter((other) => other.uuid === row.uuid).length;
    const id = row.name === row.uuid ? row.name : `${row.name} ${row.uuid}`;
    return runs === 1 || row.started === null ? id : `${id}, ${format.moment(row.started, row.started)}`;
  });
}

type Better = "less" | "more" | null;
export const kFields = ["state", "wall", "cpus", "cpu", "memory", "mem", "peak", "gpus", "gpu", "kwh", "unused", "not_used", "grams", "cost"] as const;
export type Field = (typeof kFields)[number];
const kBetter: Record<Field, Better> = {
  state: null, wall: "less", cpus: null, cpu: "more", memory: null, mem: "more", peak: null, gpus: null, gpu: "more", kwh: "less", unused: "less", not_used: "less", grams: "less", cost: "less",
};

const kRowFields = {
  state: "state", wall: "elapsed", cpus: "cpus", cpu: "cpuPercent", memory: "memoryLimit", mem: "memoryPercent", gpus: "gpus", gpu: "gpuPercent", kwh: "energyKwh",
  unused: "unusedKwh", not_used: "notUsedKwh", grams: "emissionGrams",
} as const satisfies Record<Exclude<Field, "peak" | "cost">, keyof Row>;

export function valueOf(of: Compared, field: Field): number | string | null {
  return field === "peak" || field === "cost" ? of[field] : of.row[kRowFields[field]];
}

type Value = number | string | null;
export type Text = (value: Value) => string;

/** How a row writes its values and their differences: in one unit. */
export function textsOf(field: Field, values: readonly Value[], currency = ""): Text {
  const text = kScales[field]?.(values.filter((value) => typeof value === "number"));
  return (value) => (text && typeof value === "number" ? `${text(value)}${field === "grams" ? " CO2e" : ""}` : textOf(field, value, currency));
}
const kScales: Partial<Record<Field, typeof format.energies>> = {
  kwh: format.energies, unused: format.energies, not_used: format.energies, grams: format.masses, memory: format.sizes, peak: format.sizes,
};

function textOf(field: Field, value: Value, currency: string): string {
  if (value === null) return format.kNone;
  if (typeof value === "string") return value;
  switch (field) {
    case "wall":
      return format.duration(value);
    case "cpu":
    case "mem":
    case "gpu":
      return format.percent(value);
    case "cost":
      return format.money(value, currency);
    default:
      return format.number3(value);
  }
}

export interface Difference {
  text: string; // "+3.1 kWh, +12 %"
  word: "better" | "worse" | null;
}

/** Against the first run; null: the same, or one of them is not known. */
export function differenceOf(field: Field, base: Value, value: Value, text: Text): Difference | null {
  if (typeof base !== "number" || typeof value !== "number") return null;
  const delta = value - base;
  const size = text(Math.abs(delta));
  // What looks the same is the same.
  if (text(value) === text(base)) return null;
  const sign = delta > 0 ? "+" : "−";
  const points = field === "cpu" || field === "mem" || field === "gpu";
  const amount = points ? t("compare.points", { value: format.number3(Math.abs(delta)) }) : size;
  const share = points || base === 0 ? "" : `, ${sign}${format.percent((100 * Math.abs(delta)) / Math.abs(base))}`;
  const better = kBetter[field];
  return { text: `${sign}${amount}${share}`, word: better === null ? null : (delta < 0) === (better === "less") ? "better" : "worse" };
}
