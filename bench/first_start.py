#!/usr/bin/env python3
"""Measures the memory of ceems_api_server when it starts for the first time on a database of CEEMS 0.10.2 (SQLite): while it upgrades the
tables, fills the sums over time, and makes the reports of the last week.

    cmake --preset bench && cmake --build build/bench --target ceems_api_server
    bench/first_start.py --bin build/bench/bin [--units 200000] [--week 21000] [--write bench/RESULTS.md]

The units are those of bench/reports.py, of which --week ended in the last seven days and the others before, as many in each day. A stand-in
for the TSDB has measured all of them. Each row of the table is the peak of its own phase, which writing to /proc/PID/clear_refs begins.

While the reports are made, the same question about the usage of all is asked again and again; commits of reports must not empty the
server's cache of the answer."""

import argparse
import datetime
import os
import platform
import re
import sys
import tempfile
import time

from reports import DAY, make_database, stand_in
from section import write_section

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
import harness  # noqa: E402

GOAL = 60  # MB


def memory(pid):
    """{name: MB} of the process. The peak of what comes next begins here."""
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        found = dict(re.findall(r"(VmHWM|VmRSS|RssAnon):\s+(\d+) kB", status.read()))
    with open("/proc/%d/clear_refs" % pid, "w", encoding="ascii") as peak:
        peak.write("5")
    return {name: int(value) * 1024 / 1e6 for name, value in found.items()}


def measure(bin_dir, units, week):
    harness.BIN = bin_dir
    now, phases, asked = int(time.time()), [], []
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work, harness.FakeHttp(stand_in(1, [])) as tsdb:
        make_database(os.path.join(work, "ceems.db"), units, 1, now, units * 7 * DAY // week)
        for name in ("sacct", "sacctmgr"):
            harness.write(os.path.join(work, name), "#!/bin/sh\nexit 0\n", 0o755)
        begin = time.monotonic()
        program, url = harness.start_api_server(work, """
ceems_api_server:
  data: {path: %s, time_zone: UTC, update_interval: 1d, retention_period: 400d}
  admin: {users: [root]}
  report: {rate: 1000, rules: %s/none}
clusters:
  - {id: hpc-a, manager: slurm, cli: {path: %s}, updaters: [tsdb]}
updaters:
  - {id: tsdb, updater: tsdb, web: {url: '%s'}}
""" % (work, work, work, tsdb.url), ["--no-security.drop-privileges"])

        def phase(name, done):
            harness.wait_until(name, done, 3600, 0.1)
            phases.append((name, time.monotonic() - begin, memory(program.pid)))
            print("%s: %.1f s, %s" % phases[-1], file=sys.stderr, flush=True)

        def value(pattern):
            return sum(int(number) for number in re.findall(pattern, harness.get(url + "/metrics").text, re.M))
        root = {"X-Grafana-User": "root"}

        def all_made():
            begin = time.monotonic()
            answer = harness.get(url + "/api/v1/usage/current/admin?from=%d&to=%d" % (now - 365 * DAY, now // DAY * DAY), root)
            assert answer.status == 200, (answer.status, answer.body)
            asked.append(time.monotonic() - begin)
            return not value(r"^ceems_api_server_reports_open (\d+)$")
        with program:
            phase("listens", lambda: True)
            phase("the tables are upgraded", lambda: harness.get(url + "/api/v1/units/admin?limit=1", root).status == 200)
            phase("the first reports are made", lambda: value(r'^ceems_api_server_reports_made_total\{state="\w+"\} (\d+)$'))
            phase("the sums over time are filled", lambda: not value(r"^ceems_api_server_sums_open (\d+)$"))
            phase("all reports of the week are made", all_made)
            hits, misses = (value(r'^ceems_api_server_usage_cache_lookups_total\{result="%s"\} (\d+)$' % kind) for kind in ("hit", "miss"))
            made = value(r'^ceems_api_server_reports_made_total\{state="\w+"\} (\d+)$')
        assert abs(made - week) <= 1 + week // 100, (made, week)
    return phases, asked, hits, misses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--units", type=int, default=200_000)
    parser.add_argument("--week", type=int, default=21_000)
    parser.add_argument("--write")
    options = parser.parse_args()
    phases, asked, hits, misses = measure(os.path.abspath(options.bin), options.units, options.week)
    lines = ["Measured on %s: %d CPUs, Linux %s; %d units, of which %d ended in the last week."
             % (datetime.date.today(), os.cpu_count(), platform.release(), options.units, options.week), "",
             "| until | s | peak RSS, MB | of the goal | RSS then, MB | RssAnon then, MB |", "|---|---|---|---|---|---|"]
    lines += ["| %s | %.1f | %.1f | %.2f | %.1f | %.1f |" % (name, seconds, found["VmHWM"], found["VmHWM"] / GOAL, found["VmRSS"], found["RssAnon"])
              for name, seconds, found in phases]
    again = sorted(asked[1:]) or asked
    lines += ["", "| usage of all, while reports are made | |", "|---|---|", "| asked first, ms | %.1f |" % (asked[0] * 1e3),
              "| again: times | %d |" % len(again), "| answers of the cache / computed | %d / %d |" % (hits, misses),
              "| again, p50 / p99 ms | %.1f / %.1f |" % (again[len(again) // 2] * 1e3, again[int(0.99 * (len(again) - 1))] * 1e3),
              "| again ÷ first | %.3f |" % (again[len(again) // 2] / asked[0])]
    text = "\n".join(lines)
    print(text)
    if options.write:
        write_section(options.write, "first-start", text)


if __name__ == "__main__":
    main()
