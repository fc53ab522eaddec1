#!/usr/bin/env python3
"""Compares whole pages of the real exporter on the machines in tests/fixtures with tests/golden/exporter/*.txt.

    tests/golden/exporter_golden.py [--bin PROGRAM] [--update] [--no-promtool] [CASE ...]

--update rewrites the golden pages. Each page also goes through `promtool check metrics`, and the
same series have to be on the OpenMetrics page."""

import argparse
import difflib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOLDEN = os.path.join(TESTS, "golden", "exporter")

# Case: (machine in tests/fixtures, flags). One coherent machine per page; add a row for each new one.
CASES = {
    "empty": ("empty", ["--collector.hwmon"]),
    "intel-2s": ("intel-2s", ["--collector.hwmon"]),
    "intel-2s-options": ("intel-2s", ["--collector.disable-defaults", "--collector.meminfo", "--collector.rapl",
                                      "--collector.meminfo.all-stats", "--collector.rapl.enable-zone-label"]),
    "slurm-v1": ("slurm-v1", ["--collector.cgroups.force-version=v1", "--collector.disable-defaults", "--collector.slurm",
                              "--collector.slurm.swap-memory-metrics", "--collector.slurm.psi-metrics"]),
    "slurm-v2": ("slurm-v2", ["--collector.cgroups.force-version=v2", "--collector.disable-defaults", "--collector.slurm",
                              "--collector.slurm.swap-memory-metrics", "--collector.slurm.psi-metrics"]),
}

# Series whose values change from run to run; the only ones that are taken out of the pages.
NOT_DETERMINISTIC = re.compile(
    r"(# (HELP|TYPE) )?(ceems_scrape_collector_duration_seconds|ceems_exporter_build_info|process_|promhttp_)")

# What promtool objects to in names that dashboards of the reference rely on.
KNOWN_LINT = [
    re.compile(r"ceems_meminfo_\w+ metric names should be written in 'snake_case' not 'camelCase'"),
    re.compile(r"ceems_(cpu|cpu_per_core|compute_unit_memory_fail|compute_unit_memsw_fail)_count "
               r'non-histogram and non-summary metrics should not have "_count" suffix'),
]


class Exporter:
    """The program on a free port, with fixture roots given relative to tests/, so that labels hold no local path."""

    def __init__(self, program, machine, flags):
        root = "fixtures/" + machine
        arguments = [program, "--web.listen-address=127.0.0.1:0", "--collector.empty-hostname-label",
                     "--no-security.drop-privileges", "--path.procfs=%s/proc" % root, "--path.sysfs=%s/sys" % root,
                     "--path.cgroupfs=%s/sys/fs/cgroup" % root] + flags
        self.process = subprocess.Popen(arguments, cwd=TESTS, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, bufsize=1)
        self.log = []
        self.address = None
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"msg=listening.* address=([0-9.]+:\d+)", line)
            if found:
                self.address = found.group(1)
                return
        raise SystemExit("the exporter ended with status %s:\n%s" % (self.process.wait(), "".join(self.log)))

    def page(self, accept="text/plain"):
        request = urllib.request.Request("http://%s/metrics" % self.address, headers={"Accept": accept})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return answer.read().decode("utf-8")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        rest = self.process.stderr.read()
        status = self.process.wait(30)
        if status != 0:
            raise SystemExit("the exporter ended with status %d:\n%s" % (status, "".join(self.log) + rest))


def deterministic(page):
    return [line for line in page.splitlines() if not NOT_DETERMINISTIC.match(line)]


def lint(page):
    """What promtool has to say beyond the known."""
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True)
    lines = [line for line in (checked.stdout + checked.stderr).splitlines() if line.strip()]
    return [line for line in lines if not any(known.fullmatch(line) for known in KNOWN_LINT)]


def samples(page):
    return sorted(line for line in page.splitlines() if not line.startswith("#") and not NOT_DETERMINISTIC.match(line))


def check(name, program, update, with_promtool):
    machine, flags = CASES[name]
    with Exporter(program, machine, flags) as exporter:
        page = exporter.page()
        open_metrics = exporter.page("application/openmetrics-text; version=1.0.0")
    failures = lint(page) if with_promtool else []
    if not open_metrics.endswith("# EOF\n") or samples(open_metrics) != samples(page):
        failures.append("the OpenMetrics page does not have the series of the text page")
    path = os.path.join(GOLDEN, name + ".txt")
    have = deterministic(page)
    if update:
        os.makedirs(GOLDEN, exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(have) + "\n")
        return failures
    want = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            want = f.read().splitlines()
    return failures + list(difflib.unified_diff(want, have, path, "the exporter's page", lineterm=""))


def main():
    default = os.path.join(os.environ.get("CEEMS_BIN_DIR", os.path.join(TESTS, "..", "build", "bin")), "ceems_exporter")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=default)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--no-promtool", action="store_true", help="leave out the check by promtool")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    if not options.no_promtool and not shutil.which("promtool"):
        print("promtool is missing (Debian package prometheus)")
        return 1
    failed = 0
    for name in options.cases or sorted(CASES):
        start = time.monotonic()
        differences = check(name, os.path.abspath(options.bin), options.update, not options.no_promtool)
        print("%-4s %s (%.2f s)" % ("FAIL" if differences else "ok", name, time.monotonic() - start))
        for line in differences:
            print("     " + line)
        failed += bool(differences)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
