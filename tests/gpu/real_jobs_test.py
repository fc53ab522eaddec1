#!/usr/bin/env python3
"""ceems_exporter on a machine with a real NVIDIA GPU and jobs of known use (gpu_load.py): busy and SM seconds, memory and energy of
each job against what the job did and what the driver's own energy counter says. Prints a table for people to look at.

The jobs' cgroups are files of the test, so it needs no root; the processes, the GPU and the library are real."""

import ctypes
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
from harness import get, samples, scratch, skip, start_exporter, wait_until, write  # noqa: E402

SECONDS = float(os.environ.get("CEEMS_GPU_SECONDS", "20"))
# Name, part of the SMs, part of the time, MiB. Jobs with the same number run at once.
JOBS = [
    (1, "101", "all SMs", 1.0, 1.0, 4096),
    (2, "102", "a quarter of the SMs", 0.25, 1.0, 1024),
    (3, "103", "half of the time", 1.0, 0.5, 1024),
    (4, "104", "one SM", 0.0, 1.0, 256),
    (5, "105", "no kernel", 1.0, 0.0, 2048),
    (6, "106", "shared, all of the time", 1.0, 1.0, 1024),
    (6, "107", "shared, all of the time", 1.0, 1.0, 3072),
    (7, "108", "shared, all of the time", 1.0, 1.0, 1024),
    (7, "109", "shared, no kernel", 1.0, 0.0, 1024),
]


class Driver:
    """The driver's own energy counter of GPU 0, asked for without the exporter."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            skip("the driver's library does not answer")

    def joules(self):
        value = ctypes.c_ulonglong()
        assert self.library.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(value)) == 0
        return value.value / 1000


def job_cgroup(d, job, pid):
    path = d + "/cgroup/system.slice/slurmstepd.scope/job_" + job
    for name, text in {"cgroup.procs": "%d\n" % pid, "cpu.stat": "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n",
                       "memory.stat": "anon 1000\nfile 2000\nshmem 0\ninactive_file 100\n", "io.stat": "", "memory.current": "3000\n",
                       "memory.max": "max\n", "memory.events": "oom 0\n", "cpuset.cpus.effective": "0\n"}.items():
        write(path + "/" + name, text)
    write(path + "/cgroup.controllers", "cpuset cpu io memory pids\n")  # the last: now the job is complete
    return path


def of_units(page, name, **wanted):
    """{unit: sum} of the samples whose labels have these values."""
    found = {}
    for labels, value in samples(page, name):
        label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if all(label.get(key) == text for key, text in wanted.items()):
            found[label.get("uuid", "")] = found.get(label.get("uuid", ""), 0) + value
    return found


def cpu_seconds(pid):
    """CPU time of the process and its children."""
    total = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry, encoding="ascii", errors="replace") as f:
                    fields = f.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(entry) == pid or int(fields[1]) == pid:
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def run_jobs(d, page, jobs):
    """Runs jobs at once, and returns {job: what it said and what the page said just before it ended}."""
    processes = {}
    for job, _, sms, duty, memory in jobs:
        arguments = [sys.executable, os.path.join(HERE, "gpu_load.py"), "%g" % SECONDS, "--sms=%g" % sms, "--duty=%g" % duty,
                     "--memory=%d" % memory]
        processes[job] = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        job_cgroup(d, job, processes[job].pid)
    said = {job: json.loads(process.stdout.readline()) for job, process in processes.items()}
    time.sleep(SECONDS / 2)
    flags = of_units(page(), "ceems_compute_unit_gpu_index_flag")
    for job, process in processes.items():
        line = process.stdout.readline()
        assert line, "the load of job %s failed" % job
        said[job].update(json.loads(line))
        process.wait()
    time.sleep(2.5)  # the last readings
    text = page()
    for job in processes:
        for key, name in (("busy", "gpu_busy_seconds_total"), ("sm", "gpu_sm_seconds_total"), ("peak", "gpu_memory_peak_bytes")):
            said[job][key] = of_units(text, "ceems_compute_unit_" + name).get(job)
        said[job]["flag"] = flags.get(job)
        said[job]["joules"] = of_units(text, "ceems_compute_unit_energy_joules_total", domain="gpu").get(job, 0)
        said[job]["idle_joules"] = of_units(text, "ceems_compute_unit_idle_energy_joules_total", domain="gpu").get(job, 0)
    for job in processes:
        directory = d + "/cgroup/system.slice/slurmstepd.scope/job_" + job
        for name in os.listdir(directory):
            os.unlink(directory + "/" + name)
        os.rmdir(directory)
    return said


def main():
    if not os.path.exists("/dev/nvidia0"):
        skip("no NVIDIA GPU here")
    driver = Driver()
    with scratch("ceems-gpu-") as d:
        os.makedirs(d + "/cgroup/system.slice/slurmstepd.scope")
        write(d + "/cgroup/system.slice/slurmstepd.scope/cgroup.controllers", "cpuset cpu io memory pids\n")
        exporter, url = start_exporter(d, ["--collector.gpu", "--collector.energy", "--collector.slurm", "--path.cgroupfs=" + d + "/cgroup",
                                           "--collector.cgroups.force-version=v2"])
        with exporter:
            def page():
                return get(url + "/metrics").text

            def node_joules():
                return of_units(page(), "ceems_node_energy_joules_total", domain="gpu").get("", 0)
            wait_until("the GPU is in the books", lambda: node_joules() > 0, timeout=60)
            time.sleep(10)  # what the GPU draws when idle
            begin, cpu = time.monotonic(), cpu_seconds(exporter.pid)
            first, first_booked = driver.joules(), node_joules()
            results = {}
            print("%-4s %-26s %8s %8s %8s %8s %8s %9s %9s %9s" % ("job", "what", "kernels", "busy s", "SM due", "SM s", "flag",
                                                               "peak MiB", "J", "driver J"))
            for number in sorted({job[0] for job in JOBS}):
                jobs = [job[1:] for job in JOBS if job[0] == number]
                before = driver.joules()
                said = run_jobs(d, page, jobs)
                drawn = driver.joules() - before
                for job, what, *_ in jobs:
                    of = said[job]
                    of["driver"] = drawn
                    print("%-4s %-26s %8.1f %8.1f %8.1f %8s %8s %9.0f %9.0f %9.0f" % (
                        job, what, of["kernel_s"], of["busy"] or 0, of["kernel_s"] * of["used"] / of["sms"],
                        "-" if of["sm"] is None else "%.1f" % of["sm"], of["flag"], (of["peak"] or 0) / 2**20, of["joules"], drawn), flush=True)
                results.update(said)
            seconds = time.monotonic() - begin
            booked, drawn = node_joules() - first_booked, driver.joules() - first
            print("GPU: %.0f J in the books, %.0f J by the driver's counter, in %.0f s" % (booked, drawn, seconds))
            print("exporter: %.4f CPU s a second" % ((cpu_seconds(exporter.pid) - cpu) / seconds))
            print("\n".join(line for line in page().splitlines() if line.startswith("ceems_node_info")))
        print(exporter.output()[-3000:])

    # The library says what happened in windows of up to a second, and readings are a second apart.
    slack = 0.1 * SECONDS + 1
    for job, what, sms, duty, memory in (job[1:] for job in JOBS if job[0] <= 5):
        of = results[job]
        assert of["flag"] == 1, (what, of)
        assert abs(of["busy"] - of["kernel_s"]) <= slack, (what, of)
        if of["sm"] is not None:
            assert abs(of["sm"] - of["kernel_s"] * of["used"] / of["sms"]) <= slack, (what, of)
        assert memory * 2**20 <= of["peak"] <= (memory + 1024) * 2**20, (what, of)
        assert 0 < of["joules"] <= 1.02 * of["driver"] + 50, (what, of)
    shared = results["106"]["busy"] + results["107"]["busy"]
    assert SECONDS - slack <= shared <= SECONDS + slack, shared
    assert results["109"]["busy"] <= slack, results["109"]
    assert results["108"]["busy"] >= SECONDS - slack, results["108"]
    assert abs(booked - drawn) <= 0.02 * drawn, (booked, drawn)
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
