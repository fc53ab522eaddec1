"""ceems-unit: everything about one unit, whatever its manager. Every selector names the unit, so that the load balancer lets users
read their own; the facts come from the API with the rights of the viewer and never from the link."""

from .model import Api, Column, Dashboard, Level, Panel, Profile, Prom, Row, Shared, Variable
from .promql import (FACTOR, JOULES, UNIT_ENERGY, any_of, energy_of_records, increase, instead, named, power_of_records, rate,
                     same_labels, selector, total)
from .users import added

U = 'uuid="$uuid"'
ON_NODES = U + ', hostname=~"$hostname"'
ON_GPUS = U + ', gpuuuid=~"$gpu"'
GPU = "hostname, index, gpuuuid, gpuiid"
GPU_LEGEND = "{{hostname}} GPU {{index}}"
MOST = 16  # GPUs and mount points in a chart

FACTS = (
    Column("uuid", "uuid", "ID"), Column("name", "name", "Name"), Column("username", "username", "User"),
    Column("project", "project", "Project"), Column("state", "state", "State"),
    Column("started_at_ts", "started_at_ts", "Start", kind="timestamp_epoch"), Column("elapsed", "elapsed", "Elapsed"),
    Column("cpu_use", "avg_cpu_usage.global", "CPU use", "percent", "number"),
    Column("memory_use", "avg_cpu_mem_usage.global", "Memory use", "percent", "number"),
    Column("gpu_use", "avg_gpu_usage.global", "GPU use", "percent", "number"),
    Column("host_energy", "total_cpu_energy_usage_kwh.total", "Host energy", "kwatth", "number"),
    Column("gpu_energy", "total_gpu_energy_usage_kwh.total", "GPU energy", "kwatth", "number"),
    Column("energy", added("energy_usage_kwh"), "Energy", "kwatth", "number"),
    Column("emissions", added("emissions_gms"), "Emissions", "massg", "number"))


def by_node(what):
    """Lowest, mean and highest node: three lines for any number of nodes."""
    return (Prom("min(%s)" % what, "lowest node"), Prom("avg(%s)" % what, "mean of the nodes"), Prom("max(%s)" % what, "highest node"))


def both(metric, one, two, by, legend_one, legend_two, labels=U):
    """Two directions of a traffic counter: ebpf_{read,write}_…"""
    suffix = " {{%s}}" % "}} {{".join(by.split(", ")) if by else ""
    return tuple(Prom("topk(%d, %s)" % (MOST, total(rate(metric % name, labels), by)) if by else total(rate(metric % name, labels)),
                      legend + suffix) for name, legend in ((one, legend_one), (two, legend_two)))


def gpu_use(labels):
    """Use of each GPU as a fraction."""
    return same_labels("max by (%s) (%s)" % (GPU, selector("ceems_compute_unit_gpu_utilization_ratio", labels)),
                       "max by (%s) (%s) / 100" % (GPU, selector("uuid:ceems_gpu_usage:ratio", labels)))


def worst_gpus():
    """The GPUs of the unit by their mean use in the range, the least used first; those that are not measured last."""
    use = ["avg by (gpuuuid) (avg_over_time(%s[$__range]))%s" % (selector(metric, U), scale) for metric, scale in (
        ("ceems_compute_unit_gpu_utilization_ratio", ""), ("uuid:ceems_gpu_usage:ratio", " / 100"))]
    known = "group by (gpuuuid) (last_over_time(%s[$__range])) + 1" % selector("ceems_compute_unit_gpu_index_flag", U)
    return "bottomk(%d, %s)" % (MOST, any_of((*use, known)))


def gpu_ratio(*names):
    """Records of the GPU's profiling under both names that rules give them, as a fraction."""
    found = ['max by (%s) (%s)' % (GPU, selector(record, ON_GPUS)) for name in names
             for record in ("uuid:ceems_gpu_prof_%s:ratio" % name, "uuid:ceems_gpu_%s:ratio" % name)]
    return "topk(%d, (%s) / 100)" % (MOST, any_of(found))


def gpu_traffic(link, direction):
    record = "uuid:ceems_gpu_prof_%s_%s_bytes" % (link, direction)
    return total(any_of(selector(record + ending, ON_GPUS) for ending in (":sum", ":rate")), "hostname")


def inputs():
    """How many series of each kind the unit has. Zero means that the panels that need them stay empty."""
    kinds = (("energy counters", UNIT_ENERGY), ("CPU and memory", "ceems_compute_unit_memory_used_bytes"),
             ("GPUs", "ceems_compute_unit_gpu_index_flag"), ("perf events", "ceems_perf_instructions_total"),
             ("file I/O", "ceems_ebpf_read_bytes_total"), ("network", "ceems_ebpf_ingress_bytes_total"),
             ("power by recording rules", "uuid:ceems_host_power_watts:pue"),
             ("GPU profiling by recording rules", "uuid:ceems_gpu_prof_sm_active:ratio"))
    return tuple(Prom("count(last_over_time(%s[$__range])) or vector(0)" % selector(metric, U), text, instant=True)
                 for text, metric in kinds)


POWER = instead(
    total(rate(UNIT_ENERGY, U + ', domain!="node"'), "domain"),
    any_of((named(total(selector("uuid:ceems_host_power_watts:pue", U)), "domain", "host"),
            named(total(selector("uuid:ceems_gpu_power_watts:pue", U)), "domain", "gpu"))))
NODE_POWER = same_labels(total(rate(UNIT_ENERGY, ON_NODES + ', domain="node"'), "hostname"), power_of_records(ON_NODES, "hostname"))
TOTAL_POWER = same_labels(total(rate(UNIT_ENERGY, U + ', domain="node"')),
                          "sum(%s)" % power_of_records(U, "hostname"))
RANGE_ENERGY = same_labels(
    "%s / %s" % (total(increase(UNIT_ENERGY, U + ', domain="node"')), JOULES),
    "%s + (%s or vector(0))" % (energy_of_records("uuid:ceems_host_power_watts:pue", U),
                                energy_of_records("uuid:ceems_gpu_power_watts:pue", U)))
CPU_RATE = "%s + %s" % (rate("ceems_compute_unit_cpu_user_seconds_total", ON_NODES),
                        rate("ceems_compute_unit_cpu_system_seconds_total", ON_NODES))
CORES = "sum(%s + %s)" % (rate("ceems_compute_unit_cpu_user_seconds_total", U), rate("ceems_compute_unit_cpu_system_seconds_total", U))
FACTOR_HERE = 'max by (provider) (%s)' % selector(FACTOR, 'provider="$provider", country_code="$country"')

HOST_GRAMS, GPU_GRAMS = (total(selector("uuid:ceems_%s_emissions_g_s:pue" % part, U + ', provider="$provider"'), "provider")
                         for part in ("host", "gpu"))
EMISSIONS = same_labels(
    "%s / %s * on () group_right () %s" % (total(rate(UNIT_ENERGY, U + ', domain="node"')), JOULES, FACTOR_HERE),
    "%s + (%s or 0 * %s)" % (HOST_GRAMS, GPU_GRAMS, HOST_GRAMS))


def share_of_misses(cache):
    return "%s / %s" % (total(rate("ceems_perf_cache_%s_misses_total" % cache, U)), total(rate("ceems_perf_cache_%s_hits_total" % cache, U)))


ROWS = (
    Row("Unit", open=True, panels=(
        Panel("table", "Facts", "Who ran the unit, when, and what it used in its whole life. One row for each time that the ID was used.",
              queries=(Api("units", (("cluster_id", "$cluster"), ("uuid", "$uuid"), ("limit", "20"), ("field", "uuid"), ("field", "name"),
                                     ("field", "username"), ("field", "project"), ("field", "state"), ("field", "started_at_ts"),
                                     ("field", "elapsed"), ("field", "avg_cpu_usage"), ("field", "avg_cpu_mem_usage"),
                                     ("field", "avg_gpu_usage"), ("field", "total_cpu_energy_usage_kwh"),
                                     ("field", "total_gpu_energy_usage_kwh"), ("field", "total_cpu_emissions_gms"),
                                     ("field", "total_gpu_emissions_gms")), FACTS),),
              origin="api", width=24, height=6, key="facts"),
        Panel("stat", "Energy in the range", "Energy that the unit was charged in the chosen time range.", "kwatth",
              (Prom(RANGE_ENERGY, "energy", instant=True),), "counters", width=6, height=7, decimals=3),
        Panel("stat", "Energy of the whole life", "Energy of host and GPUs of all runs with this ID, from beginning to end.",
              "kwatth", (Shared("facts", ("energy",)),), "api", width=6, height=7, decimals=3, calculation="sum"),
        Panel("stack", "Power by domain", "Power that the unit was charged: CPU packages, memory, GPUs and other (fans, disks, losses).",
              "watt", (Prom(POWER, "{{domain}}"),), "counters", width=12, height=7),
        Panel("lines", "CPU cores", "Cores that the unit kept busy, and cores that it has reserved.", "cores",
              (Prom(CORES, "in use"), Prom(total(selector("ceems_compute_unit_cpus", U)), "reserved")), "exporter"),
        Panel("lines", "Memory", "Memory of the unit on all its nodes. A limit that no machine can have is left out.", "bytes",
              (Prom(total(selector("ceems_compute_unit_memory_used_bytes", U)), "in use"),
               Prom(total("%s < 1e18" % selector("ceems_compute_unit_memory_total_bytes", U)), "limit")), "exporter"),
    )),
    Row("Nodes", (
        Panel("lines", "Power by node", "Lowest, mean and highest power of the unit on the chosen nodes.", "watt", by_node(NODE_POWER),
              "counters"),
        Panel("lines", "CPU cores by node", "Lowest, mean and highest number of busy cores of the chosen nodes.", "cores",
              by_node("sum by (hostname) (%s)" % CPU_RATE), "exporter"),
        Panel("lines", "Memory by node", "Lowest, mean and highest memory in use of the chosen nodes.", "bytes",
              by_node(total(selector("ceems_compute_unit_memory_used_bytes", ON_NODES), "hostname")), "exporter"),
        Panel("table", "Top nodes", "The 20 nodes where the unit draws most, and its cores and memory there.",
              queries=(Prom("topk(20, %s)" % NODE_POWER, instant=True, table=True),
                       Prom("topk(20, sum by (hostname) (%s))" % CPU_RATE, instant=True, table=True),
                       Prom("topk(20, %s)" % total(selector("ceems_compute_unit_memory_used_bytes", ON_NODES), "hostname"), instant=True,
                            table=True)),
              values=(("Power", "watt"), ("CPU cores", "cores"), ("Memory", "bytes")), labels=(("hostname", "Node"),), origin="either"),
    )),
    Row("CPU performance", (
        Panel("lines", "Cycles per reserved CPU", "Cycles of the unit divided by its reserved CPUs. It falls when CPUs idle; it is not the"
              " clock of the CPU.", "hertz",
              (Prom("%s / %s" % (total(rate("ceems_perf_cpucycles_total", U)), total(selector("ceems_compute_unit_cpus", U))), "cycles"),
               Prom("%s / %s" % (total(rate("ceems_perf_ref_cpucycles_total", U)), total(selector("ceems_compute_unit_cpus", U))),
                    "reference cycles")), "exporter"),
        Panel("lines", "Instructions per cycle", "All instructions divided by all cycles of the unit.", "ipc",
              (Prom("%s / %s" % (total(rate("ceems_perf_instructions_total", U)), total(rate("ceems_perf_cpucycles_total", U))),
                    "instructions per cycle"),), "exporter"),
        Panel("lines", "Scheduling events", "Context switches and moves from one CPU to another.", "events",
              (Prom(total(rate("ceems_perf_context_switches_total", U)), "context switches"),
               Prom(total(rate("ceems_perf_cpu_migrations_total", U)), "migrations")), "exporter"),
        Panel("lines", "Page faults", "Major faults wait for a disk, minor ones do not.", "events",
              (Prom(total(rate("ceems_perf_major_faults_total", U)), "major"),
               Prom(total(rate("ceems_perf_minor_faults_total", U)), "minor")), "exporter"),
        Panel("lines", "Cache misses", "Misses divided by accesses (which the metric calls hits).", "percentunit",
              (Prom(share_of_misses("l1d_read"), "L1 data, read"), Prom(share_of_misses("ll_read"), "last level, read"),
               Prom(share_of_misses("ll_write"), "last level, write")), "exporter", width=24),
    )),
    Row("GPUs", (
        Panel("lines", "GPU use", "Fraction of the time in which the unit's processes used the GPU.", "percentunit",
              (Prom("topk(%d, %s)" % (MOST, gpu_use(ON_GPUS)), GPU_LEGEND),), "either"),
        Panel("lines", "GPU memory", "Memory of the GPUs that the unit's processes hold.", "bytes",
              (Prom("topk(%d, max by (%s) (%s))" % (MOST, GPU, selector("ceems_compute_unit_gpu_memory_used_bytes", ON_GPUS)),
                    GPU_LEGEND),), "exporter"),
        Panel("lines", "GPU power by node", "Power of the GPUs that the unit was charged. At most 16 nodes.", "watt",
              (Prom("topk(%d, %s)" % (MOST, same_labels(
                  total(rate(UNIT_ENERGY, ON_NODES + ', domain="gpu"'), "hostname"),
                  total(selector("uuid:ceems_gpu_power_watts:pue", ON_NODES), "hostname"))), "{{hostname}}"),), "counters"),
        Panel("lines", "GPU power by device", "Power of each GPU that the unit was charged, with the PUE of the rules. At most 16 GPUs.",
              "watt", (Prom("topk(%d, sum by (%s) (%s))" % (MOST, GPU, selector("uuid:ceems_gpu_power_watts:pue", ON_GPUS)), GPU_LEGEND),),
              "rules"),
        Panel("lines", "SM activity and occupancy", "Fraction of the time in which multiprocessors had work, and of their warps in use.",
              "percentunit", (Prom(gpu_ratio("sm_active"), "active " + GPU_LEGEND), Prom(gpu_ratio("sm_occupancy"), "occupied " + GPU_LEGEND)),
              "rules"),
        Panel("lines", "Tensor and graphics engines", "Fraction of the time in which the matrix units and any engine were active.",
              "percentunit", (Prom(gpu_ratio("pipe_tensor_active"), "tensor " + GPU_LEGEND),
                              Prom(gpu_ratio("gr_engine_active"), "any " + GPU_LEGEND)), "rules"),
        Panel("lines", "Floating point pipes", "Fraction of the time in which each pipe was active.", "percentunit",
              tuple(Prom(gpu_ratio("pipe_fp%d_active" % bits), "FP%d " % bits + GPU_LEGEND) for bits in (64, 32, 16)), "rules"),
        Panel("lines", "GPU memory bandwidth use", "Fraction of the time in which the GPU's memory was read or written.", "percentunit",
              (Prom(gpu_ratio("dram_active"), GPU_LEGEND),), "rules"),
        Panel("lines", "NVLink traffic", "Bytes over NVLink, xGMI or Xe Link, by node.", "Bps",
              tuple(Prom("topk(%d, %s)" % (MOST, gpu_traffic("nvlink", way)), text + " {{hostname}}")
                    for way, text in (("tx", "sent"), ("rx", "received"))), "rules"),
        Panel("lines", "PCIe traffic", "Bytes between GPUs and the host, by node.", "Bps",
              tuple(Prom("topk(%d, %s)" % (MOST, gpu_traffic("pcie", way)), text + " {{hostname}}")
                    for way, text in (("tx", "sent"), ("rx", "received"))), "rules"),
    )),
    Row("Each GPU, the least used first", (
        Panel("lines", "Use of ${gpu}", "Fraction of the time in which the unit's processes used this GPU. At most 16 GPUs.", "percentunit",
              (Prom("topk(%d, %s)" % (MOST, gpu_use(ON_GPUS)), GPU_LEGEND),), "either", width=6, repeat="gpu"),
    )),
    Row("File I/O", (
        Panel("lines", "File bandwidth", "Bytes that the unit read and wrote on all its nodes, by mount point.", "Bps",
              both("ceems_ebpf_%s_bytes_total", "read", "write", "mountpoint", "read", "written"), "exporter"),
        Panel("lines", "File requests", "Read and write calls on all nodes, by mount point.", "events",
              both("ceems_ebpf_%s_requests_total", "read", "write", "mountpoint", "read", "written"), "exporter"),
        Panel("lines", "File errors", "Calls that failed, on all nodes, by mount point.", "events",
              both("ceems_ebpf_%s_errors_total", "read", "write", "mountpoint", "read", "written"), "exporter", width=24),
    )),
    Row("Network", (
        Panel("lines", "Network bandwidth", "Bytes that the unit received and sent on all its nodes, by protocol.", "Bps",
              both("ceems_ebpf_%s_bytes_total", "ingress", "egress", "proto, family", "received", "sent"), "exporter"),
        Panel("lines", "Network packets", "Packets on all nodes, by protocol.", "pps",
              both("ceems_ebpf_%s_packets_total", "ingress", "egress", "proto, family", "received", "sent"), "exporter"),
    )),
    Row("Emissions", (
        Panel("lines", "Emission rate", "Power of the unit multiplied by the emission factor of the chosen provider and country.",
              "gps", (Prom(EMISSIONS, "{{provider}}"),), "factors"),
        Panel("lines", "Emission factor", "Grams of CO2 equivalent per kilowatt-hour.", "gpkwh", (Prom(FACTOR_HERE, "{{provider}}"),),
              "exporter"),
    )),
    Row("Profile", (
        Panel("lines", "CPU time", "CPU seconds per second of the unit on all its nodes, to find the time of interest.", "cores",
              (Prom(CORES, "CPU time"),), "exporter", width=24, height=6),
        Panel("flame", "Flame graph", "CPU time of the unit's functions in the range.", "",
              (Profile('{service_name="$uuid"}'),), "profiles", width=24, height=16),
    )),
    Row("Where the data comes from", (
        Panel("bars", "Series of this unit", "Number of series by kind. Where it is zero, the collector or the rule that makes them is not"
              " in use, or the unit did nothing of the kind, and the panels for it stay empty.", "count", inputs(), "either", width=12,
              levels=(Level(0, "none", "#D55E00"), Level(1, "", "#0072B2"))),
        Panel("table", "How the energy was found", "The meters of the unit's nodes: measured, derived from a measured value, or modelled."
              " It stays empty unless the operators share this metric (docs/grafana.md).",
              queries=(Prom("topk(20, max by (hostname, source, method) (ceems_energy_source_info{domain=\"node\"}) * on (hostname)"
                            " group_left () (group by (hostname) (%s)))" % selector("ceems_compute_unit_cpus", U), instant=True,
                            table=True),),
              labels=(("hostname", "Node"), ("source", "Source"), ("method", "Method")), values=(("", ""),), origin="energy",
              texts=(("measured", "measured"), ("derived", "derived"), ("modelled", "modelled"))),
    )),
)

UNIT = Dashboard(
    "ceems-unit", "Unit", "One job, virtual machine, pod or service: what it used, hour by hour.", "users",
    (Variable("tsdb", "tsdb", "Metrics"), Variable("api", "api", "API server"), Variable("profiles", "profiles", "Profiles"),
     Variable("names", "cluster", "Cluster", query="projects", field="cluster_id", params=(("field", "cluster_id"),)),
     Variable("text", "uuid", "Unit", "ID of the job, VM or pod."),
     Variable("labels", "hostname", "Node", query="%s, hostname" % selector("ceems_compute_unit_cpus", U), several=True),
     Variable("ranked", "gpu", "GPU", query=worst_gpus(), field="gpuuuid"),
     Variable("text", "page", "Web page", "Address of the web page of the API server; empty if it is on this host."),
     Variable("labels", "provider", "Emission provider", query="%s, provider" % FACTOR),
     Variable("labels", "country", "Country", query='%s, country_code' % selector(FACTOR, 'provider="$provider"'))),
    ROWS, tags=("ceems", "ceems-unit"), page=("Page of the unit", "${page:raw}/ui/#/unit/${cluster:percentencode}/${uuid:percentencode}"))


def old_link(uid, title, variable):
    """The uid that links of CEEMS point to: it passes the ID on."""
    url = "/d/ceems-unit?var-uuid=${%s:percentencode}&${__url_time_range}" % variable
    return Dashboard(
        uid, title, "Kept so that old links work. It leads to the dashboard of the unit.", "users",
        (Variable("text", variable, "Unit", "ID of the job, VM or pod."),),
        (Row("", open=True, panels=(
            Panel("text", "Moved", "Where this dashboard has gone.", width=24, height=4,
                  content="This unit is now shown by the dashboard [Unit](%s)." % url),)),),
        link=("Unit", url), tags=("ceems-old",))


OLD = (old_link("slurm-single-job-metrics", "Single job (moved)", "jobid"), old_link("os-vm-metrics", "Single VM (moved)", "uuid"),
       old_link("k8s-single-pod-metrics", "Single pod (moved)", "uuid"),
       # That of LSF in CEEMS 0.14 and later: named after the others, as its uid is not documented.
       old_link("lsf-single-job-metrics", "Single LSF job (moved)", "jobid"))
