import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

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

export default defineConfig({
  // Relative addresses: the page works at "/", "/ui/" and behind a proxy's prefix.
  base: "./",
  plugins: [svelte(), policy],
  build: {
    target: "es2022",
    // Five percent less than Vite's own minifier, which is what the budget of the page needs.
    minify: "terser",
    terserOptions: { module: true, ecma: 2020, compress: { passes: 2 } },
    // Data addresses would need a wider policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": "http://127.0.0.1:9020", "/login": "http://127.0.0.1:9020", "/logout": "http://127.0.0.1:9020" } },
});
