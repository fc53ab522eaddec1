#!/usr/bin/env python3
"""Energy of units that hardly live, on real cgroups of both versions. For every domain and on every page units, ended units, system and
unallocated energy sum to that of the node, which never falls, and no CPU time is invented. An exporter that only listed cgroups from time to
time would see next to none of these jobs.

By default there are 60 jobs of 0.3 s, and what a busy machine may delay has wide bounds. With --long, which needs a quiet machine, there are
100 jobs of 0.3 s and 1,000 that are born and die within about a second. At least 95 % of either are on the page, together with the CPU time
that the kernel counted for all of them. The energy meters are files that move with the CPU time of the machine, so the energy that jobs are
due is known, too: they are charged it within 20 %. If the meters or the exporter are held up, energy comes after the CPU time that it belongs
to, so jobs are run up to three times for this. Needs root."""

import os
import subprocess
import sys
import threading
import time

import harness
from harness import get, samples, scratch, start_exporter, wait_until, write

IDLE_WATTS = 40.0
WATTS = 60.0  # of a busy CPU
DRAM = 0.2  # of the packages' power
LONG = "--long" in sys.argv[1:]
SEEN = 0.95 if LONG else 0.5
# More than the kernel counted is never shown. But cgroup v1 counts user and system time by ticks of 10 ms: the 1.2 s of the short run are
# only 120 of them, which chance alone puts 10 % off.
SAME_CPU_TIME = 0.03 if LONG else 0.25
MISSED_CPU_TIME = 0.03 if LONG else 0.5
SAME_ENERGY = 0.2 if LONG else float("inf")
STORMS = ({"jobs": 100, "workers": 20, "burn": 0.05, "life": 0.25}, {"jobs": 1000, "workers": 8, "burn": 0.0005, "life": 0}) if LONG else (
    {"jobs": 60, "workers": 20, "burn": 0.02, "life": 0.25},)
ATTEMPTS = 3
EXACT = 1e-9
DOMAINS = ("package", "dram", "node")

# A process that, when told to, makes jobs FIRST, FIRST + STEP, ... of the directory, enters each, burns some CPU time, leaves it and
# removes it.
WORKER = """
import os, sys, time
parent, home, first, end, step, burn, life = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), *map(float, sys.argv[6:8])
pid = str(os.getpid()).encode()
def enter(path):
    with open(path + "/cgroup.procs", "wb", 0) as f:
        f.write(pid)
print("ready", flush=True)
sys.stdin.read(1)
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
    """RAPL counters that follow the CPU time of this machine, `pause` seconds late at most."""

    def __init__(self, sys_path, pause=0.02):
        super().__init__(daemon=True)
        self.pause = pause
        self.stopped = False
        self.zones = []
        for path, name, share in (("intel-rapl:0", "package-0", 1.0), ("intel-rapl:0:0", "dram", DRAM)):
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
            time.sleep(self.pause)
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

    def workers(self, jobs, workers, burn, life, first):
        """Processes that wait until they are told to begin."""
        processes = [subprocess.Popen([sys.executable, "-S", "-E", "-c", WORKER, self.parent, self.home, str(first + worker),
                                       str(first + jobs), str(workers), str(burn), str(life)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE) for worker in range(workers)]
        assert [process.stdout.readline() for process in processes] == [b"ready\n"] * workers
        return processes

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


def cpu_seconds(page, wanted):
    """Of these units."""
    return sum(value for mode in ("user", "system") for labels, value in samples(page, "ceems_compute_unit_cpu_%s_seconds_total" % mode)
               if labels.split('uuid="')[1].split('"')[0] in wanted)


def check(cgroups, url, jobs, workers, burn, life, first):
    """Runs jobs while pages are read all the time, and compares what the last page says with what they used. Returns whether their energy
    is what they are due."""
    pages = []
    stop = threading.Event()

    def scrape():
        while not stop.is_set():
            pages.append(get(url + "/metrics").text)
            stop.wait(0.3)

    before, _, known = energies(get(url + "/metrics").text)
    processes = cgroups.workers(jobs, workers, burn, life, first)
    used = cgroups.cpu_seconds()
    scraper = threading.Thread(target=scrape)
    scraper.start()
    began = time.monotonic()
    try:
        for process in processes:
            process.stdin.write(b"go")
            process.stdin.close()
        assert [process.wait() for process in processes] == [0] * workers
        took = time.monotonic() - began
        used = cgroups.cpu_seconds() - used
        wanted = {"job_%d" % i for i in range(first, first + jobs)}
        # Two samples later, everything that is known of them is on the page.
        settled = time.monotonic() + 2.5
        wait_until("their CPU time is on the page", lambda: cpu_seconds(pages[-1], wanted) >= (1 - MISSED_CPU_TIME) * used
                   and time.monotonic() > settled)
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
    assert seen >= SEEN * jobs, "%d of %d jobs are on the page" % (seen, jobs)
    shown = cpu_seconds(pages[-1], wanted)
    active = {domain: units[domain] - before[domain] for domain in DOMAINS}
    # Jobs without a limit of memory are due none of its idle power.
    due = {"package": (WATTS + IDLE_WATTS / os.cpu_count()) * used, "dram": DRAM * WATTS * used}
    print("  %s: %d jobs in %.1f s: %d seen, %d pages add up; %.3f CPU s of %.3f; %s" % (
        cgroups.version, jobs, took, seen, len(pages), shown, used, ", ".join("%s %.1f J of %.1f (%+.0f %%)" % (
            domain, active[domain], due[domain], 100 * (active[domain] / due[domain] - 1)) for domain in due)),
        flush=True)
    assert used >= jobs * burn
    assert -MISSED_CPU_TIME * used <= shown - used <= SAME_CPU_TIME * used, (shown, used)
    for domain in due:
        assert 0 < active[domain] < nodes[domain], (domain, active, nodes)
    return all(abs(active[domain] / due[domain] - 1) <= SAME_ENERGY for domain in due)


def test(directory, cgroups):
    sys_path = directory + "/sys"
    meters = Meters(sys_path)
    meters.start()
    os.mkdir(cgroups.parent + "/job_0")  # one that lasts
    # The jobs reserve nothing, so their part of the idle power is that of the CPUs that they use. Each CPU counts the same.
    flags = ["--path.sysfs=" + sys_path, "--path.cgroupfs=" + cgroups.root, "--collector.cgroups.force-version=" + cgroups.version,
             "--collector.cgroup", "--collector.cgroup.pattern=/ceems_storm_[0-9]+/(?P<id>job_[0-9]+)$", "--collector.energy",
             "--collector.energy.idle-watts=package=%g,dram=%g" % (IDLE_WATTS, DRAM * IDLE_WATTS),
             "--collector.energy.second-thread=1", "--no-security.drop-privileges"]
    exporter, url = start_exporter(directory, flags)
    with exporter:
        wait_until("energy is on the page", lambda: samples(get(url + "/metrics").text, "ceems_node_energy_joules_total"))
        if LONG:
            time.sleep(3)
        for what in STORMS:
            first = 1000 * what["jobs"]
            assert any(check(cgroups, url, first=first + attempt * what["jobs"], **what) for attempt in range(ATTEMPTS)), "energy is off"
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
