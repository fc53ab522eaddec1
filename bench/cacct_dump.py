#!/usr/bin/env python3
"""Measures a dump of time series by cacct: memory and CPU time for 10 million samples and for a tenth of them.

    cmake --preset bench && cmake --build build/bench --target cacct
    bench/cacct_dump.py --bin build/bench/bin [--samples 10000000] [--write bench/RESULTS.md]

A stand-in for the load balancer answers with 20 series. CPU time is that of cacct alone; the wall time is mostly that of the stand-in.
The files take about 22 bytes for each sample below $TMPDIR."""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

from db_copy import peak_rss

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
from cacct_test import UNITS, Tsdb, api_answer, config  # noqa: E402
from harness import FakeHttp, write  # noqa: E402

SERIES, STEP = 20, 10  # seconds between samples, as the configuration says


def dump(program, directory, samples):
    """(samples, seconds, CPU seconds, peak RSS in MiB) of one dump."""
    length = samples // SERIES * STEP

    def answer(path, query, body):
        if path.startswith("/api/v1/units"):
            unit = dict(UNITS[0], ended_at_ts=UNITS[0]["started_at_ts"] + 1000 * length)
            return 200, "application/json", json.dumps({"status": "success", "data": [unit]}).encode()
        return api_answer(path, query, body)

    out = os.path.join(directory, "out-%d" % samples)
    with FakeHttp(answer) as api, FakeHttp(Tsdb(SERIES)) as server:
        write(os.path.join(directory, "ceems", "config.yml"), config(api, server))
        begin = time.monotonic()
        process = subprocess.Popen([program, "--job=7", "--ts", "--ts.out-dir=" + out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory, "TZ": "UTC"})
        most = 0.0
        while True:
            most = max(most, peak_rss(process.pid))  # ru_maxrss would begin with what this program has
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.02)
        process.returncode = status
        assert process.returncode == 0, process.returncode
    found = 0
    for name in os.listdir(out):
        if name.endswith(".csv"):
            with open(os.path.join(out, name), "rb") as file:
                found += sum(1 for _ in file) - 1
    assert found >= samples, found
    return found, time.monotonic() - begin, usage.ru_utime + usage.ru_stime, most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bench/bin")
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as directory:
        rows = [dump(os.path.abspath(options.bin) + "/cacct", directory, samples) for samples in (options.samples // 10, options.samples)]
    lines = ["Measured on %s: %d CPUs, Linux %s." % (datetime.date.today(), os.cpu_count(), platform.release()), "",
             "| samples | wall, s | CPU of cacct, µs a sample | memory at most: RSS, MB |", "|---|---|---|---|"]
    lines += ["| %d | %.0f | %.2f | %.1f |" % (found, wall, cpu / found * 1e6, rss) for found, wall, cpu, rss in rows]
    lines += ["", "Ten times the samples take %.2f times the memory." % (rows[1][3] / rows[0][3])]
    text = "\n".join(lines)
    print(text)
    if options.write:
        with open(options.write, encoding="utf-8") as page:
            before, rest = page.read().split("<!-- begin cacct_dump -->")
        after = rest.split("<!-- end cacct_dump -->")[1]
        with open(options.write, "w", encoding="utf-8") as page:
            page.write(before + "<!-- begin cacct_dump -->\n\n" + text + "\n\n<!-- end cacct_dump -->" + after)


if __name__ == "__main__":
    main()
