// The nodes of a unit side by side: which of them differ from the others.

import type { Series } from "../../data/api";
import { summary, toTrack, type Track } from "../../charts/series";

export interface UnitNode {
  host: string;
  tracks: Map<string, Track>; // by chart
  means: Map<string, number>;
}

export interface UnitNodes {
  nodes: UnitNode[]; // the one that differs most first
  medians: Map<string, Track>; // by chart, over all nodes
  top: Map<string, number>; // the highest reading of a chart
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** By hosts; charts without lines by node, and quantiles of many nodes, are in none. */
export function nodesOf(series: readonly Series[], charts: readonly string[]): UnitNodes {
  const nodes = new Map<string, UnitNode>();
  for (const line of series) {
    const host = line.labels?.hostname ?? "";
    const track = toTrack(line);
    const facts = summary(track);
    if (host === "" || facts === null || !charts.includes(line.name)) continue;
    const node = nodes.get(host) ?? { host, tracks: new Map(), means: new Map() };
    node.tracks.set(line.name, track);
    node.means.set(line.name, facts.mean);
    nodes.set(host, node);
  }
  const found: UnitNodes = { nodes: [...nodes.values()], medians: new Map(), top: new Map() };
  const middle = new Map<string, number>();
  for (const chart of charts) {
    const tracks = found.nodes.flatMap((node) => node.tracks.get(chart) ?? []);
    if (tracks.length === 0) continue;
    const at = new Map<number, number[]>();
    for (const track of tracks) {
      track.times.forEach((time, i) => {
        const value = track.values[i];
        const here = at.get(time) ?? [];
        if (here.length === 0) at.set(time, here);
        if (typeof value === "number") here.push(value);
      });
    }
    const times = [...at.keys()].sort((a, b) => a - b);
    found.medians.set(chart, { times, values: times.map((time) => (at.get(time)!.length ? median(at.get(time)!) : null)) });
    found.top.set(chart, Math.max(1e-12, ...tracks.flatMap((track) => track.values.map((value) => value ?? 0))));
    middle.set(chart, median(found.nodes.flatMap((node) => node.means.get(chart) ?? [])));
  }
  /** The largest distance from the median of a chart, as a part of its highest reading. */
  const distance = (node: UnitNode) => Math.max(...[...node.means].map(([chart, mean]) => Math.abs(mean - middle.get(chart)!) / found.top.get(chart)!));
  found.nodes.sort((a, b) => distance(b) - distance(a) || a.host.localeCompare(b.host, undefined, { numeric: true }));
  return found;
}

/** A track as a line in a box 1000 wide and 100 high; gaps stay open. */
export function lineOf(track: Track | undefined, from: number, to: number, top: number): string {
  let path = "";
  let pen = "M";
  track?.times.forEach((time, i) => {
    const value = track.values[i];
    if (typeof value !== "number" || time < from || time > to) {
      pen = "M";
      return;
    }
    path += `${pen}${Math.round(((time - from) / Math.max(1, to - from)) * 1000)} ${Math.round(98 - 96 * Math.min(1, Math.max(0, value / top)))}`;
    pen = "L";
  });
  return path;
}
