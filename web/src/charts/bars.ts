// The geometry of stacked bars.

import { axisStep } from "./series";

export interface Bar {
  x: number;
  width: number;
  total: number | null; // null: nothing was measured
  mark: number | null; // y of the line's value
  parts: { y: number; height: number; group: number }[]; // from the bottom
}

export interface Stack {
  bars: Bar[];
  marks: { y: number; value: number }[]; // of the axis
  limit: number | null; // y
}

/** Bars of `values[group][time]` in a box; y counts from the top. `line` is to be compared with them, `limit` to be kept by each. */
export function stack(
  values: readonly (readonly (number | null)[])[],
  times: number,
  box: { width: number; height: number; left: number },
  line: readonly (number | null)[] = [],
  limit: number | null = null,
): Stack {
  const totals = Array.from({ length: times }, (_, i) => {
    const known = values.map((line) => line[i]).filter((v): v is number => typeof v === "number" && v > 0);
    // Nothing beside what was not measured is not known to be 0.
    return known.length || (values.length && values.every((line) => typeof line[i] === "number")) ? known.reduce((a, b) => a + b, 0) : null;
  });
  const highest = Math.max(0, ...totals.map((v) => v ?? 0), ...line.slice(0, times).map((v) => v ?? 0), limit ?? 0);
  const step = axisStep(highest || 1, 4, false);
  const top = Math.max(step, Math.ceil(highest / step - 1e-9) * step);
  const scale = box.height / top;
  const slot = times > 0 ? (box.width - box.left) / times : 0;
  const bars = totals.map((total, i) => {
    let y = box.height;
    const parts = values.flatMap((line, group) => {
      const value = line[i];
      if (typeof value !== "number" || value <= 0) return [];
      const height = value * scale;
      y -= height;
      return [{ y, height, group }];
    });
    const compared = line[i];
    const mark = typeof compared === "number" ? box.height - compared * scale : null;
    return { x: box.left + i * slot + slot * 0.1, width: slot * 0.8, total, mark, parts };
  });
  const marks = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => ({ value: i * step, y: box.height - i * step * scale }));
  return { bars, marks, limit: limit === null ? null : box.height - limit * scale };
}

/** Which of the bars get a label, so that labels do not touch. `hourly`: the index is the hour of the day, and each day has the same labels. */
export function labelled(index: number, times: number, slot: number, room: number, hourly = false): boolean {
  let every = Math.max(1, Math.ceil(room / Math.max(1, slot)));
  while (hourly && every < 24 && 24 % every) every++;
  return times > 0 && index % every === 0;
}
