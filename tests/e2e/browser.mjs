// What the tests of the page have in common, whatever server they talk to.
// Environment: CHROMIUM, the browser; CEEMS_E2E_SHOTS, a folder for screenshots; CEEMS_E2E_SLOW, a number: the tests run as on a slow and busy
// machine, with answers in another order for each number.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

import { chromium } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const shots = process.env.CEEMS_E2E_SHOTS;
export const slow = process.env.CEEMS_E2E_SLOW;

/** How long something may take that takes this long at most on a machine that is not slowed down. */
export const patience = (ms) => (slow ? 4 * ms : ms);
// Tests wait for what they expect to see, so this only limits how long a failure takes, also where the machine is starved.
const kPatienceMs = 120_000;

// What a window has around the page is neither seen nor tested, but it was two fifths of the CPU time: Chromium loads pages of its own below the
// address bar of each window, and starts a renderer for the page after this one. The last list counts, so the first line repeats playwright's.
const kDisabled = [
  ..."AvoidUnnecessaryBeforeUnloadCheckSync BoundaryEventDispatchTracksNodeRemoval DestroyProfileOnBrowserClose DialMediaRouteProvider GlobalMediaControls HttpsUpgrades LensOverlay MediaRouter OptimizationHints PaintHolding RenderDocument ThirdPartyStoragePartitioning Translate".split(" "),
  ..."PreloadTopChromeWebUI SpareRendererForSitePerProcess WebUIOmniboxAimPopup WebUIOmniboxFullPopup WebUIOmniboxPopup".split(" "),
];

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", `--disable-features=${kDisabled}`] });

/** A page of its own storage. With `far`, the answers to a slow browser are late; otherwise the server must see to that itself. */
export async function open(browser, options, { far = true } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(kPatienceMs);
  if (slow) {
    const devtools = await context.newCDPSession(page);
    await devtools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    if (far) {
      const later = () => devtools.send("Network.emulateNetworkConditions", { offline: false, latency: 300 * Math.random(), downloadThroughput: -1, uploadThroughput: -1 });
      await later();
      page.on("request", () => later().catch(() => {})); // the page may be closed
    }
  }
  return page;
}

/** A zone in which it is about noon: an hour ago is the same day there. */
export function noonZone() {
  const ahead = 12 - new Date().getUTCHours();
  return `Etc/GMT${ahead < 0 ? "+" : "-"}${Math.abs(ahead)}`;
}

/** Waits until axe finds nothing. Parts of the page come when they are needed; what is judged is a page that has come. */
export async function accessible(page, what) {
  await page.locator("h1").first().waitFor({ state: "attached" });
  // Use evaluate instead of a script element, so that the page's own policy stays in force.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axeSource);
  const faults = async () => {
    const found = await page.evaluate(() =>
      // eslint-disable-next-line no-undef
      axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"] }), // others are half of the work
    );
    return found.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
  };
  await becomes(faults, [], what);
}

export async function shot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

export const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.id);

/** Whether the page fits into the width of the window. */
export const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);

/** The beginnings of the tables that scroll sideways by themselves. */
export const scrolling = (page) => page.locator(".scroll").evaluateAll((boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.textContent.trim().slice(0, 40)));

/** Whether the condition holds within this time. */
export async function within(ms, condition) {
  // What takes long is asked for less often, so that asking does not hold it up.
  for (let [end, wait] = [Date.now() + ms, 20]; ; await pause(wait), wait = Math.min(1.5 * wait, 200)) {
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
    if (await within(patience(1_000), is)) return;
  }
  assert.fail(`the page's clock went on, but nothing came of it: ${seen}`);
}

/** The links of the table's rows. */
export const names = (page) => page.locator("tbody th a");
/** Waits until the table shows these units in this order. */
export const settled = (page, expected) => becomes(() => names(page).allTextContents(), expected);
