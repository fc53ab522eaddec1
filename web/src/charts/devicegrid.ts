// Many devices as a grid: a column of cells for each node, a cell for each of its devices, nodes in bands below each other.

import type { Series } from "../data/api";

export interface Device {
  label: string; // what its node calls it
  values: (number | null)[]; // by time; null: no reading
  mean: number | null;
}

export interface DeviceNode {
  host: string;
  devices: Device[];
}

export interface DeviceGrid {
  nodes: DeviceNode[]; // by name
  times: number[]; // ms, of all devices
  most: number; // devices of a node
}

const inOrder = new Intl.Collator("en", { numeric: true });

export function meanOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

/** null: there are no lines of single devices, as of more than the server gives. */
export function deviceGrid(series: readonly Series[], name: string): DeviceGrid | null {
  const lines = series.filter((line) => line.name === name && line.labels?.quantile === undefined && line.points.length > 0);
  if (lines.length === 0) return null;
  const times = [...new Set(lines.flatMap((line) => line.points.map(([time]) => time)))].filter(Number.isFinite).sort((a, b) => a - b);
  const at = new Map(times.map((time, i) => [time, i]));
  const hosts = new Map<string, Device[]>();
  for (const { labels = {}, points } of lines) {
    const { hostname = "", index = "", gpuuuid = "", gpuiid = "" } = labels;
    const values: (number | null)[] = times.map(() => null);
    for (const [time, value] of points) {
      const i = at.get(time);
      if (i !== undefined && typeof value === "number" && Number.isFinite(value)) values[i] = value;
    }
    const devices = hosts.get(hostname) ?? [];
    devices.push({ label: (index || gpuuuid) + (gpuiid && index !== gpuiid ? `/${gpuiid}` : ""), values, mean: meanOf(values) });
    hosts.set(hostname, devices);
  }
  const nodes = [...hosts]
    .map(([host, devices]) => ({ host, devices: devices.sort((a, b) => inOrder.compare(a.label, b.label)) }))
    .sort((a, b) => inOrder.compare(a.host, b.host));
  return { nodes, times, most: Math.max(...nodes.map((node) => node.devices.length)) };
}

/** The value of a device at a time; -1: its mean. */
export const valueOf = (device: Device, at: number): number | null => (at < 0 ? device.mean : (device.values[at] ?? null));

export interface Layout {
  cell: number; // px, with the gap to the next
  columns: number; // nodes in a band
  band: number; // px from one band to the next
  height: number; // px
}

/** Cells as large as the width allows, up to 16 px, and at least 6. */
export function layoutOf(nodes: number, most: number, width: number): Layout {
  const cell = Math.max(6, Math.min(16, Math.floor(width / Math.max(1, nodes))));
  const columns = Math.max(1, Math.floor(width / cell));
  const band = most * cell + 6;
  return { cell, columns, band, height: Math.ceil(nodes / columns) * band - 6 };
}

/** Where the cells of a node begin. */
export const placeOf = (node: number, { cell, columns, band }: Layout): [x: number, y: number] => [(node % columns) * cell, Math.floor(node / columns) * band];

/** The node and device at a point of the picture; null: there is none. */
export function deviceAt(x: number, y: number, grid: DeviceGrid, layout: Layout): [node: number, device: number] | null {
  const column = Math.floor(x / layout.cell);
  const row = Math.floor(y / layout.band);
  const device = Math.floor((y - row * layout.band) / layout.cell);
  const node = row * layout.columns + column;
  return x >= 0 && y >= 0 && column < layout.columns && grid.nodes[node]?.devices[device] ? [node, device] : null;
}

/** One of seven shades, of a share in percent: 0 only for none at all. */
export const shadeOf = (percent: number): number => (percent < 0.5 ? 0 : Math.max(1, Math.min(6, Math.ceil((percent / 100) * 6))));
