// The parts of a sum over time, on one another.

import type { Series } from "../data/api";
import { toTrack, type Track } from "./series";

export interface Part {
  label: string;
  values: (number | null)[]; // at the times of the sum
  upTo: (number | null)[]; // with all parts below it
}

const kLeastKnown = 0.5;

/** The parts from the lowest to the highest, at the times of the sum. None where there are fewer than two, or where most readings are of other times. */
export function stackOf(sum: Track, parts: readonly { label: string; series: Series }[]): Part[] {
  const stack: Part[] = [];
  let known = 0;
  for (const { label, series } of parts) {
    const track = toTrack(series);
    const at = new Map(track.times.map((time, i) => [time, track.values[i] ?? null]));
    const values = sum.times.map((time, i) => (sum.values[i] === null ? null : (at.get(time) ?? null)));
    if (values.every((value) => value === null)) continue;
    known = Math.max(known, values.filter((value) => value !== null).length);
    const below = stack.at(-1)?.upTo;
    stack.push({ label, values, upTo: values.map((value, i) => (value === null ? (below?.[i] ?? null) : (below?.[i] ?? 0) + value)) });
  }
  return stack.length > 1 && known >= kLeastKnown * sum.times.length ? stack : [];
}
