// What pages cost in the browser. Usage: page.mjs URL TIMES (ADDRESS WANTED)... Prints a JSON list with an object for each address, and first one
// for a page without data; each is the middle of several times after a first one: CPU time of the page's own thread until nothing is asked for
// any more, bytes of data as they were sent, memory that is in use, elements, and after how many ms that was. WANTED is a selector of what has to be there then.
import { launch, open } from "../tests/e2e/browser.mjs";

const [url, times, ...rest] = process.argv.slice(2);
const browser = await launch();
const page = await open(browser, { viewport: { width: 1440, height: 900 } });
const devtools = await page.context().newCDPSession(page);
await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
await devtools.send("Network.enable");

const metrics = async () => Object.fromEntries((await devtools.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));

/** Opens a page anew. Nothing looks at it meanwhile, which would cost its thread time. */
async function load(to) {
  let data = 0;
  const asked = new Set();
  const ask = ({ requestId, request }) => request.url.includes("/api/v1/") && asked.add(requestId);
  const count = ({ requestId, encodedDataLength }) => (data += asked.has(requestId) ? encodedDataLength : 0);
  await page.goto("about:blank");
  const before = await metrics();
  devtools.on("Network.requestWillBeSent", ask).on("Network.loadingFinished", count);
  const begin = performance.now();
  await page.goto(`${url}/ui/?user=root${to}`, { waitUntil: "networkidle" });
  const wall = performance.now() - begin;
  devtools.off("Network.requestWillBeSent", ask).off("Network.loadingFinished", count);
  return { cpu: ((await metrics()).TaskDuration - before.TaskDuration) * 1e3, data, wall };
}

const middle = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];

/** Opens a page once, and then several times, of which the middle counts. */
async function middleOf(to, wanted) {
  const first = await load(to); // later ones may be answered with 304
  const all = [];
  for (let i = 0; i < Number(times); ++i) all.push(await load(to));
  // Last, because the browser throws compiled code away together with the garbage.
  await devtools.send("HeapProfiler.collectGarbage");
  const heap = (await metrics()).JSHeapUsedSize / 1e6;
  const there = await page.locator(wanted).count();
  if (there === 0) throw new Error(`${to}: nothing is ${wanted}`);
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  return { cpu: middle(all.map(({ cpu }) => cpu)), wall: middle(all.map(({ wall }) => wall)), data: first.data, heap, nodes, there };
}

const found = [await middleOf("#/help/numbers", "h1")];
for (let i = 0; i + 1 < rest.length; i += 2) found.push(await middleOf(rest[i], rest[i + 1]));
console.log(JSON.stringify(found));
await browser.close();
