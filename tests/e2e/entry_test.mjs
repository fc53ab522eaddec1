// Tests how people enter the page, and what each role finds there: names, logins, the end of a session.

import assert from "node:assert/strict";
import { test } from "node:test";

import { accessible, becomes, control, focused, names, passUntil, settled, shot, url, visit } from "./stand_in.mjs";

test("asks for the user's name once and shows that user's units", async (t) => {
  const page = await visit(t, "/#/jobs");
  await page.getByRole("heading", { name: "Who are you?" }).waitFor();
  await accessible(page, "the question");
  await shot(page, "ask");
  await page.getByRole("button", { name: "Show my units" }).click();
  await becomes(() => page.getByLabel("User name").getAttribute("aria-invalid"), "true");
  await accessible(page, "the question, unanswered");
  await page.getByLabel("User name").fill("grace");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "probe" }).waitFor();
  await settled(page, ["probe"]);
  await becomes(() => page.getByLabel("Whose").count(), 0, "only administrators choose whose units they see");
  await page.reload();
  await page.getByRole("link", { name: "probe" }).waitFor();
  await page.getByText("You say you are").click();
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByRole("heading", { name: "Who are you?" }).waitFor();
});

test("takes the name from the address and removes it there", async (t) => {
  const page = await visit(t, "/ui/?user=lin#/jobs");
  await page.getByRole("link", { name: "mesh" }).waitFor();
  await becomes(async () => (await names(page).allTextContents()).sort(), ["mesh", "train-<b>bold</b>&co"], "names are text, never markup");
  await becomes(() => page.evaluate(() => location.href), `${url}/ui/#/jobs`);
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
  await becomes(() => page.getByRole("button", { name: "Change" }).count(), 0);
});

const kLogins = { header: null, local: true, oidc: "Example", site: "<b>HPC</b> centre" };

test("logs in with a password, by keyboard, and out again", async (t) => {
  const page = await visit(t, "/#/jobs", { server: { login: kLogins } });
  await page.getByRole("heading", { name: "Log in", exact: true }).waitFor();
  await page.getByText("<b>HPC</b> centre").waitFor();
  await accessible(page, "login");
  await shot(page, "login");
  await becomes(() => page.getByText("Who are you?").count(), 0, "no name is asked for if none is trusted");
  await page.getByLabel("User name").focus();
  await page.keyboard.type("ada");
  await page.keyboard.press("Tab");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("The login failed: user name or password is wrong.").waitFor();
  await becomes(() => focused(page), "password");
  await becomes(() => page.getByLabel("Password").inputValue(), "");
  await accessible(page, "a refused login");
  await page.keyboard.type("ada");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  await becomes(() => focused(page), "Compute units", "the heading has the focus");
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
  await becomes(() => page.evaluate(() => location.href), `${url}/ui/#/unit/hpc-a/48188`);
});

test("asks again when a session ends, and reports that only a proxy may send names", async (t) => {
  const page = await visit(t, "/#/jobs", { clock: true, server: { login: kLogins, proxy_user: "ada" } });
  await page.getByRole("link", { name: "lattice-qcd" }).waitFor();
  await control({ proxy_user: null });
  await passUntil(page, page.getByText("Your session has ended."));
  await control({ login: { header: null, local: false, oidc: null } });
  await page.reload();
  await page.getByRole("heading", { name: "No login available" }).waitFor();
  await accessible(page, "no way in");
});

test("leads and support choose whose units they see", async (t) => {
  const lead = await visit(t, "/#/jobs", { server: { proxy_user: "lea" } });
  await lead.getByText("(project lead)").waitFor();
  await becomes(() => lead.getByLabel("Whose").locator("option").allTextContents(), ["projects I lead", "mine"]);
  await lead.getByRole("link", { name: "mesh" }).waitFor();
  await becomes(async () => (await names(lead).allTextContents()).sort(), ["mesh", "probe", "train-<b>bold</b>&co"]);
  await accessible(lead, "units of a project");
  await lead.getByLabel("Whose").selectOption({ label: "mine" });
  await lead.getByText(/Nothing ran .* \(lea\)\./).waitFor();
  await becomes(() => lead.url(), /#\/jobs\?view=own$/);
  const support = await visit(t, "/#/jobs", { server: { proxy_user: "sue" } });
  await support.getByText("(support)").waitFor();
  await support.getByRole("link", { name: "48213" }).click();
  await support.getByRole("heading", { level: 1, name: "48213" }).waitFor();
  await support.getByText("Measurements over time are shown to the owner").waitFor();
  await becomes(() => support.getByText("/home/ada").count(), 0);
  await accessible(support, "a unit as support sees it");
});

test("finds each kind of thing with the palette, by keyboard", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.getByRole("link", { name: "lattice-qcd" }).first().waitFor();
  const field = page.getByRole("combobox", { name: /^Find / });
  for (const [text, option, address] of [
    ["4821", /lattice-qcd 48213/, /^#\/unit\/hpc-a\/48213\//],
    ["fluids", /fluids.*Project/, /^#\/project\/hpc-a\/fluids/],
    ["grace", /grace.*User/, /^#\/user\/grace/],
    ["n05", /n05.*Node/, /^#\/node\/hpc-a\/n05/],
    ["grid", /Grid.*page/, /^#\/grid/],
  ]) {
    await page.locator("main h1").first().click();
    await page.keyboard.press("/");
    await field.fill(text);
    await page.getByRole("option", { name: option }).first().waitFor();
    const wanted = await page.getByRole("option").evaluateAll((all, source) => all.findIndex((one) => new RegExp(source).test(one.textContent)), option.source);
    for (let i = 0; i < wanted; ++i) await page.keyboard.press("ArrowDown");
    await becomes(() => field.getAttribute("aria-activedescendant"), `option-${wanted}`);
    if (text === "4821") {
      await accessible(page, "the palette");
      await shot(page, "palette");
    }
    await page.keyboard.press("Enter");
    await becomes(async () => address.test(await page.evaluate(() => location.hash)), true);
    await becomes(() => page.getByRole("dialog").count(), 0);
  }
  await page.keyboard.press("Control+K");
  await field.waitFor();
  await page.keyboard.press("Escape");
  await becomes(() => page.getByRole("dialog").count(), 0);
});

test("every page that cannot be loaded says why, and has ways out", async (t) => {
  const page = await visit(t, "/?user=operator#/help/numbers");
  await page.getByRole("heading", { level: 1, name: "How the numbers are made" }).waitFor();
  await control({ mode: "error" });
  const alert = page.getByRole("alert").first();
  const ways = () => alert.getByRole("link").evaluateAll((all) => all.map((one) => `${one.textContent} ${one.getAttribute("href")}`));
  for (const [hash, expected] of [
    ["#/", ["All units #/jobs"]],
    ["#/jobs", ["Overview #/"]],
    ["#/jobs?kinds=unused", ["Overview #/"]],
    ["#/projects", ["Overview #/", "All units #/jobs"]],
    ["#/site", ["Overview #/", "All units #/jobs"]],
    ["#/nodes", ["Overview #/", "All units #/jobs"]],
    ["#/grid", ["Overview #/", "All units #/jobs"]],
    ["#/bill", ["Overview #/", "All units #/jobs"]],
    ["#/budgets", ["Overview #/", "All units #/jobs"]],
    ["#/idle", ["Overview #/", "All units #/jobs"]],
    ["#/unit/hpc-a/48190", ["Overview #/", "All units #/jobs"]],
    ["#/node/hpc-a/n05", ["Overview #/", "All units #/jobs"]],
    ["#/compare?u=hpc-a/48190&u=hpc-a/48188", ["Overview #/", "All units #/jobs"]],
  ]) {
    await page.goto(`${url}/${hash}`);
    await alert.getByRole("button", { name: "Try again" }).waitFor();
    await becomes(ways, expected, hash);
    await becomes(() => alert.innerText(), /the database is locked|500/, hash);
  }
  await control({ mode: "ok" });
  await alert.getByRole("link", { name: "All units" }).click();
  await page.getByRole("link", { name: "ocean" }).waitFor();
  await page.goto(`${url}/#/nowhere`);
  await page.getByRole("heading", { level: 1, name: "No such page" }).waitFor();
  await becomes(ways, ["Overview #/", "All units #/jobs"]);
  await accessible(page, "no such page");
});

test("a page whose session has ended has a way to log in, and back to it", async (t) => {
  const page = await visit(t, "/?user=operator#/help/numbers");
  await page.getByRole("heading", { level: 1, name: "How the numbers are made" }).waitFor();
  await control({ login: { header: null, local: true, oidc: null } }); // names are no longer enough
  const alert = page.getByRole("alert").first();
  for (const hash of ["#/", "#/site", "#/unit/hpc-a/48188"]) {
    await page.evaluate((to) => (location.hash = to), hash);
    await alert.getByText(/you are not logged in/).waitFor();
    await becomes(() => alert.getByRole("button").allTextContents(), ["Log in", "Try again"], hash);
  }
  await accessible(page, "a session that has ended");
  await alert.getByRole("button", { name: "Log in" }).press("Enter");
  await page.getByLabel("User name").fill("operator");
  await page.getByLabel("Password").fill("operator");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "mesh" }).waitFor();
});

test("the palette prints the page", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?q=mesh");
  await page.getByRole("link", { name: "mesh" }).waitFor();
  await page.evaluate(() => {
    window.printed = [];
    window.print = () => window.printed.push(document.querySelector('[role="dialog"], dialog[open]') === null);
  });
  await page.keyboard.press("Control+K");
  await page.getByRole("combobox", { name: "Find units, people, projects, nodes, pages and actions" }).fill("print");
  const wanted = page.getByRole("option", { name: "Print this page action" });
  await wanted.waitFor();
  for (let i = 0; i < 20 && (await wanted.getAttribute("aria-selected")) !== "true"; ++i) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await becomes(() => page.evaluate(() => window.printed), [true], "once, without the palette on the paper");
});

test("the palette has actions: copy the link, export, colours and language", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs?q=mesh");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("link", { name: "mesh" }).waitFor();
  await becomes(() => page.getByRole("button", { name: "Find or go to…" }).count(), 1);
  const field = page.getByRole("combobox", { name: "Find units, people, projects, nodes, pages and actions" });
  const choose = async (text, option) => {
    await becomes(() => page.getByRole("dialog").count(), 0, "the palette that was closed before");
    await page.keyboard.press("Control+K");
    await field.fill(text);
    const wanted = page.getByRole("option", { name: option });
    await wanted.waitFor();
    for (let i = 0; i < 20 && (await wanted.getAttribute("aria-selected")) !== "true"; ++i) await page.keyboard.press("ArrowDown");
    await becomes(() => wanted.getAttribute("aria-selected"), "true");
    await page.keyboard.press("Enter");
  };
  await choose("copy", "Copy the link to this page action");
  await page.getByRole("status").getByText("The link was copied.").waitFor();
  await becomes(() => page.evaluate(() => navigator.clipboard.readText()), page.url());
  await accessible(page, "an action's answer");
  await page.keyboard.press("Escape");
  const [file] = await Promise.all([page.waitForEvent("download"), choose("export", "Export as CSV action")]);
  assert.equal(file.suggestedFilename(), "units.csv");
  await becomes(() => page.getByRole("dialog").count(), 0);
  await choose("colours dark", "Colours: dark action");
  await becomes(() => page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.keyboard.press("Control+K");
  await field.fill("colours");
  await becomes(async () => (await page.getByRole("option", { name: /action$/ }).allInnerTexts()).map((text) => text.replace(/\s+/g, " ")), ["Colours: as the system action", "Colours: light action"], "not the one that is shown");
  await page.keyboard.press("Escape");
  await choose("français", "Language: Français action");
  await page.getByRole("heading", { level: 1, name: "Unités de calcul" }).waitFor();
  await page.getByRole("button", { name: "Chercher ou ouvrir…" }).click();
  await page.getByRole("combobox", { name: "Chercher unités, personnes, projets, nœuds, pages et actions" }).fill("imprimer");
  await page.getByRole("option", { name: "Imprimer cette page action" }).waitFor();
});

test("the palette of a user knows nothing of others", async (t) => {
  const page = await visit(t, "/?user=ada#/jobs");
  await page.getByRole("link", { name: "lattice-qcd" }).first().waitFor();
  await page.keyboard.press("Control+K");
  await page.getByRole("combobox", { name: /^Find / }).fill("mesh");
  await page.getByRole("option", { name: "in the list" }).waitFor();
  await becomes(() => page.getByRole("listbox", { name: "Suggestions" }).getByRole("option").count(), 1);
});
