import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { fileName, plain, readReport, reportQuery } from "./report";

const kFinding = {
  rule: "gpu-unused",
  severity: "important",
  confidence: "sure",
  runs: 8,
  values: { unused: 2 },
  text: "2 of 8 GPUs never ran a kernel.",
  lines: [{ type: "#SBATCH --gres=gpu:3", was: "--gres=gpu:4" }],
  saves: { kwh: 2.6 },
};
const report = (findings: unknown, more: Record<string, unknown> = {}) => [
  { v: 1, state: "final", coverage: 0.998, job: { elapsed_s: 3600 }, energy: { kwh: 41.3, idle_kwh: 6.23, not_used_kwh: 2.08 }, findings, ...more },
];

test("a report gives what the page shows of it", () => {
  assert.deepEqual(readReport(report([kFinding])), {
    running: false,
    partial: false,
    coverage: 0.998,
    elapsed: 3600,
    idle: 6.23,
    notUsed: 2.08,
    suggestions: [
      {
        rule: "gpu-unused",
        severity: "important",
        confidence: "sure",
        runs: 8,
        text: "2 of 8 GPUs never ran a kernel.",
        lines: [{ type: "#SBATCH --gres=gpu:3", was: "--gres=gpu:4" }],
        saves: 2.6,
      },
    ],
  });
  assert.equal(readReport(report([], { state: "so_far" }))?.running, true);
  assert.equal(readReport(report([], { state: "partial", coverage: null }))?.partial, true);
  assert.equal(readReport(report([], { coverage: null }))?.coverage, null, "not measured is not 0");
  assert.equal(readReport(report([], { energy: { idle_kwh: 6.23, not_used_kwh: null } }))?.notUsed, null, "nor is what was not counted");
  const many = ["a", "b", "c", "d"].map((text) => ({ ...kFinding, text }));
  assert.deepEqual(readReport(report(many))?.suggestions.map((s) => s.text), ["a", "b", "c"], "the first three");
});

test("what is no report is none, and what is odd in one does no harm", () => {
  for (const data of [null, undefined, [], {}, "x", 7, [null], [{}], [{ state: "final" }], [[]], [{ state: 1, findings: [] }]]) assert.equal(readReport(data), null, JSON.stringify(data));
  const odd = readReport(
    report([null, 1, {}, { text: 7 }, { text: " \n " }, { text: "t", severity: "__proto__", confidence: 3, runs: -5, lines: "--x", saves: { kwh: "9" } }], {
      coverage: "much",
      job: null,
      energy: [],
    }),
  );
  assert.deepEqual(odd, {
    running: false,
    partial: false,
    coverage: null,
    elapsed: null,
    idle: null,
    notUsed: null,
    suggestions: [{ rule: "", severity: "suggest", confidence: "maybe", runs: 1, text: "t", lines: [], saves: null }],
  });
});

test("a line to type is one line, as it is seen", () => {
  const lines = (...lines: unknown[]) => readReport(report([{ ...kFinding, lines }]))!.suggestions[0]!.lines;
  assert.deepEqual(lines({ type: "#SBATCH --mem=3G\nrm -rf ~" }), [{ type: "#SBATCH --mem=3G rm -rf ~", was: null }], "no second line");
  assert.deepEqual(lines({ type: "#PBS -l\u202e x=3\u200b\u0007" }), [{ type: "#PBS -l x=3", was: null }]);
  assert.deepEqual(lines(null, 7, "#SBATCH -x", {}, { type: "" }, { type: 7 }, { type: `--x=${"y".repeat(300)}` }), [], "whole ones only");
  const others = [{ type: '#BSUB -R "rusage[mem=10GB/host]"', was: null }, { type: "resources.limits.memory: 10Gi", was: "resources.limits.memory: 16Gi" }];
  assert.deepEqual(lines(...others), others, "of any manager");
  assert.deepEqual(lines({ type: "--a=1", was: 7 }, { type: "--b=2", was: "--b=3" }).map((line) => line.was), [null, "--b=3"]);
});

test("text is cut and has no characters that hide", () => {
  assert.equal(plain(" a\u0000\r\n\u2028b\u2066c ", 10), "a bc");
  assert.equal(plain("ä😀".repeat(10), 5), "ä😀ä😀…");
  assert.equal(plain("abc", 3), "abc");
});

test("a report is asked for by its run; the rest is in the address only where it is needed", () => {
  const unit = { uuid: "a&b", cluster_id: "hpc-a", started_at_ts: 5000 };
  assert.equal(String(new URLSearchParams(reportQuery(unit, "de", false))), "cluster_id=hpc-a&uuid=a%26b&start=5000&lang=de");
  assert.equal(String(new URLSearchParams(reportQuery({ uuid: "1", cluster_id: "c" }, "en", true, "html"))), "cluster_id=c&uuid=1&lang=en&so_far=true&format=html");
  assert.equal(fileName("4711", "text"), "report-4711.txt");
  assert.equal(fileName("../../a b\u202e.exe", "markdown"), "report-_a_b_exe.md");
  assert.equal(fileName("x".repeat(500), "html").length, 7 + 64 + 5);
});

test("the reports that the server's own tests compare are read", () => {
  const golden = (name: string) => readReport([JSON.parse(readFileSync(`../tests/golden/report/${name}.json`, "utf8"))])!;
  const gpu = golden("gpu");
  assert.equal(gpu.partial || gpu.running, false);
  assert.equal(gpu.coverage, 0.998);
  assert.deepEqual(gpu.suggestions[0]?.lines, [{ type: "#SBATCH --gres=gpu:3", was: "--gres=gpu:4" }]);
  assert.equal(gpu.suggestions[0]?.saves, 2.6);
  assert.equal(golden("partial").partial, true);
  assert.equal(golden("bare").coverage, null);
  assert.equal(golden("running").running, true);
});
