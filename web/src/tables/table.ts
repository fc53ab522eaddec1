import type { SortKey } from "../data/liststate";

export interface Column<K extends string = SortKey> {
  key: string;
  label: string;
  sort: K | null; // null: the column does not sort
  numeric: boolean;
  priority: 1 | 2 | 3; // narrow screens hide 3 first, then 2
  optional?: boolean; // hidden until it is chosen
  width?: number; // rem that its values need; where all columns have one, rows that cannot be seen are not laid out
}

/** Rem that a column needs for its values and for the longest word of its heading. */
export function widthOf({ label, width = 0 }: { label: string; width?: number }): number {
  const kLetter = 0.62; // bold, of a wide font
  const kSides = 0.85;
  return Math.max(width, kLetter * Math.max(...label.split(/\s+/).map((word) => word.length)) + kSides);
}

/** The cell to which a key leads in a table of `rows` times `columns`; null: the key does not move. */
export function step(key: string, at: { row: number; column: number }, rows: number, columns: number, control: boolean): { row: number; column: number } | null {
  const kPage = 10;
  const moves: Record<string, [rows: number, columns: number]> = {
    ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [kPage, 0], PageUp: [-kPage, 0],
    Home: [control ? -rows : 0, -columns], End: [control ? rows : 0, columns],
  };
  const move = moves[key];
  if (!move) return null;
  return { row: Math.max(0, Math.min(rows - 1, at.row + move[0])), column: Math.max(0, Math.min(columns - 1, at.column + move[1])) };
}

// Lists that are short enough to be sorted here

export type Cell = string | number | null;

/** Sorted by a value of each row; what is not known comes last. */
export function sorted<R>(rows: readonly R[], value: (row: R) => Cell, descending: boolean): R[] {
  const way = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    return way * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
  });
}

/** Whether every word is in one of the texts. */
export function matches(q: string, texts: readonly string[]): boolean {
  const hay = texts.map((one) => one.toLowerCase());
  return q.toLowerCase().split(/\s+/).filter(Boolean).every((word) => hay.some((one) => one.includes(word)));
}
