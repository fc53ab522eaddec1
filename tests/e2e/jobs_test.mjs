// Tests the list of units: sorting, filters, pages, refreshing, printing, the keyboard and errors.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { accessible, becomes, control, fits, focused, names, passUntil, patience, settled, shot, url, visit, within } from "./stand_in.mjs";

/** The names of the first and the last unit in the table. */
async function ends(page) {
  const all = await names(page).allTextContents();
  return [all.at(0), all.at(-1)];
}

test("sorts, filters and adds up the table by keyboard alone", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await becomes(() => names(page).count(), 8);
  await accessible(page, "table of units");
  await shot(page, "units-light");

  await page.keyboard.press("Tab");
  await becomes(() => focused(page), "Skip to the content");
  await page.keyboard.press("Enter");
  await becomes(() => focused(page), /^Compute units/);
  for (const stop of ["List", "By kind", "Heat map", "Thumbnails", "filter"]) {
    await page.keyboard.press("Tab");
    await becomes(() => focused(page), stop);
  }
  await page.keyboard.type("fluids ocean");
  await settled(page, ["ocean"]);
  await becomes(() => page.locator(".total").innerText(), /1 unit, 1 running/);
  await page.keyboard.press("Control+A");
  await page.keyboard.type("no such thing");
  await page.getByText("No unit matches.").waitFor();
  await accessible(page, "nothing matches");
  await page.getByRole("button", { name: "Show all" }).click();
  await becomes(() => names(page).count(), 8);
  await becomes(() => focused(page), "filter");

  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  await settled(page, ["ocean", "lattice-qcd", "waiting room"]);
  await page.keyboard.press("ArrowRight");
  await page.getByRole("link", { name: "ocean" }).waitFor({ state: "detached" });
  await becomes(() => names(page).count(), 5);
  await page.keyboard.press("ArrowRight");

  const energy = page.getByRole("columnheader", { name: "Energy" });
  await becomes(() => energy.getAttribute("aria-sort"), null);
  await energy.getByRole("button").focus();
  await page.keyboard.press("Enter");
  await becomes(() => ends(page), ["train-<b>bold</b>&co", "waiting room"]);
  await becomes(() => energy.getAttribute("aria-sort"), "descending");
  await page.keyboard.press("Space");
  await becomes(() => ends(page), ["short", "waiting room"]);
  await becomes(() => energy.getAttribute("aria-sort"), "ascending");
  await becomes(() => page.locator("tbody tr").first().innerText(), /<\s0\.01\sWh/);
});

test("the table is one stop of the Tab key, and arrows reach every cell", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?sort=name", { context: { viewport: { width: 1600, height: 900 } } });
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  await becomes(() => page.locator('table [tabindex="0"]').count(), 1);
  await page.waitForLoadState("networkidle"); // a control that comes later would be the next stop
  await page.getByRole("button", { name: "CSV" }).focus();
  await page.keyboard.press("Tab");
  await becomes(() => focused(page), "lattice-qcd", "the first unit");
  await page.keyboard.press("ArrowDown");
  await becomes(() => focused(page), "mesh");
  const seen = new Set();
  await page.keyboard.press("Control+Home");
  for (let row = 0; row < 10; ++row) {
    await page.keyboard.press("Home");
    for (let column = 0; column < 13; ++column) {
      seen.add(await page.evaluate(() => {
        const cell = document.activeElement.closest("th, td");
        return `${cell.parentElement.rowIndex} ${cell.cellIndex}`;
      }));
      await page.keyboard.press("ArrowRight");
    }
    await page.keyboard.press("ArrowDown");
  }
  assert.equal(seen.size, 130);
  await becomes(() => page.locator('table [tabindex="0"]').count(), 1);
  await page.keyboard.press("Tab");
  await becomes(() => page.evaluate(() => document.activeElement.closest("table")), null);
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "lattice-qcd" }).waitFor();
});

test("controls are one bar; a sheet has the filters, and on narrow screens the rest, too", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { context: { viewport: { width: 1280, height: 900 } } });
  await page.getByRole("link", { name: "ocean" }).waitFor();
  for (const width of [1280, 1440, 1024, 721, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await becomes(() => page.locator(".jobs-bar").evaluate((bar) => Math.round(bar.getBoundingClientRect().height)), 56, `a bar of 56 px at ${width}`);
    await becomes(() => fits(page), true, `at ${width}`);
  }
  await becomes(() => page.getByLabel("Running, or ended").count(), 1, "in the sheet");
  await page.getByRole("button", { name: "Filters" }).click();
  const sheet = page.getByRole("dialog", { name: "Filters" });
  await sheet.getByLabel("Running, or ended").selectOption({ label: "in the last 7 days" });
  await sheet.getByLabel("Sort by").selectOption({ label: "Verdict, highest first" });
  await becomes(() => new URL(page.url()).hash, "#/jobs?period=168h&sort=verdict");
  await sheet.getByRole("checkbox", { name: /Completed/ }).check();
  await settled(page, ["train-<b>bold</b>&co", "short"]);
  await accessible(page, "the sheet on a phone");
  await sheet.getByRole("button", { name: "Clear all" }).click();
  await becomes(() => names(page).count(), 8);
  await becomes(() => sheet.getByRole("button", { name: "Clear all" }).getAttribute("aria-disabled"), "true");
  await sheet.getByRole("button", { name: "Done" }).click();
  await becomes(() => focused(page), "Filters");
});

test("columns that were chosen stay: the table scrolls, and its first column does not", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { context: { viewport: { width: 1024, height: 700 } } });
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await page.getByRole("button", { name: /^Columns\s\+11$/ }).click();
  const dialog = page.getByRole("dialog", { name: "Columns" });
  await dialog.getByRole("checkbox", { name: "Nodes" }).check();
  await dialog.getByRole("button", { name: "Done" }).click();
  await becomes(() => page.getByRole("columnheader").count(), 14);
  await becomes(() => fits(page), true, "the page itself does not scroll");
  await page.getByRole("button", { name: /^Columns\s\+3$/ }).waitFor();
  const box = page.locator(".table-box");
  await becomes(() => box.evaluate((one) => one.scrollWidth > one.clientWidth), true);
  await accessible(page, "a table that scrolls");
  const head = page.locator("tbody th").first();
  const before = await head.boundingBox();
  await page.getByRole("link", { name: "ocean" }).focus();
  await page.keyboard.press("End");
  await becomes(() => box.evaluate((one) => one.scrollLeft > 0), true, "the focus is followed");
  await becomes(async () => (await head.boundingBox()).x, before.x, "the names stay in sight");
  await page.keyboard.press("ArrowLeft");
  for (let i = 0; i < 12; ++i) await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowRight");
  const cell = await page.evaluate(() => document.activeElement.getBoundingClientRect().x);
  assert.ok(cell >= before.x + before.width - 1, "a cell with the focus is not below the first column");
  await shot(page, "units-scrolled");
});

test("thumbnails show what each unit used over its life, with a text for each", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await becomes(() => names(page).count(), 8);
  assert.ok(!page.requests.some((request) => request.includes("units/list") && request.includes("strip")), "the list does not ask for it");
  await page.getByRole("navigation", { name: "List view" }).getByRole("link", { name: "Thumbnails" }).click();
  await becomes(() => new URL(page.url()).hash, "#/jobs?form=thumbnails");
  const card = (name) => page.locator(".thumbnails li").filter({ has: page.getByRole("link", { name, exact: true }) });
  const texts = (name) => card(name).getByRole("img").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  await becomes(() => texts("train-<b>bold</b>&co"), ["CPU: 97 % on average, from 95 % to 100 %; 4 of 24 parts are missing", "GPU: 57 % on average, from 0 % to 100 %"]);
  await becomes(() => texts("sweep"), ["CPU: 3 % on average, from 1.6 % to 3.2 %; 2 of 24 parts are missing"]);
  await card("ocean").getByText("Drawn after its end").waitFor();
  await card("probe").getByText("No use over time recorded").waitFor();
  await card("mesh").getByText("Look here").waitFor();
  await accessible(page, "thumbnails");
  await shot(page, "thumbnails");
  await card("train-<b>bold</b>&co").getByRole("link").click();
  const label = page.locator(".strips .name").first();
  await becomes(() => label.evaluate((name) => name.getBoundingClientRect().height < 30), true, "GPUs of the unit's page keep their style");
  await page.goBack();
  await page.setViewportSize({ width: 320, height: 640 });
  await becomes(() => fits(page), true);
  await accessible(page, "thumbnails on a phone");
  const support = await visit(t, "/?user=sue#/jobs?form=thumbnails&view=all");
  await support.getByText("No use over time recorded").first().waitFor();
  await becomes(() => support.locator(".thumbnails").getByRole("img").count(), 0, "support sees no values over time");
});

test("each unit has a verdict in words with its reasons, and the worst come first", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await becomes(() => names(page).count(), 8);
  const verdict = (name) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) }).locator('td[data-label="Verdict"]');
  const words = (name) => verdict(name).innerText().then((text) => text.replace(/\s+/g, " ").trim());
  await becomes(() => words("train-<b>bold</b>&co"), "Look here Some GPUs not used; Longer time limit than needed; 1 more");
  await becomes(() => words("sweep"), "Could be smaller CPUs little used; More memory than needed");
  await becomes(() => words("lattice-qcd"), "Fits");
  await becomes(() => verdict("ocean").getByRole("img").getAttribute("aria-label"), "Judged after its end");
  await becomes(() => verdict("probe").getByRole("img").getAttribute("aria-label"), "Not judged: no report, or too little was measured");
  const shapes = await Promise.all(["train-<b>bold</b>&co", "sweep", "lattice-qcd"].map((name) => verdict(name).locator(".state").evaluate((one) => getComputedStyle(one, "::before").clipPath)));
  assert.equal(new Set(shapes).size, 3, "a shape each");
  const reasons = verdict("sweep").locator(".note");
  const cut = () => reasons.evaluate((note) => note.scrollWidth > note.clientWidth);
  await becomes(cut, true, "one line of them in the row");
  await verdict("sweep").click(); // as a touch does
  await becomes(cut, false, "all of them where the focus is");
  await verdict("mesh").click();
  await becomes(cut, true);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await becomes(() => focused(page), /Could be smaller/);
  await becomes(cut, false, "also by the keyboard");
  await page.getByRole("columnheader", { name: "Verdict" }).getByRole("button").click();
  await becomes(async () => (await names(page).allTextContents()).slice(0, 4), ["mesh", "train-<b>bold</b>&co", "sweep", "lattice-qcd"]);
  await becomes(() => new URL(page.url()).hash, "#/jobs?sort=verdict");
  await accessible(page, "verdicts");
  await page.setViewportSize({ width: 390, height: 844 });
  await becomes(() => words("sweep"), /Could be smaller/);
  await becomes(() => fits(page), true);
});

test("cards leave out what is not known, and arrows go over what is there", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { context: { viewport: { width: 390, height: 844 } } });
  const card = page.locator("tbody tr", { hasText: "waiting room" });
  await card.waitFor();
  const cells = () => card.locator("td").evaluateAll((all) => all.filter((td) => td.checkVisibility()).map((td) => td.textContent.trim()));
  await becomes(async () => (await cells()).length > 0 && !(await cells()).some((text) => text.startsWith("–")), true);
  const hidden = await card.locator("td").evaluateAll((all) => all.filter((td) => !td.checkVisibility()).length);
  assert.ok(hidden > 0, "a unit that waits has no use");
  await page.setViewportSize({ width: 1440, height: 900 });
  await becomes(() => card.locator("td .none").first().isVisible(), true, "a table has a cell for each");
  await page.setViewportSize({ width: 390, height: 844 });
  await card.getByRole("link").focus();
  for (const text of await cells()) {
    await page.keyboard.press("ArrowRight");
    await becomes(() => focused(page), text);
  }
});

test("the address keeps the list: reload, Back and a link give it again", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await page.getByRole("searchbox", { name: "Filter" }).pressSequentially("fluids");
  await settled(page, ["ocean", "lattice-qcd", "waiting room", "sweep"]);
  await becomes(() => new URL(page.url()).hash, "#/jobs?q=fluids");
  await page.getByRole("columnheader", { name: "CPU use" }).getByRole("button").click();
  await settled(page, ["lattice-qcd", "ocean", "sweep", "waiting room"]);
  await page.getByRole("button", { name: "Filters" }).click();
  const sheet = page.getByRole("dialog", { name: "Filters" });
  await becomes(async () => (await sheet.locator("details[open] label").allInnerTexts()).map((text) => text.split(/\s+/).join(" ").trim()).sort(), ["Cancelled 1", "Pending 1", "Running 2"]);
  await page.getByRole("checkbox", { name: /Cancelled/ }).check();
  await settled(page, ["sweep"]);
  await accessible(page, "the sheet of filters");
  await shot(page, "units-filters");
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "hidden" });
  await becomes(() => focused(page), "Filters\u00a01");
  await becomes(() => new URL(page.url()).hash, "#/jobs?q=fluids&state=CANCELLED&sort=cpu");
  await page.getByLabel("Running, or ended").selectOption({ label: "in the last 7 days" });
  await page.reload();
  await settled(page, ["sweep"]);
  await becomes(() => page.getByRole("searchbox", { name: "Filter" }).inputValue(), "fluids");
  await becomes(() => page.getByLabel("Running, or ended").inputValue(), "168");
  await page.getByRole("button", { name: /Remove the filter State: Cancelled/ }).click();
  await settled(page, ["lattice-qcd", "ocean", "sweep", "waiting room"]);
  await page.goBack();
  await settled(page, ["sweep"]);
  await page.getByRole("link", { name: "sweep" }).click();
  await page.getByRole("heading", { level: 1, name: "sweep" }).waitFor();
  await page.getByRole("link", { name: "All units" }).click();
  await settled(page, ["sweep"]);
  for (let i = 0; i < 6; ++i) await page.goBack();
  await becomes(() => page.getByRole("searchbox", { name: "Filter" }).inputValue(), "", "the word is one step back");
  await page.getByRole("link", { name: "short" }).waitFor();
});

test("filters by use, keeps views, and gives the list as CSV without formulas", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await page.getByRole("button", { name: "Filters" }).click();
  await page.locator("summary", { hasText: "Use and energy" }).click();
  await page.getByRole("group", { name: "CPU use, %" }).getByLabel("to").fill("20");
  await page.keyboard.press("Tab");
  await settled(page, ["probe", "sweep"]);
  await accessible(page, "filters by use");
  await page.getByRole("button", { name: "Done" }).click();
  await page.locator("summary", { hasText: "Views" }).click();
  await page.getByLabel("Save this list as").fill("<i>little</i> used");
  await page.keyboard.press("Enter");
  await page.getByText("Saved as <i>little</i> used.").waitFor();
  await accessible(page, "saved views");
  await page.goto(`${url}/#/jobs`);
  await page.reload();
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await page.locator("summary", { hasText: "Views" }).click();
  await page.getByRole("link", { name: "<i>little</i> used" }).click();
  await settled(page, ["probe", "sweep"]);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\r\n");
  assert.equal(lines.length, 3);
  assert.match(lines[0], /^cluster_id,uuid,started,name,user,project,state,/);
  assert.match(lines[1], /^hpc-a,48169,\d+,probe,grace,optics,FAILED,/);
});

test("finds a unit of any age by its identifier", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: /^Find / });
  await field.fill("31007");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "archive" }).waitFor();
  await page.keyboard.press("Control+k");
  await field.fill("lin optics");
  await page.keyboard.press("Enter");
  await settled(page, ["mesh", "train-<b>bold</b>&co", "archive"]);
  await becomes(() => new URL(page.url()).hash, "#/jobs?q=lin+optics&period=all");
  // In the filter of the list, too, what is not in the period is found.
  await page.getByLabel("Running, or ended").selectOption({ label: "in the last 24 hours" });
  await page.getByRole("searchbox", { name: "Filter" }).fill("31007");
  await page.getByText("is not among them, but the server knows it: completed").waitFor();
  await accessible(page, "a unit outside the period");
  await page.getByRole("link", { name: "archive" }).click();
  await page.getByRole("heading", { level: 1, name: "archive" }).waitFor();
});

for (const lists of [true, false]) test(`shows pages of a hundred units, from a server with ${lists ? "" : "no "}lists`, async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?sort=name", { server: { many: 240, lists } });
  await page.getByText("1 to 100 of 248 units").waitFor();
  await becomes(() => names(page).count(), 100);
  assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) < 3000);
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("101 to 200 of 248 units").waitFor();
  await page.reload();
  await page.getByText("101 to 200 of 248 units").waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("201 to 248 of 248 units").waitFor();
  await becomes(() => names(page).last().textContent(), "waiting room");
  await becomes(() => page.getByRole("button", { name: "Next" }).getAttribute("aria-disabled"), "true");
  await accessible(page, "the last page");
  await page.getByRole("button", { name: "First" }).click();
  await page.getByText("1 to 100 of 248 units").waitFor();
  await page.getByRole("searchbox", { name: "Filter" }).fill("task_00239");
  await settled(page, ["task_00239"]);
  await page.getByRole("searchbox", { name: "Filter" }).fill("");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByText("1 to 20 of 248 units").waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("21 to 40 of 248 units").waitFor();
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByText("21 to 120 of 248 units").waitFor();
  await page.getByRole("button", { name: "First" }).click();
  if (lists) return;
  await page.getByText("This server is older than the page").waitFor();
  await accessible(page, "an older server");
  await becomes(() => page.locator("section.about").innerText(), /country average/);
  await page.getByRole("searchbox", { name: "Filter" }).fill("");
  await page.getByText("1 to 100 of 248 units").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  assert.equal(readFileSync(await download.path(), "utf8").trim().split("\r\n").length, 249);
  await control({ many: 6000 });
  await page.goto(`${url}/#/jobs`);
  await page.reload();
  await page.getByText("these are the newest 5,000 units").waitFor();
});

test("asks every half minute, gets nothing new while nothing changed, and keeps the focus", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { clock: true, server: { commit: Math.floor(Date.now() / 1000) }, context: { viewport: { width: 1600, height: 900 } } });
  const link = page.getByRole("link", { name: "ocean" });
  await link.focus();
  await link.evaluate((element) => (element.before = true));
  const asked = () => page.requests.filter((r) => r.includes("/units/list/admin?")).length;
  const unchanged = async () => (await (await fetch(`${url}/control`)).json()).unchanged;
  const before = { asked: asked(), unchanged: await unchanged() };
  const elapsed = page.locator("tbody tr", { hasText: "ocean" }).locator("td").nth(5);
  const first = await elapsed.innerText();
  await page.waitForTimeout(1200);
  await passUntil(page, () => asked() > before.asked, 31_000);
  await becomes(unchanged, before.unchanged + 2, "the server had nothing to send");
  assert.equal(asked(), before.asked + 1);
  await becomes(async () => (await elapsed.innerText()) !== first, true, "the time it has run goes on");
  await becomes(() => focused(page), "ocean");
  assert.equal(await link.evaluate((element) => element.before), true, "a cell that is the same stays");

  await page.getByLabel(/Refresh automatically/).uncheck();
  await page.clock.fastForward(120_000);
  await page.waitForTimeout(200);
  assert.equal(asked(), before.asked + 1, "paused");
  await Promise.all([page.waitForResponse(/units\/list\/admin/), page.getByLabel(/Refresh automatically/).check()]);
  assert.equal(asked(), before.asked + 2, "refreshes at once when switched on");
  await page.waitForTimeout(200);

  const hide = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  // A pause that begins only after the page is hidden has not ended when it is visible again.
  for (let tries = 0, seen = false; !seen && tries < 5; ++tries) {
    await hide(true);
    await page.clock.fastForward(120_000);
    await page.waitForTimeout(200);
    assert.equal(asked(), before.asked + 2, "hidden");
    await hide(false);
    seen = await within(patience(5_000), () => asked() > before.asked + 2);
  }
  assert.equal(asked(), before.asked + 3, "refreshes at once when visible again");
});

/** Words of the table that are on two lines, except names and users. */
const broken = (page) =>
  page.evaluate(() => {
    const found = [];
    for (const cell of document.querySelectorAll("thead th, .units td:nth-child(n + 3)")) {
      const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        for (const { 0: word, index } of text.data.matchAll(/\S+/g)) {
          const range = document.createRange();
          range.setStart(text, index);
          range.setEnd(text, index + word.length);
          if (new Set([...range.getClientRects()].map((box) => box.top)).size > 1) found.push(word);
        }
      }
    }
    return found;
  });

for (const locale of ["en-GB", "de-DE", "fr-FR"]) test(`words stay whole at every width: ${locale}`, async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?period=all", { server: { many: 20 }, context: { locale } });
  await becomes(() => names(page).count(), 29);
  for (const width of [1600, 1508, 1440, 1280, 1253, 1024, 721]) {
    await page.setViewportSize({ width, height: 900 });
    await becomes(() => broken(page), [], `at ${width}`);
    const starts = (row) => page.locator(`${row} > :not(.hidden)`).evaluateAll((cells) => cells.map((cell) => Math.round(cell.getBoundingClientRect().x)));
    assert.deepEqual(await starts("tbody tr:first-child"), await starts("thead tr:first-child"), `headings are above their values at ${width}`);
  }
});

test("keeps what matters in sight at every width", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "ocean" }).waitFor();
  for (const [width, columns] of [[1600, 13], [1440, 10], [1280, 10], [1024, 6], [721, 6]]) {
    await page.setViewportSize({ width, height: 900 });
    await becomes(() => page.getByRole("columnheader").count(), columns, `columns at ${width}`);
    for (const name of ["Unit", "State", "Verdict", "CPU use", "Energy", "Emissions"]) {
      const box = await page.getByRole("columnheader", { name }).boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= width, `${name} at ${width}`);
    }
    await becomes(() => fits(page), true, `no sideways scroll at ${width}`);
  }
});

test("a long name is one line, and all of it below the pointer and where the focus is; a column has one unit", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?period=all", { server: { many: 20 } });
  const name = page.getByRole("link", { name: "train-<b>bold</b>&co" });
  await name.waitFor();
  await becomes(() => name.getAttribute("title"), "train-<b>bold</b>&co");
  const lines = () => name.evaluate((e) => Math.round(e.getBoundingClientRect().height / 24));
  const cut = () => name.evaluate((e) => e.scrollWidth > e.clientWidth);
  assert.deepEqual([await lines(), await cut()], [1, true]);
  await name.focus();
  assert.ok((await lines()) > 1 && !(await cut()));
  const heads = await page.locator("thead th").allInnerTexts();
  for (const [head, unit] of [["Energy", / Wh$/], ["Not used", / Wh$/], ["Emissions", / g CO2e$/]]) {
    const at = heads.findIndex((text) => text.trim() === head) + 1;
    assert.ok(at > 0, head);
    const values = (await page.locator(`tbody td:nth-child(${at})`).allInnerTexts()).map((text) => text.split("\n")[0].replaceAll("\u00a0", " ")).filter((text) => text !== "–");
    assert.ok(values.length > 20, head);
    assert.deepEqual(values.filter((text) => !unit.test(text)), [], head);
  }
  await becomes(() => page.locator("tbody tr").filter({ hasText: "48216" }).innerText(), /<\s0\.01\sWh/);
});

test("rows outside the window cost nothing, and move nothing when they come into sight", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?sort=name", { server: { many: 240 }, context: { viewport: { width: 1600, height: 900 } } });
  await becomes(() => names(page).count(), 100);
  const last = page.locator("tbody tr").last();
  const skipped = () => last.evaluate((tr) => tr.firstElementChild.checkVisibility({ contentVisibilityAuto: true }) === false);
  await becomes(skipped, true, "not laid out yet");
  await names(page).last().focus();
  await becomes(skipped, false, "the focus reaches it");
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.reload();
  await becomes(() => names(page).count(), 100);
  await becomes(skipped, true);
  const height = () => page.evaluate(() => document.documentElement.scrollHeight);
  const before = await height();
  await last.scrollIntoViewIfNeeded();
  await becomes(skipped, false);
  assert.ok(Math.abs((await height()) - before) < 100, `${before} px high, then ${await height()}`);
  const time = page.locator("tbody time").first();
  await becomes(() => time.getAttribute("title"), null);
  await time.hover();
  await becomes(() => time.getAttribute("title"), /\d{4}, \d\d:\d\d:\d\d UTC$/);
});

test("sums that come late leave the rows alone", async (t) => {
  const page = await visit(t, "/?user=operator#/help/numbers");
  let answer;
  const held = new Promise((go) => (answer = go));
  await page.route(/units\/summary/, async (route) => {
    const answer = await (await route.fetch()).json();
    await held;
    await route.fulfill({ json: { ...answer, data: { ...answer.data, idle_kwh: null, not_used_kwh: null } } });
  });
  await page.goto(`${url}/#/jobs?sort=started`);
  await becomes(() => names(page).count(), 8);
  await page.evaluate(() => {
    window.changes = 0;
    new MutationObserver((all) => (window.changes += all.length)).observe(document.querySelector("tbody"), { childList: true, attributes: true, characterData: true, subtree: true });
  });
  const columns = await page.getByRole("columnheader").count();
  answer();
  await becomes(() => page.locator(".total").innerText(), /8 units/);
  await becomes(() => page.getByRole("columnheader").count(), columns, "no column more: nothing says what went unused");
  assert.equal(await page.evaluate(() => window.changes), 0);
});

test("prints every column in light colours and without controls", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?q=a&cpu=5..", { server: { many: 240 }, context: { colorScheme: "dark" } });
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  for (const format of ["A4", "Letter"]) {
    const pdf = (await page.pdf({ format, preferCSSPageSize: false })).toString("latin1");
    assert.ok((pdf.match(/\/Type\s*\/Page\b/g) ?? []).length > 2, "a hundred units take several pages");
  }
  await page.setViewportSize({ width: 703, height: 1000 }); // A4 less 12 mm on each side
  await page.emulateMedia({ media: "print" });
  await becomes(() => page.getByRole("columnheader").count(), 13);
  await becomes(() => page.getByRole("button").count(), 13, "nothing but the headings");
  await becomes(() => page.locator("input:visible, select:visible, summary:visible").count(), 0);
  await page.getByText("Units of anyone, running or ended in the last 24 hours; “a”; CPU use at least 5 %.").waitFor();
  const looks = () => page.evaluate(() => ({
    background: getComputedStyle(document.body).backgroundColor,
    head: getComputedStyle(document.querySelector("thead")).display,
    row: getComputedStyle(document.querySelector("tbody tr")).breakInside,
    width: document.documentElement.scrollWidth,
  }));
  await becomes(looks, { background: "rgb(255, 255, 255)", head: "table-header-group", row: "avoid", width: 703 });
  await shot(page, "units-print");
});

test("reports errors, keeps its data and recovers", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { clock: true, server: { mode: "error" } });
  await page.getByText("The units could not be loaded: the database is locked.").waitFor();
  await accessible(page, "error at the start");
  await control({ mode: "ok" });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await control({ mode: "garbage" });
  await passUntil(page, page.getByText(/could not be refreshed \(the answer is not from a CEEMS API server\)/));
  await becomes(() => names(page).count(), 8, "the old table is kept");
  await accessible(page, "error at a refresh");
  await shot(page, "units-stale");
  await control({ mode: "ok" });
  await passUntil(page, async () => (await page.getByText(/could not be refreshed/).count()) === 0);
  await control({ mode: "empty" });
  await passUntil(page, page.getByText("No units yet."));
  await accessible(page, "no units");
});

test("by kind, runs whose names differ in numbers are one row that leads to them, with one suggestion", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?period=168h", { server: { many: 60 } });
  await page.getByRole("navigation", { name: "List view" }).getByRole("link", { name: "By kind" }).click();
  await becomes(() => new URL(page.url()).hash, "#/jobs?period=168h&kinds=not_used");
  const table = page.getByRole("grid", { name: "Kinds of units, highest first" });
  const cells = (row) => row.locator("th, td").allInnerTexts().then((all) => all.map((text) => text.replace(/\s+/g, " ").trim()));
  // The sums of all kinds are the sums of the list.
  const { data } = await (await fetch(`${url}/api/v1/units/kinds/admin?from=${Math.floor(Date.now() / 1000) - 7 * 86400}&to=${Math.ceil(Date.now() / 1000)}&running=1&top=100`, { headers: { "X-Grafana-User": "operator" } })).json();
  const units = data.kinds.reduce((sum, kind) => sum + kind.units, 0);
  await becomes(async () => (await cells(table.getByRole("row", { name: /^Total/ })))[1], String(units));
  await becomes(() => table.locator("tbody tr").count(), data.kinds.length);
  const trained = table.getByRole("row", { name: /^train-/ });
  await becomes(async () => (await cells(trained)).slice(-2), ["3 of 4 GPUs never ran a kernel.", "#SBATCH --gres=gpu:1 Copy"]);
  await becomes(() => trained.getByRole("link", { name: "3 of 4 GPUs never ran a kernel." }).getAttribute("href"), /^#\/unit\/hpc-a\/48190\/\d+$/);
  // A bar of use is below its number and its note, in the high row with a suggestion as in the low ones.
  const bars = () => table.locator("tbody td.meter").evaluateAll((all) => all.map((cell) => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    const box = cell.getBoundingClientRect();
    return { high: box.height, below: cell.querySelector("*") === null ? 0 : text.getBoundingClientRect().bottom - box.top, at: getComputedStyle(cell).backgroundPositionY };
  }));
  const drawn = await bars();
  assert.ok(drawn.length > 5 && Math.max(...drawn.map(({ high }) => high)) > 1.3 * Math.min(...drawn.map(({ high }) => high)), `rows differ: ${JSON.stringify(drawn)}`);
  for (const { at, below } of drawn) assert.ok(/^\d+px/.test(at) && parseFloat(at) >= below - 1 && parseFloat(at) < 40, `at a distance from the top: ${at}, ${below}`);
  await accessible(page, "by kind");
  await shot(page, "kinds");
  await table.getByRole("button", { name: "Runs" }).click();
  await becomes(() => new URL(page.url()).hash, "#/jobs?period=168h&kinds=units");
  await becomes(async () => (await cells(table.locator("tbody tr").first()))[1], "10");
  const task = table.locator("tbody tr").first();
  await becomes(async () => (await cells(task))[0], /^task_# (ada|lin|grace) · (fluids|optics)$/);
  await task.getByRole("link", { name: "task_#" }).click();
  await page.getByText("10 units in the last 7 days").waitFor();
  await becomes(() => new URL(page.url()).hash, /^#\/jobs\?q=task_&period=168h&project=\w+&cluster=hpc-a&user=\w+$/);
});

test("support sees kinds without names, a phone sees cards, and an older server has none", async (t) => {
  const page = await visit(t, "/?user=sue#/jobs?kinds=kwh&period=168h&view=all", { context: { viewport: { width: 320, height: 640 } } });
  await page.getByRole("link", { name: "All runs" }).first().waitFor();
  assert.equal(await page.getByText("mesh").count(), 0);
  await becomes(() => fits(page), true);
  await accessible(page, "kinds on a phone");
  // A kind without a suggestion has no empty line for it.
  const lone = await page.locator(".short tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].filter((cell) => cell.textContent.trim() === "").map((cell) => cell.getClientRects().length)));
  assert.ok(lone.flat().length > 0, "there are empty cells");
  assert.deepEqual(lone.flat().filter((boxes) => boxes > 0), []);
  await page.getByLabel("Sort by").last().selectOption({ label: "Runs, highest first" });
  await becomes(() => new URL(page.url()).hash, /kinds=units/);
  await control({ lists: false });
  await page.reload();
  await page.getByText("This server is older than the page and cannot group units by kind.").waitFor();
});
