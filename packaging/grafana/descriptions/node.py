"""ceems-node and ceems-audit: one node, for operators with Prometheus itself."""

from .cluster import SOURCES, shares
from .model import Dashboard, Level, Panel, Prom, Row, Variable
from .promql import ENDED, JOULES, NODE_ENERGY, SYSTEM, UNALLOCATED, UNIT_ENERGY, any_of, charged, increase, rate, selector

H = 'hostname="$hostname"'
WHOLE = H + ', domain="node"'
HOSTNAME = Variable("labels", "hostname", "Node", query="%s, hostname" % selector(NODE_ENERGY))
MOST = 20
GPU_LEGEND = "GPU {{index}} {{gpuuuid}}"
BMC = ("ceems_ipmi_dcmi_current_watts", "ceems_ipmi_dcmi_power_current_watts", "ceems_redfish_current_watts",
       "ceems_redfish_power_current_watts", "ceems_hwmon_power_current_watts", "ceems_hwmon_power_avg_watts")


def gpus(what, by="index, gpuuuid, gpuiid"):
    return "topk(%d, max by (%s) (%s))" % (MOST, by, what)


def bmc():
    """Every wall meter of the node under either name; one line for each metric."""
    return any_of('label_replace(sum by (__name__) (%s), "meter", "$1", "__name__", "ceems_(.*)_watts")' % selector(metric, H)
                  for metric in BMC)


NODE = Dashboard(
    "ceems-node", "Node", "One node: its energy, meters, units and GPUs.", "operators", (SOURCES[0], HOSTNAME),
    (Row("Energy", open=True, panels=(
        Panel("stack", "Power by domain and source", "Power of the node, by part and by the meter that reported it.", "watt",
              (Prom("topk(20, sum by (domain, source) (%s))" % rate(NODE_ENERGY, H + ', domain!="node"'), "{{domain}} {{source}}"),), "energy"),
        Panel("stack", "Power by share", "Power of units and of the system, and unallocated power.", "watt",
              (Prom(shares(WHOLE), "{{share}}"),), "energy"),
        Panel("stack", "Power of the units", "The %d units that draw most. Wider bands are larger consumers." % MOST, "watt",
              (Prom("topk(%d, sum by (uuid) (%s))" % (MOST, rate(UNIT_ENERGY, WHOLE)), "{{uuid}}"),), "energy"),
        Panel("lines", "Wall meters and known parts", "What BMC and power meters report, beside the sum of the parts. The meter should be"
              " higher: it sees fans, disks and losses as well.", "watt",
              (Prom(bmc(), "{{meter}}"), Prom("sum(%s)" % rate(NODE_ENERGY, H + ', domain=~"package|dram|gpu"'), "known parts")), "exporter"),
        Panel("table", "Sources", "Meters of the node, what they measure, how, and the age of their last value.",
              queries=(Prom("topk(50, max by (source, domain, method) (%s))" % selector("ceems_energy_source_info", H), instant=True,
                            table=True),
                       Prom("topk(50, max by (source) (%s))" % selector("ceems_energy_source_age_seconds", H), instant=True, table=True)),
              labels=(("source", "Source"), ("domain", "Domain"), ("method", "Method")), values=(("", ""), ("Age", "s")), origin="energy"),
        Panel("bars", "Idle power by domain", "Idle power that is used to split the energy, as it was learned.", "watt",
              (Prom("max by (domain) (%s)" % selector("ceems_energy_idle_watts", H), "{{domain}}", instant=True),), "energy", decimals=1),
    )), Row("Units and collectors", (
        Panel("stat", "Units on the node", "Units that are alive or idle, by manager.", "count",
              (Prom("sum by (manager) (%s)" % selector("ceems_compute_units", H), "{{manager}}", instant=True),), "exporter", width=6),
        Panel("table", "Collectors", "Whether each collector of the node's exporter succeeded, and how long it took.",
              queries=(Prom("topk(50, max by (collector) (ceems_scrape_collector_success * on (instance) group_left () group by (instance)"
                            " (%s)))" % selector(NODE_ENERGY, WHOLE), instant=True, table=True),
                       Prom("topk(50, max by (collector) (ceems_scrape_collector_duration_seconds * on (instance) group_left () group by"
                            " (instance) (%s)))" % selector(NODE_ENERGY, WHOLE), instant=True, table=True)),
              labels=(("collector", "Collector"),), values=(("Succeeded", "yesno"), ("Duration", "s")), origin="exporter", width=12),
        Panel("stat", "GPU assignments by hints", "Assignments of GPUs to units that rest only on what a job's user controls.", "count",
              (Prom("sum(ceems_exporter_unit_gpu_hints * on (instance) group_left () group by (instance) (%s)) or vector(0)"
                    % selector(NODE_ENERGY, WHOLE), "hints", instant=True),), "exporter", width=6,
              levels=(Level(0, "none", "#0072B2"), Level(1, "some", "#D55E00"))),
    )), Row("CPU and memory", (
        Panel("stack", "CPU time by mode", "Busy CPUs of the node by what they do.", "cores",
              (Prom("sum by (mode) (%s)" % rate("ceems_cpu_seconds_total", H + ', mode!="idle"'), "{{mode}}"),), "exporter"),
        Panel("lines", "Memory of the node", "Memory in use and in total.", "bytes",
              (Prom("sum(%s) - sum(%s)" % (selector("ceems_meminfo_MemTotal_bytes", H), selector("ceems_meminfo_MemAvailable_bytes", H)),
                    "in use"), Prom("sum(%s)" % selector("ceems_meminfo_MemTotal_bytes", H), "total")), "exporter"),
    )), Row("GPUs", (
        Panel("lines", "Power of the GPUs", "Power of each GPU of the node.", "watt",
              (Prom(gpus(selector("ceems_gpu_power_watts", H)), GPU_LEGEND),), "exporter"),
        Panel("lines", "Use of the GPUs", "Fraction of the time in which each GPU or instance had work.", "percentunit",
              (Prom(gpus(selector("ceems_gpu_utilization_ratio", H)), GPU_LEGEND + " {{gpuiid}}"),), "exporter"),
        Panel("lines", "Memory of the GPUs", "Memory in use of each GPU or instance.", "bytes",
              (Prom(gpus(selector("ceems_gpu_memory_used_bytes", H)), GPU_LEGEND + " {{gpuiid}}"),), "exporter"),
        Panel("lines", "Temperature of the GPUs", "Temperature of each GPU and its memory.", "celsius",
              (Prom(gpus(selector("ceems_gpu_temperature_celsius", H), "index, gpuuuid, sensor"), GPU_LEGEND + " {{sensor}}"),),
              "exporter"),
        Panel("table", "Slowed GPUs", "Why clocks of GPUs are below their maximum now.",
              queries=(Prom("topk(50, max by (index, gpuuuid, reason) (%s) == 1)" % selector("ceems_gpu_clock_reason", H), instant=True,
                            table=True),),
              labels=(("index", "GPU"), ("gpuuuid", "UUID"), ("reason", "Reason")), values=(("", ""),), origin="exporter"),
        Panel("bars", "GPU errors in the range", "Xid errors and memory errors of the node's GPUs in the range.", "count",
              (Prom("topk(20, sum by (xid) (%s))" % increase("ceems_gpu_xid_errors_total", H), "Xid {{xid}}", instant=True),
               Prom("topk(20, sum by (type) (%s))" % increase("ceems_gpu_ecc_errors_total", H), "memory errors {{type}}", instant=True)),
              "exporter", levels=(Level(0, "none", "#0072B2"), Level(1, "some", "#D55E00"))),
    ))))


def kept(metric):
    """Kilowatt-hours by domain that a share has taken since the counters began."""
    return "sum by (domain) (%s) / %s" % (selector(metric, H), JOULES)


ACCOUNTED = "sum by (domain) (%s)" % charged(H)

AUDIT = Dashboard(
    "ceems-audit", "Energy audit of a node", "Every joule of a node: where it was measured and who was charged for it.", "operators",
    (SOURCES[0], HOSTNAME),
    (Row("Account", open=True, panels=(
        Panel("table", "Account by domain", "Energy since the exporter began to count: what the meters showed, and what was charged to whom."
              " Units, ended units, system and unallocated add up to the node in every row.",
              queries=(Prom(kept(NODE_ENERGY), instant=True, table=True), Prom(kept(UNIT_ENERGY), instant=True, table=True),
                       Prom(kept(ENDED), instant=True, table=True), Prom(kept(SYSTEM), instant=True, table=True),
                       Prom(kept(UNALLOCATED), instant=True, table=True)),
              labels=(("domain", "Domain"),),
              values=(("Node", "kwatth"), ("Units", "kwatth"), ("Ended units", "kwatth"), ("System", "kwatth"), ("Unallocated", "kwatth")),
              origin="energy", width=16),
        Panel("bars", "Imbalance by domain", "Relative difference between charged and measured energy. It is zero up to rounding; anything"
              " else is a bug: please report it.", "percentunit",
              (Prom("abs(%s / sum by (domain) (%s) - 1)" % (ACCOUNTED, selector(NODE_ENERGY, H)), "{{domain}}", instant=True),), "energy",
              width=8, decimals=4, levels=(Level(0, "good", "#0072B2"), Level(0.02, "wrong", "#D55E00"))),
        Panel("table", "Energy by meter", "Energy in the range by domain and by the meter that reported it.",
              queries=(Prom("topk(50, sum by (domain, source) (%s) / %s)" % (increase(NODE_ENERGY, H), JOULES), instant=True, table=True),),
              labels=(("domain", "Domain"), ("source", "Source")), values=(("Energy", "kwatth"),), origin="energy", width=12),
        Panel("table", "Energy by unit", "Energy of the %d units that were charged most in the range." % MOST,
              queries=(Prom("topk(%d, sum by (uuid, manager) (%s) / %s)" % (MOST, increase(UNIT_ENERGY, WHOLE), JOULES), instant=True,
                            table=True),),
              labels=(("uuid", "ID"), ("manager", "Manager")), values=(("Energy", "kwatth"),), origin="energy", width=12),
    )), Row("Over the range", open=True, panels=(
        Panel("stack", "Charged power by share", "Power that was charged to units, ended units and the system, and unallocated power.", "watt",
              (Prom(shares(WHOLE), "{{share}}"),), "energy"),
        Panel("lines", "Measured power", "Power of the whole node as the meters show it: the stack beside it has the same height.", "watt",
              (Prom("sum(%s)" % rate(NODE_ENERGY, WHOLE), "node"),), "energy"),
    )), Row("Meters", (
        Panel("bars", "Rejected energy of the node", "Energy that a counter showed but the hardware cannot have drawn, in the range. It is"
              " part of no other figure.", "kwatth",
              (Prom("topk(20, sum by (source) (increase(%s[$__range])) / %s)" % (selector("ceems_energy_rejected_joules_total", H), JOULES),
                    "{{source}}", instant=True),), "energy", levels=(Level(0, "none", "#0072B2"), Level(1e-9, "some", "#D55E00"))),
        Panel("lines", "Age of the meters", "Age of the newest value of each meter. A line that rises is a silent meter.", "s",
              (Prom("topk(20, max by (source) (%s))" % selector("ceems_energy_source_age_seconds", H), "{{source}}"),), "energy"),
    ))))

ALL = (NODE, AUDIT)
