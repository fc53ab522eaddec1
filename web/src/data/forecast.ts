// The grid in the next hours, and what a start then would emit: grid/forecast of docs/api/lists.md.

import type { Api } from "./api";
import { records } from "./fleet";

/** An hour: when it begins (ms), and g/kWh; null: not known. */
export type ForecastHour = [from: number, median: number | null, low: number | null, high: number | null];

export interface Window {
  hours: number;
  from: number; // ms
  to: number;
  begin: string; // `from` in the time zone of the server, "2031-04-05T03:00:00"
  g_kwh: number;
  low: number;
  high: number;
  next: number | null; // the same number of hours, from the next full one on
}

export interface Forecast {
  provider: string | null;
  country: string | null;
  hours: ForecastHour[];
  windows: Window[];
}

export async function forecast(api: Api, signal: AbortSignal): Promise<Forecast> {
  const { data } = await api.get<Partial<Forecast>>("grid/forecast", [], signal);
  const { provider = null, country = null, hours = [], windows = [] } = data ?? {};
  return { provider, country, hours, windows };
}

/** A unit of the user that has ended and whose energy is known. */
export interface LastUnit {
  cluster: string;
  name: string;
  hours: number;
  kwh: number;
}

const kLeastMs = 60_000; // what ends at once was a try

/** The newest one of the last 30 days that ran for a minute at least; null: there is none. */
export async function lastUnit(api: Api, now: number, signal: AbortSignal): Promise<LastUnit | null> {
  const seconds = Math.floor(now / 1000);
  const answer = await api.get<{ columns?: unknown; rows?: unknown }>(
    "units/list",
    [["from", String(seconds - 30 * 86_400)], ["to", String(seconds)], ["columns", "cluster_id,uuid,name,started,ended,kwh"], ["sort", "ended"], ["order", "desc"], ["limit", "20"]],
    signal,
  );
  for (const { cluster_id, uuid, name, started, ended, kwh } of records(answer.data)) {
    if (typeof started === "number" && typeof ended === "number" && ended - started >= kLeastMs && typeof kwh === "number" && kwh > 0) {
      return { cluster: String(cluster_id ?? ""), name: String(name ?? uuid ?? ""), hours: (ended - started) / 3600_000, kwh };
    }
  }
  return null;
}

/** The mean intensity of so many hours from this moment on, parts of hours included; null: not all of them are known. */
export function meanFrom(hours: readonly ForecastHour[], from: number, length: number): number | null {
  const end = from + length * 3600_000;
  let [sum, known] = [0, 0];
  for (const [begin, median] of hours) {
    const part = Math.min(end, begin + 3600_000) - Math.max(from, begin);
    if (part > 0 && median !== null) [sum, known] = [sum + part * median, known + part];
  }
  return length > 0 && known >= end - from - 1 ? sum / known : null;
}

/** What makes a job wait until then, as the manager of the cluster has it; null: it has no such line. `begin` is in the server's time zone. */
export function beginLine(manager: string, begin: string): string | null {
  const [, year, month, day, hour, minute] = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)/.exec(begin) ?? [];
  if (minute === undefined) return null;
  switch (manager) {
    case "slurm":
      return `#SBATCH --begin=${year}-${month}-${day}T${hour}:${minute}`;
    case "lsf":
      return `#BSUB -b ${year}:${month}:${day}:${hour}:${minute}`;
    case "openpbs":
      return `#PBS -a ${year}${month}${day}${hour}${minute}`;
    default:
      return null;
  }
}
