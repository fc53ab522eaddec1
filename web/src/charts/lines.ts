// The geometry of lines over time, for charts that are drawn as SVG.

import { axisStep, type Track } from "./series";

export interface Box {
  width: number;
  height: number;
  left: number; // room for the marks of the axis
}

export interface Scale {
  top: number; // the value at the upper edge
  marks: number[];
}

/** Marks from 0 to at least the highest value. */
export function scaleOf(highest: number, binary: boolean): Scale {
  const step = axisStep(highest || 1, 4, binary);
  const count = Math.max(1, Math.ceil((highest * 1.02) / step - 1e-9));
  return { top: count * step, marks: Array.from({ length: count + 1 }, (_, i) => i * step) };
}

const short = (value: number) => Math.round(value * 10) / 10;

/** The path of a track between two moments; gaps stay open, and a reading without neighbours is a dot. */
export function pathOf(track: Track, from: number, to: number, top: number, box: Box): string {
  const x = (time: number) => short(box.left + ((time - from) / Math.max(1, to - from)) * (box.width - box.left));
  const y = (value: number) => short(box.height * (1 - Math.min(1, Math.max(0, value / top))));
  let path = "";
  let drawing = false;
  track.times.forEach((time, i) => {
    const value = track.values[i];
    if (typeof value !== "number" || time < from || time > to) {
      drawing = false;
      return;
    }
    const next = track.values[i + 1];
    path += `${drawing ? "L" : "M"}${x(time)} ${y(value)}`;
    if (!drawing && (typeof next !== "number" || track.times[i + 1]! > to)) path += "h0.1";
    drawing = true;
  });
  return path;
}

export function highestOf(tracks: readonly Track[]): number {
  let highest = 0;
  for (const track of tracks) for (const value of track.values) if (value !== null && value > highest) highest = value;
  return highest;
}

/** The reading next to a moment, not further away than `reach`; null: there is none. */
export function readingAt(track: Track, time: number, reach: number): number | null {
  let best: number | null = null;
  let distance = reach;
  track.times.forEach((t, i) => {
    const value = track.values[i];
    if (typeof value !== "number" || Math.abs(t - time) > distance) return;
    distance = Math.abs(t - time);
    best = value;
  });
  return best;
}
