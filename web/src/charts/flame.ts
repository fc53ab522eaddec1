// The flame graph of a profile: its nodes, where their bars are, and its heaviest functions.

import type { Profile } from "../data/api";

export interface FlameNode {
  name: string;
  depth: number;
  start: number;
  total: number;
  self: number;
  parent: FlameNode | null;
  children: FlameNode[];
}

export interface Bar {
  node: FlameNode;
  x: number;
  width: number;
}

/** The root; null: there is nothing to draw. `all`: what it is called. */
export function flameOf(profile: Profile, all: string): FlameNode | null {
  let above: FlameNode[] = [];
  let root: FlameNode | null = null;
  profile.levels.forEach((level, depth) => {
    let i = 0;
    const here: FlameNode[] = [];
    for (const [start, total, self, name] of level) {
      while (i < above.length && above[i]!.start + above[i]!.total < start + total) ++i;
      const parent = above[i] ?? null;
      if (parent === null && root !== null) continue; // its parent is missing
      const node: FlameNode = { name: parent === null ? all : (profile.names[name] ?? ""), depth, start, total, self, parent, children: [] };
      parent?.children.push(node);
      root ??= node;
      here.push(node);
    }
    above = here;
  });
  return root !== null && (root as FlameNode).total > 0 ? root : null;
}

/** What is drawn in a width while a node fills it: the node, what it called, and its callers. Bars of less than half a pixel are not. */
export function barsOf(root: FlameNode, zoomed: FlameNode, width: number): Bar[] {
  const scale = width / zoomed.total;
  const bars: Bar[] = [];
  const left = [root];
  for (let node = left.pop(); node; node = left.pop()) {
    const x = Math.max(0, (node.start - zoomed.start) * scale);
    const end = Math.min(width, (node.start + node.total - zoomed.start) * scale);
    if (end - x < 0.5) continue;
    bars.push({ node, x, width: end - x });
    left.push(...node.children);
  }
  return bars.sort((a, b) => a.node.depth - b.node.depth || a.x - b.x);
}

export const widestChild = (node: FlameNode): FlameNode | null => node.children.reduce<FlameNode | null>((best, one) => (best && best.total >= one.total ? best : one), null);

/** Where an arrow leads from a bar, among those that are drawn. */
export function neighbour(bars: readonly Bar[], node: FlameNode, key: string): FlameNode {
  if (key === "ArrowUp") return node.parent ?? node;
  const drawn = new Set(bars.map((bar) => bar.node));
  if (key === "ArrowDown") {
    const below = widestChild(node);
    return below && drawn.has(below) ? below : node;
  }
  const row = bars.filter((bar) => bar.node.depth === node.depth).map((bar) => bar.node);
  const at = row.indexOf(node);
  const to = key === "Home" ? 0 : key === "End" ? row.length - 1 : at + (key === "ArrowLeft" ? -1 : 1);
  return row[to] ?? node;
}

export interface FlameFunction {
  name: string;
  self: number;
  total: number; // with what it called; a call within a call of the same function counts once
}

function each(root: FlameNode, visit: (node: FlameNode) => void) {
  const left = [root];
  for (let node = left.pop(); node; node = left.pop()) {
    visit(node);
    left.push(...node.children);
  }
}

const within = (node: FlameNode, is: (above: FlameNode) => boolean): boolean => {
  for (let above = node.parent; above; above = above.parent) if (is(above)) return true;
  return false;
};

/** Functions by the time that they used themselves, the most first. */
export function functionsOf(root: FlameNode, count: number): FlameFunction[] {
  const all = new Map<string, FlameFunction>();
  each(root, (node) => {
    if (node === root) return;
    const one = all.get(node.name) ?? { name: node.name, self: 0, total: 0 };
    one.self += node.self;
    if (!within(node, (above) => above !== root && above.name === node.name)) one.total += node.total;
    all.set(node.name, one);
  });
  return [...all.values()].sort((a, b) => b.self - a.self || b.total - a.total).slice(0, count);
}

/** The nodes whose names hold a text, and their time: what is within one of them counts once. */
export function findIn(root: FlameNode, text: string): { nodes: Set<FlameNode>; functions: number; time: number } {
  const needle = text.trim().toLowerCase();
  const nodes = new Set<FlameNode>();
  if (needle !== "") each(root, (node) => void (node !== root && node.name.toLowerCase().includes(needle) && nodes.add(node)));
  let time = 0;
  for (const node of nodes) if (!within(node, (above) => nodes.has(above))) time += node.total;
  return { nodes, functions: new Set([...nodes].map((node) => node.name)).size, time };
}

/** One of a few shades, by the name, so that neighbours differ. */
export function shadeOf(name: string, count: number): number {
  let hash = 7;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
  return hash % count;
}
