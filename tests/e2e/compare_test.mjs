// Tests what people do with several units: select rows, compare runs, look at the heat map, choose columns, filter by advice, and what units
// are called.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { accessible, becomes, control, fits, focused, scrolling, shot, url, visit } from "./stand_in.mjs";

const kWide = { viewport: { width: 1720, height: 900 } };
const kPhone = { viewport: { width: 390, height: 844 }, colorScheme: "dark" };
const names = (page) => page.locator("tbody th a").allTextContents();
const hash = (page) => new URL(page.url()).hash;

test("rows are selected and compared by keyboard alone", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?sort=name", { context: kWide });
  await page.getByRole("link", { name: "lattice-qcd" }).focus();
  await page.keyboard.press("Space");
  await page.getByRole("status").getByText("1 selected. Select another one to compare.").waitFor();
  await becomes(() => page.locator('tr[aria-selected="true"]').count(), 1);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Space");
  await page.getByRole("status").getByText("2 selected.").waitFor();
  await page.keyboard.press("Space");
  await page.getByRole("status").getByText("1 selected. Select another one to compare.").waitFor();
  await page.keyboard.press("Space");
  await page.getByRole("status").getByText("2 selected.").waitFor();
  await page.getByRole("button", { name: /^CSV ?: 2 selected/ }).focus();
  const [file] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  const lines = readFileSync(await file.path(), "utf8").trim().split("\r\n");
  assert.deepEqual(lines.map((line) => line.split(",").slice(0, 4).join()), ["cluster_id,uuid,name,username", "hpc-a,48213,lattice-qcd,ada", "hpc-a,48188,mesh,lin"]);
  await accessible(page, "selected rows");
  await shot(page, "compare-select");
  await page.getByRole("link", { name: "Compare", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Compare" }).waitFor();
  await becomes(() => focused(page), "Compare", "the heading has the focus");
  await becomes(() => hash(page), /^#\/compare\?u=hpc-a\/48213\/\d+&u=hpc-a\/48188\/\d+$/);
  await page.goBack();
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
});

test("not more rows are selected than can be compared", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { server: { many: 20 } });
  await page.getByRole("link", { name: "task_00000" }).waitFor();
  const boxes = page.getByRole("checkbox", { name: /^Select task/ });
  for (let i = 0; i < 7; ++i) await boxes.nth(i).click();
  await page.getByRole("status").getByText("6 selected. At most 6 can be compared.").waitFor();
  await becomes(() => page.locator('tr[aria-selected="true"]').count(), 6);
  await page.getByRole("button", { name: "Select none" }).click();
  await page.locator('tr[aria-selected="true"]').first().waitFor({ state: "detached" });
  await becomes(() => page.getByRole("link", { name: "Compare", exact: true }).count(), 0);
});

const kTwo = "#/compare?u=hpc-a/48190&u=hpc-a/48188";

test("an address compares two units: differences in words, charts over the same time", async (t) => {
  const page = await visit(t, `/?user=operator${kTwo}`, { context: kWide });
  const table = page.getByRole("region", { name: "What is different" });
  await table.waitFor();
  const row = (name) => table.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
  // 4 × 38 % GPU; 48 W × 7260 s × 3 against 22 W × 12000 s.
  await becomes(async () => (await row("Energy").innerText()).replace(/\s+/g, " "), /^Energy 290 Wh 73\.3 Wh −217 Wh, −75 %, better$/);
  await becomes(async () => (await row("Elapsed").innerText()).replace(/\s+/g, " "), /^Elapsed 2 h 01 min 3 h 20 min \+1 h 19 min, \+65 %, worse$/);
  await becomes(async () => (await row("CPU use").innerText()).replace(/\s+/g, " "), /^CPU use 98 % 60 % −37\.5 points, worse$/);
  await becomes(async () => (await row("CPUs allocated").innerText()).replace(/\s+/g, " "), /^CPUs allocated 4 2 −2, −50 %$/, "more or less of it is neither good nor bad");
  await page.locator(".compared svg .line").nth(5).waitFor();
  await becomes(() => page.locator(".compared").first().locator(".line").evaluateAll((all) => all.map((e) => getComputedStyle(e).strokeDasharray)), ["none", "8px, 4px"]);
  await becomes(() => page.locator("[style]").count(), 0, "no styles in elements");
  await becomes(() => page.locator(".runs b").count(), 0, "names are text");
  await accessible(page, "two units compared");
  await shot(page, "compare-light");

  const chart = page.getByRole("group", { name: "Power" });
  await chart.focus();
  await page.keyboard.press("Home");
  for (let i = 0; i < 3; ++i) await page.keyboard.press("ArrowRight");
  await page.locator('[aria-live="polite"]').getByText(/^6 min: train-<b>bold<\/b>&co: 4\d(\.\d)? W; mesh: 2\d(\.\d)? W$/).waitFor();
  await page.getByRole("radio", { name: "share of the run" }).check({ force: true });
  await becomes(() => hash(page), /&time=share$/);
  await page.locator(".compared text").getByText(/^(40|50|60|80|100) %$/).first().waitFor();
  await page.locator(".compared").first().getByText(/bold<\/b>&co:\s+between 36 % and 40 %, 38 % on average/).waitFor(); // only one has GPUs
  await page.locator(".compared").filter({ hasText: "CPU as a table" }).locator("summary").click();
  const readings = page.getByRole("region", { name: "CPU, all readings" }).getByRole("row");
  await becomes(() => readings.count(), 102);
  await accessible(page, "compared by the share of the run");

  await page.getByRole("button", { name: "Compare with this mesh" }).click();
  await becomes(() => hash(page), /^#\/compare\?u=hpc-a\/48188&u=hpc-a\/48190&time=share$/);
  await table.getByRole("columnheader").nth(1).getByText("mesh").waitFor();
  await page.getByRole("button", { name: /^Remove train/ }).click();
  await page.getByText("Select two to six in the list").waitFor();
  await becomes(() => focused(page), "Compare");
});

test("comparing on a phone, without series, with what is not there, and where the server is older", async (t) => {
  const phone = await visit(t, `/?user=operator${kTwo}&u=hpc-a/48213`, { context: kPhone });
  await phone.locator(".compared svg .line").nth(8).waitFor();
  await becomes(() => fits(phone), true);
  // Three are columns below one heading; of more, each value has its run's name. Nothing scrolls sideways.
  const differences = phone.getByRole("region", { name: "What is different" });
  const heading = differences.getByRole("columnheader", { name: "lattice-qcd" });
  const energy = () => differences.getByRole("row", { name: /^Energy / }).evaluate((row) => [...row.cells].slice(1).map((cell) => [cell.offsetTop, cell.offsetLeft, getComputedStyle(cell, "::before").content]));
  await becomes(() => heading.isVisible(), true);
  await becomes(() => scrolling(phone), []);
  const three = await energy();
  assert.ok(three[0][0] === three[2][0] && three[0][1] < three[1][1] && three[1][1] < three[2][1], `beside each other: ${JSON.stringify(three)}`);
  assert.equal(Math.round(await heading.evaluate((cell) => cell.offsetLeft)), three[2][1], "below its heading");
  await accessible(phone, "comparing on a phone, dark");
  await shot(phone, "compare-phone-dark");
  await phone.evaluate(() => (location.hash += "&u=hpc-a/48214"));
  await becomes(async () => (await energy()).map((cell) => cell[2]), ["train-<b>bold</b>&co", "mesh", "lattice-qcd", "ocean"].map((name) => JSON.stringify(name)));
  await becomes(() => heading.isVisible(), false);
  await becomes(() => scrolling(phone), []);
  await accessible(phone, "comparing four on a phone, dark");
  await shot(phone, "compare-phone-four");

  const support = await visit(t, `/?user=sue${kTwo}`);
  await support.getByText("Measurements over time are shown to the owner").waitFor();
  await support.getByRole("region", { name: "What is different" }).getByRole("columnheader", { name: "48190" }).waitFor();
  await accessible(support, "comparing as support");

  const missing = await visit(t, `/?user=grace#/compare?u=hpc-a/48190&u=hpc-a/48169&u=x%2Fy/%3Cb%3E`);
  await missing.getByText("You can see no unit 48190 on cluster hpc-a.").waitFor();
  await missing.getByText("You can see no unit <b> on cluster x/y.").waitFor();
  await missing.getByRole("link", { name: "probe" }).waitFor();
  await accessible(missing, "comparing with what is not there");

  const older = await visit(t, `/?user=operator${kTwo}`, { server: { lists: false } });
  await older.getByRole("alert").getByText("this server is older than the page").waitFor();
  await control({ lists: true });
  await older.getByRole("button", { name: "Try again" }).click();
  await older.getByRole("region", { name: "What is different" }).waitFor();
});

test("the heat map: arrows move, each cell has a label, Enter lists its units", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?period=all", { server: { many: 300 }, context: kWide });
  await page.getByRole("link", { name: "Heat map" }).click();
  const map = page.getByRole("grid", { name: "CPU use and Memory use" });
  await map.waitFor();
  await becomes(() => hash(page), "#/jobs?period=all&heat=mem");
  await becomes(() => map.getByRole("gridcell").count(), 400);
  await becomes(() => map.locator('[tabindex="0"]').count(), 1, "one stop of the Tab key");
  await becomes(() => map.evaluate((svg) => svg.getBoundingClientRect().width / svg.parentElement.clientWidth > 0.9), true, "it fills the page");
  await accessible(page, "heat map");
  await shot(page, "heat-light");
  await map.locator('[tabindex="0"]').focus();
  await page.keyboard.press("Home");
  const cell = page.locator("[data-cell]:focus");
  await becomes(() => cell.getAttribute("aria-label"), /^CPU use 0 to 5 %, Memory use 25 to 30 %: \d+ units, [\d.]+ k?Wh$/);
  const counted = Number(/: (\d+) units/.exec(await cell.getAttribute("aria-label"))[1]);
  await page.keyboard.press("ArrowDown");
  await becomes(() => cell.getAttribute("aria-label"), /^CPU use 0 to 5 %, Memory use 20 to 25 %: none$/);
  await page.keyboard.press("Enter");
  await becomes(() => hash(page), "#/jobs?period=all&heat=mem", "nothing is in it");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.getByText(`1 to ${counted} of ${counted} units`).waitFor();
  await becomes(() => hash(page), "#/jobs?period=all&cpu=0..4.99&mem=25..29.99");
  await page.goBack();
  await map.waitFor();
  await page.getByRole("radio", { name: "Energy" }).check({ force: true });
  await page.locator(".heat summary").click();
  const rows = page.getByRole("region", { name: "CPU use and Memory use, all cells" }).getByRole("row");
  await rows.nth(10).waitFor();
  await page.getByLabel("CPU use against").selectOption({ label: "GPU use" });
  await page.getByRole("grid", { name: "CPU use and GPU use" }).waitFor();
  await becomes(() => hash(page), "#/jobs?period=all&heat=gpu");
  await accessible(page, "heat map of GPUs");
});

test("the heat map on a phone, without GPUs, and where the server is older", async (t) => {
  const phone = await visit(t, "/?user=operator#/jobs?heat=mem", { context: kPhone });
  await phone.getByRole("grid").waitFor();
  await becomes(() => fits(phone), true);
  await accessible(phone, "heat map on a phone, dark");
  await shot(phone, "heat-phone-dark");
  const none = await visit(t, "/?user=grace#/jobs?heat=gpu");
  await none.getByText("No unit here has a measured GPU.").waitFor();
  const older = await visit(t, "/?user=operator#/jobs?heat=mem", { server: { lists: false } });
  await older.getByText("This server is older than the page and has no heat map.").waitFor();
});

test("columns are shown, hidden and moved by buttons, and stay so", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { context: kWide });
  await page.getByRole("link", { name: "ocean" }).waitFor();
  const heads = () => page.getByRole("columnheader").allInnerTexts();
  await becomes(async () => (await heads()).slice(0, 3), ["Unit", "Owner", "State"]);
  await page.getByRole("button", { name: "Columns" }).click();
  const dialog = page.getByRole("dialog", { name: "Columns" });
  await dialog.waitFor();
  await accessible(page, "the choice of columns");
  await shot(page, "columns");
  await becomes(() => dialog.getByRole("checkbox", { name: "Unit" }).isDisabled(), true);
  await dialog.getByRole("checkbox", { name: "Owner" }).uncheck();
  await dialog.getByRole("button", { name: "Move Energy up" }).focus();
  await page.keyboard.press("Enter");
  await dialog.getByText("Energy is column 10.").waitFor();
  await page.waitForFunction(() => document.activeElement.textContent.includes("Move Energy up"));
  await page.keyboard.press("Enter");
  await dialog.getByText("Energy is column 9.").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  const wanted = ["Unit", "State", "Verdict", "Started", "Ended", "Elapsed", "CPU use", "Energy", "Memory use", "GPU use", "Not used", "Emissions"];
  await becomes(heads, wanted);
  await page.reload();
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await becomes(heads, wanted);
  await page.getByRole("button", { name: "Columns" }).click();
  await dialog.getByRole("checkbox", { name: "Nodes" }).check();
  await dialog.getByRole("checkbox", { name: "Waited" }).check();
  await dialog.getByRole("button", { name: "Done" }).click();
  await becomes(async () => (await heads()).slice(-2), ["Waited", "Nodes"]);
  await becomes(() => page.locator("tbody tr", { has: page.getByRole("link", { name: "ocean" }) }).locator("td").last().innerText(), "1", "what was hidden is asked for");
  await shot(page, "columns-chosen");
  await page.getByRole("button", { name: "Columns" }).click();
  await dialog.getByRole("button", { name: "Reset" }).click();
  await dialog.getByRole("button", { name: "Done" }).click();
  await becomes(async () => (await heads()).slice(0, 3), ["Unit", "Owner", "State"]);
});

test("units are filtered by what a rule says of them", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await page.getByRole("button", { name: "Filters" }).click();
  await page.locator("summary", { hasText: "Advice" }).click();
  const box = page.getByRole("group", { name: "Advice" });
  await becomes(async () => (await box.locator("label").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim()).sort(), [
    "<i>site</i> 1", "All used well 1", "CPUs little used 1", "Longer time limit than needed 1", "More memory than needed 1", "Out of memory 1", "Some GPUs not used 1",
  ]);
  await box.getByRole("checkbox", { name: "Out of memory" }).check();
  await page.getByRole("link", { name: "ocean" }).waitFor({ state: "detached" });
  await becomes(() => names(page), ["mesh"]);
  await becomes(() => hash(page), "#/jobs?advice=oom");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Remove the filter Advice: Out of memory" }).click();
  await page.goto(`${url}/#/jobs?advice=any`);
  await page.getByRole("button", { name: "Remove the filter Advice: Anything to improve" }).waitFor();
  await becomes(async () => (await names(page)).sort(), ["mesh", "sweep", "train-<b>bold</b>&co"]);
});

for (const [managers, language, title, heading, counted, all] of [
  [["slurm", "lsf"], "en", "Jobs", "Job", /^8 jobs /, "All jobs"],
  [["openstack"], "en", "VMs", "VM", /^8 VMs /, "All VMs"],
  [["k8s"], "fr", "Pods", "Pod", /^8 pods /, "Tous les pods"],
  [["slurm"], "fr", "Tâches", "Tâche", /^8 tâches /, "Toutes les tâches"],
  [["libvirt", "openstack"], "de", "VMs", "VM", /^8 VMs /, "Alle VMs"],
  [["slurm"], "de", "Jobs", "Job", /^8 Jobs /, "Alle Jobs"],
  [["slurm", "k8s"], "en", "Compute units", "Unit", /^8 units /, "All units"],
]) {
  test(`units are what ${managers.join(" and ")} call them: ${language}`, async (t) => {
    const page = await visit(t, "/?user=operator#/jobs", { server: { managers }, context: { ...kWide, locale: language } });
    await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
    await page.getByRole("link", { name: "ocean" }).waitFor();
    await page.getByRole("columnheader", { name: heading, exact: true }).waitFor();
    await becomes(() => page.locator(".title > .note").innerText(), counted);
    await page.getByRole("link", { name: "ocean" }).click();
    await page.getByRole("heading", { level: 1, name: "ocean" }).waitFor();
    await page.getByRole("link", { name: `← ${all}` }).waitFor();
    // Its own manager is SLURM.
    await page.getByRole("navigation", { name: { en: "More about this job", de: "Mehr über diesen Job", fr: "Plus sur cette tâche" }[language] }).waitFor();
  });
}

test("charts are printed as lines, not as pictures of the screen", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48190", { context: { ...kWide, colorScheme: "dark" } });
  await page.locator("canvas").nth(2).waitFor();
  await becomes(() => page.locator(".on-paper").first().isVisible(), false);
  await page.emulateMedia({ media: "print" });
  await page.locator(".on-paper path").nth(2).waitFor();
  await becomes(() => page.locator("canvas").evaluateAll((all) => all.map((e) => e.getClientRects().length)), [0, 0, 0]);
  const path = await page.locator(".on-paper path").first().getAttribute("d");
  assert.ok(path.split("L").length > 100, path.slice(0, 80));
  await becomes(() => page.locator(".on-paper path").first().evaluate((e) => getComputedStyle(e).stroke), "rgb(31, 111, 181)", "light colours");
  await shot(page, "print-charts");
});

test("the site's name stands at the top, as text", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { server: { name: "Demo <b>1</b>" }, context: kPhone });
  await page.getByRole("banner").getByText("Demo <b>1</b>", { exact: true }).waitFor();
  await becomes(() => fits(page), true);
  await accessible(page, "the name of the site");
});
