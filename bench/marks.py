#!/usr/bin/env python3
"""What marks cost: a call of ceems_mark.h in the sender, and the exporter's CPU time at the bucket's rate and in a flood of 100,000 messages a
second and more. The exporter runs without other collectors than one job, so differences are those of marks.

usage: marks.py --bin build/bench/bin [--seconds 10] [--write bench/RESULTS.md]"""

import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/integration"))
parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(HERE, "../build/bench/bin"))
parser.add_argument("--seconds", type=float, default=10)
parser.add_argument("--write")
options = parser.parse_args()
os.environ["CEEMS_BIN_DIR"] = os.path.abspath(options.bin)
from harness import get, samples, scratch, start_exporter, wait_until, write  # noqa: E402
from marks_test import SENDERS, Node, series  # noqa: E402
from section import write_section  # noqa: E402
from cpu_time import process_cpu_seconds  # noqa: E402
from scrape import machine  # noqa: E402

# Sends `rate` messages a second for `seconds`, or as many as it can with 0. Prints nanoseconds of a call and how many were sent and dropped.
SENDER = """
#define _POSIX_C_SOURCE 200809L
#include "ceems_mark.h"
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
int main(int argc, char **argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 1, rate = argc > 2 ? atof(argv[2]) : 0, began = now();
  double calls = 0, in_calls = 0, longest = 0, at = began;
  while (at - began < seconds) {
    if (rate > 0 && calls >= rate * (at - began)) {
      const struct timespec pause = {0, 200000};
      nanosleep(&pause, NULL);
      at = now();
      continue;
    }
    ceems_mark_result("step", 1, NULL);
    calls += 1;
    {
      const double end = now();
      in_calls += end - at;
      longest = end - at > longest ? end - at : longest;
      at = end;
    }
  }
  printf("%.0f %.0f %lu %.0f\\n", 1e9 * in_calls / calls, calls, ceems_mark_dropped(), 1e6 * longest);
  return 0;
}
"""


def main():
    with scratch("ceems-bench-marks-") as directory:
        node = Node(directory + "/node")
        path = directory + "/run/mark.sock"
        env = {"PATH": os.environ["PATH"], "CEEMS_MARK_SOCKET": path}
        write(directory + "/sender.c", SENDER)
        subprocess.run(["cc", "-std=c99", "-O2", "-I", SENDERS, "sender.c", "-o", "sender"], cwd=directory, check=True)
        exporter, url = start_exporter(directory, [
            "--path.procfs=" + node.proc, "--path.sysfs=" + node.sys, "--path.cgroupfs=" + node.cgroup,
            "--collector.cgroups.force-version=v2", "--collector.disable-defaults", "--collector.slurm", "--collector.energy",
            "--collector.energy.idle-watts=package=800", "--collector.marks", "--collector.marks.socket=" + path])
        rows = []
        with exporter:
            wait_until("jobs have energy", lambda: series(get(url + "/metrics").text, "ceems_compute_unit_energy_joules_total", 1))

            def used(work):
                before, began = process_cpu_seconds(exporter.pid), time.monotonic()
                out = work()
                return 100 * (process_cpu_seconds(exporter.pid) - before) / (time.monotonic() - began), out

            idle, _ = used(lambda: time.sleep(options.seconds))
            at_bucket = None
            for what, senders, rate in (("200 a second", 1, 200), ("100,000 a second", 1, 100000), ("as many as possible", 1, 0),
                                        ("8 senders, 1,000 a second each", 8, 1000)):
                time.sleep(3)  # the bucket fills
                def work(senders=senders, rate=rate):
                    running = [node.start(1, [directory + "/sender", str(options.seconds), str(rate)], env, stdout=subprocess.PIPE)
                               for _ in range(senders)]
                    return [[float(word) for word in process.communicate()[0].split()] for process in running]
                cpu, answers = used(work)
                calls, dropped = sum(row[1] for row in answers), sum(row[2] for row in answers)
                at_bucket = cpu if at_bucket is None else at_bucket
                rows.append("| %s | %.0f | %.0f %% | %.2f | %.0f | %.2f | %.2f |" % (
                    what, calls / options.seconds, 100 * dropped / calls, sum(row[0] for row in answers) / len(answers) / 1000,
                    max(row[3] for row in answers), cpu - idle, cpu - at_bucket))
            lost = dict(samples(get(url + "/metrics").text, "ceems_exporter_marks_dropped_total"))['{reason="rate"}']
        node.meter.stopped.set()
    table = ("Measured on %s: %s. The exporter threw %.0f messages away; further ones it did not read. Idle, it used %.2f %% of a CPU.\n\n"
             "| marks | calls a second | refused in the sender | a call, µs | longest call, µs | exporter, %% of a CPU more than idle | … more than at 200 a second |\n"
             "|---|---|---|---|---|---|---|\n%s" % (time.strftime("%Y-%m-%d"), machine(), lost, idle, "\n".join(rows)))
    print(table)
    if options.write:
        write_section(options.write, "marks", table)


if __name__ == "__main__":
    main()
