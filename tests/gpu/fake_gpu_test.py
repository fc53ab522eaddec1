#!/usr/bin/env python3
"""ceems_exporter with the fake NVML: energy of GPUs adds up in the running program and goes to the job that computes, a library that
hangs holds up neither a scrape nor the end of the program, and where there is no GPU no library is loaded."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import BIN, get, samples, scratch, skip, start_exporter, wait_until, write  # noqa: E402

FAKE = os.path.join(BIN, "..", "tests", "fake_gpu_libraries", "libfake_nvml.so")


def scenario(path, joules, extra=""):
    with open(path + ".new", "w") as f:
        f.write("count 2\n")
        # Processes of the job and of somebody else; the job has GPU 0 for itself.
        f.write("0.processes 4242:4096\n0.process_utilization 4242:40\n1.processes 999:1\n")
        for i in range(2):  # GPUs that show the same joules would be one
            f.write("%d.uuid GPU-%d\n%d.power 300000\n%d.energy %d\n%d.utilization 50\n" % (i, i, i, i, 1000 * (joules + i), i))
        f.write(extra)
    os.rename(path + ".new", path)


def node_with_a_job(d):
    """Roots of a node whose SLURM job 7 has the process 4242."""
    write(d + "/proc/stat", "cpu  100 2 30 4000 5 6 7 8 0 0\ncpu0 100 2 30 4000 5 6 7 8 0 0\nintr 1\n")
    write(d + "/proc/cpuinfo", "processor\t: 0\nphysical id\t: 0\ncpu cores\t: 1\n\n")
    write(d + "/proc/meminfo", "MemTotal:        8000000 kB\nMemFree:         4000000 kB\nMemAvailable:    6000000 kB\n")
    write(d + "/proc/4242/cmdline", "job")
    os.makedirs(d + "/sys/class")
    job = d + "/cgroup/system.slice/slurmstepd.scope/job_7"
    write(job + "/cgroup.controllers", "cpuset cpu io memory pids\n")
    write(job + "/cgroup.procs", "4242\n")
    write(job + "/cpu.stat", "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n")
    write(job + "/memory.stat", "anon 1000\nfile 2000\nshmem 500\ninactive_file 100\n")
    write(job + "/io.stat", "")
    write(job + "/memory.current", "3000\n")
    write(job + "/memory.max", "max\n")
    write(job + "/memory.events", "oom 0\n")
    write(job + "/cpuset.cpus.effective", "0\n")
    return ["--path.procfs=" + d + "/proc", "--path.sysfs=" + d + "/sys", "--path.cgroupfs=" + d + "/cgroup",
            "--collector.cgroups.force-version=v2", "--collector.slurm"]


def gpu_joules(page, name):
    return sum(value for labels, value in samples(page, name) if 'domain="gpu"' in labels)


def main():
    if not os.path.exists(FAKE):
        skip("the fake libraries are not built")
    with scratch("ceems-gpu-") as d:
        path = os.path.join(d, "scenario")
        scenario(path, 1000)
        env = dict(os.environ, CEEMS_FAKE_GPU=path)
        exporter, url = start_exporter(d, node_with_a_job(d) + ["--collector.gpu.library-path.nvidia=" + os.path.realpath(FAKE),
                                           "--collector.gpu.interval=200ms", "--collector.energy",
                                           "--collector.energy.interval=200ms"], env)
        with exporter:
            def page():
                return get(url + "/metrics").text
            wait_until("both GPUs", lambda: len(samples(page(), "ceems_gpu_power_watts")) == 2)
            wait_until("both GPUs in the books",
                       lambda: len([1 for labels, _ in samples(page(), "ceems_energy_source_info") if "GPU-" in labels]) == 2)
            for step in range(1, 6):
                scenario(path, 1000 + 60 * step)
                time.sleep(0.3)
            wait_until("600 joules", lambda: abs(gpu_joules(page(), "ceems_node_energy_joules_total") - 600) < 1e-6)
            text = page()
            assert [value for labels, value in samples(text, "ceems_compute_unit_gpu_memory_used_bytes")
                    if 'uuid="7"' in labels] == [4096], text
            job = gpu_joules(text, "ceems_compute_unit_energy_joules_total")
            assert abs(job - 300) < 1e-6, (job, text)
            parts = (gpu_joules(text, "ceems_system_energy_joules_total") +
                     gpu_joules(text, "ceems_unallocated_energy_joules_total") +
                     gpu_joules(text, "ceems_ended_units_energy_joules_total") +
                     gpu_joules(text, "ceems_compute_unit_energy_joules_total"))
            assert abs(parts - 600) < 1e-6, text
            # The process sleeps, but its GPU works for half of the time.
            def of_job(name):
                return {labels[labels.index("gpuuuid"):].split('"')[1] if "gpuuuid" in labels else "": value
                        for labels, value in samples(page(), "ceems_compute_unit_" + name) if 'uuid="7"' in labels}
            assert of_job("gpu_memory_peak_bytes") == {"GPU-0": 4096}, text
            before = of_job("gpu_busy_seconds_total")["GPU-0"]
            wait_until("the GPU is busy", lambda: of_job("gpu_busy_seconds_total")["GPU-0"] > before + 0.2)
            assert of_job("idle_seconds_total") == {"": 0}, of_job("idle_seconds_total")
            assert of_job("memory_peak_bytes") == {"": 1500} and of_job("memory_shmem_bytes") == {"": 500}, page()
            scenario(path, 1300, "hang nvmlDeviceGetPowerUsage\n")
            time.sleep(0.5)
            for _ in range(20):
                text = page()  # the library hangs for as long as the line is there, so a page that waited for it would never come
            assert len(samples(text, "ceems_gpu_power_watts")) == 2, text
        assert exporter.process.returncode == 0, exporter.output()

        exporter, url = start_exporter(d, ["--path.sysfs=" + d + "/sys"])
        with exporter:
            text = get(url + "/metrics").text
            assert not samples(text, "ceems_gpu_info"), text
            assert 'collector="gpu"' not in text or os.path.exists("/proc/driver/nvidia/gpus"), text
            with open("/proc/%d/maps" % exporter.pid) as f:
                maps = f.read()
            for library in ("nvidia-ml", "rocm_smi", "ze_loader"):
                assert library not in maps or os.path.exists("/proc/driver/nvidia/gpus"), library
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
