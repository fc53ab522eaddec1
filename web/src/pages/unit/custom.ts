// Metrics that the site defines itself.
import type { Unit } from "../../data/api";

export interface CustomMetric {
  name: string;
  total: number | null;
  average: number | null;
  least: number | null;
  greatest: number | null;
}

/** One row for each name in any of the maps, sorted by name. */
export function customMetrics(unit: Unit): CustomMetric[] {
  const maps = [unit.total_custom_stats, unit.avg_custom_stats, unit.min_custom_stats, unit.max_custom_stats].map((map) => map ?? {});
  const names = [...new Set(maps.flatMap((map) => Object.keys(map)))].sort();
  return names.map((name) => {
    const [total = null, average = null, least = null, greatest = null] = maps.map((map) => (Object.hasOwn(map, name) ? map[name]! : null));
    return { name, total, average, least, greatest };
  });
}
