// The slow GPUs and nodes of a large job (docs/fleet.md), in sentences. Names of nodes and causes are anybody's text.

import type { Query, Unit } from "../../data/api";
import * as format from "../../text/format";
import { t } from "../../text/i18n";
import { plain } from "./report";

const kLeastNodes = 4; // a smaller job has too few peers,
const kLeastGpus = 8; // unless it has so many GPUs
const kMaxRows = 8;

export interface Straggler {
  node: string;
  device: string; // empty: the node, or all of its GPUs
  kind: "slow_device" | "imbalance" | "waits" | "fabric_or_disk";
  deviation: number | null; // share: -0.11
  cause: string;
  yours: boolean | null; // the program is the cause
  waiting: number | null; // kWh, at most
}

/** Only such jobs are asked for. */
export function isLarge(unit: Unit): boolean {
  const count = (key: string): number => Number(unit.allocation?.[key] ?? 0) || 0;
  return Boolean(unit.started_at_ts) && (count("nodes") >= kLeastNodes || count("gpus") >= kLeastGpus);
}

export function stragglersQuery(unit: Unit): Query {
  const query: Query = [
    ["cluster_id", unit.cluster_id ?? ""],
    ["uuid", unit.uuid],
  ];
  if (unit.started_at_ts) query.push(["start", String(unit.started_at_ts)]);
  return query;
}

const kKinds: readonly string[] = ["slow_device", "imbalance", "waits", "fabric_or_disk"];

function rowOf(value: unknown): Straggler | null {
  const row = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const text = (name: string): string => (typeof row[name] === "string" ? plain(row[name], 64) : "");
  const number = (name: string): number | null => (typeof row[name] === "number" && Number.isFinite(row[name]) ? row[name] : null);
  const kind = text("kind");
  if (text("node") === "" || !kKinds.includes(kind)) return null;
  return {
    node: text("node"),
    device: text("device"),
    kind: kind as Straggler["kind"],
    deviation: number("deviation"),
    cause: text("cause"),
    yours: typeof row["your_code"] === "boolean" ? row["your_code"] : null,
    waiting: number("waiting_kwh_max"),
  };
}

export function readStragglers(data: unknown): Straggler[] {
  return (Array.isArray(data) ? data : [])
    .map(rowOf)
    .filter((row): row is Straggler => row !== null)
    .slice(0, kMaxRows);
}

const kCauses = {
  hardware_thermal: "slow.heat",
  software_thermal: "slow.heat",
  power_cap: "slow.cap",
  power_brake: "slow.brake",
  ecc: "slow.memory",
  symbol_error: "slow.link",
  link_error_recovery: "slow.link",
  link_downed: "slow.link",
  local_link_integrity_errors: "slow.link",
} as const;

const causeOf = (name: string): string => (Object.hasOwn(kCauses, name) ? t(kCauses[name as keyof typeof kCauses]) : name);

/** "g14, GPU 3 runs 11 % below its peers: heat. Not your code." */
export function sentenceOf(row: Straggler): string {
  const who = row.device === "" ? row.node : t("slow.gpu", { node: row.node, device: row.device });
  const share = format.percent(100 * Math.abs(row.deviation ?? 0));
  const what =
    row.deviation === null
      ? t("slow.errors", { who })
      : row.kind === "slow_device"
        ? t("slow.runs", { who, share })
        : row.kind === "imbalance"
          ? t("slow.more", { who, share })
          : t("slow.less", { who, share });
  const parts = [row.cause === "" ? `${what}.` : t("slow.because", { what, cause: causeOf(row.cause) })];
  if (row.yours === false) parts.push(t("slow.notYours"));
  if (row.waiting !== null && row.waiting > 0) parts.push(t("slow.waiting", { energy: format.energy(row.waiting) }));
  return parts.join(" ");
}
