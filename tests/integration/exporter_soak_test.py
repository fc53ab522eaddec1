#!/usr/bin/env python3
"""One day of scrapes of a SLURM node with every collector enabled, back to back, while jobs start and end. The exporter's descriptors,
threads and memory must not grow.

    exporter_soak_test.py [SCRAPES [SPACING]]     (or CEEMS_SOAK_SCRAPES; default 100, a day is 5760)

Scrapes within 100 ms share one reading of the cgroups. With a spacing of 0.1 seconds each scrape reads them itself.

20 jobs are running; one starts and one ends every 4 scrapes. Memory is checked only for programs without sanitizers."""

import http.client
import os
import sys
import time

from harness import samples, scratch, start_exporter, wait_until
from slurm_node import SlurmNode

JOBS = 20
EVERY = 4  # scrapes between two changes of jobs
MAX_GROWTH = 2 << 20
COLLECTORS = {"cpu", "emissions", "energy", "hwmon", "infiniband", "ipmi_dcmi", "meminfo", "netdev", "rapl", "redfish", "slurm"}
KEEP_ENDED = 1.0  # seconds; about as many scrapes as in the default of 10 minutes at 15 s each


class Scraper:
    def __init__(self, exporter, url):
        self.pid = exporter.pid
        self.url = url
        self.connection = http.client.HTTPConnection(url.split("//")[1], timeout=90)

    def page(self):
        self.connection.request("GET", "/metrics")
        answer = self.connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, (answer.status, text)
        return text

    def status(self, key):
        with open("/proc/%d/status" % self.pid) as f:
            return int(next(line for line in f if line.startswith(key + ":")).split()[1])

    def resources(self):
        """(descriptors, threads, bytes of anonymous memory)"""
        return len(os.listdir("/proc/%d/fd" % self.pid)), self.status("Threads"), self.status("RssAnon") * 1024

    def settled(self):
        """The same after ended jobs were dropped. Takes the minimum of several readings, because current requests hold connections or
        children."""
        end = time.monotonic() + KEEP_ENDED + 0.5
        seen = []
        while time.monotonic() < end or len(seen) < 20:
            self.page()
            seen.append(self.resources())
            time.sleep(0.02)
        return tuple(min(values) for values in zip(*seen[-20:]))

    def returned_to(self, before, memory):
        """The resources once there are no more than before; what leaks never gets there."""
        def now():
            self.page()
            seen = self.resources()
            return seen if all(value <= limit for value, limit in zip(seen, (before[0], before[1], before[2] + memory))) else None
        return wait_until("descriptors, threads and memory are as before: %s" % (before,), now)


def check(scraper, node_joules):
    def good():
        """A page on which every collector succeeds. On a busy machine a tool or a job may be late."""
        page = scraper.page()
        success = {labels.split('"')[1]: value for labels, value in samples(page, "ceems_scrape_collector_success")}
        units = samples(page, "ceems_compute_units")[0][1]
        if success != dict.fromkeys(COLLECTORS, 1.0) or units not in (JOBS, JOBS + 1):  # a new job may appear before the old one disappears
            raise ValueError("%s, %d units" % (success, units))
        return page
    page = wait_until("all collectors succeed", good)
    for labels, joules in samples(page, "ceems_node_energy_joules_total"):
        assert joules >= node_joules.get(labels, 0), (labels, joules, node_joules)
        node_joules[labels] = joules


def has_perf(directory):
    """Whether the kernel allows us to count events."""
    with SlurmNode(directory + "/trial", processes=True) as node:
        node.add_job()
        exporter, url = start_exporter(directory, node.paths() + ["--collector.slurm", "--collector.perf.software-events"])
        with exporter:
            scraper = Scraper(exporter, url)
            scraper.page()
            time.sleep(1.2)  # the job starts one process each second
            return bool(samples(scraper.page(), "ceems_perf_page_faults_total"))


def soak(directory, scrapes, warm_up, spacing, perf):
    with SlurmNode(directory + "/node", processes=perf) as node:
        for _ in range(JOBS):
            node.add_job()
        flags = ["--collector.energy.keep-ended=%dms" % (1000 * KEEP_ENDED), "--collector.energy.interval=100ms"]
        if perf:
            flags.append("--collector.perf.software-events")
        exporter, url = start_exporter(directory, node.flags() + flags, node.env())
        with exporter:
            scraper = Scraper(exporter, url)
            sanitized = scraper.status("VmSize") > 1 << 30  # the shadow memory is that large, in KiB
            before, log_before, joules = None, None, {}
            peak = 0
            begin = time.monotonic()
            for i in range(scrapes + 1):
                if i == warm_up:
                    before, log_before = scraper.settled(), exporter.output()
                if i % EVERY == 0:
                    node.add_job()
                    node.end_job(min(node.jobs))
                scraper.page()
                time.sleep(spacing)
                if i % 50 == 25:
                    check(scraper, joules)
                    peak = max(peak, scraper.status("VmRSS") * 1024 if before else 0)
            took = time.monotonic() - begin
            after = scraper.returned_to(before, float("inf") if sanitized else MAX_GROWTH)
            check(scraper, joules)
            new_lines = exporter.output()[len(log_before):].splitlines()
        assert exporter.process.returncode == 0, exporter.output()[-3000:]
    print("%d scrapes in %.0f s (%.1f simulated hours), %d jobs ended, perf %s" % (
        scrapes, took, scrapes * 15 / 3600, scrapes // EVERY + 1, "on" if perf else "not possible here"))
    print("descriptors %d -> %d, threads %d -> %d, anonymous memory %.2f -> %.2f MB (%+.0f kB; highest seen between %.2f MB)%s" % (
        before[0], after[0], before[1], after[1], before[2] / 1e6, after[2] / 1e6, (after[2] - before[2]) / 1e3, peak / 1e6,
        ", with sanitizers" if sanitized else ""))
    assert len(new_lines) <= 5, "the log keeps growing:\n" + "\n".join(new_lines[:20])


def main():
    scrapes = int((sys.argv[1:] or [os.environ.get("CEEMS_SOAK_SCRAPES", "100")])[0])
    spacing = float((sys.argv[2:] or [0])[0])
    with scratch("ceems-soak-") as directory:
        soak(directory, scrapes, min(500, scrapes // 2), spacing, has_perf(directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
