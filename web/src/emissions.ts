// Where an emission figure comes from. The API gives one sum per source; the page shows the best one and says which.

import type { MetricMap } from "./api";

export interface Source {
  key: string;
  name: string;
  method: string;
}

// From the most to the least specific to place and time. Keys that are not listed (a site's own query) come first:
// somebody chose to configure them.
const kSources: readonly Source[] = [
  { key: "rte_total", name: "RTE", method: "French grid at the time of use (RTE eCO2mix)" },
  { key: "emaps_total", name: "Electricity Maps", method: "grid of the zone at the time of use (Electricity Maps)" },
  { key: "owid_total", name: "country average", method: "yearly average of the country (Our World in Data)" },
  { key: "global_total", name: "world average", method: "yearly world average, whatever the place" },
];

export interface Emission {
  grams: number;
  source: Source;
}

/** All figures that a unit has, the one to show first. */
export function emissionsOf(map: MetricMap | undefined): Emission[] {
  if (!map) return [];
  const rank = (key: string) => kSources.findIndex((source) => source.key === key);
  return Object.entries(map)
    .filter(([, grams]) => Number.isFinite(grams))
    .sort(([a], [b]) => rank(a) - rank(b))
    .map(([key, grams]) => ({
      grams,
      source: kSources[rank(key)] ?? { key, name: key.replace(/_total$/, ""), method: `source “${key}” of the server's configuration` },
    }));
}
