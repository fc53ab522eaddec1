// Spans of days: what lists and sums are of, and how an address says it.

export type Period =
  | { kind: "hours"; hours: number } // the last hours
  | { kind: "month"; back: number } // a calendar month: 0 the current one, 1 the last one
  | { kind: "custom"; from: number; to: number } // seconds since 1970
  | { kind: "all" };

/** A calendar month; null: the current one. */
export interface Month {
  year: number;
  month: number; // 1 to 12
}

/** What the page of a year has rows of. */
export const kYearGroups = ["project", "user", "cluster"] as const;
export type YearGroup = (typeof kYearGroups)[number];

export function readMonth(text: string | null): Month | null {
  const match = /^([1-9]\d{3})-(0[1-9]|1[0-2])$/.exec(text ?? "");
  return match ? { year: Number(match[1]), month: Number(match[2]) } : null;
}

export function writeMonth(month: Month | null): string {
  return month === null ? "" : `?month=${monthText(month)}`;
}

export function monthText({ year, month }: Month): string {
  return `${year}-${String(month).padStart(2, "0")}`;
}

export function readPeriod(query: URLSearchParams): Period | null {
  const from = positive(query.get("from") ?? "");
  const to = positive(query.get("to") ?? "");
  if (from !== null && to !== null && Number.isInteger(from) && Number.isInteger(to) && from < to) return { kind: "custom", from, to };
  const text = query.get("period") ?? "";
  if (text === "month") return { kind: "month", back: 0 };
  if (text === "all") return { kind: "all" };
  if (text === "last-month") return { kind: "month", back: 1 };
  const match = /^([1-9]\d{0,4})h$/.exec(text);
  return match ? { kind: "hours", hours: Number(match[1]) } : null;
}

export function writePeriod(period: Period, query: URLSearchParams, always = false): void {
  if (period.kind === "custom") {
    query.set("from", String(period.from));
    query.set("to", String(period.to));
  } else if (period.kind === "month") {
    query.set("period", period.back === 0 ? "month" : "last-month");
  } else if (period.kind === "all") {
    query.set("period", "all");
  } else if (always || period.hours !== 24) {
    query.set("period", `${period.hours}h`);
  }
}

const kQuarter = 900; // s

/** The period in seconds. Rounded outwards to 15 minutes, so that the same question is asked until the next quarter of an hour and the
 * server can answer that nothing has changed. A minute ahead, because the clocks may differ. */
export function windowOf(period: Period, now: number): { from: number; to: number } {
  const until = Math.ceil((now / 1000 + 60) / kQuarter) * kQuarter;
  if (period.kind === "hours") return { from: Math.floor((now / 1000 - period.hours * 3600) / kQuarter) * kQuarter, to: until };
  if (period.kind === "custom") return { from: period.from, to: period.to };
  if (period.kind === "all") return { from: 1, to: until };
  const today = new Date(now);
  const start = (back: number) => new Date(today.getFullYear(), today.getMonth() - back, 1).getTime() / 1000;
  return { from: start(period.back), to: period.back === 0 ? until : start(period.back - 1) };
}

export function positive(text: string | undefined): number | null {
  const number = Number(text);
  return Number.isFinite(number) && number > 0 ? number : null;
}
