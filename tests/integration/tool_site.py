"""Series of a site with every kind of hardware for the tests of ceems_tool, and what the rules must make of them.

Each job has two units on its first node: a uses 8 of the 10 busy CPUs and three quarters of the used memory, b the rest. The numbers
that are expected were worked out by hand from these shares."""

STEP = 15  # seconds between samples; the rules look at four of them
PUE = 1.25


class Job:
    """The series of one job, as (metric, labels, first value, growth per second)."""

    def __init__(self, name):
        self.name = name
        self.series = []

    def add(self, metric, value, instance, rate=0.0, **labels):
        self.series.append((metric, dict(labels, job=self.name, instance=instance), value, rate))

    def node(self, host, units, busy, memory):
        """A node with units {uuid: (CPUs in use, bytes in use)} and its busy CPUs and used memory."""
        instance = host + ":9010"
        for uuid, (cpu, used) in units.items():
            unit = {"uuid": uuid, "manager": "slurm", "hostname": host, "cgrouphostname": host}
            self.add("ceems_compute_unit_cpu_user_seconds_total", 0, instance, 0.75 * cpu, **unit)
            self.add("ceems_compute_unit_cpu_system_seconds_total", 0, instance, 0.25 * cpu, **unit)
            self.add("ceems_compute_unit_cpus", 2 * cpu, instance, **unit)
            self.add("ceems_compute_unit_memory_used_bytes", used, instance, **unit)
            self.add("ceems_compute_unit_memory_total_bytes", 4 * used, instance, **unit)
        self.add("ceems_compute_units", len(units), instance, manager="slurm", hostname=host)
        for mode, rate in (("user", 0.8 * busy), ("system", 0.2 * busy), ("idle", 22), ("iowait", 3), ("steal", 1)):
            self.add("ceems_cpu_seconds_total", 0, instance, rate, hostname=host, mode=mode)
        self.add("ceems_cpu_count", 40, instance, hostname=host)
        self.add("ceems_cpu_per_core_count", 2, instance, hostname=host)
        self.add("ceems_meminfo_MemTotal_bytes", 2 * memory, instance, hostname=host)
        self.add("ceems_meminfo_MemAvailable_bytes", memory, instance, hostname=host)

    def pair(self, host):
        self.node(host, {"a": (8, 48e9), "b": (2, 16e9)}, 10, 64e9)

    def alone(self, host):
        self.node(host, {"c": (5, 32e9)}, 5, 32e9)

    def rapl(self, host, packages, dram):
        for i, watts in enumerate(packages):
            self.add("ceems_rapl_package_joules_total", 1000, host + ":9010", watts, hostname=host, index=str(i),
                     path="intel-rapl:%d" % i)
        for i, watts in enumerate(dram):
            self.add("ceems_rapl_dram_joules_total", 1000, host + ":9010", watts, hostname=host, index=str(i),
                     path="intel-rapl:%d:0" % i)

    def flag(self, host, uuid, value, **device):
        self.add("ceems_compute_unit_gpu_index_flag", value, host + ":9010", uuid=uuid, manager="slurm", hostname=host,
                 cgrouphostname=host, **device)

    def multiprocessors(self, host, uuid, value, **device):
        self.add("ceems_compute_unit_gpu_sm_count", value, host + ":9010", uuid=uuid, manager="slurm", hostname=host,
                 cgrouphostname=host, **device)


def host_jobs():
    rapl = Job("rapl")
    rapl.pair("r1")
    rapl.rapl("r1", [100, 100], [20, 20])
    rapl.alone("r2")  # without DRAM
    rapl.rapl("r2", [100], [])

    ipmi = Job("ipmi")
    ipmi.pair("i1")
    ipmi.add("ceems_ipmi_dcmi_current_watts", 400, "i1:9010", hostname="i1")

    both = Job("ipmi+rapl")  # a name that is not safe as the name of a file
    both.pair("b1")
    both.rapl("b1", [100, 100], [25, 25])
    both.add("ceems_ipmi_dcmi_current_watts", 400, "b1:9010", hostname="b1")
    both.alone("b2")  # without RAPL
    both.add("ceems_ipmi_dcmi_current_watts", 200, "b2:9010", hostname="b2")

    later = Job("later")  # exporters of 0.11, and one that was not replaced yet
    later.pair("l1")
    later.add("ceems_ipmi_dcmi_power_current_watts", 400, "l1:9010", hostname="l1")
    later.add("ceems_ipmi_dcmi_current_watts", 7, "l1:9010", hostname="l1")
    later.alone("l2")
    later.add("ceems_ipmi_dcmi_current_watts", 200, "l2:9010", hostname="l2")
    for direction in ("read", "write"):
        later.add("ceems_ebpf_%s_bytes_total" % direction, 0, "l1:9010", 1e6, uuid="a", manager="slurm", hostname="l1",
                  cgrouphostname="l1", mountpoint="/scratch")
    later.add("ceems_ebpf_ingress_packets_total", 0, "l1:9010", 30, uuid="a", manager="slurm", hostname="l1",
              cgrouphostname="l1", family="ipv4", proto="tcp")

    redfish = Job("redfish")
    redfish.pair("f1")
    redfish.add("ceems_redfish_current_watts", 400, "f1:9010", hostname="f1", chassis="System")
    redfish.add("ceems_redfish_current_watts", 50, "f1:9010", hostname="f1", chassis="Fans")

    cray = Job("cray")
    cray.pair("c1")
    for domain, watts in (("node", 600), ("cpu", 200), ("memory", 60), ("accel0", 100), ("accel1", 100)):
        cray.add("ceems_cray_pm_counters_power_watts", watts, "c1:9010", hostname="c1", domain=domain)
    cray.alone("c2")  # without accelerators
    for domain, watts in (("node", 300), ("cpu", 200), ("memory", 60)):
        cray.add("ceems_cray_pm_counters_power_watts", watts, "c2:9010", hostname="c2", domain=domain)

    hwmon = Job("hwmon")
    hwmon.pair("h1")
    # The first three sensors belong to two devices of one kind, which differ in `index` only; 0.10 and 0.11 have no such label.
    for sensor, watts, more in (("power1", 100, {"index": "1"}), ("power1", 50, {"index": "2"}), ("power2", 200, {"index": "1"}),
                                ("power3", 50, {})):
        hwmon.add("ceems_hwmon_power_current_watts", watts, "h1:9010", hostname="h1", sensor=sensor, chip="acpi",
                  chip_name="power_meter", **more)
    hwmon.add("ceems_hwmon_power_current_watts", 33, "h1:9010", hostname="h1", sensor="power1", chip="nvme", chip_name="nvme")

    nothing = Job("nothing")
    nothing.pair("z1")
    counted = Job("counted")
    counted.pair("e1")
    counted.rapl("e1", [100], [20])
    counts(counted, "e1")
    counted.flag("e1", "a", 1, gpuuuid="GPU-E", index="0", hindex="e1/gpu-0")
    counted.add("ceems_gpu_power_watts", 250, "e1:9010", hostname="e1", gpuuuid="GPU-E", index="0", vendor="nvidia")
    counted.add("ceems_gpu_utilization_ratio", 0.5, "e1:9010", hostname="e1", gpuuuid="GPU-E", index="0", vendor="nvidia")
    counted.add("ceems_ebpf_read_bytes_total", 0, "e1:9010", 1e6, uuid="a", manager="slurm", hostname="e1", cgrouphostname="e1",
                mountpoint="/scratch")
    mixed = Job("mixed")  # one of two nodes has the new exporter
    mixed.pair("x1")
    counts(mixed, "x1")
    mixed.pair("x2")
    for host in ("x1", "x2"):
        mixed.add("ceems_ipmi_dcmi_current_watts", 400, host + ":9010", hostname=host)
    return [rapl, ipmi, both, later, redfish, cray, hwmon, nothing, counted, mixed]


def counts(job, host):
    """The exporter on the host counts energy itself: 150 W of unit a, 100 of them of GPUs, and 200 of the node."""
    instance = host + ":9010"
    unit = {"uuid": "a", "manager": "slurm", "hostname": host, "cgrouphostname": host}
    for domain, watts in (("node", 150), ("gpu", 100)):
        job.add("ceems_compute_unit_energy_joules_total", 0, instance, watts, domain=domain, **unit)
    for domain, watts in (("node", 200), ("gpu", 120)):
        job.add("ceems_node_energy_joules_total", 0, instance, watts, hostname=host, domain=domain, source="meter")


def gpu_jobs():
    nvidia = Job("gpu")
    nvidia.pair("g1")
    # 680 W of 1480 W are those of the GPUs.
    nvidia.add("ceems_ipmi_dcmi_current_watts", 1480, "g1:9010", hostname="g1")
    nvidia.alone("g2")  # a node of the same job that has no GPU
    nvidia.add("ceems_ipmi_dcmi_current_watts", 160, "g2:9010", hostname="g2")
    dcgm = Job("dcgm")

    def device(number, watts, active=None, instance="", occupancy=0.4, util=None, power="DCGM_FI_DEV_POWER_USAGE_INSTANT"):
        labels = {"gpu": str(number), "UUID": "GPU-%d" % number, "modelName": "NVIDIA A100", "Hostname": "g1"}
        if instance:
            labels["GPU_I_ID"] = instance
        dcgm.add(power, watts, "g1:9400", **labels)
        dcgm.add("DCGM_FI_DEV_FB_USED", 10000, "g1:9400", **labels)
        dcgm.add("DCGM_FI_DEV_FB_FREE", 30000, "g1:9400", **labels)
        if active is not None:
            dcgm.add("DCGM_FI_PROF_SM_ACTIVE", active, "g1:9400", **labels)
            dcgm.add("DCGM_FI_PROF_SM_OCCUPANCY", occupancy, "g1:9400", **labels)
            dcgm.add("DCGM_FI_PROF_GR_ENGINE_ACTIVE", active, "g1:9400", **labels)
            dcgm.add("DCGM_FI_PROF_PCIE_TX_BYTES", 5e6, "g1:9400", **labels)
        if util is not None:
            dcgm.add("DCGM_FI_DEV_GPU_UTIL", util, "g1:9400", **labels)

    device(0, 300, active=0.9, util=95)
    device(1, 200, active=0.5, instance="1")                 # MIG: the power of the GPU on each row
    device(1, 200, active=0.5, instance="2", occupancy=0.2)
    device(2, 100, active=0, util=0)                         # idle
    device(3, 80, util=40, power="DCGM_FI_DEV_POWER_USAGE")  # no profiling, and no instant power
    # Its exporter counts the energy of GPUs itself.
    dcgm.add("DCGM_FI_DEV_POWER_USAGE_INSTANT", 250, "e1:9400", gpu="0", UUID="GPU-E", modelName="NVIDIA A100", Hostname="e1")
    of = {"gpuuuid": "GPU-0", "index": "0", "hindex": "g1/gpu-0"}
    nvidia.flag("g1", "a", 1, **of)
    nvidia.multiprocessors("g1", "a", 108, **of)
    for uuid, gi, sms in (("a", "1", 42), ("b", "2", 56)):
        of = {"gpuuuid": "GPU-1", "gpuiid": gi, "index": gi, "hindex": "g1/gpu-" + gi}
        nvidia.flag("g1", uuid, 1, **of)
        nvidia.multiprocessors("g1", uuid, sms, **of)
    for uuid in ("a", "b"):                                  # two units share it
        of = {"gpuuuid": "GPU-2", "index": "3", "hindex": "g1/gpu-3"}
        nvidia.flag("g1", uuid, 0.5, **of)
        nvidia.multiprocessors("g1", uuid, 108, **of)
    nvidia.flag("g1", "a", 1, gpuuuid="GPU-3", index="4", hindex="g1/gpu-4")  # a model of unknown size

    jobs = [nvidia, dcgm]
    for name, metric, scale in (("smi", "amd_gpu_power", 1e6), ("dme", "gpu_power_usage", 1)):
        hosts = Job("amd-" + name)
        devices = Job(name)
        for host, uuid, watts in (("m1", "x", 200), ("m2", "y", 300)):
            host = name + host
            hosts.node(host, {uuid: (5, 32e9)}, 5, 32e9)
            hosts.rapl(host, [100], [20])
            hosts.flag(host, uuid, 1, gpuuuid="AMD-" + host, index="0", hindex=host + "/gpu-0")
            hosts.multiprocessors(host, uuid, 228, gpuuuid="AMD-" + host, index="0", hindex=host + "/gpu-0")
            instance = host + ":9500"
            if name == "smi":
                devices.add(metric, watts * scale, instance, gpu_power="0")
                devices.add("amd_gpu_use_percent", watts / 4, instance, gpu_use_percent="0")
                devices.add("amd_gpu_memory_use_percent", 20, instance, gpu_memory_use_percent="0")
            else:
                labels = {"gpu_id": "0", "gpu_partition_id": "0"}
                devices.add(metric, watts, instance, **labels)
                devices.add("gpu_gfx_activity", watts / 4, instance, **labels)
                devices.add("gpu_used_vram", 16, instance, **labels)
                devices.add("gpu_total_vram", 64, instance, **labels)
                for kind, used in (("gtt", 8), ("visible_vram", 32)):
                    devices.add("gpu_used_" + kind, used, instance, **labels)
                    devices.add("gpu_total_" + kind, 64, instance, **labels)
                devices.add("gpu_prof_occupancy_percent", 50, instance, **labels)
        if name == "dme":  # two partitions of one GPU, which have an index each; one reports the power
            hosts.node("dmep", {"p": (5, 32e9), "q": (5, 32e9)}, 10, 64e9)
            hosts.rapl("dmep", [100], [20])
            for part, uuid in (("0", "p"), ("1", "q")):
                of = {"gpuuuid": "692420", "gpuiid": part, "index": part, "hindex": "dmep/gpu-" + part}
                hosts.flag("dmep", uuid, 1, **of)
                hosts.multiprocessors("dmep", uuid, 152, **of)
                labels = {"gpu_id": part, "gpu_partition_id": part, "serial_number": "692420"}
                devices.add("gpu_power_usage", 600 if part == "0" else 0, "dmep:9500", **labels)
                devices.add("gpu_gfx_activity", 80 if part == "0" else 40, "dmep:9500", **labels)
                devices.add("gpu_used_vram", 8, "dmep:9500", **labels)
                devices.add("gpu_total_vram", 32, "dmep:9500", **labels)
                devices.add("gpu_prof_occupancy_percent", 50, "dmep:9500", **labels)
        jobs += [hosts, devices]
    return jobs


def emission_job():
    """Two exporters that export the same factors."""
    job = Job("emissions")
    for instance in ("s1:9010", "s2:9010"):
        for provider, factor in (("owid", 36), ("rte", 72)):
            job.add("ceems_emissions_gCo2_kWh", factor, instance, hostname=instance[:2], country="France", country_code="FR",
                    provider=provider, provider_name=provider.upper())
        job.add("ceems_emissions_gCo2_kWh", 360, instance, hostname=instance[:2], country="Germany", country_code="DE",
                provider="owid", provider_name="OWID")
    return job


def jobs():
    return host_jobs() + gpu_jobs() + [emission_job()]


# PromQL, and the only value or the values by label that it must give.
POWER = "uuid:ceems_host_power_watts:pue"
EXPECTED = [
    # 1.25 * (200 W * 0.8 + 40 W * 0.75) and 1.25 * (200 W * 0.2 + 40 W * 0.25); c has its node alone.
    (POWER + '{job="rapl"}', "uuid", {"a": 237.5, "b": 62.5, "c": 125}),
    ('job:ceems_host_power_watts:pue{job="rapl"}', "job", {"rapl": 425}),
    # 500 W: 0.9 * 500 * 0.8 + 0.1 * 500 / 2 and 0.9 * 500 * 0.2 + 0.1 * 500 / 2.
    (POWER + '{job="ipmi"}', "uuid", {"a": 385, "b": 115}),
    ('job:ceems_host_power_watts:pue{job="ipmi"}', "job", {"ipmi": 500}),
    # RAPL says that packages use 0.8: 0.9 * 500 * (0.8 * 0.8 + 0.2 * 0.75) + 25 and 0.9 * 500 * (0.8 * 0.2 + 0.2 * 0.25) + 25.
    (POWER + '{job="ipmi+rapl"}', "uuid", {"a": 380.5, "b": 119.5, "c": 250}),
    ('job:ceems_host_power_watts:pue{job="ipmi+rapl"}', "job", {"ipmi+rapl": 750}),
    # The newer name counts where a node has both.
    (POWER + '{job="later"}', "uuid", {"a": 385, "b": 115, "c": 250}),
    ('instance:ceems_ipmi_dcmi_power_current_watts:pue{job="later"}', "instance", {"l1:9010": 500, "l2:9010": 250}),
    ('uuid:ceems_io_read_bytes:irate{job="later"}', "uuid", {"a": 1e6}),
    ('job:ceems_io_write_bytes:sum_irate{job="later"}', "mountpoint", {"/scratch": 1e6}),
    ('job:ceems_net_ingress_packets:sum_irate{job="later"}', "proto", {"tcp": 30}),
    # Only the chassis that was chosen.
    (POWER + '{job="redfish"}', "uuid", {"a": 385, "b": 115}),
    ('instance:ceems_redfish_current_watts:pue{job="redfish"}', "chassis", {"System": 500}),
    # 600 W - 200 W of accelerators: 1.25 * (200 * 0.8 + 60 * 0.75 + 140 / 2) and 1.25 * (200 * 0.2 + 60 * 0.25 + 140 / 2).
    (POWER + '{job="cray"}', "uuid", {"a": 343.75, "b": 156.25, "c": 375}),
    ('job:ceems_host_power_watts:pue{job="cray"}', "job", {"cray": 875}),
    # Both sensors of the power meter, and not the other chip.
    (POWER + '{job="hwmon"}', "uuid", {"a": 385, "b": 115}),
    ('job:ceems_host_power_watts:pue{job="hwmon"}', "job", {"hwmon": 500}),
    # 1480 W - 680 W; the node without GPUs keeps all of its 160 W.
    ('instance:ceems_ipmi_dcmi_current_watts:pue{job="gpu"}', "instance", {"g1:9010": 1000, "g2:9010": 200}),
    (POWER + '{job="gpu"}', "uuid", {"a": 770, "b": 230, "c": 200}),
    ('job:ceems_host_power_watts:pue{job="gpu"}', "job", {"gpu": 1200}),
    # Instances by activity: 0.5 * 0.4 * 42 : 0.5 * 0.2 * 56 = 0.6 : 0.4 of 250 W. The idle GPU by its shares.
    ('uuid:ceems_gpu_power_watts:pue{job="gpu",uuid="a"}', "hindex",
     {"g1/gpu-0": 375, "g1/gpu-1": 150, "g1/gpu-3": 62.5, "g1/gpu-4": 100}),
    ('uuid:ceems_gpu_power_watts:pue{job="gpu",uuid="b"}', "hindex", {"g1/gpu-2": 100, "g1/gpu-3": 62.5}),
    ('sum(uuid:ceems_gpu_power_watts:pue{job="gpu"})', None, 850),
    ('job:ceems_gpu_power_watts:pue{job="dcgm"}', "job", {"dcgm": 850}),
    ('uuid:ceems_gpu_usage:ratio{job="gpu",uuid="a"}', "hindex",
     {"g1/gpu-0": 90, "g1/gpu-1": 50, "g1/gpu-3": 0, "g1/gpu-4": 40}),
    ('uuid:ceems_gpu_memory_usage:ratio{job="gpu",uuid="b"}', "hindex", {"g1/gpu-2": 25, "g1/gpu-3": 12.5}),
    ('uuid:ceems_gpu_sm_active:ratio{job="gpu",uuid="b"}', "hindex", {"g1/gpu-2": 50, "g1/gpu-3": 0}),
    ('uuid:ceems_gpu_prof_sm_active:ratio{job="gpu",uuid="b"}', "hindex", {"g1/gpu-2": 50, "g1/gpu-3": 0}),
    ('uuid:ceems_gpu_prof_pcie_tx_bytes:sum{job="gpu",uuid="b"}', "hindex", {"g1/gpu-2": 5e6, "g1/gpu-3": 2.5e6}),
    ('uuid:ceems_gpu_prof_pcie_tx_bytes:rate{job="gpu",uuid="b"}', "hindex", {"g1/gpu-2": 5e6, "g1/gpu-3": 2.5e6}),
    # Two hosts with a GPU of the same index each.
    ('uuid:ceems_gpu_power_watts:pue{job="amd-smi"}', "uuid", {"x": 250, "y": 375}),
    ('uuid:ceems_gpu_usage:ratio{job="amd-smi"}', "uuid", {"x": 50, "y": 75}),
    ('uuid:ceems_gpu_memory_usage:ratio{job="amd-smi"}', "uuid", {"x": 20, "y": 20}),
    ('job:ceems_gpu_power_watts:pue{job="smi"}', "job", {"smi": 625}),
    ('uuid:ceems_gpu_power_watts:pue{job="amd-dme"}', "uuid", {"x": 250, "y": 375, "p": 375, "q": 375}),
    ('uuid:ceems_gpu_usage:ratio{job="amd-dme"}', "uuid", {"x": 50, "y": 75, "p": 80, "q": 40}),
    ('uuid:ceems_gpu_memory_usage:ratio{job="amd-dme",type="vram"}', "uuid", {"x": 25, "y": 25, "p": 25, "q": 25}),
    ('uuid:ceems_gpu_prof_occupancy_percent:ratio{job="amd-dme"}', "uuid", {"x": 50, "y": 50, "p": 50, "q": 50}),
    ('job:ceems_gpu_power_watts:pue{job="dme"}', "job", {"dme": 1375}),
    # 237.5 W / 3.6e6 * 36 g/kWh, in micrograms; one series for each provider although two exporters have the factor.
    ('1e6 * uuid:ceems_host_emissions_g_s:pue{job="rapl",uuid="a"}', "provider", {"owid": 2375, "rte": 4750}),
    ('1e6 * uuid:ceems_gpu_emissions_g_s:pue{job="gpu",hindex="g1/gpu-2"}', "provider", {"owid": 1000, "rte": 2000}),
    ('1e6 * job:ceems_host_emissions_g_s:pue{job="ipmi",country_code="FR"}', "provider", {"owid": 5000, "rte": 10000}),
    ('1e6 * job:ceems_host_emissions_g_s:pue{job="ipmi",provider="owid"}', "country_code", {"FR": 5000, "DE": 50000}),
    ('1e6 * job:ceems_gpu_emissions_g_s:pue{job="dcgm",country_code="FR"}', "provider", {"owid": 8500, "rte": 17000}),
    ('uuid:ceems_cpu_usage:ratio_irate{job="ipmi"}', "uuid", {"a": 50, "b": 50}),
    ('uuid:ceems_cpu_memory_usage:ratio{job="ipmi"}', "uuid", {"a": 25, "b": 25}),
    # 10 of 40 logical CPUs.
    ('job:ceems_cpu_usage:avg_ratio_irate{job="ipmi"}', "job", {"ipmi": 25}),
    ('job:ceems_cpu_memory_usage:avg_ratio{job="ipmi"}', "job", {"ipmi": 50}),
]
