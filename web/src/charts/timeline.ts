// The geometry of a time line: rows of bars, lanes where bars overlap, marks of time.

import { zoom, type Span } from "./zoom";

export interface Bar {
  key: string;
  from: number; // ms
  to: number;
}

export interface Placed<B extends Bar> {
  bar: B;
  lane: number;
  x: number;
  width: number;
}

const kMinWidth = 2;

/** Bars that are in the span, in lanes so that none covers another; those beyond the last lane share it. */
export function place<B extends Bar>(bars: readonly B[], span: Span, width: number, lanes: number): { placed: Placed<B>[]; lanes: number } {
  const scale = width / Math.max(1, span.to - span.from);
  const free: number[] = []; // x from which a lane is free
  const placed: Placed<B>[] = [];
  const seen = bars.filter((bar) => bar.to > span.from && bar.from < span.to).sort((a, b) => a.from - b.from || b.to - a.to);
  for (const bar of seen) {
    const x = (Math.max(bar.from, span.from) - span.from) * scale;
    const end = Math.max(x + kMinWidth, (Math.min(bar.to, span.to) - span.from) * scale);
    let lane = free.findIndex((from) => from <= x + 1e-6);
    if (lane < 0) lane = Math.min(free.length, lanes - 1);
    free[lane] = Math.max(free[lane] ?? 0, end);
    placed.push({ bar, lane, x, width: end - x });
  }
  return { placed, lanes: Math.max(1, free.length) };
}

const kMinute = 60_000;
const kSteps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200].map((minutes) => minutes * kMinute);

/** Marks of time, at most `most`, at round times of the zone that is `offset` ms ahead of UTC. */
export function marks(span: Span, most: number, offset: number): number[] {
  const step = kSteps.find((s) => (span.to - span.from) / s <= most) ?? kSteps.at(-1)!;
  const first = Math.ceil((span.from + offset) / step) * step - offset;
  return Array.from({ length: Math.max(0, Math.floor((span.to - first) / step) + 1) }, (_, i) => first + i * step);
}

/** The span moved by a part of its length, inside the whole. */
export function pan(span: Span, whole: Span, part: number): Span {
  const length = span.to - span.from;
  const from = Math.min(Math.max(whole.from, span.from + part * length), whole.to - length);
  return { from: Math.round(from), to: Math.round(from + length) };
}

/** What a key does to the span; null: nothing. */
export function keySpan(key: string, span: Span, whole: Span): Span | null {
  switch (key) {
    case "+":
    case "=":
      return zoom(span, whole, 0.5) ?? whole;
    case "-":
      return zoom(span, whole, 2) ?? whole;
    case "0":
    case "Escape":
      return whole;
    case "PageUp":
      return pan(span, whole, -0.5);
    case "PageDown":
      return pan(span, whole, 0.5);
    default:
      return null;
  }
}

/** The bar to which an arrow leads: left and right in a row, up and down to the bar of the next row with bars that is nearest in time. */
export function neighbour<B extends Bar>(rows: readonly (readonly B[])[], current: string | null, key: string): B | null {
  const sorted = rows.map((bars) => [...bars].sort((a, b) => a.from - b.from));
  const first = sorted.find((bars) => bars.length)?.[0] ?? null;
  const row = sorted.findIndex((bars) => bars.some((bar) => bar.key === current));
  if (row < 0) return first;
  const at = sorted[row]!.findIndex((bar) => bar.key === current);
  const here = sorted[row]![at]!;
  if (key === "ArrowLeft" || key === "ArrowRight") return sorted[row]![at + (key === "ArrowLeft" ? -1 : 1)] ?? here;
  if (key === "Home") return sorted[row]![0]!;
  if (key === "End") return sorted[row]!.at(-1)!;
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const way = key === "ArrowUp" ? -1 : 1;
  for (let next = row + way; next >= 0 && next < sorted.length; next += way) {
    const middle = (bar: B) => (bar.from + bar.to) / 2;
    const bars = sorted[next]!;
    if (bars.length) return bars.reduce((best, bar) => (Math.abs(middle(bar) - middle(here)) < Math.abs(middle(best) - middle(here)) ? bar : best));
  }
  return here;
}
