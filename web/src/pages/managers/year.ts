// A calendar year of use.

import { dayCount, sumOf, type Days, type Field, type Usage } from "../../data/usage";
import * as format from "../../text/format";
import { t } from "../../text/i18n";

export const daysOfYear = (year: number): Days => ({ from: new Date(year, 0, 1, 12).getTime() / 1000, to: new Date(year, 11, 31, 12).getTime() / 1000 });

/** How many of the months have begun; those to come have no bar. */
export const begun = (times: readonly number[], now: number): number => times.filter((ms) => ms <= now).length;

/** What a year is compared with: the year before, or as many of its days as have ended of this one. */
export function yearBefore(year: number, usage: Usage): string {
  const days = usage.compared?.days ?? 0;
  return days > 0 && days < dayCount(daysOfYear(year)) ? t("year.sameDays", { n: days, year: String(year - 1) }) : t("year.before", { year: String(year - 1) });
}

export interface Emitted {
  kind: "location" | "market";
  grams: number | null; // null: not known of any energy
  months: number; // of which all is known
  share: number | null; // of the energy that has a factor; null: there was no energy
}

/** The emissions of the months that have begun, by the grid and by the market: their sums, and how much of the energy they are of. */
export function emittedIn(usage: Usage, count: number): Emitted[] {
  const line = (field: Field) => (usage.values[field]?.[0] ?? []).slice(0, count);
  const kwh = line("kwh");
  const all = sumOf(kwh);
  const of = (kind: Emitted["kind"], grams: Field, known: Field): Emitted => {
    const part = line(known);
    return {
      kind,
      grams: sumOf(line(grams).filter((_, i) => (kwh[i] ?? 0) > 0)),
      // Sums are rounded.
      months: kwh.filter((energy, i) => energy !== null && (part[i] ?? 0) >= 0.9999 * energy).length,
      share: all ? Math.min(1, (sumOf(part) ?? 0) / all) : null,
    };
  };
  return [of("location", "grams", "grams_of_kwh"), of("market", "market_grams", "market_of_kwh")];
}

/** Where market-based factors come from, the one for most energy first; empty: from nowhere, or an older server. */
export function marketSources(usage: Usage): string {
  const sources = [...(usage.market ?? [])].sort((a, b) => b.kwh - a.kwh);
  const inUnit = format.energies(sources.map(({ kwh }) => kwh));
  return sources.map(({ bills, source, kwh }) => (bills ? t("year.byBills", { energy: inUnit(kwh) }) : t("year.bySource", { source, energy: inUnit(kwh) }))).join("; ");
}

/** A month at its bar; `long`: with the year. Months of a server in another zone are the same months. */
export const monthText = (ms: number, long: boolean): string =>
  new Date(ms + 12 * 3600_000).toLocaleDateString(format.locale(), long ? { month: "long", year: "numeric" } : { month: "short" });
