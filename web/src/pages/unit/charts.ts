// The charts of a unit's page: what units/series calls them, and how their values are written.

import type { Series, Unit } from "../../data/api";
import { lowSince, type Strip } from "../../charts/strips";
import * as format from "../../text/format";
import { t, type Key } from "../../text/i18n";

export interface ChartKind {
  name: string;
  title: Key;
  axis: Key;
  what: Key; // in a sentence
  binary: boolean;
  colour: "cpu" | "memory" | "power";
  text: (value: number) => string;
}

const cores = (value: number): string => t(value === 1 ? "unit.core" : "unit.cores", { value: format.number3(value) });
const perSecond = (value: number): string => `${format.bytes(value)}/s`;
const hertz = (value: number): string => `${format.number3(value / 1e6)} MHz`;

const chart = (name: string, title: Key, axis: Key, text: ChartKind["text"], colour: ChartKind["colour"], binary = false, what = title): ChartKind => ({ name, title, axis, what, binary, colour, text });

export const kCharts: readonly ChartKind[] = [
  chart("cpu", "unit.cpu", "unit.cpuAxis", cores, "cpu", false, "unit.cpuWhat"),
  chart("memory", "unit.memory", "unit.memoryAxis", format.bytes, "memory", true, "unit.memoryWhat"),
  chart("power", "unit.power", "unit.powerAxis", format.power, "power", false, "unit.powerWhat"),
];

const kOfGpus: readonly ChartKind[] = [
  chart("gpu_memory", "unit.gpu_memory", "unit.memoryAxis", format.bytes, "memory", true),
  chart("gpu_power", "unit.gpu_power", "unit.powerAxis", format.power, "power"),
  chart("gpu_sm", "unit.gpu_sm", "unit.meanOfGpus", format.percent, "cpu"),
  chart("gpu_clock", "unit.gpu_clock", "unit.meanOfGpus", hertz, "cpu"),
];

const kGpuUse = chart("gpu_use", "range.gpu", "unit.meanOfGpus", format.percent, "cpu");

/** What the row of a node shows. */
export const nodeCharts = (unit: Unit): readonly ChartKind[] => (hasGpus(unit) ? [kGpuUse, ...kCharts] : kCharts);

const kOthers: readonly ChartKind[] = [
  chart("io_read", "unit.io_read", "unit.perSecond", perSecond, "memory", true),
  chart("io_write", "unit.io_write", "unit.perSecond", perSecond, "memory", true),
  chart("net_in", "unit.net_in", "unit.perSecond", perSecond, "memory", true),
  chart("net_out", "unit.net_out", "unit.perSecond", perSecond, "memory", true),
  chart("psi_cpu", "unit.psi_cpu", "unit.ofTime", format.percent, "cpu"),
  chart("psi_memory", "unit.psi_memory", "unit.ofTime", format.percent, "memory"),
  chart("ipc", "unit.ipc", "unit.ipcAxis", format.number3, "cpu"),
];

/** Whether the unit was given GPUs, or used some. */
export function hasGpus(unit: Unit): boolean {
  const { gpus, vgpus } = (unit.allocation ?? {}) as { gpus?: unknown; vgpus?: unknown };
  return [gpus, vgpus].some((n) => typeof n === "number" && n > 0) || unit.avg_gpu_usage?.global !== undefined || (unit.total_gpu_energy_usage_kwh?.total ?? 0) > 0;
}

export const moreCharts = (unit: Unit): readonly ChartKind[] => [...(hasGpus(unit) ? kOfGpus : []), ...kOthers];

/** What power is made of, from the lowest part of the stack to the highest. */
export function powerParts(series: readonly Series[]): { label: string; series: Series }[] {
  const kParts: Record<string, Key> = { gpu: "unit.partGpu", package: "unit.partPackage", dram: "unit.partDram", other: "unit.partOther" };
  return Object.entries(kParts).flatMap(([domain, key]) => {
    const found = series.find((one) => one.labels?.domain === domain);
    return found ? [{ label: t(key), series: found }] : [];
  });
}

const kIdleGpu = 0.5; // percent: less is none
const kIdleMs = 10 * 60_000;

/** The GPUs that do nothing now, and for how long, in words. */
export function idleNow(strips: readonly Strip[]): string[] {
  return strips.flatMap((strip) => {
    const since = strip.labels.quantile === undefined ? lowSince(strip, kIdleGpu) : null;
    const ms = since === null ? 0 : strip.track.times.at(-1)! - since;
    return ms >= kIdleMs ? [t("unit.idleNow", { gpu: stripLabel(strip, hostsOf(strips)), time: format.duration(Math.round(ms / 60_000) * 60) })] : [];
  });
}

const kQuantiles: Record<string, Key> = { "0": "unit.quantile0", "0.25": "unit.quantile0.25", "0.5": "unit.quantile0.5", "0.75": "unit.quantile0.75", "1": "unit.quantile1" };

/** Which device a strip is of: its host only where there are several. */
export function stripLabel(strip: Strip, hosts: number): string {
  const { quantile, hostname = "", index = "", gpuuuid = "", gpuiid = "" } = strip.labels;
  const words = kQuantiles[quantile ?? ""];
  if (words) return t(words);
  const device = (index || gpuuuid) + (gpuiid && index !== gpuiid ? `/${gpuiid}` : "");
  return hosts > 1 ? t("unit.gpuOn", { host: hostname, index: device }) : t("unit.gpuAlone", { index: device });
}

export const hostsOf = (strips: readonly Strip[]): number => new Set(strips.map((strip) => strip.labels.hostname)).size;

/** The charts that nothing measures here, with the collector that would. */
export function notCollected(kinds: readonly ChartKind[], series: readonly Series[]): string {
  const byCollector = new Map<string, string[]>();
  for (const kind of kinds) {
    const line = series.find((one) => one.name === kind.name);
    if (line?.none !== "not_collected") continue;
    const collector = line.collector ?? "";
    byCollector.set(collector, [...(byCollector.get(collector) ?? []), t(kind.title)]);
  }
  return [...byCollector].map(([collector, titles]) => (collector === "" ? titles.join(", ") : t("unit.byCollector", { charts: titles.join(", "), collector }))).join("; ");
}
