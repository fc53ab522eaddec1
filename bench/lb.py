#!/usr/bin/env python3
"""Measures the cost of a request through ceems_lb, next to nginx and HAProxy as plain proxies in the same run.

    cmake --preset bench && cmake --build build/bench --target ceems_lb decision
    bench/lb.py --bin build/bench/bin [--write bench/RESULTS.md]

Needs the Debian packages nginx-light, haproxy and wrk. The backend of all of them is another nginx with a file of 1 KB or 1 MB. wrk
sends a query of 1 KB over 16 kept connections as fast as it can. CPU time is that of the whole process. ceems_lb runs with the
gate off (no source of owners) and on (a database). nginx and HAProxy have one worker process or thread. All proxies run side by side
and are loaded in turn, several rounds; the table shows each proxy's round with the least CPU time, because whatever else the machine
does can only add to it."""

import argparse
import contextlib
import datetime
import glob
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse

from cpu_time import process_cpu_seconds
from section import write_section

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
import lb_test  # noqa: E402
from harness import Program, free_port, get, wait_until  # noqa: E402

UNITS = "|".join(lb_test.OWN)
PART = 'avg by (instance) (rate(ceems_compute_unit_cpu_user_seconds_total{uuid=~"%s",instance=~"node-[0-9]+"}[5m]))' % UNITS
QUERY = " + ".join([PART] * 9)
TARGET = "/api/v1/query?" + urllib.parse.urlencode({"query": QUERY, "time": 1700000000})
HEADERS = {"X-Grafana-User": "alice", "X-Ceems-Cluster-Id": "c0"}


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def nginx(directory, name, server):
    home = os.path.join(directory, name)
    os.makedirs(home)
    return ["nginx", "-p", home, "-c", write(home + "/nginx.conf", """
daemon off; worker_processes 1; pid %s/pid; error_log %s/error.log;
events { worker_connections 8192; }
http { access_log off; keepalive_requests 1000000; client_body_temp_path %s/a; proxy_temp_path %s/b; fastcgi_temp_path %s/c;
uwsgi_temp_path %s/d; scgi_temp_path %s/e; %s }""" % ((home,) * 7 + (server,)))]


def cpu_seconds(pids):
    return sum(map(process_cpu_seconds, pids))


def family(pid):
    """A process and its children."""
    pids = [pid]
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        with open(path, encoding="utf-8") as text:
            for child in text.read().split():
                pids += family(int(child))
    return pids


def resident_kb(pids):
    total = 0
    for pid in pids:
        with open("/proc/%d/status" % pid, encoding="utf-8") as text:
            total += sum(int(line.split()[1]) for line in text if line.startswith("VmRSS:"))
    return total


def seconds(text):
    number, unit = re.match(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit]


OTHER = ", another query each time"
OTHERS = """local number = 0
request = function()
  number = number + 1
  return wrk.format("GET", "%s%%20%%3E%%20" .. number .. "&time=1700000000")
end
""" % TARGET.partition("&time")[0]


def load(port, pids, duration, script=None):
    """{requests, cpu, p50, p99} of one run of wrk"""
    command = ["wrk", "-t1", "-c16", "-d%ds" % duration, "--latency", "http://127.0.0.1:%d%s" % (port, TARGET)]
    if script:
        command += ["-s", script]
    for field in HEADERS.items():
        command += ["-H", "%s: %s" % field]
    before = cpu_seconds(pids)
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = cpu_seconds(pids) - before
    assert "Non-2xx" not in text and "Socket errors" not in text, text
    count = int(re.search(r"(\d+) requests in", text).group(1))
    return {"rate": count / duration, "cpu": used / count * 1e6, "p50": seconds(re.search(r"(?m)^\s+50%\s+(\S+)", text).group(1)) * 1e3,
            "p99": seconds(re.search(r"(?m)^\s+99%\s+(\S+)", text).group(1)) * 1e3}


def idle_bytes(port, pids, count=2000):
    """Resident bytes per kept connection that has had a request."""
    request = ("GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (TARGET, "".join("%s: %s\r\n" % field for field in HEADERS.items()))).encode()
    before = resident_kb(pids)
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            s.sendall(request)
            got = b""
            while b"\r\n\r\n" not in got or len(got) < 1100:
                got += s.recv(65536)
        return max(0, (resident_kb(pids) - before) * 1024 / count)


def proxies(directory, bin_dir, back):
    """(name, command, port)"""
    port = free_port()
    yield "nginx", nginx(directory, "nginx-%d" % port, """
upstream back { server 127.0.0.1:%d; keepalive 64; }
server { listen 127.0.0.1:%d backlog=1024; location / { proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ""; } }"""
                         % (back, port)), port
    port = free_port()
    yield "HAProxy", ["haproxy", "-db", "-f", write("%s/haproxy-%d.cfg" % (directory, port), """
global
  nbthread 1
  maxconn 8000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:%d
  default_backend back
backend back
  http-reuse always
  server one 127.0.0.1:%d
""" % (port, back))], port
    for name, owners in (("ceems_lb, gate off", ""), ("ceems_lb, gate on", "ceems_api_server:\n  data: {path: %s/data}\n" % directory)):
        port = free_port()
        config = write("%s/lb-%d.yml" % (directory, port), "ceems_lb:\n  backends:\n    - id: c0\n      tsdb:\n        - web: {url: "
                       "'http://127.0.0.1:%d'}\n%s" % (back, owners))
        yield name, [os.path.join(bin_dir, "ceems_lb"), "--config.file=" + config, "--web.listen-address=127.0.0.1:%d" % port,
                     "--log.level=warn"], port


def measure(bin_dir, duration, rounds):
    rows = []
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as directory, contextlib.ExitStack() as stack:
        os.chmod(directory, 0o755)
        lb_test.make_database(directory)
        for size, text in (("1 KB", 1024), ("1 MB", 1 << 20)):
            root = os.path.join(directory, "root-%d" % text)
            os.makedirs(root)
            head = '{"status":"success","data":{"resultType":"vector","result":[]},"x":"'
            write(root + "/answer.json", head + "x" * (text - len(head) - 2) + '"}')
            for folder, _, files in os.walk(directory):
                for name in [folder] + [os.path.join(folder, one) for one in files]:
                    os.chmod(name, 0o755)
            back = free_port()
            stack.enter_context(Program(nginx(directory, "back-%d" % text, "sendfile on; server { listen 127.0.0.1:%d backlog=1024; root %s; "
                                              "location / { default_type application/json; rewrite ^ /answer.json break; } }" % (back, root)),
                                        directory + "/back-%d.log" % text))
            others = write(directory + "/others.lua", OTHERS)
            loads = []
            with contextlib.ExitStack() as running:
                for name, command, port in proxies(directory, bin_dir, back):
                    program = running.enter_context(Program(command, "%s/%d.log" % (directory, port)))
                    wait_until(name + " answers", lambda port=port: get("http://127.0.0.1:%d%s" % (port, TARGET), HEADERS).status == 200)
                    pids = family(program.pid)
                    idle = idle_bytes(port, pids) if text == 1024 else None
                    loads.append(({"name": name, "size": size, "idle": idle}, port, pids, None))
                    if name in ("nginx", "ceems_lb, gate on") and text == 1024:  # compared with each other: wrk sends these more slowly
                        loads.append(({"name": name + OTHER, "size": size, "idle": None}, port, pids, others))
                for turn in range(rounds + 1):
                    for row, port, pids, script in loads:
                        one = load(port, pids, duration, script)
                        if turn > 0 and one["cpu"] < row.get("cpu", float("inf")):  # the first round warms up
                            row.update(one)
            rows += [row for row, *_ in loads]
    return rows


def table(rows, bin_dir):
    decisions = subprocess.run([os.path.join(bin_dir, "decision")], capture_output=True, text=True, check=True).stdout
    lines = ["Measured on %s: %d CPUs, Linux %s. Query of %d bytes."
             % (datetime.date.today(), os.cpu_count(), platform.release(), len(QUERY)), "",
             "| response | | requests/s | CPU, µs | ÷ nginx | p50, ms | p99, ms | bytes per idle connection |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        base = next(one["cpu"] for one in rows
                    if one["size"] == row["size"] and one["name"] == "nginx" + (OTHER if row["name"].endswith(OTHER) else ""))
        lines.append("| %s | %s | %.0f | %.1f | %.2f | %.2f | %.2f | %s |"
                     % (row["size"], row["name"], row["rate"], row["cpu"], row["cpu"] / base, row["p50"], row["p99"],
                        "" if row["idle"] is None else "%.0f" % row["idle"]))
    return "\n".join(lines + ["", "A decision of the gate alone (`decision`), with owners in memory. " + decisions.strip()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seconds", type=int, default=2, help="of one load (default: 2)")
    parser.add_argument("--rounds", type=int, default=6, help="of loads that count (default: 6)")
    parser.add_argument("--write")
    options = parser.parse_args()
    for name in ("nginx", "haproxy", "wrk"):
        if not shutil.which(name):
            sys.exit("missing: " + name)
    text = table(measure(options.bin, options.seconds, options.rounds), options.bin)
    print(text)
    if options.write:
        write_section(options.write, "lb", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
