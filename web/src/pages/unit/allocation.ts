// What a unit was given and had asked for, in words: the keys of `allocation` (docs/api/database.md).

import type { Unit } from "../../data/api";
import * as format from "../../text/format";
import { t } from "../../text/i18n";

export interface Given {
  key: string;
  name: string;
  value: string;
}

const kMiB = 2 ** 20;
const kNames = { cpus: "fact.cpus", vcpus: "fact.cpus", gpus: "fact.gpus", vgpus: "fact.gpus", nodes: "fact.nodes", billing: "fact.billing" } as const;

/** Under which heading it is shown. */
export function groupOf(key: string): "request" | "times" | "place" | "energy" {
  if (key === "eligible" || key === "restarts") return "times";
  if (key === "array_task") return "place";
  return key === "consumed_energy" ? "energy" : "request";
}

/** What the manager k8s says of a pod without limits. */
const unlimited = (unit: Unit, key: string, value: unknown): boolean =>
  unit.resource_manager === "k8s" && ((key === "vcpus" && value === 0.001) || (key === "mem" && value === 1));

function given(unit: Unit, key: string, value: number): Omit<Given, "key"> | null {
  switch (key) {
    case "mem": // OpenStack counts in MiB
      return { name: t("fact.given", { what: t("fact.mem") }), value: format.bytes(unit.resource_manager === "openstack" ? value * kMiB : value) };
    case "req_mem":
      return { name: t("fact.asked", { what: t("fact.mem") }), value: format.bytes(value) };
    case "req_cpus":
      return { name: t("fact.asked", { what: t("fact.cpus") }), value: format.number3(value) };
    case "time_limit":
      return { name: t("fact.timeLimit"), value: format.duration(value) };
    case "eligible":
      return { name: t("fact.eligible"), value: format.momentInFull(value) };
    case "restarts":
      return { name: t("fact.restarts"), value: format.whole(value) };
    case "consumed_energy":
      return { name: t("fact.consumed"), value: format.energy(value / format.kJoulesPerKwh) };
    case "array_job":
      return null; // beside its task
    case "array_task":
      return { name: t("fact.arrayTask"), value: `${String(unit.allocation?.array_job ?? "")}_${value}` };
    default:
      return { name: t("fact.given", { what: key in kNames ? t(kNames[key as keyof typeof kNames]) : key }), value: format.number3(value) };
  }
}

/** Managers report 0 for what was not asked for. */
export function allocationOf(unit: Unit): Given[] {
  return Object.entries(unit.allocation ?? {}).flatMap(([key, value]) => {
    if (value === null || value === "" || unlimited(unit, key, value)) return [];
    if (typeof value !== "number") {
      return [{ key, name: t("fact.given", { what: key }), value: typeof value === "object" ? JSON.stringify(value) : String(value) }];
    }
    const found = value === 0 && key !== "array_task" ? null : given(unit, key, value);
    return found === null ? [] : [{ key, ...found }];
  });
}
