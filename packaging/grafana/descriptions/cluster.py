"""ceems-cluster and ceems-quality: a whole cluster, for operators with Prometheus itself."""

from .model import Api, Column, Dashboard, Level, Panel, Prom, Row, Variable
from .promql import (ENDED, FACTOR, JOULES, NODE_ENERGY, SYSTEM, UNALLOCATED, UNIT_ENERGY, any_of, charged, in_words, increase, instead,
                     named, rate, same_labels, selector, total)
from .users import PERIOD, SUMS, USAGE_COLUMNS, fields

HERE = 'cluster=~"$cluster"'  # a label of the targets, for a Prometheus with several clusters; "All" matches series without it
NODE = 'domain="node", ' + HERE
PARTS = 'domain!="node", ' + HERE
NODE_LINK = "/d/ceems-node?var-hostname=${__value.text:percentencode}&${__url_time_range}"
CHOSEN = 'provider="$provider", country_code="$country"'
SHARES = (("units", UNIT_ENERGY), ("ended units", ENDED), ("system", SYSTEM), ("unallocated", UNALLOCATED))
SOURCES = (Variable("tsdb", "tsdb", "Metrics"), Variable("api", "api", "API server"))
PROVIDER = Variable("labels", "provider", "Emission provider", query="%s, provider" % FACTOR)
COUNTRY = Variable("labels", "country", "Country", query="%s, country_code" % selector(FACTOR, 'provider="$provider"'))
CLUSTERS = Variable("labels", "cluster", "Cluster", query="%s, cluster" % NODE_ENERGY, several=True)
PUE = Variable("text", "pue", "PUE", "Factor from the energy of the nodes to that of the whole centre. 1 is the nodes alone.", default="1")
BUSY = 'mode!~"idle|iowait|steal", ' + HERE

# The records have their PUE already.
WATTS = same_labels("$pue * sum(%s)" % rate(NODE_ENERGY, NODE),
                    "sum(job:ceems_host_power_watts:pue) + (sum(job:ceems_gpu_power_watts:pue) or vector(0))")
RECORDED = "%s + (%s or vector(0))" % tuple(
    "sum(sum_over_time(job:ceems_%s_power_watts:pue[$__range:1m])) * 60 / %s" % (part, JOULES) for part in ("host", "gpu"))
FACTORS = "max by (provider, country_code) (%s)" % selector(FACTOR, CHOSEN)


def shares(labels, by=""):
    """Power of units, ended units, the system and what nobody reserved: together that of the node, without overlap."""
    return any_of(named(total(rate(metric, labels), by), "share", in_words(share)) for share, metric in SHARES)


def busy(what):
    """Use of CPUs, memory and GPUs as fractions."""
    return any_of((
        named("sum(%s) / sum(%s)" % (rate("ceems_cpu_seconds_total", BUSY), selector("ceems_cpu_count", HERE)), what, in_words("CPU")),
        named("1 - sum(%s) / sum(%s)" % (selector("ceems_meminfo_MemAvailable_bytes", HERE),
                                         selector("ceems_meminfo_MemTotal_bytes", HERE)), what, in_words("memory")),
        named("avg(%s)" % selector("ceems_gpu_utilization_ratio", HERE), what, in_words("GPU")),
        named("sum(%s) / sum(%s)" % (selector("ceems_gpu_memory_used_bytes", HERE), selector("ceems_gpu_memory_total_bytes", HERE)), what,
              in_words("GPU memory"))))


ENERGY_BY_DOMAIN = instead(
    "$pue * sum by (domain) (%s) / %s" % (increase(NODE_ENERGY, PARTS), JOULES),
    any_of(named("sum(sum_over_time(job:ceems_%s_power_watts:pue[$__range:1m])) * 60 / %s" % (part, JOULES), "domain", part)
           for part in ("host", "gpu")))

CLUSTER = Dashboard(
    "ceems-cluster", "Cluster energy", "Energy, emissions and use of all nodes of a cluster.", "operators",
    (*SOURCES, CLUSTERS, PUE, PROVIDER, COUNTRY),
    (Row("Energy", open=True, panels=(
        Panel("stat", "Energy of the cluster", "Energy of all nodes in the range, multiplied by the PUE above.", "kwatth",
              (Prom(same_labels("$pue * sum(%s) / %s" % (increase(NODE_ENERGY, NODE), JOULES),
                                RECORDED), "energy",
                    instant=True),), "counters", width=6, height=7, decimals=1),
        Panel("stat", "Unallocated share", "Share of the nodes' energy that goes to CPUs, memory and GPUs which nobody has reserved.",
              "percentunit", (Prom("sum(%s) / sum(%s)" % (increase(UNALLOCATED, NODE), increase(NODE_ENERGY, NODE)), "unallocated",
                                   instant=True),), "energy", width=6, height=7,
              levels=(Level(0, "low", "#0072B2"), Level(0.2, "fair", "#E69F00"), Level(0.5, "high", "#D55E00"))),
        Panel("bars", "Energy by domain", "Energy of CPU packages, memory, GPUs and other (fans, disks, losses) in the range, multiplied"
              " by the PUE above.", "kwatth", (Prom(ENERGY_BY_DOMAIN, "{{domain}}", instant=True),), "counters", width=12, height=7,
              decimals=1),
        Panel("stack", "Power of all nodes by share", "Power of units, of units that ended just now and of the system, and unallocated"
              " power. Without PUE.", "watt", (Prom(shares(NODE), "{{share}}"),), "energy", width=12),
        Panel("lines", "Emission rate of the cluster", "Power of all nodes multiplied by the emission factor of the chosen provider and"
              " country, and by the PUE above.", "gps",
              (Prom("(%s) / %s * on () group_right () %s" % (WATTS, JOULES, FACTORS), "{{provider}} {{country_code}}"),),
              "factors", width=12),
    )), Row("Use", open=True, panels=(
        Panel("bars", "Use of the cluster now", "CPUs that are busy, memory in use, and the mean use of GPUs and their memory, of what the"
              " nodes have.", "percentunit", (Prom(busy("part"), "{{part}}", instant=True),), "exporter", width=12),
        Panel("table", "Users and projects", "Users and projects that used most in the range, the largest first.",
              queries=(Api("usage/current/admin", (*PERIOD, *fields(
                  "cluster_id", "username", "project", "num_units", "total_time_seconds", "total_cpu_energy_usage_kwh",
                  "total_gpu_energy_usage_kwh", "total_cpu_emissions_gms", "total_gpu_emissions_gms")),
                  (Column("cluster_id", "cluster_id", "Cluster"), *USAGE_COLUMNS[:5], *SUMS)),),
              origin="api admin", width=12, sort="energy"),
    )), Row("Nodes", (
        Panel("table", "Nodes", "The 50 nodes that draw most, with their unallocated share and how their energy was found.",
              queries=(Prom("topk(50, sum by (hostname) (%s))" % rate(NODE_ENERGY, NODE), instant=True, table=True),
                       Prom("topk(50, sum by (hostname) (%s) / sum by (hostname) (%s))" % (rate(UNALLOCATED, NODE), rate(NODE_ENERGY, NODE)),
                            instant=True, table=True),
                       Prom("topk(50, max by (hostname, method) (%s))" % selector("ceems_energy_source_info", NODE), instant=True,
                            table=True)),
              labels=(("hostname", "Node"), ("method", "Method")), values=(("Power", "watt"), ("Unallocated", "percentunit"), ("", "")),
              origin="energy", width=24, height=10, links=(("hostname", NODE_LINK),)),
    )), Row("Over time", (
        Panel("stack", "Power of all nodes by domain", "Power of CPU packages, memory, GPUs and other (fans, disks, losses).", "watt",
              (Prom("sum by (domain) (%s)" % rate(NODE_ENERGY, PARTS), "{{domain}}"),), "energy"),
        Panel("lines", "Use of the cluster over time", "CPUs that are busy, memory in use, and the mean use of GPUs and their memory, of"
              " what the nodes have.", "percentunit", (Prom(busy("part"), "{{part}}"),), "exporter"),
        Panel("lines", "Units", "Units on all nodes by manager.", "count", (Prom("sum by (manager) (%s)" % selector("ceems_compute_units", HERE), "{{manager}}"),),
              "exporter"),
        Panel("lines", "Emission factors", "Factors of all providers for all countries that are exported, at most 20.", "gpkwh",
              (Prom("topk(20, max by (provider, country_code) (%s))" % FACTOR, "{{provider}} {{country_code}}"),), "exporter"),
    ))))

IMBALANCE = "abs(sum by (hostname) (%s) / sum by (hostname) (%s) - 1)" % (charged(NODE), selector(NODE_ENERGY, NODE))

QUALITY = Dashboard(
    "ceems-quality", "Energy quality", "How far the energy figures of this cluster can be trusted.", "operators",
    (SOURCES[0], CLUSTERS),
    (Row("Meters", open=True, panels=(
        Panel("bars", "Nodes by method", "Number of nodes whose energy was measured, derived from a measured value, or modelled.", "count",
              (Prom("count by (method) (%s)" % selector("ceems_energy_source_info", NODE), "{{method}}", instant=True),), "energy",
              width=8),
        Panel("stat", "Nodes without energy", "Exporters that answer but export no energy of their node.", "count",
              (Prom("count(%s unless on (instance) %s) or vector(0)" % (
                  selector("ceems_exporter_build_info", HERE), selector(NODE_ENERGY, NODE)), "nodes",
                    instant=True),), "energy", width=4, levels=(Level(0, "none", "#0072B2"), Level(1, "some", "#D55E00"))),
        Panel("table", "Silent sources", "Sources of energy without a new value for two minutes, the oldest 50.",
              queries=(Prom("topk(50, %s > 120)" % selector("ceems_energy_source_age_seconds", HERE), instant=True, table=True),),
              labels=(("hostname", "Node"), ("source", "Source")), values=(("Age", "s"),), origin="energy", width=12),
        Panel("table", "Modelled nodes", "At most 50 nodes whose energy is modelled: calibrate the model or connect a meter.",
              queries=(Prom("topk(50, max by (hostname, source) (%s))" % selector("ceems_energy_source_info", 'method="modelled", ' + NODE),
                            instant=True, table=True),), labels=(("hostname", "Node"), ("source", "Source")), values=(("", ""),),
              origin="energy", width=12),
        Panel("table", "Rejected energy", "Energy that a counter showed but the hardware cannot have drawn, in the range: the 50 largest.",
              queries=(Prom("topk(50, sum by (hostname, source) (%s) / %s > 0)" % (
                  increase("ceems_energy_rejected_joules_total", HERE), JOULES),
                            instant=True, table=True),), labels=(("hostname", "Node"), ("source", "Source")),
              values=(("Energy", "kwatth"),), origin="energy", width=12),
    )), Row("Accounts", open=True, panels=(
        Panel("stat", "Largest imbalance", "Energy of units, ended units, system and unallocated compared with that of the node, for the"
              " worst node. It is zero up to rounding; anything else is a bug: please report it.", "percentunit",
              (Prom("max(%s)" % IMBALANCE, "imbalance", instant=True),), "energy", width=6, decimals=4,
              levels=(Level(0, "good", "#0072B2"), Level(0.02, "wrong", "#D55E00"))),
        Panel("lines", "System share", "Energy of everything that is not a unit (kernel, daemons, logins) as a share of all energy. Where it"
              " is high, units may not be discovered.", "percentunit",
              tuple(Prom("%s(sum by (hostname) (%s) / sum by (hostname) (%s))" % (function, rate(SYSTEM, NODE), rate(NODE_ENERGY, NODE)),
                         text) for function, text in (("min", "lowest node"), ("avg", "mean of the nodes"), ("max", "highest node"))),
              "energy", width=18),
        Panel("table", "Units without energy", "At most 50 nodes with units that have no energy counter.",
              queries=(Prom("topk(50, count by (hostname) (%s unless on (hostname, uuid) %s))" % (
                  selector("ceems_compute_unit_memory_used_bytes", HERE), UNIT_ENERGY), instant=True, table=True),), labels=(("hostname", "Node"),), values=(("Units", "count"),),
              origin="exporter", width=12),
    )), Row("Rules", (
        Panel("bars", "Failed rules", "Evaluations of recording and alerting rules that failed in the range, by group: the 20 worst.", "count",
              (Prom("topk(20, sum by (rule_group) (increase(prometheus_rule_evaluation_failures_total[$__range])))", "{{rule_group}}",
                    instant=True),), "health", width=12, levels=(Level(0, "none", "#0072B2"), Level(1, "some", "#D55E00"))),
    ))))

ALL = (CLUSTER, QUALITY)
