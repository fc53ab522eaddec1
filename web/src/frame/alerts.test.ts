import assert from "node:assert/strict";
import { test } from "node:test";

import { addTexts } from "../text/i18n";
import texts from "../text/locales/alerts.en.json";
import { dismiss, exceeded, idleGpus, kLateMs, lateOf, measuredAlerts, readDismissed, silent } from "./alerts";

addTexts(texts, null);

const kNow = Date.UTC(2031, 3, 5, 8, 15);
const cluster = (id: string, updated: number | null) => ({ id, manager: "slurm", series: true, nodes: true, gpus: false, updated });
const user = { user: "ada", admin: false, role: "user" as const };
const support = { user: "sue", admin: false, role: "support" as const };

test("data is late when several updates did not come, and support learns of which cluster", () => {
  const site = { unit_links: [], clusters: [cluster("a", kNow - 60_000), cluster("b", kNow - kLateMs - 1), cluster("c", null)] };
  assert.equal(lateOf(site, kNow, user)[0]?.text, "The numbers end 2 h ago, at 06:14:59.");
  assert.equal(lateOf(site, kNow, support)[0]?.text, "No update from b for 2 h (last: 06:14:59).");
  assert.notEqual(lateOf(site, kNow, user)[0]?.id, lateOf({ ...site, clusters: [cluster("b", kNow - 2 * kLateMs)] }, kNow, user)[0]?.id);
  assert.deepEqual(lateOf({ unit_links: [], clusters: [cluster("a", kNow - kLateMs)] }, kNow, user), []);
  assert.deepEqual(lateOf(null, kNow, user), []);
});

test("only budgets that are exceeded are told", () => {
  const row = (project: string, state: string, used: unknown = 1.05) => ({ project, cluster_id: null, unit: "kwh", used_share: used, period: "2031", state });
  assert.deepEqual(exceeded([row("a", "ok"), row("b", "warn_0.8"), row("c", "unknown")]), []);
  assert.equal(exceeded([row("a", "over")])[0]?.text, "a has used 105 % of its budget.");
  assert.equal(exceeded([row("a", "over", null)])[0]?.text, "1 budget is exceeded: a");
  assert.equal(exceeded([row("a", "over"), row("<b>", "over"), row("a", "over")])[0]?.text, "3 budgets are exceeded: a, <b>");
  for (const strange of [undefined, null, {}, "x", [null, 1, "x"]]) assert.deepEqual(exceeded(strange), []);
});

test("idle GPUs are shown to the user who holds them", () => {
  const row = (user: string, gpus: unknown, exempt: string | null = null) => ({ uuid: `${user}${gpus}`, user, gpus, exempt });
  assert.equal(idleGpus([row("ada", 4), row("ada", 1), row("lin", 8), row("ada", 0)], "ada")[0]?.text, "Nothing is running on 5 GPUs that you hold.");
  assert.deepEqual(idleGpus([row("ada", 4, "partition"), row("ada", "4")], "ada"), []);
  assert.deepEqual(idleGpus({ rows: [] }, "ada"), []);
});

test("those who look after the site learn what does not answer", () => {
  assert.equal(silent(user).text, "Power and use cannot be read right now.");
  assert.equal(silent(support).text, "A time-series database does not respond.");
});

test("one cluster that does not answer is told beside what is known of others", () => {
  const data = [{ uuid: "1", user: "ada", gpus: 4, exempt: null }];
  const ids = (reasons: ("no_tsdb" | "unavailable")[]) => measuredAlerts({ data, missing: reasons.map((reason) => ({ cluster_id: "b", reason })) }, user).map(({ id }) => id);
  assert.deepEqual(ids(["no_tsdb", "unavailable"]), ["silent", "idle 1"]);
  assert.deepEqual(ids(["no_tsdb"]), ["idle 1"], "a cluster without a database is not one that fails");
  assert.deepEqual(ids([]), ["idle 1"]);
});

test("what is dismissed stays so, whatever else is in the store", () => {
  const items = new Map<string, string>();
  const store = { getItem: (key: string) => items.get(key) ?? null, setItem: (key: string, value: string) => void items.set(key, value) };
  assert.deepEqual(dismiss(store, "late a"), ["late a"]);
  assert.deepEqual(dismiss(store, "over b"), ["late a", "over b"]);
  assert.deepEqual(readDismissed(store), ["late a", "over b"]);
  for (let i = 0; i < 100; ++i) dismiss(store, String(i));
  assert.equal(readDismissed(store).length, 50);
  items.set("ceems.dismissed", '{"a":1}');
  assert.deepEqual(readDismissed(store), []);
  items.set("ceems.dismissed", "[");
  assert.deepEqual(readDismissed(store), []);
});
