// The page with the real server: what it asks for is what the server has. Environment: that of
// browser.mjs; CEEMS_BIN_DIR, with ceems_api_server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { accessible, becomes, launch, open, shot as pictured } from "./browser.mjs";
import { startPortal } from "./portal.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const kUnits = 1000;

let browser, server, url, portal, stranger;

before(async () => {
  [portal, stranger] = await Promise.all([startPortal(), startPortal()]);
  server = spawn("python3", [join(here, "real_server.py"), String(kUnits), portal.origin], { stdio: ["pipe", "pipe", "inherit"] });
  url = await new Promise((resolve, reject) => {
    server.stdout.once("data", (data) => resolve(String(data).trim()));
    server.once("exit", () => reject(new Error("the server did not start")));
  });
  browser = await launch();
  portal.forward(url, "ada");
  stranger.forward(url, "ada");
});

after(async () => {
  await browser?.close();
  portal?.close();
  stranger?.close();
  server?.stdin.end();
});

/** Opens a page as a user; fails the test on script errors, policy violations, requests to elsewhere and answers that are errors. */
async function visit(t, user, hash, options = {}) {
  const page = await open(browser, { viewport: { width: 1440, height: 900 }, ...options });
  const faults = [];
  page.statuses = [];
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && faults.push(`console: ${message.text()}`));
  page.on("request", (request) => request.url().startsWith(`${url}/`) || request.url().startsWith("blob:") || faults.push(`request to ${request.url()}`));
  page.on("response", (response) => {
    page.statuses.push([response.status(), response.url()]);
    if (response.status() >= 400) faults.push(`${response.status()} from ${response.url()}`);
  });
  t.after(async () => {
    await page.context().close();
    assert.deepEqual(faults, []);
  });
  await page.goto(`${url}/ui/?user=${user}${hash}`);
  return page;
}

const shot = (page, name) => pictured(page, `real-${name}`);
const rows = (page) => page.locator("tbody th").allTextContents().then((texts) => texts.map((text) => /\d{6}/.exec(text)[0]));
const settled = (page, first) => page.waitForFunction((id) => document.querySelector("tbody th")?.innerText.includes(id) && !document.querySelector("table.dim"), first);

test("the server sorts, pages, filters and adds up", async (t) => {
  const page = await visit(t, "operator", "#/jobs?sort=kwh&period=168h&show=ended");
  await page.getByText("1 to 100 of 999 jobs").waitFor();
  await settled(page, "100990"); // every tenth unit has GPUs, which use twice as much again
  const seen = [...(await rows(page))];
  for (let at = 100; at < 999; at += 100) {
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText(`${at + 1} to ${Math.min(at + 100, 999)} of 999 jobs`).waitFor();
    await page.waitForFunction(() => !document.querySelector("table.dim"));
    seen.push(...(await rows(page)));
  }
  assert.equal(new Set(seen).size, 999, "each unit is on one page");
  await page.getByRole("button", { name: "Previous" }).click();
  await page.getByText("801 to 900 of 999 jobs").waitFor();
  await page.waitForFunction(() => !document.querySelector("table.dim"));
  await becomes(() => rows(page), seen.slice(800, 900));
  const expected = Array.from({ length: 999 }, (_, i) => (i / 1000) * (i % 10 ? 1 : 3)).reduce((a, b) => a + b, 0);
  await becomes(() => page.locator(".sums dd").first().innerText(), `${Math.round(expected)} kWh`);
  await accessible(page, "the list");
  await shot(page, "list");

  await page.getByRole("button", { name: "Filters" }).click();
  await page.getByRole("checkbox", { name: /Failed/ }).check();
  await page.getByText(/1 to \d+ of \d+ jobs/).waitFor();
  const failed = Array.from({ length: 999 }, (_, i) => i).filter((i) => i % 11 === 0).length;
  await page.getByText(`1 to ${failed} of ${failed} jobs`).waitFor();
  await page.locator("summary", { hasText: "Project" }).click();
  await page.getByRole("checkbox", { name: /p%1 <b>&/ }).check();
  await page.keyboard.press("Escape");
  const both = Array.from({ length: 999 }, (_, i) => i).filter((i) => i % 11 === 0 && i % 3 === 2).length;
  await page.getByText(`1 to ${both} of ${both} jobs`).waitFor();
  await page.getByRole("searchbox", { name: "Filter" }).fill("ada"); // the owner of another project
  await page.getByText("No job matches.").waitFor();
  await accessible(page, "nothing matches");
});

test("filters by use, and gives all rows as CSV without formulas", async (t) => {
  const page = await visit(t, "operator", "#/jobs?period=168h&cpu=..4.5&sort=cpu&order=asc");
  await page.getByText("1 to 50 of 50 jobs").waitFor();
  await becomes(async () => (await rows(page)).every((id) => Number(id) % 100 < 5), true);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\r\n");
  assert.equal(lines.length, 51);
  assert.match(lines[0], /^cluster_id,uuid,started,name,user,project,state,/);
  assert.ok(lines.some((line) => line.includes(",'=task_")), "a name that would be a formula");
  assert.ok(!lines.some((line) => line.includes(",=")));
});

test("finds units by words and by identifier, whatever their age", async (t) => {
  const page = await visit(t, "operator", "#/jobs");
  await page.getByText(/^1 to 100 of/).waitFor();
  const field = page.getByRole("combobox", { name: /^Find / });
  await page.keyboard.press("Control+k");
  await field.fill("task_00123 ada");
  await page.keyboard.press("Enter");
  await settled(page, "100123");
  await becomes(() => rows(page), ["100123"]);
  await page.keyboard.press("Control+k");
  await field.fill("100007");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "=task_00007" }).waitFor();
});

test("asks again without being sent again what has not changed", async (t) => {
  const page = await visit(t, "operator", "#/jobs?period=168h&show=ended");
  await page.getByText("1 to 100 of 999 jobs").waitFor();
  const address = page.statuses.map(([, from]) => from).find((from) => from.includes("/units/list/admin?"));
  let first, again;
  for (let tries = 0; tries < 5 && again?.status !== 304; tries++) {
    // The server may update its database between the two.
    first = await fetch(address, { headers: { "X-Grafana-User": "operator" } });
    again = await fetch(address, { headers: { "X-Grafana-User": "operator", "If-None-Match": first.headers.get("ETag") } });
  }
  assert.deepEqual([first.status, again.status, (await again.text()).length], [200, 304, 0]);
  const bytes = (await first.arrayBuffer()).byteLength;
  assert.ok(bytes < 25_000, `a page of 100 units: ${bytes} bytes`);
  assert.equal(first.headers.get("Content-Encoding") !== null, true, "compressed");
});

test("each role sees its own: user, lead, support", async (t) => {
  const user = await visit(t, "ada", "#/jobs?period=168h");
  await user.getByText("1 to 100 of 334 jobs").waitFor();
  const lead = await visit(t, "lea", "#/jobs?period=168h");
  await lead.getByText("1 to 100 of 333 jobs").waitFor();
  await becomes(() => lead.getByLabel("Whose").inputValue(), "led");
  const support = await visit(t, "sue", "#/jobs?period=168h");
  await support.getByText("1 to 100 of 1,000 jobs").waitFor();
  assert.ok(!(await support.locator("tbody").innerText()).includes("task_"), "support does not see names");
});

test("overview and months add up days", async (t) => {
  const page = await visit(t, "operator", "#/?period=168h");
  await page.getByRole("heading", { level: 1, name: "The site" }).waitFor();
  await page.locator(".tiles div", { hasText: "Energy" }).first().waitFor();
  await page.locator(".stack .part").first().waitFor();
  await accessible(page, "overview");
  await shot(page, "overview");
  await page.getByLabel("Bars by").selectOption("project");
  await page.getByRole("list", { name: /Colours/ }).getByText("optics").waitFor();
  await page.goto(`${url}/ui/#/projects`);
  await page.getByRole("link", { name: "optics", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: /^Project optics – / }).waitFor();
  await page.getByRole("region", { name: "Users" }).getByRole("row", { name: /^lin / }).waitFor();
  await accessible(page, "month of a project");
  await shot(page, "project");
  const own = await visit(t, "ada", "#/?period=168h");
  await own.getByRole("heading", { level: 1, name: "Your jobs" }).waitFor();
  await own.locator(".stack .part").first().waitFor();
});

const words = async (locator) => (await locator.innerText()).replace(/\s+/g, " ").trim();
async function saved(page, name) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
  return readFileSync(await file.path(), "utf8").trim().split("\r\n");
}

test("managers read what the real server knows of the bill, budgets and idle reservations", async (t) => {
  const page = await visit(t, "operator", "#/bill?month=2026-03");
  await page.getByRole("heading", { level: 1, name: "Energy bill – March 2026" }).waitFor();
  const table = page.getByRole("region", { name: "What the energy was used for" });
  // 31 days of 10 kWh of the node, 100 W of other devices for 744 h, and a fifth of both for cooling.
  await becomes(async () => (await table.locator("tbody tr").allInnerTexts()).map((row) => row.replace(/\s+/g, " ").trim()), [
    "Active use 186 kWh 37 % EUR 44.83 measured",
    "Idle power, reserved 62 kWh 12 % EUR 14.94 measured",
    "System: kernel and daemons 31 kWh 6.2 % EUR 7.47 measured",
    "Free nodes (unreserved) 31 kWh 6.2 % EUR 7.47 measured",
    "= Compute nodes 310 kWh 62 % EUR 74.71 measured",
    "Storage, network, service nodes 74.4 kWh 15 % EUR 17.93 measured",
    "Cooling and losses 76.9 kWh 15 % EUR 18.53 configured",
    "Unexplained 38.7 kWh 7.7 % EUR 9.33 derived",
    "= Utility meter 500 kWh 100 % EUR 120.50 measured",
  ]);
  await page.getByText("losses of power supplies, which RAPL does not see: about 29.5 kWh").waitFor();
  await becomes(() => words(page.getByRole("region", { name: "Imported bills" }).getByRole("row").nth(1)), "1 Mar 2026 to 31 Mar 2026 500 kWh EUR 120.50 –");
  await becomes(() => page.locator(".stack .part").count(), 4 * 31);
  const lines = await saved(page, "CSV");
  assert.deepEqual([lines.length, lines[0], lines[2]], [10, "part,energy_kwh,share,how,cost", "reserved_idle,62,0.124,measured,14.942"]);
  await accessible(page, "bill");
  await shot(page, "bill");

  await page.goto(`${url}/ui/#/budgets`);
  // The fluids are every third unit; each tenth has GPUs, which use twice as much again.
  const kwh = (first, to) => Array.from({ length: to }, (_, i) => (i % 3 === first ? (i / 1000) * (i % 10 ? 1 : 3) : 0)).reduce((a, b) => a + b, 0);
  assert.deepEqual([kwh(0, 1000).toFixed(3), kwh(2, 1000).toFixed(3)], ["200.493", "199.500"]);
  const rows = page.locator("table.units tbody tr");
  await becomes(() => words(rows.nth(0)), /^p%1 <b>& all clusters together over the budget .* EUR 50\.00 EUR 59\.85 120 % EUR 59\.85 to EUR 59\.85$/);
  await becomes(() => words(rows.nth(1)), /^fluids hpc-a 50 % passed .* 400 kWh 200 kWh 50 % 200 kWh to 200 kWh stays within the budget$/);
  await becomes(() => rows.count(), 2);
  await accessible(page, "budgets");
  await shot(page, "budgets");

  await page.goto(`${url}/ui/#/idle`);
  await becomes(() => words(rows.nth(0)), /^100999 cpu ada fluids 2 h \d\d min since .* 8 CPUs 612 W 1\.[2-9]\d? kWh EUR 0\.[3-5]\d$/);
  await becomes(() => rows.count(), 1);
  const shares = page.getByRole("region", { name: "Idle power of reservations, last 30 days" });
  await becomes(async () => (await shares.locator("tbody tr").allInnerTexts()).map((row) => row.replace(/\s+/g, " ").trim()), [
    "fluids 333 199 kWh 12.6 kWh 25 % unknown –",
    "p%1 <b>& 333 200 kWh 12.4 kWh 25 % unknown –",
    "optics 333 199 kWh 12.1 kWh 25 % unknown –",
  ]);
  await page.getByLabel("Rows by").selectOption("partition");
  await becomes(() => words(shares.getByRole("row").nth(1)), "gpu 100 149 kWh 37.1 kWh 25 % unknown –");
  await becomes(() => words(shares.getByRole("row").nth(2)), "cpu 899 449 kWh – – unknown –", "what was not measured is no 0");
  await accessible(page, "idle");
  await shot(page, "idle");
  await page.getByRole("link", { name: "100999" }).click();
  await page.getByRole("heading", { level: 1, name: "task_00999" }).waitFor();
});

test("each role finds its own budgets and idle units, and the bill is for administrators", async (t) => {
  const links = (page) => page.getByRole("navigation", { name: "Reports", exact: true }).getByRole("link").allTextContents();
  const user = await visit(t, "ada", "#/budgets");
  await becomes(() => user.locator("table.units tbody th a").allTextContents(), ["fluids"]);
  await becomes(() => links(user), ["Budgets", "Idle reservations"]);
  await user.goto(`${url}/ui/#/idle`);
  await becomes(() => user.locator("table.units tbody th a").allTextContents(), ["100999"]);
  await user.goto(`${url}/ui/#/bill`);
  await user.getByText("Administrators may see it.").waitFor();
  const lead = await visit(t, "lea", "#/idle");
  await lead.getByText("No idle units right now.").waitFor();
  await becomes(() => words(lead.getByRole("region", { name: "Idle power of reservations, last 30 days" }).getByRole("row").nth(1)), "optics 333 199 kWh 12.1 kWh 25 % unknown –");
  const support = await visit(t, "sue", "#/budgets");
  await becomes(() => support.locator("table.units tbody th").count(), 2);
});

/** A page of a portal with frames; `refused`: what the browser says about those that it does not show. */
async function framed(t, portal, ...frames) {
  const page = await open(browser, { viewport: { width: 1000, height: 700 } });
  t.after(() => page.context().close());
  page.refused = [];
  page.on("console", (message) => /frame-ancestors|X-Frame-Options/.test(message.text()) && page.refused.push(message.text()));
  await page.goto(`${portal.origin}/?${new URLSearchParams(frames.map((frame) => ["frame", frame]))}`);
  return page;
}

test("a portal shows cards and pages in frames, without a cookie", async (t) => {
  const page = await framed(t, portal, "?embed=1#/card", "?embed=1#/card/hpc-a/100990", "?embed=1#/jobs", "?embed=1#/card/hpc-a/100001");
  const [last, one, list, foreign] = [0, 1, 2, 3].map((i) => page.frameLocator(`iframe >> nth=${i}`));
  await becomes(() => last.getByRole("listitem").count(), 4);
  await becomes(() => last.getByRole("link").first().getAttribute("href"), "/#/jobs");
  await becomes(() => last.getByRole("link").nth(1).getAttribute("target"), "_blank");
  await becomes(() => one.getByRole("heading", { level: 1 }).textContent(), "task_00990");
  await one.getByText("2.97 kWh").waitFor();
  await list.getByRole("heading", { level: 1 }).waitFor();
  await becomes(() => list.locator("header.top, nav.pages, footer.bottom").evaluateAll((all) => all.filter((one) => one.checkVisibility()).length), 0);
  await becomes(() => foreign.getByRole("heading").textContent(), "Jobs", "lin's job");
  await foreign.getByText("You can see no job 100001").waitFor();
  for (const [frame, name] of [[page.frames()[1], "last"], [page.frames()[2], "one"]]) {
    const size = () => frame.evaluate(() => [document.documentElement.scrollWidth <= 300, document.documentElement.scrollHeight <= 200]);
    await becomes(size, [true, true], `${name} fits into 300 × 200 px`);
    await accessible(frame, name);
  }
  assert.deepEqual(await page.context().cookies(), []);
  assert.deepEqual(page.refused, []);
  await shot(page, "portal");
});

test("no other page shows it in a frame, and a portal only what says so", async (t) => {
  const page = await framed(t, stranger, "?embed=1#/card", "#/jobs");
  await becomes(() => page.refused.length, 2);
  const own = await framed(t, portal, "#/jobs", "swagger/index.html?embed=1", "?embed=0#/card");
  await becomes(() => own.refused.length, 3);
});

test("a page in a frame makes no tokens, and has no form to log in", async (t) => {
  const page = await framed(t, portal, "?embed=1#/tokens");
  await page.frameLocator("iframe").getByText("Tokens are not made inside another page.").waitFor();
  portal.forward(url, "");
  t.after(() => portal.forward(url, "ada"));
  const out = await framed(t, portal, "?embed=1#/jobs");
  await becomes(() => out.frameLocator("iframe").getByRole("link", { name: "Log in" }).getAttribute("target"), "_blank");
  await becomes(() => out.frameLocator("iframe").locator("input").count(), 0);
});
