import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

import { page as advicePage } from "./advice.mjs";
import { ruleNames } from "./rules.mjs";

// The page as served by the API server loads nothing from elsewhere and runs no inline code; it says so itself, so that
// a proxy that drops headers changes nothing. Not in the development server, which injects inline style sheets.
const policy: Plugin = {
  name: "content-security-policy",
  apply: "build",
  transformIndexHtml: () => [
    {
      tag: "meta",
      injectTo: "head-prepend",
      attrs: {
        "http-equiv": "Content-Security-Policy",
        content:
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
          "base-uri 'none'; form-action 'none'",
      },
    },
  ],
};

// The first file of each language also has the names of rules. All languages have the keys of English, which the page has anyway:
// other files are lists of texts in that order (i18n.ts).
const locales: Plugin = {
  name: "texts",
  enforce: "pre",
  transform(code, id) {
    const [, place, part, language] = /^(.*\/locales\/)(\w+\.)?(\w+)\.json$/.exec(id) ?? [];
    if (place === undefined || language === undefined) return null;
    const complete = (json: string, of: string) => ({ ...(JSON.parse(json) as Record<string, unknown>), ...(part ? {} : ruleNames(of)) });
    const texts = complete(code, language);
    if (language === "en") return { code: JSON.stringify(texts), map: null };
    const english = complete(readFileSync(`${place}${part ?? ""}en.json`, "utf8"), "en");
    return { code: JSON.stringify(Object.keys(english).map((key) => texts[key] ?? null)), map: null };
  },
};

const advice: Plugin = {
  name: "advice",
  apply: "build",
  generateBundle() {
    this.emitFile({ type: "asset", fileName: "advice.html", source: advicePage() });
  },
};

/** What the first view needs, in one file: that compresses a tenth better than many. */
function together(id: string, { getModuleInfo }: { getModuleInfo: (id: string) => { importedIds: readonly string[] } | null }): string | undefined {
  const add = (one: string) => {
    if (first.has(one)) return;
    first.add(one);
    getModuleInfo(one)?.importedIds.forEach(add);
  };
  add(fileURLToPath(new URL("src/main.ts", import.meta.url)));
  if (first.has(id)) return "first";
  return kLists.test(id) ? "lists" : undefined;
}
const kLists = /\/src\/(tables\/DataTable\.svelte|tables\/cells\.ts|data\/download\.ts)$/; // every page with a long list has all of them
const first = new Set<string>();

export default defineConfig({
  // Relative addresses: the page works at "/", "/ui/" and behind a proxy's prefix.
  base: "./",
  plugins: [svelte(), policy, locales, advice],
  build: {
    target: "es2022",
    // Five percent less than Vite's own minifier, which is what the budget of the page needs.
    minify: "terser",
    terserOptions: { module: true, ecma: 2020, compress: { passes: 2 } },
    // Data addresses would need a wider policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { output: { manualChunks: together } },
  },
  server: { proxy: { "/api": "http://127.0.0.1:9020", "/login": "http://127.0.0.1:9020", "/logout": "http://127.0.0.1:9020" } },
});
