// A browser and mock_server.py, shared by the tests of one process. Each visit has a context of its own, and sets the server back.
// Environment: CEEMS_E2E_PAGE, the folder of the built page; and that of browser.mjs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";

import { becomes, launch, open, slow } from "./browser.mjs";

export * from "./browser.mjs";

const here = dirname(fileURLToPath(import.meta.url));

export let url;
let browser, mock;
const begun = new WeakSet(); // tests for which the server's units began anew

before(async () => {
  const late = slow ? ["--late", slow] : [];
  mock = spawn("python3", [join(here, "mock_server.py"), process.env.CEEMS_E2E_PAGE, ...late], { stdio: ["pipe", "pipe", "inherit"] });
  url = await new Promise((resolve, reject) => {
    mock.stdout.once("data", (data) => resolve(String(data).trim()));
    mock.once("exit", () => reject(new Error("the stand-in server did not start")));
  });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  mock?.stdin.end();
});

export async function control(values) {
  const answer = await fetch(`${url}/control`, { method: "POST", body: JSON.stringify(values) });
  assert.equal(answer.status, 200);
}

/** A time in a month that has days before it: on the first days of a month, some days ago. */
function inMonth() {
  const now = Date.now();
  return new Date(now).getUTCDate() < 4 ? now - 4 * 86_400_000 : now;
}

/** Opens a page of its own storage; fails the test on script errors, policy violations and requests to elsewhere.
 * With the option `month`, the browser and the server believe in a day on which the month has bars. */
export async function visit(t, path, options = {}) {
  // For each test, the units run as long as if it were the first.
  const now = options.month ? inMonth() : Date.now();
  const begin = begun.has(t) ? {} : { begin: now / 1000 };
  begun.add(t);
  await control({ ...begin, mode: "ok", proxy_user: null, login: null, many: 0, commit: null, lists: true, reports: "ok", fleet: "ok", insight: "ok", hours: "ok", currency: "", ended: null, managers: [], name: "", idle: 0, gpus: 0, profiles: "none", tokens: null, answering: true, ...(options.month ? { commit: now / 1000 } : {}), ...options.server });
  const page = await open(browser, options.context, { far: false });
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
    await page.context().close();
    assert.deepEqual(faults, []);
  });
  // Early in a quarter of an hour: lists are asked for in whole ones.
  if (options.clock) await page.clock.install({ time: Math.floor(Date.now() / 900_000) * 900_000 + 10_000 });
  if (options.month) await page.clock.install({ time: now });
  await page.goto(url + path);
  // The page takes the name out of the address and keeps it; before that, another address would lose it.
  if (path.startsWith("/?user=")) await becomes(() => page.url().includes("?user="), false, "the name leaves the address");
  return page;
}
