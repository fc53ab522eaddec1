import assert from "node:assert/strict";
import { test } from "node:test";

import { defaultList, type ListState } from "./liststate";
import { Api, type Unit } from "./api";
import { csv, csvCell } from "./csv";
import { kPageRows } from "./list";
import { LocalList, wanted } from "./locallist";
import { toRow } from "./units";

const kNow = Date.UTC(2031, 3, 5, 8, 15);

function units(count: number): Unit[] {
  return Array.from({ length: count }, (_, i) => ({
    uuid: String(i), cluster_id: "c", username: i % 3 ? "ada" : "lin", project: "p", started_at_ts: kNow - 10_000, ended_at_ts: kNow - i * 1000, state: "COMPLETED",
    total_cpu_energy_usage_kwh: { total: i }, avg_cpu_usage: { global: i % 100 }, total_time_seconds: { alloc_cputime: 3600 },
  }));
}

function server(data: Unit[], next?: string): { api: Api; asked: URL[] } {
  const asked: URL[] = [];
  const fetcher: typeof fetch = async (input) => {
    asked.push(new URL(String(input)));
    return new Response(JSON.stringify({ status: "success", data, next }), { headers: { Date: new Date(kNow).toUTCString() } });
  };
  return { api: new Api("http://h/", null, fetcher), asked };
}

const signal = new AbortController().signal;

test("without lists of the server, pages are cut from all units of the period", async () => {
  const { api, asked } = server(units(250));
  const source = new LocalList(api);
  const list = { ...defaultList(), sort: "kwh" } as ListState;
  const first = await source.page(list, "all", 100, true, signal);
  assert.deepEqual([first.rows.length, first.rows[0]?.uuid, first.previous, first.next], [kPageRows, "249", null, "100"]);
  const last = await source.page({ ...list, cursor: "200" }, "all", 100, false, signal);
  assert.deepEqual([last.rows.length, last.rows.at(-1)?.uuid, last.previous, last.next], [50, "0", "100", null]);
  const beyond = await source.page({ ...list, cursor: "9999" }, "all", 100, false, signal);
  assert.equal(beyond.rows.length, 1, "a page that is no more shows the end");
  const summary = await source.summary({ ...list, choices: { ...list.choices, user: ["lin"] } }, "all", signal);
  assert.deepEqual([summary.totals.count, summary.totals.coreHours, last.notes.length], [84, 84, 1]);
  assert.deepEqual(summary.facets.user, [{ value: "ada", count: 166 }, { value: "lin", count: 84 }]);
  assert.equal(asked.length, 1, "filters and pages do not ask the server again");
  assert.equal(asked[0]?.pathname, "/api/v1/units/admin");
  assert.equal(Number(asked[0]?.searchParams.get("to")) % 900, 0);
  await source.page(list, "all", 100, true, signal);
  assert.equal(asked.length, 2);
  await source.page(list, "led", 100, false, signal);
  assert.equal(asked[2]?.searchParams.get("scope"), "led");
});

test("what its asker gave up is asked again", async () => {
  let asked = 0;
  const fetcher: typeof fetch = (_, options) => {
    if (++asked > 1) return Promise.resolve(new Response(JSON.stringify({ status: "success", data: units(3) })));
    return new Promise((_, refuse) => options?.signal?.addEventListener("abort", () => refuse(options.signal?.reason)));
  };
  const source = new LocalList(new Api("http://h/", null, fetcher));
  const given = new AbortController();
  const first = source.page(defaultList(), "all", 100, true, given.signal);
  given.abort();
  const second = source.page(defaultList(), "all", 100, false, signal);
  await assert.rejects(first);
  assert.equal((await second).rows.length, 3);
});

test("a list that the server cut says so", async () => {
  const source = new LocalList(server(units(3), "cursor").api);
  assert.match((await source.page(defaultList(), "all", 100, true, signal)).notes[1]!, /newest 5,000 units/);
});

test("filters hold on both sides of each limit, and nothing is known about what was not measured", () => {
  const row = toRow(units(31)[30]!, kNow);
  const cpu = (least: number | null, most: number | null) => wanted(row, { ...defaultList(), ranges: { ...defaultList().ranges, cpu: { least, most } } });
  assert.deepEqual([cpu(30, null), cpu(30.1, null), cpu(null, 30), cpu(null, 29.9), cpu(30, 30)], [true, false, true, false, true]);
  assert.equal(wanted(row, { ...defaultList(), ranges: { ...defaultList().ranges, gpu: { least: 0, most: null } } }), false);
  assert.equal(wanted(row, { ...defaultList(), show: "running" }), false);
  assert.equal(wanted(row, { ...defaultList(), show: "ended", q: "lin p" }), true);
  const waiting = { ...row, kind: "waiting" as const };
  assert.deepEqual(["all", "running", "ended"].map((show) => wanted(waiting, { ...defaultList(), show: show as "all" })), [true, false, false]);
  const choice = (user: string[]) => wanted(row, { ...defaultList(), choices: { ...defaultList().choices, user } });
  assert.deepEqual([choice(["ada"]), choice(["ada", "lin"])], [false, true]);
});

test("no cell of a file is a formula or breaks its line", async () => {
  assert.equal(csvCell("=HYPERLINK(1)"), "'=HYPERLINK(1)");
  for (const text of ["+1", "-1", "@x", "\tx", "\rx"]) assert.ok(csvCell(text).replace(/^"/, "").startsWith("'"), JSON.stringify(text));
  assert.equal(csvCell("\uff1d1+1"), "'\uff1d1+1");
  assert.equal(csvCell("x;=1+1;y"), `"x;'=1+1;y"`);
  assert.equal(csvCell("sweep-1 +2=3"), "sweep-1 +2=3");
  assert.equal(csvCell('a"b'), '"a""b"');
  assert.equal(csvCell("a,b\nc"), '"a,b\nc"');
  assert.equal(csvCell("a;b"), '"a;b"');
  assert.equal(csvCell(" a"), '" a"');
  assert.equal(csvCell(-1.5), "-1.5");
  assert.equal(csvCell(null), "");
  assert.equal(csv(["a", "b"], [["x", 1], [null, "y,"]]), 'a,b\r\nx,1\r\n,"y,"\r\n');
  const text = await (await new LocalList(server(units(2)).api).file({ ...defaultList(), sort: "kwh" }, "own")).text();
  assert.equal(text.split("\r\n").length, 4);
  assert.match(text, /^cluster_id,uuid,name,/);
  assert.match(text.split("\r\n")[1]!, /^c,1,1,ada,p,COMPLETED,/);
});
