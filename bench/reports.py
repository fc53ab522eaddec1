#!/usr/bin/env python3
"""Measures the CPU time that ceems_api_server takes for the reports of units that have ended, with a stand-in for the TSDB.

    cmake --preset bench && cmake --build build/bench --target ceems_api_server
    bench/reports.py --bin build/bench/bin [--units 10000] [--nodes 2] [--write bench/RESULTS.md]

The database has units of two hours that ended in the last days, from 200 users with three kinds of jobs each, so that every report has a
family of 20 runs. The stand-in answers each query with what an exporter counts of each unit on each node. It runs in this process, whose
CPU time does not count."""

import argparse
import json
import os
import platform
import re
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
import api_database  # noqa: E402
import harness  # noqa: E402
from cpu_time import process_cpu_seconds  # noqa: E402

HOUR, DAY = 3600, 86400
GIB = 2 ** 30
A_DAY = 100_000  # units that end in a day, by the acceptance of the finisher
COUNTERS = {"cpus": 32, "cpu_user_seconds_total": 200000, "cpu_system_seconds_total": 900, "cpu_used_max": 32, "memory_peak_bytes": 8 * GIB,
            "memory_total_bytes": 64 * GIB, "memory_fail_count": 0, "idle_seconds_total": 12}


def make_database(path, units, nodes, now, span=3 * DAY):
    """Units that ended in the last `span` seconds."""
    database = api_database.create(path)
    with database:
        rows = []
        for i in range(units):
            end = now - HOUR - i * span // units
            rows.append({"resource_manager": "slurm", "cluster_id": "hpc-a", "uuid": str(i), "name": "job-%d-%d" % (i % 3, i), "project": "p%d" % (i % 50),
                         "groupname": "g", "username": "user%d" % (i % 200), "created_at": api_database.local_z(end - 3 * HOUR),
                         "started_at": api_database.local_z(end - 2 * HOUR), "ended_at": api_database.local_z(end),
                         "created_at_ts": (end - 3 * HOUR) * 1000, "started_at_ts": (end - 2 * HOUR) * 1000, "ended_at_ts": end * 1000,
                         "elapsed": "02:00:00", "state": "COMPLETED", "ignore": 0, "num_updates": 1, "last_updated_at": api_database.local_z(end)[:19],
                         "allocation": {"cpus": 32 * nodes, "nodes": nodes, "gpus": 0, "mem": 64 * nodes * GIB, "time_limit": 86400, "req_cpus": 32 * nodes},
                         "tags": {"partition": "cpu"}, "total_time_seconds": {"walltime": 7200, "alloc_cputime": 230400 * nodes},
                         "avg_cpu_usage": {"global": 87}, "total_cpu_energy_usage_kwh": {"total": 1.5}, "total_cpu_emissions_gms": {"rte_total": 60}})
        api_database.insert(database, "units", rows)
    database.close()


def stand_in(nodes, asked):
    """A TSDB that has measured every unit."""
    def answer(path, query, _body):
        if not path.endswith("/query"):
            return 404, "text/plain", b""
        text = query["query"][0]
        asked.append(len(text))
        samples = []
        for uuid in re.findall(r'uuid="(\d+)"', text):
            for node in range(nodes):
                labels = {"uuid": uuid, "hostname": "n%d" % (int(uuid) % 500 + node), "manager": "slurm", "cgrouphostname": ""}
                if text.startswith("count_over_time"):
                    samples.append((labels, 480 if "15s" in text else 121))
                    continue
                for name, value in COUNTERS.items():
                    samples.append((dict(labels, __name__="ceems_compute_unit_" + name), value))
                for domain in ("node", "package", "dram"):
                    samples.append((dict(labels, __name__="ceems_compute_unit_energy_joules_total", domain=domain), 2.7e6))
                    samples.append((dict(labels, __name__="ceems_compute_unit_idle_energy_joules_total", domain=domain), 2.7e5))
        result = [{"metric": labels, "value": [0, str(value)]} for labels, value in samples]
        return 200, "application/json", json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
    return answer


def measure(bin_dir, units, nodes):
    harness.BIN = bin_dir
    now, asked = int(time.time()), []
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work, harness.FakeHttp(stand_in(nodes, asked)) as tsdb:
        make_database(os.path.join(work, "ceems.db"), units, nodes, now)
        for name in ("sacct", "sacctmgr"):
            harness.write(os.path.join(work, name), "#!/bin/sh\nexit 0\n", 0o755)
        program, url = harness.start_api_server(work, """
ceems_api_server:
  data: {path: %s, time_zone: UTC, update_interval: 1d, retention_period: 400d}
  report: {rate: 1000, rules: %s/none}
clusters:
  - {id: hpc-a, manager: slurm, cli: {path: %s}, updaters: [tsdb]}
updaters:
  - {id: tsdb, updater: tsdb, web: {url: '%s'}}
""" % (work, work, work, tsdb.url), ["--no-security.drop-privileges"])

        def made():
            found = re.findall(r'^ceems_api_server_reports_made_total\{state="\w+"\} (\d+)$', harness.get(url + "/metrics").text, re.M)
            return sum(int(number) for number in found)
        with program:
            first = harness.wait_until("the first reports are made", made, 600)
            begin, queries = process_cpu_seconds(program.pid), len(asked)
            harness.wait_until("all reports are made", lambda: made() >= units, 3600, 0.5)
            seconds = process_cpu_seconds(program.pid) - begin
            report = seconds / (units - first)
            return {"units": units, "nodes": nodes, "ms": report * 1000, "queries": (len(asked) - queries) * 50 / (units - first),
                    "core": report * A_DAY / DAY}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--units", type=int, default=10000)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--write", help="replace the table between the marks 'reports' in this file")
    arguments = parser.parse_args()
    found = measure(os.path.abspath(arguments.bin), arguments.units, arguments.nodes)
    table = ("Measured on %s: %s, %d CPUs, Linux %s.\n\n| units | nodes of each | CPU ms for a report | queries for 50 | of a core, at 100,000 a day | goal | "
             "of the goal |\n|---|---|---|---|---|---|---|\n| %d | %d | %.2f | %.1f | %.2f %% | 2 %% | %.2f |\n"
             % (time.strftime("%Y-%m-%d"), platform.processor() or platform.machine(), os.cpu_count(), platform.release(), found["units"], found["nodes"],
                found["ms"], found["queries"], 100 * found["core"], found["core"] / 0.02))
    print(table)
    if arguments.write:
        with open(arguments.write, encoding="utf-8") as file:
            text = file.read()
        begin, end = "<!-- begin reports -->\n", "<!-- end reports -->"
        head, rest = text.split(begin)
        with open(arguments.write, "w", encoding="utf-8") as file:
            file.write(head + begin + "\n" + table + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
