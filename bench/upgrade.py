#!/usr/bin/env python3
"""Measures the first start of ceems_api_server on a large database of CEEMS 0.10.2 (SQLite).

    cmake --preset bench && cmake --build build/bench --target ceems_api_server database
    bench/upgrade.py --bin build/bench/bin [--units 2000000] [--data DIRECTORY] [--write bench/RESULTS.md]

The database has the units of a year (bench/database.cc), copied without our tables, columns and indexes; with --data they are the
first units of the database in that directory, which stays as it is. It is made below $TMPDIR, and all takes 5 kB for each unit. While
the tables are upgraded, who owns a unit is asked again and again, as ceems_lb does."""

import argparse
import datetime
import os
import platform
import re
import sqlite3
import subprocess
import sys
import tempfile
import time

from section import write_section

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
import harness  # noqa: E402

TABLES = ("schema_migrations", "units", "usage", "daily_usage", "users", "projects", "admin_users")
OURS = {"last_updated_at_ts", "ceems_weights"}


def make_old(source, target, units):
    """Copies the tables of CEEMS 0.10.2 with their columns and indexes."""
    with sqlite3.connect(target) as old:
        old.execute("PRAGMA journal_mode = OFF")
        old.execute("PRAGMA synchronous = OFF")
        old.execute("ATTACH ? AS filled", (source,))
        for table in TABLES:
            old.execute(old.execute("SELECT sql FROM filled.sqlite_schema WHERE name = ?", (table,)).fetchone()[0])
            columns = [row[1] for row in old.execute("PRAGMA table_info(%s)" % table)]
            for column in OURS.intersection(columns):
                old.execute("ALTER TABLE %s DROP COLUMN %s" % (table, column))
            names = ",".join(column for column in columns if column not in OURS)
            some = " WHERE id <= %d" % units if table == "units" else ""
            old.execute("INSERT INTO main.%s (%s) SELECT %s FROM filled.%s%s" % (table, names, names, table, some))
        old.commit()
        for (sql,) in old.execute("SELECT sql FROM filled.sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
                                  " AND name NOT LIKE 'ceems%'").fetchall():
            old.execute(sql)


def size_of(directory):
    total = 0
    for name in os.listdir(directory):
        try:
            total += os.stat(os.path.join(directory, name)).st_blocks * 512
        except FileNotFoundError:
            pass
    return total


def memory(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        found = dict(re.findall(r"(VmHWM|RssAnon):\s+(\d+) kB", status.read()))
    return {name: int(value) * 1024 / 1e6 for name, value in found.items()}


def measure(bin_dir, directory, units):
    harness.BIN = bin_dir
    before = size_of(directory)
    config = ("ceems_api_server:\n  data:\n    path: %s\n    time_zone: UTC\n    update_interval: 1d\n  admin:\n    users: [root]\n"
              % directory)
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work:
        begin = time.monotonic()
        program, url = harness.start_api_server(work, config, ["--storage.data.skip.delete.old.units",
                                                               "--no-security.drop-privileges"])
        with program:
            listens = time.monotonic() - begin
            most, anonymous, answers, refused = before, 0.0, [], 0
            user = {"X-Grafana-User": "user%d" % (7 * 2654435761 % 1000)}
            while True:
                asked = time.monotonic()
                verified = harness.get(url + "/api/v1/units/verify?cluster_id=hpc&uuid=7", user)
                answers.append(time.monotonic() - asked)
                assert verified.status == 200, (verified.status, verified.body)
                most = max(most, size_of(directory))
                anonymous = max(anonymous, memory(program.pid)["RssAnon"])
                listed = harness.get(url + "/api/v1/units?limit=1", user)
                if listed.status == 200:
                    break
                assert listed.status == 503 and "Retry-After" in listed.headers, listed.status
                refused += 1
                time.sleep(0.05)
            upgraded = time.monotonic() - begin
            peak = memory(program.pid)["VmHWM"]
        answers.sort()
        return [
            ("units", "%d" % units),
            ("the old database, GB", "%.2f" % (before / 1e9)),
            ("listens after", "%.2f s" % listens),
            ("all is upgraded after", "%.1f s" % upgraded),
            ("answers with 503 and Retry-After meanwhile", "%d" % refused),
            ("`units/verify` meanwhile, p50 / p99", "%.1f / %.1f ms" % (answers[len(answers) // 2] * 1e3,
                                                                       answers[int(0.99 * (len(answers) - 1))] * 1e3)),
            ("disk at most, with the old database, GB", "%.2f" % (most / 1e9)),
            ("disk after the stop, with the copy, GB", "%.2f" % (size_of(directory) / 1e9)),
            ("memory at most: allocated / RSS, MB", "%.0f / %.0f" % (anonymous, peak)),
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--units", type=int, default=2_000_000)
    parser.add_argument("--data", help="directory of a filled database; temporary by default")
    parser.add_argument("--write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work:
        filled, old = os.path.join(work, "filled"), os.path.join(work, "old")
        os.mkdir(old)
        if options.data is None:
            os.mkdir(filled)
            subprocess.run([os.path.join(options.bin, "database"), "sqlite:" + filled, str(options.units)], check=True,
                           stdout=subprocess.DEVNULL)
        make_old(os.path.join(options.data or filled, "ceems.db"), os.path.join(old, "ceems.db"), options.units)
        rows = measure(options.bin, old, options.units)
    text = "Measured on %s: %d CPUs, Linux %s.\n\n| first start on a database of CEEMS 0.10.2 | |\n|---|---|\n" % (
        datetime.date.today(), os.cpu_count(), platform.release())
    text += "\n".join("| %s | %s |" % row for row in rows)
    print(text)
    if options.write:
        write_section(options.write, "upgrade", text)


if __name__ == "__main__":
    main()
