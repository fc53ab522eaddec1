import assert from "node:assert/strict";
import { test } from "node:test";

import { addTexts } from "../../text/i18n";
import en from "../../text/locales/unit.en.json";
import { isLarge, readStragglers, sentenceOf, stragglersQuery } from "./stragglers";

addTexts(en, null);

const kSlow = { node: "g14", device: "3", metric: "gpu_clock", z: -6.1, deviation: -0.11, windows: "8/10", kind: "slow_device", cause: "hardware_thermal", your_code: false, waiting_kwh_max: 0.4 };

test("only jobs of four nodes or eight GPUs that have started are asked for", () => {
  const unit = (allocation: Record<string, unknown>, started = 1) => ({ uuid: "1", started_at_ts: started, allocation });
  assert.equal(isLarge(unit({ nodes: 4 })), true);
  assert.equal(isLarge(unit({ nodes: 3, gpus: 7 })), false);
  assert.equal(isLarge(unit({ nodes: 1, gpus: 8 })), true);
  assert.equal(isLarge(unit({ nodes: 64 }, 0)), false);
  assert.equal(isLarge(unit({ nodes: "many" })), false);
  assert.equal(isLarge({ uuid: "1", started_at_ts: 1 }), false);
  assert.deepEqual(stragglersQuery({ uuid: "1", cluster_id: "a", started_at_ts: 7 }), [["cluster_id", "a"], ["uuid", "1"], ["start", "7"]]);
});

test("a finding is one sentence, with its cause and whose it is", () => {
  const rows = readStragglers([
    kSlow,
    { ...kSlow, device: null, kind: "imbalance", deviation: 0.25, cause: null, your_code: true, waiting_kwh_max: null },
    { ...kSlow, device: null, kind: "waits", deviation: -0.4, cause: null, your_code: null, waiting_kwh_max: 0 },
    { ...kSlow, device: null, kind: "fabric_or_disk", deviation: null, cause: "symbol_error", waiting_kwh_max: null },
    { ...kSlow, cause: "new_reason", waiting_kwh_max: null },
    { ...kSlow, cause: "toString", waiting_kwh_max: null },
  ]).map(sentenceOf);
  assert.match(rows[0]!, /^g14, GPU 3 runs 11 % below its peers: it is too hot\. Not your code\. Waiting took up to .*\.$/);
  assert.deepEqual(rows.slice(1), [
    "g14 works 25 % more than its peers, which wait for it.",
    "g14 works 40 % less than its peers: it waits, or has less to do.",
    "g14 has errors that its peers do not have: errors of its network link. Not your code.",
    "g14, GPU 3 runs 11 % below its peers: new_reason. Not your code.",
    "g14, GPU 3 runs 11 % below its peers: toString. Not your code.",
  ]);
});

test("what is odd in the answer does no harm", () => {
  for (const data of [null, undefined, {}, "x", [null, 7, "x", {}, { node: "", kind: "waits" }, { node: "n", kind: "else" }]]) assert.deepEqual(readStragglers(data), [], JSON.stringify(data));
  const odd = readStragglers([{ node: "a\u202e\nb", kind: "waits", device: 3, deviation: "1", cause: {}, your_code: "no", waiting_kwh_max: NaN }]);
  assert.deepEqual(odd, [{ node: "a b", device: "", kind: "waits", deviation: null, cause: "", yours: null, waiting: null }]);
  assert.equal(readStragglers(Array.from({ length: 100 }, () => kSlow)).length, 8);
});
