// Lines of many devices over one time axis, as strips below each other.

import type { Series } from "../data/api";
import { toTrack, type Track } from "./series";

export interface Strip {
  key: string;
  labels: Record<string, string>;
  track: Track;
  mean: number | null;
}

function meanOf(track: Track): number | null {
  let [sum, known] = [0, 0];
  for (const value of track.values) {
    if (value === null) continue;
    sum += value;
    known++;
  }
  return known ? sum / known : null;
}

/** The lines of one chart, the least used first; quantiles stay in their order. */
export function stripsOf(series: readonly Series[], name: string): Strip[] {
  const strips = series
    .filter((line) => line.name === name && line.points.length > 0)
    .map((line) => {
      const track = toTrack(line);
      const labels = line.labels ?? {};
      return { key: JSON.stringify(labels), labels, track, mean: meanOf(track) };
    });
  return strips.some((strip) => strip.labels.quantile !== undefined) ? strips : strips.sort((a, b) => (a.mean ?? 0) - (b.mean ?? 0));
}

/** The area below a track between two moments, 100 high and 1000 wide: every reading holds until the next, gaps stay open. Readings beside each
 * other are one outline, which is drawn in a fraction of the time of a shape for each. */
export function areaOf(track: Track, from: number, to: number, top: number): string {
  const x = (time: number) => Math.round(((Math.min(Math.max(time, from), to) - from) / Math.max(1, to - from)) * 1000);
  const y = (value: number) => Math.round(100 * (1 - Math.min(1, Math.max(0, value / top))));
  const step = (track.times[1] ?? to) - (track.times[0] ?? from);
  let path = "";
  let end = -1; // of the outline so far
  let height = -1;
  track.times.forEach((time, i) => {
    const value = track.values[i];
    if (typeof value !== "number" || time > to || time < from - step) return;
    const [begin, next, level] = [x(time), x(track.times[i + 1] ?? time + step), y(value)];
    if (next <= begin) return;
    if (begin !== end) path += `${end < 0 ? "" : `H${end}V100Z`}M${begin} 100V${level}`;
    else if (level !== height) path += `H${begin}V${level}`;
    [end, height] = [next, level];
  });
  return end < 0 ? "" : `${path}H${end}V100Z`;
}

/** Since when a strip has been below `least`, to its last reading; null: it is not, or nothing was read. */
export function lowSince({ track }: Strip, least: number): number | null {
  let since: number | null = null;
  for (let i = track.times.length - 1; i >= 0; i--) {
    const value = track.values[i];
    if (typeof value !== "number") continue; // a gap says nothing
    if (value >= least) break;
    since = track.times[i]!;
  }
  return since;
}
