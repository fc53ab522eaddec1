"""A small site for the test of the dashboards: two nodes with the real exporter on made-up hardware, a page with the series whose
collectors need a kernel or hardware that a test machine lacks, the real API server with a stand-in for sacct, Prometheus with the
recording rules, and the real load balancer."""

import json
import os
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import fake_slurm  # noqa: E402
from fake_backend import Backend  # noqa: E402
from harness import BIN, ROOT, FakeHttp, Program, free_port, get, need_programs, skip, wait_until, write  # noqa: E402
from slurm_node import FILES_OF_JOB, GPUS, SlurmNode  # noqa: E402

NVML = os.path.join(BIN, "..", "tests", "fake_gpu_libraries", "libfake_nvml.so")
SCRAPE = 1  # seconds
DAYS = 70  # this month and the two before it
CLUSTER = "test"
OWN, FOREIGN = "1000000", "1000001"  # the jobs of alice and of bob, on both nodes
OLD = "999000"  # a job of alice's on nodes that run the reference's exporter: only recording rules know its power
COMPAT = os.path.join(ROOT, "packaging", "prometheus", "ceems-compat.rules.yml")
ARRAYS, TASK = "lsf", "6[1]"  # another cluster: a task of an array, alice's; 61 is a job of bob's there
AS_ROOT = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
GPM = {2: 81.5, 3: 40, 1: 95, 5: 25, 7: 12, 6: 3, 9: 4, 11: 6, 12: 8, 13: 10, 10: 55}  # metrics of GPU profiling

PERF = ("cpucycles ref_cpucycles instructions context_switches cpu_migrations major_faults minor_faults cache_l1d_read_hits "
        "cache_l1d_read_misses cache_ll_read_hits cache_ll_read_misses cache_ll_write_hits cache_ll_write_misses").split()
# Records of profiling for sites without packaging/prometheus: the same formulas.
RULES = {
    **{"uuid:ceems_gpu_prof_%s:ratio" % record:
       "100 * ceems_gpu_%s_ratio%s * on (hostname, gpuuuid, gpuiid) group_right () ceems_compute_unit_gpu_index_flag" % (metric, labels)
       for record, metric, labels in (
           ("sm_active", "sm_active", ""), ("sm_occupancy", "sm_occupancy", ""), ("gr_engine_active", "graphics_active", ""),
           ("pipe_tensor_active", "tensor_active", '{pipe="any"}'), ("pipe_fp64_active", "fp64_active", ""),
           ("pipe_fp32_active", "fp32_active", ""), ("pipe_fp16_active", "fp16_active", ""), ("dram_active", "dram_active", ""))},
    **{"uuid:ceems_gpu_prof_%s_%s_bytes:rate" % (link, short):
       "rate(ceems_gpu_%s_%s_bytes_total[5s]) * on (hostname, gpuuuid, gpuiid) group_right () ceems_compute_unit_gpu_index_flag"
       % (metric, way) for link, metric in (("nvlink", "link"), ("pcie", "pcie"))
       for short, way in (("tx", "transmit"), ("rx", "receive"))},
    **{"uuid:ceems_gpu_%s:ratio" % record: "100 * %s * on (hostname, gpuuuid, gpuiid) group_right () ceems_compute_unit_gpu_index_flag"
       % metric for record, metric in (("usage", "ceems_gpu_utilization_ratio"),
                                       ("memory_usage", "(ceems_gpu_memory_used_bytes / ceems_gpu_memory_total_bytes)"))},
    "uuid:ceems_gpu_power_watts:pue":
        "ceems_gpu_power_watts * on (hostname, gpuuuid, gpuiid) group_right () ceems_compute_unit_gpu_index_flag",
}


def replace(path, text):
    """Programs never see half of a file."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".new", path)


class Node:
    """A node with four GPUs, CPU meters and a BMC, whose jobs use half a core and a GPU each."""

    def __init__(self, stack, directory, name):
        self.root = os.path.join(directory, name)
        self.slurm = stack.enter_context(SlurmNode(self.root))
        self.name, self.port, self.steps = name, free_port(), 0
        for _ in range(2):
            self.slurm.add_job()
        with open("/proc/stat", encoding="ascii") as f:
            self.stat = f.read()
        self.scenario = os.path.join(self.root, "nvml.scenario")
        self.step()
        env = dict(self.slurm.env(), NODE_NAME=name, CEEMS_FAKE_GPU=self.scenario)
        self.exporter = stack.enter_context(Program(
            [os.path.join(BIN, "ceems_exporter"), "--web.listen-address=127.0.0.1:%d" % self.port, *self.slurm.flags(),
             "--collector.energy.interval=200ms", "--collector.gpu", "--collector.gpu.interval=200ms",
             "--collector.gpu.library-path.nvidia=" + os.path.realpath(NVML)], os.path.join(directory, name + ".log"), env))

    def step(self):
        """A quarter of a second of work."""
        self.steps += 1
        for n in range(2):
            zone = self.slurm.sys + "/class/powercap/intel-rapl:%d" % n
            replace(zone + "/energy_uj", "%d\n" % (1e9 + 25e6 * self.steps))
            replace(zone + ":0/energy_uj", "%d\n" % (1e9 + 5e6 * self.steps))
        for number in self.slurm.jobs:
            used = 125_000 * self.steps
            # In place, because the exporter keeps the file open.
            text = FILES_OF_JOB["cpu.stat"]
            for old, share in (("60491070351", 1), ("60375292848", 0.75), ("115777502", 0.25)):
                text = text.replace(old, "%015d" % (share * used))
            with open("%s/job_%d/cpu.stat" % (self.slurm.scope, number), "r+b", buffering=0) as f:
                f.write(text.encode())
        replace(self.slurm.proc + "/stat", re.sub(
            r"^(cpu\d* +)(\d+)", lambda found: found.group(1) + "%d" % (int(found.group(2)) + 25 * self.steps), self.stat, flags=re.M))
        lines = ["count %d" % GPUS, "xids 0:79 1:13"]
        for n in range(GPUS):
            values = {"uuid": "GPU-0000000%d" % n, "name": "NVIDIA H100 80GB HBM3", "pci": "00000000:1%d:00.0" % n, "minor": n,
                      "power": 200_000 + 50_000 * n, "power_limit": 700_000, "energy": 10 ** 6 + 50_000 * self.steps, "utilization": 60,
                      "memory_utilization": 30, "memory_used": 1 << 33, "memory_total": 80 << 30, "temperature": 60, "clock0": 1755,
                      "reasons": 36, "ecc0": 17, "ecc1": 1, "field82": 72, "field138": 2048 * self.steps, "field139": 1024 * self.steps,
                      "field197": 5_000_000 * self.steps, "field198": 7_000_000 * self.steps, "mig": 0, "gpm": 1}
            values.update(("gpm%d" % key, value) for key, value in GPM.items())
            if n < 2:
                values.update(processes="%d:1073741824" % (5_000_000 + n), process_utilization="%d:50" % (5_000_000 + n))
            lines += ["%d.%s %s" % (n, key, value) for key, value in values.items()]
        replace(self.scenario, "\n".join(lines) + "\n")


def extra_series(instance):
    """What the collectors for eBPF and perf events export, counters of a node that the reference's exporter runs on with the records of
    its rules, and faults for the dashboards of operators to show."""
    seconds = time.monotonic()
    lines = []
    of_node = {"job": "ceems", "instance": instance, "cluster": "hpc1"}  # as if they were on the page of the first node

    def add(metric, value, **labels):
        lines.append("%s{%s} %r" % (metric, ",".join('%s="%s"' % pair for pair in labels.items()), float(value)))
    for uuid in (OWN, FOREIGN):
        unit = {"manager": "slurm", "hostname": "n1", "uuid": uuid, **of_node}
        for number, event in enumerate(PERF, 1):
            add("ceems_perf_%s_total" % event, 1000 * number * seconds, **unit)
        for way in ("read", "write"):
            for number, what in enumerate(("bytes", "requests", "errors"), 1):
                for mountpoint in ("/scratch", "/home"):
                    add("ceems_ebpf_%s_%s_total" % (way, what), 100 * number * seconds, **unit, mountpoint=mountpoint)
        for way in ("ingress", "egress"):
            for what in ("bytes", "packets"):
                add("ceems_ebpf_%s_%s_total" % (way, what), 10 * seconds, **unit, proto="tcp", family="ipv4")
    old = {"job": "ceems", "uuid": OLD, "manager": "slurm", "hostname": "r1", "cgrouphostname": "r1"}
    gpu = {"index": "0", "hindex": "r1/gpu-0", "gpuuuid": "GPU-r1", "gpuiid": ""}
    add("uuid:ceems_host_power_watts:pue", 130, **old)
    add("uuid:ceems_gpu_power_watts:pue", 260, **old, **gpu)
    add("uuid:ceems_host_emissions_g_s:pue", 0.002, **old, provider="owid")
    add("uuid:ceems_gpu_usage:ratio", 40, **old, **gpu)
    for kind, share in (("user", 3), ("system", 1)):
        add("ceems_compute_unit_cpu_%s_seconds_total" % kind, share * seconds, **old)
    add("ceems_compute_unit_cpus", 8, **old)
    add("ceems_compute_unit_memory_used_bytes", 1 << 30, **old)
    add("ceems_compute_unit_memory_total_bytes", 1 << 32, **old)
    add("ceems_compute_unit_gpu_index_flag", 1, **old, **gpu)
    for uuid in (TASK, "61"):
        add("ceems_compute_unit_memory_used_bytes", 66 << 20, **{**old, "uuid": uuid})
    add("ceems_energy_source_info", 1, job="ceems", hostname="n9", domain="node", source="model", method="modelled")
    add("ceems_energy_source_age_seconds", 500, hostname="n9", source="ipmi_dcmi")
    add("ceems_energy_rejected_joules_total", 100 * seconds, hostname="n1", source="rapl:9")
    add("ceems_exporter_build_info", 1, job="ceems", version="0.0.1", hostname="n9")
    # A node with faults: of a GPU, a link and a file system, and judged sick.
    sick = {**of_node, "hostname": "n1"}
    of_gpu = {**sick, "index": "0", "gpuuuid": "GPU-n1"}
    add("ceems_gpu_clock_reason", 1, **of_gpu, reason="hardware_thermal")
    add("ceems_gpu_xid_errors_total", 2 * seconds, **of_gpu, xid="79")
    add("ceems_gpu_ecc_errors_total", 3 * seconds, **of_gpu, type="uncorrected")
    add("ceems_node_info", 1, **sick, cpu_model="EPYC", gpu_model="H100")
    for error in ("link_downed", "link_error_recovery", "symbol_error"):
        add("ceems_infiniband_%s_total" % error, seconds, **of_node, device="mlx5_0", port="1")
    add("ceems_infiniband_state_id", 2, **of_node, device="mlx5_0", port="1")
    add("ceems_lustre_job_operations_total", 100 * seconds, **of_node, filesystem="scratch", uuid=OWN, operation="open")
    add("ceems_compute_unit_pressure_seconds_total", seconds / 2, **sick, uuid=OWN, resource="io", kind="some")
    add("ceems_node_health_score", 40, cluster="slurm-0", hostname="n1")
    add("ceems_node_health_effect", 0.06, cluster="slurm-0", hostname="n1")
    add("ceems_web_certificate_not_after_timestamp_seconds", time.time() + 30 * 86400)
    return "\n".join(lines) + "\n"


def prometheus_config(directory, nodes, extra, api, lb, profiles, own, rules):
    listed = [write(os.path.join(directory, "rules.yml"), json.dumps({"groups": [{
        "name": "test", "interval": "%ds" % SCRAPE, "rules": [
            {"record": "ceems:country", "expr": "vector(1)", "labels": {"country_code": "FR"}},
            *({"record": record, "expr": expr} for record, expr in rules.items())]}]}))]
    if os.path.exists(COMPAT):
        with open(COMPAT, encoding="utf-8") as f:
            text = f.read()
        # A scrape a second, and not one a minute: so are the intervals.
        text = re.sub(r"interval: \w+", "interval: %ds" % SCRAPE, text)
        listed.append(write(os.path.join(directory, "compat.yml"), re.sub(r"\[\d+[smh]\]", "[%ds]" % (5 * SCRAPE), text)))
    jobs = {"ceems": ["127.0.0.1:%d" % node.port for node in nodes] + ["127.0.0.1:1"], "extra": [extra], "ceems_api_server": [api],
            "ceems_lb": ["127.0.0.1:%d" % lb, "127.0.0.1:%d" % profiles], "prometheus": ["127.0.0.1:%d" % own]}
    return write(os.path.join(directory, "prometheus.yml"),
                 "global: {scrape_interval: %ds, scrape_timeout: %ds, evaluation_interval: %ds}\nrule_files: %s\nscrape_configs:\n%s" % (
                     SCRAPE, SCRAPE, SCRAPE, json.dumps(listed), "".join(
                         "  - job_name: %s\n    honor_labels: true\n    static_configs: [{targets: %s%s}]\n" % (
                             job, json.dumps(targets), ", labels: {cluster: hpc1}" if job == "ceems" else "")
                         for job, targets in jobs.items())))


def start_lb(stack, directory, name, data, prometheus, pyroscope, port, profiles, usual=True):
    """Without `usual` the metric of meters is not shared, and `instance` is hidden from users."""
    backend = "    - id: %s\n      tsdb: [{web: {url: '%s'}, filter_labels: [%s]}]\n      pyroscope: [{web: {url: '%s'}}]\n"
    hidden = "" if usual else "instance"
    access = "  access: {shared_metrics: [ceems_emissions_gCo2_kWh, ceems_energy_source_info]}\n" if usual else ""
    backends = "".join(backend % (cluster, prometheus, hidden, pyroscope) for cluster in (CLUSTER, ARRAYS))
    config = write(os.path.join(directory, name + ".yml"), "ceems_lb:\n  backends:\n%s%sceems_api_server:\n  data: {path: %s}\n" % (
        backends, access, data), 0o600)
    program = stack.enter_context(Program(
        [os.path.join(BIN, "ceems_lb"), "--config.file=" + config, "--web.listen-address=127.0.0.1:%d" % port,
         "--web.listen-address=127.0.0.1:%d" % profiles, *AS_ROOT], os.path.join(directory, name + ".log")))
    program.wait_ready("http://127.0.0.1:%d/-/healthy" % port)
    return program


class Site:
    """With `history`, the database has jobs of the last DAYS days, which takes half a minute more."""

    def __init__(self, stack, directory, history=False):
        need_programs("prometheus", "promtool")
        if not os.path.exists(NVML):
            skip("the fake GPU libraries are not built")
        self.directory, self.started, self.history = directory, time.time(), history
        self.nodes = [Node(stack, directory, name) for name in ("n1", "n2")]
        self.running = threading.Event()
        self.running.set()
        worker = threading.Thread(target=self.work, daemon=True)
        worker.start()
        stack.callback(lambda: (self.running.clear(), worker.join()))
        extra = stack.enter_context(FakeHttp(lambda *_: (200, "text/plain", extra_series("127.0.0.1:%d" % self.nodes[0].port).encode())))
        self.pyroscope = stack.enter_context(Backend())
        self.port, self.profiles, own = free_port(), free_port(), free_port()
        self.prometheus = "http://127.0.0.1:%d" % own
        self.make_jobs()
        self.data, api = os.path.join(directory, "data"), free_port()
        self.api = "http://127.0.0.1:%d" % api
        self.compat = os.path.exists(COMPAT)
        config = prometheus_config(directory, self.nodes, extra.url[7:], self.api[7:], self.port, self.profiles, own,
                                   {} if self.compat else RULES)
        self.make_past()
        # First, because the API server asks it for the scrape interval when it starts.
        stack.enter_context(Program(
            ["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(directory, "tsdb"),
             "--storage.tsdb.retention.time=1y", "--web.listen-address=127.0.0.1:%d" % own, "--log.level=warn"],
            os.path.join(directory, "prometheus.log"))).wait_ready(self.prometheus + "/-/ready")
        config = fake_slurm.api_config(directory, self.started - (DAYS * 86400 if history else 3600), self.data, tsdb=self.prometheus,
                                       max_interval="1w" if history else "1h").replace("time_zone: UTC", "time_zone: Local")
        units = write(directory + "/units.jsonl", "".join(json.dumps({
            "unit": unit, "user": user, "project": project, "start": int(self.started) - 60, "cpus": 2, "memory_mib": 1024}) + "\n"
            for unit, user, project in ((TASK, "alice", "pa"), ("61", "bob", "pb"))))
        config = config.replace("updaters:\n  - id", "  - {id: %s, manager: exec, extra_config: {file: %s}}\nupdaters:\n  - id" % (
            ARRAYS, units))
        write(directory + "/api.yml", config.replace("  admin:\n", "    retention_period: 100d\n  admin:\n")
              + "    extra_config: {country_code: FR}\n")
        stack.enter_context(Program(
            [os.path.join(BIN, "ceems_api_server"), "--config.file=%s/api.yml" % directory, "--web.listen-address=127.0.0.1:%d" % api,
             *AS_ROOT], os.path.join(directory, "api.log"))).wait_ready(self.api + "/health")
        for node in self.nodes:
            node.exporter.wait_ready("http://127.0.0.1:%d/health" % node.port)
        wait_until("alice's jobs are in the database", lambda: len(self.units("alice")) == 3,
                   600 if history else 60)
        self.lb = start_lb(stack, directory, "lb", self.data, self.prometheus, self.pyroscope.url, self.port, self.profiles)
        wait_until("the database has energy of the running job", self.has_energy, 90, 0.5)

    def make_jobs(self):
        base = {"account": "pa", "user": "alice", "cpus": 2, "gpus": 2, "end": 0, "start": int(self.started) - 60}
        fake_slurm.install(self.directory, [
            {**base, "id": OWN, "name": "mesh"}, {**base, "id": FOREIGN, "name": "secret", "user": "bob", "account": "pb"},
            {**base, "id": OLD, "name": "old", "start": int(self.started) - 1800, "end": int(self.started) - 1200},
            *self.past_jobs(),
            {**base, "id": "999001", "name": "test", "user": "carol", "start": int(self.started) - 1800,
             "end": int(self.started) - 900}])

    def past_jobs(self):
        """With history: jobs of alice's in this month and in the two before it."""
        return [{"account": "pa", "user": "alice", "cpus": 2, "gpus": 2, "id": "%d" % (900000 + days), "name": "past",
                 "start": int(self.started) - days * 86400, "end": int(self.started) - days * 86400 + 3600}
                for days in range(3, DAYS, 5)] if self.history else []

    def make_past(self):
        """The emission factor of the last hour: the updater reads its value at every fifth minute, which a short test may not reach."""
        labels = 'provider="owid",provider_name="OWID",country="France",country_code="FR",instance="past",job="ceems"'
        lines = ["# TYPE ceems_emissions_gCo2_kWh gauge"] + ["ceems_emissions_gCo2_kWh{%s} 44 %d" % (labels, moment) for moment in range(
            int(self.started) - 3600, int(self.started), 15)]
        lines.append("# TYPE ceems_compute_unit_energy_joules counter")
        lines += ['ceems_compute_unit_energy_joules_total{manager="slurm",hostname="n1",cgrouphostname="",uuid="%s",domain="%s",'
                  'instance="past",job="ceems"} %d %d' % (job["id"], domain, watts * (moment - job["start"]), moment)
                  for domain, watts in (("node", 400), ("gpu", 300)) for job in self.past_jobs()
                  for moment in range(job["start"], job["end"] + 1, 300)]
        # The records of a job that ran on a node of the reference's: 390 W for ten minutes.
        for record, watts in (("uuid:ceems_host_power_watts:pue", 130), ("uuid:ceems_gpu_power_watts:pue", 260)):
            lines.append("# TYPE %s gauge" % record)
            lines += ['%s{uuid="%s",manager="slurm",hostname="r1",instance="past",job="ceems"} %d %d' % (record, OLD, watts, moment)
                      for moment in range(int(self.started) - 1800, int(self.started) - 1199, 15)]
        path = write(self.directory + "/past.txt", "\n".join(lines + ["# EOF", ""]))
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", path, self.directory + "/tsdb"], check=True,
                       stdout=subprocess.DEVNULL)

    def work(self):
        while self.running.is_set():
            time.sleep(0.25)
            for node in self.nodes:
                node.step()

    def units(self, user):
        return get(self.api + "/api/v1/units?running=1&from=%d&to=%d" % (self.started - 7200, time.time() + 10),
                   {"X-Grafana-User": user}).json["data"]

    def has_energy(self):
        found = [unit for unit in self.units("alice") if unit["uuid"] == OWN]
        return found and all(found[0].get(metric, {}).get(name, 0) > 0 for metric, name in (
            ("avg_gpu_usage", "global"), ("avg_gpu_mem_usage", "global"), ("total_cpu_energy_usage_kwh", "total"),
            ("total_gpu_energy_usage_kwh", "total"), ("total_cpu_emissions_gms", "owid_total")))
