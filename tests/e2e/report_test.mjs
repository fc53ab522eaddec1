// Tests what the page of a unit shows of its report: suggestions, copying, saving, and that no part of it spoils the page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { accessible, becomes, control, fits, focused, passUntil, shot, url, visit } from "./stand_in.mjs";

const advice = (page) => page.getByRole("region", { name: "What to change" });
const items = (page) => advice(page).getByRole("listitem");
const said = (page) => advice(page).getByRole("status");
const reports = (page) => page.requests.filter((address) => address.includes("/units/report"));
/** What Ctrl+V writes, in the field of the palette. */
async function pasted(page) {
  await page.keyboard.press("Control+K");
  const field = page.getByRole("combobox", { name: /^Find / });
  await field.press("Control+V");
  const text = await field.inputValue();
  await page.keyboard.press("Escape");
  return text;
}

test("suggestions have their reason, a line to copy, how sure they are and what they save", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48190", { context: { viewport: { width: 1440, height: 900 }, permissions: ["clipboard-read", "clipboard-write"] } });
  await items(page).nth(2).waitFor();
  await becomes(() => items(page).count(), 3, "three at most");
  const first = () => items(page).first().innerText();
  await becomes(first, /3 of 4 GPUs never ran a kernel/);
  await becomes(first, /#SBATCH --gres=gpu:1\s+Copy\s+was --gres=gpu:4/);
  await becomes(first, /saves about 72\.6 Wh a run · seen in 8 runs\s+Why\?\s+What it means, and when it is wrong \(new tab\)$/);
  for (const item of await items(page).all()) await item.getByText("Why?", { exact: true }).click();
  await becomes(first, /Confidence: sure\. Rule: gpu-unused\. Judged from [\d.]+ % of the run\.\s+What it means/);
  await becomes(() => items(page).nth(1).innerText(), /Confidence: likely\. Rule: time-limit\./);
  const third = items(page).nth(2);
  await becomes(() => third.innerText(), /<img src=x onerror=alert\(1\)> See \{docs\} & <b>ask<\/b>\.\s+#SBATCH --comment="a<b>"\s+Copy\s+Why\?\s+Confidence: maybe\. Rule: <i>site<\/i>\./, "texts are text");
  await becomes(() => third.locator("img, b, i").count(), 0);
  await advice(page).getByText("12 Wh powered what was not used.").waitFor();
  await becomes(() => page.locator("[style]").evaluateAll((all) => all.filter((e) => !e.closest(".uplot")).length), 0, "no styles in elements");
  await accessible(page, "suggestions");
  await shot(page, "report-light");

  await advice(page).getByRole("button", { name: "Copy #SBATCH --gres=gpu:1" }).focus();
  await page.keyboard.press("Enter");
  await said(page).getByText("Copied: #SBATCH --gres=gpu:1", { exact: true }).waitFor();
  await becomes(() => focused(page), "Copy");
  await page.keyboard.press("Tab"); // to the reason
  await page.keyboard.press("Tab"); // to what it means
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await said(page).getByText("Copied: #SBATCH --time=03:00:00", { exact: true }).waitFor();
  await accessible(page, "a copied line");
  await becomes(() => pasted(page), "#SBATCH --time=03:00:00");
});

test("people say whether a suggestion helped, and change their mind; others are not asked", async (t) => {
  const page = await visit(t, "/?user=lin#/unit/hpc-a/48190");
  const groups = advice(page).getByRole("group", { name: "Was this helpful?" });
  await becomes(() => groups.count(), 2, "the suggestions that are stored");
  const pressed = () => groups.first().locator("[aria-pressed=true]").allInnerTexts();
  await becomes(pressed, []);
  await groups.first().getByRole("button", { name: "No", exact: true }).press("Enter");
  await said(page).getByText("Thank you.", { exact: true }).waitFor();
  await becomes(pressed, ["No"]);
  await groups.first().getByRole("button", { name: "Does not apply" }).click();
  await becomes(pressed, ["Does not apply"]);
  await accessible(page, "answers");
  await page.reload();
  await becomes(pressed, ["Does not apply"], "it was stored");
  await control({ answering: false });
  await groups.nth(1).getByRole("button", { name: "Yes" }).click();
  await said(page).getByText(/^The answer could not be stored \(/).waitFor();
  await becomes(() => groups.nth(1).locator("[aria-pressed=true]").count(), 0);
  const meaning = advice(page).getByRole("link", { name: "What it means, and when it is wrong (new tab)" }).first();
  assert.deepEqual(await meaning.evaluate((link) => [link.target, link.rel]), ["_blank", "noopener noreferrer"]);
  await page.goto(await meaning.evaluate((link) => link.href)); // here: what is behind a new tab is not drawn
  await page.getByRole("heading", { name: "gpu-unused", level: 2 }).waitFor();
  await accessible(page, "what suggestions mean");
  const operator = await visit(t, "/?user=operator#/unit/hpc-a/48190");
  await items(operator).nth(2).waitFor();
  await becomes(() => advice(operator).getByRole("group", { name: "Was this helpful?" }).count(), 0);
});

test("lines are copied without a clipboard interface, and selected where copying is not allowed", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs");
  await page.addInitScript(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await page.goto(`${url}/?x=1#/unit/hpc-a/48190`);
  const button = advice(page).getByRole("button", { name: "Copy #SBATCH --gres=gpu:1" });
  await button.press("Enter");
  await said(page).getByText("Copied: #SBATCH --gres=gpu:1", { exact: true }).waitFor();
  await becomes(() => focused(page), "Copy", "the focus stays");
  await becomes(() => page.locator("textarea").count(), 0);
  await becomes(() => pasted(page), "#SBATCH --gres=gpu:1");
  await page.evaluate(() => (document.execCommand = () => false));
  await button.press("Enter");
  await said(page).getByText("The browser does not allow copying. The line is selected: press Ctrl+C.").waitFor();
  await becomes(() => page.evaluate(() => String(getSelection())), "#SBATCH --gres=gpu:1");
});

test("says when there is nothing to say, and when too little was measured", async (t) => {
  const page = await visit(t, "/?user=operator#/jobs", { server: { many: 100 } });
  for (const [uuid, words, not] of [
    ["100099", "All resources were used well.\n\nThe job used 99 % of what it reserved. There is nothing to change.", /sure|likely/],
    ["100050", "Nothing to suggest: no rule found anything that would help.", /used well|measured/],
    ["48216", "Too short to judge: suggestions need a run of 5 minutes.", /used well|measured/],
    ["48188", "Partly measured: 72 % of the time is covered.", /used well|Nothing/],
    ["31007", "Not measured: use over time is unknown.\n\nNothing to suggest from the state and the time limit; the other rules need measurements.", /used well/],
    ["48213", "Suggestions are made when the unit has ended.", /used well|measured/],
  ]) {
    await page.goto(`${url}/#/unit/hpc-a/${uuid}`);
    await page.locator(".facts dd").getByText(uuid, { exact: true }).waitFor();
    await advice(page).getByRole("button", { name: "Text", exact: true }).waitFor();
    const text = async () => (await advice(page).innerText()).replace(/\n+[✓!i]+\n+/g, "\n\n").replace(/\n{2,}/g, "\n\n");
    await becomes(async () => (await text()).includes(words), true, `${uuid}: ${words}`);
    assert.doesNotMatch(await text(), not);
    await accessible(page, words);
  }
  assert.match(reports(page).at(-1), /so_far=true/);
  assert.equal(reports(page).filter((address) => address.includes("so_far")).length, 1, "only of what runs");
  await page.goto(`${url}/#/unit/hpc-a/48215`);
  await page.getByRole("heading", { level: 1, name: "waiting room" }).waitFor();
  await becomes(() => advice(page).count(), 0, "what has not started has no report");
});

test("the report card opens in a tab, and is saved where a link could not carry the name", async (t) => {
  const page = await visit(t, "/#/unit/hpc-a/48190", { server: { proxy_user: "lin" } });
  const link = advice(page).getByRole("link", { name: "Report card (new tab)" });
  const address = new URL(await link.evaluate((a) => a.href));
  assert.equal(address.pathname, "/api/v1/units/report");
  assert.equal(address.search.replace(/start=\d+/, "start="), "?cluster_id=hpc-a&uuid=48190&start=&lang=en&format=html");
  await becomes(() => link.getAttribute("rel"), "noopener noreferrer");
  const [tab] = await Promise.all([page.context().waitForEvent("page"), link.press("Enter")]);
  await tab.getByRole("heading", { name: "Job 48190" }).waitFor();
  await becomes(() => tab.locator("b").count(), 0);
  await tab.close();
  const claimed = await visit(t, "/?user=lin#/unit/hpc-a/48190");
  for (const [button, name, text] of [
    ["Report card (HTML)", "report-48190.html", "<h1>Job 48190</h1>"],
    ["Text", "report-48190.txt", "Job 48190 · final\n"],
    ["Markdown", "report-48190.md", "# Job 48190\n"],
  ]) {
    const [download] = await Promise.all([claimed.waitForEvent("download"), advice(claimed).getByRole("button", { name: button, exact: true }).press("Enter")]);
    assert.equal(download.suggestedFilename(), name);
    assert.ok(readFileSync(await download.path(), "utf8").includes(text), name);
    await said(claimed).getByText("The file is in your downloads.").waitFor();
  }
  await control({ reports: "error" });
  await advice(claimed).getByRole("button", { name: "Text", exact: true }).click();
  await said(claimed).getByText("The file could not be made: the server answered with status 503.").waitFor();
});

test("each role asks for what it may see; support sees no lines", async (t) => {
  const lead = await visit(t, "/?user=lea#/unit/hpc-a/48190");
  await items(lead).nth(2).waitFor();
  assert.match(reports(lead)[0], /\/units\/report\?/);
  const support = await visit(t, "/?user=sue#/unit/hpc-a/48190");
  await items(support).nth(2).waitFor();
  assert.match(reports(support)[0], /\/units\/report\/admin\?/);
  await becomes(() => advice(support).getByRole("button", { name: /^Copy/ }).count(), 0);
  assert.doesNotMatch(await advice(support).innerText(), /SBATCH|gres/);
});

test("without reports the part is hidden, and their failure stays in it", async (t) => {
  for (const mode of ["none", "refused"]) {
    const page = await visit(t, "/?user=operator#/unit/hpc-a/48190", { server: { reports: mode } });
    await page.locator("canvas").nth(2).waitFor();
    await advice(page).waitFor({ state: "detached" });
    assert.equal(reports(page).length, 1, mode);
    await accessible(page, mode);
  }
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48190", { server: { reports: "error" } });
  await advice(page).getByText("The suggestions could not be loaded (the TSDB is busy).").waitFor();
  await page.locator("canvas").nth(2).waitFor();
  await becomes(() => page.getByRole("alert").count(), 0);
  await accessible(page, "reports fail");
  await control({ reports: "ok" });
  await advice(page).getByRole("button", { name: "Try again" }).press("Enter");
  await items(page).nth(2).waitFor();
});

test("a report is asked for after the data of the page", async (t) => {
  const page = await visit(t, "/?user=operator#/help/numbers");
  let answer;
  const held = new Promise((resolve) => (answer = resolve));
  await page.route(/units\/series/, async (route) => {
    await held;
    await route.continue();
  });
  const asked = page.waitForRequest(/units\/series/);
  await page.goto(`${url}/#/unit/hpc-a/48190`);
  await asked;
  await page.getByText("Loading the measurements…").waitFor();
  await page.waitForTimeout(300);
  assert.deepEqual(reports(page), []);
  answer();
  await items(page).nth(2).waitFor();
});

test("a report is asked for once a minute while the unit runs, when it ends, and not again", async (t) => {
  const page = await visit(t, "/?user=operator#/unit/hpc-a/48213", { clock: true });
  await advice(page).getByText("Suggestions are made when the unit has ended.").waitFor();
  await page.clock.fastForward(30_000);
  await page.waitForTimeout(200);
  assert.equal(reports(page).length, 1, "the charts are refreshed more often");
  await passUntil(page, () => reports(page).length > 1);
  assert.ok(reports(page).every((address) => address.includes("so_far=true")));
  await control({ ended: "48213" });
  await passUntil(page, () => reports(page).some((address) => !/so_far/.test(address)));
  await advice(page).getByText("All resources were used well.").waitFor();
  const old = await visit(t, "/?user=operator#/unit/hpc-a/48190", { clock: true });
  await items(old).nth(2).waitFor();
  await old.clock.fastForward(600_000);
  await old.waitForTimeout(200);
  assert.equal(reports(old).length, 1);
});

for (const [language, title, text] of [
  ["de", "Was zu ändern ist", "3 von 4 GPUs führten nie einen Kernel aus."],
  ["fr", "Ce qu’il faut changer", "3 GPU sur 4 n'ont exécuté aucun noyau."],
]) {
  test(`suggestions are in the language of the page: ${language}`, async (t) => {
    const context = { locale: language, viewport: { width: 390, height: 844 }, colorScheme: "dark" };
    const page = await visit(t, "/?user=operator#/unit/hpc-a/48190", { context });
    await page.getByRole("region", { name: title }).getByText(text).waitFor();
    assert.match(reports(page)[0], new RegExp(`lang=${language}`));
    await becomes(() => fits(page), true, "it does not scroll sideways");
    await accessible(page, language);
    await shot(page, `report-${language}-phone-dark`);
  });
}
