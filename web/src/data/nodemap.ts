// All nodes at once, now and in the last 24 hours: nodes/map/admin of docs/api/lists.md.

import { type Api, type Query } from "./api";
import { records } from "./fleet";
import { kNodeStates, type MapMetric, type NodesState, type NodeStateName } from "./nodestate";

/** A GPU: its use now in percent, and by hour in tenths ("0" to "9", "-": not known). */
export interface Device {
  index: string;
  now: number | null;
  tenths: string;
}

export interface MapNode {
  key: string;
  cluster: string;
  host: string;
  rack: string | null;
  slot: number | null;
  state: NodeStateName;
  units: number | null;
  cpu: number | null; // percent
  mem: number | null;
  gpu: number | null;
  watts: number | null;
  states: string; // a letter an hour
  past: (number | null)[]; // of the metric, by hour
  devices: Device[];
}

export interface NodeMapData {
  metric: MapMetric;
  nodes: MapNode[];
  times: number[]; // ms, the ends of the hours
  leftOff: number;
  serverTime: number;
}

type Cell = unknown;
const number = (cell: Cell): number | null => (typeof cell === "number" && Number.isFinite(cell) ? cell : null);
const text = (cell: Cell): string => (typeof cell === "string" ? cell : "");
const list = (cell: Cell): unknown[] => (Array.isArray(cell) ? cell : []);

export async function nodeMap(api: Api, nodes: NodesState, signal: AbortSignal): Promise<NodeMapData> {
  const query: Query = [["metric", nodes.by]];
  if (nodes.q.trim()) query.push(["q", nodes.q.trim()]);
  for (const cluster of nodes.clusters) query.push(["cluster_id", cluster]);
  const answer = await api.get<{ columns?: unknown; rows?: unknown; times?: unknown; left_off?: unknown }>("nodes/map/admin", query, signal);
  return {
    metric: nodes.by,
    nodes: (records(answer.data) as Record<string, Cell>[]).map((cells): MapNode => ({
      key: `${text(cells.cluster_id)}\n${text(cells.host)}`,
      cluster: text(cells.cluster_id),
      host: text(cells.host),
      rack: text(cells.rack) || null,
      slot: number(cells.slot),
      state: kNodeStates.find((state) => state === cells.state) ?? "silent",
      units: number(cells.units),
      cpu: number(cells.cpu),
      mem: number(cells.mem),
      gpu: number(cells.gpu),
      watts: number(cells.watts),
      states: text(cells.states),
      past: list(cells.past).map(number),
      devices: list(cells.devices).map((device) => ({ index: text(list(device)[0]), now: number(list(device)[1]), tenths: text(list(device)[2]) })),
    })),
    times: list(answer.data?.times).map((time) => number(time) ?? 0),
    leftOff: number(answer.data?.left_off) ?? 0,
    serverTime: answer.serverTime,
  };
}

/** The value of the metric now (`hour` is null) or in an hour; null: not known, or the metric is the state. */
export function valueOf(node: MapNode, metric: MapMetric, hour: number | null): number | null {
  if (metric === "state") return null;
  if (hour !== null) return node.past[hour] ?? null;
  return { power: node.watts, cpu: node.cpu, memory: node.mem, gpu: node.gpu }[metric];
}

export function stateOf(node: MapNode, hour: number | null): NodeStateName {
  if (hour === null) return node.state;
  return { b: "busy", i: "idle" }[node.states[hour] ?? ""] as NodeStateName | undefined ?? "silent";
}

/** What a GPU did, in percent: now to the digit, in the past from a tenth to the next. */
export function deviceUse(device: Device, hour: number | null): { least: number; most: number } | null {
  if (hour === null) return device.now === null ? null : { least: device.now, most: device.now };
  const tenth = Number.parseInt(device.tenths[hour] ?? "", 10);
  return Number.isNaN(tenth) ? null : { least: 10 * tenth, most: 10 * tenth + 10 };
}

export const kSteps = 7;

/** 1 to 7 of a linear scale up to `most`. */
export function stepOf(value: number, most: number): number {
  return Math.max(1, Math.min(kSteps, 1 + Math.floor((kSteps * value) / (most || 1))));
}

/** The end of the scale: 100 of percent, otherwise a round number above all values of the day, so that the slider does not change it. */
export function scaleEnd(nodes: readonly MapNode[], metric: MapMetric): number {
  if (metric !== "power") return 100;
  const most = nodes.reduce((high, node) => Math.max(high, node.watts ?? 0, ...node.past.map((value) => value ?? 0)), 0);
  const size = 10 ** Math.floor(Math.log10(most || 1));
  return ([1, 2, 5, 10].find((step) => step * size >= most) ?? 10) * size;
}

export interface Placed {
  node: MapNode;
  x: number;
  y: number;
}
export interface Block {
  label: string; // of a rack, or of a cluster where racks are not known
  rack: boolean;
  x: number;
  y: number;
  width: number;
}

const kTall = 16; // nodes in a column of a rack
const natural = new Intl.Collator("en", { numeric: true });

/** Racks side by side, nodes in them from the top down; nodes without a rack in lines. Sizes are in the unit of `width`. */
export function arrange(nodes: readonly MapNode[], width: number, cell: { width: number; height: number }, head: number, gap: number): { blocks: Block[]; cells: Placed[]; height: number } {
  const groups = new Map<string, { rack: string | null; cluster: string; nodes: MapNode[] }>();
  for (const node of nodes) {
    const key = `${node.cluster}\n${node.rack ?? ""}`;
    const group = groups.get(key) ?? { rack: node.rack, cluster: node.cluster, nodes: [] };
    group.nodes.push(node);
    groups.set(key, group);
  }
  const several = new Set(nodes.map((node) => node.cluster)).size > 1;
  const sorted = [...groups.values()].sort((a, b) => natural.compare(a.cluster, b.cluster) || Number(a.rack === null) - Number(b.rack === null) || natural.compare(a.rack ?? "", b.rack ?? ""));
  const blocks: Block[] = [];
  const cells: Placed[] = [];
  const most = Math.max(1, Math.floor((width + 2) / cell.width));
  let [x, y, bottom] = [0, 0, 0];
  for (const { rack, cluster, nodes: all } of sorted) {
    all.sort((a, b) => (a.slot ?? Infinity) - (b.slot ?? Infinity) || natural.compare(a.host, b.host));
    const columns = Math.min(most, rack === null ? all.length : Math.ceil(all.length / kTall));
    const tall = Math.ceil(all.length / columns);
    const wide = columns * cell.width;
    if (x > 0 && (rack === null || x + wide > width)) [x, y] = [0, bottom];
    blocks.push({ label: rack === null ? cluster : several ? `${cluster} ${rack}` : rack, rack: rack !== null, x, y, width: wide });
    all.forEach((node, i) => {
      const [column, line] = rack === null ? [i % columns, Math.floor(i / columns)] : [Math.floor(i / tall), i % tall];
      cells.push({ node, x: x + column * cell.width, y: y + head + line * cell.height });
    });
    bottom = Math.max(bottom, y + head + tall * cell.height + gap);
    x += wide + gap;
    if (rack === null) [x, y] = [0, bottom];
  }
  return { blocks, cells, height: bottom };
}

/** How wide a cell may be so that the racks fill the width, up to `most` and not less than `least`, which it has in `blocks`. Lines of nodes
 * without racks follow, where there are racks. */
export function cellWidth(blocks: readonly Block[], width: number, least: number, most: number, gap: number): number {
  const lines = new Map<number, { cells: number; gaps: number }>();
  const racks = blocks.filter(({ rack }) => rack);
  for (const block of racks.length ? racks : blocks) {
    const line = lines.get(block.y) ?? { cells: 0, gaps: -gap };
    lines.set(block.y, { cells: line.cells + Math.round(block.width / least), gaps: line.gaps + gap });
  }
  const fits = Math.min(...[...lines.values()].map(({ cells, gaps }) => Math.floor((width - gaps) / cells)));
  return Math.max(least, Math.min(most, fits));
}

/** The cell that a key leads to: the nearest one in that direction, those in line with it first. null: the key does not move. */
export function cellAt(cells: readonly Placed[], at: number, key: string): number | null {
  if (!/^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(key) || cells.length === 0) return null;
  if (key === "Home") return 0;
  if (key === "End") return cells.length - 1;
  const here = cells[at];
  if (!here) return 0;
  const across = key === "ArrowLeft" || key === "ArrowRight";
  const way = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  let [best, least] = [at, Infinity];
  cells.forEach((cell, i) => {
    const [along, aside] = across ? [cell.x - here.x, cell.y - here.y] : [cell.y - here.y, cell.x - here.x];
    const distance = way * along + 1000 * Math.abs(aside);
    if (way * along > 0 && distance < least) [best, least] = [i, distance];
  });
  return best;
}
