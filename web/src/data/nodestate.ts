// The state of the page of nodes in the address.

export const kNodeStates = ["idle", "busy", "silent"] as const;
export type NodeStateName = (typeof kNodeStates)[number];
export const kNodeSorts = ["state", "host", "units", "cpu", "mem", "gpu", "watts", "idle_since", "idle_kwh"] as const;
/** What colours the cells of the map. */
export const kMapMetrics = ["power", "cpu", "memory", "gpu", "state"] as const;
export type MapMetric = (typeof kMapMetrics)[number];
export const kNodeViews = ["table", "map", "time"] as const;
export type NodeSort = (typeof kNodeSorts)[number];

export interface NodesState {
  q: string;
  states: NodeStateName[]; // empty: any
  clusters: string[];
  sort: NodeSort;
  descending: boolean;
  view: (typeof kNodeViews)[number];
  by: MapMetric;
  cursor: string;
  at: number; // rows before the page
}

const kMaxClusters = 20;
const kMaxText = 200;

export function defaultNodes(): NodesState {
  return { q: "", states: [], clusters: [], sort: "state", descending: false, view: "table", by: "power", cursor: "", at: 0 };
}

/** Names from A, what has been idle longest, otherwise the most first. */
export function nodesDescendFirst(sort: NodeSort): boolean {
  return sort !== "state" && sort !== "host" && sort !== "idle_since";
}

export function readNodes(query: URLSearchParams): NodesState {
  const nodes = defaultNodes();
  nodes.q = (query.get("q") ?? "").slice(0, kMaxText);
  nodes.states = kNodeStates.filter((state) => query.getAll("state").includes(state));
  nodes.clusters = [...new Set(query.getAll("cluster").filter((text) => text !== "" && text.length <= kMaxText))].slice(0, kMaxClusters);
  nodes.sort = kNodeSorts.find((sort) => sort === query.get("sort")) ?? "state";
  const order = query.get("order");
  nodes.descending = order === "asc" || order === "desc" ? order === "desc" : nodesDescendFirst(nodes.sort);
  nodes.view = kNodeViews.find((view) => view === query.get("show")) ?? "table";
  nodes.by = kMapMetrics.find((metric) => metric === query.get("by")) ?? "power";
  nodes.cursor = query.get("cursor") ?? "";
  const at = Number(query.get("at"));
  nodes.at = nodes.cursor !== "" && Number.isSafeInteger(at) && at > 0 ? at : 0;
  return nodes;
}

export function writeNodes(nodes: NodesState): URLSearchParams {
  const query = new URLSearchParams();
  if (nodes.q) query.set("q", nodes.q);
  for (const state of kNodeStates) if (nodes.states.includes(state)) query.append("state", state);
  for (const cluster of nodes.clusters) query.append("cluster", cluster);
  if (nodes.sort !== "state") query.set("sort", nodes.sort);
  if (nodes.descending !== nodesDescendFirst(nodes.sort)) query.set("order", nodes.descending ? "desc" : "asc");
  if (nodes.view !== "table") query.set("show", nodes.view);
  if (nodes.by !== "power") query.set("by", nodes.by);
  if (nodes.cursor) {
    query.set("cursor", nodes.cursor);
    if (nodes.at > 0) query.set("at", String(nodes.at));
  }
  return query;
}
