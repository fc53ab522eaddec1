// The cells of tables with up to a hundred rows. They are made here, because what Svelte keeps for each of a thousand cells takes more time and
// memory than the cells.

import { kNone, moment } from "../text/format";
import type { Column } from "./table";
import type { StateKind, Verdict } from "../data/units";

export type Content = string | Node | readonly (string | Node)[];

/** An element whose texts are texts, whatever is in them. */
export function element(name: string, attributes: Readonly<Record<string, string>>, ...content: readonly (string | Node)[]): HTMLElement {
  const made = document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]!);
  made.append(...content);
  return made;
}

/** A line below the value. */
export const note = (text: string): HTMLElement => element("span", { class: "note" }, text);

/** No value, and why. */
export const none = (why: string): HTMLElement => element("span", { class: "none", role: "img", "aria-label": why }, kNone);

/** The table makes it its stop of the Tab key. `cut`: a long text is cut, and the pointer shows it in full. */
export const link = (href: string, text: string, cut = false): HTMLElement => element("a", { href, tabindex: "-1", ...(cut ? { title: text } : {}) }, text);

/** As StateBadge.svelte. */
export const badge = (kind: StateKind | Verdict | "idle" | "warn", text: string): HTMLElement => element("span", { class: `state state-${kind}` }, text);

/** A time. The table shows it in full below the pointer. */
export const time = (ms: number, now: number): HTMLElement => element("time", { datetime: new Date(ms).toISOString() }, moment(ms, now));

export interface Body<R, K extends string> {
  rows: readonly R[];
  columns: readonly Column<K>[];
  at: number; // rows before these in the whole list
  cell: (row: R, column: Column<K>) => Content;
  share?: (row: R, column: Column<K>) => number | null; // percent: the cell has a bar
}

/** Takes the stop of the Tab key from the rows. What has the focus keeps it. */
export function releaseStop(rows: HTMLTableSectionElement): void {
  for (const stop of rows.querySelectorAll<HTMLElement>('[tabindex="0"]')) stop.tabIndex = -1;
}

/** Puts the rows of `body` into the table. Rows that were there stay, and so do cells with the same content, so that focus, selection and
 * screen readers stay where they are. No row is a stop of the Tab key afterwards. */
export function fill<R extends { key: string }, K extends string>(into: HTMLTableSectionElement, body: Body<R, K>): void {
  releaseStop(into);
  const focused = into.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
  const place = focused?.closest<HTMLTableCellElement>("th, td") ?? null;
  const old = new Map([...into.rows].map((tr) => [tr.dataset.key, tr]));
  const empty = emptyRow(body.columns);
  const rows = body.rows.map((row, i) => {
    const made = makeRow(row, body.at + i, empty, body);
    const kept = old.get(row.key);
    if (!kept || kept.cells.length !== made.cells.length) return made;
    update(kept, made);
    return kept;
  });
  if (rows.length !== into.rows.length || rows.some((tr, i) => into.rows[i] !== tr)) into.replaceChildren(...rows);
  if (focused && document.activeElement !== focused && place?.isConnected) (focused.isConnected ? focused : (place.querySelector<HTMLElement>("a") ?? place)).focus({ preventScroll: true });
}

/** What all rows have, to be copied, which takes less time than to make it. */
function emptyRow<K extends string>(columns: readonly Column<K>[]): HTMLTableRowElement {
  const tr = document.createElement("tr");
  tr.setAttribute("role", "row");
  columns.forEach((column, i) => {
    const place = { "aria-colindex": String(i + 1) };
    tr.append(
      i === 0
        ? element("th", { role: "rowheader", scope: "row", class: "p1", ...place })
        : element("td", { role: "gridcell", class: `p${column.priority}${column.numeric ? " numeric" : ""}`, "data-label": column.label, tabindex: "-1", ...place }),
    );
  });
  return tr;
}

function makeRow<R extends { key: string }, K extends string>(row: R, index: number, empty: HTMLTableRowElement, { columns, cell, share }: Body<R, K>): HTMLTableRowElement {
  const tr = empty.cloneNode(true) as HTMLTableRowElement;
  tr.dataset.key = row.key;
  tr.setAttribute("aria-rowindex", String(index + 3)); // after the heading and the sums
  let td = tr.firstElementChild as HTMLTableCellElement;
  for (const [i, column] of columns.entries()) {
    const content = cell(row, column);
    if (typeof content === "string") td.textContent = content;
    else td.append(...(content instanceof Node ? [content] : content));
    const part = i === 0 ? null : (share?.(row, column) ?? null);
    if (part !== null) {
      td.className += " meter";
      td.style.setProperty("--part", `${Math.max(0, Math.min(100, part))}%`);
    }
    if (i === 0 && !td.querySelector("a")) td.tabIndex = -1;
    td = td.nextElementSibling as HTMLTableCellElement;
  }
  return tr;
}

function update(kept: HTMLTableRowElement, made: HTMLTableRowElement): void {
  kept.setAttribute("aria-rowindex", made.getAttribute("aria-rowindex")!);
  [...made.cells].forEach((to, i) => {
    const cell = kept.cells[i]!;
    if (cell.isEqualNode(to)) return;
    cell.className = to.className;
    cell.style.cssText = to.style.cssText;
    for (const name of ["data-label", "tabindex"]) {
      const value = to.getAttribute(name);
      if (value === null) cell.removeAttribute(name);
      else cell.setAttribute(name, value);
    }
    if (cell.innerHTML !== to.innerHTML) cell.replaceChildren(...to.childNodes);
  });
}
