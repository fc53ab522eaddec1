// Every page and report card in every theme, width and size of text: axe finds nothing, and nothing scrolls sideways. And every page with
// texts that are marked and 40 % longer: what is not marked was left in the code, and what does not fit is cut. Takes long, so it runs only
// by name.
// CEEMS_E2E_ONLY: a part of the names of the combinations to look at, for example "dark 390".

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { ruleNames } from "../../web/rules.mjs";
import { accessible, scrolling, shot, shots, url, visit } from "./stand_in.mjs";

const kPages = [
  ["overview", "#/", ".stack .part"],
  ["hours", "#/?period=72h", ".stack .part"],
  ["jobs", "#/jobs?period=all", "tbody tr:nth-child(20)"],
  ["heat", "#/jobs?period=all&heat=mem", ".heat .map"],
  ["kinds", "#/jobs?kinds=not_used&period=all", "table.units tbody tr"],
  ["thumbnails", "#/jobs?form=thumbnails&period=all", ".thumbnails path"],
  ["nothing", "#/jobs?q=none%20of%20it", ".notice button"],
  ["compare", "#/compare?u=hpc-a/48190&u=hpc-a/48188&u=hpc-a/48213", ".compared .line"],
  ["compare four", "#/compare?u=hpc-a/48190&u=hpc-a/48188&u=hpc-a/48213&u=hpc-a/48214", ".compared .line"],
  ["unit", "#/unit/hpc-a/48190", ".devices canvas"],
  ["unit of several nodes", "#/unit/hpc-a/48213", ".charts canvas"],
  ["own usage", "#/user/operator", "h1"],
  ["no unit", "#/unit/hpc-a/1", "h1"],
  ["projects", "#/projects", ".plain tbody tr"],
  ["project", "#/project/hpc-a/fluids", ".plain tbody tr"],
  ["user", "#/user/ada", ".plain tbody tr"],
  ["users", "#/users", ".plain tbody tr"],
  ["site", "#/site", ".plain tbody tr"],
  ["nodes", "#/nodes", "table.units tbody tr:nth-child(20)"],
  ["map", "#/nodes?show=map", ".nodemap text"],
  ["map of GPUs", "#/nodes?show=map&by=gpu", ".nodemap rect.device"],
  ["time line", "#/nodes?q=n00&show=time", ".timeline rect.unit"],
  ["node", "#/node/hpc-a/n001", ".charts canvas"],
  ["grid", "#/grid", ".charts canvas"],
  ["bill", "#/bill?month=2026-11", ".stack .part"],
  ["no bill", "#/bill?month=2001-01", ".notice strong"],
  ["official report", "#/reports?kind=ghg&period=2026", ".official .state"],
  ["budgets", "#/budgets", "table.units tbody tr"],
  ["idle", "#/idle", ".plain tbody tr"],
  ["year", "#/year", ".stack .legend"],
  ["numbers", "#/help/numbers", ".prose"],
  ["tokens", "#/tokens", "tbody tr"],
  ["cards", "#/card", "main a"],
  ["card", "#/card/hpc-a/48190", "main a"],
  ["unknown", "#/unknown", "h1"],
];
const kServer = { many: 60, gpus: 4096, tokens: [{ id: "old", user: "operator", name: "nightly report", scope: "read-own", created_ts: 0, expires_ts: 1000, used_ts: 500 }] };
const here = dirname(fileURLToPath(import.meta.url));
// Report cards as the server makes them.
const cards = join(here, "../golden/report");
const kCards = readdirSync(cards).filter((name) => name.endsWith(".html"));
const kThemes = { light: { colorScheme: "light" }, dark: { colorScheme: "dark" }, forced: { forcedColors: "active" } };
const kWidths = [1440, 1024, 720, 390, 320];
const only = process.env.CEEMS_E2E_ONLY ?? "";

/** Goes to a page and waits for what it shows when it is complete. */
async function open(page, hash, wanted) {
  await page.evaluate((to) => (location.hash = to), hash);
  await page.waitForFunction((to) => location.hash === to, hash);
  if (wanted === ".charts canvas") await page.locator(".charts .plot").first().scrollIntoViewIfNeeded(); // it is drawn when it comes near the window
  await page.locator(wanted).first().waitFor();
  await page.waitForLoadState("networkidle");
}

/** As in the settings of the browser, so that the widths in em of style sheets follow, which they do not always before the page is loaded
 * again. */
async function setTextSize(page, percent) {
  const pixels = (16 * percent) / 100;
  const browser = await page.context().newCDPSession(page);
  await browser.send("Page.setFontSizes", { fontSizes: { standard: pixels, fixed: (13 * percent) / 100 } });
  await page.reload();
  await page.waitForFunction((size) => window.matchMedia(`(max-width: ${innerWidth / size + 0.1}em) and (min-width: ${innerWidth / size - 0.1}em)`).matches, pixels);
}

/** What is wider than the window, outside of regions that scroll by themselves. */
const wide = (page) =>
  page.evaluate(() => {
    const most = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= most) return [];
    return [...document.querySelectorAll("main *, header *, footer *")]
      .filter((e) => e.getBoundingClientRect().right > most + 1 && !e.closest(".scroll, .readings, details:not([open]) > :not(summary)"))
      .map((e) => `${e.tagName} ${e.className?.baseVal ?? e.className} ${e.textContent.trim().slice(0, 40)}`)
      .slice(0, 4);
  });

for (const [theme, look] of Object.entries(kThemes)) {
  for (const width of kWidths) {
    for (const size of [100, 200]) {
      const name = `${theme} ${width} ${size} %`;
      test(name, { skip: !name.includes(only) }, async (t) => {
        const page = await visit(t, "/?user=operator#/help/numbers", { server: kServer, context: { ...look, viewport: { width, height: 900 } } });
        await setTextSize(page, size);
        const faults = [];
        for (const [what, hash, wanted] of kPages) {
          await open(page, hash, wanted);
          await accessible(page, what).catch((error) => faults.push(`${what}: ${error.message}`));
          for (const found of await wide(page)) faults.push(`${what} is too wide: ${found}`);
          if (size === 100 && width >= 390) for (const found of await scrolling(page)) faults.push(`${what} scrolls sideways: ${found}`);
          await shot(page, `matrix-${theme}-${width}-${size}-${what.replace(" ", "-")}`);
          if (shots) await setTextSize(page, size); // a picture of the whole page resets it
        }
        assert.deepEqual(faults, []);
      });
    }
  }
  const logIn = `log-in ${theme}`;
  test(logIn, { skip: !logIn.includes(only) }, async (t) => {
    const page = await visit(t, "/", { server: { login: { header: "X-Grafana-User", local: true, oidc: "Example", site: "A centre with a long name" } }, context: look });
    const faults = [];
    for (const size of [100, 200]) {
      await setTextSize(page, size);
      for (const width of kWidths) {
        await page.setViewportSize({ width, height: 900 });
        await page.getByLabel("Password").waitFor();
        await accessible(page, logIn).catch((error) => faults.push(`${width} px, ${size} %: ${error.message}`));
        for (const found of await wide(page)) faults.push(`${width} px, ${size} % is too wide: ${found}`);
        await shot(page, `matrix-${theme}-${width}-${size}-log-in`);
        if (shots) await setTextSize(page, size);
      }
    }
    assert.deepEqual(faults, []);
  });
  const name = `report cards ${theme}`;
  test(name, { skip: !name.includes(only) }, async (t) => {
    const page = await visit(t, "/?user=operator#/help/numbers", { context: look });
    await page.route(`${url}/card/*`, (route) => route.fulfill({ contentType: "text/html; charset=utf-8", path: join(cards, route.request().url().split("/").at(-1)) }));
    const faults = [];
    for (const card of kCards) {
      await page.goto(`${url}/card/${card}`);
      for (const size of [100, 200]) {
        await setTextSize(page, size);
        for (const width of kWidths) {
          await page.setViewportSize({ width, height: 900 });
          const what = `${card} at ${width} px, ${size} %`;
          await accessible(page, what).catch((error) => faults.push(`${what}: ${error.message}`));
          for (const found of await wide(page)) faults.push(`${what} is too wide: ${found}`);
          await shot(page, `matrix-${theme}-${width}-${size}-card-${card.split(".")[0]}`);
        }
      }
    }
    assert.deepEqual(faults, []);
  });
}

const texts = join(here, "../../web/src/text/locales");
const marked = (text) => `[!! ${text} ${"·".repeat(Math.ceil(0.4 * text.length))} !!]`;
const pseudo = (file) =>
  Object.fromEntries(
    Object.entries({ ...JSON.parse(readFileSync(join(texts, file), "utf8")), ...(file === "en.json" ? ruleNames("en") : {}) }).map(([key, entry]) => [
      key,
      typeof entry === "string" ? marked(entry) : Object.fromEntries(Object.entries(entry).map(([form, text]) => [form, marked(text)])),
    ]),
  );

// What the server says, what has no language, and formats of the browser.
const kData =
  /operator|waves|\bspeed\b|ns\/day|\bsolve\b|<i>read<\/i>|site-rule|nightly report|\bRAM\b|\bgpu\b|service|\b(EUR|RTE|FR)\b|\b(ada|lin|grace|sue|lea)\b|fluids|optics|hpc-a|main|train-|bold|lattice-qcd|ocean|waiting room|mesh|sweep|probe|short|archive|task_[\d#]+|#SBATCH.*|--\S+|gpu-\w+|time-limit|normal|workdir|partition|\/home\/\S+|slurm|Running|Pending|Completed|Failed|Cancelled( by \d+)?|Out of memory|<i>site<\/i>|<img.*|See \{docs\}.*|3 von 4 GPUs.*|Zeit: solche Läufe.*|The job ran out of its memory of.*|\d+\s% of the reserved time was used\.|CEEMS|CSV|XLSX|Ctrl\+K|Deutsch|English|Français|Profiles|http\S+|Markdown|HTML|none of it|\b(CO2e|GPU|CPU|GiB|MiB|KiB|kWh|MWh|GWh|Wh|mJ|kJ|W|mW|mg|µg|kg|min|uid|qos|UTC)\b|\b(Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)\w*\b|Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag|Koordinierte Weltzeit|\bum\b/g;

test("pseudo-locale", { skip: !"pseudo-locale".includes(only) }, async (t) => {
  const page = await visit(t, "/?user=operator#/unknown", { server: kServer, context: { locale: "en", viewport: { width: 1440, height: 900 } } });
  // German comes in files of its own, as lists in the order of English; these stand in for them.
  await page.route(/assets\/(\w+\.)?de-[^/]*\.js$/, (route) => {
    const [, part = ""] = /assets\/(\w+\.)?de-/.exec(route.request().url());
    return route.fulfill({ contentType: "text/javascript", body: `export default ${JSON.stringify(Object.values(pseudo(`${part}en.json`)))}` });
  });
  await page.evaluate(() => localStorage.setItem("ceems.language", "de"));
  const faults = [];
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`${url}/?x=${width}#/help/numbers`);
    await page.getByText(/^\[!! How the numbers are made/).first().waitFor();
    for (const [what, hash, wanted] of kPages) {
      await open(page, hash, wanted);
      for (const found of await wide(page)) faults.push(`${what} at ${width} px is too wide: ${found}`);
      const { left, cut } = await page.evaluate(() => {
        const left = [];
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let node = walk.nextNode(); node; node = walk.nextNode()) {
          const parent = node.parentElement;
          if (!node.data.trim() || parent.closest("script, style, noscript, .uplot, code")) continue;
          let text = parent.closest("p, li, th, td, dt, dd, h1, h2, h3, a, button, label, option, summary, legend, text, title, figcaption")?.textContent ?? node.data;
          text = text.replace(/\[\{[^[\]]*\}\]/g, " "); // a list in an example
          for (let before = ""; before !== text; ) {
            before = text;
            text = text.replace(/\[!![^[\]]*?!!\]/g, " ");
          }
          left.push(text);
        }
        const cut = [...document.querySelectorAll("button, a, th, td, label, summary, dt, dd")]
          .filter((e) => e.getClientRects().length && ["hidden", "clip"].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1 && !e.closest(".hidden") && e.title !== e.textContent) // a name that is cut is below the pointer, too
          .map((e) => e.textContent.trim().slice(0, 60));
        return { left: [...new Set(left)], cut };
      });
      for (const text of left) {
        const rest = text.replace(kData, " ").trim();
        if (/\p{L}{3,}/u.test(rest)) faults.push(`${what}: not translated: ${rest.replace(/\s+/g, " ").slice(0, 120)}`);
      }
      for (const text of cut) faults.push(`${what} at ${width} px: cut: ${text}`);
      await shot(page, `pseudo-${width}-${what.replace(" ", "-")}`);
    }
  }
  assert.deepEqual([...new Set(faults)], []);
});
