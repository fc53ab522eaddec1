import assert from "node:assert/strict";
import { test } from "node:test";

import { Api } from "./api";
import { arrange, cellAt, cellWidth, deviceUse, nodeMap, scaleEnd, stateOf, stepOf, valueOf, type MapNode } from "./nodemap";
import { defaultNodes } from "./nodestate";

function node(host: string, more: Partial<MapNode> = {}): MapNode {
  return { key: `c\n${host}`, cluster: "c", host, rack: null, slot: null, state: "busy", units: 1, cpu: 50, mem: 20, gpu: null, watts: 300, states: "sib", past: [null, 100, 250], devices: [], ...more };
}

test("the map is asked for by metric, and read by column, whatever is missing", async () => {
  const asked: string[] = [];
  const data = {
    columns: ["host", "cluster_id", "rack", "slot", "state", "watts", "states", "past", "devices"],
    rows: [["n1", "a", "R1", 3, "idle", 150.5, "bi", [null, 7], [["0", 97.2, "9-"], "odd"]], ["n2", "a", null, null, "odd", "x", null, "x", null]],
    times: [1000, 2000],
    left_off: 4,
  };
  const api = new Api("http://h/", null, async (input) => {
    asked.push(String(input));
    return new Response(JSON.stringify({ status: "success", data }), { headers: { Date: "Sat, 05 Apr 2031 08:15:00 GMT" } });
  });
  const map = await nodeMap(api, { ...defaultNodes(), by: "gpu", q: " n ", clusters: ["a"] }, new AbortController().signal);
  assert.deepEqual(asked, ["http://h/api/v1/nodes/map/admin?metric=gpu&q=n&cluster_id=a"]);
  assert.deepEqual([map.metric, map.times, map.leftOff], ["gpu", [1000, 2000], 4]);
  assert.deepEqual(map.nodes[0], { key: "a\nn1", cluster: "a", host: "n1", rack: "R1", slot: 3, state: "idle", units: null, cpu: null, mem: null, gpu: null, watts: 150.5, states: "bi", past: [null, 7], devices: [{ index: "0", now: 97.2, tenths: "9-" }, { index: "", now: null, tenths: "" }] });
  assert.deepEqual([map.nodes[1]!.state, map.nodes[1]!.watts, map.nodes[1]!.past], ["silent", null, []]);
});

test("a node has its value and state now and in each hour", () => {
  const one = node("n", { gpu: 12 });
  assert.deepEqual((["power", "cpu", "memory", "gpu", "state"] as const).map((metric) => valueOf(one, metric, null)), [300, 50, 20, 12, null]);
  assert.deepEqual([0, 1, 2, 3].map((hour) => valueOf(one, "power", hour)), [null, 100, 250, null]);
  assert.deepEqual([null, 0, 1, 2, 9].map((hour) => stateOf(one, hour)), ["busy", "silent", "idle", "busy", "silent"]);
  const gpu = { index: "0", now: 97.25, tenths: "0-9" };
  assert.deepEqual([null, 0, 1, 2, 3].map((hour) => deviceUse(gpu, hour)), [{ least: 97.25, most: 97.25 }, { least: 0, most: 10 }, null, { least: 90, most: 100 }, null]);
});

test("the scale has seven steps up to a round number that holds all day", () => {
  assert.deepEqual([0, 14, 15, 50, 99, 100, 200].map((value) => stepOf(value, 100)), [1, 1, 2, 4, 7, 7, 7]);
  assert.equal(stepOf(0, 0), 1);
  assert.equal(scaleEnd([node("a"), node("b", { past: [1843] })], "power"), 2000);
  assert.equal(scaleEnd([node("a", { watts: 500, past: [] })], "power"), 500);
  assert.equal(scaleEnd([node("a", { watts: null, past: [null] })], "power"), 1, "nothing is known");
  assert.equal(scaleEnd([node("a")], "cpu"), 100);
});

test("racks stand side by side in their order, nodes in them from the top down", () => {
  const nodes = [node("x9", { rack: "R10", slot: 1 }), node("x2", { rack: "R2", slot: 2 }), node("x1", { rack: "R2", slot: 1 }), node("z10"), node("z9")];
  const { blocks, cells, height } = arrange(nodes, 200, { width: 50, height: 20 }, 10, 5);
  assert.deepEqual(blocks.map(({ label, rack, x, y }) => [label, rack, x, y]), [["R2", true, 0, 0], ["R10", true, 55, 0], ["c", false, 0, 55]]);
  assert.deepEqual(cells.map(({ node: { host }, x, y }) => [host, x, y]), [["x1", 0, 10], ["x2", 0, 30], ["x9", 55, 10], ["z9", 0, 65], ["z10", 50, 65]]);
  assert.equal(height, 90);
  const tall = arrange(Array.from({ length: 33 }, (_, i) => node(`n${i}`, { rack: "R", slot: i + 1 })), 1000, { width: 50, height: 20 }, 10, 5);
  assert.equal(Math.max(...tall.cells.map(({ x }) => x)), 100, "three columns");
  assert.deepEqual([tall.cells[11]!.node.host, tall.cells[11]!.x, tall.cells[11]!.y], ["n11", 50, 10]);
  const narrow = arrange(nodes.slice(0, 3), 90, { width: 50, height: 20 }, 10, 5);
  assert.deepEqual(narrow.blocks.map(({ x, y }) => [x, y]), [[0, 0], [0, 55]], "the next line begins below the tallest");
  assert.deepEqual(arrange([], 200, { width: 50, height: 20 }, 10, 5), { blocks: [], cells: [], height: 0 });
});

test("arrows go to the nearest node in their direction", () => {
  const { cells } = arrange([node("a1", { rack: "A", slot: 1 }), node("a2", { rack: "A", slot: 2 }), node("b1", { rack: "B", slot: 1 })], 500, { width: 50, height: 20 }, 10, 5);
  const to = (at: number, key: string) => cellAt(cells, at, key);
  assert.deepEqual([to(0, "ArrowRight"), to(0, "ArrowDown"), to(0, "ArrowLeft"), to(0, "ArrowUp")], [2, 1, 0, 0]);
  assert.deepEqual([to(1, "ArrowRight"), to(2, "ArrowLeft"), to(1, "ArrowUp")], [2, 0, 0]);
  assert.deepEqual([to(1, "Home"), to(0, "End"), to(-1, "ArrowRight"), to(0, "x"), to(0, "Enter")], [0, 2, 0, null, null]);
  assert.equal(cellAt([], -1, "Home"), null);
});

test("cells are as wide as the lines of racks have room for", () => {
  const rack = (name: string, n: number) => Array.from({ length: n }, (_, i) => node(`${name}${i}`, { rack: name, slot: i + 1 }));
  const cell = { width: 50, height: 20 };
  const widest = (nodes: MapNode[], width: number, most = 120) => cellWidth(arrange(nodes, width, cell, 10, 10).blocks, width, cell.width, most, 10);
  const two = [...rack("a", 30), ...rack("b", 10)]; // three columns
  assert.equal(widest(two, 310), 100);
  assert.equal(widest(two, 310, 80), 80, "not wider than it should be");
  assert.equal(widest(two, 160), 50, "it just fits");
  assert.equal(widest(two, 110), 55, "one below the other, the widest fills the line");
  assert.equal(widest([...two, ...Array.from({ length: 9 }, (_, i) => node(`z${i}`))], 310), 100, "lines without racks follow");
  assert.equal(widest([node("z1"), node("z2")], 210), 105, "without racks");
  for (const width of [170, 311, 640]) {
    const wide = widest(two, width, 400);
    const { blocks } = arrange(two, width, { width: wide, height: 20 }, 10, 10);
    assert.deepEqual(blocks.map(({ y }) => y), [0, 0], `${width}: still one line`);
    assert.ok(blocks.at(-1)!.x + blocks.at(-1)!.width <= width && blocks.at(-1)!.x + blocks.at(-1)!.width > width - 3, `${width} is filled`);
  }
  assert.equal(widest([], 310, 120), 120);
});
