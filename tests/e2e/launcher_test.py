#!/usr/bin/env python3
"""Tests what `make run` starts: the real stack with its demo units, and how the launcher behaves when things go wrong.

Needs the programs (CEEMS_BIN_DIR) and Debian's prometheus. Demo units need root and cgroups; the output says if they are left
out."""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

from harness import BIN, ROOT, free_port, get, need_programs, scratch, skip, wait_until  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "scripts", "run"))

from launcher import cgroups, machine  # noqa: E402

RUN = os.path.join(ROOT, "scripts", "run", "ceems-run")
V2 = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
V1 = ("30 25 0:27 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw,nsdelegate\n"
      "31 25 0:28 / /sys/fs/cgroup/systemd rw shared:6 - cgroup cgroup rw,xattr,name=systemd\n"
      "33 25 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:8 - cgroup cgroup rw,cpu,cpuacct\n"
      "34 25 0:31 / /sys/fs/cgroup/my\\040memory rw shared:9 - cgroup cgroup rw,memory\n")
PAGE = """# TYPE ceems_energy_source_info gauge
ceems_energy_source_info{domain="package",hostname="n\\"1",method="measured",source="rapl"} 1
ceems_energy_source_info{domain="other",hostname="n",method="derived",source="wall"} 1
"""


def reads_what_the_machine_says():
    assert cgroups.hierarchies(V2) == ("v2", {"": "/sys/fs/cgroup"})
    both = "/sys/fs/cgroup/cpu,cpuacct"
    assert cgroups.hierarchies(V1) == ("v1", {"cpuacct": both, "cpu": both, "memory": "/sys/fs/cgroup/my memory"})
    assert cgroups.hierarchies("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n") == (None, {})
    assert machine.energy(PAGE) == (["package, measured by rapl"], [])
    found, advice = machine.energy(PAGE.replace("measured", "modelled"))
    assert found == ["package, modelled by rapl"] and "estimated" in advice[0]
    assert "no source" in machine.energy("")[1][0]
    print("PASS: mounts and meters are parsed")


def start(directory, ports, *arguments):
    env = dict(os.environ, CEEMS_BIN_DIR=BIN, CEEMS_STATE_DIR=directory, CEEMS_PORT_EXPORTER=str(ports[0]),
               CEEMS_PORT_API=str(ports[1]), CEEMS_PORT_PROMETHEUS=str(ports[2]))
    return subprocess.Popen([RUN, *arguments], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, start_new_session=True)


def finish(process, timeout=200):
    output, _ = process.communicate(timeout=timeout)
    assert "Traceback" not in output, output
    return process.returncode, output


def run_file(directory):
    with open(directory + "/run.json") as f:
        return json.load(f)


def wait_url(directory):
    return wait_until("the launcher reports the URL of its page", lambda: run_file(directory)["url"], 60)


def assert_nothing_left(children, ports):
    for child in children:
        wait_until("%s has ended" % child["name"], lambda pid=child["pid"]: not os.path.exists("/proc/%d" % pid), 10)
    for port in ports:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", port))


def first_run(directory, ports):
    code, output = finish(start(directory, ports, "--once-check"))
    print(output)
    assert code == 0, "status %d" % code
    assert "FAIL" not in output and "PASS" in output
    assert not os.path.exists(directory + "/run.json"), "run.json still exists after everything has stopped"


def second_run(directory, ports):
    begin = time.monotonic()
    process = start(directory, ports)
    url = wait_url(directory)
    took = time.monotonic() - begin
    print("second start: %.1f s" % took)
    assert took < 10, took
    children = run_file(directory)["children"]
    user = url.split("user=")[1]
    base = "http://127.0.0.1:%d" % ports[1]
    now = int(time.time())
    units = get("%s/api/v1/units/admin?running=1&from=%d&to=%d" % (base, now - 3600, now + 60), {"X-Grafana-User": user}).json["data"]
    print("known from the first run: %s" % ", ".join(sorted(u["uuid"] for u in units)))
    if any("demo unit" in child["name"] for child in children):
        assert any(u["uuid"].startswith("five-seconds-") for u in units), "state is not kept between runs"

    see_page(directory, url, units)
    rules_work("http://127.0.0.1:%d" % ports[2], units)

    code, output = finish(start(directory, ports))
    assert code == 1 and "the stack is already running (pid %d)" % process.pid in output, output

    process.send_signal(signal.SIGTERM)
    code, output = finish(process)
    assert code == 0, output
    assert_nothing_left(children, ports)
    assert not glob.glob("/sys/fs/cgroup/**/ceems_demo/*-%s" % last_token(children), recursive=True)
    print("PASS: SIGTERM stops everything")


def rules_work(prometheus, units):
    """The shipped rules are evaluated, and write the power of the machine and of its units."""
    def record(name):
        return get(prometheus + "/api/v1/query?query=" + name).json["data"]["result"]
    wait_until("the record of the node's power", lambda: record("hostname:ceems_node_power_watts:rate"), 100)
    if units:
        watts = wait_until("the record of units for CEEMS' dashboards", lambda: record("uuid:ceems_host_power_watts:pue"), 100)
        assert {"uuid", "manager", "hostname", "instance", "job"} <= set(watts[0]["metric"]), watts[0]
        assert any(float(one["value"][1]) > 0 for one in watts), watts
    groups = get(prometheus + "/api/v1/rules").json["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 100 and {"ceems-nodes", "ceems-compat-units", "ceems-energy-alerts"} <= {group["name"] for group in groups}
    wrong = [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] not in ("ok", "unknown")]
    assert not wrong, wrong
    print("PASS: %d rules are evaluated" % len(rules))


def see_page(directory, url, units):
    if not shutil.which("chromium"):
        print("page: not checked, because chromium is not installed")
        return
    done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
                           "--disable-background-networking", "--disable-component-update",
                           "--user-data-dir=%s/chromium" % directory, "--virtual-time-budget=8000", "--dump-dom", url + "#/jobs"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if 'id="app"' not in done.stdout:
        print("page: not checked, because the programs are built without it")
        return
    for unit in units:
        assert unit["uuid"] in done.stdout, "%s is not on the page:\n%s" % (unit["uuid"], done.stdout[-3000:])
    assert not units or "CO₂e" in done.stdout, done.stdout[-3000:]
    print("PASS: the page in Chromium shows the units")


def last_token(children):
    names = [c["name"] for c in children if c["name"].startswith("demo unit")]
    return names[0].rsplit("-", 1)[1] if names else "none"


def taken_port(directory, ports):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        taken = s.getsockname()[1]
        code, output = finish(start(directory, [ports[0], taken, ports[2]]))
    assert code == 1, output
    assert "port %d, for the API server, is taken by" % taken in output and "(pid %d)" % os.getpid() in output, output
    assert "CEEMS_PORT_API=" in output, output
    print("PASS: " + output.strip().splitlines()[0])


def killed_launcher(directory, ports):
    process = start(directory, ports)
    wait_url(directory)
    children = run_file(directory)["children"]
    process.kill()
    finish(process)
    code, output = finish(start(directory, ports, "--duration", "1"))
    assert code == 0, output
    assert_nothing_left(children, ports)
    print("PASS: cleans up after a launcher that was killed")


def crashed_child(directory, ports):
    process = start(directory, ports)
    wait_url(directory)
    children = run_file(directory)["children"]
    api = next(c["pid"] for c in children if c["name"] == "ceems_api_server")
    os.kill(api, signal.SIGKILL)
    code, output = finish(process)
    assert code == 1 and "ceems_api_server was killed by signal SIGKILL" in output, output
    assert_nothing_left(children, ports)
    print("PASS: " + [line for line in output.splitlines() if "SIGKILL" in line][0])


def main():
    reads_what_the_machine_says()
    need_programs("prometheus")
    for name in ("ceems_exporter", "ceems_api_server"):
        if not os.access(os.path.join(BIN, name), os.X_OK):
            skip("%s is not built in %s" % (name, BIN))
    with scratch("ceems-run-") as directory:
        ports = [free_port() for _ in range(3)]
        state = directory + "/state"
        first_run(state, ports)
        second_run(state, ports)
        taken_port(state, ports)
        killed_launcher(state, ports)
        crashed_child(state, ports)
    print("PASS: launcher")


if __name__ == "__main__":
    main()
