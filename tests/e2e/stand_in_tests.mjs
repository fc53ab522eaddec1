// All tests with the stand-in server in one process: they share its browser and its server (stand_in.mjs).
// Environment: CEEMS_E2E_FILES, names of files without "_test.mjs", to run only those; and that of stand_in.mjs.

import { readdirSync } from "node:fs";

const kAlone = ["demo", "matrix", "real"]; // run by others, with other servers
const only = process.env.CEEMS_E2E_FILES?.split(/\s+/).filter(Boolean);

for (const file of readdirSync(new URL(".", import.meta.url)).sort()) {
  const name = /^(.*)_test\.mjs$/.exec(file)?.[1];
  if (name !== undefined && (only ? only.includes(name) : !kAlone.includes(name))) await import(`./${file}`);
}
