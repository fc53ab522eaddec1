// What a newcomer sees of the demo that `make run` starts: launcher_test.py runs this against the real stack.
// Environment: CEEMS_DEMO_URL, CEEMS_DEMO_PASSWORD; and that of browser.mjs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { becomes, launch, open as newPage, patience, shot as pictured } from "./browser.mjs";

const { CEEMS_DEMO_URL: url, CEEMS_DEMO_PASSWORD: password } = process.env;
let browser;

before(async () => {
  browser = await launch();
});
after(() => browser?.close());

async function logIn(t, name, secret, context = {}) {
  const page = await newPage(browser, { viewport: { width: 1440, height: 900 }, ...context });
  page.setDefaultTimeout(patience(90_000));
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  t.after(async () => {
    await page.context().close();
    assert.deepEqual(faults, []);
  });
  await page.goto(url);
  await page.getByLabel("User name").fill(name);
  await page.getByLabel("Password").fill(secret);
  await page.keyboard.press("Enter");
  return page;
}

const shot = (page, name) => pictured(page, `demo-${name}`);
const open = async (page, hash) => page.evaluate((to) => (location.hash = to), hash);

test("a wrong password opens nothing", async (t) => {
  const page = await logIn(t, "demo-admin", `${password}x`);
  await page.getByText("The login failed: user name or password is wrong.").waitFor();
});

test("an administrator finds every kind of page filled", async (t) => {
  const page = await logIn(t, "demo-admin", password);
  await page.getByRole("heading", { level: 1, name: "The site" }).waitFor();
  await page.getByText("Demo: the jobs of the cluster demo are invented").waitFor();
  await page.locator(".stack .part").first().waitFor();
  await page.getByRole("heading", { name: "Most unused energy" }).waitFor();
  await shot(page, "overview");

  await open(page, "#/jobs?period=720h&cluster=demo");
  await page.getByText(/^1 to 100 of [\d,]+ (units|jobs)$/).waitFor();
  for (const user of ["demo-user", "demo-ada", "demo-lin"]) await page.getByRole("gridcell", { name: new RegExp(user) }).first().waitFor();
  await shot(page, "jobs");
  await open(page, "#/jobs?period=720h&cluster=demo&heat=mem");
  await page.getByRole("grid", { name: "CPU use and Memory use" }).waitFor();
  await becomes(async () => (await page.locator(".heat .count").count()) > 15, true, "more than 15 cells have units");
  await shot(page, "heat");

  await open(page, "#/jobs?q=train-language-model&period=720h&state=COMPLETED&cluster=demo");
  const links = page.locator("tbody th a");
  await links.nth(1).waitFor();
  await page.getByRole("checkbox", { name: /^Select train/ }).nth(0).click();
  await page.getByRole("checkbox", { name: /^Select train/ }).nth(1).click();
  await page.getByRole("link", { name: "Compare", exact: true }).click();
  await page.getByRole("region", { name: "What is different" }).getByRole("rowheader", { name: "Energy", exact: true }).waitFor();
  await page.locator(".compared .line").nth(3).waitFor();
  await shot(page, "compare");
  await page.goBack();
  await links.first().click();
  await page.getByText("2 of 4 GPUs never ran a kernel").waitFor();
  await page.getByText("#SBATCH --gres=gpu:2", { exact: true }).waitFor();
  await page.locator("canvas").nth(2).waitFor();
  await shot(page, "job");

  await open(page, "#/project/demo/demo-ai");
  await page.getByRole("region", { name: "Users" }).getByRole("row", { name: /^demo-lin / }).waitFor();
  await shot(page, "project");

  await open(page, "#/budgets");
  await page.getByRole("row", { name: /^demo-fluids / }).waitFor();
  await page.getByRole("row", { name: /^demo-ai / }).waitFor();
  await shot(page, "budgets");
  await open(page, "#/idle");
  await page.getByRole("region", { name: "Idle power of reservations, last 30 days" }).getByRole("row", { name: /^demo-ai / }).waitFor();
  await shot(page, "idle");
  await open(page, "#/bill");
  await page.getByRole("heading", { level: 1, name: /^Energy bill – / }).waitFor();
  await shot(page, "bill");
});

test("a user sees their own, and nothing of the others", async (t) => {
  const page = await logIn(t, "demo-user", password, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
  await page.getByRole("heading", { level: 1, name: /^Your (units|jobs)$/ }).waitFor();
  await page.locator(".stack .part").first().waitFor();
  await shot(page, "user-phone-dark");
  await open(page, "#/jobs?period=720h");
  await page.getByText(/^1 to 20 of [\d,]+ (units|jobs)$/).waitFor();
  assert.doesNotMatch(await page.locator("tbody").innerText(), /demo-(ada|lin|grace)/);
});
