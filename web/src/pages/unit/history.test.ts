import assert from "node:assert/strict";
import { test } from "node:test";

import { readRow } from "../../data/serverlist";
import { isRun, kindName, kMaxRuns, runsOfKind } from "./history";

const kColumns = ["cluster_id", "uuid", "started", "name", "user", "project", "state", "ended"];
const row = (uuid: string, name: string, user = "ada", project = "fluids", started: number | null = 1000 * Number(uuid)) => readRow(kColumns, ["hpc-a", uuid, started, name, user, project, "COMPLETED", 1], 0);

test("runs of a kind have names that differ in numbers only, the oldest first", () => {
  assert.equal(kindName("train_007-v12"), "train_#-v#");
  const unit = { uuid: "5", cluster_id: "hpc-a", started_at_ts: 5000, name: "train_5", username: "ada", project: "fluids" };
  const rows = [row("9", "train_12"), row("8", "train_x"), row("7", "train_7", "lin"), row("6", "train_6", "ada", "optics"), row("5", "train_5"), row("4", "train_4", "ada", "fluids", null), row("3", "train_3")];
  const runs = runsOfKind(rows, unit);
  assert.deepEqual(runs.map((one) => one.uuid), ["3", "5", "9"]);
  assert.deepEqual(runs.map((one) => isRun(one, unit)), [false, true, false]);
  const many = Array.from({ length: 30 }, (_, i) => row(String(100 - i), `train_${i}`));
  assert.deepEqual([runsOfKind(many, unit).length, runsOfKind(many, unit).at(-1)!.uuid], [kMaxRuns, "100"]);
});
