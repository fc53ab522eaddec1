#!/usr/bin/env python3
"""What a site adds without a compiler, with the examples of the documentation: units from a command or a file by the manager `exec`, and
metrics from files by the collector `textfile`."""

import os
import re
import subprocess
import sys
import time

from harness import ROOT, get, run_tests, samples, start_api_server, start_exporter, wait_until, write


def documented(page, start, end):
    """The text between two lines of a page of the documentation."""
    with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as f:
        found = re.search(re.escape(start) + r"(.*?)^" + re.escape(end) + "$", f.read(), re.M | re.S)
    assert found, (page, start)
    return found.group(1)


def units_from(directory, name, source):
    """Starts an API server with this source of units. Returns its program and a function that lists units as one user."""
    program, url = start_api_server(directory, """
ceems_api_server:
  data: {path: %s/data-%s, update_interval: 1s, max_update_interval: 100y, update_from: 2026-01-01, retention_period: 30y}
  admin: {users: [root]}
clusters:
  - id: pbs-0
    manager: exec
    cli: {environment_variables: {PBS_SERVER: pbs.example.org}}
    extra_config: {%s}
""" % (directory, name, source), ["--security.run-as-user=root"] if os.geteuid() == 0 else [], name=name)

    def ask(path, user):
        return get(url + "/api/v1/" + path, {"X-Grafana-User": user}).json["data"]
    return program, ask


def jobs(directory):
    lines = documented("api/resource-managers.md", "```json", "```")
    assert lines.count('"unit"') == 2
    path = write(directory + "/units.jsonl", lines)
    log = directory + "/runs"
    command = write(directory + "/units", "#!/bin/sh\nprintf '%%s %%s %%s %%s\\n' \"$PBS_SERVER\" \"$CEEMS_CLUSTER\" \"$CEEMS_START\""
                    " \"$CEEMS_END\" >>%s\ncat %s\n" % (log, path), 0o755)
    for name, source in (("command", "command: [%s, --all]" % command), ("file", "file: " + path)):
        program, ask = units_from(directory, name, source)
        with program:
            window = "units?running&from=1767200000&to=%d" % (time.time() + 10)
            wait_until("the units of ada and bob", lambda ask=ask: ask(window, "ada") and ask(window, "bob"))
            unit = ask(window, "ada")[0]
            assert (unit["uuid"], unit["name"], unit["project"], unit["groupname"], unit["state"], unit["elapsed"]) == \
                ("1234.pbs", "cfd", "fluids", "staff", "COMPLETED", "01:00:00"), unit
            assert unit["total_time_seconds"]["alloc_cputime"] == 4 * 3600 and unit["tags"] == {"queue": "batch"}, unit
            assert unit["allocation"] == {"cpus": 4, "gpus": 1, "mem": 8192 << 20}, unit
            assert ask(window, "bob")[0]["state"] == "RUNNING"
            assert ask("projects?project=fluids", "ada")[0]["users"] == ["ada", "eve"]
    with open(log) as f:
        server, cluster, start, end = f.readline().split()
    assert (server, cluster) == ("pbs.example.org", "pbs-0") and int(start) < int(end), (server, cluster, start, end)
    # A line that is wrong is left out and named; the others are not held up.
    write(path, lines + '{"unit":"9","user":"eve","project":"fluids","start":1767225600,"memory_mb":1}\n')
    program, ask = units_from(directory, "wrong", "file: " + path)
    with program:
        message = "units.jsonl: line %d: memory_mb: unknown member, did you mean 'memory_mib'?" % (lines.count("\n") + 1)
        wait_until("the error", lambda: message in program.output())
        wait_until("the other units", lambda: ask("units?from=1767200000&to=%d" % (time.time() + 10), "ada"))
        assert ask("units?uuid=9&from=1767200000&to=%d" % (time.time() + 10), "eve") == []


def metrics(directory):
    example = "ipmitool sensor" + documented("exporter/collectors.md", "```sh\nipmitool sensor", "```")
    files = directory + "/textfile"
    os.mkdir(files, 0o755)
    tools = directory + "/bin"
    write(tools + "/ipmitool", "#!/bin/sh\necho 'CPU Temp | 50.000 | degrees C'\necho 'Inlet Temp       | 23.500     | degrees C  | ok'\n", 0o755)
    subprocess.run(["sh", "-ec", example.replace("/var/lib/ceems/textfile", files)], check=True,
                   env={"PATH": tools + ":/usr/bin:/bin"})
    assert os.listdir(files) == ["inlet.prom"]
    program, url = start_exporter(directory, ["--collector.disable-defaults", "--collector.textfile",
                                              "--collector.textfile.directory=" + files])
    with program:
        page = get(url + "/metrics").text
        assert samples(page, "site_inlet_celsius") == [("", 23.5)], page
        assert "# HELP site_inlet_celsius Temperature of the air that the node takes in.\n# TYPE site_inlet_celsius gauge\n" in page
        age = time.time() - samples(page, "ceems_textfile_mtime_seconds")[0][1]
        assert -5 < age < 60, age
        write(files + "/broken.prom", "site_x 1\nceems_node_energy_joules_total 1\n")
        page = get(url + "/metrics").text
        assert samples(page, "site_x") == [] and samples(page, "site_inlet_celsius") == [("", 23.5)]
        assert samples(page, "ceems_textfile_scrape_error")[0][1] == 1
        success = [v for labels, v in samples(page, "ceems_scrape_collector_success") if "textfile" in labels]
        assert success == [0.0], page
        assert "ceems_node_energy_joules_total: the name is reserved for CEEMS" in program.output()


if __name__ == "__main__":
    sys.exit(run_tests((jobs, metrics), "ceems-site-"))
