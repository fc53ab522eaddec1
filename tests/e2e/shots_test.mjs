import { test } from "node:test";
import { readFileSync } from "node:fs";
import { shot, visit } from "./stand_in.mjs";
const source = readFileSync(new URL("./matrix_test.mjs", import.meta.url), "utf8");
const kPages = eval(/const kPages = (\[[\s\S]*?\n\]);/.exec(source)[1]);
kPages.push(["unit of 3 nodes", "#/unit/hpc-a/48213", "h1"], ["budget project", "#/project/hpc-a/fluids", ".plain tbody tr"]);
for (const [theme, width] of [["light", 1440], ["light", 1024], ["light", 390], ["dark", 1440], ["dark", 1024], ["dark", 390]])
  test(`shots ${theme} ${width}`, async (t) => {
    const page = await visit(t, "/?user=operator#/help/numbers", { server: { many: 60, gpus: width === 1440 ? 64 * 8 : 0, currency: "EUR", profiles: "ok" }, context: { colorScheme: theme, viewport: { width, height: 900 } } });
    for (const [what, hash, wanted] of kPages) {
      await page.evaluate((to) => (location.hash = to), hash);
      await page.waitForFunction((to) => location.hash === to, hash);
      await page.locator(wanted === ".devices canvas" ? ".strip" : wanted).first().waitFor();
      await page.waitForLoadState("networkidle");
      if (page.url().includes("/unit/")) { await page.evaluate(async () => { for (let y = 0; y < document.body.scrollHeight; y += 500) { scrollTo(0, y); await new Promise((r) => setTimeout(r, 60)); } scrollTo(0, 0); }); await page.waitForLoadState("networkidle"); }
      await shot(page, `${what.replaceAll(" ", "-")}-${width}-${theme}`);
    }
  });
