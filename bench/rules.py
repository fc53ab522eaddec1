#!/usr/bin/env python3
"""Measures what recording rules and alerts cost Prometheus: CPU time in a minute for 1,000 nodes with 20 units each.

    scripts/build bench ceems_tool
    bench/rules.py --bin build/bench/bin [--nodes 1000] [--write bench/RESULTS.md]    # a quarter of an hour, 2 GB of memory

A real Prometheus scrapes made-up nodes every 30 s from one server on loopback: pages of ceems_exporter with IPMI, RAPL and the energy
counters, and on one node of ten four GPUs with DCGM's exporter beside. The same Prometheus gets one set of rules after the other; after
a while to settle, its CPU time (cpu_time.py) is compared with that without rules:

- "ceems.rules.yml", "ceems-compat.rules.yml" and "ceems-alerts.yml" of packaging/prometheus, and
- "generated": what ceems_tool writes for the same nodes, after the rules of CEEMS 0.10.2 and later."""

import argparse
import glob
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from cpu_time import process_cpu_seconds
from scrape import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHIPPED = os.path.join(ROOT, "packaging", "prometheus")
GPUS = 4


class Pages:
    """Pages of a node; @H@ is its name and @V@ what counters show now."""

    def __init__(self, units):
        self.start = time.time()
        self.host, self.gpu_host = (self.exporter_page(units, gpus).encode() for gpus in (0, GPUS))
        self.dcgm = self.dcgm_page().encode()

    @staticmethod
    def exporter_page(units, gpus):
        lines = []

        def add(metric, labels="", value="@V@"):
            lines.append('%s{%shostname="@H@"} %s' % (metric, labels + "," if labels else "", value))

        for mode in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"):
            add("ceems_cpu_seconds_total", 'mode="%s"' % mode)
        add("ceems_cpu_count", value=128)
        add("ceems_cpu_per_core_count", value=2)
        for name, value in (("MemTotal", 512e9), ("MemFree", 200e9), ("MemAvailable", 300e9)):
            add("ceems_meminfo_%s_bytes" % name, value=value)
        for name in ("current", "min", "max", "avg"):
            add("ceems_ipmi_dcmi_%s_watts" % name, value=900)
        for zone in ("package", "dram"):
            for socket in "01":
                add("ceems_rapl_%s_joules_total" % zone, 'index="%s",path="intel-rapl:%s"' % (socket, socket))
        domains = ["package", "dram", "other", "node"] + ["gpu"] * bool(gpus)
        for domain in domains:
            for kind in ("node", "system", "unallocated", "ended_units"):
                add("ceems_%s_energy_joules_total" % kind, 'domain="%s"%s' % (domain, ',source="s"' if kind == "node" else ""))
            add("ceems_energy_source_info", 'domain="%s",source="s",method="derived"' % domain, 1)
        add("ceems_energy_source_age_seconds", 'source="s"', 1)
        add("ceems_compute_units", 'manager="slurm"', units)
        for i in range(units):
            unit = 'manager="slurm",cgrouphostname="@H@",uuid="@H@-%d"' % i
            for name, value in (("cpu_user_seconds_total", "@V@"), ("cpu_system_seconds_total", "@V@"), ("cpus", 6), ("memory_rss_bytes", 4e9),
                                ("memory_cache_bytes", 4e9), ("memory_used_bytes", 8e9), ("memory_total_bytes", 16e9),
                                ("memory_fail_count", 0)):
                add("ceems_compute_unit_" + name, unit, value)
            for domain in domains:
                add("ceems_compute_unit_energy_joules_total", unit + ',domain="%s"' % domain)
        for i in range(gpus):
            gpu = 'index="%d",gpuuuid="@H@-GPU-%d"' % (i, i)
            unit = 'manager="slurm",cgrouphostname="@H@",uuid="@H@-%d",hindex="@H@/gpu-%d",%s' % (i, i, gpu)
            add("ceems_compute_unit_gpu_index_flag", unit, 1)
            add("ceems_compute_unit_gpu_sm_count", unit, 132)
            for name, value in (("info", 1), ("power_watts", 400), ("utilization_ratio", 0.9), ("memory_used_bytes", 40e9),
                                ("memory_total_bytes", 80e9), ("sm_active_ratio", 0.8), ("sm_occupancy_ratio", 0.4),
                                ("graphics_active_ratio", 0.9), ("dram_active_ratio", 0.5), ("fp64_active_ratio", 0.1),
                                ("fp32_active_ratio", 0.1), ("fp16_active_ratio", 0.1)):
                add("ceems_gpu_" + name, 'vendor="nvidia",' + gpu, value)
            add("ceems_gpu_tensor_active_ratio", 'vendor="nvidia",pipe="any",' + gpu, 0.3)
            for link in ("pcie", "link"):
                for way in ("transmit", "receive"):
                    add("ceems_gpu_%s_%s_bytes_total" % (link, way), 'vendor="nvidia",' + gpu)
        for collector in ("cpu", "meminfo", "slurm", "rapl", "ipmi_dcmi", "energy"):
            lines.append('ceems_scrape_collector_success{collector="%s"} 1' % collector)
        return "\n".join(lines) + "\n"

    @staticmethod
    def dcgm_page():
        lines = []
        for i in range(GPUS):
            for name in ("DEV_POWER_USAGE_INSTANT", "DEV_GPU_UTIL", "DEV_FB_USED", "DEV_FB_FREE", "PROF_SM_ACTIVE", "PROF_SM_OCCUPANCY",
                         "PROF_GR_ENGINE_ACTIVE", "PROF_PIPE_TENSOR_ACTIVE", "PROF_PIPE_FP64_ACTIVE", "PROF_PIPE_FP32_ACTIVE",
                         "PROF_PIPE_FP16_ACTIVE", "PROF_DRAM_ACTIVE", "PROF_NVLINK_TX_BYTES", "PROF_NVLINK_RX_BYTES", "PROF_PCIE_TX_BYTES",
                         "PROF_PCIE_RX_BYTES"):
                lines.append('DCGM_FI_%s{gpu="%d",UUID="@H@-GPU-%d",modelName="NVIDIA H100",Hostname="@H@"} 0.5' % (name, i, i))
        return "\n".join(lines) + "\n"

    def get(self, path):
        _, kind, host = path.split("/")
        page = {"cpu": self.host, "gpu": self.gpu_host, "dcgm": self.dcgm}.get(kind)
        if kind == "emissions":
            return "".join('ceems_emissions_gCo2_kWh{provider="%s",country_code="FR",country="France"} %d\n' % one
                           for one in (("rte", 36), ("owid", 44))).encode()
        value = b"%d" % (100 * (time.time() - self.start))
        return page.replace(b"@H@", host.encode()).replace(b"@V@", value)

    def serve(self):
        pages = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = pages.get(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_address[1]


class Prometheus:
    def __init__(self, directory, port, nodes, interval):
        self.directory, self.interval = directory, interval
        self.config = os.path.join(directory, "prometheus.yml")
        gpu_nodes = max(1, nodes // 10)
        hosts = {"cpu": ["n%05d" % i for i in range(gpu_nodes, nodes)], "gpu": ["n%05d" % i for i in range(gpu_nodes)]}
        groups = [("ceems", "cpu", hosts["cpu"], 9010), ("ceems", "gpu", hosts["gpu"], 9010), ("dcgm", "dcgm", hosts["gpu"], 9400),
                  ("emissions", "emissions", ["s1", "s2"], 9010)]
        jobs = {}
        for job, kind, names, instance_port in groups:
            jobs.setdefault(job, []).extend({"targets": ["127.0.0.1:%d" % port], "labels": {
                "__metrics_path__": "/%s/%s" % (kind, name), "instance": "%s:%d" % (name, instance_port)}} for name in names)
        self.jobs = [{"job_name": job, "static_configs": targets} for job, targets in jobs.items()]
        self.load([])
        self.port = free_port()
        self.log = open(os.path.join(directory, "prometheus.log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=" + self.config, "--storage.tsdb.path=" + os.path.join(directory, "data"),
             "--web.listen-address=127.0.0.1:%d" % self.port, "--log.level=warn"], stderr=self.log)

    def load(self, files):
        """JSON is YAML as well."""
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump({"global": {"scrape_interval": "%ds" % self.interval, "evaluation_interval": "%ds" % self.interval},
                       "rule_files": files, "scrape_configs": self.jobs}, f)

    def reload(self, files):
        self.load(files)
        self.process.send_signal(signal.SIGHUP)

    def ask(self, path, **parameters):
        url = "http://127.0.0.1:%d%s?%s" % (self.port, path, urllib.parse.urlencode(parameters))
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read().decode()

    def number(self, query):
        result = json.loads(self.ask("/api/v1/query", query=query))["data"]["result"]
        return float(result[0]["value"][1]) if result else 0

    def rules(self):
        """(rules, errors, series that the last evaluations wrote)."""
        groups = json.loads(self.ask("/api/v1/rules"))["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        samples = sum(float(line.rsplit(" ", 1)[1]) for line in self.ask("/metrics").splitlines()
                      if line.startswith("prometheus_rule_group_last_evaluation_samples{"))
        return len(rules), [rule["lastError"] for rule in rules if rule.get("lastError")], samples

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def generated_rules(options, prometheus, directory):
    out = os.path.join(directory, "generated")
    end = time.time()
    subprocess.run([os.path.join(options.bin, "ceems_tool"), "tsdb", "create-recording-rules", "--country-code=FR", "--record-names=both",
                    "--no-skip-energy-counters", "--url=http://127.0.0.1:%d" % prometheus.port, "--output-dir=" + out,
                    "--start=%d" % (end - 120), "--end=%d" % end], check=True, stderr=subprocess.DEVNULL)
    return sorted(glob.glob(out + "/*.rules"))


def measure(prometheus, name, files, options):
    prometheus.reload(files)
    time.sleep(options.settle)
    before, begin = process_cpu_seconds(prometheus.process.pid), time.monotonic()
    time.sleep(options.seconds)
    cpu = (process_cpu_seconds(prometheus.process.pid) - before) * 60 / (time.monotonic() - begin)
    rules, errors, samples = prometheus.rules()
    assert not errors, errors[:3]
    up = prometheus.number("sum(up) / count(up)")
    row = {"name": name, "cpu": cpu, "rules": rules, "samples": samples, "up": up}
    print(row, flush=True)
    assert up > 0.98, "%.0f %% of the targets answer: the machine is too busy" % (100 * up)
    return row


def table(rows):
    lines = ["| rules | number | series | CPU s in a minute | more than without rules |", "|---|---|---|---|---|"]
    for row in rows:
        lines.append("| %s | %d | %d | %.2f | %.2f |" % (row["name"], row["rules"], row["samples"], row["cpu"], row["cpu"] - rows[0]["cpu"]))
    return "\n".join(lines)


def shipped(*names):
    return [os.path.join(SHIPPED, name) for name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bench", "bin"))
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--units", type=int, default=20)
    parser.add_argument("--interval", type=int, default=30)
    parser.add_argument("--settle", type=int, default=75, help="seconds between new rules and the measurement")
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    if not shutil.which("prometheus"):
        print("SKIPPED: prometheus is not installed")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        prometheus = Prometheus(directory, Pages(options.units).serve(), options.nodes, options.interval)
        try:
            time.sleep(4 * options.interval)  # rates need a full window
            generated = generated_rules(options, prometheus, directory)
            rows = [measure(prometheus, name, files, options) for name, files in (
                ("none", []),
                ("ceems.rules.yml", shipped("ceems.rules.yml")),
                ("ceems.rules.yml, ceems-alerts.yml", shipped("ceems.rules.yml", "ceems-alerts.yml")),
                ("ceems-compat.rules.yml, ceems-site.rules.yml", shipped("ceems-compat.rules.yml", "ceems-site.rules.yml")),
                ("generated by ceems_tool", generated))]
            series = prometheus.number("prometheus_tsdb_head_series") or float(
                [line for line in prometheus.ask("/metrics").splitlines() if line.startswith("prometheus_tsdb_head_series ")][0].split()[1])
        finally:
            prometheus.stop()
    text = "Measured on %s: %s, %s. %d nodes with %d units each, scraped every %d s: %d series in the end.\n\n%s\n" % (
        time.strftime("%Y-%m-%d"), machine(), subprocess.run(["prometheus", "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                                             encoding="utf-8", check=False).stdout.split("(")[0].replace(",", "").strip(),
        options.nodes, options.units, options.interval, series, table(rows))
    print(text)
    if options.write:
        with open(options.write, encoding="utf-8") as f:
            page = f.read()
        head, rest = page.split("<!-- begin rules -->")
        with open(options.write, "w", encoding="utf-8") as f:
            f.write("%s<!-- begin rules -->\n\n%s\n<!-- end rules -->%s" % (head, text, rest.split("<!-- end rules -->")[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
