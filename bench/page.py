#!/usr/bin/env python3
"""Measures the list of jobs in a browser, with the real ceems_api_server: CPU time of server and page, memory and elements of the page.

    cmake --preset bench && cmake --build build/bench --target ceems_api_server database
    bench/page.py --bin build/bench/bin [--units 100000] [--write bench/RESULTS.md]

Needs chromium, npm and what tests/e2e/run installs. The units are those of a year (bench/database.cc); the page shows the newest hundred of
all. It is opened once, and then five times, of which the middle counts."""

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time

from cpu_time import process_cpu_seconds
from section import write_section

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "integration"))
import harness  # noqa: E402

TIMES = 5  # and once before
SETTLING = 10  # seconds in which the server completes what it does after a start
ADDRESS = "#/jobs?from=1735689600&to=1767225600&show=ended"  # 2025
BUDGETS = (("CPU of the server, ms", "server", 250), ("CPU of the page, ms", "cpu", 150), ("memory of the page, MB", "heap", 30), ("elements", "nodes", 3000))


def measure(options, directory, work):
    harness.BIN = options.bin
    subprocess.run([os.path.join(options.bin, "database"), "sqlite:" + directory, str(options.units)], check=True, stdout=sys.stderr)
    config = "ceems_api_server:\n  data: {path: %s, time_zone: UTC, update_interval: 1d}\n  admin: {users: [root]}\n" % directory
    program, url = harness.start_api_server(work, config, ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges", "--log.level=warn"])
    with program:
        time.sleep(SETTLING)
        before = process_cpu_seconds(program.pid)
        done = subprocess.run(["node", os.path.join(HERE, "page.mjs"), url, ADDRESS, str(TIMES)], check=True, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "CHROMIUM": options.chromium})
        found = json.loads(done.stdout)
        found["server"] = (process_cpu_seconds(program.pid) - before) * 1e3 / (TIMES + 1)  # with the page without a list, which asks for little
    return found


def table(found, units):
    lines = ["Measured on %s: %d CPUs, Linux %s; %d units, %.1f kB came from the server. A page without a list takes %.0f ms of CPU time here."
             % (datetime.date.today(), os.cpu_count(), platform.release(), units, found["bytes"] / 1e3, found["empty"]), "",
             "| first 100 rows, warm | budget | measured |", "|---|---|---|"]
    return "\n".join(lines + ["| %s | %d | %.0f |" % (name, budget, found[key]) for name, key, budget in BUDGETS])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    parser.add_argument("--write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work:
        directory = os.path.join(work, "data")
        os.mkdir(directory)
        text = table(measure(options, directory, work), options.units)
    print(text)
    if options.write:
        write_section(options.write, "page", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
