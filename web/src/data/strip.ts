// What a unit used over its life, in parts of the same length: docs/api/lists.md.

export const kStripParts = 24;

/** Percent of what was reserved; null: not known. */
export type StripLine = (number | null)[];
export interface Strip {
  cpu: StripLine;
  gpu: StripLine | null;
}

const kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/** null: nothing is known, or the text is another one. */
export function readStrip(text: string): Strip | null {
  if (!/^[\w.-]{24}(?:[\w.-]{24})?$/.test(text)) return null;
  const line = (from: number): StripLine =>
    [...text.slice(from, from + kStripParts)].map((digit) => (digit === "." ? null : (100 * kDigits.indexOf(digit)) / (kDigits.length - 1)));
  return { cpu: line(0), gpu: text.length > kStripParts ? line(kStripParts) : null };
}

export interface StripSummary {
  mean: number;
  low: number;
  high: number;
  unknown: number; // parts
}

/** null: no part is known. */
export function summaryOf(line: StripLine): StripSummary | null {
  const known = line.filter((part) => part !== null);
  if (known.length === 0) return null;
  return { mean: known.reduce((a, b) => a + b, 0) / known.length, low: Math.min(...known), high: Math.max(...known), unknown: line.length - known.length };
}

/** Bars in a box of 4 units a part times `height`, as the outline of an SVG path. Parts that are not known have none; others at least a line. */
export function barsOf(line: StripLine, height: number): string {
  return line
    .flatMap((part, i) => {
      if (part === null) return [];
      const y = Math.round(10 * Math.max(0.6, (Math.min(part, 100) / 100) * height)) / 10;
      return [`M${4 * i} ${height}v-${y}h3.4v${y}z`];
    })
    .join("");
}
