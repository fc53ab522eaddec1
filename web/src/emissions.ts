// The sources of emissions. The API returns one sum per source. The page shows the best one and names its source.

import type { MetricMap } from "./api";

export interface Source {
  key: string;
  name: string;
  method: string;
}

// From the most to the least specific in place and time. Keys that are not listed (a query of the site) come first,
// because somebody configured them on purpose.
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

/** All emissions of a unit, starting with the one to show. */
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
