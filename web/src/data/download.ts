/** Gives a file to the browser's downloads. */
export function download(content: Blob | string, name: string): void {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type: "text/csv" }) : content);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
}
