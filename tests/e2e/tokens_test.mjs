// Tests the page of personal tokens.

import assert from "node:assert/strict";
import { test } from "node:test";

import { accessible, becomes, fits, focused, shot, visit } from "./stand_in.mjs";

const kOld = { id: "old", user: "lea", name: "<b>cron</b>", scope: "read-led", created_ts: 0, expires_ts: 1000, used_ts: 500 };

test("a token is made, seen once, copied, listed and revoked", async (t) => {
  const page = await visit(t, "/", { server: { proxy_user: "lea", tokens: [kOld] }, context: { permissions: ["clipboard-read", "clipboard-write"] } });
  await page.getByText("Signed in as").click();
  await page.getByRole("link", { name: "Tokens" }).click();
  await page.getByRole("heading", { name: "Tokens", level: 1 }).waitFor();
  const rows = page.locator("tbody tr");
  await becomes(() => rows.count(), 1);
  await becomes(() => rows.first().textContent(), /<b>cron<\/b>.*own and led projects.*expired/s, "names are text, never markup");
  await accessible(page, "tokens");

  await page.getByRole("button", { name: "Make the token" }).click();
  await becomes(() => page.getByLabel("What it is for").getAttribute("aria-invalid"), "true");
  await becomes(() => page.evaluate(() => document.activeElement.id), "token-name");
  await page.getByLabel("What it is for").fill(" laptop ");
  await page.getByLabel("It may read").selectOption("read-led");
  await page.getByLabel("It expires after").selectOption("30");
  await page.keyboard.press("Tab");
  await page.getByRole("button", { name: "Make the token" }).click();
  await becomes(() => focused(page), "Your new token");
  const secret = `ceems_pat_${"x".repeat(43)}`;
  await becomes(() => page.locator(".secret").textContent(), secret);
  await accessible(page, "a new token");
  await shot(page, "token");
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.getByText("The token was copied.").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  await becomes(() => rows.count(), 2);
  await page.getByRole("button", { name: "I have copied it" }).click();
  await becomes(() => page.getByText(secret).count(), 0, "it is not shown again");
  await page.reload();
  await becomes(() => rows.count(), 2);
  await becomes(() => page.getByText("ceems_pat_").count(), 0);

  await page.getByRole("button", { name: "Revoke laptop" }).click();
  await page.getByText("Revoke laptop? Programs that use it are refused at once.").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await becomes(() => rows.count(), 2);
  await page.getByRole("button", { name: "Revoke laptop" }).click();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await page.getByText("laptop was revoked.").waitFor();
  await becomes(() => rows.count(), 1);
});

test("the page of tokens fits on a phone and says what the server refuses", async (t) => {
  const tokens = Array.from({ length: 20 }, (_, i) => ({ ...kOld, id: `t${i}`, user: "ada", name: `token ${i}`, used_ts: null }));
  const page = await visit(t, "/#/tokens", { server: { proxy_user: "ada", tokens }, context: { viewport: { width: 390, height: 844 } } });
  await becomes(() => page.locator("tbody tr").count(), 20);
  await becomes(() => fits(page), true);
  await becomes(() => page.getByLabel("It may read").locator("option").count(), 1, "ada leads no project");
  await page.getByLabel("What it is for").fill("one more");
  await page.getByRole("button", { name: "Make the token" }).click();
  await page.getByText("you have 20 tokens already: revoke one first").waitFor();
  await accessible(page, "a refused token");
});

test("a site without tokens offers none", async (t) => {
  const page = await visit(t, "/#/tokens", { server: { proxy_user: "ada" } });
  await page.getByText("This site does not offer tokens.").waitFor();
  await page.getByText("Signed in as").click();
  await page.getByLabel("Colours").waitFor();
  await becomes(() => page.getByRole("link", { name: "Tokens" }).count(), 0);
});
