// What needs the reader, of what the server says anyway. Loaded after the first view.

import type { Answer, Identity, Site } from "../data/api";
import { maySeeSite } from "../data/identity";
import { addTexts, currentLanguage, t } from "../text/i18n";
import * as format from "../text/format";
import en from "../text/locales/alerts.en.json";

export interface Alert {
  id: string; // of this event: what was dismissed stays so, and the next one is shown
  title: string;
  text: string;
  href: string | null;
}

export async function loadAlertTexts(): Promise<void> {
  const language = currentLanguage();
  try {
    addTexts(en, language === "de" ? (await import("../text/locales/alerts.de.json")).default : language === "fr" ? (await import("../text/locales/alerts.fr.json")).default : null);
  } catch {
    addTexts(en, null); // the file belongs to another version of the page
  }
}

/** Data is late when it is older than this: several updates did not come, or the site has long pauses. */
export const kLateMs = 2 * 3600 * 1000;

type Fields = Record<string, unknown>;
const fields = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter((one): one is Fields => typeof one === "object" && one !== null) : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Clusters whose updates fail or do not come. Those who look after the site learn which. */
export function lateOf(site: Site | null, now: number, identity: Identity): Alert[] {
  const late = (site?.clusters ?? []).filter(({ updated }) => updated && now - updated > kLateMs);
  if (late.length === 0) return [];
  const since = Math.min(...late.map(({ updated }) => updated!));
  const values = { time: format.moment(since, now), age: format.duration((now - since) / 1000), clusters: late.map(({ id }) => id).join(", ") };
  return [{ id: `late ${late.map(({ id, updated }) => `${id} ${updated}`).join(" ")}`, title: t("alert.late"), text: t(maySeeSite(identity) ? "alert.lateSite" : "alert.lateText", values), href: null }];
}

/** Budgets that are exceeded, of the answer of insight/budgets. */
export function exceeded(data: unknown): Alert[] {
  const over = fields(data).filter((row) => row.state === "over");
  const first = over[0];
  if (!first) return [];
  const share = typeof first.used_share === "number" ? format.percent(100 * first.used_share) : "";
  const projects = [...new Set(over.map((row) => text(row.project)))].join(", ");
  return [{
    id: `over ${over.map((row) => `${text(row.cluster_id)}/${text(row.project)} ${text(row.unit)} ${text(row.period)}`).join(" ")}`,
    title: t("alert.over"),
    text: over.length === 1 && share ? t("alert.overOne", { project: projects, share }) : t("alert.overText", { n: over.length, projects }),
    href: "#/budgets",
  }];
}

/** GPUs that the reader holds and does not use, of the answer of insight/idle. */
export function idleGpus(data: unknown, user: string): Alert[] {
  const own = fields(data).filter((row) => row.user === user && typeof row.gpus === "number" && row.gpus > 0 && !row.exempt);
  const gpus = own.reduce((sum, row) => sum + (row.gpus as number), 0);
  if (gpus === 0) return [];
  return [{ id: `idle ${own.map((row) => text(row.uuid)).sort().join(" ")}`, title: t("alert.idle"), text: t("alert.idleText", { n: gpus }), href: "#/idle" }];
}

export const silent = (identity: Identity): Alert => ({ id: "silent", title: t("alert.silent"), text: t(maySeeSite(identity) ? "alert.silentSite" : "alert.silentText"), href: null });

/** What an answer of insight/idle tells: that a TSDB does not respond, and GPUs that the reader does not use. */
export const measuredAlerts = ({ data, missing }: Pick<Answer<unknown>, "data" | "missing">, identity: Identity): Alert[] => [
  ...(missing.some(({ reason }) => reason === "unavailable") ? [silent(identity)] : []),
  ...idleGpus(data, identity.user),
];

// Dismissed in this session of the browser

const kKey = "ceems.dismissed";
const kMaxDismissed = 50;
type Store = Pick<Storage, "getItem" | "setItem">;

/** What other programs or older pages left in the store is skipped. */
export function readDismissed(store: Store): string[] {
  try {
    const value: unknown = JSON.parse(store.getItem(kKey) ?? "[]");
    return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function dismiss(store: Store, id: string): string[] {
  const all = [...readDismissed(store), id].slice(-kMaxDismissed);
  try {
    store.setItem(kKey, JSON.stringify(all));
  } catch {
    // It holds until the page is loaded again.
  }
  return all;
}
