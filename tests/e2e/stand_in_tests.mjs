// All tests with the stand-in server in one process: they share its browser and its server (stand_in.mjs).
// Environment: CEEMS_E2E_FILES, names of files without "_test.mjs", to run only those; and that of stand_in.mjs.

import { readdirSync } from "node:fs";

const kAlone = ["demo", "matrix", "real"]; // run by others, with other servers
const only = (process.env.CEEMS_E2E_FILES ?? "").split(/\s+/).filter(Boolean);
const names = readdirSync(new URL(".", import.meta.url)).sort().flatMap((file) => /^(.*)_test\.mjs$/.exec(file)?.[1] ?? []).filter((name) => !kAlone.includes(name));
const unknown = only.find((name) => !names.includes(name));
if (unknown !== undefined) throw new Error(`CEEMS_E2E_FILES: unknown name '${unknown}', expected some of: ${names.join(" ")}`);

for (const name of only.length ? only : names) await import(`./${name}_test.mjs`);
