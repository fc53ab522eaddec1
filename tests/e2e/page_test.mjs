// Tests the page in a real browser against mock_server.py: what people see, the keyboard, errors, axe and the security policy.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { accessible, control, focused, shot, url, visit } from "./stand_in.mjs";

/** Waits until the table shows these units in this order. */
const settled = (page, expected) =>
  page
    .waitForFunction((wanted) => JSON.stringify([...document.querySelectorAll("tbody th a")].map((a) => a.textContent)) === wanted, JSON.stringify(expected))
    .catch(async (error) => assert.deepEqual(await page.locator("tbody th a").allTextContents(), expected, error.message));
const names = (page) => page.locator("tbody th a").allTextContents();

test("asks for the user's name once and shows that user's units", async (t) => {
  const page = await visit(t, "/#/jobs");
  await page.getByRole("heading", { name: "Who are you?" }).waitFor();
  await accessible(page, "the question");
  await shot(page, "ask");
  await page.getByRole("button", { name: "Show my units" }).click();
  assert.equal(await page.getByLabel("User name").getAttribute("aria-invalid"), "true");
  await accessible(page, "the question, unanswered");
  await page.getByLabel("User name").fill("grace");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "probe" }).waitFor();
  assert.deepEqual(await names(page), ["probe"]);
  assert.equal(await page.getByLabel("Whose").count(), 0, "only administrators choose whose units they see");
  await page.reload();
  await page.getByRole("link", { name: "probe" }).waitFor();
  await page.getByText("You say you are").click();
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByRole("heading", { name: "Who are you?" }).waitFor();
});

test("takes the name from the address and removes it there", async (t) => {
  const page = await visit(t, "/ui/?user=lin#/jobs");
  await page.getByRole("link", { name: "mesh" }).waitFor();
  assert.deepEqual((await names(page)).sort(), ["mesh", "train-<b>bold</b>&co"], "names are text, never markup");
  assert.equal(await page.evaluate(() => location.href), `${url}/ui/#/jobs`);
});

test("starts without a request that is answered with 401", async (t) => {
  const logins = { login: { header: null, local: true, oidc: null } };
  for (const [path, server, heading] of [
    ["/ui/", {}, "Who are you?"],
    ["/ui/?user=lin", {}, "Your units"],
    ["/ui/", logins, "Log in"],
    ["/ui/?user=lin", logins, "Log in"],
  ]) {
    const page = await visit(t, path, { server });
    await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
    await page.waitForLoadState("networkidle");
    assert.deepEqual(page.unauthorized, [], path);
  }
});

test("trusts the proxy and does not ask", async (t) => {
  const page = await visit(t, "/", { server: { proxy_user: "ada" } });
  await page.getByText("Signed in as").waitFor();
  await page.getByRole("link", { name: "lattice-qcd" }).first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Change" }).count(), 0);
});

const kLogins = { header: null, local: true, oidc: "Example" };

test("logs in with a password, by keyboard, and out again", async (t) => {
  const page = await visit(t, "/#/jobs", { server: { login: kLogins } });
  await page.getByRole("heading", { name: "Log in", exact: true }).waitFor();
  await accessible(page, "login");
  await shot(page, "login");
  assert.equal(await page.getByText("Who are you?").count(), 0, "no name is asked for if none is trusted");
  await page.getByLabel("User name").focus();
  await page.keyboard.type("ada");
  await page.keyboard.press("Tab");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("The login failed: user name or password is wrong.").waitFor();
  assert.equal(await focused(page), "password");
  assert.equal(await page.getByLabel("Password").inputValue(), "");
  await accessible(page, "a refused login");
  await page.keyboard.type("ada");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  assert.equal(await focused(page), "Compute units", "the heading has the focus");
  await page.getByText("Signed in as").waitFor();
  await page.reload();
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  await page.getByText("Signed in as").click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByText("You are logged out.").waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Log in", exact: true }).waitFor();
});

test("returns from the provider's login to the page before", async (t) => {
  const page = await visit(t, "/ui/#/unit/hpc-a/48188", { server: { login: kLogins } });
  await page.getByRole("link", { name: "Sign in with Example" }).click();
  await page.getByRole("heading", { level: 1, name: "mesh" }).waitFor();
  assert.equal(await page.evaluate(() => location.href), `${url}/ui/#/unit/hpc-a/48188`);
});

test("asks again when a session ends, and reports that only a proxy may send names", async (t) => {
  const page = await visit(t, "/#/jobs", { clock: true, server: { login: kLogins, proxy_user: "ada" } });
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  await control({ proxy_user: null });
  await page.clock.fastForward(31_000);
  await page.getByText("Your session has ended.").waitFor();
  await control({ login: { header: null, local: false, oidc: null } });
  await page.reload();
  await page.getByRole("heading", { name: "No login available" }).waitFor();
  await accessible(page, "no way in");
});

test("leads and support choose whose units they see", async (t) => {
  const lead = await visit(t, "/#/jobs", { server: { proxy_user: "lea" } });
  await lead.getByText("(project lead)").waitFor();
  assert.deepEqual(await lead.getByLabel("Whose").locator("option").allTextContents(), ["projects I lead", "mine"]);
  await lead.getByRole("link", { name: "mesh" }).waitFor();
  assert.deepEqual((await names(lead)).sort(), ["mesh", "probe", "train-<b>bold</b>&co"]);
  await accessible(lead, "units of a project");
  await lead.getByLabel("Whose").selectOption({ label: "mine" });
  await lead.getByText("Nothing of lea runs").waitFor();
  assert.match(lead.url(), /#\/jobs\?view=own$/);
  const support = await visit(t, "/#/jobs", { server: { proxy_user: "sue" } });
  await support.getByText("(support)").waitFor();
  await support.getByRole("link", { name: "48213" }).click();
  await support.getByRole("heading", { level: 1, name: "48213" }).waitFor();
  await support.getByText("Measurements over time are shown to the owner").waitFor();
  assert.equal(await support.getByText("/home/ada").count(), 0);
  await accessible(support, "a unit as support sees it");
});

test("sorts, filters and adds up the table by keyboard alone", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  assert.equal((await names(page)).length, 8);
  await accessible(page, "table of units");
  await shot(page, "units-light");

  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await focused(page).then((text) => text.startsWith("Compute units")), true);
  for (const stop of ["CSV", "Views", "filter"]) {
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), stop);
  }
  await page.keyboard.type("fluids ocean");
  await settled(page, ["ocean"]);
  assert.match(await page.locator(".total").innerText(), /1 unit, 1 running/);
  await page.keyboard.press("Control+A");
  await page.keyboard.type("no such thing");
  await page.getByText("No unit matches.").waitFor();
  await accessible(page, "nothing matches");
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  assert.equal((await names(page)).length, 8);
  assert.equal(await focused(page), "filter");

  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  await settled(page, ["ocean", "lattice-qcd", "waiting room"]);
  await page.keyboard.press("ArrowRight");
  await page.getByRole("link", { name: "ocean" }).waitFor({ state: "detached" });
  assert.equal((await names(page)).length, 5);
  await page.keyboard.press("ArrowRight");

  const energy = page.getByRole("columnheader", { name: "Energy" });
  assert.equal(await energy.getAttribute("aria-sort"), null);
  await energy.getByRole("button").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("tbody th a").textContent === "train-<b>bold</b>&co");
  assert.equal(await energy.getAttribute("aria-sort"), "descending");
  assert.equal((await names(page)).at(-1), "waiting room");
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.querySelector("tbody th a").textContent === "short");
  assert.equal(await energy.getAttribute("aria-sort"), "ascending");
  assert.equal((await names(page)).at(-1), "waiting room");
  assert.match(await page.locator("tbody tr").first().innerText(), /41 J/);
});

test("the table is one stop of the Tab key, and arrows reach every cell", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?sort=name", { context: { viewport: { width: 1600, height: 900 } } });
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  assert.equal(await page.locator('table [tabindex="0"]').count(), 1);
  await page.locator(".bar summary").last().focus();
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "lattice-qcd", "the first unit");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(page), "mesh");
  const seen = new Set();
  await page.keyboard.press("Control+Home");
  for (let row = 0; row < 10; ++row) {
    await page.keyboard.press("Home");
    for (let column = 0; column < 12; ++column) {
      seen.add(await page.evaluate(() => {
        const cell = document.activeElement.closest("th, td");
        return `${cell.parentElement.rowIndex} ${cell.cellIndex}`;
      }));
      await page.keyboard.press("ArrowRight");
    }
    await page.keyboard.press("ArrowDown");
  }
  assert.equal(seen.size, 120);
  assert.equal(await page.locator('table [tabindex="0"]').count(), 1);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.closest("table")), null);
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "lattice-qcd" }).waitFor();
});

test("the address keeps the list: reload, Back and a link give it again", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await page.getByLabel("Filter").pressSequentially("fluids");
  await settled(page, ["ocean", "lattice-qcd", "waiting room", "sweep"]);
  assert.equal(new URL(page.url()).hash, "#/jobs?q=fluids");
  await page.getByRole("columnheader", { name: "CPU use" }).getByRole("button").click();
  await settled(page, ["lattice-qcd", "ocean", "sweep", "waiting room"]);
  await page.locator("summary", { hasText: "State" }).click();
  assert.deepEqual(await page.locator("details[open] label").allInnerTexts().then((texts) => texts.map((text) => text.split(/\s+/).join(" ").trim()).sort()), ["Cancelled 1", "Pending 1", "Running 2"]);
  await page.getByRole("checkbox", { name: /Cancelled/ }).check();
  await settled(page, ["sweep"]);
  await accessible(page, "an open menu of filters");
  await shot(page, "units-filters");
  await page.keyboard.press("Escape");
  assert.equal(await focused(page), "State");
  assert.equal(new URL(page.url()).hash, "#/jobs?q=fluids&state=CANCELLED&sort=cpu");
  await page.getByLabel("Running, or ended").selectOption({ label: "in the last 7 days" });
  await page.reload();
  await settled(page, ["sweep"]);
  assert.equal(await page.getByLabel("Filter").inputValue(), "fluids");
  assert.equal(await page.getByLabel("Running, or ended").inputValue(), "168");
  await page.getByRole("button", { name: /Remove the filter State: Cancelled/ }).click();
  await settled(page, ["lattice-qcd", "ocean", "sweep", "waiting room"]);
  await page.goBack();
  await settled(page, ["sweep"]);
  await page.getByRole("link", { name: "sweep" }).click();
  await page.getByRole("heading", { level: 1, name: "sweep" }).waitFor();
  await page.getByRole("link", { name: "All units" }).click();
  await settled(page, ["sweep"]);
  for (let i = 0; i < 6; ++i) await page.goBack();
  assert.equal(await page.getByLabel("Filter").inputValue(), "", "the word is one step back");
  await page.getByRole("link", { name: "short" }).waitFor();
});

test("filters by use, keeps views, and gives the list as CSV without formulas", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await page.locator("summary", { hasText: "Use and energy" }).click();
  await page.getByRole("group", { name: "CPU use, %" }).getByLabel("to").fill("20");
  await page.keyboard.press("Tab");
  await settled(page, ["probe", "sweep"]);
  await accessible(page, "filters by use");
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
  assert.equal(await focused(page), "find");
  await page.keyboard.type("31007");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "archive" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("lin optics");
  await page.keyboard.press("Enter");
  await settled(page, ["mesh", "train-<b>bold</b>&co", "archive"]);
  assert.equal(new URL(page.url()).hash, "#/jobs?q=lin+optics&period=all");
  // In the filter of the list, too, what is not in the period is found.
  await page.getByLabel("Running, or ended").selectOption({ label: "in the last 24 hours" });
  await page.getByLabel("Filter").fill("31007");
  await page.getByText("is not among them, but the server knows it: completed").waitFor();
  await accessible(page, "a unit outside the period");
  await page.getByRole("link", { name: "archive" }).click();
  await page.getByRole("heading", { level: 1, name: "archive" }).waitFor();
});

for (const lists of [true, false]) test(`shows pages of a hundred units, from a server with ${lists ? "" : "no "}lists`, async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?sort=name", { server: { many: 240, lists } });
  await page.getByText("1 to 100 of 248 units").waitFor();
  assert.equal((await names(page)).length, 100);
  assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) < 3000);
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("101 to 200 of 248 units").waitFor();
  await page.reload();
  await page.getByText("101 to 200 of 248 units").waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("201 to 248 of 248 units").waitFor();
  assert.equal((await names(page)).at(-1), "waiting room");
  assert.equal(await page.getByRole("button", { name: "Next" }).getAttribute("aria-disabled"), "true");
  await accessible(page, "the last page");
  await page.getByRole("button", { name: "First" }).click();
  await page.getByText("1 to 100 of 248 units").waitFor();
  await page.getByLabel("Filter").fill("task_00239");
  await settled(page, ["task_00239"]);
  await page.getByLabel("Filter").fill("");
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
  assert.match(await page.locator("section.about").innerText(), /country average/);
  await page.getByLabel("Filter").fill("");
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
  await page.getByRole("link", { name: "ocean" }).focus();
  const asked = () => page.requests.filter((r) => r.includes("/units/list/admin?")).length;
  const unchanged = async () => (await (await fetch(`${url}/control`)).json()).unchanged;
  const before = { asked: asked(), unchanged: await unchanged() };
  const elapsed = page.locator("tbody tr", { hasText: "ocean" }).locator("td").nth(4);
  const first = await elapsed.innerText();
  await page.waitForTimeout(1200);
  const later = async () => {
    const [answer] = await Promise.all([page.waitForResponse(/units\/list\/admin/), page.clock.fastForward(31_000)]);
    await answer.finished();
  };
  await later();
  assert.equal(asked(), before.asked + 1);
  assert.equal(await unchanged(), before.unchanged + 2, "the server had nothing to send");
  await page.waitForFunction((text) => [...document.querySelectorAll("tbody tr")].find((r) => r.textContent.includes("ocean")).cells[5].innerText !== text, first);
  assert.equal(await focused(page), "ocean");

  await page.getByLabel(/Refresh by itself/).uncheck();
  await page.clock.fastForward(120_000);
  await page.waitForTimeout(200);
  assert.equal(asked(), before.asked + 1, "paused");
  await Promise.all([page.waitForResponse(/units\/list\/admin/), page.getByLabel(/Refresh by itself/).check()]);
  assert.equal(asked(), before.asked + 2, "refreshes at once when switched on");
  await page.waitForTimeout(200);

  const hide = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await hide(true);
  await page.clock.fastForward(120_000);
  await page.waitForTimeout(200);
  assert.equal(asked(), before.asked + 2, "hidden");
  await Promise.all([page.waitForResponse(/units\/list\/admin/), hide(false)]);
  assert.equal(asked(), before.asked + 3, "refreshes at once when visible again");
});

test("keeps what matters in sight at every width", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "ocean" }).waitFor();
  for (const [width, columns] of [[1600, 12], [1440, 10], [1280, 10], [1024, 5], [721, 5]]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await page.getByRole("columnheader").count(), columns, `columns at ${width}`);
    for (const name of ["Unit", "State", "CPU use", "Energy", "Emissions"]) {
      const box = await page.getByRole("columnheader", { name }).boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= width, `${name} at ${width}`);
    }
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), `no sideways scroll at ${width}`);
  }
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
  assert.equal(await page.getByRole("columnheader").count(), 12);
  assert.equal(await page.getByRole("button").count(), 12, "nothing but the headings");
  assert.equal(await page.locator("input:visible, select:visible, summary:visible").count(), 0);
  await page.getByText("Units of anyone, running or ended in the last 24 hours; “a”; CPU use at least 5 %.").waitFor();
  const looks = await page.evaluate(() => ({
    background: getComputedStyle(document.body).backgroundColor,
    head: getComputedStyle(document.querySelector("thead")).display,
    row: getComputedStyle(document.querySelector("tbody tr")).breakInside,
    width: document.documentElement.scrollWidth,
  }));
  assert.deepEqual(looks, { background: "rgb(255, 255, 255)", head: "table-header-group", row: "avoid", width: 703 });
  await shot(page, "units-print");
});

test("the overview adds up what the role sees, and leads to the units of a day", async (t) => {
  const page = await visit(t, "/?user=operator#/?period=168h", { server: { many: 30 } });
  await page.getByRole("heading", { level: 1, name: "The site" }).waitFor();
  await page.getByRole("heading", { name: "Most energy not used" }).waitFor();
  const tile = (name) => page.locator(".tiles div", { hasText: name }).locator("dd").first().innerText();
  assert.equal(await tile("Units"), "37", "those that run or ended in these days, without the one that waits");
  await page.getByRole("region", { name: "Running now" }).getByRole("link", { name: "lattice-qcd" }).waitFor();
  await accessible(page, "overview");
  await shot(page, "overview-light");
  await page.getByLabel("Bars by").selectOption("user");
  await page.getByRole("list", { name: /Colours/ }).getByText("grace").waitFor();
  assert.equal(new URL(page.url()).hash, "#/?period=168h&by=user");
  await page.getByText("Energy by day and user as a table").press("Enter");
  const region = page.getByRole("region", { name: "Energy by day and user, all bars" });
  await region.waitFor();
  assert.equal(await region.locator("tbody tr").count(), 7);
  await accessible(page, "overview with a table of bars");
  await region.getByRole("link").last().click();
  await page.getByRole("heading", { level: 1, name: "Compute units" }).waitFor();
  assert.match(new URL(page.url()).hash, /^#\/jobs\?show=ended&from=\d+&to=\d+$/);
  await page.goBack();
  await page.getByLabel("View").selectOption("own");
  await page.getByRole("heading", { level: 1, name: "Your units" }).waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll(".tiles div")].some((div) => div.textContent.startsWith("Units") && div.querySelector("dd").textContent === "1"));
});

test("the month of a project has its members, its days and a report to print", async (t) => {
  const page = await visit(t, "/?user=lin#/projects", { server: { many: 30 } });
  await page.getByRole("heading", { level: 1, name: /^Projects – / }).waitFor();
  await accessible(page, "projects");
  await page.getByRole("link", { name: "optics", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: /^Project optics – / }).waitFor();
  assert.match(await focused(page), /^Project optics – /);
  const table = page.getByRole("region", { name: "Users" });
  await table.getByRole("row", { name: /^lin / }).waitFor();
  assert.match(await table.getByRole("row").first().innerText(), /User\s+Energy\s+Emissions\s+Core-hours\s+GPU-hours\s+Not used\s+Units/);
  await accessible(page, "month of a project");
  await shot(page, "project-light");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  assert.match(readFileSync(await download.path(), "utf8"), /^user,energy_kwh,emissions_grams,core_hours,gpu_hours,not_used_kwh,units\r\nlin,/);
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("button:visible, nav:visible, .tools a:visible").count(), 0);
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

test("a server without sums by day opens with its units", async (t) => {
  const page = await visit(t, "/?user=operator", { server: { lists: false } });
  await page.getByRole("link", { name: "ocean" }).waitFor();
  assert.equal(new URL(page.url()).hash, "#/jobs");
  await page.goto(`${url}/#/projects`);
  await page.getByText("This server is older than the page and has no sums by month.").waitFor();
  await accessible(page, "no sums by month");
});

test("speaks the language of the browser, or the one that is chosen", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { context: { locale: "de-AT", viewport: { width: 320, height: 700 } } });
  await page.getByRole("heading", { level: 1, name: "Recheneinheiten" }).waitFor();
  await page.getByText("1 bis 8 von 8 Einheiten").waitFor();
  assert.equal(await page.locator("html").getAttribute("lang"), "de");
  for (const [address, heading] of [["", "Das Rechenzentrum"], ["help/numbers", "Wie die Zahlen entstehen"], ["project/hpc-a/optics", "Projekt optics auf hpc-a"], ["unit/hpc-a/48213", "lattice-qcd"], ["jobs", "Recheneinheiten"]]) {
    await page.goto(`${url}/#/${address}`);
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), `${address} does not scroll sideways`);
    await accessible(page, `${address} in German`);
  }
  await shot(page, "units-german");
  await page.getByLabel("Sprache").selectOption({ label: "Français" });
  await page.getByRole("heading", { level: 1, name: "Unités de calcul" }).waitFor();
  await page.getByText("1 à 8 de 8 unités").waitFor();
  assert.equal(await page.locator("html").getAttribute("lang"), "fr");
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Unités de calcul" }).waitFor();
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
    assert.ok(sum(more) < 25_000, `${name}: ${sum(more)}`);
  }
  assert.ok(sum(scripts) < 170_000, `all: ${sum(scripts)}`);
});

test("reports errors, keeps its data and recovers", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { clock: true, server: { mode: "error" } });
  await page.getByText("The units could not be loaded: the database is locked.").waitFor();
  await accessible(page, "error at the start");
  await control({ mode: "ok" });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await control({ mode: "garbage" });
  await page.clock.fastForward(31_000);
  await page.getByText(/could not be refreshed \(the answer is not from a CEEMS API server\)/).waitFor();
  assert.equal((await names(page)).length, 8, "the old table is kept");
  await accessible(page, "error at a refresh");
  await shot(page, "units-stale");
  await control({ mode: "ok" });
  await page.clock.fastForward(61_000);
  await page.getByText(/could not be refreshed/).waitFor({ state: "detached" });
  await control({ mode: "empty" });
  await page.clock.fastForward(31_000);
  await page.getByText("No units yet.").waitFor();
  await accessible(page, "no units");
});

test("a unit's page has its cost, charts and tables, and a way back", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "lattice-qcd" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "lattice-qcd" }).waitFor();
  assert.equal(await focused(page), "lattice-qcd", "the heading has the focus");
  const profiles = page.getByRole("navigation", { name: "More about this unit" }).getByRole("link", { name: "Profiles" });
  assert.match(await profiles.getAttribute("href"), /^https:\/\/grafana\.example\.org\/d\/p\?var-service=48213&from=\d{13}$/);
  assert.equal(await page.title(), "lattice-qcd – CEEMS");
  await page.locator("canvas").nth(2).waitFor();
  assert.equal(await page.locator("canvas").count(), 3);
  const drawn = await page.locator("canvas").first().evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value, i) => i % 4 === 3 && value > 0);
  });
  assert.ok(drawn, "the chart is not blank");
  assert.match(await page.getByRole("img", { name: /^CPU over time/ }).getAttribute("aria-label"), /between .* cores and .* cores, 15\.[5-7] cores on average/);
  await accessible(page, "unit");
  await shot(page, "unit-light");
  await page.getByText("Memory as a table").press("Enter");
  const region = page.getByRole("region", { name: "Memory, all readings" });
  await region.waitFor();
  assert.ok((await region.locator("tbody tr").count()) > 100);
  assert.match(await region.innerText(), /GiB/);
  await accessible(page, "unit with a table of readings");
  await page.getByRole("button", { name: "Report card" }).waitFor(); // nothing moves any more
  const chart = await page.locator(".plot").first().boundingBox();
  await page.mouse.move(chart.x + chart.width - 40, chart.y + 60);
  assert.match(await page.locator(".readout").first().innerText(), /\d\d:\d\d:\d\d: .* cores/);
  await page.getByRole("link", { name: "All units" }).click();
  await page.getByRole("heading", { name: "Compute units" }).waitFor();
  assert.equal(await focused(page), "Compute units");
});

test("charts zoom together by drag, buttons and keys, and the address keeps it", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48213");
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
  await page.getByRole("button", { name: "All of it" }).click();
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
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "CPU");
});

test("reports a unit without measurements and one that does not exist", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48213", { clock: true, server: { mode: "no-series" } });
  await page.getByText("No readings of power for this unit").waitFor();
  await accessible(page, "no readings");
  await control({ mode: "series-error" });
  await page.clock.fastForward(16_000);
  await page.getByText("The measurements could not be loaded (Prometheus does not answer)").waitFor();
  await control({ mode: "ok" });
  await page.goto(`${url}/#/unit/hpc-a/nobody`);
  await page.getByRole("heading", { name: "No such unit" }).waitFor();
  await accessible(page, "no such unit");
  await page.goto(`${url}/#/nowhere`);
  await page.getByRole("heading", { name: "No such page" }).waitFor();
});

for (const [name, context] of [
  ["dark", { colorScheme: "dark" }],
  ["phone", { viewport: { width: 320, height: 640 } }],
  ["forced-colors", { viewport: { width: 1024, height: 800 }, forcedColors: "active" }],
  ["phone-dark", { viewport: { width: 390, height: 844 }, colorScheme: "dark" }],
]) {
  test(`all pages are accessible and fit: ${name}`, async (t) => {
    const page = await visit(t, "/?user=operator#/jobs", { context });
    const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
    await page.getByRole("link", { name: "ocean" }).waitFor();
    assert.ok(await fits(), "the table page does not scroll sideways");
    await accessible(page, "table of units");
    await shot(page, `units-${name}`);
    const wide = name === "dark" || name === "forced-colors"; // cards have no row of headings
    assert.equal(await page.getByRole("row").count(), wide ? 10 : 9, "assistive technology sees cards as rows of a table");
    if (!wide) assert.match(await page.locator("tbody tr").first().innerText(), /ada\s+fluids/, "cards show every value");
    if (name === "phone") {
      await page.getByLabel("Sort by").selectOption({ label: "Energy, most first" });
      await page.waitForFunction(() => document.querySelector("tbody th a").textContent === "train-<b>bold</b>&co");
    }
    await page.getByRole("link", { name: "ocean" }).click();
    await page.locator("canvas").nth(2).waitFor();
    const custom = page.getByRole("region", { name: "Metrics of this site" });
    assert.deepEqual(await custom.getByRole("row").allInnerTexts().then((rows) => rows.map((row) => row.split(/\s+/).join(" "))), [
      "Metric Total Average Least Greatest",
      "cache_misses 52,100 – – –",
      "gpu_temperature_of_the_hottest_sensor – 61.5 41 78",
    ]);
    assert.ok(await fits(), "the unit page does not scroll sideways");
    await accessible(page, "unit");
    await shot(page, `unit-${name}`);
    for (const [address, heading] of [["overview", "The site"], ["project/hpc-a/optics", "Project optics on hpc-a"], ["help/numbers", "How the numbers are made"]]) {
      await page.goto(`${url}/#/${address === "overview" ? "" : address}`);
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
      if (!address.startsWith("help")) await page.locator(".stack").waitFor();
      assert.ok(await fits(), `${address} does not scroll sideways`);
      await accessible(page, address);
      await shot(page, `${address.split("/")[0]}-${name}`);
    }
  });
}
