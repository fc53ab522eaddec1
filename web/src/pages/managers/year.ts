// A calendar year of use.

import { dayCount, type Days, type Usage } from "../../data/usage";
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

/** A month at its bar; `long`: with the year. Months of a server in another zone are the same months. */
export const monthText = (ms: number, long: boolean): string =>
  new Date(ms + 12 * 3600_000).toLocaleDateString(format.locale(), long ? { month: "long", year: "numeric" } : { month: "short" });
