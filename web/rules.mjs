// What the page calls the rules of advice that the server carries. Their files say it in all languages.
import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../data/advice/rules/", import.meta.url);

/** The texts of a language by their keys, "rule.ID", in the order of the files. Throws if a file has no such name, or one in quotes. */
export function ruleNames(language) {
  const name = new RegExp(`^name:\\n(?:  .*\\n)*?  ${language}: (.*)$`, "m");
  return Object.fromEntries(
    readdirSync(folder).sort().map((file) => {
      const text = readFileSync(new URL(file, folder), "utf8");
      const found = (pattern) => {
        const value = pattern.exec(text)?.[1] ?? "";
        if (!/^[^\s"'|>&*#]/.test(value)) throw new Error(`data/advice/rules/${file}: expected a plain text that matches ${pattern}, got '${value}'`);
        return value;
      };
      return [`rule.${found(/^id: (.*)$/m)}`, found(name)];
    }),
  );
}
