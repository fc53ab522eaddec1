#!/usr/bin/env python3
"""Two ceems_exporter programs on one machine, started at different times, with real cgroups: do they charge the units the same energy?

Half of the units sleep, the others work for a part of each second, one core in all at most, at the lowest priority. The RAPL counters are
files that move with the CPU time of this machine, whatever else runs on it. A process of real-time priority writes them each millisecond,
because real counters are never later than that, however busy the machine is (--meter 0.02: as late as the files of the tests). Nothing is configured: both programs learn the idle power and
the watts of units by themselves. Prints for each domain the joules of all units, the largest and median difference of a unit, and the
difference of the sums. Needs root and the cgroup hierarchy of cpuacct (v1) or cgroup v2.

usage: two_exporters.py [--minutes 15] [--units 50] [--apart 7.3] [--within 0.03] [--meter 0.001]"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/integration"))
from energy_storm_test import Cgroups, Meters  # noqa: E402
from harness import get, samples, scratch, skip, start_exporter, wait_until  # noqa: E402

CORES = 0.9  # of all units together
LOOP = """
import os, sys, time
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
os.nice(15)
share = float(sys.argv[2])
while True:
    end = time.thread_time() + share
    begin = time.monotonic()
    while share and time.thread_time() < end and time.monotonic() < begin + 0.9:
        pass
    time.sleep(max(0.1, begin + 1 - time.monotonic()))
"""


def joules(url):
    """The energy of units by domain and unit."""
    found = {}
    for labels, value in samples(get(url + "/metrics").text, "ceems_compute_unit_energy_joules_total"):
        found.setdefault(re.search(r'domain="(\w+)"', labels).group(1), {})[re.search(r'\buuid="(\w+)"', labels).group(1)] = value
    return found


def start_units(cgroups, count):
    busy = count // 2
    processes = []
    for i in range(count):
        path = "%s/job_%d" % (cgroups.parent, i + 1)
        os.mkdir(path)
        # The busiest has twenty times the CPU time of the least busy.
        share = CORES * (1 + 19 * i / (busy - 1)) / (10.5 * busy) if i < busy else 0
        processes.append(subprocess.Popen([sys.executable, "-S", "-E", "-c", LOOP, path, str(share)]))
    return processes


@contextlib.contextmanager
def meters_moved(sys_path, pause):
    """Moves the counters in a process of its own, which ends with this one."""
    meters = Meters(sys_path, pause)
    end, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except OSError:
            os.nice(-20)
        meters.start()
        os.read(end, 1)
        os._exit(0)
    os.close(end)
    try:
        yield
    finally:
        os.close(held)
        os.waitpid(child, 0)


def flags(cgroups, directory):
    return ["--path.sysfs=" + directory + "/sys", "--path.cgroupfs=" + cgroups.root, "--collector.cgroups.force-version=" + cgroups.version,
            "--collector.cgroup", "--collector.cgroup.pattern=/%s/(?P<id>job_[0-9]+)$" % os.path.basename(cgroups.parent), "--collector.energy",
            "--no-security.drop-privileges"]


def compare(first, second, options):
    """Scrapes both each 15 s, as Prometheus does, and compares what was added since both are there."""
    wait_until("both show all units", lambda: all(
        len(joules(url).get("package", {})) == options.units for url in (first, second)), 60)
    begin = [joules(first), joules(second)]
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        time.sleep(min(15, max(0.1, end - time.monotonic())))
        now = [joules(first), joules(second)]
    worst = 0
    for domain in sorted(now[0]):
        added = [{unit: page[domain][unit] - start[domain].get(unit, 0) for unit in page[domain]} for page, start in zip(now, begin)]
        assert added[0].keys() == added[1].keys(), domain
        mean = {unit: (added[0][unit] + added[1][unit]) / 2 for unit in added[0]}
        apart = sorted((abs(added[0][unit] - added[1][unit]) / mean[unit], unit) for unit in mean if mean[unit] > 0)
        sums = [sum(one.values()) for one in added]
        print("%-8s %3d units: %8.0f J and %8.0f J in all (%.2f %% apart); a unit %.0f to %.0f J, %.2f %% apart (median), %d more than %g %%, "
              "%.2f %% at most (%s)" % (
            domain, len(apart), sums[0], sums[1], 100 * abs(sums[0] - sums[1]) / max(sums), min(mean.values()), max(mean.values()),
            100 * apart[len(apart) // 2][0], sum(part > options.within for part, _ in apart), 100 * options.within, 100 * apart[-1][0],
            apart[-1][1]))
        worst = max(worst, apart[-1][0])
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--units", type=int, default=50)
    parser.add_argument("--apart", type=float, default=7.3, help="seconds between the two starts")
    parser.add_argument("--within", type=float, default=0.03)
    parser.add_argument("--meter", type=float, default=0.001, help="by how many seconds the counters are late")
    options = parser.parse_args()
    if os.geteuid() != 0:
        skip("only root can make cgroups")
    cgroups = Cgroups("v2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "v1")
    processes = []
    try:
        with scratch("ceems-two-") as directory, meters_moved(directory + "/sys", options.meter):
            processes = start_units(cgroups, options.units)
            one, first = start_exporter(directory, flags(cgroups, directory))
            with one:
                time.sleep(options.apart)
                two, second = start_exporter(directory, flags(cgroups, directory))
                with two:
                    worst = compare(first, second, options)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        wait_until("the cgroups are empty", lambda: cgroups.remove() or True, 20)
    print("two_exporters: %s" % ("passed" if worst <= options.within else "units differ by more than %g %%" % (100 * options.within)))
    return 0 if worst <= options.within else 1


if __name__ == "__main__":
    sys.exit(main())
