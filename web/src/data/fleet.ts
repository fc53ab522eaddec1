// Nodes, what ran on them, and the grid: docs/api/lists.md.

import { ApiError, type Api, type Query, type Series } from "./api";
import { t } from "../text/i18n";
import { kNodeStates, type NodesState, type NodeStateName } from "./nodestate";
import { stateKind, stateText, type StateKind } from "./units";

/** A node now. null: not known. */
export interface NodeRow {
  key: string;
  cluster: string;
  host: string;
  state: NodeStateName;
  units: number | null;
  cpus: number | null;
  cpu: number | null; // percent
  mem: number | null;
  gpu: number | null;
  gpus: number | null;
  watts: number | null;
  idleSince: number | null; // ms
  idleKwh: number | null; // since the month began
  seen: number | null; // ms
}

export interface NodeList {
  rows: NodeRow[];
  counts: Record<NodeStateName, number>;
  watts: number | null;
  idleWatts: number | null;
  idleKwh: number | null;
  monthKwh: number | null; // of these nodes, over the same samples
  covered: number | null; // 0 to 1, of the hours of the month so far
  missing: { cluster: string; reason: string }[];
  next: string | null;
  previous: string | null;
  serverTime: number;
}

/** A unit on the time line of a node. */
export interface NodeUnit {
  uuid: string;
  name: string;
  started: number; // ms
  ended: number | null; // null: it runs
  kind: StateKind;
  state: string;
  user: string;
  project: string;
  cpus: number | null;
  cpu: number | null; // percent
  gpu: number | null;
  kwh: number | null;
}

type Cell = string | number | null;

interface Table {
  columns?: unknown;
  rows?: unknown;
}

/** The rows of a table of the server, by column. */
export function records(table: Table | null): Record<string, Cell>[] {
  if (table === null || !Array.isArray(table.columns) || !Array.isArray(table.rows)) throw new ApiError(0, t("list.noList"));
  const columns = table.columns as string[];
  return (table.rows as Cell[][]).map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i] ?? null])));
}

const text = (cell: Cell | undefined): string => (typeof cell === "string" ? cell : "");
const number = (cell: unknown): number | null => (typeof cell === "number" && Number.isFinite(cell) ? cell : null);

export function nodeOf(cells: Record<string, Cell>): NodeRow {
  const [cluster, host] = [text(cells.cluster_id), text(cells.host)];
  return {
    key: `${cluster}\n${host}`,
    cluster,
    host,
    state: kNodeStates.find((state) => state === cells.state) ?? "silent",
    units: number(cells.units),
    cpus: number(cells.cpus),
    cpu: number(cells.cpu),
    mem: number(cells.mem),
    gpu: number(cells.gpu),
    gpus: number(cells.gpus),
    watts: number(cells.watts),
    idleSince: number(cells.idle_since),
    idleKwh: number(cells.idle_kwh),
    seen: number(cells.seen),
  };
}

export function nodeQuery(nodes: NodesState): Query {
  const query: Query = [];
  if (nodes.q.trim()) query.push(["q", nodes.q.trim()]);
  if (nodes.states.length) query.push(["state", nodes.states.join(",")]);
  for (const cluster of nodes.clusters) query.push(["cluster_id", cluster]);
  query.push(["sort", nodes.sort], ["order", nodes.descending ? "desc" : "asc"]);
  return query;
}

export async function nodeList(api: Api, query: Query, signal: AbortSignal): Promise<NodeList> {
  const answer = await api.get<
    Table & { counts?: Record<string, number>; watts?: unknown; idle_watts?: unknown; idle_kwh?: unknown; month_kwh?: unknown; covered?: unknown; missing?: { cluster_id: string; reason: string }[] }
  >("nodes/admin", query, signal);
  const { data } = answer;
  const rows = records(data).map(nodeOf);
  return {
    rows,
    counts: { idle: data?.counts?.idle ?? 0, busy: data?.counts?.busy ?? 0, silent: data?.counts?.silent ?? 0 },
    watts: number(data?.watts),
    idleWatts: number(data?.idle_watts),
    idleKwh: number(data?.idle_kwh),
    monthKwh: number(data?.month_kwh),
    covered: number(data?.covered),
    missing: (data?.missing ?? []).map(({ cluster_id, reason }) => ({ cluster: cluster_id, reason })),
    next: answer.next,
    previous: answer.previous,
    serverTime: answer.serverTime,
  };
}

/** What ran on a node; `known` is false if the server cannot say. */
export async function unitsOnNode(
  api: Api, cluster: string, host: string, from: number, to: number, signal: AbortSignal,
): Promise<{ units: NodeUnit[]; known: boolean; serverTime: number }> {
  const answer = await api.get<Table & { source?: unknown }>("units/on-node/admin", [["cluster_id", cluster], ["host", host], ...span(from, to)], signal);
  const units = records(answer.data).flatMap((cells) => {
    const started = number(cells.started);
    if (started === null) return [];
    const ended = number(cells.ended);
    const unit = { uuid: text(cells.uuid), state: text(cells.state), started_at_ts: started, ...(ended === null ? {} : { ended_at_ts: ended }) };
    return [{
      uuid: unit.uuid,
      name: text(cells.name) || text(cells.uuid),
      started,
      ended,
      kind: stateKind(unit),
      state: stateText(unit),
      user: text(cells.user),
      project: text(cells.project),
      cpus: number(cells.cpus),
      cpu: number(cells.cpu),
      gpu: number(cells.gpu),
      kwh: number(cells.kwh),
    }];
  });
  return { units, known: answer.data?.source !== null, serverTime: answer.serverTime };
}

export async function nodeSeries(api: Api, cluster: string, host: string, from: number, to: number, signal: AbortSignal): Promise<Series[]> {
  const answer = await api.get<Series[]>("nodes/series/admin", [["cluster_id", cluster], ["host", host], ...span(from, to)], signal);
  return Array.isArray(answer.data) ? answer.data : [];
}

const span = (from: number, to: number): Query => [["from", String(Math.floor(from / 1000))], ["to", String(Math.ceil(to / 1000))]];

export interface Grid {
  now: { provider: string; country: string; g_kwh: number; at: number } | null;
  series: { provider: string; country: string; points: [number, number][] }[];
  best: { hours: number; from: number; to: number; mean: number }[]; // hours of the day in the server's time zone
}

export async function grid(api: Api, signal: AbortSignal): Promise<{ data: Grid; serverTime: number }> {
  const answer = await api.get<Partial<Grid>>("grid", [], signal);
  const { now = null, series = [], best = [] } = answer.data ?? {};
  return { data: { now, series, best }, serverTime: answer.serverTime };
}

/** The mean of all readings, each for as long as until the next; null if there are none. */
export function meanOf(points: readonly [number, number][]): number | null {
  return points.length ? points.reduce((sum, [, value]) => sum + value, 0) / points.length : null;
}
