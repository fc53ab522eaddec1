#!/usr/bin/env python3
"""`ceems_exporter run` in a real SLURM of two nodes on one machine, as a user without privileges: one report of both nodes, with marks of
both, by the agents that srun starts; a job that starts and stops the measurement itself; and a job that is watched from outside.

Needs what slurm_test.py needs, but for prometheus.

usage: slurm_run_test.py [--prolog]"""

import json
import os
import re
import subprocess
import sys

from harness import BIN, free_ports, need_programs, scratch, skip, wait_until
from slurm_test import HERE, Slurm, cgroup_mode

EXPORTER = os.path.abspath(os.path.join(BIN, "ceems_exporter"))
MARK = os.path.abspath(os.path.join(BIN, "ceems_mark"))
USER = "nobody"
SECONDS = 3
BURN = "timeout %d sh -c 'while :; do :; done'; true" % SECONDS
# Each task of the job; the first one counts the results. The other node takes marks as soon as its agent runs.
TASK = """#!/bin/sh
%(join)s
n=0
until %(mark)s -v begin solve 2>/dev/null; do
  n=$((n + 1))
  [ $n -lt 300 ] || exit 91
  sleep 0.1
done
%(burn)s
%(mark)s -v end solve || exit 92
[ $SLURM_PROCID != 0 ] || %(mark)s -v result step 100 || exit 93
"""
JOIN = ('for t in $(find /sys/fs/cgroup -path "*${SLURMD_NODENAME}*job_$SLURM_JOB_ID/step_batch" -type d); '
        'do echo $$ > $t/cgroup.procs; done 2>/dev/null')


def write_script(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


class Jobs:
    """Jobs of two nodes with a folder that both nodes and the user share."""

    def __init__(self, directory, slurm):
        self.slurm, self.work = slurm, os.path.join(directory, "work")
        os.mkdir(self.work, 0o777)
        os.chmod(self.work, 0o777)
        self.tmp = slurm.directory + "/tmp"
        self.join = JOIN if slurm.mode == "prolog" else ":"
        self.task = write_script(os.path.join(directory, "task"), TASK % {"join": self.join, "mark": MARK, "burn": BURN})
        self.log = os.path.join(self.work, "%x.log")

    def submit(self, name, lines):
        script = os.path.join(os.path.dirname(self.task), name + ".sh")
        write_script(script, "#!/bin/bash\n%s\nexport TMPDIR=%s\ncd %s\n%s\n" % (self.join, self.tmp, self.work, lines))
        text = self.slurm.run("sbatch", "--parsable", "-J", name, "-A", "proj2", "-p", "pair", "-N2", "-n2", "--mem=100M", "-o", self.log,
                              script, user=USER)
        self.slurm.jobs[name] = text.split(";")[0]
        return self.slurm.jobs[name]

    def ended(self, name, state="COMPLETED"):
        def look():
            return self.slurm.run("sacct", "-n", "-X", "-j", self.slurm.jobs[name], "-o", "State%30").strip()
        wait_until("job %s ends" % name, lambda: look() not in ("", "PENDING", "RUNNING", "COMPLETING"), timeout=120)
        assert look() == state, "%s: %s\n%s" % (name, look(), self.output(name))

    def output(self, name):
        with open(os.path.join(self.work, name + ".log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def report(self, name):
        data = os.path.join(self.work, "ceems-" + self.slurm.jobs[name])
        with open(os.path.join(data, "report.json"), encoding="utf-8") as f:
            return json.load(f)


def check(report, job, nodes, unit):
    assert [node["node"] for node in report["nodes"]] == nodes and report["missing"] == [], report
    assert report["job"] == job and all(node["ended"] for node in report["nodes"]), report
    assert all(node["unit"] == unit for node in report["nodes"]), report
    # The time limit of `timeout` is one of wall time, so a busy machine gives less.
    assert all(0.2 <= node["cpu_seconds"] <= SECONDS * (os.cpu_count() + 1) for node in report["nodes"]), report
    assert report["energy_joules"] > 0, report
    (solve,) = report["phases"]
    assert (solve["region"], solve["nodes"], solve["count"]) == ("solve", 2, 1) and solve["seconds"] >= SECONDS - 0.1, solve
    assert 0 < solve["energy_joules"] <= report["energy_joules"], report
    (result,) = report["results"]
    assert (result["result"], result["n"]) == ("step", 100), result
    assert abs(result["joules_per"] - report["energy_joules"] / 100) < 1e-9, report


def two_nodes(jobs, nodes, unit):
    job = jobs.submit("both", "%s run --interval=200ms -- srun -n2 %s; exit $?" % (EXPORTER, jobs.task))
    jobs.ended("both")
    output = jobs.output("both")
    assert "[ceems] measuring 2 nodes every 0.2 s" in output and "report: ./ceems-%s/report.html" % job in output, output
    check(jobs.report("both"), job, nodes, unit)
    print("  two nodes: " + re.search(r"^\[ceems\] 00:.*$", output, re.M).group())
    # The status of the command is that of the job.
    jobs.submit("bad", "%s run --interval=200ms -- srun -n2 sh -c 'exit 3'" % EXPORTER)
    jobs.ended("bad", "FAILED")
    assert jobs.report("bad")["exit_status"] == 3


def start_and_stop(jobs, nodes, unit):
    job = jobs.submit("steps", "eval \"$(%(run)s --start --interval=200ms)\" || exit 81\nsrun -n2 %(task)s || exit 82\n"
                               "%(run)s --stop || exit 83\necho stopped" % {"run": EXPORTER + " run", "task": jobs.task})
    jobs.ended("steps")
    output = jobs.output("steps")
    assert output.rstrip().endswith("stopped") and "report: " in output, output
    check(jobs.report("steps"), job, nodes, unit)
    # Without --stop, it ends with the script, and what there is can be merged.
    job = jobs.submit("left", "eval \"$(%s run --start --interval=200ms)\" || exit 81\nsleep 2" % EXPORTER)
    jobs.ended("left")
    data = os.path.join(jobs.work, "ceems-" + job)
    jobs.slurm.run(EXPORTER, "run", "--merge", data, user=USER)
    assert [node["node"] for node in jobs.report("left")["nodes"]] == nodes, jobs.report("left")


def watch(jobs, nodes):
    go = os.path.join(jobs.work, "go")
    job = jobs.submit("watched", "while [ ! -e %s ]; do sleep 0.1; done" % go)
    wait_until("the job runs", lambda: jobs.slurm.state("watched") == "RUNNING")
    data = os.path.join(jobs.work, "seen")
    env = dict(os.environ, SLURM_CONF=jobs.slurm.directory + "/etc/slurm.conf")
    user = ["setpriv", "--reuid=" + USER, "--regid=nogroup", "--clear-groups"]
    command = [EXPORTER, "run", "--watch=job:" + job, "--interval=200ms", "--dir=" + data]
    with subprocess.Popen(user + command, cwd=jobs.work, env=env, stderr=subprocess.PIPE, text=True) as watcher:
        wait_until("the job is measured", lambda: os.path.exists(os.path.join(data, nodes[0] + ".sum")))
        # Another user may not.
        other = subprocess.run(["setpriv", "--reuid=games", "--regid=nogroup", "--clear-groups", EXPORTER, "run", "--watch=job:" + job],
                               cwd="/tmp", env=env, capture_output=True, text=True, check=False)
        assert other.returncode == 1 and len(other.stderr.splitlines()) == 1, other
        with open(go, "w", encoding="ascii"):
            pass
        _, errors = watcher.communicate(timeout=120)
    assert watcher.returncode == 0, errors
    with open(os.path.join(data, "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    assert report["job"] == job and report["name"] == "watched" and report["nodes"][0]["ended"], report
    jobs.ended("watched")


def main():
    if os.geteuid() != 0:
        skip("running slurmd needs root")
    need_programs("slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged", "sacct", "setpriv", "unshare")
    mode, sentence = cgroup_mode("--prolog" in sys.argv[1:])
    print(sentence)
    with scratch("ceems-slurm-run-") as directory:
        base = free_ports(14)  # slurm_up.sh says which
        up = subprocess.run([HERE + "/slurm_up.sh", directory + "/slurm", str(base), mode], stdin=subprocess.DEVNULL,
                            env=dict(os.environ, PAIR="1"), check=False)
        try:
            assert up.returncode == 0, "SLURM did not start"
            jobs = Jobs(directory, Slurm(directory + "/slurm", mode, 0))
            nodes = ["p%dn%d" % (base, n) for n in (1, 2)]
            # The prolog's cgroups are not joined by what srun starts, so processes are found by their environment.
            unit = "cgroup" if mode == "cgroup" else "processes"
            two_nodes(jobs, nodes, unit)
            start_and_stop(jobs, nodes, unit)
            watch(jobs, nodes)
        finally:
            subprocess.run([HERE + "/slurm_down.sh", directory + "/slurm"], stdin=subprocess.DEVNULL, check=False)
    print("PASS: ceems_exporter run in real SLURM")


if __name__ == "__main__":
    main()
