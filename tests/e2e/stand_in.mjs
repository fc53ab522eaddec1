// A browser and mock_server.py for the tests of one file, and what they have in common.
// Environment: CEEMS_E2E_PAGE, the folder of the built page; CHROMIUM, the browser; CEEMS_E2E_SHOTS, a folder for screenshots.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";

import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const shots = process.env.CEEMS_E2E_SHOTS;

// Tests wait for what they expect to see, so this only limits how long a failure takes, also where the machine is busy.
const kPatienceMs = 30_000;

export let url;
let browser, mock;

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

export async function control(values) {
  const answer = await fetch(`${url}/control`, { method: "POST", body: JSON.stringify(values) });
  assert.equal(answer.status, 200);
}

/** Opens a page of its own storage; fails the test on script errors, policy violations and requests to elsewhere. */
export async function visit(t, path, options = {}) {
  await control({ mode: "ok", proxy_user: null, login: null, many: 0, commit: null, lists: true, reports: "ok", fleet: "ok", insight: "ok", currency: "", ended: null, managers: [], name: "", ...options.server });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options.context });
  const page = await context.newPage();
  page.setDefaultTimeout(kPatienceMs);
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
  // Early in a quarter of an hour: lists are asked for in whole ones.
  if (options.clock) await page.clock.install({ time: Math.floor(Date.now() / 900_000) * 900_000 + 10_000 });
  await page.goto(url + path);
  // The page takes the name out of the address and keeps it; before that, another address would lose it.
  if (path.startsWith("/?user=")) await within(kPatienceMs, () => !page.url().includes("?user="));
  return page;
}

export async function accessible(page, what) {
  // Parts of the page come when they are needed; what is judged is a page that has come.
  await page.locator("h1").first().waitFor({ state: "attached" });
  // Use evaluate instead of a script element, so that the page's own policy stays in force.
  await page.evaluate(axeSource);
  const found = await page.evaluate(() =>
    // eslint-disable-next-line no-undef
    axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  const faults = found.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
  assert.deepEqual(faults, [], what);
}

export async function shot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

export const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.id);

/** Whether the condition holds within this time. */
export async function within(ms, condition) {
  for (const end = Date.now() + ms; ; await pause(20)) {
    if (await condition()) return true;
    if (Date.now() > end) return false;
  }
}

/** Waits until `read` gives the expected value, or a text that matches the expected pattern: pages show things when they have them. */
export async function becomes(read, expected, message) {
  let value;
  const good = () => (expected instanceof RegExp ? expected.test(value) : isDeepStrictEqual(value, expected));
  if (await within(kPatienceMs, async () => ((value = await read()), good()))) return;
  if (expected instanceof RegExp) assert.match(value, expected, message);
  else assert.deepEqual(value, expected, message);
}

/**
 * Lets the page's clock run until something is seen: a locator, or a function that gives true. A pause begins when the answer
 * before it is complete, which the page does not show, and it is longer after slow answers; so one step may come too early.
 */
export async function passUntil(page, seen, stepMs = 61_000) {
  const is = typeof seen === "function" ? seen : () => seen.isVisible();
  for (const end = Date.now() + kPatienceMs; Date.now() < end; ) {
    await page.clock.fastForward(stepMs);
    if (await within(1_000, is)) return;
  }
  assert.fail(`the page's clock went on, but nothing came of it: ${seen}`);
}

/** The links of the table's rows. */
export const names = (page) => page.locator("tbody th a");
/** Waits until the table shows these units in this order. */
export const settled = (page, expected) => becomes(() => names(page).allTextContents(), expected);
