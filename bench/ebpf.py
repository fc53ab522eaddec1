#!/usr/bin/env python3
"""Measures what the programs in the kernel cost: those that count I/O and network traffic, and those of the profiler.

    cmake --preset bench && cmake --build build/bench --target ceems_exporter
    bench/ebpf.py --bin build/bench/bin [--write bench/RESULTS.md]    # as root, cgroup v1, a kernel with BTF

Counting: a process of a job writes 4 KB to a file in memory again and again, and sends a byte to and fro over TCP, in turns with and
without the exporter. The smallest time of all turns counts, because other work can only make them longer.

Profiling: a program keeps all CPUs busy, 8 functions deep and without frame pointers. The kernel's own statistics
(kernel.bpf_stats_enabled) tell what a sample takes in the kernel; the CPU time of the exporter, with scrapes and all else that it does,
what it takes at most to name and push it. Then many different programs run at once, for the memory.

--check fails above the budgets: 2 % of a write or round trip; 1 % of each CPU at 97 samples a second; 64 MB with 200 programs."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from scrape import LiveJobs, Target, machine

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(HERE, "..", "tests", "vm", "guest")
WORK = {"write of 4 KB": ["time-write", None, "200000"], "TCP round trip of a byte": ["time-ping", "20000"]}
FLAGS = ["--collector.slurm", "--no-collector.energy", "--web.listen-address=127.0.0.1:0", "--no-security.drop-privileges"]
RATE = 97
PROGRAMS = 200
STATS = "/proc/sys/kernel/bpf_stats_enabled"


def built(directory):
    """The programs that work, compiled into `directory`."""
    subprocess.run(["gcc", "-O1", "-o", directory + "/io", GUEST + "/io.c"], check=True)
    hot = ["g++", "-O2", "-fomit-frame-pointer", GUEST + "/hot.cc"]
    subprocess.run(hot + ["-o", directory + "/hot"], check=True)
    subprocess.run(hot + ["-c", "-o", directory + "/hot.o"], check=True)


def in_job(live, command):
    """Runs a command as a process of the job, and returns its number."""
    def enter():
        for root in live.roots:
            live.add(root, "%s/slurm_bench/uid_1000/job_1000000/step_0" % root, os.getpid())
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, preexec_fn=enter, universal_newlines=True)
    return float(done.stdout)


def counting(options, directory):
    times = {(what, on): [] for what in WORK for on in (False, True)}
    memory = directory + "/memory"
    os.mkdir(memory)
    subprocess.run(["mount", "-t", "tmpfs", "bench", memory], check=True)  # below /dev nothing is counted
    live = LiveJobs(1)
    try:
        for turn in range(2 * options.turns):
            on = turn % 2 == 1
            target = Target("ceems_exporter", [os.path.join(options.bin, "ceems_exporter"), "--collector.ebpf.io-metrics",
                                               "--collector.ebpf.network-metrics"] + FLAGS) if on else None
            try:
                if target:
                    target.scrape()
                for what, work in WORK.items():
                    times[what, on].append(in_job(live, [directory + "/io"] + [memory if part is None else part for part in work]))
                if target:
                    target.scrape()
                    if b"ceems_ebpf_write_requests_total" not in target.raw():
                        print("SKIPPED counting: this kernel refuses the programs; see tests/vm/ebpf bench")
                        return []
            finally:
                if target:
                    target.stop()
    finally:
        live.remove()
        subprocess.run(["umount", memory], check=True)
    return [(what, min(times[what, False]), min(times[what, True])) for what in WORK]


def kernel_time():
    """(seconds, runs) of the programs that take samples. Their tail calls are part of them."""
    programs = json.loads(subprocess.run(["bpftool", "-j", "prog", "show"], stdout=subprocess.PIPE, check=True).stdout)
    mine = [program for program in programs if program.get("name") == "take_sample"]
    return sum(p.get("run_time_ns", 0) for p in mine) / 1e9, sum(p.get("run_cnt", 0) for p in mine)


def map_bytes():
    maps = json.loads(subprocess.run(["bpftool", "-j", "map", "show"], stdout=subprocess.PIPE, check=True).stdout)
    names = {"ceems_rows", "samples", "targets", "units", "processes", "mappings", "tables", "scratch", "lost_samples", "programs"}
    return sum(each.get("bytes_memlock", 0) for each in maps if each.get("name") in names)


def start_profiler(options, directory):
    with open(directory + "/profiler.yml", "w") as f:
        f.write("ceems_profiler:\n  ebpf:\n    sample_rate: %d\n    collect_interval: 5s\n    discover_interval: 2s\n"
                "  pyroscope:\n    url: http://127.0.0.1:9\n    retries: 0\n" % RATE)
    return Target("ceems_exporter", [os.path.join(options.bin, "ceems_exporter"), "--profiling.ebpf",
                                     "--profiling.ebpf.config.file=" + directory + "/profiler.yml"] + FLAGS)


def samples_of(target):
    target.connection.close()  # the server closes idle ones
    target.scrape()
    lines = [line for line in target.raw().decode().splitlines() if line.startswith("ceems_profiler_samples_total{")]
    return sum(float(line.split()[-1]) for line in lines)


def profiling(options, directory):
    """Microseconds of a sample in the kernel and in the exporter, and how many there were."""
    live = LiveJobs(os.cpu_count(), (directory + "/hot", "100000"))
    target = None
    try:
        target = start_profiler(options, directory)
        time.sleep(10)
        before = kernel_time(), samples_of(target), target.cpu()
        time.sleep(options.seconds)
        after = kernel_time(), samples_of(target), target.cpu()
    finally:
        if target:
            target.stop()
        live.remove()
    samples = after[1] - before[1]
    runs = after[0][1] - before[0][1]
    return ((after[0][0] - before[0][0]) * 1e6 / runs, (after[2] - before[2]) * 1e6 / samples, int(samples))


def many_programs(options, directory):
    """Resident bytes of the exporter and bytes of its tables in the kernel: without the profiler, without jobs and with many different
    programs."""
    target = Target("ceems_exporter", [os.path.join(options.bin, "ceems_exporter")] + FLAGS)
    try:
        target.scrape()
        sizes = [(target.memory()[1], 0)]
    finally:
        target.stop()
    for count in (0, options.programs):
        commands = []
        for i in range(count):
            program = "%s/hot%d" % (directory, i)
            subprocess.run(["g++", "-static", directory + "/hot.o", "-Wl,--build-id=0x%08x" % (i + 1), "-o", program], check=True)
            commands.append(program)
        live = LiveJobs(0)
        target = None
        try:
            target = start_profiler(options, directory)
            for i, program in enumerate(commands):
                live.sleepers.append(subprocess.Popen([program, "100000"], stdin=subprocess.DEVNULL))
                for root in live.roots:
                    live.add(root, "%s/slurm_bench/uid_1000/job_%d/step_0" % (root, 1000000 + i % 20), live.sleepers[-1].pid)
            time.sleep(options.seconds)
            sizes.append((target.memory()[1], map_bytes()))
        finally:
            if target:
                target.stop()
            live.remove()
    return sizes


def table(counts, sample, sizes, programs):
    in_kernel, in_exporter, samples = sample
    lines = []
    if counts:
        lines += ["| what | without, ns | with, ns | ratio |", "|---|---|---|---|"]
        lines += ["| %s | %.0f | %.0f | %.3f |" % (what, off, on, on / off) for what, off, on in counts] + [""]
    lines += ["| a sample, µs | in the kernel | in the exporter | of each CPU at %d Hz |" % RATE, "|---|---|---|---|",
              "| %d samples of %d CPUs | %.1f | %.1f | %.3f %% |" % (samples, os.cpu_count(), in_kernel, in_exporter,
                                                                   (in_kernel + in_exporter) * RATE / 1e4),
              "", "| memory, MB | resident | tables in the kernel |", "|---|---|---|"]
    lines += ["| %s | %.1f | %.1f |" % (what, resident / 1e6, maps / 1e6) for what, (resident, maps) in
              zip(("exporter without it", "no job", "%d different programs" % programs), sizes)]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bench/bin")
    parser.add_argument("--turns", type=int, default=10, help="with and without the exporter (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=30, help="of profiling (default: %(default)s)")
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    parser.add_argument("--write", metavar="FILE", help="replace the measured part of this file")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for what, there in (("root", os.geteuid() == 0), ("bpftool", shutil.which("bpftool")), ("gcc", shutil.which("g++")),
                        ("a kernel with BTF", os.path.exists("/sys/kernel/btf/vmlinux"))):
        if not there:
            print("SKIPPED: needs %s" % what)
            return 77
    with open(STATS) as f:
        stats = f.read()
    directory = tempfile.mkdtemp(prefix="ceems-bench-")
    try:
        built(directory)
        with open(STATS, "w") as f:
            f.write("0")
        counts = counting(options, directory)
        with open(STATS, "w") as f:
            f.write("1")
        sample = profiling(options, directory)
        sizes = many_programs(options, directory)
    finally:
        with open(STATS, "w") as f:
            f.write(stats)
        shutil.rmtree(directory)
    text = "Measured on %s: %s.\n\n%s\n" % (time.strftime("%Y-%m-%d"), machine(), table(counts, sample, sizes, options.programs))
    print(text)
    if options.write:
        with open(options.write) as f:
            page = f.read()
        head, rest = page.split("<!-- begin ebpf -->")
        with open(options.write, "w") as f:
            f.write("%s<!-- begin ebpf -->\n\n%s\n<!-- end ebpf -->%s" % (head, text, rest.split("<!-- end ebpf -->")[1]))
    problems = ["%s: ratio %.3f" % (what, on / off) for what, off, on in counts if on / off > 1.02]
    if (sample[0] + sample[1]) * RATE / 1e6 > 0.01:
        problems.append("a sample: %.1f µs" % (sample[0] + sample[1]))
    if sizes[-1][0] - sizes[0][0] + sizes[-1][1] > 64e6:
        problems.append("memory: %.1f MB" % ((sizes[-1][0] - sizes[0][0] + sizes[-1][1]) / 1e6))
    for problem in problems:
        print("budget missed: " + problem)
    return 1 if options.check and problems else 0


if __name__ == "__main__":
    sys.exit(main())
