import assert from "node:assert/strict";
import { test } from "node:test";

import { read, write, type Route } from "../pages/address";
import { Api, ApiError } from "./api";
import { stack } from "../charts/bars";
import { grid, meanOf, nodeList, nodeOf, nodeQuery, records, unitsOnNode } from "./fleet";
import { maySeeSite } from "./identity";
import { defaultNodes, kNodeSorts, kNodeStates, type NodesState } from "./nodestate";

const kSignal = new AbortController().signal;

function answering(data: unknown, more: object = {}): { api: Api; asked: string[] } {
  const asked: string[] = [];
  const fetcher: typeof fetch = async (input) => {
    asked.push(String(input));
    return new Response(JSON.stringify({ status: "success", data, ...more }), { headers: { Date: "Sat, 05 Apr 2031 08:15:00 GMT" } });
  };
  return { api: new Api("http://h/", null, fetcher), asked };
}

test("the address keeps the page of nodes, and nothing that is wrong", () => {
  for (const q of ["", "n0", "a&b=c #/é"]) {
    for (const sort of kNodeSorts) {
      for (const descending of [true, false]) {
        const nodes: NodesState = { q, states: ["idle", "silent"], clusters: ["hpc-a", "50%/x"], sort, descending, view: descending ? "time" : "map", by: descending ? "power" : "gpu", cursor: descending ? "a+/=" : "", at: descending ? 100 : 0 };
        const route: Route = { page: "nodes", nodes };
        assert.deepEqual(read(new URL(`http://h/${write(route)}`).hash), route, write(route));
      }
    }
  }
  assert.equal(write({ page: "nodes", nodes: defaultNodes() }), "#/nodes");
  for (const query of ["state=x", "sort=password", "order=up", "show=x", "by=watts", "at=5", "cursor=&at=5", "q=", "cluster=", "nothing=1"]) {
    assert.deepEqual(read(`#/nodes?${query}`), { page: "nodes", nodes: defaultNodes() }, query);
  }
  const many = Array.from({ length: 50 }, (_, i) => `cluster=c${i}`).join("&");
  const route = read(`#/nodes?${many}`);
  assert.equal(route.page === "nodes" && route.nodes.clusters.length, 20);
});

test("the other pages of the site keep their state, too", () => {
  const routes: Route[] = [
    { page: "grid" },
    { page: "users", month: null },
    { page: "site", month: { year: 2026, month: 11 } },
    { page: "node", cluster: "a/b", host: "n 1?#%", hours: 24 },
    { page: "node", cluster: "c", host: "n", hours: 168 },
  ];
  for (const route of routes) assert.deepEqual(read(new URL(`http://h/${write(route)}`).hash), route, write(route));
  assert.deepEqual(read("#/node/c/n?period=99999h"), { page: "node", cluster: "c", host: "n", hours: 744 }, "no more than the server has");
  assert.deepEqual(read("#/node/c/n?period=month"), { page: "node", cluster: "c", host: "n", hours: 24 });
  for (const hash of ["#/node/c", "#/node/c/", "#/node//n", "#/grid/x", "#/site/x", "#/nodes/x"]) assert.deepEqual(read(hash), { page: "unknown" }, hash);
});

test("nodes are asked for and read by column, whatever the order", async () => {
  const data = {
    columns: ["host", "cluster_id", "state", "cpu", "watts", "idle_since"],
    rows: [["n2", "hpc-a", "idle", 0.4, null, 5], ["n1", "hpc-a", "odd", "x", 300, null]],
    counts: { idle: 1, busy: 2 }, watts: 300, idle_watts: 0, idle_kwh: null, missing: [{ cluster_id: "hpc-b", reason: "no_tsdb" }],
  };
  const { api, asked } = answering(data, { next: "n" });
  const nodes: NodesState = { ...defaultNodes(), q: " n ", states: ["idle", "busy"], clusters: ["hpc-a"], sort: "cpu", descending: true };
  const list = await nodeList(api, nodeQuery(nodes), kSignal);
  assert.deepEqual(asked, ["http://h/api/v1/nodes/admin?q=n&state=idle%2Cbusy&cluster_id=hpc-a&sort=cpu&order=desc"]);
  assert.deepEqual(list.rows[0], { key: "hpc-a\nn2", cluster: "hpc-a", host: "n2", state: "idle", units: null, cpus: null, cpu: 0.4, mem: null, gpu: null, gpus: null, watts: null, idleSince: 5, idleKwh: null, seen: null });
  assert.equal(list.rows[1]!.state, "silent", "a state that is not known is not taken for busy");
  assert.equal(list.rows[1]!.cpu, null);
  assert.deepEqual([list.counts, list.idleKwh, list.missing, list.next], [{ idle: 1, busy: 2, silent: 0 }, null, [{ cluster: "hpc-b", reason: "no_tsdb" }], "n"]);
  assert.equal(nodeOf({}).state, "silent");
  for (const wrong of [null, {}, { columns: ["host"] }, { columns: "host", rows: [] }]) assert.throws(() => records(wrong as never), ApiError);
});

test("units of a node without a name have their identifier, and those that wait are not on it", async () => {
  const data = {
    columns: ["uuid", "started", "ended", "state", "user", "project", "name", "cpus", "cpu", "kwh", "gpu"],
    rows: [["7", 1000, null, "RUNNING", "ada", "p", null, 4, 12.5, 1, 55], ["8", null, null, "PENDING", "ada", "p", "x", 4, null, null, null], ["9", 1000, 2000, "OUT_OF_MEMORY", "ada", "p", "x", 4, null, null, null]],
    source: "tsdb",
  };
  const { api, asked } = answering(data);
  const { units, known } = await unitsOnNode(api, "hpc-a", "n1", 1500, 9500, kSignal);
  assert.deepEqual(asked, ["http://h/api/v1/units/on-node/admin?cluster_id=hpc-a&host=n1&from=1&to=10"]);
  assert.deepEqual(units.map(({ uuid, name, kind, ended, gpu }) => [uuid, name, kind, ended, gpu]), [["7", "7", "running", null, 55], ["9", "x", "failed", 2000, null]]);
  assert.equal(known, true);
  assert.equal((await unitsOnNode(answering({ ...data, source: null }).api, "c", "n", 0, 1, kSignal)).known, false);
});

test("a grid of which nothing is known is empty, and a mean needs readings", async () => {
  assert.deepEqual((await grid(answering(null).api, kSignal)).data, { now: null, series: [], best: [] });
  assert.equal(meanOf([]), null);
  assert.equal(meanOf([[0, 10], [1, 30]]), 20);
});

test("support and administrators see the site, others do not", () => {
  const roles = ["nobody", "user", "project_lead", "support", "admin"] as const;
  assert.deepEqual(roles.filter((role) => maySeeSite({ user: "x", admin: false, role })), ["support", "admin"]);
  assert.equal(kNodeStates[0], "idle", "idle nodes come first");
});

test("the line of another month has its own scale and gaps, and needs no bars", () => {
  const { bars, marks } = stack([[10, 5]], 2, { width: 200, height: 100, left: 0 }, [20, null, 900]);
  assert.equal(marks.at(-1)!.value, 20, "a third day is not drawn");
  assert.deepEqual(bars.map(({ mark, total }) => [mark, total]), [[0, 10], [null, 5]]);
  assert.deepEqual(stack([[1]], 1, { width: 100, height: 100, left: 0 }).bars.map(({ mark }) => mark), [null]);
});
