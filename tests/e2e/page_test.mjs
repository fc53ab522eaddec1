// Tests the page in a real browser against mock_server.py: what people see, the keyboard, errors, axe and the security policy.
// Environment: CEEMS_E2E_PAGE, the folder of the built page; CHROMIUM, the browser; CEEMS_E2E_SHOTS, a folder for screenshots.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = process.env.CEEMS_E2E_SHOTS;

let browser, mock, url;

before(async () => {
  mock = spawn("python3", [join(here, "mock_server.py"), process.env.CEEMS_E2E_PAGE], { stdio: ["pipe", "pipe", "inherit"] });
  url = await new Promise((resolve, reject) => {
    mock.stdout.once("data", (data) => resolve(String(data).trim()));
    mock.once("exit", () => reject(new Error("the stand-in server did not start")));
  });
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
});

after(async () => {
  await browser?.close();
  mock?.stdin.end();
});

async function control(values) {
  const answer = await fetch(`${url}/control`, { method: "POST", body: JSON.stringify(values) });
  assert.equal(answer.status, 200);
}

/** Opens a page of its own storage; fails the test on script errors, policy violations and requests to elsewhere. */
async function visit(t, path, options = {}) {
  await control({ mode: "ok", proxy_user: null, login: null, ...options.server });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options.context });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const faults = [];
  page.requests = [];
  page.unauthorized = [];
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    page.requests.push(request.url());
    if (!request.url().startsWith(`${url}/`)) faults.push(`request to ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() === 401) page.unauthorized.push(response.url());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(faults, []);
  });
  await page.goto(url + path);
  return page;
}

async function accessible(page, what) {
  // Use evaluate instead of a script element, so that the page's own policy stays in force.
  await page.evaluate(axeSource);
  const found = await page.evaluate(() =>
    // eslint-disable-next-line no-undef
    axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  const faults = found.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
  assert.deepEqual(faults, [], what);
}

async function shot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

const names = (page) => page.locator("tbody th a").allTextContents();
const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.id);

test("asks for the user's name once and shows that user's units", async (t) => {
  const page = await visit(t, "/");
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
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByRole("heading", { name: "Who are you?" }).waitFor();
});

test("takes the name from the address and removes it there", async (t) => {
  const page = await visit(t, "/ui/?user=lin");
  await page.getByRole("link", { name: "mesh" }).waitFor();
  assert.deepEqual((await names(page)).sort(), ["mesh", "train-<b>bold</b>&co"], "names are text, never markup");
  assert.equal(await page.evaluate(() => location.href), `${url}/ui/`);
});

test("starts without a request that is answered with 401", async (t) => {
  const logins = { login: { header: null, local: true, oidc: null } };
  for (const [path, server, heading] of [
    ["/ui/", {}, "Who are you?"],
    ["/ui/?user=lin", {}, "Compute units"],
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
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Change" }).count(), 0);
});

const kLogins = { header: null, local: true, oidc: "Example" };

test("logs in with a password, by keyboard, and out again", async (t) => {
  const page = await visit(t, "/", { server: { login: kLogins } });
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
  const page = await visit(t, "/", { server: { login: kLogins, proxy_user: "ada" } });
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  await control({ proxy_user: null });
  await page.getByText("Your session has ended.").waitFor();
  await control({ login: { header: null, local: false, oidc: null } });
  await page.reload();
  await page.getByRole("heading", { name: "No login available" }).waitFor();
  await accessible(page, "no way in");
});

test("leads and support choose whose units they see", async (t) => {
  const lead = await visit(t, "/", { server: { proxy_user: "lea" } });
  await lead.getByText("(project lead)").waitFor();
  await lead.getByText("Nothing of lea runs").waitFor();
  assert.deepEqual(await lead.getByLabel("Whose").locator("option").allTextContents(), ["mine", "projects I lead"]);
  await lead.getByLabel("Whose").selectOption({ label: "projects I lead" });
  await lead.getByRole("link", { name: "mesh" }).waitFor();
  assert.deepEqual((await names(lead)).sort(), ["mesh", "probe", "train-<b>bold</b>&co"]);
  await accessible(lead, "units of a project");
  const support = await visit(t, "/", { server: { proxy_user: "sue" } });
  await support.getByText("(support)").waitFor();
  await support.getByRole("link", { name: "48213" }).click();
  await support.getByRole("heading", { level: 1, name: "48213" }).waitFor();
  await support.getByText("Measurements over time are shown to the owner").waitFor();
  assert.equal(await support.getByText("/home/ada").count(), 0);
  await accessible(support, "a unit as support sees it");
});

test("sorts, filters and adds up the table by keyboard alone", async (t) => {
  const page = await visit(t, "/?user=operator");
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  assert.equal((await names(page)).length, 8);
  await accessible(page, "table of units");
  await shot(page, "units-light");

  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await focused(page).then((text) => text.startsWith("Compute units")), true);
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "filter");
  await page.keyboard.type("fluids ocean");
  assert.deepEqual(await names(page), ["ocean"]);
  assert.match(await page.locator("tfoot").innerText(), /1 unit of 8, 1 running/);
  await page.keyboard.press("Control+A");
  await page.keyboard.type("no such thing");
  await page.getByText("None of 8 units matches.").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  assert.equal((await names(page)).length, 8);
  assert.equal(await focused(page), "filter");

  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  assert.deepEqual((await names(page)).sort(), ["lattice-qcd", "ocean", "waiting room"]);
  await page.keyboard.press("ArrowRight");
  assert.equal((await names(page)).length, 5);
  await page.keyboard.press("ArrowRight");

  const energy = page.getByRole("columnheader", { name: "Energy" });
  assert.equal(await energy.getAttribute("aria-sort"), null);
  await energy.getByRole("button").focus();
  await page.keyboard.press("Enter");
  assert.equal(await energy.getAttribute("aria-sort"), "descending");
  assert.deepEqual([(await names(page))[0], (await names(page)).at(-1)], ["lattice-qcd", "waiting room"]);
  await page.keyboard.press("Space");
  assert.equal(await energy.getAttribute("aria-sort"), "ascending");
  assert.deepEqual([(await names(page))[0], (await names(page)).at(-1)], ["short", "waiting room"]);
  assert.match(await page.locator("tbody tr").first().innerText(), /41 J/);
  assert.match(await page.locator("section.about").innerText(), /country average/);
});

test("refreshes by itself, keeps the focus, and stops on request or while it is hidden", async (t) => {
  const page = await visit(t, "/?user=operator");
  await page.getByRole("link", { name: "ocean" }).focus();
  const cell = page.locator("tbody tr", { hasText: "ocean" }).locator("td").nth(3);
  const first = await cell.innerText();
  await page.waitForFunction(([text]) => {
    const row = [...document.querySelectorAll("tbody tr")].find((r) => r.textContent.includes("ocean"));
    return row.querySelectorAll("td")[3].innerText !== text;
  }, [first]);
  assert.equal(await focused(page), "ocean");

  const asked = () => page.requests.filter((r) => r.includes("/units/admin?")).length;
  await page.getByLabel(/Refresh by itself/).uncheck();
  const paused = asked();
  await page.waitForTimeout(6000);
  assert.equal(asked(), paused, "paused");
  await page.getByLabel(/Refresh by itself/).check();
  await page.waitForTimeout(300);
  assert.equal(asked(), paused + 1, "refreshes at once when switched on");

  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.waitForTimeout(6000);
  assert.equal(asked(), paused + 1, "hidden");
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: false, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.waitForTimeout(500);
  assert.equal(asked(), paused + 2, "refreshes at once when visible again");
});

test("reports errors, keeps its data and recovers", async (t) => {
  const page = await visit(t, "/?user=operator", { server: { mode: "error" } });
  await page.getByText("The units could not be loaded: the database is locked.").waitFor();
  await accessible(page, "error at the start");
  await control({ mode: "ok" });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await control({ mode: "garbage" });
  await page.getByText(/could not be refreshed \(the answer is not from a CEEMS API server\)/).waitFor();
  assert.equal((await names(page)).length, 8, "the old table is kept");
  await accessible(page, "error at a refresh");
  await shot(page, "units-stale");
  await control({ mode: "ok" });
  await page.getByText(/could not be refreshed/).waitFor({ state: "detached", timeout: 25_000 });
  await control({ mode: "empty" });
  await page.getByText("No units yet.").waitFor();
  await accessible(page, "no units");
});

test("a unit's page has its cost, charts and tables, and a way back", async (t) => {
  const page = await visit(t, "/?user=operator");
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
  const chart = await page.locator(".plot").first().boundingBox();
  await page.mouse.move(chart.x + chart.width - 40, chart.y + 60);
  assert.match(await page.locator(".readout").first().innerText(), /\d\d:\d\d:\d\d: .* cores/);
  await page.getByRole("link", { name: "All units" }).click();
  await page.getByRole("heading", { name: "Compute units" }).waitFor();
  assert.equal(await focused(page), "Compute units");
});

test("reports a unit without measurements and one that does not exist", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48213", { server: { mode: "no-series" } });
  await page.getByText("No readings of power for this unit").waitFor();
  await accessible(page, "no readings");
  await control({ mode: "series-error" });
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
  ["phone-dark", { viewport: { width: 390, height: 844 }, colorScheme: "dark" }],
]) {
  test(`both pages are accessible and fit: ${name}`, async (t) => {
    const page = await visit(t, "/?user=operator", { context });
    const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
    await page.getByRole("link", { name: "ocean" }).waitFor();
    assert.ok(await fits(), "the table page does not scroll sideways");
    await accessible(page, "table of units");
    await shot(page, `units-${name}`);
    assert.equal(await page.getByRole("row").count(), 10, "assistive technology sees cards as rows of a table");
    if (name === "phone") {
      await page.getByLabel("Sort by").selectOption({ label: "Energy, most first" });
      assert.equal((await names(page))[0], "lattice-qcd");
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
  });
}
