// What a job has marked (docs/marks.md), from its report: phases of its program, and joules for each result. Names are anybody's text.

import * as format from "../../text/format";
import { t } from "../../text/i18n";
import { plain } from "./report";

export interface Phase {
  name: string;
  count: number | null; // how often it ended
  seconds: number | null; // on the node that took longest
  share: number | null; // of the run, 0 to 1
  kwh: number | null; // with the phases within it
  selfKwh: number | null; // without them
  watts: number | null; // mean of a node
  slowest: string; // the node that took longest, of several
  longer: number | null; // than the mean of the nodes, as a share
}

export interface Result {
  name: string;
  unit: string;
  n: number;
  joules: number | null; // of the whole run, for each
  familyJoules: number | null; // the median of earlier runs
  family: { uuid: string; started: number; joules: number }[]; // the newest first
}

export interface Merit {
  name: string;
  unit: string;
  last: number;
  mean: number | null;
}

export interface Marks {
  phases: Phase[]; // the longest first
  results: Result[];
  merits: Merit[];
  kwh: number | null; // of the whole run
}

const kMaxName = 40;
const kMaxMarks = 32;
/** Fewer earlier runs may be alike by chance. */
const kMinFamily = 4;

const object = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {});
const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
const amount = (value: unknown): number | null => {
  const found = number(value);
  return found !== null && found >= 0 ? found : null;
};
const name = (value: unknown): string => (typeof value === "string" ? plain(value, kMaxName) : "");

function each<T>(list: unknown, read: (one: Record<string, unknown>) => T | null): T[] {
  return (Array.isArray(list) ? list.slice(0, kMaxMarks) : []).flatMap((one) => read(object(one)) ?? []);
}

function earlier(one: Record<string, unknown>): Result["family"][number] | null {
  const [started, joules] = [amount(one.started_at_ts), amount(one.joules_per)];
  return typeof one.uuid === "string" && one.uuid !== "" && started !== null && joules !== null ? { uuid: one.uuid, started, joules } : null;
}

/** null if there are no marks. */
export function readMarks(data: unknown): Marks | null {
  const first = object(Array.isArray(data) ? data[0] : null);
  const phases = each<Phase>(first.phases, (one) =>
    name(one.region) === ""
      ? null
      : {
          name: name(one.region), count: amount(one.count), seconds: amount(one.seconds), share: amount(one.share), kwh: amount(one.kwh), selfKwh: amount(one.self_kwh), watts: amount(one.watts),
          slowest: name(one.slowest), longer: amount(one.longer),
        },
  );
  const results = each<Result>(first.results, (one) => {
    const n = amount(one.n);
    return name(one.result) === "" || n === null ? null : { name: name(one.result), unit: name(one.unit), n, joules: amount(one.joules_per), familyJoules: amount(one.family_joules_per), family: each(one.family, earlier) };
  });
  const merits = each<Merit>(first.fom, (one) => {
    const last = number(one.last);
    return name(one.fom) === "" || last === null ? null : { name: name(one.fom), unit: name(one.unit), last, mean: number(one.mean) };
  });
  return phases.length + results.length + merits.length === 0 ? null : { phases, results, merits, kwh: amount(object(first.energy).kwh) };
}

export interface Part {
  phase: number | null; // null: outside of all phases
  x: number; // percent of the bar
  width: number;
}

/** The energy of the run by phase: each joule once, in the innermost phase. None where the energy of no phase is known. */
export function partsOf(marks: Marks): Part[] {
  const known = marks.phases.reduce((sum, phase) => sum + (phase.selfKwh ?? 0), 0);
  const whole = Math.max(known, marks.kwh ?? 0);
  if (known <= 0) return [];
  let x = 0;
  const parts: Part[] = [];
  const add = (phase: number | null, kwh: number) => {
    const width = (100 * kwh) / whole;
    if (width > 0) parts.push({ phase, x, width });
    x += width;
  };
  marks.phases.forEach((phase, i) => add(i, phase.selfKwh ?? 0));
  // Digits that were rounded away are not energy outside of phases.
  if (whole - known > 0.005 * whole) add(null, whole - known);
  return parts;
}

/** What is counted: "step", or "ns (simulated)". */
export const wordOf = ({ name, unit }: Pick<Result, "name" | "unit">): string => (unit === "" ? name : `${unit} (${name})`);

/** "0.42 kWh per 1,000 step": of so many that it is at least a watt-hour. */
export function perResult(result: Result): string {
  const each = (result.joules ?? 0) / format.kJoulesPerKwh;
  const many = [1, 1e3, 1e6].find((n) => each * n >= 1e-3) ?? 1e6;
  const energy = format.energy(each * many);
  return many === 1 ? t("marks.per", { energy, result: wordOf(result) }) : t("marks.perMany", { energy, count: format.whole(many), result: wordOf(result) });
}

export interface TrendBar {
  height: number; // of kTrendHeight
  words: string;
  run: { uuid: string; started: number } | null; // null: this run
}
export const kTrendHeight = 32;

/** The joules of a result over the last runs, the oldest first and this one last; empty if there are no others. */
export function trendOf({ joules, family }: Result, now: number): TrendBar[] {
  if (joules === null || family.length === 0) return [];
  const most = Math.max(joules, ...family.map((one) => one.joules)) || 1;
  const bar = (value: number, when: string, run: TrendBar["run"]): TrendBar => ({ height: Math.max(2, Math.round((kTrendHeight * value) / most)), words: `${when}: ${format.energy(value / format.kJoulesPerKwh)}`, run });
  return [...[...family].reverse().map((one) => bar(one.joules, format.moment(one.started, now), { uuid: one.uuid, started: one.started })), bar(joules, t("history.this"), null)];
}

/** Against earlier runs of the same kind; empty if there are too few of them. */
export function comparedResult({ joules, familyJoules, family }: Result): string {
  if (joules === null || familyJoules === null || familyJoules <= 0 || family.length < kMinFamily) return "";
  const share = Math.round(100 * (joules / familyJoules - 1));
  const values = { share: format.percent(Math.abs(share)), runs: format.whole(family.length) };
  return t(share === 0 ? "marks.same" : share < 0 ? "marks.less" : "marks.more", values);
}

/** The results that all runs have, in the order of the first: the joules of each run. */
export function commonResults(runs: readonly (Marks | null)[]): { word: string; joules: number[] }[] {
  return (runs[0]?.results ?? []).flatMap((result) => {
    const joules = runs.map((marks) => marks?.results.find((other) => other.name === result.name && other.unit === result.unit)?.joules ?? null);
    return joules.every((one) => one !== null) ? [{ word: wordOf(result), joules: joules as number[] }] : [];
  });
}
