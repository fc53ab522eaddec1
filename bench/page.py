#!/usr/bin/env python3
"""Measures pages in a browser, with the real ceems_api_server: CPU time of server and page, bytes of data, memory and elements of the page.

    cmake --preset bench && cmake --build build/bench --target ceems_api_server database
    bench/page.py --bin build/bench/bin [--units 100000] [--only list|jobs] [--write bench/RESULTS.md]

Needs chromium, npm and what tests/e2e/run installs, and Debian's prometheus. The units of lists are those of a year (bench/database.cc); the
page shows the newest hundred of all, as a table and as thumbnails. Single jobs have many GPUs (bench/many_gpus.py). A page is opened once, and
then five times, of which the middle counts; data is that of the first time."""

import argparse
import contextlib
import datetime
import json
import os
import platform
import random
import shutil
import sqlite3
import string
import subprocess
import sys
import tempfile
import time

import many_gpus
from cpu_time import process_cpu_seconds
from section import write_section

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "integration"))
import harness  # noqa: E402

TIMES = 5  # and once before
SETTLING = 10  # seconds in which the server completes what it does after a start
ADDRESS = "#/jobs?from=1735689600&to=1767225600&show=ended"  # 2025
# What a page may cost: kB of data, CPU time of the server and of the page in ms, elements, memory of the page in MB; None: not limited.
LISTS = (("first 100 rows", ADDRESS, "tbody tr:nth-child(100)", (15, 250, 150, 3000, 30)),
         ("100 thumbnails", ADDRESS + "&form=thumbnails", ".thumbnails li:nth-child(100) path", (30, 250, 150, 4000, 30)))
JOB = (25, None, 100, None, None)
DEVICES = ".strips path, .devices canvas"


def browse(options, program, url, pages):
    """What page.mjs found of a page without data and of the pages, with the CPU time of the server for all of them, in ms for each time."""
    before = process_cpu_seconds(program.pid)
    done = subprocess.run(["node", os.path.join(HERE, "page.mjs"), url, str(TIMES), *pages], check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "CHROMIUM": options.chromium})
    return json.loads(done.stdout), (process_cpu_seconds(program.pid) - before) * 1e3 / (TIMES + 1)


def draw_strips(path):
    """Every unit gets lines of its own for its thumbnail."""
    chance = random.Random(1)
    letters = string.digits + string.ascii_letters + "-_"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.create_function("drawn", 0, lambda: "".join(chance.choices(letters, k=48)))
        db.execute("UPDATE ceems_unit_facts SET strip = drawn()")
        db.commit()


def measure_lists(options, work):
    directory = os.path.join(work, "data")
    os.mkdir(directory)
    harness.BIN = options.bin
    subprocess.run([os.path.join(options.bin, "database"), "sqlite:" + directory, str(options.units)], check=True, stdout=sys.stderr)
    draw_strips(os.path.join(directory, "ceems.db"))
    config = "ceems_api_server:\n  data: {path: %s, time_zone: UTC, update_interval: 1d}\n  admin: {users: [root]}\n" % directory
    program, url = harness.start_api_server(work, config, ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges", "--log.level=warn"])
    with program:
        time.sleep(SETTLING)
        return [(name, budgets, *browse(options, program, url, (address, wanted))) for name, address, wanted, budgets in LISTS]


def measure_jobs(options, work):
    with many_gpus.server(options.bin, work) as (program, url, addresses):
        time.sleep(SETTLING)
        return [(name, JOB, *browse(options, program, url, (address, DEVICES))) for name, address in addresses.items()]


def table(rows, what):
    empty = rows[0][2][0]["cpu"]
    lines = ["Measured on %s: %d CPUs, Linux %s; %s. A page without data takes %.0f ms of CPU time here." % (
        datetime.date.today(), os.cpu_count(), platform.release(), what, empty), "",
        "| page, warm | data, kB | CPU of the server, ms | CPU of the page, ms | elements | memory of the page, MB | settled after, s |", "|---|---|---|---|---|---|---|"]
    for name, budgets, (_, found), server in rows:
        values = (found["data"] / 1e3, server, found["cpu"], found["nodes"], found["heap"])
        cells = ["%.*f%s" % (1 if i in (0, 4) else 0, value, "" if most is None else " (budget %d)" % most) for i, (value, most) in enumerate(zip(values, budgets))]
        lines.append("| %s | %s | %.1f |" % (name, " | ".join(cells), found["wall"] / 1e3))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--only", choices=("list", "jobs"))
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    parser.add_argument("--write")
    options = parser.parse_args()
    for part, section, measured, what in (("list", "page", measure_lists, "%d units" % options.units),
                                          ("jobs", "page-gpus", measure_jobs, "jobs of one hour that have ended, with the TSDB beside")):
        if options.only not in (None, part):
            continue
        with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work:
            text = table(measured(options, work), what)
        print(text)
        if options.write:
            write_section(options.write, section, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
