"""Demo units: processes with different behaviour, each in its own cgroup."""

import json
import os
import sys
import threading
import time

from . import cgroups
from .processes import Child

WORKLOAD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "workload.py")
MIB = 1 << 20

# name, description, arguments of workload.py, CPUs, bytes of memory, weight of CPU time (the default is 100)
UNITS = (
    ("cpu-bound", "computes on one CPU", ["cpu"], 1.0, 256 * MIB, 20),  # yields to people's programs on the machine
    ("memory-holding", "holds 300 MiB of memory", ["memory", str(300 * MIB)], 0.5, 512 * MIB, 100),
    ("idle", "sleeps", ["idle"], 0.5, 128 * MIB, 100),
    ("five-seconds", "computes for five seconds and ends", ["cpu", "5"], 1.0, 256 * MIB, 100),
)


OWNER = "demo-user"


def names():
    """Rules for Prometheus that give the units a name and an owner: they are processes of whoever started them."""
    rules = []
    for name, *_ in UNITS:
        for label, value in (("name", name), ("username", OWNER)):
            rules.append({"source_labels": ["__name__", "uuid"], "regex": "ceems_compute_unit_info;%s-[0-9a-f]{4}" % name,
                          "target_label": label, "replacement": value})
    return rules


class DemoUnit:
    def __init__(self, group, name, run, kind, cpus, memory, weight, logs, credentials):
        self.group, self.uuid = group, "%s-%s" % (name, run)
        self.name = name
        self.folders = group.make(self.uuid, cpus, memory, weight)
        try:
            self.child = Child("demo unit " + self.uuid, [sys.executable, "-S", "-E", WORKLOAD] + kind,
                               os.path.join(logs, name + ".log"), credentials,
                               before_exec=lambda: cgroups.join(self.folders))
        except BaseException:
            cgroups.remove(self.folders)
            raise
        self.begin = time.time()
        self.final = None


class Demo:
    """Starts the units, records the final CPU time of those that end, and removes their cgroups."""

    def __init__(self, state, run, credentials, changed):
        self.state, self.run, self.credentials = state, run, credentials
        self.changed = changed  # called when units start or end
        self.units = []
        self.group = cgroups.Cgroups()  # raises Problem if cgroups cannot be made
        self.stopping = threading.Event()
        self.watcher = None

    def start(self):
        logs = os.path.join(self.state, "logs")
        for name, _, kind, cpus, memory, weight in UNITS:
            self.units.append(DemoUnit(self.group, name, self.run, kind, cpus, memory, weight, logs, self.credentials))
            self.changed()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _watch(self):
        while not self.stopping.wait(0.02):
            for unit in self.units:
                if unit.final is None and unit.child.ended():
                    self._finish(unit)

    def _finish(self, unit):
        """After the last process has ended: records the kernel's count and removes the cgroup, as resource managers do."""
        seconds = self.group.cpu_seconds(unit.folders)
        unit.final = seconds
        record = {"uuid": unit.uuid, "cpu_seconds": seconds, "started": unit.begin, "ended": time.time()}
        path = os.path.join(self.state, "demo", unit.uuid + ".json")
        with open(path + ".new", "w") as f:
            json.dump(record, f)
        os.replace(path + ".new", path)
        cgroups.remove(unit.folders)
        self.changed()

    def records(self):
        return [{"name": u.child.name, "pid": u.child.pid, "started": u.child.started} for u in self.units if u.final is None]

    def folders(self):
        return [folder for unit in self.units if unit.final is None for folder in unit.folders]

    def stop(self):
        self.stopping.set()
        if self.watcher:
            self.watcher.join()
        for unit in self.units:
            unit.child.ask_to_stop()
        for unit in self.units:
            unit.child.stop(3.0)
            if unit.final is None:
                try:
                    self._finish(unit)
                except OSError:
                    cgroups.remove(unit.folders)
        self.group.remove_root()
