// Tests the other pages in a real browser against mock_server.py: overview, months, units, languages, sizes, and axe in all.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { accessible, becomes, control, fits, focused, names, noonZone, passUntil, shot, url, visit } from "./stand_in.mjs";

test("the overview adds up what the role sees, and leads to the units of a day", async (t) => {
  const page = await visit(t, "/?user=operator#/?period=168h", { server: { many: 30 } });
  await page.getByRole("heading", { level: 1, name: "The site" }).waitFor();
  await page.getByRole("heading", { name: "Most unused energy" }).waitFor();
  const tile = (name) => page.locator(".tiles div", { hasText: name }).locator("dd").first().innerText();
  await becomes(() => tile("Units"), "37", "those that run or ended in these days, without the one that waits");
  await page.getByRole("region", { name: "Running now" }).getByRole("link", { name: "lattice-qcd" }).waitFor();
  // Kinds with most energy that was not used: five runs of grace's tasks are one of them.
  const unused = page.getByRole("region", { name: "Most unused energy" });
  await becomes(() => unused.getByRole("listitem").count(), 5);
  await unused.getByRole("listitem").filter({ hasText: "grace · optics" }).getByText("5 runs").waitFor();
  const first = unused.getByRole("listitem").first();
  await becomes(() => first.innerText(), /^mesh\s+1 run · lin · optics\s+[\d.]+ Wh\s+of [\d.]+ Wh · [\d.]+ Wh a run\s+The job ran out of its memory of 8 GB a node\.\s+#SBATCH --mem=12G\s+Copy$/);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await first.getByRole("button", { name: "Copy #SBATCH --mem=12G" }).click();
  await unused.getByText("Copied: #SBATCH --mem=12G").waitFor();
  await becomes(() => page.evaluate(() => navigator.clipboard.readText()), "#SBATCH --mem=12G");
  await becomes(() => unused.getByRole("link", { name: "See full ranking" }).getAttribute("href"), "#/jobs?period=168h&kinds=not_used");
  await accessible(page, "overview");
  await shot(page, "overview-light");
  await page.getByLabel("Bars by").selectOption("user");
  await page.getByRole("list", { name: /Colours/ }).getByText("grace").waitFor();
  await becomes(() => new URL(page.url()).hash, "#/?period=168h&by=user");
  await page.getByText("Energy by day and user as a table").press("Enter");
  const region = page.getByRole("region", { name: "Energy by day and user, all bars" });
  await region.waitFor();
  await becomes(() => region.locator("tbody tr").count(), 7);
  await accessible(page, "overview with a table of bars");
  await region.getByRole("link").last().click();
  await page.getByRole("heading", { level: 1, name: "Compute units" }).waitFor();
  await becomes(() => new URL(page.url()).hash, /^#\/jobs\?show=ended&from=\d+&to=\d+$/);
  await page.goBack();
  await page.getByLabel("View").selectOption("own");
  await page.getByRole("heading", { level: 1, name: "Your units" }).waitFor();
  await becomes(() => tile("Units"), "1");
});

test("tiles fill all of their rows, however many there are and however wide the page is", async (t) => {
  const page = await visit(t, "/?user=operator#/", { server: { many: 30 } });
  await becomes(() => page.locator(".tiles > div").count(), 7);
  for (const width of [1600, 1440, 1280, 1024, 768, 390, 320]) {
    await page.setViewportSize({ width, height: 900 });
    const alone = await page.evaluate(() => {
      const list = document.querySelector(".tiles");
      const all = [...list.children];
      all.push(all[0].cloneNode(true)); // the cost, where there are prices
      all[1].querySelector("dd").textContent = "12.9 kg CO2e"; // no value is longer
      const found = [];
      for (let n = 8; n > 1; --n) {
        list.replaceChildren(...all.slice(0, n));
        const rows = Object.values(Object.groupBy(list.children, (tile) => tile.offsetTop));
        const full = (row) => row.at(-1).getBoundingClientRect().right > list.getBoundingClientRect().right - 2;
        if (!rows.every(full) || (rows.length > 1 && all.slice(0, n).some((tile) => tile.scrollWidth > tile.clientWidth))) found.push(n);
      }
      list.replaceChildren(...all.slice(0, 7));
      return found;
    });
    assert.deepEqual(alone, [], `at ${width} px`);
  }
});

test("the overview has hours for three days, in local time, with gaps where nothing was measured", async (t) => {
  const zone = "America/New_York";
  const page = await visit(t, "/?user=operator#/?period=168h", { server: { many: 30, hours: "gaps" }, context: { timezoneId: zone } });
  await page.getByRole("heading", { name: "Energy by day" }).waitFor();
  assert.ok(!page.requests.some((request) => /step=hour/.test(request)), "seven days are too many");
  const answer = page.waitForResponse((response) => /usage\/series\/admin\?.*step=hour/.test(response.url()));
  await page.getByLabel("Days", { exact: true }).selectOption({ label: "in the last 3 days" });
  const { times, values } = (await (await answer).json()).data;
  await becomes(() => new URL(page.url()).hash, "#/?period=72h");
  const clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  assert.match(clock.format(times[0]), /, 00:00$/, "from midnight here");
  assert.ok(times.at(-1) <= Date.now() && times.length > 48 && times.length <= 73);
  await page.getByRole("heading", { name: "Energy by hour" }).first().waitFor();
  const chart = page.locator(".stack");
  await chart.getByText(/ in total, .* an hour on average, most .*\. 3 h missing\. No hourly energy for gpu-b\.$/).waitFor();
  await becomes(() => chart.locator(".gap").count(), 3);
  await becomes(() => chart.locator("a").filter({ has: page.locator(".gap") }).first().locator("title").textContent(), /^\d+ \w+, \d\d:00: not measured$/);
  await accessible(page, "overview by hour");
  await page.getByText("Energy by hour as a table").press("Enter");
  const region = page.getByRole("region", { name: "Energy by hour, all bars" });
  await becomes(() => region.locator("tbody th").allTextContents(), times.map((ms) => clock.format(ms)));
  const unmeasured = times.flatMap((ms, i) => (values.kwh.every((line) => line[i] === null) ? [i] : []));
  assert.equal(unmeasured.length, 3);
  for (const i of unmeasured) await becomes(() => region.locator("tbody tr").nth(i).locator("td").allTextContents(), ["–", "–", "–"]);
  await accessible(page, "overview with a table of hours");

  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  assert.equal(file.suggestedFilename(), "energy-by-hour.csv");
  const lines = readFileSync(await file.path(), "utf8").trim().split("\r\n");
  assert.equal(lines[0], "time,CPU and memory,GPU,energy_kwh");
  assert.equal(lines.length, times.length + 1);
  assert.match(lines[1], /^\d{4}-\d\d-\d\d 00:00,/);
  for (const i of unmeasured) assert.match(lines[i + 1], /^\d{4}-\d\d-\d\d \d\d:00,,,$/);
  const most = values.kwh[0].indexOf(Math.max(...values.kwh[0]));
  assert.deepEqual(lines[most + 1].split(",").slice(1, 3).map(Number), [values.kwh[0][most], values.kwh[1][most]]);

  await region.getByRole("link").nth(most).click();
  await page.getByRole("heading", { level: 1, name: "Compute units" }).waitFor();
  await becomes(() => new URL(page.url()).hash, `#/jobs?show=ended&from=${times[most] / 1000}&to=${times[most] / 1000 + 3600}`);
});

test("keys move over the bars, what is there is read out, and Enter lists its units", async (t) => {
  const page = await visit(t, "/?user=operator#/?period=72h", { server: { many: 30, hours: "gaps" } });
  const chart = page.locator(".stack");
  await chart.getByText(/ 3 h missing\./).waitFor();
  await page.getByText("Energy by hour as a table").press("Enter");
  const rows = page.getByRole("region", { name: "Energy by hour, all bars" }).locator("tbody tr");
  await rows.first().waitFor();
  const count = await rows.count();
  /** What is read out of a bar, by its row in the table. */
  const reading = async (i) => {
    const [time, cpu, gpu, all] = await rows.nth(i).locator("th, td").allTextContents();
    return all === "–" ? `${time}: not measured` : `${time}: ${all}; CPU and memory: ${cpu}; GPU: ${gpu}`;
  };
  const group = page.getByRole("group", { name: "Energy by hour", exact: true });
  await becomes(() => group.evaluate((e) => document.getElementById(e.getAttribute("aria-describedby").trim()).textContent), "Arrows, Page keys, Home and End move from bar to bar, Enter lists what is in one, Escape removes the cursor.");
  await group.getByRole("img", { name: /^Energy by hour over time: .* in total, / }).waitFor();
  const cursor = chart.locator(".cursor");
  /** The bar in the frame. */
  const framed = async () => {
    const [frame, bars] = [await cursor.getAttribute("x"), await chart.locator(".reach").evaluateAll((all) => all.map((e) => Number(e.getAttribute("x"))))];
    return bars.findIndex((x) => Math.abs(x - Number(frame)) < 2);
  };

  const address = page.url();
  await group.focus();
  await page.keyboard.press("Enter");
  assert.equal(await cursor.count(), 0, "there is no bar to follow yet");
  assert.equal(page.url(), address);
  const gap = (await chart.locator(".reach").evaluateAll((all) => all.map((e) => e.classList.contains("gap")))).lastIndexOf(true);
  assert.ok(gap > 10 && gap < count - 1);
  const most = (await chart.locator(".reach").evaluateAll((all) => all.map((e) => e.parentNode.querySelectorAll(".part").length))).lastIndexOf(2);
  await becomes(() => reading(most), /^\d+ \w+, \d\d:00: (?!0 )\d.*Wh; CPU and memory: (?!0 )\d.*Wh; GPU: (?!0 )\d.*[WJ]/);
  const go = (from, to) => Array.from({ length: Math.abs(to - from) }, () => (to < from ? "ArrowLeft" : "ArrowRight"));
  for (const [keys, at] of [[["ArrowRight"], 0], [["ArrowLeft"], 0], [["PageDown"], 10], [["ArrowRight"], 11], [["PageUp"], 1], [["End"], count - 1], [go(count - 1, gap), gap], [go(gap, most), most]]) {
    for (const key of keys) await page.keyboard.press(key);
    await becomes(() => chart.locator("[aria-live=polite]").textContent(), await reading(at), `${keys} to bar ${at}`);
    await becomes(() => chart.locator(".readout").innerText(), await reading(at));
    await becomes(framed, at);
  }
  await accessible(page, "cursor on a bar");
  await page.emulateMedia({ media: "print" });
  await becomes(() => cursor.isVisible(), false, "paper has no cursor");
  await page.emulateMedia({ media: null, forcedColors: "active" });
  await becomes(() => cursor.isVisible(), true);
  await page.emulateMedia({ forcedColors: null });
  await page.keyboard.press("Escape");
  await becomes(() => cursor.count(), 0);
  await becomes(() => chart.locator(".readout").innerText(), "");

  await chart.locator(".reach").nth(gap).hover();
  await becomes(() => chart.locator(".readout").innerText(), await reading(gap), "the pointer reads, too");
  await becomes(framed, gap);
  await page.mouse.move(0, 0);
  await becomes(() => cursor.count(), 0);

  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await becomes(() => chart.locator("[aria-live=polite]").textContent(), await reading(1));
  const link = await rows.nth(1).getByRole("link").getAttribute("href");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Compute units" }).waitFor();
  await becomes(() => new URL(page.url()).hash, link);
  assert.match(link, /^#\/jobs\?show=ended&from=\d+&to=\d+$/);
});

test("the bars of a month are read with those of the month before", async (t) => {
  for (const [locale, address, title, keys, text] of [
    ["en-GB", "project/hpc-a/optics", "Energy by day and user", /^Arrows, Page keys/, /^2 \w+ \d{4}: .+; lin: .+; \w+ \d{4}: .+$/],
    ["de-DE", "site", "Energie nach Tagen", /^Pfeile, Bild-Tasten, Pos1 und Ende gehen von Balken zu Balken, /, /^2\. \S+ \d{4}: .+; CPU und Speicher: .+; GPU: .+; \S+ \d{4}: .+$/],
    ["fr-FR", "site", "Énergie par jour", /^Les flèches, les touches de page, Début et Fin vont de barre en barre, /, /^2 \S+ \d{4}: .+; CPU et mémoire: .+; GPU: .+; \S+ \d{4}: .+$/],
  ]) {
    const page = await visit(t, `/?user=operator#/${address}`, { month: true, server: { many: 30 }, context: { locale, viewport: { width: 390, height: 844 } } });
    const group = page.getByRole("group", { name: title, exact: true });
    await group.focus();
    await becomes(() => group.evaluate((e) => document.getElementById(e.getAttribute("aria-describedby").trim()).textContent), keys);
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await becomes(() => page.locator(".stack [aria-live=polite]").textContent(), text);
    await becomes(() => fits(page), true);
    await accessible(page, `cursor on a bar, ${locale}`);
  }
});

test("where energy is not known by hour, the overview has days", async (t) => {
  const page = await visit(t, "/?user=ada#/?period=72h", { server: { hours: "none" } });
  await page.getByRole("heading", { name: "Energy by day" }).waitFor();
  await becomes(() => page.getByRole("alert").count(), 0);
  const asked = (step) => page.requests.filter((request) => request.includes("/usage/series?") && request.includes(`step=${step}&by=component`));
  assert.match(asked("hour").at(-1) ?? "", /&field=kwh&user=ada&scope=own$/, "hours are asked for as days are");
  assert.match(asked("day").at(-1), /&field=kwh&user=ada&scope=own$/);
  await page.getByText("Energy by day as a table").press("Enter");
  await becomes(() => page.getByRole("region", { name: "Energy by day, all bars" }).locator("tbody tr").count(), 3);
  await control({ hours: "silent" });
  await page.goto(`${url}/#/?period=24h`);
  await page.getByText("Energy by day as a table").waitFor();
  await accessible(page, "overview without hours");
  await control({ hours: "ok" });
  await page.goto(`${url}/#/?period=72h&by=project`);
  await page.getByRole("heading", { name: "Energy by hour and project" }).waitFor();
  await page.getByText(/ an hour on average, most .*: .* [kM]?(Wh|J)\.$/).waitFor();
  assert.equal(await page.locator(".stack .gap").count(), 0);
});

test("hours missing are said in each language", async (t) => {
  for (const [locale, text] of [["de-DE", /in der Stunde im Mittel, .*\. 3 h fehlen\. Keine Energie nach Stunden für gpu-b\.$/], ["fr-FR", /par heure en moyenne, .*\. 3 h manquent\. Pas d’énergie par heure pour gpu-b\.$/]]) {
    const page = await visit(t, "/?user=operator#/?period=72h", { server: { hours: "gaps" }, context: { locale, viewport: { width: 320, height: 700 } } });
    await page.locator(".stack .note").getByText(text).waitFor();
    await becomes(() => fits(page), true);
    await accessible(page, `hours in ${locale}`);
  }
});

test("the month of a project has its members, its days and a report to print", async (t) => {
  const page = await visit(t, "/?user=lin#/projects", { month: true, server: { many: 30 } });
  await page.getByRole("heading", { level: 1, name: /^Projects – / }).waitFor();
  await accessible(page, "projects");
  await page.getByRole("link", { name: "optics", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: /^Project optics – / }).waitFor();
  await becomes(() => focused(page), /^Project optics – /);
  const table = page.getByRole("region", { name: "Users" });
  await table.getByRole("row", { name: /^lin / }).waitFor();
  await becomes(() => table.getByRole("row").first().innerText(), /User\s+Energy\s+Emissions CO2e\s+Core-hours\s+GPU-hours\s+Idle power\s+Not used\s+Units/);
  await accessible(page, "month of a project");
  await shot(page, "project-light");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  assert.match(readFileSync(await download.path(), "utf8"), /^user,energy_kwh,emissions_grams,core_hours,gpu_hours,idle_power_kwh,not_used_kwh,units\r\nlin,/);
  await page.emulateMedia({ media: "print" });
  await becomes(() => page.locator("button:visible, nav:visible, .tools a:visible").count(), 0);
  await shot(page, "project-print");
  await page.emulateMedia({ media: null });
  await page.getByRole("link", { name: /^← / }).click();
  await page.waitForFunction(() => /\?month=\d{4}-\d\d$/.test(location.hash));
  await page.goto(`${url}/#/project/hpc-a/optics?month=2001-01`);
  await page.getByText("Nothing in January 2001.").waitFor();
  await accessible(page, "an empty month");
  await page.goto(`${url}/#/user/${encodeURIComponent("<b>x</b>")}`);
  await page.getByRole("heading", { level: 1, name: /^<b>x<\/b> – / }).waitFor();
});

test("while a month is loaded, the numbers of another are not shown as its own", async (t) => {
  const page = await visit(t, "/?user=operator#/?period=168h", { month: true, server: { many: 30 } });
  const numbers = page.locator(".stack, .tiles, table.plain, .brief");
  const loading = page.getByText("Loading the sums…");
  /** Does something that asks for other numbers, and looks at the page before their answers come. */
  async function meanwhile(change) {
    let answer;
    const held = new Promise((resolve) => (answer = resolve));
    await page.route("**/api/v1/**", async (route) => {
      await held;
      await route.continue();
    });
    await change();
    await loading.waitFor();
    await becomes(() => numbers.count(), 0);
    answer();
    await loading.waitFor({ state: "detached" });
    await page.unroute("**/api/v1/**");
  }
  await numbers.first().waitFor();
  await meanwhile(() => page.getByLabel("View").selectOption("own"));
  await page.getByRole("heading", { level: 1, name: "Your units" }).waitFor();
  await numbers.first().waitFor();
  for (const address of ["site", "project/hpc-a/optics", "bill?month=2026-11"]) {
    await page.goto(`${url}/#/${address}`);
    await page.locator(".stack").waitFor();
    await meanwhile(() => page.getByRole("link", { name: /^← / }).click());
  }
  await page.locator(".bill").waitFor();
});

test("a server without sums by day opens with its units", async (t) => {
  const page = await visit(t, "/?user=operator", { server: { lists: false } });
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await becomes(() => new URL(page.url()).hash, "#/jobs");
  await page.goto(`${url}/#/projects`);
  await page.getByText("This server is older than the page and has no sums by month.").waitFor();
  await accessible(page, "no sums by month");
});

test("speaks the language of the browser, or the one that is chosen", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { context: { locale: "de-AT", viewport: { width: 320, height: 700 } } });
  await page.getByRole("heading", { level: 1, name: "Recheneinheiten" }).waitFor();
  await page.getByText("1 bis 8 von 8 Einheiten").waitFor();
  await becomes(() => page.locator("html").getAttribute("lang"), "de");
  for (const [address, heading] of [["", "Das Rechenzentrum"], ["help/numbers", "Wie die Zahlen entstehen"], ["project/hpc-a/optics", "Projekt optics auf hpc-a"], ["unit/hpc-a/48213", "lattice-qcd"], ["jobs", "Recheneinheiten"]]) {
    await page.goto(`${url}/#/${address}`);
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    await becomes(() => fits(page), true, `${address} does not scroll sideways`);
    await accessible(page, `${address} in German`);
  }
  await shot(page, "units-german");
  await page.getByLabel("Sprache").selectOption({ label: "Français" });
  await page.getByRole("heading", { level: 1, name: "Unités de calcul" }).waitFor();
  await page.getByText("1 à 8 de 8 unités").waitFor();
  await becomes(() => page.locator("html").getAttribute("lang"), "fr");
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Unités de calcul" }).waitFor();
});

test("a line below the header shows alerts until they are dismissed", async (t) => {
  const page = await visit(t, "/#/jobs", { server: { proxy_user: "sue" } });
  const alerts = page.getByRole("region", { name: "Alerts" });
  await alerts.getByText("optics has used 105 % of its budget.").waitFor();
  await becomes(() => alerts.getByRole("listitem").count(), 1);
  await accessible(page, "an alert");
  await shot(page, "alert");
  // Below it, a short page begins where a long one does.
  await page.evaluate(() => (location.hash = "#/unknown"));
  await page.getByRole("heading", { level: 1, name: "No such page" }).waitFor();
  for (const width of [1440, 1024, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await becomes(async () => (await alerts.evaluate((line) => line.getBoundingClientRect().height)) < (width > 1000 ? 60 : 120), true, `a line at ${width} px`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goBack();
  await page.getByRole("link", { name: "48213" }).waitFor();
  await alerts.getByRole("button", { name: "Dismiss: Over budget." }).click();
  await alerts.waitFor({ state: "detached" });
  await becomes(() => page.evaluate(() => document.activeElement.id), "content");
  await page.reload();
  await page.getByRole("link", { name: "48213" }).waitFor();
  await becomes(() => alerts.count(), 0, "for the session");

  const busy = await visit(t, "/#/jobs", { server: { proxy_user: "sue", insight: "busy" } });
  await busy.getByRole("region", { name: "Alerts" }).getByText("A time-series database does not respond.").waitFor();

  const lin = await visit(t, "/#/jobs", { server: { proxy_user: "lin" }, context: { viewport: { width: 390, height: 844 } } });
  const two = lin.getByRole("region", { name: "Alerts" });
  await two.getByText("optics has used 105 % of its budget.").waitFor();
  await two.getByRole("button", { name: "1 more" }).click();
  await becomes(() => two.getByRole("listitem").count(), 2);
  await becomes(() => two.getByRole("link", { name: "Nothing is running on 4 GPUs that you hold." }).getAttribute("href"), "#/idle");
  await becomes(() => fits(lin), true);
  await accessible(lin, "two alerts on a phone");
  const ada = await visit(t, "/#/jobs", { server: { proxy_user: "grace", insight: "none" } });
  await ada.getByRole("link", { name: "probe" }).waitFor();
  await becomes(() => ada.getByRole("region", { name: "Alerts" }).count(), 0, "an older server");
});

test("what the browser loads stays small", () => {
  const folder = join(process.env.CEEMS_E2E_PAGE, "assets");
  const size = (name) => gzipSync(readFileSync(join(folder, name)), { level: 9 }).length;
  const scripts = readdirSync(folder).filter((name) => name.endsWith(".js"));
  /** A script with those that it cannot start without. */
  const needed = (name, found = new Set()) => {
    if (found.has(name)) return found;
    found.add(name);
    for (const [, other] of readFileSync(join(folder, name), "utf8").matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) needed(other, found);
    return found;
  };
  const sum = (names) => [...names].reduce((bytes, name) => bytes + size(name), 0);
  const entry = /src="\.\/assets\/([^"]+\.js)"/.exec(readFileSync(join(process.env.CEEMS_E2E_PAGE, "index.html"), "utf8"))[1];
  // The overview is among them; other pages are loaded when they are needed.
  const first = needed(entry);
  assert.ok(sum(first) > 30_000 && sum(first) < 60_000, `first view: ${sum(first)}`);
  for (const name of scripts) {
    const more = [...needed(name)].filter((other) => !first.has(other));
    assert.ok(sum(more) < 35_000, `${name}: ${sum(more)}`);
  }
  assert.ok(sum(scripts) < 260_000, `all: ${sum(scripts)}`);
});

test("a unit's page has its cost, charts and tables, and a way back", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "lattice-qcd" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "lattice-qcd" }).waitFor();
  await becomes(() => focused(page), "lattice-qcd", "the heading has the focus");
  const profiles = page.getByRole("navigation", { name: "More about this job" }).getByRole("link", { name: "Profiles" });
  await becomes(() => profiles.getAttribute("href"), /^https:\/\/grafana\.example\.org\/d\/p\?var-service=48213&from=\d{13}$/);
  await becomes(() => page.title(), "lattice-qcd – CEEMS");
  await page.locator("canvas").nth(2).waitFor();
  await becomes(() => page.locator("canvas").count(), 3);
  const drawn = () => page.locator("canvas").first().evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value, i) => i % 4 === 3 && value > 0);
  });
  await becomes(drawn, true, "the chart is not blank");
  await becomes(() => page.getByRole("img", { name: /^CPU over time/ }).getAttribute("aria-label"), /between .* cores and .* cores, 15\.[5-7] cores on average/);
  await accessible(page, "unit");
  await shot(page, "unit-light");
  await page.getByText("Memory as a table").press("Enter");
  const region = page.getByRole("region", { name: "Memory, all readings" });
  await region.waitFor();
  await becomes(async () => (await region.locator("tbody tr").count()) > 100, true, "more than 100 readings");
  await becomes(() => region.innerText(), /GiB/);
  await accessible(page, "unit with a table of readings");
  await page.getByRole("button", { name: "Report card" }).waitFor(); // nothing moves any more
  const chart = await page.locator(".plot").first().boundingBox();
  await page.mouse.move(chart.x + chart.width / 2, chart.y + 60);
  await becomes(() => page.locator(".readout").first().innerText(), /\d\d:\d\d(:\d\d)?: .* cores/);
  await page.getByRole("link", { name: "All units" }).click();
  await page.getByRole("heading", { name: "Compute units" }).waitFor();
  await becomes(() => focused(page), "Compute units");
});

test("on a phone, the state of a unit begins where its name does", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48190", { context: { viewport: { width: 390, height: 844 } } });
  const places = () => page.evaluate(() => ["h1", ".unit-head .when"].map((one) => Math.round(document.querySelector(one).getBoundingClientRect().left)));
  await page.locator(".unit-head .when").waitFor();
  const [name, state] = await places();
  assert.equal(state, name);
  await page.setViewportSize({ width: 1440, height: 900 });
  await becomes(async () => { const [name, state] = await places(); return state > name + 100; }, true, "beside the name where there is room");
});

test("a unit's page has a strip for each GPU, the least used first, and more charts when asked for", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-b/48190");
  const strips = page.locator(".strip");
  await becomes(() => strips.count(), 4);
  await becomes(() => strips.evaluateAll((all) => all.map((strip) => strip.innerText.replace(/\s+/g, " ")).join(",")), /^GPU 2 not used,GPU 3 not used,GPU 0 3[6-9](\.\d)? %,GPU 1 3[6-9](\.\d)? %$/);
  assert.equal(await strips.first().locator("path").getAttribute("d").then((d) => d.includes("V100H")), true, "drawn at the lower edge");
  await page.getByRole("img", { name: /^GPUs, on average: GPU 2: 0 %; GPU 3: 0 %; GPU 0: 3/ }).waitFor();
  const figure = page.locator(".strips");
  await figure.locator("[tabindex='0']").first().focus();
  await page.keyboard.press("Home");
  await becomes(() => figure.locator(".readout").innerText(), /^GPU 2, .*: 0 %$/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await becomes(() => figure.locator(".readout").innerText(), /^GPU 0, .*: 3\d(\.\d)? %$/);
  await page.keyboard.press("Escape");
  await becomes(() => figure.locator(".readout").innerText(), "");
  await page.getByText(/; reserved: 4 cores\.$/).waitFor();
  await accessible(page, "unit with GPUs");
  await shot(page, "unit-gpus");
  assert.equal(page.requests.some((request) => request.includes("io_read")), false, "nothing more than what is shown is asked for");
  await page.getByText(/^More over time/).click();
  await page.getByRole("heading", { name: "Read from files bytes per second" }).waitFor();
  await page.getByText("Not measured here: GPU memory, SMs in use, GPU clock, Written to files, Network, received, Network, sent, Waiting for CPUs, Waiting for memory (collector ebpf); Instructions per cycle (collector perf).").waitFor();
  await accessible(page, "unit with more charts");
  await shot(page, "unit-more");
});

test("of dozens of GPUs, strips far below the window are drawn when one comes near, by keyboard and for paper", async (t) => {
  const open = () => visit(t, "/?user=operator#/unit/hpc-b/48190", { server: { gpus: 64 }, context: { viewport: { width: 1280, height: 600 } } });
  const page = await open();
  const strips = page.locator(".strip");
  await becomes(() => strips.count(), 24);
  await page.getByRole("img", { name: /^GPUs, on average: n000, GPU 7: 0 %; .*; n007, GPU 6: 6\d(\.\d)? %$/ }).waitFor();
  const height = () => page.locator(".strips [role=img]").evaluate((box) => box.getBoundingClientRect().height);
  const before = await height();
  await page.locator(".strips .waiting").scrollIntoViewIfNeeded();
  await becomes(() => strips.count(), 64);
  assert.ok(Math.abs((await height()) - before) < 8, `what is drawn has had its room: ${before}, then ${await height()}`);
  assert.equal(await strips.evaluateAll((all) => all.filter((strip) => strip.querySelector("path").getAttribute("d") !== "").length), 64);
  await becomes(() => strips.evaluateAll((all) => [all[7], all[8], all[63]].map((strip) => strip.innerText.replace(/\s+/g, " ")).join(",")), /^n007, GPU 7 not used,n000, GPU 0 1(\.\d+)? %,n007, GPU 6 6\d(\.\d)? %$/);

  const other = await open();
  await other.locator(".strips [tabindex='0']").first().focus();
  for (let i = 0; i < 25; i++) await other.keyboard.press("ArrowDown");
  await becomes(() => other.locator(".strips .readout").innerText(), /^n00\d, GPU \d, .*: \d+(\.\d+)? %$/);
  assert.ok((await other.locator(".strip").count()) >= 48);

  const printed = await open();
  await becomes(() => printed.locator(".strip").count(), 24);
  await printed.emulateMedia({ media: "print" });
  await becomes(() => printed.locator(".strip").count(), 64);
});

test("each of thousands of GPUs is a cell of one picture, with a text, by keyboard and over time", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-b/48190", { server: { gpus: 4096 } });
  await becomes(() => page.locator(".strip").count(), 5, "quantiles");
  const group = page.getByRole("group", { name: "Each GPU", exact: true });
  const picture = group.getByRole("img");
  await becomes(() => picture.getAttribute("aria-label"), /^Each GPU, mean of the whole time: 4,096 GPUs on 512 nodes: 4\d % on average, 512 not used\.$/);
  await becomes(() => page.locator(".devices *").count().then((n) => n < 40), true, "a canvas, and not thousands of elements");
  const colours = () => picture.locator("canvas").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 4).join())).size;
  });
  await becomes(async () => (await colours()) > 3, true, "shades");
  const spoken = page.locator(".devices [aria-live=polite]");
  await group.focus();
  await page.keyboard.press("ArrowRight");
  await becomes(() => spoken.textContent(), /^n000, GPU 0: 39 %$/);
  await page.keyboard.press("ArrowRight");
  for (let i = 0; i < 9; ++i) await page.keyboard.press("ArrowDown");
  await becomes(() => page.locator(".devices .readout").textContent(), "n001, GPU 7: not used");
  await page.keyboard.press("End");
  await becomes(() => spoken.textContent(), "n511, GPU 7: not used");
  const asked = (text) => page.requests.filter((request) => request.includes(text)).length;
  await becomes(() => [asked("agg=mean"), asked("agg=bins"), asked("by=node")], [1, 0, 0], "what is not shown is not asked for");
  await page.locator(".devices").getByRole("button", { name: "Over time" }).press("Enter");
  const slider = page.getByRole("slider", { name: "Time" });
  await becomes(() => slider.evaluate((one) => one === document.activeElement), true, "the slider has the focus of its button");
  await slider.press("End");
  await becomes(() => page.getByRole("slider").getAttribute("aria-valuetext"), /^from .*\d\d:\d\d/);
  await becomes(() => picture.getAttribute("aria-label"), /^Each GPU, from .*: 4,096 GPUs on 512 nodes/);
  await becomes(async () => (await colours()) > 7, true, "all shades, at one time");
  await page.getByText("Each GPU as a table").press("Enter");
  const table = page.getByRole("region", { name: "Each GPU, all readings" });
  await becomes(() => table.locator("tbody tr").count(), 512);
  await becomes(() => table.locator("tbody tr").first().innerText(), /^n000\s+\d+ %\s+not used\s+1$/);
  await accessible(page, "a unit with thousands of GPUs");
});

test("a unit's page says how to make a flame graph, and is printed as its report", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48190");
  await page.locator("canvas").nth(2).waitFor();
  const button = page.getByRole("button", { name: "Flame graph" });
  await becomes(() => button.getAttribute("aria-expanded"), "false");
  await button.press("Enter");
  await page.getByText("ceems_exporter profile 48190 --output job.html").waitFor();
  await accessible(page, "how to make a flame graph");
  await page.evaluate(() => (window.print = () => (window.printed = true)));
  await page.getByRole("button", { name: "Print this report" }).click();
  await becomes(() => page.evaluate(() => window.printed), true);
  await page.emulateMedia({ media: "print" });
  const seen = (text) => page.getByText(text).first().isVisible();
  await becomes(() => seen("3 of 4 GPUs never ran a kernel"), true);
  await becomes(() => seen("#SBATCH --gres=gpu:1"), true);
  await page.setViewportSize({ width: 720, height: 1040 }); // A4 without its margins
  await becomes(() => page.evaluate(() => document.documentElement.scrollHeight <= 1040), true, "one sheet");
  await becomes(() => page.locator(".chart.lane").evaluateAll((all) => new Set(all.map((one) => one.offsetTop)).size), 1, "charts beside each other");
  for (const text of ["ceems_exporter profile", "Copy", "Markdown", "Zoom in"]) await becomes(() => seen(text), false, text);
});

test("a unit's page shows its last profile as a flame graph, by keyboard and as a table", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48190", { server: { profiles: "ok" } });
  await page.getByRole("button", { name: "Flame graph" }).press("Enter");
  const graph = page.getByRole("region", { name: "Flame graph" });
  const shown = graph.locator(".shown");
  await becomes(() => shown.textContent(), "all functions: 1 h of CPU time, 100 % of all");
  await graph.getByText("3 small bars are not shown.").waitFor();
  const picture = graph.getByRole("group", { name: "Flame graph" });
  const bars = () => graph.locator("canvas").evaluate((canvas) => canvas.clientHeight / 22);
  await becomes(bars, 4);
  await picture.focus();
  for (const [key, text] of [
    ["ArrowDown", "all functions: 1 h of CPU time, 100 % of all"],
    ["ArrowDown", "main: 1 h of CPU time, 100 % of all, 5 % in itself"],
    ["ArrowDown", "solve_system: 45 min of CPU time, 75 % of all, 15 % in itself"],
    ["ArrowRight", "write_output: 9 min of CPU time, 15 % of all"],
    ["Enter", "write_output: 9 min of CPU time, 15 % of all"], // zoomed: its callers are wide, its neighbours are gone
    ["ArrowRight", "write_output: 9 min of CPU time, 15 % of all"],
    ["Escape", "all functions: 1 h of CPU time, 100 % of all"],
  ]) {
    await page.keyboard.press(key);
    await becomes(() => shown.textContent(), text, key);
  }
  await picture.locator("canvas").click({ position: { x: 300, y: 3 * 22 + 10 } });
  await becomes(() => shown.textContent(), /^dgemm_kernel: 36 min of CPU time, 60 % of all$/);
  await becomes(() => graph.getByRole("button", { name: "Back" }).getAttribute("aria-disabled"), "false");
  await graph.getByRole("button", { name: "All" }).click();
  const rows = graph.getByRole("row");
  await becomes(() => rows.nth(1).innerText(), /^dgemm_kernel\s+36 min · 60 %\s+60 %$/);
  await becomes(() => rows.nth(2).innerText(), /^solve_system\s+9 min · 15 %\s+75 %$/);
  await becomes(() => rows.count(), 6);
  await graph.getByRole("searchbox", { name: "Find functions" }).fill("_");
  await becomes(() => graph.getByText(/of the time$/).innerText(), "3 functions, 90 % of the time");
  await graph.getByRole("button", { name: "<img src=x" }).press("Enter");
  await becomes(() => graph.getByText(/of the time$/).innerText(), "1 function, 5 % of the time");
  await becomes(() => graph.locator("img").count(), 0, "names are texts");
  await accessible(page, "a flame graph");
  for (const [width, height] of [[1280, 900], [320, 700]]) {
    await page.setViewportSize({ width, height });
    await becomes(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `at ${width}`);
    await shot(page, `flame-${width}`);
  }
  // The bar of all functions has one of its three colours, as they are now, and another in the dark.
  const painted = () => graph.locator("canvas").evaluate((canvas) => {
    const [red, green, blue] = canvas.getContext("2d").getImageData(canvas.width - 12, 6, 1, 1).data;
    const tokens = ["--f0", "--f1", "--f2"].map((token) => { canvas.style.color = `var(${token})`; return getComputedStyle(canvas).color; });
    canvas.style.color = "";
    return [`rgb(${red}, ${green}, ${blue})`, tokens];
  });
  await becomes(async () => { const [now, tokens] = await painted(); return tokens.includes(now); }, true, "light");
  const [light] = await painted();
  await page.evaluate(() => { document.documentElement.dataset.theme = "dark"; document.dispatchEvent(new Event("ceems-theme")); });
  await becomes(async () => { const [now, tokens] = await painted(); return tokens.includes(now) && now !== light; }, true, "dark");
  await page.evaluate(() => { delete document.documentElement.dataset.theme; });
  await page.emulateMedia({ forcedColors: "active" });
  await accessible(page, "a flame graph in forced colours");
});

test("a unit's page says why there is no flame graph", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48190", { server: { profiles: "empty" } });
  const button = page.getByRole("button", { name: "Flame graph" });
  await button.press("Enter");
  await page.getByText(/^Nothing was recorded from .* to .*\.$/).waitFor();
  await accessible(page, "an empty profile");
  await control({ profiles: "busy" });
  await button.press("Enter");
  await button.press("Enter");
  await page.getByText("The profile could not be loaded: the profile server sent no profile of at most 4 MiB within 10 s.").waitFor();
  await accessible(page, "a profile that failed");
  await control({ profiles: "ok" });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("all functions: 1 h of CPU time, 100 % of all").waitFor();
});

test("a unit's page has its parts of power, its nodes, the one that differs first, and one cursor", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48213");
  await page.locator("canvas").nth(2).waitFor();
  const power = page.locator("figure", { has: page.getByRole("heading", { name: "Power watts" }) });
  await becomes(() => power.getByRole("list", { name: "Colours" }).innerText().then((text) => text.split(/\s*\n\s*/)), ["CPU packages", "memory"]);
  await page.getByRole("group", { name: "Power" }).focus();
  await page.keyboard.press("End");
  const parts = /: ([\d.]+) W \(CPU packages ([\d.]+) W, memory ([\d.]+) W\)$/;
  await becomes(() => power.locator(".readout").innerText(), parts);
  const [, all, packages, memory] = parts.exec(await power.locator(".readout").innerText()).map(Number);
  assert.ok(Math.abs(packages / all - 0.7) < 0.02 && Math.abs(memory / all - 0.3) < 0.02, `${packages} + ${memory} = ${all}`);
  const nodes = page.getByRole("region", { name: "Nodes" });
  await becomes(() => nodes.locator("tbody th").allInnerTexts(), ["n3", "n1", "n2"]);
  await becomes(() => nodes.locator("tbody tr").first().innerText().then((text) => text.split(/\s*[\n\t]\s*/)), ["n3", "2.09 cores", "2.8 GiB", "28.6 W"]);
  const line = (row, name) => nodes.locator("tbody tr").nth(row).locator(`path.${name}`).first().getAttribute("d");
  assert.notEqual(await line(0, "c-cpu"), await line(0, "median"), "it differs");
  assert.equal(await line(1, "c-cpu"), await line(1, "median"));
  for (const metric of ["power&by=component", "cpu%2Cmemory%2Cpower&by=node"]) assert.equal(page.requests.filter((request) => request.includes(`metric=${metric}`)).length, 1, metric);
  await accessible(page, "unit with nodes");
  await shot(page, "unit-nodes");
});

test("a unit's page says which GPU is idle now, without moving anything", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48214", { clock: true });
  await page.getByRole("heading", { level: 2, name: "Over time" }).waitFor();
  const heading = () => page.getByRole("heading", { level: 2, name: "What to change" }).boundingBox().then((box) => box.y);
  await page.locator(".strip").waitFor();
  await becomes(() => page.locator(".idle-now").textContent(), "", "for less than ten minutes");
  const before = await heading();
  await control({ idle: 600 });
  await passUntil(page, page.getByText(/^GPU 0 idle for 1\d min$/), 6_000);
  assert.equal(await heading(), before);
  await accessible(page, "unit with an idle GPU");
});

test("a unit's page has the last runs of its kind, and compares with the one before", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/100005", { server: { many: 60 } });
  const history = page.getByRole("region", { name: "History" });
  await history.getByText("the last 10 runs of this kind").waitFor();
  await becomes(() => history.getByRole("listitem").count(), 10);
  const here = history.locator("a[aria-current]");
  await becomes(() => here.getAttribute("aria-label"), /^.+, Completed: Energy 1\.68 Wh, Elapsed 10 min 05 s, CPU use 5 %; this run$/);
  const height = (i) => history.locator("rect").nth(i).getAttribute("height").then(Number);
  const most = await history.locator("rect").evaluateAll((all) => Math.max(...all.map((bar) => Number(bar.getAttribute("height")))));
  assert.equal(most, 64);
  const energy = await height(0);
  await history.getByLabel("What the bars show").selectOption("Elapsed");
  assert.notEqual(await height(0), energy);
  await accessible(page, "unit with its history");
  await shot(page, "unit-history");
  await page.getByRole("navigation", { name: "More about this job" }).getByRole("link", { name: "Compare" }).click();
  await page.getByRole("heading", { level: 1, name: /^Compar/ }).waitFor();
  await becomes(() => new URL(page.url()).hash, /^#\/compare\?u=hpc-a\/100005\/\d+&u=hpc-a\/1000\d\d\/\d+$/);
});

test("charts zoom together by drag, buttons and keys, and the address keeps it", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48213", { context: { timezoneId: noonZone() } });
  await page.locator("canvas").nth(2).waitFor();
  await page.getByRole("button", { name: "Report card" }).waitFor(); // nothing moves any more
  const span = () => /\?t=(\d+)\.\.(\d+)$/.exec(page.url())?.slice(1).map(Number) ?? null;
  const box = await page.locator(".plot .u-over").first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.25, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction(() => location.hash.includes("?t="));
  const [from, to] = span();
  // It has run for 70 minutes, and for as long as these tests.
  assert.ok(to - from > 2_050_000 && to - from < 2_700_000, `half of it: ${to - from}`);
  await page.getByText(/^from \d\d:\d\d:\d\d to \d\d:\d\d:\d\d$/).waitFor();
  await page.waitForFunction(() => performance.getEntriesByType("resource").some((entry) => /units\/series\?.*from=\d+/.test(entry.name)));
  await accessible(page, "zoomed");
  await page.reload();
  await page.getByText(/^from \d\d:\d\d:\d\d to /).waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await page.waitForFunction(() => !location.hash.includes("?t="));
  await page.getByRole("group", { name: "CPU" }).focus();
  await page.keyboard.press("End");
  await page.locator(".chart [aria-live]").first().getByText(/: 1\d(\.\d+)? cores$/).waitFor({ state: "attached" });
  const last = await page.locator(".readout").first().innerText();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((text) => document.querySelector(".readout").innerText !== text, last);
  await page.keyboard.press("+");
  await page.waitForFunction(() => location.hash.includes("?t="));
  await page.keyboard.press("-");
  await page.waitForFunction(() => !location.hash.includes("?t="));
  await becomes(() => page.evaluate(() => document.activeElement.getAttribute("aria-label")), "CPU");
});

test("reports a unit without measurements and one that does not exist", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48213", { clock: true, server: { mode: "no-series" } });
  await page.getByText("No readings of power.").waitFor();
  await accessible(page, "no readings");
  await control({ mode: "short-series" });
  await passUntil(page, page.getByText("No readings of power: the time is too short to measure."));
  await control({ mode: "unmetered" });
  await passUntil(page, page.getByText("No readings of power: not measured here (collector energy)."));
  await page.getByText("No readings of memory: not measured here.").waitFor();
  await control({ mode: "series-error" });
  await passUntil(page, page.getByText("The measurements could not be loaded (Prometheus does not answer)"));
  await control({ mode: "ok" });
  await page.goto(`${url}/#/unit/hpc-a/nobody`);
  await page.getByRole("heading", { name: "No such unit" }).waitFor();
  await accessible(page, "no such unit");
  await page.goto(`${url}/#/nowhere`);
  await page.getByRole("heading", { name: "No such page" }).waitFor();
});

// The corner cases; matrix_test.mjs has all themes and widths.
for (const [name, context] of [
  ["dark", { colorScheme: "dark" }],
  ["phone", { viewport: { width: 320, height: 640 } }],
  ["forced-colors", { viewport: { width: 1024, height: 800 }, forcedColors: "active" }],
]) {
  test(`all pages are accessible and fit: ${name}`, async (t) => {
    const page = await visit(t, "/?user=operator#/jobs", { month: true, context });
    await page.getByRole("link", { name: "ocean" }).waitFor();
    await becomes(() => fits(page), true, "the table page does not scroll sideways");
    await accessible(page, "table of units");
    await shot(page, `units-${name}`);
    const wide = name === "dark" || name === "forced-colors"; // cards have no row of headings
    await becomes(() => page.getByRole("row").count(), wide ? 10 : 8, "assistive technology sees cards as rows of a table");
    if (!wide) await becomes(() => page.locator("tbody tr").first().innerText(), /ada\s+fluids/, "cards show every value");
    if (name === "phone") {
      await page.getByRole("button", { name: "Filters" }).click();
      await page.getByLabel("Sort by").selectOption({ label: "Energy, highest first" });
      await page.keyboard.press("Escape");
      await becomes(() => names(page).first().textContent(), "train-<b>bold</b>&co");
    }
    await page.getByRole("link", { name: "ocean" }).click();
    await page.locator("canvas").nth(2).waitFor();
    const custom = page.getByRole("region", { name: "Metrics of this site" });
    await becomes(async () => (await custom.getByRole("row").allInnerTexts()).map((row) => row.split(/\s+/).join(" ")), [
      "Metric Total Average Minimum Maximum",
      "cache_misses 52,100 – – –",
      "gpu_temperature_of_the_hottest_sensor – 61.5 41 78",
    ]);
    await becomes(() => fits(page), true, "the unit page does not scroll sideways");
    await accessible(page, "unit");
    await shot(page, `unit-${name}`);
    for (const [address, heading] of [["overview", "The site"], ["project/hpc-a/optics", "Project optics on hpc-a"], ["help/numbers", "How the numbers are made"]]) {
      await page.goto(`${url}/#/${address === "overview" ? "" : address}`);
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
      if (!address.startsWith("help")) await page.locator(".stack").waitFor();
      await becomes(() => fits(page), true, `${address} does not scroll sideways`);
      await accessible(page, address);
      await shot(page, `${address.split("/")[0]}-${name}`);
    }
  });
}
