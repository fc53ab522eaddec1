// What people call a unit: what the resource manager calls it.

export type Kind = "unit" | "job" | "vm" | "pod";

const kManagers: Record<string, Kind> = { slurm: "job", lsf: "job", openpbs: "job", openstack: "vm", libvirt: "vm", k8s: "pod" };

export function kindOf(manager: string | undefined): Kind {
  return manager !== undefined && Object.hasOwn(kManagers, manager) ? kManagers[manager]! : "unit";
}

const kKinds: readonly string[] = ["unit", "job", "vm", "pod"] satisfies Kind[];

/** One word for the lists of a site: the one that it has chosen, else that of its clusters if all agree. */
export function kindOfSite(clusters: readonly { manager: string }[], chosen = ""): Kind {
  if (kKinds.includes(chosen)) return chosen as Kind;
  const kinds = new Set(clusters.map((cluster) => kindOf(cluster.manager)));
  return kinds.size === 1 ? [...kinds][0]! : "unit";
}
