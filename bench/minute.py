#!/usr/bin/env python3
"""Measures the CPU time that ceems_exporter takes in a minute as it runs in production, next to Debian's prometheus-node-exporter.

    cmake --preset bench && cmake --build build/bench --target ceems_exporter floor
    bench/minute.py --bin build/bench/bin [--write bench/RESULTS.md]    # as root, cgroup v1

For 20, 200 and 1,000 SLURM jobs in real cgroups, four programs run side by side for a minute: ours with the default collectors and slurm,
which samples energy once a second; the same without the energy counters; the first one again, which is never scraped, so that it
shows the sampler alone; and node_exporter. Each of the others is scraped 12 times, compressed as Prometheus requests it. CPU time is
that of the whole process (cpu_time.py).

--before PROGRAM measures another build of the exporter side by side, scraped and never scraped, and tells the ratios.

The jobs come in two kinds: those that sleep, and those that use a little CPU time twice a second, so that all counters move.

--check fails if a budget is exceeded, with either kind: 0.05 CPU s for 20 units and 0.20 for 200; for the sampler alone with 1,000 units
1 % of a core."""

import argparse
import os
import shutil
import sys
import time

from scrape import LiveJobs, Target, machine

KINDS = (("asleep", 0), ("busy", 50))  # and the CPU microseconds that each job uses twice a second
NAMES = ("ceems_exporter", "without energy", "never scraped", "node_exporter")
BUDGETS = {20: 0.05, 200: 0.20}  # CPU seconds in a minute with scrapes
SAMPLER_BUDGET = {1000: 0.6}


def run(options, jobs, kind, pulse, node):
    live = LiveJobs(jobs, (os.path.join(options.bin, "floor"), "pulse", str(pulse)) if pulse else ("sleep", "86400"))
    targets = []
    try:
        flags = ["--collector.slurm", "--web.listen-address=127.0.0.1:0", "--no-security.drop-privileges"]
        program = options.exporter or os.path.join(options.bin, "ceems_exporter")
        for name, more in zip(NAMES, ([], ["--no-collector.energy"], [])):
            targets.append(Target(name, [program] + flags + more))
        scraped = [targets[0], targets[1], node]
        if options.before:
            targets += [Target("before", [options.before] + flags) for _ in range(2)]
            scraped.append(targets[3])
        for target in scraped * 2:
            target.scrape()
        time.sleep(options.settle)
        for target in scraped:
            target.connection.close()
        before = [target.cpu() for target in targets + [node]]
        start = time.monotonic()
        for i in range(options.scrapes):
            for target in scraped[i % len(scraped):] + scraped[:i % len(scraped)]:
                target.scrape()
            time.sleep(max(0.0, start + (i + 1) * options.seconds / options.scrapes - time.monotonic()))
        return {"jobs": jobs, "kind": kind, "samples": targets[0].samples(),
                "cpu": [(target.cpu() - b) * 60 / options.seconds for target, b in zip(targets + [node], before)]}
    finally:
        for target in targets:
            target.stop()
        live.remove()


def table(rows):
    head = ["jobs", "", "samples", "scraped", "without energy", "never scraped", "a unit and sample, µs", "node_exporter", "÷ node_exporter"]
    with_before = len(rows[0]["cpu"]) > 4
    if with_before:
        head += ["scraped, before", "ratio", "never scraped, before", "ratio"]
    lines = ["| %s |" % " | ".join(head), "|%s" % ("---|" * len(head))]
    for row in rows:
        whole, bare, sampler = row["cpu"][:3]
        node = row["cpu"][-1]
        line = "| %d | %s | %d | %.3f | %.3f | %.3f | %.1f | %.3f | %.2f |" % (
            row["jobs"], row["kind"], row["samples"], whole, bare, sampler, sampler * 1e6 / 60 / row["jobs"], node, whole / node)
        if with_before:
            line += " %.3f | %.2f | %.3f | %.2f |" % (row["cpu"][3], whole / row["cpu"][3], row["cpu"][4], sampler / row["cpu"][4])
        lines.append(line)
    return "\n".join(lines)


def missed(rows):
    """The budgets that these rows exceed."""
    problems = []
    for row in rows:
        for what, value, budgets in (("with scrapes", row["cpu"][0], BUDGETS), ("the sampler alone", row["cpu"][2], SAMPLER_BUDGET)):
            budget = budgets.get(row["jobs"])
            if budget and value > budget:
                problems.append("%d jobs (%s), %s: %.3f CPU s in a minute, %.2f allowed" % (row["jobs"], row["kind"], what, value, budget))
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bench/bin")
    parser.add_argument("--exporter", help="program to measure (default: ceems_exporter in --bin)")
    parser.add_argument("--before", metavar="PROGRAM", help="another build to compare with")
    parser.add_argument("--node-exporter", default="prometheus-node-exporter")
    parser.add_argument("--jobs", type=int, nargs="*", default=[20, 200, 1000])
    parser.add_argument("--kinds", nargs="*", choices=[kind for kind, _ in KINDS], default=[kind for kind, _ in KINDS])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=30, help="seconds between the start and the measurement (default: %(default)s)")
    parser.add_argument("--scrapes", type=int, default=12)
    parser.add_argument("--write", metavar="FILE", help="replace the measured part of this file")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not shutil.which(options.node_exporter):
        print("SKIPPED: %s is not installed" % options.node_exporter)
        return 77
    rows = []
    for jobs in options.jobs:
        for kind, pulse in KINDS:
            if kind in options.kinds:
                node = Target("node_exporter", [options.node_exporter, "--web.listen-address=127.0.0.1:0"])
                try:
                    rows.append(run(options, jobs, kind, pulse, node))
                finally:
                    node.stop()
    text = "Measured on %s: %s. CPU seconds in a minute.\n\n%s\n" % (time.strftime("%Y-%m-%d"), machine(), table(rows))
    print(text)
    if options.write:
        with open(options.write) as f:
            page = f.read()
        head, rest = page.split("<!-- begin minute -->")
        with open(options.write, "w") as f:
            f.write("%s<!-- begin minute -->\n\n%s\n<!-- end minute -->%s" % (head, text, rest.split("<!-- end minute -->")[1]))
    problems = missed(rows)
    for problem in problems:
        print("budget missed: " + problem)
    return 1 if options.check and problems else 0


if __name__ == "__main__":
    sys.exit(main())
