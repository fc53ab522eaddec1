// The state of a page with one table in the address.

import { kViews, type View } from "../data/api";

export interface TableState {
  q: string;
  view: View | null; // null: the default of the role
  cluster: string; // empty: all
  by: string; // empty: the default of the page, also below
  sort: string;
  descending: boolean;
  at: number; // rows before the page
}

const kMaxText = 200;

export function defaultTable(): TableState {
  return { q: "", view: null, cluster: "", by: "", sort: "", descending: true, at: 0 };
}

export function readTable(query: URLSearchParams): TableState {
  const text = (key: string) => (query.get(key) ?? "").slice(0, kMaxText);
  const at = Number(query.get("at"));
  return {
    q: text("q"),
    view: kViews.find((view) => view === query.get("view")) ?? null,
    cluster: text("cluster"),
    by: text("by"),
    sort: text("sort"),
    descending: query.get("order") !== "asc",
    at: Number.isSafeInteger(at) && at > 0 ? at : 0,
  };
}

/** "?q=x", or nothing. */
export function writeTable(state: TableState): string {
  const query = new URLSearchParams();
  for (const key of ["q", "view", "cluster", "by", "sort"] as const) if (state[key]) query.set(key, state[key]);
  if (!state.descending) query.set("order", "asc");
  if (state.at > 0) query.set("at", String(state.at));
  return query.size ? `?${query}` : "";
}
