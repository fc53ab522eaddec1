#!/usr/bin/env python3
"""Starts the real ceems_api_server with a database of invented units, and prints its address. It ends with the standard input.

    real_server.py [UNITS [ORIGIN]]    ORIGIN: its pages may show the page in a frame

The newest unit is UNITS - 1; unit i used i Wh of CPU energy on 1 + i % 32 CPUs and ended i minutes after the first. The last one has run
for two hours and does nothing. For managers: a kWh costs EUR 0.25; a quarter of the energy of units with GPUs was not used, of others that
is not known; node n1 used 10 kWh on each day of March 2026, 2 of them reserved and idle, 1 for the system and 1 for nobody, and the meter
of the site shows 500 kWh for it."""

import json
import os
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

from api_database import create, insert, local, local_z  # noqa: E402
from harness import BIN, FakeHttp, scratch, skip, start_api_server, wait_until, write  # noqa: E402

USERS = ("ada", "lin", "grace")
PROJECTS = ("fluids", "optics", "p%1 <b>&")
FLAGS = ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges"]


def unit(i, count, now):
    ended = 0 if i == count - 1 else now - (count - i) * 60
    cpus, wall = 1 + i % 32, 600 if ended else 7200
    started = (ended or now) - wall
    cpu, kwh, gpus = float(i % 100), i / 1000, 2 if i % 10 == 0 else 0
    row = {"resource_manager": "slurm", "cluster_id": "hpc-a", "uuid": str(100000 + i), "name": "=task_%05d" % i if i % 7 == 0 else "task_%05d" % i,
           "project": PROJECTS[i % 3], "groupname": "", "username": USERS[i % 3], "created_at": local_z(started - 60), "started_at": local_z(started),
           "ended_at": local_z(ended) if ended else "Unknown", "created_at_ts": (started - 60) * 1000, "started_at_ts": started * 1000,
           "ended_at_ts": ended * 1000, "elapsed": "00:10:00", "state": "RUNNING" if not ended else "FAILED" if i % 11 == 0 else "COMPLETED",
           "allocation": {"cpus": cpus, "mem": 4 << 30, "gpus": gpus, "nodes": 1}, "tags": {"partition": "gpu" if gpus else "cpu"},
           "total_time_seconds": {"walltime": wall, "alloc_cputime": cpus * wall, "alloc_cpumemtime": 4096 * wall, "alloc_gputime": gpus * wall,
                                  "alloc_gpumemtime": gpus * wall},
           "avg_cpu_usage": {"global": cpu}, "avg_cpu_mem_usage": {"global": 25.0}, "total_cpu_energy_usage_kwh": {"total": kwh},
           "total_cpu_emissions_gms": {"owid_total": 56 * kwh, "global_total": 473 * kwh}, "ignore": 0, "num_updates": 1,
           "last_updated_at": local((ended or now) // 60 * 60)}
    if gpus:
        row.update(avg_gpu_usage={"global": 50.0}, total_gpu_energy_usage_kwh={"total": 2 * kwh}, total_gpu_emissions_gms={"owid_total": 112 * kwh})
    return row


def days(units):
    """The rows of daily_usage: sums of each user, project and day."""
    rows = {}
    for row in units:
        key = (row["username"], row["project"], row["last_updated_at"][:10])
        day = rows.setdefault(key, {
            "resource_manager": "slurm", "cluster_id": "hpc-a", "num_units": 0, "project": row["project"], "username": row["username"], "groupname": "",
            "num_updates": 1, "last_updated_at": key[2] + "T00:00:00", "total_time_seconds": {}, "total_cpu_energy_usage_kwh": {},
            "total_gpu_energy_usage_kwh": {}, "total_cpu_emissions_gms": {}, "total_gpu_emissions_gms": {}})
        day["num_units"] += 1
        for name, total in day.items():
            if isinstance(total, dict):
                for part, value in row.get(name, {}).items():
                    total[part] = total.get(part, 0) + value
    return list(rows.values())


CONFIG = """
ceems_api_server:
  data:
    path: %(data)s
    time_zone: UTC
    update_interval: 1d
  admin:
    users: [operator]
  roles:
    support: [sue]
    project_leads:
      - {cluster: hpc-a, project: optics, users: [lea]}
  ui:
    currency: EUR
    pue: 1.2
    embed: {ancestors: [%(ancestors)s]}
  accounting:
    other_power: pdu_watts
clusters:
  - id: hpc-a
    manager: slurm
    updaters: [tsdb]
    cli:
      path: %(data)s
updaters:
  - id: tsdb
    updater: tsdb
    web:
      url: %(tsdb)s
"""
BUDGETS = """
budgets:
  - {project: fluids, cluster: hpc-a, amount: 400, period: {from: 2020-01-01, to: 2099-12-31}}
  - {project: "p%1 <b>&", unit: cost, amount: 50, period: {from: 2020-01-01, to: 2099-12-31}}
"""
DAY = 86_400_000
MARCH = 1_772_323_200_000
KWH = 10 ** 9  # of the columns for energy


def tsdb(idle):
    """What a TSDB knows that has one unit, which draws 612 W, and the 100 W of other devices."""
    def answer(path, query, _body):
        text = query.get("query", [""])[0]
        result = []
        if "pdu_watts" in text:
            result = [{"metric": {}, "values": [[int(float(query["start"][0])), "100"]]}]
        elif "compute_unit" in text and not path.endswith("_range") and "[2d:5m]" not in text:
            result = [{"metric": {"uuid": idle}, "value": [time.time(), "1" if "idle_seconds" in text else "612"]}]
        kind = "matrix" if path.endswith("_range") else "vector"
        return 200, "application/json", json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()
    return answer


def measure(path):
    """Adds what else would be measured to the database of a running server."""
    database = sqlite3.connect(path, timeout=60)
    wait_until("the facts of all units", lambda: database.execute("SELECT count(*) FROM ceems_facts_todo").fetchone() == (0,))
    with database:
        database.execute("UPDATE ceems_unit_facts SET idle_energy = energy / 4 WHERE queue = 'gpu'")
        database.executemany("INSERT INTO ceems_node_days VALUES ('hpc-a', ?, 'n1', ?, ?, ?, ?, 0, ?)",
                             [(MARCH + i * DAY, 10 * KWH, 2 * KWH, KWH, KWH, DAY) for i in range(31)])
        database.execute("INSERT INTO ceems_nodes VALUES ('hpc-a', 'n1', 'large', 'rapl', 64, 0, 0, ?, ?)", (MARCH, MARCH + 31 * DAY))
    database.close()


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if not os.access(os.path.join(BIN, "ceems_api_server"), os.X_OK):
        skip("ceems_api_server is not built in %s" % BIN)
    with scratch("ceems-page-") as directory, FakeHttp(tsdb(str(100000 + count - 1))) as series:
        data = os.path.join(directory, "data")
        os.makedirs(data)
        now = int(time.time())
        units = [unit(i, count, now) for i in range(count)]
        database = create(os.path.join(data, "ceems.db"))
        with database:
            insert(database, "units", units)
            insert(database, "daily_usage", days(units))
            for i, name in enumerate(PROJECTS):
                insert(database, "projects", [{"cluster_id": "hpc-a", "resource_manager": "slurm", "name": name, "users": [USERS[i]], "tags": [],
                                               "last_updated_at": local(now)}])
                insert(database, "users", [{"cluster_id": "hpc-a", "resource_manager": "slurm", "name": USERS[i], "projects": [name], "tags": [],
                                            "last_updated_at": local(now)}])
        database.close()
        write(os.path.join(directory, "budgets.yml"), BUDGETS)
        write(os.path.join(directory, "prices.yml"), "energy:\n  - kwh: 0.25\n")
        bill = write(os.path.join(directory, "bill.csv"), "period_start,period_end,kwh,cost,currency\n2026-03-01,2026-04-01,500,120.50,EUR\n")
        program, url = start_api_server(directory, CONFIG % {"data": data, "tsdb": series.url, "ancestors": '"%s"' % sys.argv[2] if len(sys.argv) > 2 else ""}, FLAGS)
        with program:
            measure(os.path.join(data, "ceems.db"))
            subprocess.run([os.path.join(BIN, "ceems_api_server"), "import-bill", "--config.file=" + os.path.join(directory, "api.yml"), bill],
                           stdout=subprocess.DEVNULL, check=True)
            print(url, flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
