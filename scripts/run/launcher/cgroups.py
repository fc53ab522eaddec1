"""Cgroups for the demo units, v1 and v2 (kernel: Documentation/admin-guide/cgroup-v1, cgroup-v2.rst)."""

import os
import time

from . import Problem

# The v1 controllers that the exporter reads for a unit. It finds units by cpuacct.
V1_CONTROLLERS = ("cpuacct", "cpu", "memory", "blkio")
V2_CONTROLLERS = ("cpu", "memory", "io")
FOLDER = "ceems_demo"


def unescape(text):
    """Blanks in mountinfo are octal escapes, see proc(5)."""
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def hierarchies(mountinfo=None):
    """("v1", {controller: mount point}), ("v2", {"": mount point}) or (None, {})."""
    if mountinfo is None:
        with open("/proc/self/mountinfo") as f:
            mountinfo = f.read()
    v1, v2 = {}, None
    for line in mountinfo.splitlines():
        fields = line.split()
        if "-" not in fields[6:]:
            continue
        dash = fields.index("-", 6)
        kind, point, options = fields[dash + 1], unescape(fields[4]), fields[-1].split(",")
        if kind == "cgroup2" and v2 is None:
            v2 = point
        elif kind == "cgroup":
            for controller in V1_CONTROLLERS:
                if controller in options:
                    v1.setdefault(controller, point)
    if "cpuacct" in v1:  # v2 may also be mounted, but without controllers
        return "v1", v1
    if v2:
        return "v2", {"": v2}
    return None, {}


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def try_write(path, text):
    """Returns None, or why the text could not be written."""
    try:
        write(path, text)
        return None
    except OSError as error:
        return error.strerror


class Cgroups:
    """Makes and removes cgroups of one name in every hierarchy. Raises Problem if this machine does not allow it."""

    def __init__(self):
        self.version, self.mounts = hierarchies()
        self.missing = []  # descriptions of what the units will lack
        if self.version is None:
            raise Problem("no cgroup file system is mounted")
        self.roots = sorted(set(os.path.join(mount, FOLDER) for mount in self.mounts.values()))
        for root in self.roots:
            if self.version == "v2":
                self._enable(os.path.dirname(root))
            try:
                os.makedirs(root, exist_ok=True)
            except OSError as error:
                raise Problem("cannot make a cgroup below %s: %s. Many containers do not allow it; use a virtual or a real machine"
                              % (os.path.dirname(root), error.strerror)) from error
            if self.version == "v2":
                self._enable(root)
        if self.version == "v2":
            with open(os.path.join(self.roots[0], "cgroup.controllers")) as f:
                available = f.read().split()
        else:
            available = list(self.mounts)
        for controller, lost in (("memory", "memory use and limits"), ("cpu", "CPU limits")):
            if controller not in available:
                self.missing.append("%s of demo units: the %s controller is not available here" % (lost, controller))

    @staticmethod
    def _enable(folder):
        try:
            with open(os.path.join(folder, "cgroup.subtree_control")) as f:
                on = f.read().split()
        except OSError:
            return
        for controller in V2_CONTROLLERS:
            if controller not in on:
                try_write(os.path.join(folder, "cgroup.subtree_control"), "+" + controller)

    def make(self, name, cpus, memory, weight):
        """Makes the cgroup of one unit, limited to `cpus` CPUs and `memory` bytes if the controllers exist. `weight` of CPU time is
        the value of v2, with 100 as the default."""
        folders = [os.path.join(root, name) for root in self.roots]
        for folder in folders:
            try:
                os.mkdir(folder)
            except OSError as error:
                raise Problem("cannot make the cgroup %s: %s" % (folder, error.strerror)) from error
        period = 100000
        for folder in folders:
            # If a file does not exist, there is no limit, and the exporter reports what the machine has.
            if self.version == "v2":
                try_write(os.path.join(folder, "cpu.max"), "%d %d" % (cpus * period, period))
                try_write(os.path.join(folder, "cpu.weight"), str(weight))
                try_write(os.path.join(folder, "memory.max"), str(memory))
            else:
                try_write(os.path.join(folder, "cpu.cfs_period_us"), str(period))
                try_write(os.path.join(folder, "cpu.cfs_quota_us"), str(int(cpus * period)))
                try_write(os.path.join(folder, "cpu.shares"), str(weight * 1024 // 100))
                try_write(os.path.join(folder, "memory.limit_in_bytes"), str(memory))
        return folders

    def cpu_seconds(self, folders):
        """The CPU time that the cgroup itself counted."""
        if self.version == "v2":
            with open(os.path.join(folders[0], "cpu.stat")) as f:
                return int(dict(line.split() for line in f.read().splitlines())["usage_usec"]) / 1e6
        for folder in folders:
            if os.path.exists(os.path.join(folder, "cpuacct.usage")):
                with open(os.path.join(folder, "cpuacct.usage")) as f:
                    return int(f.read()) / 1e9
        raise OSError("cpuacct.usage is gone")

    def remove_root(self):
        for root in self.roots:
            try:
                os.rmdir(root)
            except OSError:
                pass  # another launcher has units there


def join(folders):
    """Moves the calling process into the cgroups."""
    for folder in folders:
        write(os.path.join(folder, "cgroup.procs"), str(os.getpid()))


def processes(folder):
    try:
        with open(os.path.join(folder, "cgroup.procs")) as f:
            return [int(line) for line in f.read().split()]
    except OSError:
        return []


def remove(folders, seconds=3.0):
    """Removes the cgroups of a unit. A cgroup may stay busy for a moment after its last process has ended."""
    end = time.monotonic() + seconds
    for folder in folders:
        while True:
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > end:
                    return False
                time.sleep(0.01)
    return True
