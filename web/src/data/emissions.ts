// The sources of emissions. The API returns one sum per source. The page shows the best one and names its source.

import type { MetricMap } from "./api";
import { t } from "../text/i18n";

export interface Source {
  key: string;
  name: string;
  method: string;
}

// From the most to the least specific in place and time. Keys that are not listed (a query of the site) come first,
// because somebody configured them on purpose.
const kKeys = ["rte_total", "emaps_total", "owid_total", "global_total"];

export function sourceOf(key: string): Source {
  switch (key) {
    case "rte_total":
      return { key, name: "RTE", method: t("source.rte") };
    case "emaps_total":
      return { key, name: "Electricity Maps", method: t("source.emaps") };
    case "owid_total":
      return { key, name: t("source.owidName"), method: t("source.owid") };
    case "global_total":
      return { key, name: t("source.globalName"), method: t("source.global") };
    default:
      return { key, name: key.replace(/_total$/, ""), method: t("source.own", { key }) };
  }
}

export interface Emission {
  grams: number;
  source: Source;
}

/** All emissions of a unit, starting with the one to show. */
export function emissionsOf(map: MetricMap | undefined): Emission[] {
  if (!map) return [];
  const rank = (key: string) => kKeys.indexOf(key);
  return Object.entries(map)
    .filter(([, grams]) => Number.isFinite(grams))
    .sort(([a], [b]) => rank(a) - rank(b))
    .map(([key, grams]) => ({ grams, source: sourceOf(key) }));
}
