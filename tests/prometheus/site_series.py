"""A made-up site for the tests of the rules, small enough to work its numbers out by hand.

All series grow or stay the same, so rates are exact. `n1` has GPUs: whole ones, one that is split, one that is shared. `n2` has none.
`n3` was not scraped for three minutes, and its GPUs draw nothing. `old` runs the exporter of CEEMS, which counts no energy."""

from promtool import labels_text

STEP = 30  # seconds between scrapes
SAMPLES = 60


def node(name, job="ceems"):
    return {"cluster": "c1", "job": job, "instance": name + ":9010", "hostname": name}


class Site:
    def __init__(self):
        self.series = []  # as promtool wants them

    def add(self, metric, labels, values):
        self.series.append({"series": metric + labels_text(labels), "values": values})

    def gauge(self, metric, labels, value):
        self.add(metric, labels, "%rx%d" % (float(value), SAMPLES))

    def counter(self, metric, labels, rate, gap=None):
        """`gap`: (first, number) of samples that are missing."""
        step = rate * STEP
        if gap is None:
            self.add(metric, labels, "%r+%rx%d" % (1000.0, float(step), SAMPLES))
            return
        first, missing = gap
        self.add(metric, labels, "%r+%rx%d _x%d %r+%rx%d" % (
            1000.0, float(step), first - 1, missing, 1000.0 + (first + missing) * step, float(step), SAMPLES - first - missing))

    def unit(self, host, uuid, domains, cpu=0.0, cpus=0, used=0, total=0, gap=None):
        labels = dict(host, uuid=uuid, manager="slurm", cgrouphostname=host["hostname"])
        for domain, watts in domains.items():
            self.counter("ceems_compute_unit_energy_joules_total", dict(labels, domain=domain), watts, gap)
        if cpus:
            self.counter("ceems_compute_unit_cpu_user_seconds_total", labels, 0.75 * cpu, gap)
            self.counter("ceems_compute_unit_cpu_system_seconds_total", labels, 0.25 * cpu, gap)
            self.gauge("ceems_compute_unit_cpus", labels, cpus)
            self.gauge("ceems_compute_unit_memory_used_bytes", labels, used)
            self.gauge("ceems_compute_unit_memory_total_bytes", labels, total)

    def flag(self, host, uuid, share, gpu, instance="", index=None, multiprocessors=0):
        labels = dict(host, uuid=uuid, manager="slurm", cgrouphostname=host["hostname"], index=index or gpu[-1], gpuuuid=gpu,
                      hindex="%s/gpu-%s" % (host["hostname"], index or gpu[-1]))
        if instance:
            labels["gpuiid"] = instance
        self.gauge("ceems_compute_unit_gpu_index_flag", labels, share)
        if multiprocessors:
            self.gauge("ceems_compute_unit_gpu_sm_count", labels, multiprocessors)

    def gpu(self, host, gpu, watts=None, used=None, memory=None, instance="", index=None, vendor="nvidia", **values):
        labels = dict(host, vendor=vendor, gpuuuid=gpu)
        if index != "":
            labels["index"] = index or gpu[-1]
        if instance:
            labels["gpuiid"] = instance
        for metric, value in (("power_watts", watts), ("utilization_ratio", used)):
            if value is not None:
                self.gauge("ceems_gpu_" + metric, labels, value)
        if memory:
            self.gauge("ceems_gpu_memory_used_bytes", labels, memory[0])
            self.gauge("ceems_gpu_memory_total_bytes", labels, memory[1])
        for metric, value in values.items():
            more = {"pipe": "any"} if metric.startswith("tensor") else {}
            if metric.endswith("_total"):
                self.counter("ceems_gpu_" + metric, dict(labels, **more), value)
            else:
                self.gauge("ceems_gpu_" + metric, dict(labels, **more), value)

    def cpus(self, host, count, busy, memory_total, memory_available):
        for mode, rate in (("user", 0.75 * busy), ("system", 0.25 * busy), ("idle", count - busy - 1), ("iowait", 1)):
            self.counter("ceems_cpu_seconds_total", dict(host, mode=mode), rate)
        self.gauge("ceems_cpu_count", host, count)
        self.gauge("ceems_cpu_per_core_count", host, 2)
        self.gauge("ceems_meminfo_MemTotal_bytes", host, memory_total)
        self.gauge("ceems_meminfo_MemAvailable_bytes", host, memory_available)

    def of_node(self, host, domains, system, unallocated, ended):
        for domain, (source, watts) in domains.items():
            self.counter("ceems_node_energy_joules_total", dict(host, domain=domain, source=source), watts)
        for name, watts in (("system", system), ("unallocated", unallocated), ("ended_units", ended)):
            self.counter("ceems_%s_energy_joules_total" % name, dict(host, domain="node"), watts)


def gpu_node(site):
    n1 = node("n1")
    site.cpus(n1, 64, 16, 256e9, 192e9)
    site.unit(n1, "a", {"node": 500, "gpu": 380, "package": 80, "dram": 10, "other": 30}, cpu=8, cpus=16, used=16e9, total=64e9)
    site.unit(n1, "b", {"node": 190, "gpu": 100}, cpu=1, cpus=4, used=8e9, total=16e9)
    site.unit(n1, "c", {"node": 200, "gpu": 150})
    site.unit(n1, "d", {"node": 60, "gpu": 0})  # holds no GPU
    site.unit(n1, "e", {"node": 25, "gpu": 20})  # computes on GPUs that others hold
    # Units have 975 of 1200 W.
    site.of_node(n1, {"node": ("ipmi", 1200), "gpu": ("GPU-0", 660)}, system=100, unallocated=120, ended=5)
    site.flag(n1, "a", 1, "GPU-0", multiprocessors=108)
    site.flag(n1, "a", 1, "GPU-1", multiprocessors=108)
    site.flag(n1, "b", 1, "GPU-2", "1", index="2.1", multiprocessors=28)
    site.flag(n1, "c", 1, "GPU-2", "2", index="2.2", multiprocessors=56)
    site.flag(n1, "b", 0.5, "GPU-3")
    site.flag(n1, "c", 0.5, "GPU-3")
    ratios = {"graphics_active_ratio": 0.9, "sm_active_ratio": 0.8, "sm_occupancy_ratio": 0.4, "tensor_active_ratio": 0.3,
              "fp64_active_ratio": 0.2, "fp32_active_ratio": 0.1, "fp16_active_ratio": 0.05, "dram_active_ratio": 0.6}
    site.gpu(n1, "GPU-0", 300, 0.95, (30e9, 40e9), link_transmit_bytes_total=4e9, link_receive_bytes_total=3e9,
             pcie_transmit_bytes_per_second=2e9, pcie_receive_bytes_per_second=1e9, **ratios)
    site.gpu(n1, "GPU-1", 100, 0.25, (10e9, 40e9), vendor="amd")
    site.gpu(n1, "GPU-2", 200, index="")  # split
    site.gpu(n1, "GPU-2", None, 0.5, (5e9, 10e9), instance="1", index="2.1", sm_active_ratio=0.5)
    site.gpu(n1, "GPU-2", None, 0.75, (5e9, 20e9), instance="2", index="2.2")
    site.gpu(n1, "GPU-3", 60, 0.8, (4e9, 40e9))
    # NVIDIA's exporter, as it is and relabelled, knows what ours does not.
    for labels, value in (({"UUID": "GPU-0"}, 0.1), ({"UUID": "GPU-3"}, 0.6), ({"UUID": "GPU-2", "GPU_I_ID": "2"}, 0.7),
                          ({"gpuuuid": "GPU-1"}, 0.35)):
        site.gauge("DCGM_FI_PROF_SM_ACTIVE", dict(labels, job="dcgm", instance="n1:9400"), value)
    site.gauge("DCGM_FI_PROF_PCIE_TX_BYTES", {"UUID": "GPU-3", "job": "dcgm", "instance": "n1:9400"}, 7e8)
    # AMD's exporter numbers GPUs by host.
    for name, value in (("tensor_active_percent", 12), ("occupancy_percent", 34), ("total_16_ops", 1e12), ("total_32_ops", 2e12),
                        ("total_64_ops", 3e12), ("write_size", 5e9), ("fetch_size", 6e9)):
        site.gauge("gpu_prof_" + name, {"gpu_id": "1", "gpu_partition_id": "0", "job": "amd", "instance": "n1:5000"}, value)
        site.gauge("gpu_prof_" + name, {"gpu_id": "1", "job": "amd", "instance": "n9:5000"}, 99)


def other_nodes(site):
    n2 = node("n2")
    site.cpus(n2, 32, 8, 128e9, 96e9)
    site.unit(n2, "f", {"node": 100, "package": 70, "dram": 10, "other": 20}, cpu=6, cpus=8, used=16e9, total=32e9)
    site.of_node(n2, {"node": ("sum", 160), "package": ("rapl-package-0", 140)}, system=20, unallocated=40, ended=0)
    for metric, watts in (("ceems_ipmi_dcmi_current_watts", 210), ("ceems_ipmi_dcmi_power_current_watts", 210),
                          ("ceems_redfish_current_watts", 220), ("ceems_redfish_power_current_watts", 220),
                          ("ceems_cray_pm_counters_power_watts", 230)):
        site.gauge(metric, n2, watts)
    site.counter("ceems_rapl_package_joules_total", n2, 140)
    site.counter("ceems_rapl_dram_joules_total", n2, 15)
    labels = dict(n2, uuid="f", manager="slurm", cgrouphostname="n2")
    for i, direction in enumerate(("read", "write")):
        for mount in ("/home", "/scratch"):
            for what, rate in (("bytes", 1e6), ("requests", 100), ("errors", 2)):
                site.counter("ceems_ebpf_%s_%s_total" % (direction, what), dict(labels, mountpoint=mount), rate * (i + 1))
    for i, direction in enumerate(("ingress", "egress")):
        for what, rate in (("bytes", 5e5), ("packets", 400)):
            site.counter("ceems_ebpf_%s_%s_total" % (direction, what), dict(labels, family="ipv4", proto="tcp"), rate * (i + 1))

    n3 = node("n3")
    gap = (20, 6)
    site.unit(n3, "g", {"node": 90, "gpu": 40}, cpu=2, cpus=4, used=1e9, total=4e9, gap=gap)
    site.counter("ceems_node_energy_joules_total", dict(n3, domain="node", source="ipmi"), 110, gap)
    site.counter("ceems_node_energy_joules_total", dict(n3, domain="gpu", source="GPU-8"), 40, gap)
    for gpu in ("GPU-8", "GPU-9"):
        site.flag(n3, "g", 1, gpu)
        site.gpu(n3, gpu, 0, 0)

    old = node("old", "old")
    site.cpus(old, 32, 8, 128e9, 96e9)
    site.unit(old, "z", {}, cpu=6, cpus=8, used=16e9, total=32e9)
    site.gauge("ceems_ipmi_dcmi_current_watts", old, 300)
    site.flag(old, "z", 1, "GPU-7")
    site.counter("ceems_ebpf_read_bytes_total", dict(old, uuid="z", manager="slurm", cgrouphostname="old", mountpoint="/home"), 1)
    # What ceems_tool's rules write for it.
    for record in ("uuid:ceems_host_power_watts:pue", "uuid:ceems_gpu_power_watts:pue"):
        site.gauge(record, dict(old, uuid="z", manager="slurm", cgrouphostname="old"), 77)
    site.gauge("job:ceems_host_power_watts:pue", {"job": "old"}, 77)
    site.gauge("uuid:ceems_gpu_sm_active:ratio", dict(old, uuid="z", gpuuuid="GPU-7"), 77)


def factors(site):
    """Two exporters have the same factors."""
    for host in ("n1", "n2"):
        exporter = {"cluster": "c1", "job": "ceems", "instance": host + ":9010"}
        for provider, code, country, value in (("rte", "FR", "France", 36), ("owid", "FR", "France", 44), ("owid", "DE", "Germany", 300),
                                               ("emaps", "FR", "France", 40), ("wt", "FR", "France", 48), ("global", "ZZ", "World", 445)):
            site.gauge("ceems_emissions_gCo2_kWh", dict(exporter, provider=provider, provider_name=provider.upper(), country_code=code,
                                                        country=country), value)


def series():
    site = Site()
    gpu_node(site)
    other_nodes(site)
    factors(site)
    return site.series
