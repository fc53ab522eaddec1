// What the list of jobs costs in the browser. Usage: page.mjs URL ADDRESS TIMES. Prints JSON, the middle of several times after a first one: CPU
// time of the page's own thread until the first rows are there and nothing is asked for any more, memory that is in use, and nodes.
import { launch, open } from "../tests/e2e/browser.mjs";

const [url, address, times] = process.argv.slice(2);
const browser = await launch();
const page = await open(browser, { viewport: { width: 1440, height: 900 } });
const devtools = await page.context().newCDPSession(page);
await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
await devtools.send("Network.enable");

const metrics = async () => Object.fromEntries((await devtools.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));

async function load() {
  let bytes = 0;
  const count = ({ encodedDataLength }) => (bytes += encodedDataLength);
  await page.goto("about:blank");
  const before = await metrics();
  devtools.on("Network.loadingFinished", count);
  const begin = performance.now();
  await page.goto(`${url}/ui/?user=root${address}`);
  await page.locator("tbody tr").nth(99).waitFor({ state: "attached" });
  const shown = performance.now() - begin;
  await page.waitForLoadState("networkidle");
  devtools.off("Network.loadingFinished", count);
  const after = await metrics();
  await devtools.send("HeapProfiler.collectGarbage");
  const rest = await metrics();
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  return { cpu: (after.TaskDuration - before.TaskDuration) * 1e3, shown, heap: rest.JSHeapUsedSize / 1e6, nodes, bytes };
}

await load();
const all = [];
for (let i = 0; i < Number(times); ++i) all.push(await load());
const middle = (name) => all.map((one) => one[name]).sort((a, b) => a - b)[Math.floor(all.length / 2)];
console.log(JSON.stringify(Object.fromEntries(Object.keys(all[0]).map((name) => [name, middle(name)]))));
await browser.close();
