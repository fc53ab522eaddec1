"""The flags that switch on eBPF metrics and the profiler, for tests that show that all else stays as it is."""

import os
import re
import subprocess

FLAGS = ["--collector.ebpf.io-metrics", "--collector.ebpf.network-metrics", "--collector.ebpf.io-latency-metrics", "--profiling.ebpf"]
# Rows of 'ceems_exporter doctor', and how their series begin.
SERIES = {"ebpf": "ceems_ebpf_", "profiling": "ceems_profiler_"}
# Managers whose units each of them is for.
UNITS = {"ebpf": ("slurm", "libvirt", "k8s", "lsf", "openpbs"), "profiling": ("slurm", "k8s", "lsf", "openpbs")}


def states(program):
    """{row: whether the kernel permits it}, by 'ceems_exporter doctor'."""
    said = subprocess.run([program, "doctor", "--collector.slurm", *FLAGS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True).stdout
    rows = dict(re.findall(r"^(ebpf|profiling)\s+(works|off|cannot)\b", said, re.M))
    assert set(rows) == set(SERIES) and "off" not in rows.values(), said
    return {name: state == "works" for name, state in rows.items()}


def shown(flags, works, sys):
    """The rows whose series are on the page of an exporter with these flags and this /sys, where the profiler finds the CPUs."""
    return [name for name in SERIES if works[name] and any("--collector." + manager in flags for manager in UNITS[name]) and
            (name != "profiling" or os.path.exists(os.path.join(sys, "devices/system/cpu/online")))]
