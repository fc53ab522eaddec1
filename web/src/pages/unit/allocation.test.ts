import assert from "node:assert/strict";
import { test } from "node:test";

import { allocationOf } from "./allocation";
import { addTexts } from "../../text/i18n";
import unitTexts from "../../text/locales/unit.en.json";

addTexts(unitTexts, null);

const texts = (manager: string, allocation: Record<string, unknown>) =>
  allocationOf({ uuid: "1", resource_manager: manager, allocation }).map(({ name, value }) => `${name}: ${value}`);

test("what a job of SLURM was given has no keys of the database", () => {
  assert.deepEqual(
    texts("slurm", { billing: 8, consumed_energy: 7_200_000, cpus: 8, eligible: 1795778289000, gpus: 0, mem: 2 ** 34, nodes: 1, req_cpus: 4, req_mem: 2 ** 33, restarts: 0, time_limit: 7200 }),
    ["Billing units allocated: 8", "Energy, measured by SLURM: 2 kWh", "CPUs allocated: 8", "Eligible since: Fri, 27 Nov 2026, 11:18:09 UTC", "Memory allocated: 16 GiB", "Nodes allocated: 1",
      "CPUs requested: 4", "Memory requested: 8 GiB", "Time limit: 2 h"],
  );
  assert.deepEqual(texts("slurm", { array_job: 7100, array_task: 0, cpus: 1 }), ["Array task: 7100_0", "CPUs allocated: 1"]);
});

test("other managers have units of their own", () => {
  assert.deepEqual(texts("openstack", { vcpus: 4, mem: 8192, name: "m1.large" }), ["CPUs allocated: 4", "Memory allocated: 8 GiB", "name allocated: m1.large"]);
  assert.deepEqual(texts("k8s", { vcpus: 0.001, mem: 1, "nvidia.com/gpu": 2 }), ["nvidia.com/gpu allocated: 2"]);
});
