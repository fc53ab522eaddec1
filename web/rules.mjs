// What the page calls the rules of advice that the server carries. Their files say it in all languages.
import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../data/advice/rules/", import.meta.url);

/** The texts of a language by their keys, "rule.ID", in the order of the files. */
export function ruleNames(language) {
  const found = (text, pattern) => pattern.exec(text)?.[1] ?? "";
  const name = new RegExp(`^name:\\n(?:  .*\\n)*?  ${language}: (.*)$`, "m");
  const texts = readdirSync(folder).sort().map((file) => readFileSync(new URL(file, folder), "utf8"));
  return Object.fromEntries(texts.map((text) => [`rule.${found(text, /^id: (.*)$/m)}`, found(text, name)]));
}
