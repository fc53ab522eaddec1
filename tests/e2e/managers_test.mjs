// Bill, budgets and idle reservations in a real browser against mock_server.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { accessible, becomes, control, fits, focused, names, passUntil, scrolling, settled, shot, url, visit } from "./stand_in.mjs";

const title = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const rail = (page) => page.getByRole("navigation", { name: "Pages" });
const text = async (locator) => (await locator.innerText()).replace(/\s+/g, " ").trim();
const kHostile = "=1+1<img src=x onerror=alert(1)>";

async function saved(page, name) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
  return readFileSync(await file.path(), "utf8");
}

test("an administrator reads the bill of a month, by keyboard alone", async (t) => {
  const page = await visit(t, "/?user=operator#/site", { server: { many: 20, currency: "EUR" } });
  await page.getByRole("link", { name: /^The bill of / }).focus();
  await page.keyboard.press("Enter");
  await title(page, /^Energy bill – /);
  await becomes(() => focused(page), /^Energy bill – /);
  await page.goto(`${url}/#/bill?month=2026-11`);
  await title(page, "Energy bill – November 2026");
  const table = page.getByRole("region", { name: "What the energy was used for" });
  const row = (name) => text(table.getByRole("row", { name }));
  await becomes(() => row(/^Active use/), "Active use 61.2 MWh 52 % EUR 14,697.86 63.4 MWh measured");
  await becomes(() => row(/^Idle power, reserved/), "Idle power, reserved 14.5 MWh 12 % EUR 3,475.26 15 MWh measured");
  await becomes(() => row(/^= Compute nodes/), "= Compute nodes 88.7 MWh 75 % EUR 21,288.38 91.8 MWh measured");
  await becomes(() => row(/^Cooling/), /15\.9 MWh 13 % .* configured$/);
  await becomes(() => row(/^Unexplained/), /4 MWh 3\.4 % .* derived$/);
  await becomes(() => row(/^= Utility meter/), /118 MWh 100 % EUR 28,320\.50 .* measured$/);
  await page.getByText("400 nodes with readings 99.8 % of the time; 97 % of their energy was measured.").waitFor();
  await page.getByText("The meter shows 4 MWh more than the known total, or 3.4 % of it: the row Unexplained.").waitFor();
  await page.getByText("losses of power supplies, which RAPL does not see: about 3.1 MWh").waitFor();
  await becomes(() => text(page.getByRole("region", { name: "Imported bills" }).getByRole("row").nth(1)), "1 Nov 2026 to 30 Nov 2026 118 MWh EUR 28,320.50 4.12 t CO2e");
  await page.getByText("The table is of this period: 1 Nov 2026 to 30 Nov 2026.").waitFor();
  await becomes(() => page.locator(".stack .part").count(), 4 * 30);
  await page.getByRole("group", { name: "Energy of the nodes by day", exact: true }).focus();
  await page.keyboard.press("End");
  await page.keyboard.press("PageUp");
  await becomes(() => page.locator(".stack [aria-live=polite]").textContent(), "20 Nov 2026: 3.06 MWh; Active use: 2.04 MWh; Idle power, reserved: 0.583 MWh; System: kernel and daemons: 0.104 MWh; Free nodes (unreserved): 0.329 MWh");
  await accessible(page, "bill");
  await shot(page, "bill-light");

  const lines = (await saved(page, "CSV")).trim().split("\r\n");
  assert.equal(lines[0], "part,energy_kwh,share,how,billed_kwh,cost");
  assert.match(lines[2], /^reserved_idle,14480,0\.12\d+,measured,[\d.]+,3475\.\d+$/);
  assert.equal(lines.length, 10);

  await page.getByLabel("Cluster").selectOption("hpc-a");
  await becomes(() => row(/^Active use/), /^Active use 15\.3 MWh/);
  await becomes(() => page.url(), /#\/bill\?month=2026-11&cluster=hpc-a$/);
  await page.goBack();
  await becomes(() => row(/^Active use/), /^Active use 61\.2 MWh/);
  await page.getByRole("link", { name: "← October 2026" }).click();
  await title(page, "Energy bill – October 2026");
  await page.emulateMedia({ media: "print" });
  await becomes(() => page.locator("button:visible, nav:visible, select:visible, .tools a:visible").count(), 0);
  await page.getByText(/^From the API server at/).waitFor();
  await becomes(() => table.innerText(), /Source[\s\S]*= Utility meter/, "paper has every column");
  await shot(page, "bill-print");
});

test("a month without a bill, one without anything, and a server that fails say so", async (t) => {
  const page = await visit(t, "/?user=operator#/bill?month=2026-11", { server: { insight: "no-meter" } });
  await page.getByText("No bill of November 2026 was imported").waitFor();
  await page.getByText("ceems_api_server import-bill FILE").waitFor();
  const table = page.getByRole("region", { name: "What the energy was used for" });
  await becomes(() => text(table.getByRole("row", { name: /^= Utility meter/ })), "= Utility meter – – not known", "no cost without a bill");
  await accessible(page, "bill without a meter");
  await page.goto(`${url}/#/bill?month=2001-01`);
  await page.getByText("Nothing in January 2001. No node was measured, and no bill was imported.").waitFor();
  await accessible(page, "nothing billed");
  await control({ insight: "busy" });
  await page.goto(`${url}/#/bill?month=2026-10`);
  await page.getByText("The sums could not be loaded: the TSDB is busy.").waitFor();
  await accessible(page, "no bill");
  await control({ insight: "ok" });
  await page.getByRole("button", { name: "Try again" }).click();
  await table.getByRole("row", { name: /^Active use/ }).waitFor();
});

test("a year has its months beside those of the year before, and files of all its groups", async (t) => {
  const year = new Date().getFullYear();
  const page = await visit(t, "/?user=operator#/projects", { server: { many: 20, currency: "EUR" } });
  await page.getByRole("link", { name: `Year ${year}` }).click(); // the only one of that name
  await title(page, `Year ${year}`);
  const rows = page.getByRole("region", { name: "Projects" });
  // The same sum reads the same.
  const energy = await text(page.locator(".tiles > div").first().locator("dd").first());
  await becomes(() => text(rows.locator("tfoot td").first()), energy);
  await becomes(() => text(page.locator(".stack > .note")), new RegExp(`^${energy.replaceAll(".", "\\.")} in total, `));
  await becomes(() => page.locator(".stack .reach").count(), new Date().getMonth() + 1);
  await page.getByRole("group", { name: "Energy by month and project", exact: true }).focus();
  await page.keyboard.press("Home");
  await becomes(() => page.locator(".stack [aria-live=polite]").textContent(), new RegExp(`^January ${year}: `));
  await page.getByText("target: 100 MWh a month").waitFor();
  await becomes(() => page.locator(".stack .drawing .limit").count(), 1);
  await becomes(() => text(page.getByRole("region", { name: "Budgets" })), /^Budgets \d{4} all clusters together, .* within the budget Budget 1\.2 GWh Used 60 MWh \(5 %\)/);
  const emitted = page.getByRole("region", { name: "Emissions in two ways" }).getByRole("row");
  const months = `${new Date().getMonth() + 1} of ${new Date().getMonth() + 1} months?$`;
  await becomes(() => text(emitted.nth(1)), new RegExp(`^the grid \\(location-based\\) [\\d.,]+ k?g ${months}`));
  await becomes(() => text(emitted.nth(2)), new RegExp(`^the supplier \\(market-based\\) [\\d.,]+ k?g ${months}`));
  await page.getByText(/^Market-based factors: imported bills \([\d.,]+ k?Wh\); guarantees of origin, hydro \([\d.,]+ k?Wh\)\.$/).waitFor();
  const wattHours = parseFloat(energy) * { Wh: 1, kWh: 1000 }[energy.split(/\s/)[1]];
  const grams = /([\d.,]+) (k?)g/.exec(await text(emitted.nth(2)));
  assert.ok(Math.abs((Number(grams[1]) * (grams[2] ? 1000 : 1)) / (0.02 * wattHours) - 1) < 0.02, `20 g a kWh: ${grams[0]} of ${energy}`);
  await accessible(page, "year");
  await shot(page, "year-light");

  const lines = (await saved(page, /^CSV$/)).trim().split("\r\n");
  assert.equal(lines[0], "time,group,kwh");
  assert.equal((lines.length - 1) % 12, 0);
  const [asked] = await Promise.all([page.waitForRequest(/format=xlsx/), page.waitForEvent("download"), page.getByRole("button", { name: "XLSX" }).click()]);
  assert.match(asked.url(), /usage\/series\/admin\?.*step=month&by=project&field=kwh,?(%2C)?grams/);
  assert.doesNotMatch(asked.url(), /top=/);

  await page.getByLabel("By", { exact: true }).selectOption("user");
  await page.getByRole("region", { name: "Users" }).waitFor();
  await becomes(() => page.url(), /#\/year\?(year=\d+&)?by=user$/);
  await page.getByRole("link", { name: `← ${year - 1}` }).click();
  await title(page, `Year ${year - 1}`);
  await becomes(() => page.locator(".stack .drawing .limit").count(), 0, "the target is of this year");
  await becomes(() => page.url(), new RegExp(`#/year\\?year=${year - 1}&by=user$`));
  await page.goBack();
  await title(page, `Year ${year}`);
  await page.setViewportSize({ width: 320, height: 640 });
  await becomes(() => fits(page), true, "at 320 px");
});

test("an official report says how each line is known, keeps its question in the address, and is saved in each format", async (t) => {
  const page = await visit(t, "/?user=operator#/reports?kind=ghg&period=2020", { server: { many: 20 } });
  await title(page, "Greenhouse gas inventory of computing – 2020");
  const row = (name) => text(page.getByRole("row", { name }).first());
  await becomes(() => row(/^Active use/), "Active use 61,239.5 kWh measured 99.8 % Energy of nodes while units ran.");
  await becomes(() => row(/^Unexplained/), "Unexplained – missing No bill covers this time.");
  await becomes(() => row(/^Location-based/), "Location-based 4,821.25 kg derived 96 % Energy times the factor of the grid. Factor: 52.4 g/kWh, the grid's factors of each hour");
  await becomes(() => text(page.locator(".evidence")), "1 measured 2 derived 1 modelled 1 declared 1 missing");
  await becomes(() => page.locator("main img").count(), 0, "a name is text");
  await becomes(() => text(page.getByRole("region", { name: "Formulas" }).getByRole("row").last()), "sci_hostile cell(projects.kg, 1)");
  await becomes(() => text(page.getByRole("region", { name: "Sources" }).getByRole("row").nth(1)), `table months parts, meters and factors by month ${"9f".repeat(32)}`);
  await accessible(page, "official report");
  await shot(page, "official-light");

  for (const kind of ["MD", "CSV", "JSON", "XLSX", "HTML"]) {
    const button = page.getByRole("button", { name: kind, exact: true });
    const [file] = await Promise.all([page.waitForEvent("download"), button.click()]);
    assert.equal(file.suggestedFilename(), `ghg-2020.${kind.toLowerCase()}`);
    await becomes(() => button.isEnabled(), true);
  }

  await page.getByLabel("Report", { exact: true }).selectOption("month");
  await becomes(() => page.url(), /#\/reports\?kind=month&period=2020-12$/);
  await title(page, /^Energy and emissions of a month – December 2020$/);
  await page.getByLabel("Cluster").selectOption("gpu-b");
  await page.getByText("Only of the cluster gpu-b.").waitFor();
  await page.getByRole("link", { name: /^← / }).click();
  await becomes(() => page.url(), /#\/reports\?kind=month&period=2020-11&cluster=gpu-b$/);
  await page.goBack();
  await page.goBack();
  await page.goBack();
  await title(page, "Greenhouse gas inventory of computing – 2020");
  await page.emulateMedia({ media: "print" });
  await becomes(() => page.locator("button:visible, nav:visible, select:visible, .tools a:visible").count(), 0);
  await shot(page, "official-print");
});

test("official reports are for administrators, and say what went wrong", async (t) => {
  const page = await visit(t, "/?user=operator#/reports?kind=tax", { server: { insight: "busy" } });
  await page.getByText("The report could not be made: other reports are being made, try again later.").waitFor();
  await control({ insight: "ok" });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("The report could not be made: query parameter 'period': not of this report.").waitFor();
  await accessible(page, "no official report");
  await page.getByLabel("Report", { exact: true }).selectOption("eed");
  await title(page, /^Energy performance of data centres \(EU\) – \d{4}$/);
  await page.goto(`${url}/?user=ada#/reports`);
  await title(page, "Official reports");
  await page.getByText("Only administrators may see it.").waitFor();
});

test("budgets say what was used, what is likely, and how they stand", async (t) => {
  const page = await visit(t, "/?user=operator#/budgets", { server: { currency: "EUR" }, context: { viewport: { width: 1440, height: 900 } } });
  await title(page, "Budgets");
  const row = (name) => page.getByRole("row", { name });
  await settled(page, ["optics", "fluids", "waves", kHostile, "optics"]);
  await becomes(() => text(row(/hpc-a.*CO2e/)), /^fluids hpc-a 50 % passed \d{4} 1 Jan \d{4} to 31 Dec \d{4} 1\.5 t CO2e 1\.1 t CO2e 74 % 1\.42 t to 1\.58 t CO2e may pass the budget$/);
  await becomes(() => text(page.locator("tbody tr").nth(0)), /^optics all clusters together over the budget .* 20 MWh 21 MWh 105 % 23\.9 MWh to 25\.1 MWh$/);
  await becomes(() => text(row(/^waves/)), /within the budget .* 40 kWh 40 % 120 kWh to 140 kWh passes the budget$/);
  await becomes(() => text(page.locator("tbody tr").nth(4)), /^the site all clusters together within the budget .* 1\.2 GWh 60 MWh 5 % /);
  await becomes(() => text(page.locator("tbody tr").nth(5)), /^optics gpu-b not known: the price of a day is missing .* EUR 9,000\.00 – –$/);
  await becomes(() => page.locator("main img").count(), 0, "a name is text");
  await accessible(page, "budgets");
  await shot(page, "budgets-light");

  await page.getByRole("columnheader", { name: "Project" }).getByRole("button").click();
  await settled(page, [kHostile, "fluids", "optics", "optics", "waves"]);
  await page.getByLabel("Filter").fill("optics gpu");
  await settled(page, ["optics"]);
  await becomes(() => page.url(), /#\/budgets\?q=optics\+gpu&sort=project&order=asc$/);
  await page.reload();
  await settled(page, ["optics"]);
  await page.getByLabel("Filter").fill("nothing");
  await page.getByText("Nothing matches your filters.").waitFor();
  await accessible(page, "no such budget");
  await page.getByRole("button", { name: "Show all" }).click();
  await settled(page, [kHostile, "fluids", "optics", "optics", "waves"]);
  const lines = (await saved(page, "CSV")).trim().split("\r\n");
  assert.equal(lines[0], "project,cluster_id,unit,amount,used,forecast_low,forecast_high,period,state");
  assert.ok(lines.some((line) => line.startsWith("'=1+1<img src=x onerror=alert(1)>,gpu-b,kwh,3000,300,800,950,")));
  assert.ok(lines.some((line) => /^optics,gpu-b,cost,9000,,,,\d{4},unknown$/.test(line)));
  await page.getByRole("link", { name: "fluids", exact: true }).focus();
  await page.keyboard.press("Enter");
  await title(page, /^Project fluids on hpc-a – /);
  const budgets = page.getByRole("region", { name: "Budgets" });
  await becomes(() => text(budgets), /^Budgets \d{4} hpc-a, 1 Jan \d{4} to 31 Dec \d{4} 50 % passed Budget 1\.5 t CO2e Used 1\.1 t CO2e \(74 %\) Forecast for the end 1\.42 t to 1\.58 t CO2e may pass the budget$/);
  await accessible(page, "month of a project with a budget");
  await page.emulateMedia({ media: "print" });
  await becomes(() => text(budgets), /may pass the budget$/, "on paper, too");
  await page.emulateMedia({ media: "screen" });
  await page.goto(`${url}/#/project/hpc-a/fluids?month=2020-02`);
  await title(page, /February 2020$/);
  await page.getByText("Nothing in February 2020.").waitFor();
  assert.equal(await budgets.count(), 0, "no budget held then");
});

test("idle reservations are listed with their cost, and so is what was not used", async (t) => {
  const page = await visit(t, "/?user=operator#/idle", { server: { currency: "EUR" }, context: { viewport: { width: 1440, height: 900 } } });
  await title(page, "Idle reservations");
  await settled(page, ["47001", "48214", "46999", "47002"]);
  await becomes(() => text(page.locator("tbody tr").nth(0)), /^47001 gpu-b, gpu lin optics 1 d 6 h since .* 64 CPUs 4 GPUs 612 W 18\.4 kWh EUR 4\.59$/);
  await becomes(() => text(page.locator("tbody tr").nth(2)), /exempt: its partition may idle/);
  await becomes(() => text(page.locator("tbody tr").nth(3)), /16 CPUs – – –$/, "what is not known is no 0");
  await becomes(() => text(page.locator("tr.total")), /^Total 4 units 713 W 20\.5 kWh EUR 5\.11$/);
  const shares = page.getByRole("region", { name: "Idle power of reservations, last 30 days" });
  await becomes(() => text(shares.getByRole("row", { name: /^optics/ })), "optics 96 611 kWh 210 kWh 35 % unknown –");
  await becomes(() => text(shares.getByRole("row", { name: /^fluids/ })), "fluids 812 2,950 kWh 319 kWh 11 % 96 kWh 4 %");
  await becomes(() => text(shares.getByRole("row").nth(3)), `${kHostile} 3 12 kWh – – unknown –`);
  const helped = page.getByRole("region", { name: "What suggestions saved, last 30 days" });
  await becomes(() => text(helped.getByRole("row").nth(1)), "fluids Some GPUs not used 41 – 1,230 – 210 kWh");
  await becomes(() => text(helped.getByRole("row").nth(2)), `${kHostile} site-rule 3 −3 – 64 −0.5 kWh`);
  await becomes(() => text(helped.getByRole("row").nth(3)), "fluids Out of memory 2 – – – unknown");
  const answers = page.getByRole("region", { name: "What people said of suggestions" });
  await becomes(() => text(answers.getByRole("row").nth(1)), "site-rule 8 5 75 %", "those that help least come first");
  await becomes(() => text(answers.getByRole("row").nth(2)), "Some GPUs not used 40 12 20 %");
  assert.match(await saved(page, /^CSV ?: What suggestions/), /^cluster_id,project,rule,kinds,units,core_hours,gpu_hours,gib_hours,energy_kwh\r\nhpc-a,fluids,gpu-unused,3,41,0,1230\.4,0,210\.42\r\n/);
  await becomes(() => page.locator("main img").count(), 0, "a name is text");
  await accessible(page, "idle");
  await shot(page, "idle-light");

  await page.getByLabel("Rows by").selectOption("user");
  await shares.getByRole("rowheader", { name: "lin" }).waitFor();
  await becomes(() => page.url(), /#\/idle\?by=user$/);
  await page.getByRole("columnheader", { name: "Idle for" }).getByRole("button").focus();
  await page.keyboard.press("Enter");
  await settled(page, ["46999", "47001", "47002", "48214"]);
  await page.getByLabel("Cluster").selectOption("hpc-a");
  await settled(page, ["46999", "48214"]);
  const lines = (await saved(page, /^CSV$/)).trim().split("\r\n");
  assert.equal(lines[0], "cluster_id,uuid,user,project,partition,idle_since,idle_seconds,cpus,gpus,power_watts,energy_kwh,cost,exempt");
  assert.match(lines[1], /^hpc-a,48214,ada,fluids,main,\d{4}-\d\d-\d\dT[\d:.]+Z,10800,8,1,61,0\.183,0\.04575,no$/);
  assert.match(await saved(page, /^CSV ?: Idle power/), /^user,units,energy_kwh,measured_kwh,idle_power_kwh,share,not_used_of_kwh,not_used_kwh,not_used_share\r\nada,812,2950,2900,319,0\.11,2400,96,0\.04\r\nlin,96,611,600,210,0\.35,0,,\r\n/);
  await page.emulateMedia({ media: "print" });
  await becomes(() => page.locator("button:visible:not(thead button), nav:visible, select:visible").count(), 0);
  await page.emulateMedia({ media: null });
  await names(page).last().focus();
  await page.keyboard.press("Enter");
  await title(page, "ocean");
});

test("on a phone, the tables of managers' pages are cards, without what is not known", async (t) => {
  const page = await visit(t, "/?user=operator#/idle", { server: { currency: "EUR" }, context: { viewport: { width: 390, height: 844 } } });
  const helped = page.getByRole("region", { name: "What suggestions saved, last 30 days" });
  const labels = (row) => row.evaluate((all) => [...all.cells].filter((cell) => cell.getClientRects().length > 0 && cell.dataset.label).map((cell) => cell.dataset.label));
  await becomes(() => labels(helped.getByRole("row", { name: /^fluids/ }).first()), ["Suggestion followed", "Units", "GPU-hours", "Energy"]);
  const shares = page.getByRole("region", { name: "Idle power of reservations, last 30 days" });
  await becomes(() => labels(shares.getByRole("row", { name: /^optics/ })), ["Units", "Energy", "Idle power", "Share"]);
  for (const address of ["#/idle", "#/bill?month=2026-11", "#/budgets", "#/year"]) {
    await page.evaluate((to) => (location.hash = to), address);
    await page.getByRole("table").or(page.getByRole("grid")).first().waitFor();
    await page.waitForLoadState("networkidle");
    await becomes(() => scrolling(page), [], address);
    await becomes(() => fits(page), true, address);
  }
  await accessible(page, "year on a phone");
});

test("each role sees what the server gives it, and is not offered the rest", async (t) => {
  const tabs = (page) => page.getByRole("navigation", { name: "Reports", exact: true });
  const links = (page) => tabs(page).getByRole("link").allTextContents();
  for (const [user, offered, projects, units] of [
    ["ada", ["Budgets", "Idle reservations"], ["fluids"], ["48214"]],
    ["grace", ["Budgets", "Idle reservations"], ["optics", "optics"], ["47002"]],
    ["lea", ["Budgets", "Idle reservations"], ["optics", "optics"], ["47001", "46999"]],
    ["sue", ["Budgets", "Idle reservations"], ["optics", "fluids", "waves", kHostile, "optics"], ["47001", "48214", "46999", "47002"]],
  ]) {
    const page = await visit(t, `/?user=${user}#/budgets`);
    await becomes(() => links(page), offered, user);
    await settled(page, projects);
    await tabs(page).getByRole("link", { name: "Idle reservations" }).click();
    await title(page, "Idle reservations");
    await settled(page, units);
    await page.goto(`${url}/#/bill`);
    await title(page, "Bill");
    await page.getByText("Administrators may see it.").waitFor();
    await accessible(page, `bill for ${user}`);
    assert.ok(!page.requests.some((request) => request.includes("insight/bill")), "nothing is asked for that would be refused");
    if (user !== "lea") continue;
    await page.goto(`${url}/#/idle?view=own`);
    await page.getByText("No idle units right now.").waitFor();
    await accessible(page, "nothing idle");
  }
  const page = await visit(t, "/?user=operator#/bill");
  await becomes(() => links(page), ["Bill", "Official reports", "Budgets", "Idle reservations"]);
});

test("where the server has nothing of it, nothing is offered, and help says why", async (t) => {
  const page = await visit(t, "/?user=operator#/budgets", { server: { insight: "empty" } });
  await page.getByText("No budget is set for a project that you may see.").waitFor();
  await accessible(page, "no budgets");
  await becomes(() => rail(page).getByRole("link", { name: "Reports" }).getAttribute("href"), "#/bill");
  await becomes(() => page.getByRole("navigation", { name: "Reports", exact: true }).count(), 0, "no tab leads here");
  await page.getByRole("main").getByRole("link", { name: "How the numbers are made" }).click();
  await page.getByRole("heading", { name: "Bill, budgets and idle reservations" }).waitFor();
  await control({ insight: "none" });
  await page.goto(`${url}/?x#/idle`);
  await page.getByText("The sums could not be loaded: this server is older than the page and has no such answers.").first().waitFor();
  await becomes(() => rail(page).getByRole("link").allTextContents(), ["Overview", "Units", "Usage", "Nodes", "Grid"]);
  await control({ insight: "ok", fleet: "none" });
  await page.goto(`${url}/?y#/idle`);
  await becomes(() => rail(page).getByRole("link").allTextContents(), ["Overview", "Units", "Usage", "Reports"]);
});

test("idle reservations stay when they cannot be refreshed, and say so", async (t) => {
  const page = await visit(t, "/?user=operator#/idle", { clock: true });
  await settled(page, ["47001", "48214", "46999", "47002"]);
  await control({ insight: "busy" });
  await passUntil(page, page.getByText("The sums could not be refreshed: the TSDB is busy."));
  await settled(page, ["47001", "48214", "46999", "47002"]);
  await control({ insight: "ok" });
  await passUntil(page, async () => (await page.getByText("could not be refreshed").count()) === 0);
});

test("idle reservations of other clusters are there when the database of one does not answer, and the page says so", async (t) => {
  const page = await visit(t, "/?user=operator#/idle", { server: { insight: "silent" }, clock: true });
  await settled(page, ["47001", "47002"]);
  const note = page.getByText("The time-series database of hpc-a does not answer.");
  await note.waitFor();
  const alerts = page.getByRole("region", { name: "Alerts" });
  await alerts.getByText("A time-series database does not respond.").waitFor();
  await accessible(page, "idle without a cluster");
  await page.getByLabel("Cluster").selectOption("gpu-b");
  await becomes(() => note.count(), 0, "not of the cluster that was chosen");
  await page.getByLabel("Cluster").selectOption("hpc-a");
  await note.waitFor();
  await control({ insight: "ok" });
  await passUntil(page, async () => (await note.count()) === 0);
  await settled(page, ["48214", "46999"]);
  for (const [locale, words] of [["de-DE", "Die Zeitreihendatenbank von hpc-a antwortet nicht."], ["fr-FR", "La base de séries temporelles de hpc-a ne répond pas."]]) {
    const other = await visit(t, "/?user=operator#/idle", { server: { insight: "silent" }, context: { locale } });
    await other.getByText(words).waitFor();
  }
});

// The corner cases; matrix_test.mjs has all themes and widths.
for (const [name, context] of [
  ["dark", { viewport: { width: 1440, height: 900 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 } }],
  ["forced-colors", { viewport: { width: 1024, height: 800 }, forcedColors: "active" }],
  ["german", { viewport: { width: 320, height: 700 }, locale: "de-DE" }],
  ["french", { viewport: { width: 720, height: 700 }, locale: "fr-FR" }],
]) {
  test(`the pages for managers are accessible and fit: ${name}`, async (t) => {
    const page = await visit(t, "/?user=operator#/bill", { server: { currency: "EUR" }, context });
    for (const [address, there] of [["bill?month=2026-11", ".stack .part"], ["reports?kind=ghg&period=2020", ".official .state"], ["budgets", "table.units tbody tr"], ["idle", ".plain tbody tr"]]) {
      await page.goto(`${url}/#/${address}`);
      await page.locator(there).first().waitFor();
      await becomes(() => fits(page), true, `${address} does not scroll sideways`);
      if (address.startsWith("bill")) {
        await becomes(() => scrolling(page), [], "nor do its tables");
        await becomes(() => page.locator(".bill").getByRole("columnheader").count(), 6, "assistive technology sees lines as rows of a table");
      }
      await accessible(page, `${address}, ${name}`);
      await shot(page, `${address.split("?")[0]}-${name}`);
    }
    if (name === "phone") {
      await page.goto(`${url}/#/budgets`);
      await page.getByLabel("Sort by").selectOption({ label: "Project, A first" });
      await settled(page, [kHostile, "fluids", "optics", "optics", "waves"]);
    }
  });
}
