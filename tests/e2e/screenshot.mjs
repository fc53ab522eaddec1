// The pictures of the page for README.md: scripts/screenshot runs this against what `make run` starts.
// Environment: CEEMS_DEMO_URL, CEEMS_DEMO_PASSWORD; CHROMIUM; CEEMS_SCREENSHOTS, the folder to write to.

import { chromium } from "playwright-core";

const { CEEMS_DEMO_URL: url, CEEMS_DEMO_PASSWORD: password, CEEMS_SCREENSHOTS: folder, CHROMIUM: executablePath } = process.env;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme: "light", reducedMotion: "reduce" });
  page.setDefaultTimeout(90_000);
  const shot = async (name) => {
    await page.waitForLoadState("networkidle");
    await page.evaluate(() => document.activeElement?.blur());
    await page.screenshot({ path: `${folder}/${name}.png`, animations: "disabled" });
  };
  const go = (hash) => page.evaluate((to) => { location.hash = to; }, hash);

  await page.goto(url);
  await page.getByLabel("User name").fill("demo-admin");
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "The site" }).waitFor();
  await page.locator(".stack .part").first().waitFor();
  await page.getByRole("heading", { name: "Most unused energy" }).waitFor();
  await shot("page");

  await go("#/jobs?kinds=not_used&period=720h&cluster=demo");
  await page.getByRole("link", { name: "train-language-model" }).waitFor();
  await shot("kinds");

  await go("#/jobs?q=train-language-model&period=720h&state=COMPLETED&cluster=demo");
  await page.locator("tbody th a").first().click();
  await page.getByText("#SBATCH --gres=gpu:2", { exact: true }).waitFor();
  await page.locator("canvas").nth(2).waitFor();
  await shot("job");

  await go("#/nodes?show=map&cluster=demo");
  await page.locator(".nodemap text").nth(20).waitFor();
  await shot("nodes");

  await go("#/grid");
  await page.locator(".bandline path").first().waitFor();
  await shot("grid");

  await go("#/bill");
  await page.getByText("Utility meter").first().waitFor();
  await page.locator(".stack .part").first().waitFor();
  await shot("bill");
} finally {
  await browser.close();
}
