// The cells of a heat map: where they are, how dark they are, and which filter each stands for.

import { changed, type HeatAxis, type ListState, type Range } from "../data/liststate";
import * as format from "../text/format";
import { t } from "../text/i18n";
import type { Heat, HeatCell } from "../data/list";

export type HeatBy = "units" | "kwh";
export const kShades = 7;

export function weight(cell: HeatCell, by: HeatBy): number {
  return by === "units" ? cell.count : (cell.kwh ?? 0);
}

/** 1 to kShades on a logarithmic scale from the least to the most; 0: nothing there. */
export function shade(value: number, least: number, most: number): number {
  if (!(value > 0)) return 0;
  if (!(most > least) || !(least > 0)) return kShades;
  const share = Math.log(value / least) / Math.log(most / least);
  return Math.max(1, Math.min(kShades, 1 + Math.floor(share * kShades)));
}

export interface Shaded {
  cell: HeatCell;
  shade: number;
}

export function shaded(heat: Heat, by: HeatBy): Shaded[] {
  const values = heat.cells.map((cell) => weight(cell, by)).filter((value) => value > 0);
  const least = Math.min(...values);
  const most = Math.max(...values);
  return heat.cells.map((cell) => ({ cell, shade: shade(weight(cell, by), least, most) }));
}

/** From and to of a bin in percent; the last one holds everything above, too. */
export function edgesOf(bin: number, bins: number): { least: number; most: number | null } {
  const step = 100 / bins;
  return { least: bin * step, most: bin === bins - 1 ? null : (bin + 1) * step };
}

/** The filter for a bin. Both ends of a filter are included, and the server keeps hundredths of a percent. */
function rangeOf(bin: number, bins: number): Range {
  const { least, most } = edgesOf(bin, bins);
  return { least, most: most === null ? null : Math.round(100 * most - 1) / 100 };
}

function rangeWords(name: string, bin: number, bins: number): string {
  const { least, most } = edgesOf(bin, bins);
  return most === null ? t("range.least", { name, least: format.percent(least) }) : t("range.between", { name, least: format.number3(least), most: format.percent(most) });
}

/** As short as a cell: 999, "1.2k", "12k", "3M". */
export function countText(count: number): string {
  if (count < 1000) return String(count);
  const [value, unit] = count < 999_500 ? [count / 1000, "k"] : [count / 1e6, "M"];
  return `${format.number3(Number(value.toPrecision(value < 9.95 ? 2 : 3)) >= 10 ? Math.round(value) : Math.round(10 * value) / 10)}${unit}`;
}

/** "CPU use 20 to 25 %, Memory use 0 to 5 %: 31 units, 402 kWh" */
export function cellText(x: number, y: number, axis: HeatAxis, heat: Heat): string {
  const cell = heat.cells.find((c) => c.x === x && c.y === y);
  const what = cell ? [t("n.units", { n: cell.count }), ...(cell.kwh === null ? [] : [format.energy(cell.kwh)])].join(", ") : t("heat.empty");
  return `${rangeWords(t("range.cpu"), x, heat.bins)}, ${rangeWords(t(axis === "mem" ? "range.mem" : "range.gpu"), y, heat.bins)}: ${what}`;
}

/** The list of the units in a cell. */
export function narrowed(list: ListState, x: number, y: number, axis: HeatAxis, bins: number): ListState {
  return changed(list, { heat: null, ranges: { ...list.ranges, cpu: rangeOf(x, bins), [axis]: rangeOf(y, bins) } });
}

/** The cell that a key leads to; null: the key does not move. Rows are counted from below. */
export function stepTo(key: string, at: { x: number; y: number }, bins: number): { x: number; y: number } | null {
  const moves: Record<string, [number, number]> = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1], Home: [-bins, 0], End: [bins, 0], PageUp: [0, 5], PageDown: [0, -5] };
  const move = moves[key];
  if (!move) return null;
  const inside = (value: number) => Math.max(0, Math.min(bins - 1, value));
  return { x: inside(at.x + move[0]), y: inside(at.y + move[1]) };
}
