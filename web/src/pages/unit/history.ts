// The last runs of a unit's kind: of its user and project, with a name that differs in numbers only.

import { ApiError, type Api, type Identity, type Unit } from "../../data/api";
import { widestView } from "../../data/identity";
import { defaultList } from "../../data/liststate";
import { ServerList } from "../../data/serverlist";
import type { Row } from "../../data/units";

export const kMaxRuns = 20;
const kAsked = 100; // names that have the words may be of another kind

export const kindName = (name: string): string => name.replace(/\d+/g, "#");

/** Runs of the unit’s kind among rows that are sorted by their end, the newest first. The result has the oldest first. */
export function runsOfKind(rows: readonly Row[], unit: Unit): Row[] {
  const same = rows.filter((row) => row.started !== null && kindName(row.name) === kindName(unit.name ?? "") && row.owner === unit.username && row.project === (unit.project ?? ""));
  return same.slice(0, kMaxRuns).reverse();
}

export const isRun = (row: Row, unit: Unit): boolean => row.uuid === unit.uuid && row.cluster === unit.cluster_id && row.started === unit.started_at_ts;

/** Empty where there is no name to look for, or the server has no lists. */
export async function historyOf(api: Api, identity: Identity, unit: Unit, signal: AbortSignal): Promise<Row[]> {
  const { name = "", username = "", cluster_id: cluster = "" } = unit;
  const words = kindName(name).split(/[#\s]+/).filter(Boolean).join(" ");
  if (words === "" || [username, cluster].some((one) => one === "" || one.includes(","))) return [];
  const list = defaultList();
  const choices = { ...list.choices, cluster: [cluster], user: [username] };
  try {
    const page = await new ServerList(api).page({ ...list, q: words, period: { kind: "all" }, choices }, widestView(identity), kAsked, true, signal);
    return runsOfKind(page.rows, unit);
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0) return [];
    throw error;
  }
}
