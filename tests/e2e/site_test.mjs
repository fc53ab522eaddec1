// The frame of the page, and the pages of nodes, of the grid and of the whole site, in a real browser against mock_server.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { accessible, becomes, control, fits, focused, shot, url, visit } from "./stand_in.mjs";

const title = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const hosts = (page) => page.locator("tbody th a").allTextContents();
const pages = (page) => page.getByRole("navigation", { name: "Pages" });

test("each role is offered the pages that it may see, and told who may see others", async (t) => {
  const expected = {
    ada: ["Overview", "Units", "Projects", "Budgets", "Idle reservations", "Grid", "Help"],
    lea: ["Overview", "Units", "Projects", "Users", "Budgets", "Idle reservations", "Grid", "Help"],
    sue: ["Overview", "Units", "Projects", "Users", "Site", "Nodes", "Budgets", "Idle reservations", "Grid", "Help"],
    operator: ["Overview", "Units", "Projects", "Users", "Site", "Nodes", "Bill", "Budgets", "Idle reservations", "Grid", "Help"],
  };
  for (const [user, names] of Object.entries(expected)) {
    const page = await visit(t, `/?user=${user}#/grid`);
    await becomes(() => pages(page).getByRole("link").allTextContents(), names, user);
    if (names.includes("Site")) continue;
    for (const [hash, heading] of [["#/nodes", "Nodes"], ["#/node/hpc-a/n007", "n007"], ["#/site", "Site"]]) {
      await page.goto(url + "/" + hash);
      await title(page, heading);
      await page.getByText("Support and administrators may see it.").waitFor();
      await accessible(page, `${hash} for ${user}`);
    }
    assert.ok(!page.requests.some((request) => /nodes\/admin|on-node|series\/admin/.test(request)), "nothing is asked for that would be refused");
  }
});

test("an administrator finds idle nodes, and a unit that ran on one, by keyboard alone", async (t) => {
  const page = await visit(t, "/?user=operator#/", { server: { many: 40 }, context: { viewport: { width: 1440, height: 900 } } });
  await pages(page).getByRole("link", { name: "Nodes" }).focus();
  await page.keyboard.press("Enter");
  await title(page, "Nodes");
  await page.getByRole("link", { name: "n007", exact: true }).waitFor();
  await becomes(() => focused(page), "Nodes", "the heading has the focus");
  await becomes(() => pages(page).locator("[aria-current=page]").innerText(), "Nodes");
  await becomes(async () => (await hosts(page)).slice(0, 3), ["g1", "n007", "n014"], "idle ones come first");
  await page.getByText("1 to 100 of 126 nodes").waitFor();
  await accessible(page, "nodes");
  await shot(page, "nodes-light");

  for (const stop of ["CSV", "filter"]) {
    await page.keyboard.press("Tab");
    await becomes(() => focused(page), stop);
  }
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space"); // idle
  await page.getByText("1 to 19 of 19 nodes").waitFor();
  await becomes(() => page.url(), /#\/nodes\?state=idle$/);
  await page.getByRole("columnheader", { name: "Idle for" }).getByRole("button").focus();
  await page.keyboard.press("Enter");
  await becomes(async () => (await hosts(page))[0], "n119");
  await becomes(() => page.locator("tbody tr").first().innerText(), /Idle[\s\S]*more than 2 days/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await title(page, "n119");
  await becomes(() => focused(page), "n119");

  await page.goto(`${url}/#/node/hpc-a/n001`);
  await title(page, "n001");
  const line = page.getByRole("group", { name: "Units on n001" }).nth(1);
  await line.focus();
  await page.keyboard.press("End");
  await page.locator(".timeline .readout").getByText(/^ocean \(48214\) on n001, from .* to still running: Running, CPU 39 %$/).waitFor();
  await page.keyboard.press("+");
  await page.keyboard.press("Enter");
  await title(page, "ocean");
});

test("nodes are filtered, paged, and saved as a file; the address keeps it", async (t) => {
  const page = await visit(t, "/?user=sue#/nodes", { context: { viewport: { width: 1440, height: 900 } } });
  await page.getByText("1 to 100 of 126 nodes").waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("101 to 126 of 126 nodes").waitFor();
  await page.reload();
  await page.getByText("101 to 126 of 126 nodes").waitFor();
  await page.getByLabel("Filter").fill("n05");
  await page.getByText("1 to 10 of 10 nodes").waitFor();
  await becomes(() => hosts(page), ["n056", "n050", "n051", "n052", "n053", "n054", "n055", "n057", "n058", "n059"]);
  const silent = page.locator("tbody tr", { hasText: "n050" });
  await becomes(() => silent.innerText(), /Silent\s+seen \d\d/);
  await becomes(async () => (await silent.getByRole("img", { name: "no data" }).count()) > 2, true, "what is not known is no 0");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  const lines = readFileSync(await file.path(), "utf8").trim().split("\r\n");
  assert.equal(lines.length, 11);
  assert.match(lines[0], /^cluster_id,host,state,/);
  await page.getByLabel("Cluster").selectOption("gpu-b");
  await page.getByText("Nothing matches your filters.").waitFor();
  await accessible(page, "no node");
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByText("1 to 100 of 126 nodes").waitFor();
  await page.goBack();
  await page.getByText("Nothing matches your filters.").waitFor();
  await becomes(() => page.url(), /#\/nodes\?q=n05&cluster=gpu-b$/);
});

test("the time line shows what ran on the nodes, zooms, moves, and has a table", async (t) => {
  const page = await visit(t, "/?user=operator#/nodes?q=n00&show=time", { server: { many: 60 }, context: { viewport: { width: 1440, height: 900 } } });
  await page.locator(".timeline rect.unit").nth(20).waitFor();
  await becomes(() => page.locator(".timeline text.node").count(), 9);
  await accessible(page, "time line");
  await shot(page, "timeline-light");
  const span = () => page.locator(".timeline .zoom [role=status]").innerText();
  const all = await span();
  await page.getByRole("button", { name: "Zoom in" }).click();
  await becomes(async () => (await span()) !== all, true, "a part of it");
  const middle = await span();
  await page.getByRole("button", { name: "Later" }).click();
  await becomes(async () => (await span()) !== middle, true, "a later part");
  await page.getByRole("button", { name: "All of it" }).click();
  await becomes(span, all);
  await page.getByText("What ran on these nodes as a table").press("Enter");
  const region = page.getByRole("region", { name: "What ran on these nodes, all units" });
  await region.getByRole("row", { name: /^mesh 48188 n008 lin Out of memory/ }).waitFor();
  await accessible(page, "time line as a table");
  await region.getByRole("link", { name: "mesh" }).click();
  await title(page, "mesh");
});

test("the page of a node has its charts, for as long as is asked for", async (t) => {
  const page = await visit(t, "/?user=operator#/node/gpu-b/g2");
  await title(page, "g2");
  await page.locator(".charts canvas").nth(4).waitFor();
  await becomes(() => page.locator(".charts h3").allInnerTexts(), ["CPU percent", "Memory percent", "GPU percent", "Power watts", "Units at the same time"]);
  await accessible(page, "node");
  await shot(page, "node-light");
  const asked = page.waitForRequest((request) => {
    const query = new URL(request.url()).searchParams;
    return /nodes\/series\/admin/.test(request.url()) && Number(query.get("to")) - Number(query.get("from")) > 6 * 86400;
  });
  await page.getByLabel("Period").selectOption({ label: "in the last 7 days" });
  await asked;
  await becomes(() => page.url(), /#\/node\/gpu-b\/g2\?period=168h$/);
  await page.goto(`${url}/#/node/hpc-a/nobody`);
  await page.getByText("No node of this name was seen within the last day.").waitFor();
  await accessible(page, "no such node");
});

test("the grid has its intensity, a week and the best hours", async (t) => {
  const page = await visit(t, "/?user=ada#/grid");
  await title(page, "Carbon intensity of the grid");
  await page.locator(".charts canvas").first().waitFor();
  await becomes(() => page.locator(".charts canvas").count(), 1, "a source that never changes is no chart");
  await becomes(() => page.locator(".tiles").innerText(), /Now\s+[\d.]+ g\/kWh\s+[\s\S]*RTE, FR[\s\S]*56 g\/kWh\s+does not change with time/);
  await becomes(() => page.getByRole("row", { name: /^4 hours/ }).innerText(), /05:00 and 09:00\s+33\.4 g\/kWh\s+\d+ % below the mean of the week/);
  await accessible(page, "grid");
  await shot(page, "grid-light");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  assert.match(readFileSync(await file.path(), "utf8"), /^provider,country,time,grams_per_kwh\r\nrte,FR,\d{4}-/);
});

test("the month of the site has its sums, days, groups and idle energy, and prints", async (t) => {
  const page = await visit(t, "/?user=sue#/site", { server: { many: 30 } });
  await title(page, /^Site – /);
  await page.getByText(/^Free parts of nodes used 3\.71 MWh/).waitFor();
  const projects = page.getByRole("region", { name: "Projects with most energy" });
  await projects.getByRole("link", { name: "optics" }).waitFor();
  await becomes(() => projects.getByRole("row").first().innerText(), /Project\s+Energy\s+Emissions\s+Core-hours\s+GPU-hours\s+Idle power\s+Units\s+Trend of energy/);
  await page.locator(".legend").getByText(/ \d{4}$/).waitFor(); // the month before
  await accessible(page, "site");
  await shot(page, "site-light");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: /^CSV ?: Users with most energy$/ }).click()]);
  assert.match(readFileSync(await file.path(), "utf8"), /^user,energy_kwh,emissions_grams,core_hours,gpu_hours,not_used_kwh,units\r\n/);
  await page.getByLabel("Bars by").selectOption("user");
  await page.getByRole("list", { name: /Colours/ }).getByText("grace").waitFor();
  await page.emulateMedia({ media: "print" });
  await becomes(() => page.locator("button:visible, nav:visible, select:visible, .tools a:visible").count(), 0);
  await page.getByText(/^From the API server at/).waitFor();
  await shot(page, "site-print");
  await page.emulateMedia({ media: null });
  await page.getByRole("link", { name: "All users" }).click();
  await title(page, /^Users – /);
  await page.getByRole("region", { name: "Users" }).getByRole("link", { name: "ada" }).waitFor();
  await accessible(page, "users");
  await page.goto(`${url}/#/site?month=2001-01`);
  await page.getByText("Nothing in January 2001.").waitFor();
});

test("a server without measurements of nodes hides what needs them, and says why where it is asked for", async (t) => {
  const page = await visit(t, "/?user=operator#/site", { server: { many: 30, fleet: "none" } });
  await page.getByRole("region", { name: "Users with most energy" }).waitFor();
  await becomes(() => pages(page).getByRole("link").allTextContents(), ["Overview", "Units", "Projects", "Users", "Site", "Budgets", "Help"]);
  await becomes(() => page.getByText(/^Free parts of nodes used/).count(), 0);
  await page.goto(`${url}/#/nodes`);
  await page.getByText("The server has no measurements of the nodes of gpu-b").waitFor();
  await accessible(page, "no measurements of nodes");
  await page.goto(`${url}/#/node/hpc-a/n1`);
  await page.getByText("The server has no measurements of the nodes of hpc-a").waitFor();
  await page.goto(`${url}/#/grid`);
  await page.getByText("No data about the grid.").waitFor();
  await accessible(page, "no grid");
  await control({ fleet: "silent" });
  await page.goto(`${url}/#/nodes`);
  await page.getByText("The time-series database of gpu-b does not answer.").waitFor();
  await page.goto(`${url}/#/grid`);
  await page.reload();
  await page.getByText("The carbon intensity could not be loaded: the TSDB is busy.").waitFor();
  await control({ fleet: "ok" });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".charts canvas").first().waitFor();
});

test("on narrow screens the pages are behind a button, and the theme is kept", async (t) => {
  const page = await visit(t, "/?user=operator#/grid", { context: { viewport: { width: 390, height: 844 } } });
  const button = page.getByRole("button", { name: "Menu" });
  await button.waitFor();
  await becomes(() => pages(page).count(), 0);
  await button.focus();
  await page.keyboard.press("Enter");
  await pages(page).getByRole("link", { name: "Nodes" }).waitFor();
  await accessible(page, "open menu");
  await page.keyboard.press("Escape");
  await becomes(() => button.getAttribute("aria-expanded"), "false");
  await page.keyboard.press("Enter");
  await pages(page).getByRole("link", { name: "Nodes" }).click();
  await title(page, "Nodes");
  await becomes(() => button.getAttribute("aria-expanded"), "false");
  await page.getByText("1 to 20 of 126 nodes").waitFor();

  await page.locator(".who summary").click();
  await page.getByLabel("Colours").selectOption("dark");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await becomes(background, "rgb(20, 24, 27)");
  await page.reload();
  await title(page, "Nodes");
  await becomes(background, "rgb(20, 24, 27)");
  await page.emulateMedia({ media: "print" });
  await becomes(background, "rgb(255, 255, 255)", "paper is light");
});

for (const [name, context] of [
  ["dark", { viewport: { width: 1440, height: 900 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 } }],
  ["tablet", { viewport: { width: 1024, height: 800 } }],
  ["forced-colors", { viewport: { width: 1024, height: 800 }, forcedColors: "active" }],
  ["german", { viewport: { width: 320, height: 700 }, locale: "de-DE" }],
]) {
  test(`the pages of the site are accessible and fit: ${name}`, async (t) => {
    const page = await visit(t, "/?user=operator#/nodes", { server: { many: 60 }, context });
    for (const [address, there] of [["nodes", "table.units tbody tr"], ["nodes?q=n00&show=time", ".timeline rect.unit"], ["node/hpc-a/n001", ".charts canvas"], ["grid", ".charts canvas"], ["site", ".stack"], ["users", ".stack"]]) {
      await page.goto(`${url}/#/${address}`);
      await page.locator(there).first().waitFor();
      await becomes(() => fits(page), true, `${address} does not scroll sideways`);
      await accessible(page, `${address}, ${name}`);
      await shot(page, `${address.split(/[/?]/).slice(0, address.includes("time") ? 2 : 1).join("-").replace(/=.*/, "-time")}-${name}`);
    }
  });
}
