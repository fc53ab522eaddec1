// The page advice.html: docs/advice.md, which says what each suggestion means, as HTML. Suggestions link to its sections.
import { readFileSync } from "node:fs";

const kSource = new URL("../docs/advice.md", import.meta.url);

const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");

/** Code, bold text and links; those lead to other documents, which are not served, so that their text is left. */
function inline(text) {
  return text
    .split(/(`[^`]+`)/)
    .map((part) =>
      part.startsWith("`") && part.length > 1
        ? `<code>${escape(part.slice(1, -1))}</code>`
        : escape(part).replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replace(/\*\*(.+?)\*\*/g, "<strong>$1</strong>"),
    )
    .join("");
}

/** The parts of Markdown that the document uses. Throws on others. */
export function html(markdown) {
  const blocks = markdown
    .replace(/^(## .*)$/gm, "$1\n")
    .replace(/^(\*\*)/gm, "\n$1")
    .split(/\n\s*\n/)
    .map((block) => block.trim())
    .filter((block) => block !== "");
  return blocks
    .map((block) => {
      const [, marks, title] = /^(#{1,2}) (.+)$/.exec(block) ?? [];
      if (marks === "#") return `<h1>${inline(title)}</h1>`;
      if (marks === "##") return `<h2 id="${escape(title)}">${inline(title)}</h2>`;
      if (/^([#>|-]|\d+\.|```)/m.test(block)) throw new Error(`docs/advice.md: web/advice.mjs knows headings and paragraphs only, got '${block.slice(0, 60)}'`);
      return `<p>${inline(block.replace(/\s*\n\s*/g, " "))}</p>`;
    })
    .join("\n");
}

export function page() {
  const markdown = readFileSync(kSource, "utf8");
  return (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n' +
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'">\n` +
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n' +
    `<title>${escape(/^# (.+)$/m.exec(markdown)[1])} – CEEMS</title>\n<link rel="stylesheet" href="advice.css">\n</head>\n<body>\n<main>\n${html(markdown)}\n</main>\n</body>\n</html>\n`
  );
}
