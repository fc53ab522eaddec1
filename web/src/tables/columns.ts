// The columns of a list that the reader wants, in their order. Kept in this browser.

import type { Column } from "./table";

export interface Chosen {
  key: string;
  shown: boolean;
}

const kKey = "ceems.columns";

type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/** What other programs or older pages left in the store is skipped. */
export function readColumns(store: Store): Chosen[] {
  try {
    const value: unknown = JSON.parse(store.getItem(kKey) ?? "[]");
    if (!Array.isArray(value)) return [];
    return value.filter((v): v is Chosen => typeof v?.key === "string" && typeof v.shown === "boolean").map(({ key, shown }) => ({ key, shown }));
  } catch {
    return [];
  }
}

/** An empty list forgets the choice. */
export function keepColumns(store: Store, chosen: readonly Chosen[]): void {
  try {
    if (chosen.length === 0) store.removeItem(kKey);
    else store.setItem(kKey, JSON.stringify(chosen));
  } catch {
    // It holds until the page is loaded again.
  }
}

/** All columns in the order of the reader; those that the choice does not know stay behind the one that they follow by default. The first
 * column is the heading of its row: it stays, and stays first. */
export function arranged(columns: readonly Column[], chosen: readonly Chosen[]): { column: Column; shown: boolean }[] {
  const [first, ...rest] = columns;
  if (!first) return [];
  const known = chosen.flatMap(({ key, shown }) => {
    const column = rest.find((c) => c.key === key);
    return column ? [{ column, shown }] : [];
  });
  const result = [{ column: first, shown: true }, ...known.filter((one, i) => known.findIndex((other) => other.column === one.column) === i)];
  rest.forEach((column, i) => {
    if (result.some((one) => one.column === column)) return;
    const before = i === 0 ? first : rest[i - 1]!;
    result.splice(result.findIndex((one) => one.column === before) + 1, 0, { column, shown: column.optional !== true });
  });
  return result;
}

/** The list with one of its entries a place up (-1) or down (1); the first place is taken. */
export function moved<T>(list: readonly T[], at: number, by: -1 | 1): T[] {
  const to = at + by;
  if (at < 1 || to < 1 || to >= list.length) return [...list];
  const result = [...list];
  [result[at], result[to]] = [result[to]!, result[at]!];
  return result;
}
