// Views that the user saved in this browser: a name and the address of a list.

import { defaultList, type ListState } from "../../data/liststate";
import { write } from "../address";

export interface SavedView {
  name: string;
  address: string;
}

const kKey = "ceems.views";
export const kMaxViews = 50;
const kMaxName = 100;

function of(change: Partial<ListState>): string {
  return write({ page: "jobs", list: { ...defaultList(), ...change } });
}

const kWeek = { kind: "hours", hours: 168 } as const;
export const kBuiltIn: readonly { name: "running" | "failed" | "least"; address: string }[] = [
  { name: "running", address: of({ show: "running", sort: "started" }) },
  { name: "failed", address: of({ period: kWeek, sort: "state", descending: false, show: "ended" }) },
  { name: "least", address: of({ period: kWeek, sort: "cpu", descending: false }) },
];

type Store = Pick<Storage, "getItem" | "setItem">;

/** What other programs or older pages left in the store is skipped. */
export function readViews(store: Store): SavedView[] {
  try {
    const value: unknown = JSON.parse(store.getItem(kKey) ?? "[]");
    if (!Array.isArray(value)) return [];
    return value
      .filter((v): v is SavedView => typeof v?.name === "string" && v.name !== "" && typeof v.address === "string" && v.address.startsWith("#/jobs"))
      .slice(0, kMaxViews)
      .map(({ name, address }) => ({ name, address }));
  } catch {
    return [];
  }
}

/** Adds a view, or replaces the one of the same name; null: the name is empty, or the store is full or switched off. */
export function saveView(store: Store, name: string, address: string): SavedView[] | null {
  const clean = name.trim().slice(0, kMaxName);
  const rest = readViews(store).filter((view) => view.name !== clean);
  if (clean === "" || rest.length >= kMaxViews) return null;
  return put(store, [...rest, { name: clean, address }]);
}

export function removeView(store: Store, name: string): SavedView[] | null {
  return put(store, readViews(store).filter((view) => view.name !== name));
}

function put(store: Store, views: SavedView[]): SavedView[] | null {
  try {
    store.setItem(kKey, JSON.stringify(views));
    return views;
  } catch {
    return null;
  }
}
