// What the palette offers: the last places, pages, and what the server finds.

import type { Answer, Api } from "../data/api";
import { write } from "../pages/address";
import { t } from "../text/i18n";

export interface Option {
  href: string;
  text: string;
  note: string; // what it is, and whose
}

const kMaxPlaces = 10;
const kKey = (user: string) => `ceems.places ${user}`;

/** The last places of a user, the newest first. Whatever else is stored there is ignored. */
export function places(user: string): Option[] {
  try {
    const stored = JSON.parse(localStorage.getItem(kKey(user)) ?? "[]") as unknown;
    if (!Array.isArray(stored)) return [];
    return stored.flatMap((one: unknown) => {
      const [href, text] = Array.isArray(one) ? (one as unknown[]) : [];
      return typeof href === "string" && href.startsWith("#/") && typeof text === "string" && text ? [{ href, text, note: "" }] : [];
    }).slice(0, kMaxPlaces);
  } catch {
    return []; // the storage is disabled, or holds something else
  }
}

export function remember(user: string, href: string, text: string): void {
  if (!href.startsWith("#/") || !text) return;
  const all = [{ href, text }, ...places(user).filter((one) => one.href !== href)].slice(0, kMaxPlaces);
  try {
    localStorage.setItem(kKey(user), JSON.stringify(all.map((one) => [one.href, one.text])));
  } catch {
    // Full or disabled: the palette works without.
  }
}

export function forgetPlaces(user: string): void {
  try {
    localStorage.removeItem(kKey(user));
  } catch {
    // There are none.
  }
}

export interface Found {
  units: { cluster_id: string; uuid: string; started_at_ts: number | null; shown: string; name: string | null; user: string; project: string }[];
  people: { user: string }[];
  projects: { cluster_id: string; project: string }[];
  nodes: { cluster_id: string; host: string }[];
}

export function optionsOf(found: Partial<Found>): Option[] {
  return [
    ...(found.units ?? []).map((one) => ({
      href: write({ page: "unit", cluster: one.cluster_id, uuid: one.uuid, started: one.started_at_ts, span: null }),
      text: one.name ? `${one.name} ${one.shown}` : one.shown,
      note: [one.user, one.project, one.cluster_id].filter(Boolean).join(" · "),
    })),
    ...(found.projects ?? []).map((one) => ({
      href: write({ page: "project", cluster: one.cluster_id, name: one.project, month: null }),
      text: one.project,
      note: `${t("choice.project")} · ${one.cluster_id}`,
    })),
    ...(found.people ?? []).map((one) => ({ href: write({ page: "user", name: one.user, month: null }), text: one.user, note: t("choice.user") })),
    ...(found.nodes ?? []).map((one) => ({
      href: write({ page: "node", cluster: one.cluster_id, host: one.host, hours: 24 }),
      text: one.host,
      note: `${t("palette.node")} · ${one.cluster_id}`,
    })),
  ];
}

/** Those whose text holds all words. */
export function matching(options: readonly Option[], text: string): Option[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return options.filter((one) => words.every((word) => one.text.toLowerCase().includes(word)));
}

export const search = (api: Api, text: string, signal: AbortSignal): Promise<Answer<Found | null>> => api.get<Found>("search", [["q", text]], signal);

/** The option that a key leads to from `at`; -1: the field itself. */
export function moved(key: string, at: number, count: number): number | null {
  if (count === 0) return null;
  if (key === "ArrowDown") return at + 1 < count ? at + 1 : 0;
  if (key === "ArrowUp") return at > 0 ? at - 1 : count - 1;
  return null;
}
