#!/usr/bin/env python3
"""Marks of jobs, from every sender to the page of a real exporter: joules of regions, results and figures of merit of a node of plain files
whose jobs draw 100 W each; a flood; and on real cgroups, which need root, that no process marks a job of another user or another job."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import threading
import time

from harness import BIN, ROOT, get, need_programs, samples, scratch, start_exporter, wait_until, write

SENDERS = os.path.join(ROOT, "apps", "ceems_mark")
WATTS = 100.0  # of each job
CPUS = 8  # one for each job
SECONDS = 2.5  # of a region
# One that other users can run.
PYTHON_PROGRAM = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
USER = 1000 if os.geteuid() == 0 else os.geteuid()

C_PROGRAM = """#include <unistd.h>
#include "ceems_mark.h"
void other(void);
int main(void) {
  ceems_mark_begin("solve");
  usleep(%d);
  other();
  return (int)ceems_mark_dropped();
}
""" % (SECONDS * 1e6)
# In a second source, which shares the connection.
C_OTHER = """#include <locale.h>
#include <unistd.h>
#include "ceems_mark.h"
void other(void);
void other(void) {
  ceems_mark_result("step", 50.5, NULL);
  ceems_mark_fom("speed", 83.25, "ns/day");
  ceems_mark_end("solve");
  usleep(200000);
}
"""
C_FLOOD = """#include "ceems_mark.h"
int main(void) {
  int i;
  for (i = 0; i < 100000; ++i) {
    ceems_mark_result("flood", 1, NULL);
  }
  return ceems_mark_dropped() == 0;
}
"""
FORTRAN = """program job
  use ceems_mark
  use, intrinsic :: iso_c_binding, only: c_double
  call mark_begin("solve")
  call sleep(3)
  call mark_result("step", 50.5_c_double)
  call mark_fom("speed", 83.25_c_double, "ns/day")
  call mark_end("solve")
  call sleep(1)
end program
"""
PYTHON = """
import sys, time
sys.path.insert(0, %r)
import ceems_mark
class Trainer:
    is_global_zero = True
callback = ceems_mark.TrainingMarks()
callback.on_train_start(Trainer(), None)
with ceems_mark.region("solve"):
    time.sleep(%g)
    ceems_mark.result("step", 50.5)
    ceems_mark.fom("speed", 83.25, "ns/day")
callback.on_train_batch_end(Trainer(), None)
callback.on_train_end(Trainer(), None)
time.sleep(0.2)
sys.exit(ceems_mark.dropped())
"""


class Meter(threading.Thread):
    """A RAPL counter of constant power."""

    def __init__(self, sys_path, watts):
        super().__init__(daemon=True)
        self.watts, self.stopped = watts, threading.Event()
        zone = sys_path + "/class/powercap/intel-rapl:0"
        for file, text in (("name", "package-0\n"), ("max_energy_range_uj", "262143328850\n"), ("energy_uj", "%015d\n" % 10**9)):
            write(zone + "/" + file, text)
        self.counter = os.open(zone + "/energy_uj", os.O_WRONLY)
        self.start()

    def run(self):
        began = time.monotonic()
        while not self.stopped.wait(0.01):
            os.pwrite(self.counter, b"%015d\n" % int(1e9 + 1e6 * self.watts * (time.monotonic() - began)), 0)


class Node:
    """Jobs of SLURM in a tree of plain files. Their processes are real; what the exporter knows of them are files."""

    def __init__(self, root):
        self.root, self.proc, self.sys, self.cgroup = root, root + "/proc", root + "/sys", root + "/sys/fs/cgroup"
        write(self.proc + "/stat", "cpu  0 0 0 5000 0 0 0 0 0 0\n" + "".join("cpu%d 0 0 0 500 0 0 0 0 0 0\n" % n for n in range(CPUS)))
        write(self.proc + "/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
        write(self.proc + "/diskstats", "")
        write(self.cgroup + "/cgroup.controllers", "cpuset cpu io memory pids\n")
        self.scope = self.cgroup + "/system.slice/slurmstepd.scope"
        for job in range(1, CPUS + 1):
            home = "%s/job_%d" % (self.scope, job)
            for file, text in (("cgroup.controllers", "cpuset cpu io memory pids\n"), ("cgroup.events", "populated 1\n"), ("cgroup.procs", ""),
                               ("cpu.stat", "usage_usec 0\nuser_usec 0\nsystem_usec 0\n"), ("cpuset.cpus", "%d\n" % (job - 1)), ("cpuset.cpus.effective", "%d\n" % (job - 1)),
                               ("memory.current", "4096\n"), ("memory.max", "max\n"), ("memory.stat", "anon 4096\nfile 0\n"),
                               ("step_0/cgroup.events", "populated 1\n"), ("step_0/cgroup.procs", "")):
                write(home + "/" + file, text)
            self.add_process(job, 5000000 + job, USER)  # lasts as long as the job
        self.meter = Meter(self.sys, WATTS * CPUS)

    def add_process(self, job, pid, uid):
        home = "%s/%d" % (self.proc, pid)
        write(home + "/status", "Name:\twork\nUid:\t%d\t%d\t%d\t%d\n" % (uid, uid, uid, uid))
        write(home + "/cmdline", "/usr/bin/work\0")
        write(home + "/stat", "%d (work) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 4711 1 1\n" % pid)
        write(home + "/cgroup", "0::/system.slice/slurmstepd.scope/job_%d/step_0\n" % job)
        with open("%s/job_%d/step_0/cgroup.procs" % (self.scope, job), "a", encoding="ascii") as procs:
            procs.write("%d\n" % pid)

    def start(self, job, command, env, uid=USER, **options):
        """A process of the job, which runs once the files say so."""
        process = subprocess.Popen(["/bin/sh", "-c", 'read go; exec "$@"', "sh", *command], stdin=subprocess.PIPE, env=env,
                                   stderr=subprocess.PIPE, text=True, **({"user": uid, "group": uid} if os.geteuid() == 0 else {}), **options)
        self.add_process(job, process.pid, uid)
        process.stdin.write("go\n")
        process.stdin.flush()
        return process

    def run(self, job, command, env, uid=USER, given="", **options):
        process = self.start(job, command, env, uid, **options)
        out, errors = process.communicate(given, timeout=90)
        return process.returncode, out, errors


def series(page, name, job, label=None, value=None):
    """The only sample of the metric with these labels, or None."""
    found = [number for labels, number in samples(page, name)
             if 'uuid="%s"' % job in labels and (label is None or '%s="%s"' % (label, value) in labels) and
             ("domain=" not in labels or 'domain="node"' in labels)]
    assert len(found) <= 1, found
    return found[0] if found else None


def build(directory):
    """The C and Fortran programs. Without gfortran, the test leaves out the Fortran program and says so."""
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-O1", "-I", SENDERS]
    for name, text in (("solve.c", C_PROGRAM), ("other.c", C_OTHER), ("flood.c", C_FLOOD), ("job.f90", FORTRAN)):
        write(directory + "/" + name, text)
    subprocess.run(["cc", *flags, "-D_DEFAULT_SOURCE", "solve.c", "other.c", "-o", "solve"], cwd=directory, check=True)
    subprocess.run(["cc", *flags, "flood.c", "-o", "flood"], cwd=directory, check=True)
    subprocess.run(["c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", SENDERS, "-x", "c++", "-fsyntax-only", "flood.c"],
                   cwd=directory, check=True)
    if not shutil.which("gfortran"):
        print("  SKIPPED: ceems_mark.f90: gfortran is not installed")
        return False
    subprocess.run(["cc", "-x", "c", "-DCEEMS_MARK_API=", "-c", SENDERS + "/ceems_mark.h", "-o", "ceems_mark_c.o"], cwd=directory, check=True)
    subprocess.run(["gfortran", "-std=gnu", SENDERS + "/ceems_mark.f90", "job.f90", "ceems_mark_c.o", "-o", "fortran"], cwd=directory, check=True)
    return True


def check_region(page, job, region, count=1):
    seconds = series(page, "ceems_compute_unit_region_seconds_total", job, "region", region)
    joules = series(page, "ceems_compute_unit_region_energy_joules_total", job, "region", region)
    assert series(page, "ceems_compute_unit_region_count_total", job, "region", region) == count, (job, region)
    assert seconds >= SECONDS - 0.5 and abs(joules - WATTS * seconds) <= 0.1 * joules, (job, region, seconds, joules)
    assert joules <= series(page, "ceems_compute_unit_energy_joules_total", job) + 1e-6, (job, region)
    return joules


def senders(directory, node, url, env, tool, has_fortran):
    """Each sender in a job of its own, at the same time."""
    log = directory + "/run.log"

    def shell():
        for words in ("begin solve", "result step 50.5", "fom speed 83.25 ns/day"):
            assert node.run(1, [tool, "-v", *words.split()], env) == (0, None, ""), words
        time.sleep(SECONDS)
        assert node.run(1, [tool, "-v", "end", "solve"], env) == (0, None, "")
        status, _, errors = node.run(1, [tool, "begin", "so{lve"], env)
        assert status == 2 and "invalid name" in errors, errors

    def follow():
        write(log, "Step 9000 of an earlier run\n")
        process = node.start(5, [tool, "follow", log, "--regex", r"^Step +(\d+)", "--result", "step"], env)
        wait_until("follow waits for lines", lambda: log in " ".join(
            os.readlink("/proc/%d/fd/%s" % (process.pid, fd)) for fd in os.listdir("/proc/%d/fd" % process.pid)))
        with open(log, "a", encoding="ascii") as lines:
            for step in range(0, 1001, 10):
                lines.write("Step %4d  energy -3.5e4\nother %d\n" % (step, step))
                lines.flush()
                time.sleep(0.005)
        wait_until("the steps are on the page", lambda: series(get(url + "/metrics").text, "ceems_compute_unit_results_total", 5) == 1000)
        process.terminate()
        assert process.wait(90) == 0
        status, out, errors = node.run(5, [tool, "-v", "follow", "-", "--regex", "speed: ([0-9.]+)", "--fom", "speed", "--unit", "ns/day"], env,
                                       given="hello\nspeed: 80.5\nspeed: 83.25\n", stdout=subprocess.PIPE)
        assert (status, out, errors) == (0, "hello\nspeed: 80.5\nspeed: 83.25\n", ""), (status, out, errors)

    def wrapped():
        status, _, errors = node.run(4, [tool, "-v", "wrap", "solve", "--", "sh", "-c", "sleep %g; exit 3" % SECONDS], env)
        assert (status, errors) == (3, ""), (status, errors)

    def program(job, *command):
        status, _, errors = node.run(job, command, env)
        assert (status, errors) == (0, ""), (command, status, errors)

    work = [shell, follow, wrapped, lambda: program(2, directory + "/solve"),
            lambda: program(3, PYTHON_PROGRAM, "-c", PYTHON % (directory, SECONDS))]
    if has_fortran:
        work.append(lambda: program(6, directory + "/fortran"))
    errors = []

    def guarded(part):
        try:
            part()
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(part,)) for part in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    time.sleep(2.2)  # two samples of energy
    page = get(url + "/metrics").text
    for job in (1, 2, 3, *([6] if has_fortran else [])):
        check_region(page, job, "solve")
        assert series(page, "ceems_compute_unit_results_total", job, "result", "step") == 50.5, job
        assert series(page, "ceems_compute_unit_fom", job, "unit", "ns/day") == 83.25, job
    check_region(page, 3, "train")
    assert series(page, "ceems_compute_unit_results_total", 3, "result", "batch") == 1
    check_region(page, 4, "solve")
    assert series(page, "ceems_compute_unit_fom", 5, "fom", "speed") == 83.25
    assert not samples(page, "ceems_compute_unit_region_seconds_total") or all(
        'uuid="7"' not in labels for labels, _ in samples(page, "ceems_compute_unit_region_seconds_total"))


def flood(directory, node, url, env):
    """A job that sends 100,000 messages at once loses most of them, and the marks of others are taken."""
    assert node.run(7, [directory + "/flood"], env) == (0, None, "")
    tool = directory + "/ceems_mark"
    assert node.run(8, [tool, "-v", "result", "calm", "1"], env) == (0, None, "")
    page = get(url + "/metrics").text
    assert dict(samples(page, "ceems_exporter_marks_dropped_total"))['{reason="rate"}'] > 0
    assert 0 < series(page, "ceems_compute_unit_results_total", 7) < 10000
    assert series(page, "ceems_compute_unit_results_total", 8) == 1


def fake_node():
    with scratch("ceems-marks-") as directory:
        has_fortran = build(directory)
        node = Node(directory + "/node")
        tool = shutil.copy(os.path.join(BIN, "ceems_mark"), directory)
        shutil.copy(SENDERS + "/ceems_mark.py", directory)
        path = directory + "/run/mark.sock"
        env = {"PATH": os.environ["PATH"], "CEEMS_MARK_SOCKET": path, "LC_ALL": "C.UTF-8"}
        exporter, url = start_exporter(directory, [
            "--path.procfs=" + node.proc, "--path.sysfs=" + node.sys, "--path.cgroupfs=" + node.cgroup,
            "--collector.cgroups.force-version=v2", "--collector.disable-defaults", "--collector.slurm", "--collector.energy",
            "--collector.energy.idle-watts=package=%g" % (WATTS * CPUS), "--collector.marks", "--collector.marks.socket=" + path])
        with exporter:
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o666
            wait_until("jobs have energy", lambda: (series(get(url + "/metrics").text, "ceems_compute_unit_energy_joules_total", 1) or 0) > 0)
            senders(directory, node, url, env, tool, has_fortran)
            flood(directory, node, url, env)
        # Without an exporter, senders do nothing, and scripts go on.
        assert node.run(1, [tool, "begin", "solve"], env) == (0, None, "")
        assert node.run(1, [tool, "-v", "begin", "solve"], env)[0] == 1
        assert node.run(1, [tool, "wrap", "solve", "--", "true"], env) == (0, None, "")
        node.meter.stopped.set()
    print("  senders: passed")


@contextlib.contextmanager
def real_cgroups():
    """A directory of real cgroups, with the version and the mount point; None where none can be made."""
    legacy = not os.path.exists("/sys/fs/cgroup/cgroup.controllers")
    root = "/sys/fs/cgroup"
    parent = "%s/ceems_marks_%d" % (root + "/cpuacct" if legacy else root, os.getpid())
    try:
        os.mkdir(parent)
    except OSError as error:
        print("  SKIPPED: real cgroups: %s" % error)
        yield None
        return
    try:
        yield parent, root, "v1" if legacy else "v2"
    finally:
        for name in os.listdir(parent):
            if os.path.isdir(parent + "/" + name):
                wait_until("the cgroup is empty", lambda name=name: os.rmdir(parent + "/" + name) is None)
        os.rmdir(parent)


def real_jobs():
    """Two jobs of one user and one of another, and a process outside."""
    with scratch("ceems-marks-") as directory, real_cgroups() as cgroups:
        if cgroups is None:
            return
        parent, root, version = cgroups
        tool = shutil.copy(os.path.join(BIN, "ceems_mark"), directory)
        path = directory + "/run/mark.sock"
        env = {"PATH": os.environ["PATH"], "CEEMS_MARK_SOCKET": path}
        meter = Meter(directory + "/sys", 50)
        lasting = []

        def start(job, script, uid):
            """A script of the user in the job; job 0 is outside of all."""
            process = subprocess.Popen(["/bin/sh", "-c", "read go\n" + script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, env=env, user=uid, group=uid, text=True)
            if job:
                home = "%s/job_%d" % (parent, job)
                os.makedirs(home, exist_ok=True)
                with open(home + "/cgroup.procs", "w", encoding="ascii") as procs:
                    procs.write(str(process.pid))
            process.stdin.write("go\n")
            process.stdin.flush()
            return process

        def run(job, script, uid):
            process = start(job, script, uid)
            out, _ = process.communicate(timeout=90)
            return out

        for job, uid in ((1, 1000), (2, 1000), (3, 1001)):
            lasting += [start(job, "sleep 600 & sleep 600 & wait", uid) for _ in range(2 if job == 1 else 1)]
        exporter, url = start_exporter(directory, [
            "--path.sysfs=" + directory + "/sys", "--path.cgroupfs=" + root, "--collector.cgroups.force-version=" + version,
            "--collector.disable-defaults", "--collector.cgroup", "--collector.cgroup.pattern=/ceems_marks_[0-9]+/(?P<id>job_[0-9]+)$",
            "--collector.energy", "--collector.marks", "--collector.marks.socket=" + path])
        try:
            with exporter:
                wait_until("jobs have energy", lambda: series(get(url + "/metrics").text, "ceems_compute_unit_energy_joules_total", "job_1")
                           is not None)
                mark = tool + " -v "
                begin = time.monotonic()
                assert run(1, mark + "begin solve; timeout 2.2 sh -c 'while :; do :; done'; %sresult step 5 && %send solve" % (mark, mark), 1000) == ""
                took = time.monotonic() - begin
                assert run(2, mark + "result step 7", 1000) == ""
                for job, uid, reason in ((1, 1001, "other_user"), (3, 1000, "other_user"), (0, 1000, "no_unit")):
                    said = run(job, mark + "result step 1000", uid)
                    assert "refused " + reason in said, (job, uid, said)
                assert run(3, mark + "result step 9", 0) == ""  # root
                time.sleep(2.2)
                page = get(url + "/metrics").text
                assert [series(page, "ceems_compute_unit_results_total", "job_%d" % job) for job in (1, 2, 3)] == [5, 7, 9]
                seconds = series(page, "ceems_compute_unit_region_seconds_total", "job_1")
                joules = series(page, "ceems_compute_unit_region_energy_joules_total", "job_1")
                assert 2.2 <= seconds <= took, (seconds, took)
                assert 0 < joules < series(page, "ceems_compute_unit_energy_joules_total", "job_1"), joules
                refused = dict(samples(page, "ceems_exporter_marks_refused_total"))
                assert refused['{reason="other_user"}'] == 2 and refused['{reason="no_unit"}'] == 1, refused
        finally:
            for job in (1, 2, 3):
                with open("%s/job_%d/cgroup.procs" % (parent, job), encoding="ascii") as procs:
                    for pid in procs.read().split():
                        with contextlib.suppress(OSError):
                            os.kill(int(pid), 9)
            for process in lasting:
                process.wait(90)
            meter.stopped.set()
    print("  other users: passed")


def main():
    if sys.argv[1:] == ["real"]:
        real_jobs()
        return
    need_programs("cc", "c++")
    fake_node()
    if os.geteuid() == 0:
        real_jobs()
    else:
        print("  SKIPPED: processes of other users: needs root")
    print("marks: passed")


if __name__ == "__main__":
    main()
