#!/usr/bin/env python3
"""Runs the cases of the conformance suite that start ceems_exporter with its eBPF metrics and its profiler switched on as well: they
change nothing else on any page, whether the kernel permits them or refuses.

    tests/conformance_ebpf.py [--suite DIRECTORY] [--bin-dir DIRECTORY] [--patience X] [--tries N]

The cases are copied, with more flags for the exporter. Its page must have the new series if 'ceems_exporter doctor' says that they work,
and none of them otherwise. On a slow machine, --tries scrapes again while slow sources have not answered."""

import argparse
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "integration"))
sys.path.insert(0, os.path.join(HERE, "golden"))
from ebpf_flags import FLAGS, SERIES, shown, states  # noqa: E402
from harness import scratch  # noqa: E402


def changed(case, works, tries):
    """The case with the flags, or None if it does not start the exporter."""
    servers = [server for server in case.get("servers") or [] if server["program"] == "ceems_exporter"]
    if not servers:
        return None
    for server in servers:
        server["args"] = server["args"] + FLAGS
    for step in case["steps"]:
        if "http" in step:
            step["http"].setdefault("retry", tries)
        for check in step.get("http", {}).get("checks", []):
            if check["mode"] == "metrics":
                options = check.setdefault("options", {})
                options["ignore"] = options.get("ignore", []) + list(SERIES.values())
    on = shown(servers[0]["args"], works, "/sys")  # the suite's tree has the file, too
    parts = {"mode": "contains", "options": {"patterns": ["^%s" % SERIES[name] for name in on],
                                             "absent": [SERIES[name] for name in SERIES if name not in on]}}
    # With the scheme and the password of the case, which may check a web configuration.
    access = next((step["http"] for step in case["steps"] if step.get("http", {}).get("url", "").endswith("/metrics")), {})
    url = access.get("url", "http://127.0.0.1:{port}/metrics")
    case["steps"].append({"http": dict({"url": url, "checks": [parts]}, **{k: access[k] for k in ("basic_auth",) if k in access})})
    return case


def absent(case, directory):
    """A program of the case that is not built."""
    programs = {server["program"] for server in case["servers"]} | {step["exec"]["program"] for step in case["steps"] if "exec" in step}
    return next((program for program in sorted(programs) if not os.path.exists(os.path.join(directory, program))), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default=os.path.join(HERE, "..", "..", "shared", "conformance"))
    parser.add_argument("--bin-dir", default=os.path.join(HERE, "..", "build", "bin"))
    parser.add_argument("--patience", default="1")
    parser.add_argument("--tries", type=int, default=1)
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.suite, "run.py")):
        print("conformance: skipped, found no suite at " + options.suite)
        return 0
    works = states(os.path.join(options.bin_dir, "ceems_exporter"))
    print("conformance: eBPF metrics %s, profiler %s" % tuple("on" if works[name] else "refused" for name in ("ebpf", "profiling")), flush=True)
    with scratch("ceems-conformance-") as directory:
        cases = os.path.join(options.suite, "cases")
        count = 0
        for name in sorted(os.listdir(cases)):
            with open(os.path.join(cases, name), encoding="utf-8") as f:
                case = changed(json.load(f), works, options.tries)
            if case and absent(case, options.bin_dir):
                print("SKIP %s: %s is not built" % (case["name"], absent(case, options.bin_dir)))
            elif case:
                count += 1
                with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
                    json.dump(case, f)
        assert count >= 10, "the suite starts the exporter in %d cases only" % count
        return subprocess.run([sys.executable, os.path.join(options.suite, "run.py"), "--bin-dir", options.bin_dir, "--cases-dir", directory,
                               "--patience", options.patience]).returncode


if __name__ == "__main__":
    sys.exit(main())
