import assert from "node:assert/strict";
import { test } from "node:test";

import type { Api, Identity } from "./api";
import { giveAnswer, mayAnswer, readAnswers } from "./feedback";

const kUnit = { cluster_id: "hpc", uuid: "7&8", username: "ada", project: "fluids", started_at_ts: 5000 };

test("answers are of the owner and of leads of the project on that cluster", () => {
  const person = (user: string, led?: Identity["led"]): Identity => ({ user, admin: true, ...(led && { led }) });
  assert.ok(mayAnswer(person("ada"), kUnit));
  assert.ok(mayAnswer(person("lea", [{ cluster_id: "hpc", project: "fluids" }]), kUnit));
  assert.ok(!mayAnswer(person("root"), kUnit));
  assert.ok(!mayAnswer(person("lea", [{ cluster_id: "other", project: "fluids" }]), kUnit));
});

test("answers are read by rule, and what is none is not answered", async () => {
  const data = [{ rule: "cpu-low", answer: "not_applicable" }, { rule: "oom", answer: null }, { rule: "idle", answer: "perhaps" }];
  const api = { get: async (path: string, query: unknown) => (assert.deepEqual([path, query], ["units/feedback", [["cluster_id", "hpc"], ["uuid", "7&8"], ["start", "5000"]]]), { data }) };
  const answers = await readAnswers(api as unknown as Api, kUnit, new AbortController().signal);
  assert.deepEqual([...answers], [["cpu-low", "not_applicable"], ["oom", null], ["idle", null]]);
});

test("an answer names the run in the address, escaped", async () => {
  let sent: [string, string, string] | null = null;
  const api = { ask: async (path: string, { method, body }: { method: string; body: Blob }) => void (sent = [path, method, await body.text()]) };
  await giveAnswer(api as unknown as Api, kUnit, "cpu-low", "no");
  assert.deepEqual(sent, ["api/v1/units/feedback?cluster_id=hpc&uuid=7%268&start=5000", "POST", '{"rule":"cpu-low","answer":"no"}']);
});
