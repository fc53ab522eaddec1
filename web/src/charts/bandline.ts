// The geometry of a line with a band around it.

import type { ForecastHour } from "../data/forecast";

type Known = [from: number, median: number, low: number, high: number];
const isKnown = (hour: ForecastHour): hour is Known => hour[1] !== null && hour[2] !== null && hour[3] !== null;

/** Paths of the line and of the band, in steps: a value holds for its hour. Gaps are where a value is not known. */
export function bandPaths(hours: readonly ForecastHour[], x: (ms: number) => number, y: (value: number) => number): { line: string; band: string } {
  let [line, band] = ["", ""];
  const point = (ms: number, value: number) => `${x(ms).toFixed(1)} ${y(value).toFixed(1)}`;
  for (let i = 0; i < hours.length; ) {
    const run: Known[] = [];
    for (let hour = hours[i]; hour && isKnown(hour); hour = hours[++i]) run.push(hour);
    if (run.length === 0) {
      ++i;
      continue;
    }
    const steps = (value: (hour: Known) => number) => run.flatMap((hour) => [point(hour[0], value(hour)), point(hour[0] + 3600_000, value(hour))]);
    line += `M${steps((hour) => hour[1]).join("L")}`;
    band += `M${steps((hour) => hour[3]).join("L")}L${steps((hour) => hour[2]).reverse().join("L")}Z`;
  }
  return { line, band };
}
