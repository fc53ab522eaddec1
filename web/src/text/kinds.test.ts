import assert from "node:assert/strict";
import { test } from "node:test";

import { kindOf, kindOfSite } from "./kinds";

test("units are what their managers call them, if all agree", () => {
  assert.deepEqual(["slurm", "lsf", "openpbs", "openstack", "libvirt", "k8s", "exec", "local", undefined, "constructor"].map(kindOf), [
    "job", "job", "job", "vm", "vm", "pod", "unit", "unit", "unit", "unit",
  ]);
  assert.equal(kindOfSite([{ manager: "slurm" }, { manager: "lsf" }]), "job");
  assert.equal(kindOfSite([{ manager: "slurm" }, { manager: "k8s" }]), "unit");
  assert.equal(kindOfSite([]), "unit");
  assert.equal(kindOfSite([{ manager: "slurm" }, { manager: "local" }], "job"), "job");
  assert.equal(kindOfSite([{ manager: "slurm" }], "constructor"), "job");
});
