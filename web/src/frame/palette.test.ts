import assert from "node:assert/strict";
import { test } from "node:test";

import { addTexts } from "../text/i18n";
import texts from "../text/locales/palette.en.json";
import { forgetPlaces, matching, moved, optionsOf, places, remember } from "./palette";

addTexts(texts, null);

const stored = new Map<string, string>();
Object.assign(globalThis, {
  localStorage: {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
    removeItem: (key: string) => void stored.delete(key),
  },
});

test("keeps the last ten places of each user, the newest first", () => {
  for (let i = 0; i < 12; ++i) remember("ada", `#/node/a/n${i}`, `n${i}`);
  remember("ada", "#/node/a/n5", "n5");
  remember("ada", "javascript:alert(1)", "no place");
  const all = places("ada");
  assert.equal(all.length, 10);
  assert.deepEqual(all.slice(0, 3).map((one) => one.text), ["n5", "n11", "n10"]);
  assert.deepEqual(places("eve"), []);
  forgetPlaces("ada");
  assert.deepEqual(places("ada"), []);
});

test("ignores what else is stored", () => {
  for (const text of ["", "{}", "null", "[1,null,[\"javascript:x\",\"x\"],[\"#/jobs\",3]]"]) {
    stored.set("ceems.places ada", text);
    assert.deepEqual(places("ada"), [], text);
  }
});

test("makes an address of each kind", () => {
  const unit = { cluster_id: "a", uuid: "7101", started_at_ts: 5, shown: "7100_4", name: "<b>/x", user: "ada", project: "fluids" };
  const options = optionsOf({ units: [unit, { ...unit, name: null }], people: [{ user: "a/b" }], projects: [{ cluster_id: "a", project: "p" }], nodes: [{ cluster_id: "a", host: "n1" }] });
  assert.deepEqual(options.map((one) => one.href), ["#/unit/a/7101/5", "#/unit/a/7101/5", "#/project/a/p", "#/user/a%2Fb", "#/node/a/n1"]);
  assert.deepEqual(options.map((one) => one.text), ["<b>/x 7100_4", "7100_4", "p", "a/b", "n1"]);
  assert.equal(options[0]?.note, "ada · fluids · a");
});

test("matches all words, and moves in a circle", () => {
  const options = ["Node usage", "Nodes"].map((text) => ({ href: "#/", text, note: "" }));
  assert.equal(matching(options, " USAGE node").length, 1);
  assert.equal(matching(options, "").length, 2);
  assert.deepEqual([moved("ArrowDown", 1, 2), moved("ArrowUp", 0, 2), moved("ArrowDown", 0, 2), moved("a", 0, 2), moved("ArrowUp", 0, 0)], [0, 1, 1, null, null]);
});
