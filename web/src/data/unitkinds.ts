// Units by kind, runs of one user and project whose names differ in numbers only: docs/api/lists.md, units/kinds.

import { ApiError, pathOf, type Api, type Query, type View } from "./api";
import { defaultList, type KindSort, type ListState } from "./liststate";
import { filterQuery } from "./serverlist";
import { energies, percent } from "../text/format";
import { t } from "../text/i18n";

/** The one suggestion for a kind, by the run that it is from. */
export interface KindFinding {
  uuid: string;
  started: number; // ms
  rule: string;
}

export interface UnitKind {
  key: string;
  cluster: string;
  user: string;
  project: string;
  name: string | null; // with # for numbers; null: not for this user
  units: number;
  running: number;
  failed: number;
  measured: number; // runs whose energy is known
  energyKwh: number | null; // of these
  unusedKwh: number | null; // idle power of the reservations
  unusedOfKwh: number | null; // all energy of the runs where it is known
  notUsedKwh: number | null; // the part that was not used, of the runs where it is known
  notUsedOfKwh: number | null; // all energy of these runs
  cpuPercent: number | null;
  gpuPercent: number | null;
  kwhBefore: number | null; // of a run that ended in the first half of the period
  kwhSince: number | null; // and in the second
  finding: KindFinding | null;
}

export interface UnitKinds {
  kinds: UnitKind[];
  more: boolean;
  serverTime: number;
}

type Fields = Record<string, unknown>;
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {});
const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

function findingOf(value: unknown): KindFinding | null {
  const { uuid, started_at_ts, rule } = fieldsOf(value);
  const started = number(started_at_ts);
  return text(uuid) === "" || text(rule) === "" || started === null ? null : { uuid: text(uuid), started, rule: text(rule) };
}

/** What has the wrong type counts as unknown. null: the server sent something else. */
export function readKinds(data: unknown): Omit<UnitKinds, "serverTime"> | null {
  const { kinds, more } = fieldsOf(data);
  if (!Array.isArray(kinds)) return null;
  return {
    kinds: kinds.map((value: unknown) => {
      const kind = fieldsOf(value);
      const name = typeof kind.name === "string" ? kind.name : null;
      return {
        key: JSON.stringify([text(kind.cluster_id), text(kind.user), text(kind.project), name]),
        cluster: text(kind.cluster_id),
        user: text(kind.user),
        project: text(kind.project),
        name,
        units: number(kind.units) ?? 0,
        running: number(kind.running) ?? 0,
        failed: number(kind.failed) ?? 0,
        measured: number(kind.measured) ?? 0,
        energyKwh: number(kind.kwh),
        unusedKwh: number(kind.unused),
        unusedOfKwh: number(kind.unused_of),
        notUsedKwh: number(kind.not_used),
        notUsedOfKwh: number(kind.not_used_of),
        cpuPercent: number(kind.cpu),
        gpuPercent: number(kind.gpu),
        kwhBefore: number(kind.kwh_before),
        kwhSince: number(kind.kwh_since),
        finding: findingOf(kind.finding),
      };
    }),
    more: more === true,
  };
}

export async function unitKinds(api: Api, list: ListState, view: View, sort: KindSort, top: number, narrow: Query, signal: AbortSignal): Promise<UnitKinds> {
  const query: Query = [...filterQuery(list, view, Date.now()), ...narrow, ["sort", sort], ["top", String(top)]];
  const answer = await api.get<unknown>(pathOf("units/kinds", view), query, signal);
  const found = readKinds(answer.data);
  if (found === null) throw new ApiError(0, t("list.noList"));
  return { ...found, serverTime: answer.serverTime };
}

export type Wasted = "not_used" | "unused"; // what was not used, or the idle power of what was reserved

/** The energy of a kind that was not used, or that was idle power, and all energy of the runs where that is known. */
export const wastedBy = (kind: UnitKind, by: Wasted): [part: number | null, whole: number | null] =>
  by === "not_used" ? [kind.notUsedKwh, kind.notUsedOfKwh] : [kind.unusedKwh, kind.unusedOfKwh];

/** The kinds with most that was not used; by the idle power of what was reserved if that is known of none. */
export async function mostWasted(api: Api, list: ListState, view: View, top: number, signal: AbortSignal): Promise<{ by: Wasted; kinds: UnitKind[] }> {
  for (const by of ["not_used", "unused"] as const) {
    const { kinds } = await unitKinds(api, list, view, by, top, [], signal);
    if (by === "unused" || kinds.some((kind) => kind.notUsedKwh !== null)) return { by, kinds: kinds.filter((kind) => (wastedBy(kind, by)[0] ?? 0) > 0) };
  }
  return { by: "unused", kinds: [] };
}

/** The runs of a kind, as a list: its name without the numbers, which every run has in another way. */
export function runsOf(kind: UnitKind, within: ListState): ListState {
  const words = (kind.name ?? "").split(/[#\s]+/).filter(Boolean).join(" ");
  const one = (value: string) => (value === "" || value.includes(",") ? [] : [value]); // the server takes a comma for the end of a value
  return {
    ...defaultList(),
    view: within.view,
    period: within.period,
    show: within.show,
    q: words,
    choices: { ...within.choices, cluster: one(kind.cluster), user: one(kind.user), project: one(kind.project) },
    ranges: within.ranges,
  };
}

/** The mean energy of the runs where it is known, and by how much it changed from the first half of the period to the second: "4.9 kWh (+4 %)". */
export function energyOfRun({ energyKwh, measured, kwhBefore, kwhSince }: UnitKind): string {
  if (energyKwh === null || measured === 0) return "";
  const change = kwhBefore !== null && kwhSince !== null && kwhBefore > 0 ? (100 * (kwhSince - kwhBefore)) / kwhBefore : 0;
  const trend = Math.abs(change) < 0.5 ? "" : ` (${change > 0 ? "+" : "−"}${percent(Math.abs(change)).replace(" ", "\u00a0")})`; // not broken before the sign
  return t("kinds.perRun", { energy: energies([energyKwh / measured])(energyKwh / measured) }) + trend;
}
