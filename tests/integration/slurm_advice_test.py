#!/usr/bin/env python3
"""Real SLURM, exporter, Prometheus, API server and cacct: jobs leave memory, cores and time unused on purpose, and one sleeps. Their
reports have the line to type with the right number. The same jobs are submitted again with that line, and the advice is gone.

A report makes suggestions from a run of five minutes on, so this takes a quarter of an hour. It needs what slurm_test.py needs, and a
CPU that nothing else uses.

usage: slurm_advice_test.py"""

import os
import re
import subprocess
import sys

from harness import (BIN, free_ports, get, need_programs, samples, scratch, skip, start_api_server, start_exporter, start_prometheus, wait_until, write)
from slurm_test import HERE, Slurm, cgroup_mode, configuration

OWNER = {"X-Grafana-User": "root"}
SECONDS = 320
GIB = 2 ** 30
WORK = "timeout %d sh -c 'while :; do :; done'; true" % SECONDS
SOME_WORK = "timeout %d sh -c 'while :; do timeout .15 sh -c \"while :; do :; done\"; sleep .85; done'; true" % SECONDS
KEEP_MEMORY = "python3 -c 'b = bytearray(b\"x\" * (200 << 20)); import time; time.sleep(%d)' & " % SECONDS
# SLURM's cgroups of version 1 do not count I/O, without which nothing is called idle: the job makes one that does, with a limit, because
# Linux 6.10 and newer count nothing without. It writes something, because no I/O at all may mean that nothing counts it.
COUNT_IO = (r"c=$(sed -n 's|^[0-9]*:cpuacct:\(/.*/job_[0-9]*\).*|/sys/fs/cgroup/blkio\1|p' /proc/self/cgroup); "
            "[ -z \"$c\" ] || { mkdir -p $c; echo \"$(stat -c %Hd:%Ld /var/tmp) 1000000000000\" >$c/blkio.throttle.write_bps_device; "
            "echo $$ >$c/cgroup.procs; }; ")
SLEEP = COUNT_IO + "f=/var/tmp/ceems_advice_$SLURM_JOB_ID; dd if=/dev/zero of=$f bs=4k count=16 oflag=direct 2>/dev/null; rm -f $f; sleep %d" % SECONDS
# The limits of a site with short jobs; the others are the built-in ones.
RULES = """
rules:
  - {id: time-limit, limits: {least_seconds: 240}}
  - {id: idle, limits: {least_seconds: 120}}
  - {id: cpu-serial, limits: {least: 0.6}}     # on a machine that has other work
"""


def main():
    if os.geteuid() != 0:
        skip("running slurmd needs root")
    need_programs("slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged", "sacct", "prometheus")
    mode, sentence = cgroup_mode(False)
    if mode != "cgroup":
        skip(sentence)  # the CPUs of a job that is not bound to any are not known
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    usual = total // os.cpu_count()  # of a CPU, in MB: a job that asks for no more gets no advice
    if os.cpu_count() < 2 or total < 8000:
        skip("two CPUs and 8 GB are needed")
    with scratch("ceems-advice-") as directory:
        base = free_ports(14)  # slurm_up.sh says which
        up = subprocess.run([HERE + "/slurm_up.sh", directory + "/slurm", str(base), mode], stdin=subprocess.DEVNULL,
                            env=dict(os.environ, MEMORY_MB=str(total * 9 // 10)))
        try:
            assert up.returncode == 0, "SLURM did not start"
            run(directory, Slurm(directory + "/slurm", mode, 0), usual * 115 // 100)
        finally:
            subprocess.run([HERE + "/slurm_down.sh", directory + "/slurm"], stdin=subprocess.DEVNULL)
            for top, _, _ in os.walk("/sys/fs/cgroup/blkio/slurm_t%d" % base, topdown=False):
                os.rmdir(top)
    print("PASS: advice on real SLURM")


def run(directory, slurm, much_mb):
    exporter, exporter_url = start_exporter(directory, ["--collector.slurm"])
    with exporter:
        prometheus, prometheus_url = start_prometheus(directory, [exporter_url.split("//")[1]])
        with prometheus:
            write(directory + "/rules.d/site.yml", RULES)
            # One cluster only: what a TSDB has of several is told apart by a label, which is another test's.
            config = configuration(directory, slurm, prometheus_url).split("\n  - id: rest")[0]
            config = config.replace("\n  admin:", "\n  report: {rules: %s/rules.d}\n  admin:" % directory)
            api, api_url = start_api_server(directory, config, ["--security.run-as-user=root"])
            with api:
                write(directory + "/ceems/config.yml", "ceems_api_server:\n  cluster_id: test\n  web: {url: '%s'}\n" % api_url)
                compare(directory, slurm, exporter_url, api_url, much_mb)


def compare(directory, slurm, exporter_url, api_url, much_mb):
    # name: (rule, script, options, the line that is right)
    wasteful = {
        "memory": ("mem-excess", KEEP_MEMORY + SOME_WORK, ["--mem=%dM" % much_mb], "--mem=1G"),
        "cores": ("cpu-serial", WORK, ["--cpus-per-task=2"], "--cpus-per-task=1"),
        "time": ("time-limit", SOME_WORK, ["--time=02:00:00"], "--time=00:15:00"),
        "asleep": ("idle", SLEEP, [], None),
    }
    for name, (_, script, options, _) in wasteful.items():
        slurm.submit(name, "proj1", script, "--time=30", *options, memory="600M")
    wait_until("all jobs run", lambda: {slurm.state(name) for name in wasteful} == {"RUNNING"})
    wait_until("the exporter counts idle seconds", lambda: idle_seconds(exporter_url, slurm.jobs["asleep"]) > 0, every=1)
    first = {name: report_of(slurm, api_url, name) for name in wasteful}
    lines = {}
    for name, (rule, _, _, line) in wasteful.items():
        report, found = first[name], {finding["rule"]: finding for finding in first[name]["findings"]}
        text = cacct_report(directory, slurm.jobs[name])
        assert report["job"]["waited_s"] is not None and 0 <= report["job"]["waited_s"] < 60, report["job"]
        print("  %-7s %s: %s" % (name, slurm.jobs[name], " | ".join(text.split("Worth a look")[-1].split("\n")[1:4])))
        assert rule in found, (name, report)
        if line is None:
            assert not found[rule].get("sbatch"), found[rule]
            continue
        assert found[rule]["sbatch"] == [line], found[rule]
        typed = re.findall(r"#SBATCH (\S+)", text)
        assert line in typed, text
        lines[name] = typed[typed.index(line)]
    use = {name: report["use"] for name, report in first.items()}
    assert 200 << 20 <= use["memory"]["mem_peak_node_bytes"] < GIB / 1.2, use["memory"]
    assert use["memory"]["mem_alloc_node_bytes"] == much_mb << 20, use["memory"]
    assert 0.3 <= use["cores"]["cpu"] <= 0.51, use["cores"]
    assert use["asleep"]["cpu"] < 0.02, use["asleep"]
    values = next(finding["values"] for finding in first["asleep"]["findings"] if finding["rule"] == "idle")
    assert abs(values["idle"] - SECONDS) < 30 and values["share"] > 0.9, values

    for name, (_, script, options, _) in wasteful.items():
        better = [lines[name]] if name in lines else options
        slurm.submit(name, "proj1", SOME_WORK if name == "asleep" else script, "--time=30", *better, memory="600M")
    for name, (rule, _, _, _) in wasteful.items():
        rules = {finding["rule"] for finding in report_of(slurm, api_url, name)["findings"]}
        assert rule not in rules, (name, rules)
        print("  %-7s %s, submitted with %s: no %s any more%s" % (
            name, slurm.jobs[name], lines.get(name, "a program that works"), rule, "; " + ", ".join(sorted(rules)) if rules else ""))


def idle_seconds(exporter_url, job):
    page = get(exporter_url + "/metrics").text
    return sum(value for labels, value in samples(page, "ceems_compute_unit_idle_seconds_total") if 'uuid="%s"' % job in labels)


def report_of(slurm, api_url, name):
    """The stored, final report of the newest job of that name."""
    job = slurm.jobs[name]

    def final():
        answer = get("%s/api/v1/units/report?cluster_id=test&uuid=%s" % (api_url, job), OWNER)
        if answer.status != 200:
            raise ValueError(answer.text)  # the server does not know the end yet
        report = answer.json["data"][0]
        if report["state"] != "final" or (report.get("coverage") or 0) < 0.9:
            raise ValueError("state %s, coverage %s" % (report["state"], report.get("coverage")))
        return report

    wait_until("job %s has ended" % name, lambda: job not in slurm.waiting(), SECONDS + 120, 2)
    return wait_until("the report of %s is final" % name, final, 240, 2)


def cacct_report(directory, job):
    environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory, "HOME": directory, "LANG": "C.UTF-8"}
    done = subprocess.run([os.path.join(BIN, "cacct"), "report", job], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
