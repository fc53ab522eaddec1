#!/usr/bin/env python3
"""Energy of units that hardly live, on real cgroups of both versions: 100 jobs of 0.3 s, and 1,000 that are born and die within about a
second. At least 95 % of the former are on the page, and for every domain and on every page units, ended units, system and unallocated energy
sum to that of the node. The energy meters are files that move with the CPU time that the kernel counts, so the energy that jobs are due
is known, too, and printed. Needs root. Takes half a minute on a quiet machine."""

import os
import subprocess
import sys
import threading
import time

import harness
from harness import get, samples, scratch, start_exporter, wait_until, write

IDLE_WATTS = 40.0
WATTS = 60.0  # of a busy CPU
SEEN = 0.95
EXACT = 1e-9
DOMAINS = ("package", "dram", "node")

# A process that makes jobs FIRST, FIRST + STEP, ... of the directory, enters each, burns some CPU time, leaves it and removes it.
WORKER = """
import os, sys, time
parent, home, first, end, step, burn, life = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), *map(float, sys.argv[6:8])
pid = str(os.getpid()).encode()
def enter(path):
    with open(path + "/cgroup.procs", "wb", 0) as f:
        f.write(pid)
for i in range(first, end, step):
    job = "%s/job_%d" % (parent, i)
    os.mkdir(job)
    enter(job)
    begin = time.thread_time()
    while time.thread_time() - begin < burn:
        pass
    time.sleep(life)
    enter(home)
    os.rmdir(job)
"""


class Meters(threading.Thread):
    """RAPL counters that follow the CPU time of this machine."""

    def __init__(self, sys_path):
        super().__init__(daemon=True)
        self.stopped = False
        self.zones = []
        for path, name, share in (("intel-rapl:0", "package-0", 1.0), ("intel-rapl:0:0", "dram", 0.2)):
            zone = "%s/class/powercap/%s" % (sys_path, path)
            for file, text in (("name", name + "\n"), ("max_energy_range_uj", "262143328850\n"), ("energy_uj", "%015d\n" % 10**9)):
                write(zone + "/" + file, text)
            self.zones.append([os.open(zone + "/energy_uj", os.O_WRONLY), share, 1e9])

    @staticmethod
    def busy():
        with open("/proc/stat", encoding="ascii") as f:
            times = [int(word) for word in f.readline().split()[1:9]]
        return (sum(times) - times[3] - times[4] - times[7]) / os.sysconf("SC_CLK_TCK")

    def run(self):
        last, busy = time.monotonic(), self.busy()
        while not self.stopped:
            time.sleep(0.02)
            now, now_busy = time.monotonic(), self.busy()
            joules = IDLE_WATTS * (now - last) + WATTS * max(0.0, now_busy - busy)
            last, busy = now, now_busy
            for zone in self.zones:
                zone[2] += 1e6 * zone[1] * joules
                os.pwrite(zone[0], b"%015d\n" % int(zone[2]), 0)


class Cgroups:
    """A directory of real cgroups for jobs, in a hierarchy of one version."""

    def __init__(self, version):
        self.version = version
        legacy = not os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.root = "/sys/fs/cgroup" if version == "v1" or not legacy else "/sys/fs/cgroup/unified"
        self.hierarchy = self.root + "/cpuacct" if version == "v1" else self.root
        self.parent = "%s/ceems_storm_%d" % (self.hierarchy, os.getpid())
        if (version == "v1") != legacy and version == "v1":
            raise OSError("this machine has no cgroup v1")
        os.mkdir(self.parent)
        with open("/proc/self/cgroup", encoding="ascii") as f:
            homes = {line.split(":")[1]: line.rstrip("\n").split(":", 2)[2] for line in f}
        own = next((path for names, path in homes.items() if ("cpuacct" in names.split(",") if version == "v1" else names == "")), "/")
        self.home = self.hierarchy + own.rstrip("/")

    def cpu_seconds(self):
        """Of all that ever ran in a job."""
        if self.version == "v1":
            with open(self.parent + "/cpuacct.usage", encoding="ascii") as f:
                return int(f.read()) / 1e9
        with open(self.parent + "/cpu.stat", encoding="ascii") as f:
            return int(f.readline().split()[1]) / 1e6

    def work(self, jobs, workers, burn, life, first):
        processes = [subprocess.Popen([sys.executable, "-S", "-E", "-c", WORKER, self.parent, self.home, str(first + worker),
                                       str(first + jobs), str(workers), str(burn), str(life)]) for worker in range(workers)]
        assert [process.wait() for process in processes] == [0] * workers

    def remove(self):
        for name in os.listdir(self.parent):
            if os.path.isdir(self.parent + "/" + name):
                os.rmdir(self.parent + "/" + name)
        os.rmdir(self.parent)


def domain_of(labels):
    return labels.split('domain="')[1].split('"')[0]


def energies(page):
    """Checks the sums of a page. Returns the energy of units by domain, that of the node, and the names of the units."""
    units, nodes, names = {}, {}, set()
    for domain in DOMAINS:
        parts = {}
        for name in ("compute_unit", "ended_units", "system", "unallocated", "node"):
            values = [(labels, value) for labels, value in samples(page, "ceems_%s_energy_joules_total" % name)
                      if domain_of(labels) == domain]
            assert all(value >= 0 for _, value in values), values
            parts[name] = sum(value for _, value in values)
            if name == "compute_unit":
                names.update(labels.split('uuid="')[1].split('"')[0] for labels, _ in values)
        nodes[domain] = parts.pop("node")
        units[domain] = parts["compute_unit"] + parts["ended_units"]
        assert abs(sum(parts.values()) - nodes[domain]) <= EXACT * max(1.0, nodes[domain]), (domain, parts, nodes[domain])
    return units, nodes, names


def check(cgroups, url, jobs, workers, burn, life, first, least):
    """Runs jobs while pages are read all the time, and compares what the last page says with what they used."""
    pages = []
    stop = threading.Event()

    def scrape():
        while not stop.is_set():
            pages.append(get(url + "/metrics").text)
            stop.wait(0.3)

    before, _, known = energies(get(url + "/metrics").text)
    used = cgroups.cpu_seconds()
    scraper = threading.Thread(target=scrape)
    scraper.start()
    began = time.monotonic()
    try:
        cgroups.work(jobs, workers, burn, life, first)
        took = time.monotonic() - began
        used = cgroups.cpu_seconds() - used
        wanted = {"job_%d" % i for i in range(first, first + jobs)}
        # Two samples later, everything that is known of them is on the page.
        time.sleep(2.5)
    finally:
        stop.set()
        scraper.join()
    pages.append(get(url + "/metrics").text)
    last = {}
    for page in pages:
        units, nodes, names = energies(page)
        for domain in DOMAINS:
            assert nodes[domain] >= last.get(domain, 0.0), "the node's energy fell"
            last[domain] = nodes[domain]
    seen = len((names - known) & wanted)
    assert seen >= least * jobs, "%d of %d jobs are on the page" % (seen, jobs)
    active = {domain: units[domain] - before[domain] for domain in DOMAINS}
    due = (WATTS + IDLE_WATTS / os.cpu_count()) * used
    print("  %s: %d jobs in %.1f s: %d seen, %d pages add up; %.2f CPU s, energy of packages %.1f J (due %.1f J), of memory %.1f J (%.1f J)" % (
        cgroups.version, jobs, took, seen, len(pages), used, active["package"], due, active["dram"], 0.2 * due), flush=True)
    assert used >= jobs * burn
    # How much it is depends on when an overloaded machine lets the meters run, so only its bounds are checked.
    for domain in ("package", "dram"):
        assert 0 < active[domain] < nodes[domain], (domain, active, nodes)


def test(directory, cgroups):
    sys_path = directory + "/sys"
    meters = Meters(sys_path)
    meters.start()
    os.mkdir(cgroups.parent + "/job_0")  # one that lasts
    # The jobs reserve nothing, so their part of the idle power is that of the CPUs that they use. Each CPU counts the same.
    flags = ["--path.sysfs=" + sys_path, "--path.cgroupfs=" + cgroups.root, "--collector.cgroups.force-version=" + cgroups.version,
             "--collector.cgroup", "--collector.cgroup.pattern=/ceems_storm_[0-9]+/(?P<id>job_[0-9]+)$", "--collector.energy",
             "--collector.energy.idle-watts=package=%g,dram=%g" % (IDLE_WATTS, 0.2 * IDLE_WATTS),
             "--collector.energy.second-thread=1", "--no-security.drop-privileges"]
    exporter, url = start_exporter(directory, flags)
    with exporter:
        wait_until("energy is on the page", lambda: samples(get(url + "/metrics").text, "ceems_node_energy_joules_total"), 20)
        time.sleep(3)
        check(cgroups, url, jobs=100, workers=20, burn=0.05, life=0.25, first=1000, least=SEEN)
        check(cgroups, url, jobs=1000, workers=4, burn=0.002, life=0, first=2000, least=0.3)
    meters.stopped = True
    meters.join()


def main():
    if os.geteuid() != 0:
        harness.skip("only root can make cgroups")
    done = 0
    for version in ("v1", "v2"):
        try:
            cgroups = Cgroups(version)
        except OSError as error:
            print("  %s: not here: %s" % (version, error))
            continue
        try:
            with scratch("ceems-energy-storm-") as directory:
                test(directory, cgroups)
            done += 1
        finally:
            cgroups.remove()
    if not done:
        harness.skip("no cgroups can be made")
    print("energy_storm: passed")


if __name__ == "__main__":
    main()
