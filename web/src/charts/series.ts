// Prepares measured values over time for a chart, a sentence and a table.

import type { Series } from "../data/api";
import { t } from "../text/i18n";

export interface Track {
  times: number[]; // ms, ascending
  values: (number | null)[]; // null: no reading, the line has a gap
}

/** Drops values that are not numbers, and leaves a gap where at least two readings are missing. */
export function toTrack(series: Series | undefined): Track {
  // There are thousands of readings, which the server sends in order: they are looked at in place.
  let points = series?.points ?? [];
  if (!inOrder(points)) points = points.filter(([t]) => Number.isFinite(t)).sort(([a], [b]) => a - b);
  const step = stepOf(points);
  const track: Track = { times: [], values: [] };
  let before = Infinity;
  for (let i = 0; i < points.length; i++) {
    const point = points[i]!;
    const t = point[0];
    const v = point[1];
    if (step > 0 && t - before > 2.5 * step) {
      track.times.push(before + step);
      track.values.push(null);
    }
    track.times.push(t);
    track.values.push(v !== null && Number.isFinite(v) ? v : null);
    before = t;
  }
  return track;
}

function inOrder(points: Series["points"]): boolean {
  for (let i = 0, before = -Infinity; i < points.length; i++) {
    const t = points[i]![0];
    if (!Number.isFinite(t) || t < before) return false;
    before = t;
  }
  return true;
}

/** The usual time between two readings: the median, which is not looked for where all are the same. */
function stepOf(points: Series["points"]): number {
  const steps = new Float64Array(Math.max(0, points.length - 1));
  let same = true;
  for (let i = 1; i < points.length; i++) {
    steps[i - 1] = points[i]![0] - points[i - 1]![0];
    same &&= steps[i - 1] === steps[0];
  }
  return (same ? steps[0] : steps.sort()[steps.length >> 1]) ?? 0;
}

export interface Summary {
  readings: number;
  lowest: number;
  mean: number;
  highest: number;
}

export function summary(track: Track): Summary | null {
  const known = track.values.filter((v) => v !== null);
  if (!known.length) return null;
  return {
    readings: known.length,
    lowest: Math.min(...known),
    mean: known.reduce((a, b) => a + b, 0) / known.length,
    highest: Math.max(...known),
  };
}

/** The distance between axis marks for about `marks` of them: at 1, 2 or 5 times a power of ten, or at powers of two for bytes. */
export function axisStep(highest: number, marks: number, binary: boolean): number {
  const rough = highest / marks;
  if (!(rough > 0)) return 1;
  if (binary) return 2 ** Math.ceil(Math.log2(rough));
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9))!;
}

/** Why a chart is empty, as far as the server says it. */
export function whyNone(series: Series | undefined, what: string): string {
  const { none, collector = "" } = series ?? {};
  if (none === "too_short") return t("chart.tooShort", { what });
  if (none !== "not_collected") return t("chart.noReadings", { what });
  return collector === "" ? t("chart.notCollected", { what }) : t("chart.noCollector", { what, collector });
}
