// What the list of jobs costs in the browser. Usage: page.mjs URL ADDRESS TIMES. Prints JSON, the middle of several times after a first one: CPU
// time of the page's own thread until the rows are there and nothing is asked for any more, the same for a page without a list, memory that is in
// use, and elements.
import { launch, open } from "../tests/e2e/browser.mjs";

const [url, address, times] = process.argv.slice(2);
const browser = await launch();
const page = await open(browser, { viewport: { width: 1440, height: 900 } });
const devtools = await page.context().newCDPSession(page);
await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
await devtools.send("Network.enable");

const metrics = async () => Object.fromEntries((await devtools.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));

/** Opens a page anew. Nothing looks at it meanwhile, which would cost its thread time. */
async function load(to) {
  let bytes = 0;
  const count = ({ encodedDataLength }) => (bytes += encodedDataLength);
  await page.goto("about:blank");
  const before = await metrics();
  devtools.on("Network.loadingFinished", count);
  await page.goto(`${url}/ui/?user=root${to}`, { waitUntil: "networkidle" });
  devtools.off("Network.loadingFinished", count);
  return { cpu: ((await metrics()).TaskDuration - before.TaskDuration) * 1e3, bytes };
}

const middle = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];

/** Opens a page once, and then several times, of which the middle counts. */
async function middleOf(to) {
  await load(to);
  const all = [];
  for (let i = 0; i < Number(times); ++i) all.push(await load(to));
  return { cpu: middle(all.map(({ cpu }) => cpu)), bytes: middle(all.map(({ bytes }) => bytes)) };
}

const empty = await middleOf("#/help/numbers");
const list = await middleOf(address);
// Last, because the browser throws compiled code away together with the garbage.
await devtools.send("HeapProfiler.collectGarbage");
const heap = (await metrics()).JSHeapUsedSize / 1e6;
const rows = await page.locator("tbody tr").count();
if (rows !== 100) throw new Error(`${rows} rows were shown`);
const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
console.log(JSON.stringify({ ...list, heap, nodes, empty: empty.cpu }));
await browser.close();
