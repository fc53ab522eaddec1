import assert from "node:assert/strict";
import { test } from "node:test";

import { arranged, keepColumns, moved, readColumns } from "./columns";
import type { Column } from "./table";

test("columns keep their choice, new ones find their place, and the first one stays", () => {
  const column = (key: string): Column => ({ key, label: key, sort: null, numeric: false, priority: 1 });
  const all = ["name", "a", "b", "c"].map(column);
  const keys = (chosen: { key: string; shown: boolean }[]) => arranged(all, chosen).map((one) => `${one.column.key}${one.shown ? "" : "-"}`).join(" ");
  assert.equal(keys([]), "name a b c");
  assert.equal(keys([{ key: "c", shown: true }, { key: "a", shown: false }]), "name c a- b");
  assert.equal(keys([{ key: "name", shown: false }, { key: "gone", shown: true }, { key: "b", shown: true }, { key: "b", shown: false }]), "name a b c");
  const optional = [...all, { ...column("d"), optional: true }];
  assert.deepEqual(arranged(optional, []).map((one) => one.shown), [true, true, true, true, false], "hidden until it is chosen");
  assert.deepEqual(arranged(optional, [{ key: "d", shown: true }]).map((one) => one.column.key), ["name", "a", "b", "c", "d"]);
  assert.deepEqual(moved(["n", "a", "b"], 2, -1), ["n", "b", "a"]);
  assert.deepEqual(moved(["n", "a", "b"], 1, -1), ["n", "a", "b"]);
  assert.deepEqual(moved(["n", "a", "b"], 2, 1), ["n", "a", "b"]);
  const kept = new Map<string, string>();
  const store = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value), removeItem: (key: string) => void kept.delete(key) };
  keepColumns(store, [{ key: "a", shown: false }]);
  assert.deepEqual(readColumns(store), [{ key: "a", shown: false }]);
  keepColumns(store, []);
  assert.equal(kept.size, 0);
  for (const text of ["{", "3", '[null,{"key":1,"shown":true},{"key":"b"}]']) {
    kept.set("ceems.columns", text);
    assert.deepEqual(readColumns(store), []);
  }
});
