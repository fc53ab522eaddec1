#!/usr/bin/env python3
"""`ceems_tool validate energy` with the real exporter and loads in real cgroups. The power of the node is made of the CPU time that the
loads really use; a stand-in for a wattmeter writes it to a file, and the exporter reads it from an ACPI power meter that is right, or 40 % too
high. The error is found, the file is accepted by `validate check`, and changed files are not. Needs root and cgroups that can be written."""

import contextlib
import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import harness
import openapi

TOOL = os.path.join(harness.BIN, "ceems_tool")
IDLE, CORE = 100.0, 40.0  # watts of the node, and of each busy CPU
SCHEMA = os.path.join(harness.ROOT, "data", "validation", "schema.json")
PATTERN = "^/ceems_validate/(?P<id>[^/]+)$"


class Wattmeter(threading.Thread):
    """The power of the node by what the loads really use, as a line a third of a second in a file, and, times a factor, as the power
    meter of a fake sysfs for an exporter. Nothing else on the machine counts, so that the power of the idle node is constant."""

    def __init__(self, directory, factor):
        super().__init__(daemon=True)
        self.csv, self.sys, self.factor, self.stopped = directory + "/watts.csv", directory + "/sys", factor, False
        self.loads = "none"  # the names of their cgroups
        harness.write(self.sys + "/class/hwmon/hwmon0/name", "power_meter\n")
        self.write_power(IDLE)
        harness.write(self.csv, "time,watts\n")

    def write_power(self, watts):
        path = self.sys + "/class/hwmon/hwmon0/power1_average"
        harness.write(path + ".new", "%d\n" % (1e6 * self.factor * watts))
        os.rename(path + ".new", path)

    def cpu_seconds(self):
        """Of each load of the tool, by its cgroup."""
        found = {}
        for pattern in ("/sys/fs/cgroup/cpu*/ceems_validate/%s/cpuacct.usage", "/sys/fs/cgroup/ceems_validate/%s/cpu.stat"):
            for path in glob.glob(pattern % self.loads):
                with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
                    text = f.read().split()
                    found[os.path.basename(os.path.dirname(path))] = 1e-6 * int(text[1]) if text[0] == "usage_usec" else 1e-9 * int(text[0])
        return found

    def run(self):
        used, then, odd = {}, time.time(), 0
        with open(self.csv, "a", encoding="ascii") as f:
            while not self.stopped:
                time.sleep(0.33)
                now, seconds = time.time(), self.cpu_seconds()
                odd = 0.2 - odd  # no meter stands still
                watts = IDLE + odd + CORE * sum(seconds[load] - used.get(load, 0) for load in seconds) / (now - then)
                used, then = seconds, now
                self.write_power(watts)
                f.write("%.3f,%.3f\n" % (now, watts))
                f.flush()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped = True
        self.join()


def exporter_of(directory, meter, *arguments):
    return harness.start_exporter(directory, ["--path.sysfs=" + meter.sys, "--path.cgroupfs=/sys/fs/cgroup", "--collector.energy",
                                              "--collector.hwmon", "--no-security.drop-privileges", *arguments])


def command(url, meter, *arguments):
    return [TOOL, "validate", "energy", "--url=" + url, "--meter=csv:" + meter.csv, "--meter.model=stand-in", *arguments]


def start(arguments, directory, cpu):
    """The tool on one CPU, so that only three loads run."""
    return subprocess.Popen(arguments, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))


def finish(process, status, timeout=120):
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == status, "exit status %d:\n%s%s" % (process.returncode, out, err)
    return out, err


def cgroups():
    return [path for path, names, _ in os.walk("/sys/fs/cgroup") if os.path.basename(path) == "ceems_validate"]


def check(*arguments):
    done = subprocess.run([TOOL, "validate", "check", *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def run_with(directory, factor, cpu, found):
    """Validates an exporter whose meter says the true power times a factor."""
    os.mkdir(directory)
    with Wattmeter(directory, factor) as meter:
        exporter, url = exporter_of(directory, meter, "--collector.cgroup", "--collector.cgroup.pattern=" + PATTERN)
        with exporter:
            time.sleep(2)
            process = start(command(url, meter, "--duration=45s", "--allow-busy", "--key=" + directory + "/key.pem", "--json"), directory, cpu)
            meter.loads = "load-%d-*" % process.pid
            found[factor] = (directory, *finish(process, 0), url)


def errors_of(directory):
    with open(directory + "/energy-validation.json", encoding="utf-8") as f:
        result = json.load(f)
    return result, {error["class"]: error for error in result["errors"]}


def finds_the_error(directory):
    found = {}
    cpus = sorted(os.sched_getaffinity(0))
    threads = [threading.Thread(target=run_with, args=("%s/%d" % (directory, i), factor, cpus[i % len(cpus)], found))
               for i, factor in enumerate((1.0, 1.4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {1.0, 1.4}, found
    for factor, (where, out, err, url) in found.items():
        result, errors = errors_of(where)
        print("validate: an exporter that sees %.0f %% of the power: %s" % (100 * factor, {
            name: "%+.1f %%" % error["bias_percent"] for name, error in errors.items()}))
        assert abs(errors["idle"]["bias_percent"] - 100 * (factor - 1)) < 5, errors["idle"]
        assert set(errors) == {"idle", "compute", "scalar", "memory-bound", "all"}, errors
        charged = [watts for window in result["windows"] for step in window["steps"] for watts in step["charged_watts"]]
        assert len(charged) == 3 and min(charged) > 1, charged
        assert json.loads(out) == result
        assert re.search(r"7 of 7 +idle", err) and "validate: error" not in err, err
        with open(SCHEMA, encoding="utf-8") as f:
            assert openapi.Document({}).complaint(without_notes(json.load(f)), result) is None
        names_nobody(where, url)
        checks_the_file(where, factor)
    assert cgroups() == []


def without_notes(schema):
    """The schema without what says what it is and the bounds of lists, which openapi.py does not know."""
    if isinstance(schema, dict):
        return {key: without_notes(value) for key, value in schema.items() if key not in ("$schema", "title")}
    return schema


def names_nobody(where, url):
    with open(where + "/energy-validation.json", encoding="utf-8") as f:
        text = f.read()
    for name in (socket.gethostname(), url.rsplit(":", 1)[1], where, "watts.csv", "127.0.0.1"):
        assert '"%s' % name not in text and "%s\"" % name not in text, name
    assert os.stat(where + "/key.pem").st_mode & 0o777 == 0o600
    with open(where + "/energy-validation.md", encoding="utf-8") as f:
        assert "| memory-bound | 1 |" in f.read()


def checks_the_file(where, factor):
    path = where + "/energy-validation.json"
    status, shown = check(path)
    assert status == 0 and shown.startswith("valid    " + path), shown
    large = re.search(r"^idle .*LARGE", shown, re.M)
    assert bool(large) == (factor > 1.3), shown
    assert "note: not evidence for other nodes: a load ran for" in shown, shown
    status, shown = check("--evidence", path)
    assert status == 1 and shown.startswith("refused  "), shown
    status, shown = check("--json", path)
    assert status == 0 and json.loads(shown)[0]["valid"] is True, shown
    with open(path, encoding="utf-8") as f:
        text = f.read()
    better = re.sub(r'(?<="error_percent":)[0-9.]+', lambda error: "1" if float(error[0]) != 1 else "2", text, count=1)
    harness.write(path + ".changed", better)
    status, shown = check(path, path + ".changed")
    assert status == 1 and "the signature does not fit" in shown and "valid    " in shown, shown
    harness.write(path + ".other", text.replace('"cpus"', '"host":"n1","cpus"', 1))
    status, shown = check(path + ".other")
    assert status == 1 and "host: expected no such member" in shown, shown
    assert check(path + ".missing")[0] == 1 and check()[0] == 1


def stops_at_once(directory):
    """A busy node, an exporter without the pattern, no meter, a signal: nothing is written and no cgroup is left."""
    cpu = sorted(os.sched_getaffinity(0))[0]
    with Wattmeter(directory, 1.0) as meter:
        blind, blind_url = exporter_of(directory, meter)
        exporter, url = exporter_of(directory, meter, "--collector.cgroup", "--collector.cgroup.pattern=" + PATTERN)
        with blind, exporter:
            burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() // 4 + 1)]
            try:
                _, err = finish(start(command(url, meter, "--duration=40s"), directory, cpu), 1)
            finally:
                for burner in burners:
                    burner.kill()
                    burner.wait()
            assert re.search(r"% of the CPU time is used without a load \(.*% of a CPU by \w+.* \(process \d+\)", err), err
            _, err = finish(start(command(blind_url, meter, "--allow-busy"), directory, cpu), 1)
            assert "does not show the cgroup /ceems_validate/load-" in err and "--collector.cgroup.pattern=" in err, err
            _, err = finish(start([TOOL, "validate", "energy", "--url=" + url], directory, cpu), 1)
            assert "Meters of this node that can be read:" in err and "required flag --meter not provided" in err, err
            _, err = finish(start(command(url, meter, "--duration=5s"), directory, cpu), 1)
            assert "--duration: 3 loads need 39 s or more" in err, err
            process = start(command(url, meter, "--duration=60s", "--allow-busy"), directory, cpu)
            harness.wait_until("a load runs", cgroups)
            process.send_signal(signal.SIGINT)
            _, err = finish(process, 1)
            assert "interrupted; nothing was written" in err, err
    assert cgroups() == []
    assert not [name for name in os.listdir(directory) if name.startswith("energy-validation")]


def main():
    if os.geteuid() != 0 or not os.access("/sys/fs/cgroup", os.W_OK) or os.statvfs("/sys/fs/cgroup").f_flag & os.ST_RDONLY:
        harness.skip("needs root and cgroups that can be written")
    return harness.run_tests([finds_the_error, stops_at_once], "ceems-validate-")


if __name__ == "__main__":
    sys.exit(main())
