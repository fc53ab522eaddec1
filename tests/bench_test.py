#!/usr/bin/env python3
"""Checks how the measurements in bench/ count CPU time: a process that burns it in a thread that has ended is charged for it."""

import os
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "bench"))
from cpu_time import process_cpu_seconds  # noqa: E402

# Burns 0.2 s of CPU time in a thread that ends, prints what it has used in all its life, and waits.
BURNS_IN_A_THREAD = """
import sys, threading, time
def burn():
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
thread = threading.Thread(target=burn)
thread.start()
thread.join()
print(time.process_time(), flush=True)
sys.stdin.read()
"""


class CpuTime(unittest.TestCase):
    def test_counts_threads_that_have_ended(self):
        child = subprocess.Popen([sys.executable, "-c", BURNS_IN_A_THREAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            own = float(child.stdout.readline())
            self.assertGreaterEqual(own, 0.2)
            self.assertGreaterEqual(process_cpu_seconds(child.pid), own)
        finally:
            child.communicate()

    def test_fails_without_the_process(self):
        child = subprocess.Popen(["true"])
        child.wait()
        with self.assertRaises(OSError):
            process_cpu_seconds(child.pid)

    def test_every_measurement_counts_so(self):
        for name in sorted(os.listdir(os.path.join(ROOT, "bench"))):
            if name.endswith(".py") and name != "cpu_time.py":
                with open(os.path.join(ROOT, "bench", name), encoding="utf-8") as text:
                    self.assertFalse("/schedstat" in text.read(), name + " leaves out threads that have ended")


if __name__ == "__main__":
    unittest.main()
