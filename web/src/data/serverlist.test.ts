import assert from "node:assert/strict";
import { test } from "node:test";

import { defaultList, type ListState } from "./liststate";
import { Api } from "./api";
import { Lists } from "./lists";
import { filterQuery, readRow, readSummary } from "./serverlist";

const kNow = Date.UTC(2031, 3, 5, 8, 15);
const signal = new AbortController().signal;

function query(change: Partial<ListState>): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const [key, value] of filterQuery({ ...defaultList(), ...change }, "all", kNow)) (found[key] ??= []).push(value);
  return found;
}

test("filters become the parameters of the server", () => {
  const from = String(Date.UTC(2031, 3, 4, 8, 15) / 1000);
  const to = String(Date.UTC(2031, 3, 5, 8, 30) / 1000);
  assert.deepEqual(query({}), { from: [from], to: [to], running: ["1"] });
  assert.deepEqual(query({ show: "running" }), { from: [from], to: [to], running: ["1"], state: ["running"] });
  assert.deepEqual(query({ show: "ended" }), { from: [from], to: [to] });
  assert.deepEqual(query({ q: " a b ", period: { kind: "all" } }), { running: ["1"], q: ["a b"] }, "words need no period");
  assert.deepEqual(query({ q: " ", period: { kind: "all" } }).from, ["1"]);
  const { choices, ranges } = defaultList();
  const narrowed = query({
    choices: { ...choices, state: ["FAILED"], cluster: ["hpc-a"], project: ["a b", "50%"] },
    ranges: { ...ranges, cpu: { least: null, most: 20 }, wall: { least: 3600, most: null } },
  });
  assert.deepEqual(narrowed, { from: [from], to: [to], running: ["1"], state: ["FAILED"], cluster_id: ["hpc-a"], project: ["a b", "50%"], cpu: ["..20"], wall: ["3600.."] });
  assert.deepEqual(filterQuery(defaultList(), "led", kNow).at(-1), ["scope", "led"]);
});

test("rows are read by the names of their columns, in any order", () => {
  const columns = ["kwh", "uuid", "cluster_id", "started", "ended", "wall", "state", "name", "gpus", "gpu", "cpu", "new"];
  const row = readRow(columns, [1.5, "7", "c", kNow - 10_000, null, 3, "RUNNING", "<b>", 2, 0, null, "?"], kNow);
  assert.deepEqual([row.key, row.name, row.kind, row.elapsed, row.energyKwh, row.gpuPercent, row.cpuPercent, row.unusedKwh], [`c/7/${kNow - 10_000}`, "<b>", "running", 10, 1.5, 0, null, null]);
  const ended = readRow(columns, [0, "7", "c", kNow - 10_000, kNow - 1000, 3, "CANCELLED", null, 0, 0, 12], kNow);
  assert.deepEqual([ended.name, ended.kind, ended.elapsed, ended.energyKwh, ended.gpus, ended.gpuPercent], ["7", "cancelled", 3, 0, null, null]);
  const strange = readRow(columns, [{}, 7, null, "x", [], Number.NaN, null], kNow);
  assert.deepEqual([strange.uuid, strange.cluster, strange.started, strange.energyKwh, strange.wall], ["7", "", null, null, null]);
});

test("a summary divides by what was measured", () => {
  const summary = readSummary({
    count: 5, running: 1, kwh: 12, grams: 600, cost: null, core_hours: 100, core_hours_measured: 80, core_hours_used: 20, gpu_hours: 0, gpu_hours_measured: 0,
    gpu_hours_used: 0, idle_kwh: null, facets: { state: [["FAILED", 3, 1], [null, 1, 0], ["a,b", 1, 0], ["(others)", 1, 0]] },
  });
  assert.deepEqual([summary.totals.cpuPercent, summary.totals.coreHours, summary.totals.gpuHours, summary.totals.gpuPercent, summary.totals.unusedKwh], [25, 100, null, null, null]);
  assert.deepEqual(summary.facets.state, [{ value: "FAILED", count: 3 }]);
  assert.deepEqual(summary.facets.user, []);
});

test("a server without lists is asked once, then for all units", async () => {
  const asked: string[] = [];
  const fetcher: typeof fetch = async (input) => {
    asked.push(new URL(String(input)).pathname);
    return String(input).includes("units/list") || String(input).includes("units/summary")
      ? new Response("404 page not found\n", { status: 404 })
      : new Response('{"status":"success","data":[{"uuid":"1","ended_at_ts":5}]}');
  };
  const lists = new Lists(new Api("http://h/", null, fetcher));
  const [page, summary] = await Promise.all([lists.page(defaultList(), "own", 100, true, signal), lists.summary(defaultList(), "own", signal)]);
  assert.equal(page.rows.length, 1);
  assert.match(page.notes[0]!, /older than the page/);
  assert.equal(summary.totals.count, 1);
  await lists.page(defaultList(), "own", 100, false, signal);
  assert.equal(asked.filter((path) => path.includes("units/list")).length, 1);
  assert.equal(asked.filter((path) => path === "/api/v1/units").length, 1);
});

test("other failures are failures", async () => {
  for (const [status, body, message] of [
    [400, '{"status":"error","error":"choose a shorter period"}', "choose a shorter period"],
    [200, '{"status":"success","data":[]}', "the answer is not a list of units"],
    [200, '{"status":"success"}', "the answer is not a list of units"],
  ] as const) {
    const lists = new Lists(new Api("http://h/", null, async () => new Response(body, { status })));
    await assert.rejects(lists.page(defaultList(), "own", 100, true, signal), { message });
  }
});

test("a page and its neighbours", async () => {
  let seen = new URL("http://h");
  const body = { status: "success", data: { columns: ["uuid"], rows: [["1"]], partial: true }, next: "n", previous: "p" };
  const fetcher: typeof fetch = async (input) => {
    seen = new URL(String(input));
    return new Response(JSON.stringify(body), { headers: { Date: new Date(kNow).toUTCString() } });
  };
  const lists = new Lists(new Api("http://h/", null, fetcher));
  const page = await lists.page({ ...defaultList(), sort: "kwh", cursor: "c" }, "all", 20, true, signal);
  assert.deepEqual([page.next, page.previous, page.serverTime, page.notes.length], ["n", "p", kNow, 1]);
  assert.equal(seen.pathname, "/api/v1/units/list/admin");
  assert.deepEqual(["sort", "order", "limit", "cursor"].map((key) => seen.searchParams.get(key)), ["kwh", "desc", "20", "c"]);
  const text = await (await lists.file(defaultList(), "all")).text();
  assert.equal(text, JSON.stringify(body));
  assert.equal(seen.searchParams.get("format"), "csv");
});
