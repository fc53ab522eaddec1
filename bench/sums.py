#!/usr/bin/env python3
"""Measures how long ceems_api_server takes to fill the sums over time of a database that has none, as after an upgrade.

    cmake --preset bench && cmake --build build/bench --target ceems_api_server database
    bench/sums.py --bin build/bench/bin [--units 1000000] [--written N] [--data DIRECTORY] [--postgres] [--write bench/RESULTS.md]

The database has the units of 1,000 users in a year (bench/database.cc), without sums; with --data it is the one in that directory, whose
sums are deleted. With --written, only that many units are written, and then repeated under other IDs. The server is stopped once while it
works, and started again. Meanwhile it is asked for the newest units of users, one question after the other."""

import argparse
import contextlib
import datetime
import os
import platform
import re
import sqlite3
import subprocess
import sys
import tempfile
import time

from cpu_time import process_cpu_seconds
from repeated_units import repeat_units
from section import write_section

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
import harness  # noqa: E402
from postgres_test import Postgres  # noqa: E402

GOAL = 300  # s for a million units
FORGET = ("DELETE FROM ceems_unit_sums", "DELETE FROM ceems_unit_spans")


def forget(directory, postgres):
    if postgres:
        for statement in FORGET:
            postgres.query(statement)
        return
    with contextlib.closing(sqlite3.connect(os.path.join(directory, "ceems.db"), isolation_level=None)) as database:
        for statement in FORGET + ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            database.execute(statement)


def start(work, directory, postgres, name):
    data = ", database_url: '%s'" % postgres.url if postgres else ""
    return harness.start_api_server(
        work, "ceems_api_server:\n  data: {path: %s%s, time_zone: UTC, update_interval: 1d}\n  admin: {users: [root]}\n" % (directory, data),
        ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges"], name=name)


def spans_left(url):
    """Nothing before the first of them is computed."""
    return int(re.search(r"^ceems_api_server_sums_open (\d+)$", harness.get(url + "/metrics").text, re.M).group(1))


def measure(bin_dir, directory, postgres):
    harness.BIN = bin_dir
    answers, seconds, cpu, stop_seconds, most = [], 0.0, 0.0, 0.0, 0
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work:
        for run in (1, 2):
            program, url = start(work, directory, postgres, "run%d" % run)
            begin = time.monotonic()
            with program:
                left = harness.wait_until("sums are computed", lambda: spans_left(url), 60, 0.05)
                most = max(most, left)
                while left > (most // 2 if run == 1 else 0):
                    asked = time.monotonic()
                    answer = harness.get(url + "/api/v1/units?limit=100&sort=ended_at&order=desc&from=1735689600&to=1767225600",
                                         {"X-Grafana-User": "user%d" % (len(answers) * 2654435761 % 1000)})
                    assert answer.status == 200, (answer.status, answer.body)
                    answers.append(time.monotonic() - asked)
                    left = spans_left(url)
                    time.sleep(0.2)
                seconds += time.monotonic() - begin
                cpu += process_cpu_seconds(program.pid)
                if run == 1:
                    begin = time.monotonic()
                    assert program.stop() == 0
                    stop_seconds = time.monotonic() - begin
    answers.sort()
    return seconds, cpu, stop_seconds, most, answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--written", type=int)
    parser.add_argument("--data")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work, contextlib.ExitStack() as stack:
        os.chmod(work, 0o755)
        directory, postgres = options.data or os.path.join(work, "data"), None
        os.makedirs(directory, exist_ok=True)
        if options.postgres:
            postgres = Postgres(os.path.join(work, "pg"))
            stack.callback(postgres.stop)
        if not os.path.exists(os.path.join(directory, "ceems.db")):
            subprocess.run([os.path.join(options.bin, "database"), postgres.url if postgres else "sqlite:" + directory,
                            str(options.written or options.units), "1000", "nothing"], check=True, stdout=subprocess.DEVNULL)
            if options.written and not postgres:
                repeat_units(os.path.join(directory, "ceems.db"), options.units)
        forget(directory, postgres)
        seconds, cpu, stop, spans, answers = measure(os.path.abspath(options.bin), directory, postgres)
    text = ("Measured on %s: %d CPUs, Linux %s; %s.\n\n| units | spans | s | CPU s | µs of CPU for a unit | s for a million ÷ goal | stop in the middle, s |"
            " newest 100 of a user meanwhile, p50 / p99 ms |\n|---|---|---|---|---|---|---|---|\n| %d | %d | %.1f | %.1f | %.1f | %.2f | %.2f | %.1f / %.1f |"
            % (datetime.date.today(), os.cpu_count(), platform.release(), "PostgreSQL, CPU time without its own" if postgres else "SQLite",
               options.units, spans, seconds, cpu, cpu * 1e6 / options.units, seconds * 1e6 / options.units / GOAL, stop,
               answers[len(answers) // 2] * 1e3, answers[int(0.99 * (len(answers) - 1))] * 1e3))
    print(text)
    if options.write:
        write_section(options.write, "sums-postgres" if postgres else "sums", text)


if __name__ == "__main__":
    main()
