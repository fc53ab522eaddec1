#!/usr/bin/env python3
"""Measures how good the expectations of `units/check` are for the jobs of the demo.

    cmake --preset bench && cmake --build build/bench --target expectation
    bench/expectations.py --bin build/bench/bin [--days 180] [--clusters 5] [--write bench/RESULTS.md]

The jobs of scripts/run/launcher/invented.py are those of several clusters that begin at different times. Each completed one is expected
from the runs of its family before it, at least five in 90 days (bench/expectation.cc). Nothing depends on the machine or the date."""

import argparse
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "run"))
from launcher import invented  # noqa: E402
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from section import write_section  # noqa: E402

BEGIN = 1_767_225_600  # 2026-01-01
JOULES_PER_KWH = 3.6e6


def families(days, clusters):
    """{(kind, cluster): [(end, kWh)]} of completed jobs, in the order of their ends."""
    found = {}
    for cluster in range(clusters):
        origin = BEGIN + cluster * 1000 * invented.DAY
        for job in invented.jobs_of(origin, origin + days * invented.DAY):
            if job.state == "COMPLETED":
                kwh = sum(job.joules(job.end - job.start, node)["node"] for node in job.nodes) / JOULES_PER_KWH
                found.setdefault((job.kind.name, cluster), []).append((job.end, kwh))
    return {key: sorted(runs) for key, runs in found.items()}


def judged(program, runs_of):
    """(kind, jobs, held, median error, best error) of each family."""
    lines = "".join("%s/%d %s\n" % (kind, cluster, " ".join("%d %.9g" % run for run in runs)) for (kind, cluster), runs in runs_of.items())
    out = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in out.splitlines():
        name, jobs, held, error, best = line.split()
        yield name.partition("/")[0], int(jobs), int(held), float(error), float(best)


def table(rows):
    kinds = {}
    for kind, jobs, held, error, best in rows:
        kinds.setdefault(kind, []).append((jobs, held, error * jobs, best * jobs))
    lines = ["| kind | jobs | range held | median error of the energy | … of the best fixed expectation |", "|---|---|---|---|---|"]
    whole = [0, 0, 0, 0]
    for kind in sorted(kinds):
        sums = [sum(column) for column in zip(*kinds[kind])]
        whole = [a + b for a, b in zip(whole, sums)]
        if sums[0]:
            lines.append("| `%s` | %d | %.1f %% | %.1f %% | %.1f %% |" % (kind, sums[0], *(100 * part / sums[0] for part in sums[1:])))
    lines.append("| all | %d | %.1f %% | %.1f %% | %.1f %% |" % (whole[0], *(100 * part / whole[0] for part in whole[1:])))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--days", type=int, default=180)
    parser.add_argument("--clusters", type=int, default=5)
    parser.add_argument("--write")
    options = parser.parse_args()
    text = table(judged(os.path.join(options.bin, "expectation"), families(options.days, options.clusters)))
    print(text)
    if options.write:
        write_section(options.write, "expectations", "%d clusters of the demo, %d days each.\n\n%s" % (options.clusters, options.days, text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
