import assert from "node:assert/strict";
import { test } from "node:test";

import { changed, defaultList, readList, writeList } from "./liststate";
import { energyOfRun, readKinds, runsOf, wastedBy } from "./unitkinds";

const kKind = {
  cluster_id: "hpc-a", user: "ada", project: "fluids", name: "train_#-v#", units: 60, running: 1, failed: 2, measured: 60, kwh: 297, unused: 38, unused_of: 290, not_used: 21, not_used_of: 280, grams: 132000, cpu: 46.1, mem: 29.8,
  gpu: 46.2, kwh_before: 4.9, kwh_since: 5.1, ended: 1794970436000, finding: { uuid: "4711", started_at_ts: 1794903120000, rule: "gpu-unused", severity: "important", runs: 8, values: { want: 2 } },
};

test("kinds are read as the server documents them, and what has another type is unknown", () => {
  const found = readKinds({ kinds: [kKind, { ...kKind, name: null, kwh: "1e3", unused: null, not_used: null, finding: { rule: "x" } }, 7], more: true })!;
  assert.equal(found.more, true);
  const [first, second, third] = found.kinds;
  assert.deepEqual([first!.units, first!.energyKwh, first!.unusedKwh, first!.unusedOfKwh, first!.notUsedKwh, first!.notUsedOfKwh, first!.kwhBefore, first!.kwhSince], [60, 297, 38, 290, 21, 280, 4.9, 5.1]);
  assert.deepEqual(first!.finding, { uuid: "4711", started: 1794903120000, rule: "gpu-unused" });
  assert.deepEqual([second!.name, second!.energyKwh, second!.unusedKwh, second!.notUsedKwh, second!.finding], [null, null, null, null, null]);
  assert.deepEqual([third!.units, third!.name], [0, null]);
  assert.equal(new Set(found.kinds.map((kind) => kind.key)).size, 3);
  for (const wrong of [null, [], {}, { kinds: {} }, "kinds"]) assert.equal(readKinds(wrong), null);
});

test("a kind leads to the list of its runs", () => {
  const [kind] = readKinds({ kinds: [kKind], more: false })!.kinds;
  const within = changed(defaultList(), { view: "all", show: "ended", kinds: "kwh", period: { kind: "hours", hours: 168 }, ranges: { ...defaultList().ranges, gpu: { least: null, most: 50 } } });
  const list = runsOf(kind!, within);
  assert.equal(list.kinds, null);
  assert.equal(list.q, "train_ -v", "words that every run has");
  assert.equal(writeList(list).toString(), "q=train_+-v&show=ended&period=168h&view=all&project=fluids&cluster=hpc-a&user=ada&gpu=..50");
  assert.equal(runsOf({ ...kind!, name: null, project: "a,b" }, within).q, "");
  assert.deepEqual(runsOf({ ...kind!, project: "a,b" }, within).choices.project, []);
});

test("the address has the order of kinds", () => {
  for (const sort of ["not_used", "unused", "kwh", "units", "ended"] as const) {
    const query = writeList(changed(defaultList(), { kinds: sort }));
    assert.equal(query.get("kinds"), sort);
    assert.equal(readList(query).kinds, sort);
  }
  assert.equal(readList(new URLSearchParams("kinds=name")).kinds, null);
  assert.equal(readList(new URLSearchParams("kinds=kwh&heat=mem")).kinds, null, "one form of the list at a time");
});

test("a run's energy is a mean, with its change within the period where both halves are known", () => {
  const [kind] = readKinds({ kinds: [kKind], more: false })!.kinds;
  assert.equal(energyOfRun(kind!), "4.95 kWh a run (+4.1\u00a0%)");
  assert.equal(energyOfRun({ ...kind!, kwhBefore: 10.2 }), "4.95 kWh a run (−50\u00a0%)");
  for (const same of [{ kwhBefore: null }, { kwhSince: null }, { kwhBefore: 0 }, { kwhBefore: 5.1 }]) assert.equal(energyOfRun({ ...kind!, ...same }), "4.95 kWh a run");
  assert.equal(energyOfRun({ ...kind!, energyKwh: null }), "");
  assert.equal(energyOfRun({ ...kind!, measured: 30, kwhSince: null }), "9.9 kWh a run", "of the runs where it is known");
  assert.deepEqual(wastedBy(kind!, "unused"), [38, 290]);
});
