// Keys that move the cursor of a chart.

/** The index that a key moves to among `count`; null: the key does not move. `at` is -1 where nothing is reached yet. */
export function moved(key: string, at: number, count: number): number | null {
  const before = at < 0 ? count : at;
  const moves: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: before - 1, PageDown: at + 10, PageUp: before - 10, Home: 0, End: count - 1 };
  const to = moves[key];
  return to === undefined || count < 1 ? null : Math.max(0, Math.min(count - 1, to));
}
