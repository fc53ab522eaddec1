#!/usr/bin/env python3
"""Measures the cost of a scrape of ceems_exporter, next to Debian's prometheus-node-exporter in the same run.

    cmake --preset bench && cmake --build build/bench --target ceems_exporter floor
    bench/scrape.py --bin build/bench/bin [--write bench/RESULTS.md]

For 20, 100 and 1,000 SLURM jobs, a tree of cgroup v2 files is made in a temporary directory. Three exporters are scraped in turn over
one connection each: ours with the default collectors and slurm, the same with the energy counters, and node_exporter with its defaults.
They are scraped in a burst and at a fixed spacing, compressed as Prometheus requests it. CPU time is that of the whole process
(cpu_time.py). `floor` reads the same files and does nothing else.

--live makes the jobs real cgroups (v1, as root; each with one sleeping process in one step), so that the exporter works as in
production: the kernel reports which jobs are alive, and not every cgroup has to be read. The floor then reads the files that the
exporter keeps open.

--all enables every collector of a SLURM node (slow sources, tools and a BMC are stand-ins from the tests), with 20 jobs. GPUs are found
by the vendor's tool; no GPU library and nothing of Kubernetes is loaded. It also measures without Redfish (the only collector that loads
libcurl), without the sources that run commands, and without all slow sources, to show what those cost. With --live as well, the jobs and
all of /proc are real.

--check fails if a budget is exceeded: with 20 jobs at 0.5 s at most half the CPU of node_exporter and 8 MB of anonymous memory
(RssAnon), with 1,000 (and --live) at most 1.5 times the floor that opens, reads and closes each file."""

import argparse
import gzip
import http.client
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

from cpu_time import process_cpu_seconds

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
from slurm_node import SlurmNode  # noqa: E402

FILES_OF_JOB = {
    "cgroup.events": "populated 1\nfrozen 0\n",
    "cgroup.procs": "",
    "cpu.stat": "usage_usec 60491070351\nuser_usec 60375292848\nsystem_usec 115777502\nnr_periods 0\nnr_throttled 0\n"
                "throttled_usec 0\n",
    "cpuset.cpus.effective": "0-1\n",
    "cpu.max": "max 100000\n",
    "memory.current": "4111491072\n",
    "memory.max": "4294967296\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
    "rdma.current": "",
    "io.stat": "8:0 rbytes=1048576 wbytes=2097152 rios=64 wios=128 dbytes=0 dios=0\n",
    "memory.stat": "".join("%s %d\n" % (key, 4096 * i) for i, key in enumerate(
        "anon file kernel kernel_stack pagetables sec_pagetables percpu sock vmalloc shmem zswap zswapped file_mapped "
        "file_dirty file_writeback swapcached anon_thp file_thp shmem_thp inactive_anon active_anon inactive_file "
        "active_file unevictable slab_reclaimable slab_unreclaimable slab workingset_refault_anon "
        "workingset_refault_file workingset_activate_anon workingset_activate_file workingset_restore_anon "
        "workingset_restore_file workingset_nodereclaim pgscan pgsteal pgscan_kswapd pgscan_direct pgsteal_kswapd "
        "pgsteal_direct pgfault pgmajfault pgrefill pgactivate pgdeactivate pglazyfree pglazyfreed".split())),
}
# Files of a job that the exporter reads only on request (swap, PSI), or that are empty here.
NOT_READ = {"rdma.current"}
MAX_ANONYMOUS = 8e6  # bytes
STEPS = ("step_batch/user/task_0", "step_extern/user/task_special", "step_0/user/task_0")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def make_tree(root, jobs):
    """Makes a node with this many jobs of three steps. Returns the files that a scrape must read and the cgroups that it must find."""
    scope = root + "/sys/fs/cgroup/system.slice/slurmstepd.scope"
    write(root + "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
    read = []
    for i in range(jobs):
        job = "%s/job_%d" % (scope, 1000000 + i)
        pid = 100000 + i
        for name, text in FILES_OF_JOB.items():
            write(job + "/" + name, text)
            if name not in NOT_READ:
                read.append(job + "/" + name)
        write(job + "/cgroup.controllers", "cpuset cpu io memory pids\n")
        for step in STEPS:
            path = job
            for part in step.split("/"):
                path += "/" + part
                write(path + "/cgroup.controllers", "cpuset cpu io memory pids\n")
                write(path + "/cgroup.events", "populated 1\nfrozen 0\n")
                write(path + "/cgroup.procs", "")
            write(path + "/cgroup.procs", "%d\n" % pid)
            read.append(path + "/cgroup.procs")
        write("%s/proc/%d/status" % (root, pid), "Name:\twork\nUid:\t1000\t1000\t1000\t1000\n")
        write("%s/proc/%d/cmdline" % (root, pid), "/usr/bin/work\0")
    for n in range(2):
        zone = root + "/sys/class/powercap/intel-rapl:%d" % n
        for name, text in (("name", "package-%d\n" % n), ("energy_uj", "258218293244\n"),
                           ("max_energy_range_uj", "262143328850\n"), ("constraint_0_power_limit_uw", "180000000\n"),
                           ("constraint_0_time_window_us", "999424\n")):
            write(zone + "/" + name, text)
        read += [zone + "/energy_uj", zone + "/constraint_0_power_limit_uw", zone + "/constraint_0_time_window_us"]
    for name in ("stat", "cpuinfo", "meminfo"):
        with open("/proc/" + name) as f:
            write("%s/proc/%s" % (root, name), f.read())
    read += [root + "/proc/stat", root + "/proc/meminfo"]
    return read, [path + "/" for path, _, _ in os.walk(root + "/sys/fs/cgroup")]


class Target:
    """A running exporter and one connection to it."""

    def __init__(self, name, arguments, env=None):
        self.name = name
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=dict(os.environ, **(env or {})))
        found = None
        while not found:
            self.log.seek(0)
            found = re.search(r"(?:msg=listening.* address=|msg=\"Listening on\" address=)([0-9.]+):(\d+)", self.log.read())
            if not found and self.process.poll() is not None:
                raise SystemExit("%s ended with status %s" % (name, self.process.returncode))
            time.sleep(0.02)
        self.connection = http.client.HTTPConnection(found.group(1), int(found.group(2)), timeout=60)
        self.page = b""

    def scrape(self):
        self.connection.request("GET", "/metrics", headers={
            "Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip", "User-Agent": "bench"})
        answer = self.connection.getresponse()
        self.page = answer.read()
        if answer.status != 200:
            raise SystemExit("%s answered %d" % (self.name, answer.status))

    def raw(self):
        """The text of the last page."""
        return gzip.decompress(self.page) if self.page[:2] == b"\x1f\x8b" else self.page

    def samples(self):
        return sum(1 for line in self.raw().splitlines() if line and not line.startswith(b"#"))

    def cpu(self):
        """CPU seconds of the process so far."""
        return process_cpu_seconds(self.process.pid)

    def memory(self):
        """Resident bytes (proc_pid_status(5)): anonymous memory, which the program allocates, and all of it, including mapped files such
        as the code of libraries."""
        with open("/proc/%d/status" % self.process.pid) as f:
            found = {name: int(value) * 1024 for name, value in re.findall(r"^(\w+):\s+(\d+) kB", f.read(), re.M)}
        return found["RssAnon"], found["VmRSS"]

    def stop(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


def measure(targets, scrapes, spacing):
    """CPU microseconds per scrape of each target, scraped in turn. Each round starts with another target, because caches are cold after a
    pause."""
    before = [t.cpu() for t in targets]
    for i in range(scrapes):
        started = time.monotonic()
        first = i % len(targets)
        for target in targets[first:] + targets[:first]:
            target.scrape()
        if spacing:
            time.sleep(max(0.0, spacing - (time.monotonic() - started)))
    return [(t.cpu() - b) * 1e6 / scrapes for t, b in zip(targets, before)]


def floor(program, mode, passes, files):
    out = subprocess.run([program, mode, str(passes)], input="\n".join(files) + "\n", capture_output=True, text=True, check=True)
    return float(out.stdout.split()[0])


def run_size(options, jobs, node):
    root = tempfile.mkdtemp(prefix="ceems-bench-", dir=options.directory)
    try:
        files, cgroups = make_tree(root, jobs)
        flags = ["--path.procfs=%s/proc" % root, "--path.sysfs=%s/sys" % root, "--path.cgroupfs=%s/sys/fs/cgroup" % root,
                 "--collector.cgroups.force-version=v2", "--collector.slurm", "--web.listen-address=127.0.0.1:0",
                 "--no-security.drop-privileges"]
        program = os.path.join(options.bin, "ceems_exporter")
        ours = Target("ceems_exporter", [program] + flags)
        energy = Target("ceems_exporter with energy", [program, "--collector.energy"] + flags)
        targets = [ours, energy, node]
        try:
            for _ in range(10):  # scrape them in turn, because exporters close a connection that is idle for 10 s
                for target in targets:
                    target.scrape()
            burst = measure(targets, max(30, min(options.burst, 40000 // jobs)), 0)
            spaced = measure(targets, options.spaced, options.spacing)
            passes = max(10, 20000 // jobs)
            return {"live": False, "jobs": jobs, "files": len(files), "samples": ours.samples(), "bytes": len(ours.page), "burst": burst,
                    "spaced": spaced, "memory": [t.memory() for t in targets], "node_samples": node.samples(),
                    "walk": floor(os.path.join(options.bin, "floor"), "open", passes, files + cgroups), "cgroups": len(cgroups),
                    "open": floor(os.path.join(options.bin, "floor"), "open", passes, files),
                    "kept": floor(os.path.join(options.bin, "floor"), "kept", passes, files) if len(files) < 15000 else None}
        finally:
            ours.stop()
            energy.stop()
    finally:
        shutil.rmtree(root)


class LiveJobs:
    """Jobs as SLURM makes them in v1: /slurm_bench/uid_1000/job_N/step_0 in each hierarchy, with a sleeping process in the step."""

    CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")

    def __init__(self, jobs, command=("sleep", "86400")):
        self.roots = sorted({os.path.realpath("/sys/fs/cgroup/" + name) for name in self.CONTROLLERS
                             if os.path.isdir("/sys/fs/cgroup/" + name)})
        self.sleepers = []
        try:
            for i in range(jobs):
                self.sleepers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
                for root in self.roots:
                    self.add(root, "%s/slurm_bench/uid_1000/job_%d/step_0" % (root, 1000000 + i), self.sleepers[-1].pid)
        except BaseException:
            self.remove()
            raise

    @staticmethod
    def add(root, path, pid):
        os.makedirs(path, exist_ok=True)
        if os.path.basename(root) == "cpuset":  # an empty set accepts no process
            below = root
            for part in os.path.relpath(path, root).split("/"):
                for name in ("cpuset.cpus", "cpuset.mems"):
                    with open(below + "/" + name) as f:
                        value = f.read()
                    with open(below + "/" + part + "/" + name, "w") as f:
                        f.write(value)
                below += "/" + part
        with open(path + "/cgroup.procs", "w") as f:
            f.write("%d\n" % pid)

    def remove(self):
        for sleeper in self.sleepers:
            sleeper.kill()
        for sleeper in self.sleepers:
            sleeper.wait()
        for root in self.roots:
            for path, _, _ in os.walk(root + "/slurm_bench", topdown=False):
                os.rmdir(path)


def run_live(options, jobs, node):
    live = LiveJobs(jobs)
    try:
        flags = ["--collector.slurm", "--web.listen-address=127.0.0.1:0", "--no-security.drop-privileges"]
        program = os.path.join(options.bin, "ceems_exporter")
        ours = Target("ceems_exporter", [program] + flags + ["--no-collector.energy"])
        energy = Target("ceems_exporter with energy", [program] + flags)
        targets = [ours, energy, node]
        try:
            for _ in range(10):
                for target in targets:
                    target.scrape()
            burst = measure(targets, max(30, min(options.burst, 40000 // jobs)), 0)
            spaced = measure(targets, options.spaced, options.spacing)
            links = (os.path.join("/proc/%d/fd" % ours.process.pid, fd) for fd in os.listdir("/proc/%d/fd" % ours.process.pid))
            files = [path for path in map(os.readlink, links) if path.startswith("/sys/fs/cgroup/") and os.path.isfile(path)]
            cgroups = [path + "/" for path, _, _ in os.walk("/sys/fs/cgroup/cpuacct/slurm_bench/uid_1000")]
            passes = max(10, 20000 // jobs)
            return {"live": True, "jobs": jobs, "files": len(files), "samples": ours.samples(), "bytes": len(ours.page), "burst": burst,
                    "spaced": spaced, "memory": [t.memory() for t in targets], "node_samples": node.samples(), "cgroups": len(cgroups),
                    "walk": floor(os.path.join(options.bin, "floor"), "open", passes, files + cgroups),
                    "open": floor(os.path.join(options.bin, "floor"), "open", passes, files),
                    "kept": floor(os.path.join(options.bin, "floor"), "kept", passes, files) if len(files) < 15000 else None}
        finally:
            ours.stop()
            energy.stop()
    finally:
        live.remove()


SLOW = {"Redfish": ("redfish",), "commands": ("ipmi_dcmi", "rdma"), "slow sources, energy": ("ipmi_dcmi", "rdma", "redfish", "energy")}


def run_all(options, jobs, node):
    root = tempfile.mkdtemp(prefix="ceems-bench-", dir=options.directory)
    live = LiveJobs(jobs) if options.live else None
    try:
        with SlurmNode(root, processes=not live) as machine:
            for _ in range(0 if live else jobs):
                machine.add_job()
            if live:
                write(machine.bin + "/rdma.pid", "%d\n" % live.sleepers[-1].pid)
            everything = machine.flags() + ["--collector.perf.software-events", "--web.listen-address=127.0.0.1:0",
                                            "--no-security.drop-privileges"]
            if live:  # the jobs and processes are those of this machine
                everything = [flag for flag in everything if not flag.startswith(("--path.procfs", "--path.cgroupfs", "--collector.cgroups."))]
            program = os.path.join(options.bin, "ceems_exporter")
            targets = [Target("all collectors", [program] + everything, machine.env())]
            for what, names in SLOW.items():
                flags = [flag for flag in everything if not any(flag.startswith("--collector." + name) for name in names)]
                targets.append(Target("without " + what, [program] + flags, machine.env()))
            targets.append(node)
            try:
                for _ in range(10):
                    for target in targets:
                        target.scrape()
                burst = measure(targets, options.burst, 0)
                spaced = measure(targets, options.spaced, options.spacing)
                return [{"name": target.name, "jobs": jobs, "samples": target.samples(), "bytes": len(target.page), "burst": burst[i],
                         "spaced": spaced[i], "memory": target.memory()} for i, target in enumerate(targets)]
            finally:
                for target in targets[:-1]:
                    target.stop()
    finally:
        if live:
            live.remove()
        shutil.rmtree(root)


def megabytes(sizes):
    """The cells of a table row."""
    return " | ".join("%.1f" % (size / 1e6) for size in sizes)


def table_of_all(rows, options):
    node = rows[-1]
    lines = ["| %d jobs | samples | burst, µs | ÷ node_exporter | %g s, µs | ÷ node_exporter | RssAnon, MB | RSS, MB |" % (
        rows[0]["jobs"], options.spacing), "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        lines.append("| %s | %d | %d | %.2f | %d | %.2f | %s |" % (
            row["name"], row["samples"], round(row["burst"]), row["burst"] / node["burst"], round(row["spaced"]),
            row["spaced"] / node["spaced"], megabytes(row["memory"])))
    return "\n".join(lines)


def stripped_size(program):
    with tempfile.NamedTemporaryFile() as f:
        if shutil.which("strip") and subprocess.run(["strip", "-o", f.name, program]).returncode == 0:
            return os.path.getsize(f.name)
    return os.path.getsize(program)


def table(rows, options):
    def us(value):
        return "–" if value is None else "%d" % round(value)

    spacing = "%g s" % options.spacing
    lines = ["| jobs | samples | files | | burst, µs | ÷ node_exporter | %s, µs | ÷ node_exporter | RssAnon, MB | RSS, MB "
             "| ÷ floor (files) | ÷ floor (files, cgroups) |" % spacing, "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        for i, name in enumerate(("default + slurm", "… + energy")):
            lines.append("| %d | %d | %d | %s | %s | %.2f | %s | %.2f | %s | %.2f | %s |" % (
                row["jobs"], row["samples"], row["files"], name, us(row["burst"][i]), row["burst"][i] / row["burst"][2],
                us(row["spaced"][i]), row["spaced"][i] / row["spaced"][2], megabytes(row["memory"][i]), row["burst"][i] / row["open"],
                "%.2f" % (row["burst"][i] / row["walk"])))
        lines.append("| | %d | | node_exporter | %s | 1 | %s | 1 | %s | | |" % (
            row["node_samples"], us(row["burst"][2]), us(row["spaced"][2]), megabytes(row["memory"][2])))
        lines.append("| | | %d | floor: files, each opened | %s | %.2f | | | | | 1 | |" % (
            row["files"], us(row["open"]), row["open"] / row["burst"][2]))
        lines.append("| | | %d | floor: files and cgroups listed | %s | %.2f | | | | | | 1 |" % (
            row["files"] + row["cgroups"], us(row["walk"]), row["walk"] / row["burst"][2]))
        lines.append("| | | %d | floor: files kept open | %s | %s | | | | | | |" % (
            row["files"], us(row["kept"]), "–" if row["kept"] is None else "%.2f" % (row["kept"] / row["burst"][2])))
    return "\n".join(lines)


def machine():
    with open("/proc/cpuinfo") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    return "%s, %d CPUs, Linux %s" % (model.group(1) if model else platform.machine(), os.cpu_count(), platform.release())


def missed_by_all(rows, size):
    """The budgets that a node with all collectors exceeds."""
    problems = []
    if rows[0]["spaced"] > 0.5 * rows[-1]["spaced"]:
        problems.append("all collectors: CPU per scrape is %.2f of node_exporter's" % (rows[0]["spaced"] / rows[-1]["spaced"]))
    anonymous = rows[0]["memory"][0]
    if anonymous > MAX_ANONYMOUS:
        problems.append("all collectors: %.1f MB of anonymous memory" % (anonymous / 1e6))
    if size > 5e6:
        problems.append("the stripped program has %.1f MB" % (size / 1e6))
    return problems


def missed(rows):
    """The budgets that these rows exceed."""
    problems = []
    for row in rows:
        if row["jobs"] == 20:
            if row["spaced"][0] > 0.5 * row["spaced"][2]:
                problems.append("20 jobs: CPU per scrape is %.2f of node_exporter's" % (row["spaced"][0] / row["spaced"][2]))
            if row["memory"][0][0] > MAX_ANONYMOUS:
                problems.append("20 jobs: %.1f MB of anonymous memory" % (row["memory"][0][0] / 1e6))
        if row["live"] and row["jobs"] == 1000 and row["burst"][0] > 1.5 * row["open"]:
            problems.append("1000 jobs: %.2f times the floor" % (row["burst"][0] / row["open"]))
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bench/bin")
    parser.add_argument("--node-exporter", default="prometheus-node-exporter")
    parser.add_argument("--jobs", type=int, nargs="*", default=[20, 100, 1000])
    parser.add_argument("--burst", type=int, default=400, help="number of scrapes in a burst (default: %(default)s)")
    parser.add_argument("--spaced", type=int, default=40, help="number of scrapes at the spacing (default: %(default)s)")
    parser.add_argument("--spacing", type=float, default=0.5)
    parser.add_argument("--directory", help="where to make the trees (default: the temporary directory)")
    parser.add_argument("--write", metavar="FILE", help="replace the measured part of this file")
    parser.add_argument("--live", action="store_true", help="use real cgroups instead of a tree of files")
    parser.add_argument("--all", action="store_true", help="measure all collectors of a SLURM node")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not shutil.which(options.node_exporter):
        print("SKIPPED: %s is not installed" % options.node_exporter)
        return 77
    node = Target("node_exporter", [options.node_exporter, "--web.listen-address=127.0.0.1:0"])
    try:
        if options.all:
            rows = run_all(options, options.jobs[0], node)
        else:
            run = run_live if options.live else run_size
            rows = [run(options, jobs, node) for jobs in options.jobs]
    finally:
        node.stop()
    size = stripped_size(os.path.join(options.bin, "ceems_exporter"))
    text = "Measured on %s: %s. Program, stripped: %.1f MB.\n\n%s\n" % (
        time.strftime("%Y-%m-%d"), machine(), size / 1e6, (table_of_all if options.all else table)(rows, options))
    print(text)
    if options.write:
        with open(options.write) as f:
            page = f.read()
        part = "-".join(["all"] * options.all + ["live"] * options.live) or "tree"
        begin, end = ("<!-- %s %s -->" % (word, part) for word in ("begin", "end"))
        head, rest = page.split(begin)
        with open(options.write, "w") as f:
            f.write("%s%s\n\n%s\n%s%s" % (head, begin, text, end, rest.split(end)[1]))
    problems = missed_by_all(rows, size) if options.all else missed(rows)
    for problem in problems:
        print("budget missed: " + problem)
    return 1 if options.check and problems else 0


if __name__ == "__main__":
    sys.exit(main())
