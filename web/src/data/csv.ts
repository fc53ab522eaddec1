// Tables as text for spreadsheets (RFC 4180).

/** As csv_cell() in src/base/text/cells.h. Cells that a spreadsheet would run as a formula get an apostrophe: names of jobs are anybody's text. */
export function csvCell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const text = value.replace(/^(?=[\t\r\n])/, "'").replace(/(^|[;\t\r\n])(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g, "$1'");
  return /[",;\r\n]|^ | $/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(columns: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  return [columns, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}
