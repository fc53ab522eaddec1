// The page with the real server: what it asks for is what the server has. Environment: that of
// browser.mjs; CEEMS_BIN_DIR, with ceems_api_server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { accessible, becomes, focused, launch, open, shot as pictured } from "./browser.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const kUnits = 1000;

let browser, server, url;

before(async () => {
  server = spawn("python3", [join(here, "real_server.py"), String(kUnits)], { stdio: ["pipe", "pipe", "inherit"] });
  url = await new Promise((resolve, reject) => {
    server.stdout.once("data", (data) => resolve(String(data).trim()));
    server.once("exit", () => reject(new Error("the server did not start")));
  });
  browser = await launch();
});

after(async () => {
  await browser?.close();
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
const rows = (page) => page.locator("tbody th").allInnerTexts().then((texts) => texts.map((text) => /\d{6}/.exec(text)[0]));
const settled = (page, first) => page.waitForFunction((id) => document.querySelector("tbody th")?.innerText.includes(id) && !document.querySelector("table.dim"), first);

test("the server sorts, pages, filters and adds up", async (t) => {
  const page = await visit(t, "operator", "#/jobs?sort=kwh&period=168h&show=ended");
  await page.getByText("1 to 100 of 999 units").waitFor();
  await settled(page, "100990"); // every tenth unit has GPUs, which use twice as much again
  const seen = [...(await rows(page))];
  for (let at = 100; at < 999; at += 100) {
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText(`${at + 1} to ${Math.min(at + 100, 999)} of 999 units`).waitFor();
    await page.waitForFunction(() => !document.querySelector("table.dim"));
    seen.push(...(await rows(page)));
  }
  assert.equal(new Set(seen).size, 999, "each unit is on one page");
  await page.getByRole("button", { name: "Previous" }).click();
  await page.getByText("801 to 900 of 999 units").waitFor();
  await page.waitForFunction(() => !document.querySelector("table.dim"));
  await becomes(() => rows(page), seen.slice(800, 900));
  const expected = Array.from({ length: 999 }, (_, i) => (i / 1000) * (i % 10 ? 1 : 3)).reduce((a, b) => a + b, 0);
  await becomes(() => page.locator(".sums dd").first().innerText(), `${Math.round(expected)} kWh`);
  await accessible(page, "the list");
  await shot(page, "list");

  await page.locator("summary", { hasText: "State" }).click();
  await page.getByRole("checkbox", { name: /Failed/ }).check();
  await page.getByText(/1 to \d+ of \d+ units/).waitFor();
  const failed = Array.from({ length: 999 }, (_, i) => i).filter((i) => i % 11 === 0).length;
  await page.getByText(`1 to ${failed} of ${failed} units`).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("summary", { hasText: "Project" }).click();
  await page.getByRole("checkbox", { name: /p%1 <b>&/ }).check();
  const both = Array.from({ length: 999 }, (_, i) => i).filter((i) => i % 11 === 0 && i % 3 === 2).length;
  await page.getByText(`1 to ${both} of ${both} units`).waitFor();
  await page.getByLabel("Filter").fill("ada"); // the owner of another project
  await page.getByText("No unit matches.").waitFor();
  await accessible(page, "nothing matches");
});

test("filters by use, and gives all rows as CSV without formulas", async (t) => {
  const page = await visit(t, "operator", "#/jobs?period=168h&cpu=..4.5&sort=cpu&order=asc");
  await page.getByText("1 to 50 of 50 units").waitFor();
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
  await page.keyboard.press("Control+k");
  await becomes(() => focused(page), "find");
  await page.keyboard.type("task_00123 ada");
  await page.keyboard.press("Enter");
  await settled(page, "100123");
  await becomes(() => rows(page), ["100123"]);
  await page.keyboard.press("Control+k");
  await becomes(() => focused(page), "find");
  await page.keyboard.type("100007");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "=task_00007" }).waitFor();
});

test("asks again without being sent again what has not changed", async (t) => {
  const page = await visit(t, "operator", "#/jobs?period=168h&show=ended");
  await page.getByText("1 to 100 of 999 units").waitFor();
  const address = page.statuses.map(([, from]) => from).find((from) => from.includes("/units/list/admin?"));
  const first = await fetch(address, { headers: { "X-Grafana-User": "operator" } });
  const again = await fetch(address, { headers: { "X-Grafana-User": "operator", "If-None-Match": first.headers.get("ETag") } });
  assert.deepEqual([first.status, again.status, (await again.text()).length], [200, 304, 0]);
  const bytes = (await first.arrayBuffer()).byteLength;
  assert.ok(bytes < 25_000, `a page of 100 units: ${bytes} bytes`);
  assert.equal(first.headers.get("Content-Encoding") !== null, true, "compressed");
});

test("each role sees its own: user, lead, support", async (t) => {
  const user = await visit(t, "ada", "#/jobs?period=168h");
  await user.getByText("1 to 100 of 334 units").waitFor();
  const lead = await visit(t, "lea", "#/jobs?period=168h");
  await lead.getByText("1 to 100 of 333 units").waitFor();
  await becomes(() => lead.getByLabel("Whose").inputValue(), "led");
  const support = await visit(t, "sue", "#/jobs?period=168h");
  await support.getByText("1 to 100 of 1,000 units").waitFor();
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
  await own.getByRole("heading", { level: 1, name: "Your units" }).waitFor();
  await own.locator(".stack .part").first().waitFor();
});
