#!/usr/bin/env python3
"""What the detectors of the fleet cost a VictoriaMetrics.

    bench/fleet/queries.py [--nodes 1000] [--servers build/servers/bin] [--program build/dev/bin/fleet_queries]

Fills a VictoriaMetrics of its own with two hours of nodes that have 20 jobs and 4 GPUs each. Four nodes share their
jobs: a job is on four nodes, four of the twenty have a GPU on each of them. In the last 20 minutes, GPU 0 of n1 is slow,
and job 0-1 creates files on scratch while the others wait. Then fleet_queries asks what the API server asks."""

import argparse
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time

JOBS, GPUS, WIDTH, MINUTES, SHORT = 20, 4, 4, 120, 35
REASONS = ("hardware_thermal", "software_thermal", "power_cap", "power_brake")


class Lines:
    """Series in the format of VictoriaMetrics' import."""

    def __init__(self, port, now):
        self.port, self.parts, self.size, self.series = port, [], 0, 0
        self.times = {n: ",".join(str((now - 60 * (n - 1 - i)) * 1000) for i in range(n)) for n in (MINUTES + 5, SHORT)}
        self.counts = {}

    def counter(self, rate, minutes, more=None):
        """Values of a counter with a rate a second; in the last 20 minutes `more`."""
        key = (rate, minutes, more)
        if key not in self.counts:
            at, values = 1000, []
            for i in range(minutes):
                at += 60 * (rate if more is None or i < minutes - 20 else more)
                values.append("%.6g" % at)
            self.counts[key] = ",".join(values)
        return self.counts[key]

    def add(self, name, labels, values, minutes):
        line = '{"metric":{"__name__":"%s",%s},"values":[%s],"timestamps":[%s]}\n' % (
            name, ",".join('"%s":"%s"' % one for one in labels), values, self.times[minutes])
        self.parts.append(line)
        self.size += len(line)
        self.series += 1
        if self.size > 32e6:
            self.send()

    def send(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request("POST", "/api/v1/import", "".join(self.parts))
        answer = connection.getresponse()
        if answer.status != 204:
            sys.exit("import: %d %s" % (answer.status, answer.read()[:300]))
        self.parts, self.size = [], 0


def fill(out, nodes):
    long, short = MINUTES + 5, SHORT
    for n in range(nodes):
        host, group = "n%d" % n, n // WIDTH
        target = (("job", "ceems"), ("instance", host + ":9010"))
        own = target + (("hostname", host),)
        out.add("ceems_node_info", own, ",".join(["1"] * short), short)
        for error in ("symbol_error", "link_error_recovery", "link_downed", "local_link_integrity_errors"):
            out.add("ceems_infiniband_%s_total" % error, target + (("device", "mlx5_0"), ("port", "1")), out.counter(0, short), short)
        for j in range(JOBS):
            uuid = "%d-%d" % (group, j)
            unit = own + (("manager", "slurm"), ("uuid", uuid))
            flat = lambda value: ",".join([value] * long)
            out.add("ceems_compute_unit_cpus", unit, flat("6"), long)
            out.add("ceems_compute_unit_cpu_user_seconds_total", unit, out.counter(5, long), long)
            out.add("ceems_compute_unit_cpu_system_seconds_total", unit, out.counter(0.3, long), long)
            out.add("ceems_compute_unit_memory_psi_seconds", unit, out.counter(0.01, long), long)
            out.add("ceems_compute_unit_idle_seconds_total", unit, out.counter(1 if j == 2 else 0, long), long)
            out.add("ceems_compute_unit_energy_joules_total", unit + (("domain", "node"),), out.counter(40, long), long)
            out.add("ceems_compute_unit_idle_energy_joules_total", unit + (("domain", "node"),), out.counter(10, long), long)
            waits = out.counter(0.01, long, 0.4 if (group, j) != (0, 1) and group < 10 else None)
            out.add("ceems_compute_unit_pressure_seconds_total", unit + (("resource", "io"), ("kind", "some")), waits, long)
            for kind in ("read", "write"):
                for mount in ("/scratch", "/home"):
                    on = unit + (("mountpoint", mount),)
                    out.add("ceems_ebpf_%s_bytes_total" % kind, on, out.counter(1e6, long), long)
                    out.add("ceems_ebpf_%s_requests_total" % kind, on, out.counter(20, long), long)
            for kind in ("open", "create", "unlink"):
                out.add("ceems_ebpf_%s_requests_total" % kind, unit, out.counter(1, long), long)
            if j < GPUS:
                gpu = (("index", str(j)), ("gpuuuid", "GPU-%d-%d" % (n, j)), ("gpuiid", ""))
                out.add("ceems_compute_unit_gpu_index_flag", unit + gpu, ",".join(["1"] * short), short)
                out.add("ceems_compute_unit_gpu_sm_seconds_total", unit + gpu, out.counter(0.7, short), short)
        for g in range(GPUS):
            slow = n == 1 and g == 0
            gpu = own + (("index", str(g)), ("gpuuuid", "GPU-%d-%d" % (n, g)), ("vendor", "nvidia"))
            for name, value in (("info", "1"), ("up", "1"), ("power_watts", "450" if slow else "600")):
                more = (("name", "H100"),) if name == "info" else ()
                out.add("ceems_gpu_" + name, gpu + more, ",".join([value] * short), short)
            out.add("ceems_gpu_clock_hertz", gpu + (("clock", "graphics"),), ",".join(["1.76e9" if slow else "1.98e9"] * short), short)
            for reason in REASONS:
                rate = 0.9 if slow and reason == "hardware_thermal" else 0
                out.add("ceems_gpu_clock_reason_seconds_total", gpu + (("reason", reason),), out.counter(rate, short), short)
                out.add("ceems_gpu_clock_reason", gpu + (("reason", reason),), ",".join([str(round(rate))] * short), short)
            for kind in ("corrected", "uncorrected"):
                out.add("ceems_gpu_ecc_errors_total", gpu + (("type", kind),), out.counter(0, short), short)
    for group in range((nodes + WIDTH - 1) // WIDTH):
        for j in range(JOBS):
            server = (("job", "lustre"), ("instance", "oss1:9010"), ("filesystem", "scratch"), ("uuid", "%d-%d" % (group, j)))
            for kind in ("read", "write"):
                out.add("ceems_lustre_job_%s_bytes_total" % kind, server, out.counter(1e6, long), long)
            for kind in ("read", "write", "open", "close", "create", "getattr"):
                storm = (group, j, kind) == (0, 1, "create")
                rate = out.counter(1, long, 200 * nodes * JOBS // WIDTH if storm else None)
                out.add("ceems_lustre_job_operations_total", server + (("operation", kind),), rate, long)
    out.send()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--servers", default="build/servers/bin")
    parser.add_argument("--program", default="build/dev/bin/fleet_queries")
    parser.add_argument("--data", help="keep the data there, or use those that are there")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as temporary:
        data = options.data or temporary
        stamp = os.path.join(data, "now")
        server = subprocess.Popen([os.path.join(options.servers, "victoria-metrics"), "-storageDataPath=" + os.path.join(data, "tsdb"),
                                   "-httpListenAddr=127.0.0.1:%d" % port, "-retentionPeriod=100y", "-search.maxUniqueTimeseries=2000000",
                                   "-search.maxQueryDuration=2m", "-search.maxQueryLen=1MB", "-loggerLevel=ERROR"])
        try:
            for _ in range(600):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            if os.path.exists(stamp):
                with open(stamp, encoding="ascii") as file:
                    now = int(file.read())
            else:
                now = int(time.time()) // 60 * 60
                lines = Lines(port, now)
                begin = time.monotonic()
                fill(lines, options.nodes)
                print("%d series in %.0f s" % (lines.series, time.monotonic() - begin), flush=True)
                http.client.HTTPConnection("127.0.0.1", port, timeout=60).request("GET", "/internal/force_flush")
                time.sleep(2)
                with open(stamp, "w", encoding="ascii") as file:
                    file.write(str(now))
            if options.program:
                subprocess.run([options.program, "http://127.0.0.1:%d" % port, str(now * 1000)], check=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
