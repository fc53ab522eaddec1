import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

const kRooms = ["style", "text", "data", "tables", "charts", "pages", "frame"]; // each imports from those before it
const roomOf = (file: string) => (file.includes("/") ? file.split("/")[0]! : "frame");

const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => /\.(svelte|ts)$/.test(name) && !name.endsWith(".test.ts"));
const imported = new Map(
  files.map((file) => {
    const text = readFileSync(join("src", file), "utf8");
    const names = [...text.matchAll(/(?:from |import |import\()"(\.[^"]+)"/g)].map((match) => join(dirname(file), match[1]!));
    return [file, names.map((name) => [name, `${name}.ts`].find((one) => files.includes(one))).filter((name) => name !== undefined)];
  }),
);

test("no room imports from one that comes after it", () => {
  assert.deepEqual([...new Set(files.map(roomOf))].sort(), [...kRooms].sort());
  const upward = [...imported].flatMap(([file, names]) => names.filter((name) => kRooms.indexOf(roomOf(name)) > kRooms.indexOf(roomOf(file))).map((name) => `${file} -> ${name}`));
  assert.deepEqual(upward, []);
});

test("no file imports itself by way of others", () => {
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]) => {
    assert.ok(!way.includes(file), [...way, file].join(" -> "));
    if (done.has(file)) return;
    for (const name of imported.get(file)!) visit(name, [...way, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
});
