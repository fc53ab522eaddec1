import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const tokens = readFileSync("src/style/tokens.css", "utf8");
const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => /\.(css|svelte|ts)$/.test(name) && !name.endsWith(".test.ts") && name !== join("style", "tokens.css"))
  .map((name) => ({ name, lines: readFileSync(join("src", name), "utf8").split("\n") }));

/** The lines of these files in which `bad` finds something. */
const found = (of: RegExp, bad: (line: string) => unknown) =>
  files.filter(({ name }) => of.test(name)).flatMap(({ name, lines }) => lines.flatMap((line, i) => (bad(line) ? [`${name}:${i + 1}: ${line.trim()}`] : [])));

test("colours come from the tokens", () => {
  const colour = /#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\b|\b(rgba?|hsla?|hwb|lab|lch|oklab|oklch|light-dark)\(/i;
  assert.deepEqual(found(/\.css$/, (line) => colour.test(line)), []);
  assert.deepEqual(found(/\.(svelte|ts)$/, (line) => /["'`(\s:](#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8}))["'`;,)]|\b(rgba?|hsla?|light-dark)\(/i.test(line)), []);
  const named = /(?:color|background|fill|stroke|border[\w-]*|outline|shadow):.*\b(black|white|gr[ae]y|red|green|blue|yellow|orange|purple|silver|navy|teal|maroon)\b/i;
  assert.deepEqual(found(/\.css$/, (line) => named.test(line)), []);
});

test("sizes of text come from the tokens", () => {
  const size = /font(-size)?: *([^;]*)/;
  const allowed = /^(var\(--size[\w-]*\)|calc\(var\(--size[\w-]*\) \* var\(--em\)\)|inherit)$/;
  assert.deepEqual(found(/\.css$/, (line) => { const match = size.exec(line); return match && !/^\s*font-(family|weight|variant)/.test(line) && !allowed.test(match[2]!); }), []);
  assert.deepEqual(found(/\.(svelte|ts)$/, (line) => /font-size=|font(-size)?( = |: *)["'`]?\d/.test(line)), []);
  const names = new Set([...tokens.matchAll(/^ {2}(--size[\w-]*):/gm)].map((match) => match[1]));
  assert.deepEqual([...names].sort(), ["--size", "--size-drawn", "--size-large", "--size-number", "--size-small"], "three of text, two of numbers");
});

test("distances keep to a grid of 4 px, corners and large lengths to tokens", () => {
  const distance = /^\s*(padding|margin|gap|row-gap|column-gap)[\w-]*:(.*);/;
  const off = (line: string) => [...(distance.exec(line)?.[2] ?? "").matchAll(/(\d*\.?\d+)rem/g)].some((match) => (4 * Number(match[1])) % 1 !== 0);
  assert.deepEqual(found(/\.css$/, off), []);
  assert.deepEqual(found(/\.css$/, (line) => /border(-\w+)*-radius:.*[1-9]\d*(px|rem)/.test(line) && !line.includes("50%")), []);
  const large = (line: string) => !/^\s*@|^\s*\/?\*/.test(line) && [...line.replace(/\/\*.*/, "").matchAll(/(\d+)px/g)].some((match) => Number(match[1]) > 6);
  assert.deepEqual(found(/\.css$/, large), []);
});

test("every token that is used is there, and every token that is there is used", () => {
  const all = [tokens, ...files.flatMap(({ lines }) => lines)].join("\n");
  const there = new Set([...tokens.matchAll(/(--[\w-]+):/g)].map((match) => match[1]!));
  const used = new Set([...all.matchAll(/var\((--[\w-]+)/g)].map((match) => match[1]!));
  const set = new Set([...all.matchAll(/(--[\w-]+)(?::|=\{|",|":)/g)].map((match) => match[1]!));
  assert.deepEqual([...used].filter((name) => !set.has(name) && !/^--([qs]|w\d+|chart-)$/.test(name)), []);
  const drawn = /^--(q|s|chart-\w+?)\d*$/; // written as `--q${step}`, as are the widths of columns
  assert.deepEqual([...there].filter((name) => !used.has(name) && !all.includes(`"${name}"`) && !drawn.test(name)), []);
});

const schemes = ["light", "dark"] as const;
function colourOf(name: string, scheme: (typeof schemes)[number]): [number, number, number] {
  const [, value] = new RegExp(`^ {2}${name}: (.*);`, "m").exec(tokens) ?? [];
  assert.ok(value, name);
  const other = /^var\((--[\w-]+)\)$/.exec(value);
  if (other) return colourOf(other[1]!, scheme);
  const both = [...value.matchAll(/#[0-9a-f]{6}/g)].map((match) => match[0]);
  const hex = both[scheme === "dark" ? both.length - 1 : 0]!;
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as [number, number, number];
}
function contrast(a: string, b: string, scheme: (typeof schemes)[number]): number {
  const light = (name: string) => {
    const [red, green, blue] = colourOf(name, scheme).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
}

test("texts and marks have enough contrast in both schemes", () => {
  const faults: string[] = [];
  const check = (least: number, on: readonly string[], names: readonly string[]) => {
    for (const scheme of schemes) for (const ground of on) for (const name of names) {
      const value = contrast(name, ground, scheme);
      if (value < least) faults.push(`${scheme}: ${name} on ${ground}: ${value.toFixed(2)}, expected ${least}`);
    }
  };
  check(4.5, ["--page", "--paper", "--accent-soft"], ["--text", "--muted", "--accent", "--warn", "--error"]);
  check(4.5, ["--error-soft"], ["--text", "--error", "--accent"]);
  check(4.5, ["--accent"], ["--on-accent"]);
  check(4.5, ["--q1", "--q2", "--q3", "--q4"], ["--ink-low"]);
  check(4.5, ["--q5", "--q6", "--q7"], ["--ink-high"]);
  check(3, ["--page", "--paper"], ["--edge", "--fill", "--s0", "--s1", "--s2", "--s3", "--s4", "--s5"]);
  assert.deepEqual(faults, []);
});

test("the scale of quantity goes from the ground to its opposite, one step at a time", () => {
  for (const scheme of schemes) {
    const steps = [1, 2, 3, 4, 5, 6, 7].map((i) => contrast(`--q${i}`, "--paper", scheme));
    assert.deepEqual(steps, [...steps].sort((a, b) => a - b), scheme);
    steps.slice(1).forEach((value, i) => assert.ok(value / steps[i]! > 1.2, `${scheme}: steps ${i + 1} and ${i + 2}`));
  }
});
