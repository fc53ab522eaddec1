#!/usr/bin/env python3
"""The exporter keeps what it learned about idle power over restarts: on a node that was idle and is full when the exporter starts again,
ceems_energy_idle_watts stays what it was. A file that is of no use is refused with one line, and idle power is assumed. Idle power is learned
from windows of 10 s.

With --long, which needs a quiet machine and takes more than a minute, the values stay within 1 %, also after 15 s under load."""

import os
import re
import sys
import threading
import time

from harness import get, samples, scratch, start_exporter, wait_until, write
from slurm_node import SlurmNode

CPUS = 4
IDLE = {"package": 60.0, "dram": 10.0}  # watts of each of two sockets
FULL = {"package": 170.0, "dram": 25.0}
WINDOW = 10.0
INTERVAL = 0.05


class Hardware(threading.Thread):
    """Moves the counters of energy and CPU time of a node by what it draws."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.load, self.stopped = 0.0, False
        self.zones = []  # (descriptor, kind, microjoules)
        for n in range(2):
            for path, kind in (("", "package"), (":0", "dram")):
                name = "%s/class/powercap/intel-rapl:%d%s/energy_uj" % (node.sys, n, path)
                self.zones.append([os.open(name, os.O_WRONLY), kind, 1e9])
        write(node.proc + "/stat", self.stat(0, 0))
        self.stat_file = os.open(node.proc + "/stat", os.O_WRONLY)

    @staticmethod
    def stat(busy, idle):
        # Always of the same length, so that a reader never sees a part.
        return "cpu  %012d 0 0 %012d 0 0 0 0 0 0\n" % (busy, idle) + "".join(
            "cpu%d %012d 0 0 %012d 0 0 0 0 0 0\n" % (n, busy // CPUS, idle // CPUS) for n in range(CPUS))

    def run(self):
        last, busy, idle = time.monotonic(), 0.0, 0.0
        while not self.stopped:
            time.sleep(INTERVAL)
            now = time.monotonic()
            seconds, last = now - last, now
            busy += 100 * CPUS * seconds * self.load
            idle += 100 * CPUS * seconds * (1 - self.load)
            for zone in self.zones:
                zone[2] += 1e6 * seconds * (IDLE[zone[1]] + self.load * (FULL[zone[1]] - IDLE[zone[1]]))
                os.pwrite(zone[0], b"%015d\n" % int(zone[2]), 0)
            os.pwrite(self.stat_file, self.stat(int(busy), int(idle)).encode(), 0)


def idle_watts(url):
    """The idle power of each domain."""
    page = get(url + "/metrics").text
    return {labels.split('domain="')[1].split('"')[0]: watts for labels, watts in samples(page, "ceems_energy_idle_watts")}


def learned(url, domains=("package", "dram")):
    watts = idle_watts(url)
    return watts if set(domains) <= set(watts) else None


def near(value, expected, part, what):
    assert abs(value - expected) <= part * expected, "%s: %g instead of %g" % (what, value, expected)


def flags_of(node):
    os.unlink(node.sys + "/class/hwmon/hwmon0/name")  # its power would not follow the load
    return node.paths() + ["--collector.slurm", "--collector.energy", "--collector.energy.interval=200ms", "--no-security.drop-privileges"]


def assumed(url, output):
    """Checks what an exporter says that has no usable file."""
    bases = [labels for labels, _ in samples(get(url + "/metrics").text, "ceems_energy_idle_info") if 'domain="package"' in labels]
    assert len(bases) == 1 and 'basis="assumed"' in bases[0], bases
    assert output.count("state file not used") == 1, output


def short(directory):
    with SlurmNode(directory + "/node") as node:
        flags, hardware = flags_of(node), Hardware(node)
        hardware.start()
        state = directory + "/state"
        os.mkdir(state)
        exporter, url = start_exporter(directory, flags, {"STATE_DIRECTORY": state})
        with exporter:
            time.sleep(1.2 * WINDOW)
            before = learned(url)
            near(before["package"], 2 * IDLE["package"], 0.1, "idle power of the packages")
        assert os.listdir(state) == ["energy.json"], os.listdir(state)
        assert os.stat(state + "/energy.json").st_mode & 0o777 == 0o600

        hardware.load = 1.0  # from now on, nobody sees the node idle
        exporter, url = start_exporter(directory, flags + ["--collector.energy.state-file=%s/energy.json" % state])
        with exporter:
            after = wait_until("idle power is known", lambda: learned(url))
            for domain in before:
                near(after[domain], before[domain], 0.1, "idle power of %s after the restart" % domain)

        write(directory + "/broken.json", '{"version":1,"machine":')
        exporter, url = start_exporter(directory, flags + ["--collector.energy.state-file=%s/broken.json" % directory])
        with exporter:
            forgetful = wait_until("idle power is assumed", lambda: learned(url))
            assumed(url, exporter.output().rsplit("starting ceems_exporter", 1)[1])
        hardware.stopped = True
        hardware.join()
        print("energy_state: idle power of the packages %.2f W before the restart, %.2f W after it, %.2f W without a state" % (
            before["package"], after["package"], forgetful["package"]))


def whole(directory):
    with SlurmNode(directory + "/node") as node:
        flags, hardware = flags_of(node), Hardware(node)
        hardware.start()
        state = directory + "/state"
        os.mkdir(state)
        exporter, url = start_exporter(directory, flags, {"STATE_DIRECTORY": state})
        with exporter:
            time.sleep(1.5 * WINDOW)
            hardware.load = 1.0
            time.sleep(1.5 * WINDOW)
            before = learned(url)
            near(before["package"], 2 * IDLE["package"], 0.02, "idle power of the packages")
        assert os.listdir(state) == ["energy.json"], os.listdir(state)
        assert os.stat(state + "/energy.json").st_mode & 0o777 == 0o600

        exporter, url = start_exporter(directory, flags + ["--collector.energy.state-file=%s/energy.json" % state])
        with exporter:
            after = wait_until("idle power is known", lambda: learned(url))
            time.sleep(1.5 * WINDOW)
            later = learned(url)
            for domain in before:
                near(after[domain], before[domain], 0.01, "idle power of %s after the restart" % domain)
                near(later[domain], before[domain], 0.01, "idle power of %s 15 s after the restart" % domain)

        # Without a usable file it assumes the part of the power under load that the table has for CPUs of this family, and says so. On a
        # loaded machine, the counters that the thread above writes are late by times, which looks like other power, so this is tried again.
        for attempts_left in (2, 1, 0):
            write(directory + "/broken.json", '{"version":1,"machine":')  # anew, because the exporter has replaced it
            exporter, url = start_exporter(directory, flags + ["--collector.energy.state-file=%s/broken.json" % directory])
            with exporter:
                time.sleep(1.5 * WINDOW)
                forgetful = learned(url)
                output = exporter.output().rsplit("starting ceems_exporter", 1)[1]
                idle, full = (float(re.search(r"power model ready.* %s_watts=(\S+)" % what, output).group(1)) for what in ("idle", "full"))
                # A CPU of no known family is taken to idle at half of its full power.
                expected = [part * 2 * FULL["package"] for part in (idle / full, 0.5)]
                nearest = min(expected, key=lambda watts: abs(watts - forgetful["package"]))
                assumed(url, output)
            if abs(forgetful["package"] / nearest - 1) <= 0.05:
                break
            assert attempts_left > 0, "idle power without a state file: %g instead of %g" % (forgetful["package"], nearest)
        hardware.stopped = True
        hardware.join()
        print("energy_state: idle power of the packages %.2f W before the restart, %.2f W after it, %.2f W later; %.2f W without a state" % (
            before["package"], after["package"], later["package"], forgetful["package"]))


def main():
    with scratch("ceems-energy-state-") as directory:
        (whole if "--long" in sys.argv[1:] else short)(directory)


if __name__ == "__main__":
    main()
