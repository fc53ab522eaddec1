// The pictures of the page for README.md: scripts/screenshot runs this against what `make run` starts.
// Environment: CEEMS_DEMO_URL, CEEMS_DEMO_PASSWORD; CHROMIUM; CEEMS_SCREENSHOT and CEEMS_SCREENSHOT_JOB, the files to write.

import { chromium } from "playwright-core";

const { CEEMS_DEMO_URL: url, CEEMS_DEMO_PASSWORD: password, CEEMS_SCREENSHOT: path, CEEMS_SCREENSHOT_JOB: jobPath, CHROMIUM: executablePath } = process.env;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme: "light", reducedMotion: "reduce" });
  page.setDefaultTimeout(90_000);
  await page.goto(url);
  await page.getByLabel("User name").fill("demo-admin");
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "The site" }).waitFor();
  await page.locator(".stack .part").first().waitFor();
  await page.getByRole("heading", { name: "Most unused energy" }).waitFor();
  await page.evaluate(() => document.activeElement?.blur());
  await page.screenshot({ path, animations: "disabled" });

  await page.evaluate((address) => { location.hash = address; }, "#/jobs?q=train-language-model&period=720h&state=COMPLETED&cluster=demo");
  await page.locator("tbody th a").first().click();
  await page.getByText("#SBATCH --gres=gpu:2", { exact: true }).waitFor();
  await page.locator("canvas").nth(2).waitFor();
  await page.evaluate(() => document.activeElement?.blur());
  await page.screenshot({ path: jobPath, animations: "disabled" });
} finally {
  await browser.close();
}
