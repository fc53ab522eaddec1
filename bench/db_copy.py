#!/usr/bin/env python3
"""Measures `ceems_tool db copy` from SQLite to PostgreSQL and back, with one kill -9 on each way.

    cmake --preset bench && cmake --build build/bench --target ceems_tool database
    bench/db_copy.py --bin build/bench/bin [--units 10000000] [--data DIRECTORY] [--write bench/RESULTS.md]

The database has the units of a year (bench/database.cc), of which the first --written are repeated under other IDs, because writing
10 million as the API server does takes an hour; with --data it is a copy of the one in that directory. It is made below $TMPDIR; all
takes about 5 kB for each unit. Needs PostgreSQL and psql."""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time

from database import Server
from repeated_units import repeat_units


def lines(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def peak_rss(pid):
    try:
        with open("/proc/%d/status" % pid, encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024
    except (OSError, AttributeError):
        return 0.0


def run(tool, arguments, kill_after=None):
    """Runs a copy. Returns (seconds, MiB at most, its report; None if it was killed)."""
    begin, most = time.monotonic(), 0.0
    with tempfile.TemporaryFile("w+") as out, subprocess.Popen([tool, "db", "copy", "--json", *arguments], stdout=out) as program:
        while program.poll() is None:
            most = max(most, peak_rss(program.pid))
            if kill_after is not None and time.monotonic() - begin > kill_after:
                program.kill()
            time.sleep(0.05)
        seconds = time.monotonic() - begin
        if program.returncode == -9:
            return seconds, most, None
        out.seek(0)
        report = json.loads(out.read())
    if program.returncode != 0 or not report["equal"]:
        raise SystemExit("the copy is not equal: %s" % report)
    return seconds, most, report


def measure(tool, source, target, kill_after):
    arguments = ["--from", source, "--to", target]
    first, most, report = run(tool, arguments, kill_after)
    if report:
        print("it ended before it was killed", file=sys.stderr)
        return first, most, report
    second, most_again, report = run(tool, arguments)
    print("killed after %.1f s; %d rows were there, %d were copied by the second run" % (first, report["resumed"], report["copied"]),
          file=sys.stderr)
    return first + second, max(most, most_again), report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bench/bin")
    parser.add_argument("--units", type=int, default=10_000_000)
    parser.add_argument("--written", type=int, default=100_000, help="units to write, which are then repeated (default: 100000)")
    parser.add_argument("--data")
    parser.add_argument("--kill-after", type=float, help="seconds; otherwise a hundred-thousandth of the units, at least 1")
    parser.add_argument("--one-way", action="store_true", help="do not copy back")
    parser.add_argument("--write")
    options = parser.parse_args()
    tool = os.path.join(options.bin, "ceems_tool")
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work:
        os.chmod(work, 0o755)
        os.makedirs(work + "/source")
        source = work + "/source/ceems.db"
        if options.data:
            lines(tool, "db", "backup", "--db", options.data, "--output", source)
            lines(tool, "db", "migrate", "--db", source, "--time-zone", "UTC")
        else:
            written = min(options.units, options.written)
            lines(os.path.join(options.bin, "database"), "sqlite:" + work + "/source", str(written), "1000", "nothing")
            begin = time.monotonic()
            repeat_units(source, options.units)
            print("%d units after %.0f s" % (options.units, time.monotonic() - begin), file=sys.stderr)
        info = json.loads(lines(tool, "db", "info", "--json", "--db", source))
        units = info["tables"]["units"]
        kill_after = options.kill_after or max(1.0, units / 100_000)
        rows = [("units", units), ("the SQLite file, GB", "%.2f" % (info["bytes"] / 1e9))]
        server = Server(work + "/pg")
        try:
            ways = (("SQLite to PostgreSQL", source, server.url()), ("PostgreSQL to SQLite", server.url(), work + "/back.db"))
            for name, one, other in ways[:1] if options.one_way else ways:
                seconds, most, report = measure(tool, one, other, kill_after)
                rows += [(name + ", with a kill and the comparison", "%.1f s" % seconds),
                         ("units per second", "%d" % (units / seconds)),
                         ("rows that the run after the kill found", report["resumed"]),
                         ("memory at most: RSS, MB", "%.0f" % most)]
        finally:
            server.stop()
    text = "Measured on %s: %d CPUs, Linux %s.\n\n| `db copy` | |\n|---|---|\n%s" % (
        datetime.date.today(), os.cpu_count(), platform.release(), "\n".join("| %s | %s |" % row for row in rows))
    print(text)
    if options.write:
        with open(options.write, encoding="utf-8") as page:
            before, rest = page.read().split("<!-- begin db_copy -->")
        after = rest.split("<!-- end db_copy -->")[1]
        with open(options.write, "w", encoding="utf-8") as page:
            page.write(before + "<!-- begin db_copy -->\n\n" + text + "\n\n<!-- end db_copy -->" + after)


if __name__ == "__main__":
    main()
