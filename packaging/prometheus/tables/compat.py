"""ceems-compat.rules.yml: the records that the rules of CEEMS 0.10.2 to 0.16 write, made from the counters of ceems_exporter.

Existing dashboards, cacct and queries of the updater read them. Only targets that count energy themselves are used: for all others
`ceems_tool tsdb create-recording-rules` writes the same records, so no series is written twice."""

from . import Group, Record, duration

TARGET = "cluster, ceems_id, job, instance"
JOB = "cluster, ceems_id, job"
UNIT = TARGET + ", uuid, manager, hostname, cgrouphostname"
DEVICE = TARGET + ", gpuuuid"
INSTANCE = DEVICE + ", gpuiid"
PROVIDERS = ("rte", "emaps", "owid", "wt", "global")

NODE = 'ceems_node_energy_joules_total{domain="node"}'
OURS = "and on (%s) %s" % (TARGET, NODE)
PUE = "* on () group_left () (max(ceems:pue) or vector(1))"
SHARE = "uuid:ceems_gpu_share:ratio"
WEIGHT = "uuid:ceems_gpu_weight:watts"

# Series of power meters: record `instance:METRIC:pue`.
METERS = ("ceems_ipmi_dcmi_current_watts", "ceems_ipmi_dcmi_power_current_watts", "ceems_redfish_current_watts",
          "ceems_redfish_power_current_watts", "ceems_cray_pm_counters_power_watts", "ceems_rapl_package_joules_total",
          "ceems_rapl_dram_joules_total")

# Profiling of GPUs in percent: name in records, our series, field of DCGM.
ACTIVITY = (
    ("sm_active", "ceems_gpu_sm_active_ratio", "SM_ACTIVE"),
    ("sm_occupancy", "ceems_gpu_sm_occupancy_ratio", "SM_OCCUPANCY"),
    ("gr_engine_active", "ceems_gpu_graphics_active_ratio", "GR_ENGINE_ACTIVE"),
    ("pipe_tensor_active", 'ceems_gpu_tensor_active_ratio{pipe="any"}', "PIPE_TENSOR_ACTIVE"),
    ("pipe_fp64_active", "ceems_gpu_fp64_active_ratio", "PIPE_FP64_ACTIVE"),
    ("pipe_fp32_active", "ceems_gpu_fp32_active_ratio", "PIPE_FP32_ACTIVE"),
    ("pipe_fp16_active", "ceems_gpu_fp16_active_ratio", "PIPE_FP16_ACTIVE"),
    ("dram_active", "ceems_gpu_dram_active_ratio", "DRAM_ACTIVE"),
)
# Traffic of GPUs in bytes per second: name in records, our series without the ending, field of DCGM.
TRAFFIC = (
    ("nvlink_tx_bytes", "ceems_gpu_link_transmit_bytes", "NVLINK_TX_BYTES"),
    ("nvlink_rx_bytes", "ceems_gpu_link_receive_bytes", "NVLINK_RX_BYTES"),
    ("pcie_tx_bytes", "ceems_gpu_pcie_transmit_bytes", "PCIE_TX_BYTES"),
    ("pcie_rx_bytes", "ceems_gpu_pcie_receive_bytes", "PCIE_RX_BYTES"),
)
# Profiling by AMD's device metrics exporter: name and kind of the record.
AMD_PROFILING = (("tensor_active_percent", "ratio"), ("occupancy_percent", "ratio"), ("total_16_ops", "sum"), ("total_32_ops", "sum"),
                 ("total_64_ops", "sum"), ("write_size", "sum"), ("fetch_size", "sum"))
# Files and network: series without "ceems_ebpf_" and "_total", part of the names of records, labels of sums.
IO = tuple((direction + "_" + what, "io", "mountpoint") for direction in ("read", "write") for what in ("bytes", "requests", "errors")) + \
     tuple((direction + "_" + what, "net", "family, proto") for direction in ("ingress", "egress") for what in ("bytes", "packets"))


def indented(text, by=2):
    return "\n".join(" " * by + line for line in text.split("\n"))


def of_instance(value):
    """A value of GPUs or instances times the share of each unit that holds it, with the labels of the flag."""
    return "%s\n  * on (%s) group_left ()\nmax by (%s) (%s)" % (SHARE, INSTANCE, INSTANCE, value)


def of_dcgm(field):
    """The same of a field of NVIDIA's exporter, with the labels of the exporter or with those of CEEMS' relabelling."""
    labelled = 'label_replace(label_replace(DCGM_FI_PROF_%s, "gpuuuid", "$1", "UUID", "(.+)"), "gpuiid", "$1", "GPU_I_ID", "(.+)")' % field
    return "%s\n  * on (gpuuuid, gpuiid) group_left ()\nmax by (gpuuuid, gpuiid) (\n  %s\n)" % (SHARE, labelled)


def of_amd(metric):
    """The same of a series of AMD's exporter, which numbers GPUs by host."""
    units = 'label_replace(%s, "instancehost", "$1", "instance", "(.*?)(?::[0-9]+)?")' % SHARE
    device = ('label_replace(label_replace(label_replace(%s, "instancehost", "$1", "instance", "(.*?)(?::[0-9]+)?"), '
              '"index", "$1", "gpu_id", "(.+)"), "gpuiid", "$1", "gpu_partition_id", "(.+)")' % metric)
    whole = units.replace(SHARE, SHARE + '{gpuiid=""}')
    return ("sum without (instancehost) (\n"
            "  {0}\n    * on (instancehost, index, gpuiid) group_left ()\n  max by (instancehost, index, gpuiid) ({2})\n"
            "  or\n"
            "  {1}\n    * on (instancehost, index) group_left ()\n  max by (instancehost, index) ({2})\n"
            ")").format(units, whole, device)


def ours(record, labels=TARGET):
    """A record that others write as well, of targets that count energy."""
    return "(%s and on (%s) %s)" % (record, labels, NODE)


def emissions(record, power, of, labels=""):
    """One record for each provider: watts times grams per joule, which is a single series. If there is none, nothing else is evaluated."""
    return [Record(record, "%s\n  * on () group_left (%s) (provider:ceems_site_emission_factor:max{provider=\"%s\"} / 3.6e6)\nand on (%s) %s"
                   % (power, labels, provider, of, NODE), labels={"provider": provider}) for provider in PROVIDERS]


def site_group():
    factors = "max by (provider, country_code, country) (ceems_emissions_gCo2_kWh)"
    return Group("ceems-compat-site", interval="1m", rules=[Record("provider:ceems_site_emission_factor:max", (
        "topk by (provider) (1,\n"
        "  ({0} and on (country_code) ceems:country)\n"
        "  or\n"
        "  (\n"
        "    {0}\n"
        "    and on (provider) (count by (provider) (count by (provider, country_code) (ceems_emissions_gCo2_kWh)) == 1)\n"
        "    unless on () ceems:country\n"
        "  )\n"
        ")").format(factors), comment=(
            "The factor that counts here, in g/kWh: that of ceems:country, or without this record those of providers that know a single "
            "country."))])


def unit_group(settings):
    window = settings.window

    rules = [
        Record("uuid:ceems_cpu_usage:ratio_irate", (
            "100 * (\n  irate(ceems_compute_unit_cpu_user_seconds_total[{0}])\n"
            "  + irate(ceems_compute_unit_cpu_system_seconds_total[{0}])\n)\n"
            "  / (ceems_compute_unit_cpus > 0)\n{1}").format(window, OURS)),
        Record("uuid:ceems_cpu_memory_usage:ratio", (
            "100 * ceems_compute_unit_memory_used_bytes\n  / (ceems_compute_unit_memory_total_bytes > 0)\n" + OURS)),
    ]
    rules += [Record("instance:%s:pue" % metric, "(%s %s)\n  %s" % (metric, OURS, PUE)) for metric in METERS]
    rules.append(Record("uuid:ceems_host_power_watts:pue", (
        "clamp_min(sum without (domain) (\n"
        '  rate(ceems_compute_unit_energy_joules_total{{domain="node"}}[{0}])\n'
        '  or -rate(ceems_compute_unit_energy_joules_total{{domain="gpu"}}[{0}])\n'
        "), 0)\n  {1}").format(window, PUE),
        comment="The whole node but its GPUs, as in the dashboards of CEEMS. Whenever a unit has energy, it has some in the domain `node`."))
    rules += emissions("uuid:ceems_host_emissions_g_s:pue", "uuid:ceems_host_power_watts:pue", TARGET)
    return Group("ceems-compat-units", rules=rules, interval=duration(settings.interval))


def gpu_rules(settings):
    window = settings.window
    units = 'sum without (domain) (rate(ceems_compute_unit_energy_joules_total{domain="gpu"}[%s]))' % window
    multiprocessors = "max by (%s) (ceems_compute_unit_gpu_sm_count)" % INSTANCE
    held = "sum by (%s) (%s)" % (UNIT, WEIGHT)
    yield Record(SHARE, "ceems_compute_unit_gpu_index_flag\n" + OURS, comment="The share of the GPU or instance that the unit holds.")
    yield Record(WEIGHT, (
        "{share}\n"
        "  * on ({device}) group_left () max by ({device}) (ceems_gpu_power_watts)\n"
        "  * on ({instance}) group_left () (\n"
        "    {sm} / on ({device}) group_left () sum by ({device}) ({sm})\n"
        "    or max by ({instance}) ({share}) * 0 + 1\n"
        "  )\n"
        "or {share} * 0").format(share=SHARE, device=DEVICE, instance=INSTANCE, sm=multiprocessors), comment=(
            "What a unit's devices draw now, by which the energy of the unit is split among them."))
    yield Record("uuid:ceems_gpu_power_watts:pue", (
        "(\n"
        "  (\n"
        "    {weight} / on ({unit}) group_left () ({held} > 0)\n"
        "    or\n"
        "    ({weight} * 0 + 1) / on ({unit}) group_left () count by ({unit}) ({weight})\n"
        "      unless on ({unit}) ({held} > 0)\n"
        "  )\n"
        "  * on ({unit}) group_left () {power}\n"
        "  or\n"
        "  ({power} > 0) unless on ({unit}) {weight}\n"
        ")\n  {pue}").format(weight=WEIGHT, unit=UNIT, held=held, power=units, pue=PUE), comment=(
            "The devices of a unit add up to its counter. They count alike while none of them draws power. A unit that computes on "
            "GPUs that it does not hold has one series without a device."))
    yield from emissions("uuid:ceems_gpu_emissions_g_s:pue", "uuid:ceems_gpu_power_watts:pue", TARGET)
    yield Record("uuid:ceems_gpu_usage:ratio", "100 *\n" + of_instance("ceems_gpu_utilization_ratio"))
    yield Record("uuid:ceems_gpu_memory_usage:ratio", (
        "100 *\n%s\n  * on (%s) group_left (type)\nmax by (%s, type) (\n"
        '  label_replace(ceems_gpu_memory_used_bytes / ceems_gpu_memory_total_bytes, "type", "vram", "vendor", "amd")\n)'
        % (SHARE, INSTANCE, INSTANCE)), comment="Dashboards of 0.11 and later ask for `type` of AMD's GPUs.")


def profiling_rules(settings):
    for name, metric, field in ACTIVITY:
        yield Record("uuid:ceems_gpu_%s:ratio" % name, "100 * (\n%s\n  or\n%s\n)" % (
            indented(of_instance(metric)), indented(of_dcgm(field))))
        yield Record("uuid:ceems_gpu_prof_%s:ratio" % name, ours("uuid:ceems_gpu_%s:ratio" % name))
    for name, metric, field in TRAFFIC:
        rate = "rate(%s_total[%s]) or %s_per_second" % (metric, settings.window, metric)
        yield Record("uuid:ceems_gpu_prof_%s:rate" % name, "%s\nor\n%s" % (of_instance(rate), of_dcgm(field)), comment=(
            "Bytes per second, where the rules of 0.10.2 write a hundred times as many. Rules of later releases write this name, and "
            "their dashboards read the next one." if name == TRAFFIC[0][0] else ""))
        yield Record("uuid:ceems_gpu_prof_%s:sum" % name, ours("uuid:ceems_gpu_prof_%s:rate" % name))
        yield Record("uuid:ceems_gpu_%s:ratio" % name, ours("uuid:ceems_gpu_prof_%s:rate" % name))
    for name, kind in AMD_PROFILING:
        yield Record("uuid:ceems_gpu_prof_%s:%s" % (name, kind), of_amd("gpu_prof_" + name))


def traffic_group(settings):
    rules = []
    for series, kind, labels in IO:
        unit = "uuid:ceems_%s_%s:irate" % (kind, series)
        rules.append(Record(unit, "irate(ceems_ebpf_%s_total[%s])\n%s" % (series, settings.window, OURS)))
        rules.append(Record("job:ceems_%s_%s:sum_irate" % (kind, series), "sum by (%s, %s) %s" % (JOB, labels, ours(unit))))
    return Group("ceems-compat-traffic", rules=rules, interval=duration(settings.interval), comment=(
        "Files and network, of exporters that count them with eBPF."))


def job_group(settings):
    window = settings.window

    def energy(domain):
        return 'sum by (%s) (rate(ceems_node_energy_joules_total{domain="%s"}[%s]))' % (JOB, domain, window)

    def mean(value):
        return "100 * avg by (%s) (%s %s)" % (JOB, value, OURS)

    rules = [
        Record("job:ceems_cpu_usage:avg_ratio_irate", (
            "100 * avg by ({job}) (\n"
            '  sum by ({target}) (irate(ceems_cpu_seconds_total{{mode!~"idle|iowait|steal"}}[{window}]))\n'
            "    / (sum by ({target}) (ceems_cpu_count) > 0)\n  {ours}\n)").format(job=JOB, target=TARGET, window=window, ours=OURS),
            comment="Of logical CPUs, so at most 100."),
        Record("job:ceems_cpu_memory_usage:avg_ratio", mean("(1 - ceems_meminfo_MemAvailable_bytes / ceems_meminfo_MemTotal_bytes)")),
        Record("job:ceems_host_power_watts:pue", "clamp_min(\n  {0}\n    - ({1} or {0} * 0)\n, 0)\n  {2}".format(
            energy("node"), energy("gpu"), PUE)),
        Record("job:ceems_gpu_power_watts:pue", "%s\n  %s" % (energy("gpu"), PUE), comment=(
            "`job` is that of ceems_exporter, so the dashboards' selection of jobs finds it.")),
        Record("job:ceems_gpu_usage:avg", mean('ceems_gpu_utilization_ratio{index!=""}')),
        Record("job:ceems_gpu_memory_usage:avg_ratio", mean(
            '(ceems_gpu_memory_used_bytes{index!=""} / ceems_gpu_memory_total_bytes)')),
    ]
    for kind in ("host", "gpu"):
        rules += emissions("job:ceems_%s_emissions_g_s:pue" % kind, "job:ceems_%s_power_watts:pue" % kind, JOB,
                           "country_code, country")
    return Group("ceems-compat-jobs", rules=rules, interval=duration(settings.interval))


def groups(settings):
    every = duration(settings.interval)
    return [site_group(), unit_group(settings),
            Group("ceems-compat-gpus", rules=list(gpu_rules(settings)), interval=every),
            Group("ceems-compat-gpu-profiling", rules=list(profiling_rules(settings)), interval=every),
            traffic_group(settings), job_group(settings)]
