#!/usr/bin/env python3
"""Checks the measurements in bench/: how they count CPU time (a process that burns it in a thread that has ended is charged for it), and
that validate_energy finds the errors of a simulated exporter, whose size is known, and refuses bad input."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "bench"))
import energy_report  # noqa: E402
import wattmeter  # noqa: E402
from cpu_time import process_cpu_seconds  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("validate_energy", os.path.join(ROOT, "bench", "validate_energy"))
validate_energy = importlib.util.module_from_spec(importlib.util.spec_from_loader("validate_energy", LOADER))
LOADER.exec_module(validate_energy)

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


class ValidateEnergy(unittest.TestCase):
    def options(self, *arguments):
        return validate_energy.parse_options(["--dry-run", "--seconds", "40", "--settle", "5", "--simulated-noise", "0.2", *arguments])

    def run_dry(self, *arguments):
        options = self.options(*arguments)
        node = validate_energy.SimulatedNode(options)
        with contextlib.redirect_stderr(io.StringIO()):
            return (node, *validate_energy.validate(node, options), options)

    def main(self, *arguments):
        """Exit status, stdout and stderr."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = validate_energy.main(list(arguments))
            except SystemExit as left:
                status = left.code
        return status, out.getvalue(), err.getvalue()

    def assert_fails(self, words, call, *arguments):
        with self.assertRaises(wattmeter.Failure) as caught:
            call(*arguments)
        self.assertIn(words, str(caught.exception))

    def test_finds_the_error_of_the_exporter(self):
        # It charges compute 10 % too much and memory 5 % too little.
        _, windows, outcomes, _, _ = self.run_dry()
        self.assertEqual([(o.load, o.part) for o in outcomes], [
            ("compute, one thread", ""), ("compute, 1 core", ""), ("compute, 8 cores", ""), ("compute, 16 cores", ""), ("compute, 32 cores", ""),
            ("memory, 16 cores", ""), ("memory, 8 cores", ""), ("two at once, 8 cores each", "compute"), ("two at once, 8 cores each", "memory")])
        for outcome in outcomes:
            compute = "compute" in (outcome.part or outcome.load)
            self.assertAlmostEqual(outcome.percent(), 10 if compute else -5, delta=1.5, msg=outcome.load)
            self.assertAlmostEqual(outcome.seen, 1, delta=0.01)
        eight = outcomes[2]
        self.assertAlmostEqual(eight.idle, 200, delta=0.3)
        self.assertAlmostEqual(eight.marginal, (9 + 8 * 4 * 1.25) / 0.93, delta=0.4)
        self.assertAlmostEqual(eight.due, 200 * 16 / 64 + 52.7, delta=0.5)
        pair = outcomes[-2].marginal + outcomes[-1].marginal
        self.assertAlmostEqual(pair, (9 + 8 * 1.25 * (4 + 3)) / 0.93, delta=0.5)  # the first core wakes the package once
        self.assertGreater(outcomes[-2].marginal, outcomes[-1].marginal)
        self.assertLess(max(abs(w.residual) for w in windows), 1e-3)
        mape, kinds = energy_report.summary(outcomes)
        self.assertAlmostEqual(mape, 8.3, delta=0.4)
        self.assertEqual([kind for kind, *_ in kinds], ["one thread", "compute", "memory", "two at once"])
        self.assertEqual(energy_report.summary(self.run_dry()[2])[0], mape, "the same seed gives the same result")

    def test_writes_reports_with_plots(self):
        with tempfile.TemporaryDirectory() as directory:
            status, out, _ = self.main("--dry-run", "--seconds", "20", "--settle", "2", "--output", directory + "/r.md")
            self.assertEqual(status, 0)
            self.assertEqual(sorted(os.listdir(directory)), ["r-loads.svg", "r-power.svg", "r.md"])
            with open(directory + "/r.md", encoding="utf-8") as file:
                text = file.read()
            self.assertRegex(text, r"\| compute, 8 cores \| 52\.\d ± 0\.\d \| 10\d\.\d \| 11\d\.\d \| \+(9|10)\.\d \|")
            self.assertIn("![power](r-power.svg)", text)
            self.assertRegex(text, r"`--collector\.energy\.model-watts=idle=200,full=38[12]`\.")
            for name in ("r-loads.svg", "r-power.svg"):
                with open(directory + "/" + name, encoding="utf-8") as file:
                    plot = xml.dom.minidom.parseString(file.read())
                self.assertGreater(len(plot.getElementsByTagName("text")), 5)
            self.assertRegex(out, r"mean absolute error 8\.\d %")
            status, _, _ = self.main("--dry-run", "--seconds", "20", "--settle", "2", "--max-error", "5", "--output", directory + "/r.html")
            self.assertEqual(status, 1)
            with open(directory + "/r.html", encoding="utf-8") as file:
                text = file.read()
            self.assertEqual(len(re.findall("<svg ", text)), 2)
            self.assertIn("<td>compute, 8 cores</td>", text)

    def test_refuses_a_node_that_is_not_idle(self):
        with tempfile.TemporaryDirectory() as directory:
            quick = ["--dry-run", "--seconds", "10", "--settle", "1", "--output", directory + "/r.md"]
            status, _, err = self.main(*quick, "--simulated-other-load", "0.5")
            self.assertEqual(status, 2)
            self.assertIn("50 % of the CPUs are busy without a load", err)
            self.assertEqual(os.listdir(directory), [])
            for arguments in (["--simulated-other-load", "0.5", "--ignore-other-load"], ["--simulated-other-load", "0.1"]):
                status, _, _ = self.main(*quick, *arguments)
                self.assertEqual(status, 0)
                with open(directory + "/r.md", encoding="utf-8") as file:
                    self.assertRegex(file.read(), "Attention: the node was not idle. In the idle windows (50|10) % of its CPUs")

    def test_refuses_bad_options(self):
        for arguments, words in ((["--seconds", "60"], "--meter is needed"), (["--dry-run", "--output", "r.pdf"], ".md or .html"),
                                 (["--dry-run", "--repeat", "0"], "at least 1"), (["--dry-run", "--seconds", "-1"], "expected a positive number"),
                                 (["--dry-run", "--cores", "33"], "expected 1 to 32 cores, got '33'"),
                                 (["--meter", "csv:/nowhere"], "no file /nowhere"), (["--meter", "volts"], "expected ipmitool, redfish:URL"),
                                 (["--dry-run", "--seconds", "2"], "expected at least 3")):
            status, _, err = self.main(*arguments, "--settle", "1")
            self.assertEqual(status, 2, arguments)
            self.assertIn(words, err)

    def test_reads_numbers_of_cores(self):
        self.assertEqual(validate_energy.core_counts("1,25%,50%,100%", 32), [1, 8, 16, 32])
        self.assertEqual(validate_energy.core_counts("1,25%,100%", 2), [1, 2])
        for text in ("0", "-1", "x", "1.5", "101%", "", "1,,2"):
            self.assert_fails("--cores", validate_energy.core_counts, text, 32)
        self.assertEqual(validate_energy.cpu_list("0-3,8\n"), [0, 1, 2, 3, 8])
        self.assertEqual(len(validate_energy.plan([[0]], [1])), 2)  # one core without SMT: nothing to share

    def test_reads_wattmeters(self):
        self.assertEqual(wattmeter.dcmi_watts("    Instantaneous power reading:                   220 Watts\n"), 220)
        self.assert_fails("no 'Instantaneous", wattmeter.dcmi_watts, "Invalid command")
        self.assert_fails("expected watts", wattmeter.dcmi_watts, "Instantaneous power reading: 0 Watts")
        for document in ({"PowerControl": [{}, {"PowerConsumedWatts": 344}]}, {"PowerWatts": {"Reading": 344.0}}, {"Reading": 344}):
            self.assertEqual(wattmeter.redfish_watts(document), 344)
        for document in ({}, {"PowerControl": None}, {"Reading": "344"}, {"Reading": True}):
            self.assert_fails("has no PowerConsumedWatts", wattmeter.redfish_watts, document)
        readings = wattmeter.csv_readings(["time,watts\n", "2026-01-01T00:00:02Z,201.5\n", "# note\n", "1767225601,200\n"], "f", 10)
        self.assertEqual(readings, [(1767225611.0, 200.0), (1767225612.0, 201.5)])
        self.assertEqual(wattmeter.csv_readings(["5;100"], "f"), [(5.0, 100.0)])
        self.assert_fails("f:2: expected 'time,watts', got 'noon,5'", wattmeter.csv_readings, ["1,5", "noon,5"], "f")
        self.assert_fails("f:1: expected watts, got nan", wattmeter.csv_readings, ["1,nan"], "f")
        self.assert_fails("no readings", wattmeter.csv_readings, ["time,watts"], "f")

    def test_says_what_the_page_lacks(self):
        self.assert_fails("--collector.energy", validate_energy.Page, "up 1\n")
        node, *_ = self.run_dry()
        node.start("unit", "compute", [0])
        node.sleep(1)
        self.assertIn("unit", node.page().units)
        self.assert_fails("--collector.cgroup.pattern=", validate_energy.Window, node, 5, "load", ["other"])


if __name__ == "__main__":
    unittest.main()
