import assert from "node:assert/strict";
import { test } from "node:test";

import type { Profile } from "../data/api";
import { barsOf, findIn, flameOf, functionsOf, neighbour, shadeOf, type FlameNode } from "./flame";

const program: Profile = {
  state: "profile",
  from: 0,
  to: 60_000,
  total: 100,
  left_out: 0,
  names: ["total", "main", "solve", "<b>write", "dot"],
  levels: [
    [[0, 100, 0, 0]],
    [[0, 100, 20, 1]],
    [
      [20, 60, 20, 2],
      [80, 20, 20, 3],
    ],
    [
      [40, 30, 10, 4],
      [70, 10, 10, 2],
    ],
    [[50, 20, 20, 2]],
  ],
};
const root = flameOf(program, "all")!;
const named = (name: string, from: FlameNode = root): FlameNode => {
  const left = [from];
  for (let node = left.shift(); node; node = left.shift()) {
    if (node.name === name) return node;
    left.push(...node.children);
  }
  throw new Error(name);
};

test("a profile is a tree of calls", () => {
  const tree = (node: FlameNode): unknown => [node.name, node.self, ...node.children.map(tree)];
  assert.deepEqual(tree(root), ["all", 0, ["main", 20, ["solve", 20, ["dot", 10, ["solve", 20]], ["solve", 10]], ["<b>write", 20]]]);
  assert.equal(flameOf({ ...program, levels: [] }, "all"), null);
  assert.equal(flameOf({ ...program, levels: [[[0, 0, 0, 0]]] }, "all"), null);
  assert.deepEqual(tree(flameOf({ ...program, names: [], levels: [[[0, 5, 0, 0]], [[0, 9, 0, 1], [0, 5, 5, 2]]] }, "all")!), ["all", 0], "children that are wider than their parent are not drawn");
});

test("bars fill the width, and callers of what is zoomed stay", () => {
  assert.deepEqual(barsOf(root, root, 200).map(({ node, x, width }) => [node.name, x, width]), [
    ["all", 0, 200], ["main", 0, 200], ["solve", 40, 120], ["<b>write", 160, 40], ["dot", 80, 60], ["solve", 140, 20], ["solve", 100, 40]]);
  assert.deepEqual(barsOf(root, named("dot"), 300).map(({ node, x, width }) => [node.name, x, width]), [["all", 0, 300], ["main", 0, 300], ["solve", 0, 300], ["dot", 0, 300], ["solve", 100, 200]]);
  assert.equal(barsOf(root, root, 2).length, 4, "what is narrower than half a pixel is left out");
});

test("arrows move among what is drawn", () => {
  const bars = barsOf(root, root, 200);
  const from = (name: string, key: string) => neighbour(bars, named(name), key).name;
  assert.equal(from("all", "ArrowDown"), "main");
  assert.equal(from("main", "ArrowDown"), "solve");
  assert.equal(from("solve", "ArrowRight"), "<b>write");
  assert.equal(from("<b>write", "ArrowRight"), "<b>write");
  assert.equal(from("<b>write", "ArrowDown"), "<b>write");
  assert.equal(from("<b>write", "Home"), "solve");
  assert.equal(from("dot", "End"), "solve");
  assert.equal(from("dot", "ArrowUp"), "solve");
  assert.equal(from("all", "ArrowUp"), "all");
  assert.equal(from("all", "ArrowLeft"), "all");
});

test("a function that calls itself counts once", () => {
  assert.deepEqual(functionsOf(root, 3), [
    { name: "solve", self: 50, total: 60 },
    { name: "main", self: 20, total: 100 },
    { name: "<b>write", self: 20, total: 20 },
  ]);
  const self = functionsOf(root, 99).reduce((sum, one) => sum + one.self, 0);
  assert.equal(self, program.total - root.self, "all of the time is somebody's");
});

test("what is found is found by a part of the name", () => {
  const { nodes, functions, time } = findIn(root, " SOLV");
  assert.deepEqual([nodes.size, functions, time], [3, 1, 60]);
  assert.deepEqual(findIn(root, "").nodes.size, 0);
  assert.deepEqual(findIn(root, "all").nodes.size, 0, "the root does not count as a function");
  assert.equal(findIn(root, "o").time, 60);
});

test("a name has one shade", () => {
  assert.equal(shadeOf("main", 3), shadeOf("main", 3));
  assert.ok(new Set(["a", "b", "c", "d"].map((name) => shadeOf(name, 3))).size > 1);
});
