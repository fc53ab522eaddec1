// All tests with the stand-in server in one process: they share its browser and its server (stand_in.mjs).
// Environment: CEEMS_E2E_FILES, names of files without "_test.mjs", to run only those; CEEMS_E2E_PART, 1 or 2, to run about a half of all;
// and that of stand_in.mjs.

import { readdirSync, statSync } from "node:fs";

const kAlone = ["demo", "matrix", "real"]; // run by others, with other servers
const only = (process.env.CEEMS_E2E_FILES ?? "").split(/\s+/).filter(Boolean);
const names = readdirSync(new URL(".", import.meta.url)).sort().flatMap((file) => /^(.*)_test\.mjs$/.exec(file)?.[1] ?? []).filter((name) => !kAlone.includes(name));
const unknown = only.find((name) => !names.includes(name));
if (unknown !== undefined) throw new Error(`CEEMS_E2E_FILES: unknown name '${unknown}', expected some of: ${names.join(" ")}`);

// Every other file by size, so that the parts take about the same time.
const part = Number(process.env.CEEMS_E2E_PART ?? 0);
const bytes = (name) => statSync(new URL(`${name}_test.mjs`, import.meta.url)).size;
const halves = [...names].sort((a, b) => bytes(b) - bytes(a)).filter((_, i) => !part || i % 2 === part - 1);
for (const name of only.length ? only : halves) await import(`./${name}_test.mjs`);
