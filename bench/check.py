#!/usr/bin/env python3
"""Measures what `units/check` takes with many units in the database (SQLite), by whom it is asked and for what.

    cmake --preset bench && cmake --build build/bench --target ceems_api_server database
    bench/check.py --bin build/bench/bin [--units 1000000] [--written 100000] [--data DIRECTORY] [--write bench/RESULTS.md]

The database is that of bench/api.py: units of 1,000 users in a year, of which some are written. Their facts, which are all that this endpoint
reads, are then repeated and moved so that the year ends now; they get partitions, and a tenth of them one user. Requests come by turns, one
after the other. The goal is an answer within 200 ms (--goal)."""

import argparse
import contextlib
import datetime
import http.client
import json
import os
import platform
import random
import sqlite3
import subprocess
import sys
import tempfile
import time

from api import BEGIN, DAY, USERS, owner
from cpu_time import process_cpu_seconds
import repeated_units
from section import write_section

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
import harness  # noqa: E402

PARTITIONS = 20
BUSY = "busy"  # the user with a tenth of all units
GOAL_MS = 200


def prepare(path):
    """Moves the facts to the year before now."""
    moved = (int(time.time()) - BEGIN - 365 * DAY) * 1000
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        db.execute("UPDATE ceems_unit_facts SET created_at_ts = created_at_ts + ?1, started_at_ts = started_at_ts + ?1, ended_at_ts = ended_at_ts + ?1,"
                   " queue = CASE WHEN rowid %% 50000 = 7 THEN 'rare' ELSE 'part' || (rowid %% %d) END,"
                   " username = CASE WHEN rowid %% 10 = 3 THEN '%s' ELSE username END" % (PARTITIONS, BUSY), (moved,))
        db.execute("UPDATE ceems_unit_reports SET started_at_ts = started_at_ts + ?1, ended_at_ts = ended_at_ts + ?1", (moved,))
        db.execute("COMMIT")


def requests(number, written):
    """(name, user, request) in a cycle."""
    chance = random.Random(number)
    unit = chance.randrange(written)
    user = owner(unit)[0]
    project = "project%d" % (int(user[4:]) % 100)
    asked = {"nodes": 1, "cpus": 8, "gpus": 1, "memory_bytes": 32 << 30, "time_limit_s": 7200}
    partition = "part%d" % chance.randrange(PARTITIONS)
    cycle = [
        ("a family of a user", user, dict(asked, name="job-%d" % chance.randrange(97), project=project)),
        ("a family of a user who has run a tenth of all", BUSY, dict(asked, name="job-5", project=project, partition=partition)),
        ("a new name of a user", user, dict(asked, name="other-7", project=project, partition=partition)),
        ("a new name of the user who has run a tenth", BUSY, dict(asked, name="other-7")),
        ("a user without runs, in a project", "lead%d" % chance.randrange(10), dict(asked, name="first", project="project%d" % chance.randrange(100))),
        ("a user without runs, in a partition", "nobody-yet", dict(asked, name="first", partition=partition)),
        ("a user without runs, in a partition with few", "nobody-yet", dict(asked, name="first", partition="rare")),
        ("a user without runs, nothing known", "nobody-yet", dict(asked, name="first", project="no such", partition="none")),
        ("an administrator, without a size", "root", {"name": "first"}),
    ]
    return cycle[number % len(cycle)]


def ask(connection, user, request):
    body = json.dumps({"cluster_id": "hpc", "request": request})
    connection.request("POST", "/api/v1/units/check", body, {"X-Grafana-User": user, "Content-Type": "application/json"})
    answer = connection.getresponse()
    data = answer.read()
    assert answer.status == 200, (answer.status, data[:200])
    return json.loads(data)["data"][0]["basis"]


def measure(bin_dir, directory, written, count):
    harness.BIN = bin_dir
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work:
        config = ("ceems_api_server:\n  data:\n    path: %s\n    time_zone: UTC\n    update_interval: 1d\n  admin:\n    users: [root]\n" % directory)
        program, url = harness.start_api_server(work, config, ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges", "--log.level=warn"])
        rows, bases = {}, {}
        with program:
            connection = http.client.HTTPConnection(url[len("http://"):], timeout=120)
            for number in range(count):
                name, user, request = requests(number, written)
                before, started = process_cpu_seconds(program.pid), time.monotonic()
                basis = ask(connection, user, request)
                rows.setdefault(name, []).append((1e3 * (time.monotonic() - started), 1e3 * (process_cpu_seconds(program.pid) - before)))
                bases.setdefault(name, set()).add("%s" % basis["kind"])
        return rows, bases


def table(rows, bases, units, goal):
    lines = ["Measured on %s: %d CPUs, Linux %s; %d units of %d users in 365 days." % (
        datetime.date.today(), os.cpu_count(), platform.release(), units, USERS), "",
        "| who asks | basis | CPU ms, p50 | CPU ms, most | time of the goal, p50 | … p99 |", "|---|---|---|---|---|---|"]
    for name, found in rows.items():
        def at(column, share, found=found):
            values = sorted(one[column] for one in found)
            return values[int(share * (len(values) - 1))]
        lines.append("| %s | %s | %.1f | %.1f | %.3f | %.3f |" % (
            name, ", ".join(sorted(bases[name])), at(1, 0.5), at(1, 1), at(0, 0.5) / goal, at(0, 0.99) / goal))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--written", type=int, default=100_000)
    parser.add_argument("--data", help="directory of a database that this program has made; temporary by default")
    parser.add_argument("--requests", type=int, default=900)
    parser.add_argument("--goal", type=float, default=GOAL_MS)
    parser.add_argument("--write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as temporary:
        directory = options.data or temporary
        os.makedirs(directory, exist_ok=True)
        database, written = os.path.join(directory, "ceems.db"), min(options.written, options.units)
        if not os.path.exists(database):
            subprocess.run([os.path.join(options.bin, "database"), "sqlite:" + directory, str(written), str(USERS)], check=True, stdout=sys.stderr)
            if written < options.units:
                repeated_units.TABLES = ("ceems_unit_facts", "ceems_unit_reports")
                repeated_units.repeat_units(database, options.units)
            prepare(database)
        text = table(*measure(options.bin, directory, written, options.requests), options.units, options.goal)
    print(text)
    if options.write:
        write_section(options.write, "check", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
