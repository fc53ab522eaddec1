import assert from "node:assert/strict";
import { test } from "node:test";

import type { Unit } from "./api";
import { elapsedSeconds, matches, shownId, sorted, stateKind, stateText, toRow, totals } from "./units";

const kNow = 2_000_000_000_000;

function unit(values: Partial<Unit>): Unit {
  return { uuid: "1", cluster_id: "c", started_at_ts: kNow - 100_000, state: "RUNNING", ...values };
}

test("ids of tasks and of parts of heterogeneous jobs are those of squeue", () => {
  assert.equal(shownId(unit({ uuid: "7101", allocation: { array_job: 7100, array_task: 4 } })), "7100_4");
  assert.equal(shownId(unit({ uuid: "8201", allocation: { het_job: 8200, het_offset: 1 } })), "8200+1");
  assert.equal(shownId(unit({ uuid: "9000", allocation: { cpus: 4 } })), "9000");
  assert.equal(shownId(unit({ uuid: "9000" })), "9000");
});

test("states of all managers get a shape and keep their words", () => {
  const ended = kNow - 1000;
  assert.equal(stateKind(unit({})), "running");
  assert.equal(stateKind(unit({ state: "ACTIVE" })), "running");
  assert.equal(stateKind(unit({ state: "COMPLETED", ended_at_ts: ended })), "done");
  assert.equal(stateKind(unit({ state: "OUT_OF_MEMORY", ended_at_ts: ended })), "failed");
  assert.equal(stateKind(unit({ state: "CANCELLED by 1001", ended_at_ts: ended })), "cancelled");
  assert.equal(stateKind(unit({ state: "PENDING", started_at_ts: undefined })), "waiting");
  assert.equal(stateKind(unit({ state: "DONE", ended_at_ts: ended })), "done");
  assert.equal(stateKind(unit({ state: "EXIT", ended_at_ts: ended })), "failed");
  assert.equal(stateKind(unit({ state: "EXITING" })), "running");
  assert.equal(stateKind(unit({ state: "FINISHED", ended_at_ts: ended })), "done");
  assert.equal(stateKind(unit({ state: "whatever", ended_at_ts: ended })), "ended");
  assert.equal(stateText(unit({ state: "OUT_OF_MEMORY" })), "Out of memory");
  assert.equal(stateText(unit({ state: "CANCELLED by ADA_L" })), "Cancelled by ADA_L");
  assert.equal(stateText(unit({ state: undefined })), "Running");
});

test("elapsed text of managers is read, other text is not", () => {
  assert.equal(elapsedSeconds("00:00:05"), 5);
  assert.equal(elapsedSeconds("3-01:00:00"), 262800);
  assert.equal(elapsedSeconds("N/A"), null);
  assert.equal(elapsedSeconds(undefined), null);
});

test("a running unit's elapsed time follows the server's clock, an ended one's the manager", () => {
  assert.equal(toRow(unit({ elapsed: "00:00:01" }), kNow).elapsed, 100);
  assert.equal(toRow(unit({ elapsed: "00:01:05", ended_at_ts: kNow }), kNow).elapsed, 65);
  assert.equal(toRow(unit({ started_at_ts: undefined }), kNow).elapsed, null);
});

test("energy adds GPUs, emissions do so for the same source only", () => {
  const row = toRow(
    unit({
      total_cpu_energy_usage_kwh: { total: 1 },
      total_gpu_energy_usage_kwh: { total: 2 },
      total_cpu_emissions_gms: { owid_total: 50, rte_total: 40 },
      total_gpu_emissions_gms: { owid_total: 100, rte_total: 80 },
    }),
    kNow,
  );
  assert.equal(row.energyKwh, 3);
  assert.equal(row.emissionGrams, 120);
  assert.equal(row.emissionSource?.name, "RTE");
});

test("what was not measured is nothing, not zero", () => {
  const row = toRow(unit({}), kNow);
  assert.equal(row.energyKwh, null);
  assert.equal(row.emissionGrams, null);
  assert.equal(row.cpuPercent, null);
  assert.equal(toRow(unit({ total_cpu_energy_usage_kwh: { total: 0 } }), kNow).energyKwh, 0);
});

test("the filter wants every word, in any field", () => {
  const row = toRow(unit({ name: "Ocean model", username: "ada", project: "fluids", uuid: "48214" }), kNow);
  assert.ok(matches(row, ""));
  assert.ok(matches(row, "  OCEAN ada "));
  assert.ok(matches(row, "fluids 482"));
  assert.ok(matches(row, "running"));
  assert.ok(!matches(row, "ocean lin"));
});

test("rows without a value come last in both directions", () => {
  const rows = [
    toRow(unit({ uuid: "none" }), kNow),
    toRow(unit({ uuid: "small", total_cpu_energy_usage_kwh: { total: 1 } }), kNow),
    toRow(unit({ uuid: "big", total_cpu_energy_usage_kwh: { total: 2 } }), kNow),
  ];
  const ids = (descending: boolean) => sorted(rows, "kwh", descending).map((row) => row.uuid);
  assert.deepEqual(ids(true), ["big", "small", "none"]);
  assert.deepEqual(ids(false), ["small", "big", "none"]);
});

test("names sort by the numbers in them", () => {
  const rows = ["job10", "job9", "Job1"].map((name) => toRow(unit({ uuid: name, name }), kNow));
  assert.deepEqual(
    sorted(rows, "name", false).map((row) => row.name),
    ["Job1", "job9", "job10"],
  );
});

test("totals add what is known and weigh averages by the allocation", () => {
  const rows = [
    toRow(unit({ uuid: "a", avg_cpu_usage: { global: 100 }, total_time_seconds: { alloc_cputime: 300, used_cputime: 300 }, total_cpu_energy_usage_kwh: { total: 1 } }), kNow),
    toRow(unit({ uuid: "b", avg_cpu_usage: { global: 20 }, total_time_seconds: { alloc_cputime: 100, used_cputime: 20 } }), kNow),
    toRow(unit({ uuid: "c", ended_at_ts: kNow, state: "FAILED" }), kNow),
    toRow(unit({ uuid: "d", started_at_ts: 0, state: "PENDING" }), kNow),
  ];
  const sums = totals(rows);
  assert.equal(sums.count, 4);
  assert.equal(sums.running, 2, "what waits does not run");
  assert.equal(sums.cpuPercent, 80);
  assert.equal(sums.coreHours, 400 / 3600);
  assert.equal(sums.gpuHours, null);
  assert.equal(sums.energyKwh, 1);
  assert.equal(sums.emissionGrams, null);
  assert.equal(totals([]).energyKwh, null);
});

test("GPU use is that of units with GPUs", () => {
  const with2 = toRow(unit({ allocation: { gpus: 2 }, avg_gpu_usage: { global: 40 }, total_time_seconds: { alloc_gputime: 200 } }), kNow);
  const none = toRow(unit({ uuid: "2", allocation: { gpus: 0 }, avg_gpu_usage: { global: 0 }, total_time_seconds: { alloc_gputime: 0 } }), kNow);
  assert.deepEqual([with2.gpus, with2.gpuPercent, none.gpus, none.gpuPercent], [2, 40, null, null]);
  assert.equal(totals([with2, none]).gpuPercent, 40);
  assert.equal(totals([with2, none]).gpuHours, 200 / 3600);
});

test("what runs is newer than what has ended", () => {
  const rows = [unit({ uuid: "old", ended_at_ts: 5 }), unit({ uuid: "new", ended_at_ts: 9 }), unit({ uuid: "runs" })].map((u) => toRow(u, kNow));
  assert.deepEqual(sorted(rows, "ended", true).map((row) => row.uuid), ["runs", "new", "old"]);
});
