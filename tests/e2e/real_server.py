#!/usr/bin/env python3
"""Starts the real ceems_api_server with a database of invented units, and prints its address. It ends with the standard input.

    real_server.py [UNITS]

The newest unit is UNITS - 1; unit i used i Wh of CPU energy on 1 + i % 32 CPUs and ended i minutes after the first. The last one runs."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

from api_database import create, insert, local, local_z  # noqa: E402
from harness import BIN, scratch, skip, start_api_server  # noqa: E402

USERS = ("ada", "lin", "grace")
PROJECTS = ("fluids", "optics", "p%1 <b>&")
FLAGS = ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges"]


def unit(i, count, now):
    cpus, wall = 1 + i % 32, 600
    ended = 0 if i == count - 1 else now - (count - i) * 60
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


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if not os.access(os.path.join(BIN, "ceems_api_server"), os.X_OK):
        skip("ceems_api_server is not built in %s" % BIN)
    with scratch("ceems-page-") as directory:
        os.makedirs(os.path.join(directory, "data"))
        now = int(time.time())
        units = [unit(i, count, now) for i in range(count)]
        database = create(os.path.join(directory, "data", "ceems.db"))
        with database:
            insert(database, "units", units)
            insert(database, "daily_usage", days(units))
            for i, name in enumerate(PROJECTS):
                insert(database, "projects", [{"cluster_id": "hpc-a", "resource_manager": "slurm", "name": name, "users": [USERS[i]], "tags": [],
                                               "last_updated_at": local(now)}])
                insert(database, "users", [{"cluster_id": "hpc-a", "resource_manager": "slurm", "name": USERS[i], "projects": [name], "tags": [],
                                            "last_updated_at": local(now)}])
        database.close()
        config = ("ceems_api_server:\n  data:\n    path: %s\n    time_zone: UTC\n    update_interval: 1d\n  admin:\n    users: [operator]\n"
                  "  roles:\n    support: [sue]\n    project_leads:\n      - {cluster: hpc-a, project: optics, users: [lea]}\n" % os.path.join(directory, "data"))
        program, url = start_api_server(directory, config, FLAGS)
        with program:
            print(url, flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
