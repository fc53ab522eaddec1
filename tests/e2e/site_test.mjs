// The frame of the page, and the pages of nodes, of the grid and of the whole site, in a real browser against mock_server.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { accessible, becomes, control, fits, focused, scrolling, shot, url, visit } from "./stand_in.mjs";

const title = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const hosts = (page) => page.locator("tbody th a").allTextContents();
const pages = (page) => page.getByRole("navigation", { name: "Pages" });

test("each role is offered the pages that it may see, and told who may see others", async (t) => {
  const kYear = `Year ${new Date().getFullYear()}`;
  // The rail, and the tabs of usage and of reports.
  const expected = {
    ada: [["Overview", "Units", "Usage", "Grid", "Reports"], ["My usage", "Projects", kYear], ["Budgets", "Idle reservations"]],
    lea: [["Overview", "Units", "Usage", "Grid", "Reports"], ["My usage", "Projects", "Users", kYear], ["Budgets", "Idle reservations"]],
    sue: [["Overview", "Units", "Usage", "Nodes", "Grid", "Reports"], ["My usage", "Projects", "Users", "Site", kYear], ["Budgets", "Idle reservations"]],
    operator: [["Overview", "Units", "Usage", "Nodes", "Grid", "Reports"], ["My usage", "Projects", "Users", "Site", kYear], ["Bill", "Official reports", "Budgets", "Idle reservations"]],
  };
  for (const [user, [names, usage, reports]] of Object.entries(expected)) {
    const page = await visit(t, `/?user=${user}#/grid`);
    await becomes(() => pages(page).getByRole("link").allTextContents(), names, user);
    for (const [group, tabs] of [["Usage", usage], ["Reports", reports]]) {
      await pages(page).getByRole("link", { name: group }).click();
      await becomes(() => pages(page).locator("[aria-current=page]").allInnerTexts(), [group], user);
      await becomes(() => page.getByRole("navigation", { name: group, exact: true }).getByRole("link").allTextContents(), tabs, user);
      if (!tabs.length) continue;
      await page.getByRole("navigation", { name: group, exact: true }).getByRole("link", { name: tabs.at(-1) }).click();
      await title(page, group === "Usage" ? new RegExp(`^${tabs.at(-1)}`) : tabs.at(-1));
      await becomes(() => page.getByRole("navigation", { name: group, exact: true }).locator("[aria-current=page]").allInnerTexts(), [tabs.at(-1)]);
      await becomes(() => pages(page).locator("[aria-current=true]").allInnerTexts(), [group], "the group stays marked");
      if (user === "ada" || user === "operator") await accessible(page, `${group} of ${user}`); // who see least and most
    }
    const current = () => page.getByRole("navigation", { name: "Usage", exact: true }).locator("[aria-current]").evaluateAll((all) => all.map((one) => `${one.textContent} ${one.getAttribute("aria-current")}`));
    await page.goto(`${url}/#/user/${user}`);
    await becomes(current, ["My usage page"], user);
    if (usage.includes("Users")) {
      await page.goto(`${url}/#/user/lin`);
      await becomes(current, ["Users true"], user);
    }
    if (names.includes("Nodes")) continue;
    for (const [hash, heading] of [["#/nodes", "Nodes"], ["#/node/hpc-a/n007", "n007"], ["#/site", "Site"]]) {
      await page.goto(url + "/" + hash);
      await title(page, heading);
      await page.getByText("Support and administrators may see it.").waitFor();
      if (user === "ada") await accessible(page, `${hash} for ${user}`);
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
  await page.getByRole("button", { name: "Show all" }).click();
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
  const page = await visit(t, "/?user=ada#/grid", { server: { managers: ["slurm"] } });
  await title(page, "Carbon intensity of the grid");
  await page.locator(".charts canvas").first().waitFor();
  await becomes(() => page.locator(".charts canvas").count(), 1, "a source that never changes is no chart");
  await becomes(() => page.locator(".tiles").innerText(), /Now\s+[\d.]+ g\/kWh\s+[\s\S]*RTE, FR[\s\S]*56 g\/kWh\s+does not change with time/);
  await accessible(page, "grid");
  await shot(page, "grid-light");
  // The greenest hours, by another way than the server's.
  const { hours } = (await (await fetch(`${url}/api/v1/grid/forecast`, { headers: { "X-Grafana-User": "ada" } })).json()).data;
  const rows = page.getByRole("region", { name: "The greenest hours" }).locator("tbody tr");
  for (const [i, length] of [1, 4, 12].entries()) {
    const means = hours.slice(0, hours.length - length + 1).map((_, k) => hours.slice(k, k + length).reduce((sum, hour) => sum + hour[1], 0) / length);
    const least = Math.min(...means);
    const start = hours[means.findIndex((mean) => mean < least + 1e-6)][0];
    await becomes(() => rows.nth(i).locator("time").getAttribute("datetime"), new Date(start).toISOString(), `${length} h`);
    await becomes(async () => Math.abs(parseFloat(await rows.nth(i).locator("td").nth(1).innerText()) - least) < 0.06, true, `the mean of ${length} h`);
    const line = `#SBATCH --begin=${new Date(start).toISOString().slice(0, 16)}`;
    await becomes(() => rows.nth(i).locator("code").allInnerTexts(), [line]);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await rows.nth(i).getByRole("button", { name: `Copy ${line}` }).press("Enter");
    await page.getByText(`Copied: ${line}`).waitFor();
    await becomes(() => page.evaluate(() => navigator.clipboard.readText()), line);
  }
  // What the last unit would have emitted: its energy times the mean of as many hours.
  const { columns, rows: units } = (await (await fetch(`${url}/api/v1/units/list?from=${Math.floor(Date.now() / 1000) - 30 * 86400}&to=${Math.floor(Date.now() / 1000)}&sort=ended&order=desc`, { headers: { "X-Grafana-User": "ada" } })).json()).data;
  const facts = units.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]]))).find((unit) => unit.ended !== null && unit.ended - unit.started >= 60_000 && unit.kwh > 0);
  const start = Date.parse(await rows.first().locator("time").getAttribute("datetime"));
  let grams = 0;
  for (let at = start; at < start + facts.ended - facts.started; at += 60_000) grams += (hours.find(([from]) => at >= from && at < from + 3600_000)[1] * facts.kwh * 60_000) / (facts.ended - facts.started);
  const shown = (await rows.first().locator("td").nth(3).innerText()).match(/^([\d.]+) (mg|g|kg)/);
  assert.ok(Math.abs(parseFloat(shown[1]) * { mg: 1e-3, g: 1, kg: 1e3 }[shown[2]] - grams) < 0.02 * grams, `${shown[0]} for ${grams} g`);
  const chart = page.getByRole("group", { name: "Carbon intensity of the grid" });
  await chart.press("ArrowRight");
  const digits = (value) => String(Number(value.toPrecision(3)));
  await becomes(() => page.locator(".bandline .readout").innerText(), new RegExp(`: ${digits(hours[0][1])} g/kWh, from ${digits(hours[0][2])} to ${digits(hours[0][3])}$`));
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  assert.match(readFileSync(await file.path(), "utf8"), /^provider,country,time,grams_per_kwh\r\nrte,FR,\d{4}-/);
});

test("a server that knows too little of the past says so, and has the best hours of the week", async (t) => {
  const page = await visit(t, "/?user=ada#/grid", { server: { fleet: "young" } });
  await page.getByText("No forecast: the database does not hold").waitFor();
  await becomes(() => page.getByRole("row", { name: /^4 hours/ }).innerText(), /05:00 and 09:00\s+33\.4 g\/kWh\s+\d+ % below the mean of the week/);
  await accessible(page, "no forecast");
});

test("the map of the nodes shows what the API says, by keyboard and over the last day", async (t) => {
  const page = await visit(t, "/?user=operator#/nodes", { context: { viewport: { width: 1440, height: 900 } } });
  await page.getByRole("radio", { name: "Map" }).check();
  await becomes(() => page.locator(".nodemap g[data-at]").count(), 126);
  await becomes(() => page.url(), /#\/nodes\?show=map$/);
  await accessible(page, "map");
  await shot(page, "map-light");
  const ask = async (metric) => {
    const { columns, rows } = (await (await fetch(`${url}/api/v1/nodes/map/admin?metric=${metric}`, { headers: { "X-Grafana-User": "operator" } })).json()).data;
    return Object.fromEntries(rows.map((row) => [row[1], Object.fromEntries(columns.map((column, i) => [column, row[i]]))]));
  };
  const power = await ask("power");
  const cells = () => page.locator(".nodemap g[data-at] > text:not(.host)").allTextContents();
  const short = (watts) => (watts === null ? "–" : watts < 1000 ? String(Math.round(watts)) : `${Number((watts / 1000).toPrecision(3))}k`);
  // gpu-b has no racks, so its nodes come in the order of their names; then the racks of hpc-a.
  const order = [...Object.keys(power).filter((host) => host.startsWith("g")).sort(), ...Object.keys(power).filter((host) => host.startsWith("n")).sort()];
  await becomes(cells, order.map((host) => short(power[host].watts)));
  await becomes(() => page.locator(".nodemap text.rack").allTextContents(), ["gpu-b", "hpc-a R1", "hpc-a R2", "hpc-a R3", "hpc-a R4"]);
  await becomes(() => page.locator(".nodemap use[href$=-silent]").count(), 2, "n050 and the legend");
  // The racks fill the page, and a cell with room has its node's name.
  const used = () => page.locator(".nodemap .drawing svg").evaluate((svg) => {
    const room = svg.getBoundingClientRect();
    const right = Math.max(...[...svg.querySelectorAll("rect.cell")].map((cell) => cell.getBoundingClientRect().right));
    return (right - room.left) / room.width;
  });
  const hosts = () => page.locator(".nodemap text.host").allTextContents();
  await becomes(async () => (await used()) > 0.97, true);
  await becomes(hosts, order);
  const overlaps = await page.locator(".nodemap g[data-at]").evaluateAll((all) => all.filter((cell) => {
    const [name, value] = [...cell.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
    return name.right + 2 > value.left;
  }).length);
  assert.equal(overlaps, 0);
  await page.setViewportSize({ width: 390, height: 900 });
  await becomes(hosts, []);
  await becomes(async () => [(await used()) > 0.95, (await used()) <= 1], [true, true]);
  await page.setViewportSize({ width: 1440, height: 900 });

  const map = page.getByRole("group", { name: "Map of the nodes, Power" });
  const readout = page.locator(".nodemap .readout");
  await map.focus();
  await becomes(() => readout.innerText(), `g1: Idle, ${power.g1.watts / 1000} kW, CPU use 0.2 %, Memory use 32 %, GPU use 0 %, 0 units`);
  await map.press("ArrowRight");
  await becomes(() => readout.innerText(), /^g2: Busy, 1\.82 kW, CPU use 42 %/);
  await map.press("End");
  await becomes(() => readout.innerText(), /^n120 in rack R4: Idle, 150 W/);
  await map.press("ArrowUp");
  await becomes(() => readout.innerText(), /^n119 in rack R4/);
  const slider = page.getByRole("slider");
  await slider.press("ArrowLeft");
  await becomes(cells, order.map((host) => short(power[host].past[23])));
  await becomes(() => slider.getAttribute("aria-valuetext"), /^the hour from /);
  await slider.press("Home");
  await becomes(cells, order.map((host) => short(power[host].past[0])));
  await becomes(() => page.locator(".nodemap g[data-at] use[href$=-silent]").count(), 0, "all were busy then");
  await slider.press("End");

  await page.getByLabel("Colour and number").selectOption("GPU use");
  await becomes(() => page.url(), /show=map&by=gpu$/);
  await becomes(() => page.locator(".nodemap rect.device").count(), 5 * 4 + 8);
  const gpu = await ask("gpu");
  await becomes(cells, order.map((host) => (gpu[host].gpu === null ? "–" : String(Math.round(gpu[host].gpu)))));
  const devices = page.getByRole("group", { name: "Map of the nodes, GPU use" });
  await devices.press("Home");
  const words = (value) => (value === null ? "–" : value < 10 ? `${value} %` : `${Math.round(value)} %`);
  await becomes(() => readout.innerText(), new RegExp(`GPUs ${gpu.g1.devices.map(([index, now]) => `${index}: ${words(now)}`).join(", ")}$`));
  await accessible(page, "map of GPUs");
  await shot(page, "map-gpu-light");
  await page.getByText("Map of the nodes, GPU use as a table").press("Enter");
  await page.getByRole("region", { name: /^All nodes, now/ }).getByRole("row", { name: /^g6 – Busy 66 % 0: / }).waitFor();
  await page.getByLabel("Silent", { exact: false }).first().check();
  await becomes(() => page.locator(".nodemap g[data-at]").count(), 1);
  await page.emulateMedia({ media: "print" });
  await becomes(() => page.locator("input:visible, select:visible, .readout:visible button").count(), 0);
  await becomes(() => page.locator(".nodemap svg text").first().isVisible(), true);
  await page.emulateMedia({ media: null });
  const one = page.getByRole("group", { name: "Map of the nodes, GPU use" });
  await one.press("Home");
  await one.press("Enter");
  await title(page, "n050");
});

test("a map of 512 nodes with 4 GPUs each is small and quick", async (t) => {
  const page = await visit(t, "/?user=operator#/nodes?show=map&by=gpu", { server: { fleet: "big" }, context: { viewport: { width: 1440, height: 900 } } });
  await becomes(() => page.locator(".nodemap g[data-at]").count(), 512);
  await becomes(() => page.locator(".nodemap rect.device").count(), 2048);
  const body = await (await fetch(`${url}/api/v1/nodes/map/admin?metric=gpu`, { headers: { "X-Grafana-User": "operator" } })).text();
  const bytes = gzipSync(JSON.stringify(JSON.parse(body))).length;
  assert.ok(bytes <= 25_000, `${bytes} bytes`);
  assert.ok((await page.locator(".nodemap *").count()) <= 6500, "elements");
  t.diagnostic(`${bytes} bytes, ${await page.locator(".nodemap *").count()} elements`);
  await shot(page, "map-big");
});

test("the month of the site has its sums, days, groups and idle energy, and prints", async (t) => {
  const page = await visit(t, "/?user=sue#/site", { month: true, server: { many: 30 } });
  await title(page, /^Site – /);
  await page.getByText(/^Free parts of nodes used 3\.71 MWh/).waitFor();
  const projects = page.getByRole("region", { name: "Projects that use the most energy" });
  await projects.getByRole("link", { name: "optics" }).waitFor();
  await becomes(() => projects.getByRole("row").first().innerText(), /Project\s+Energy\s+Emissions CO2e\s+Core-hours\s+GPU-hours\s+Idle power\s+Not used\s+Units\s+Trend of energy/);
  await page.locator(".legend").getByText(/ \d{4}$/).waitFor(); // the month before
  await accessible(page, "site");
  await shot(page, "site-light");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: /^CSV ?: Users who use the most energy$/ }).click()]);
  assert.match(readFileSync(await file.path(), "utf8"), /^user,energy_kwh,emissions_grams,core_hours,gpu_hours,idle_power_kwh,not_used_kwh,units\r\n/);
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
  await page.getByRole("region", { name: "Users who use the most energy" }).waitFor();
  await becomes(() => pages(page).getByRole("link").allTextContents(), ["Overview", "Units", "Usage", "Reports"]);
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

// The corner cases; matrix_test.mjs has all themes and widths.
for (const [name, context] of [
  ["dark", { viewport: { width: 1440, height: 900 }, colorScheme: "dark" }],
  ["forced-colors", { viewport: { width: 1024, height: 800 }, forcedColors: "active" }],
  ["german", { viewport: { width: 320, height: 700 }, locale: "de-DE" }],
  ["french", { viewport: { width: 721, height: 900 }, locale: "fr-FR" }],
]) {
  test(`the pages of the site are accessible and fit: ${name}`, async (t) => {
    const page = await visit(t, "/?user=operator#/nodes", { server: { many: 60, currency: "EUR" }, context });
    for (const [address, there] of [["nodes", "table.units tbody tr"], ["nodes?q=n00&show=time", ".timeline rect.unit"], ["nodes?show=map", ".nodemap text"], ["nodes?show=map&by=gpu", ".nodemap rect.device"], ["node/hpc-a/n001", ".charts canvas"], ["grid", ".bandline path"], ["site", ".stack"], ["users", ".stack"], ["projects", ".stack"], ["project/hpc-a/fluids", ".stack"], ["year", ".stack"]]) {
      await page.goto(`${url}/#/${address}`);
      await page.locator(there).first().waitFor();
      await becomes(() => fits(page), true, `${address} does not scroll sideways`);
      await becomes(() => scrolling(page), [], `nor do the tables of ${address}`);
      if (address.includes("show=time")) {
        const cut = (all) => all.map((one) => [one.textContent, one.getBBox(), one.ownerSVGElement.viewBox.baseVal.width]).filter(([, { x, width }, most]) => x < 0 || x + width > most + 1).map(([text]) => text);
        await becomes(() => page.locator(".timeline .drawing svg > text").evaluateAll(cut), [], "its times are not cut");
      }
      if (address.startsWith("node/") && name === "dark") await becomes(() => page.locator(".charts > .chart").evaluateAll((all) => all.map((one) => one.offsetTop === all[0].offsetTop)), [true, true, false, false], "none of its four charts is alone");
      await accessible(page, `${address}, ${name}`);
      await shot(page, `${address.replace(/[^a-z0-9]+/g, "-")}-${name}`);
    }
  });
}
