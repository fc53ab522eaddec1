import assert from "node:assert/strict";
import { test } from "node:test";

import { Api } from "./api";
import { bandPaths } from "../charts/bandline";
import { beginLine, forecast, lastUnit, meanFrom, type ForecastHour } from "./forecast";

const kSignal = new AbortController().signal;
const kHour = 3600_000;
const answering = (data: unknown) => new Api("http://h/", null, async () => new Response(JSON.stringify({ status: "success", data })));

test("the mean of hours counts parts of them, and is not known beyond the forecast", () => {
  const hours: ForecastHour[] = [[0, 10, 8, 12], [kHour, 30, 20, 40], [2 * kHour, null, null, null], [3 * kHour, 50, 50, 50]];
  assert.equal(meanFrom(hours, 0, 1), 10);
  assert.equal(meanFrom(hours, 0, 2), 20);
  assert.equal(meanFrom(hours, 0, 1.5), 25 / 1.5, "ten, and half of thirty");
  assert.equal(meanFrom(hours, kHour / 2, 1), 20);
  assert.deepEqual([meanFrom(hours, 0, 3), meanFrom(hours, 3 * kHour, 1.1), meanFrom(hours, -kHour, 1.5), meanFrom(hours, 0, 0), meanFrom([], 0, 1)], [null, null, null, null, null]);
});

test("each scheduler has its line, and other managers have none", () => {
  const at = "2031-04-05T03:00:00";
  assert.deepEqual(["slurm", "lsf", "openpbs", "k8s", "openstack", ""].map((manager) => beginLine(manager, at)), [
    "#SBATCH --begin=2031-04-05T03:00", "#BSUB -b 2031:04:05:03:00", "#PBS -a 203104050300", null, null, null,
  ]);
  for (const wrong of ["", "2031-04-05", "x; rm -rf"]) assert.equal(beginLine("slurm", wrong), null);
});

test("the last unit is the newest that has ended with energy", async () => {
  const columns = ["cluster_id", "uuid", "name", "started", "ended", "kwh"];
  const rows = [["a", "9", "x", 0, null, 1], ["a", "8", "x", 0, 59_999, 1], ["a", "8", "x", 0, kHour, null], ["a", "7", null, kHour, 3.5 * kHour, 1.25], ["a", "6", "old", 0, kHour, 1]];
  assert.deepEqual(await lastUnit(answering({ columns, rows }), 9e12, kSignal), { cluster: "a", name: "7", hours: 2.5, kwh: 1.25 });
  assert.equal(await lastUnit(answering({ columns, rows: rows.slice(0, 3) }), 9e12, kSignal), null);
  assert.deepEqual(await forecast(answering(null), kSignal), { provider: null, country: null, hours: [], windows: [] });
});

test("the band has gaps where nothing is known", () => {
  const { line, band } = bandPaths([[0, 1, 0, 2], [kHour, null, null, null], [2 * kHour, 3, 2, 4]], (ms) => ms / kHour, (value) => value);
  assert.equal(line, "M0.0 1.0L1.0 1.0M2.0 3.0L3.0 3.0");
  assert.equal(band, "M0.0 2.0L1.0 2.0L1.0 0.0L0.0 0.0ZM2.0 4.0L3.0 4.0L3.0 2.0L2.0 2.0Z");
  assert.deepEqual(bandPaths([], Number, Number), { line: "", band: "" });
});
