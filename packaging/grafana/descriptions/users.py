"""ceems-my-units and ceems-project: what the API shows a user. No path is for admins only, so every panel answers every user."""

from .model import Api, Column, Dashboard, Panel, Row, Shared, Variable
from .promql import FACTOR

PERIOD = (("from", "${__from:date:seconds}"), ("to", "${__to:date:seconds}"))
UNIT_LINK = ("/d/ceems-unit?var-tsdb=ceems-tsdb-${__data.fields.cluster_id}&var-profiles=ceems-profiles-${__data.fields.cluster_id}"
             "&var-cluster=${__data.fields.cluster_id}&var-uuid=${__data.fields.uuid:percentencode}"
             "&from=${__data.fields.since}&to=${__data.fields.until}")
SHOWN_UNITS = 500

CLUSTER = Variable("names", "cluster", "Cluster", query="projects", field="cluster_id", params=(("field", "cluster_id"),))
PROVIDER = Variable("labels", "provider", "Emission provider", query="%s, provider" % FACTOR)
SOURCES = (Variable("tsdb", "tsdb", "Metrics"), Variable("api", "api", "API server"))


def fields(*names):
    return tuple(("field", name) for name in names)


def added(kind):
    """Energy or emissions of host and GPUs; nothing where neither is known."""
    key = {"energy_usage_kwh": "total", "emissions_gms": "${provider}_total"}[kind]
    return "$sum($append(total_cpu_%s.%s, total_gpu_%s.%s))" % (kind, key, kind, key)


HOURS = "total_time_seconds.%s / 3600"
SUMS = (
    Column("host_energy", "total_cpu_energy_usage_kwh.total", "Host energy", "kwatth", "number"),
    Column("gpu_energy", "total_gpu_energy_usage_kwh.total", "GPU energy", "kwatth", "number"),
    Column("energy", added("energy_usage_kwh"), "Energy", "kwatth", "number"),
    Column("emissions", added("emissions_gms"), "Emissions", "massg", "number"))
USE_FIELDS = ("total_time_seconds", "total_cpu_energy_usage_kwh", "total_gpu_energy_usage_kwh", "total_cpu_emissions_gms",
              "total_gpu_emissions_gms")
USAGE_COLUMNS = (
    Column("username", "username", "User"), Column("project", "project", "Project"),
    Column("num_units", "num_units", "Units", "count", "number"),
    Column("cpu_hours", HOURS % "alloc_cputime", "CPU hours reserved", "h", "number"),
    Column("gpu_hours", HOURS % "alloc_gputime", "GPU hours reserved", "h", "number"), *SUMS)

UNITS = Api(
    "units",
    (("cluster_id", "$cluster"), *PERIOD, ("running", "1"), ("sort", "ended_at"), ("limit", str(SHOWN_UNITS)),
     *fields("cluster_id", "uuid", "name", "project", "state", "elapsed", "started_at_ts", "ended_at_ts", "avg_cpu_usage",
             "avg_cpu_mem_usage", "avg_gpu_usage", *USE_FIELDS[1:])),
    (Column("uuid", "uuid", "ID"), Column("name", "name", "Name"), Column("project", "project", "Project"),
     Column("state", "state", "State"), Column("started_at_ts", "started_at_ts", "Start", kind="timestamp_epoch"),
     Column("elapsed", "elapsed", "Elapsed"), Column("cpu_use", "avg_cpu_usage.global", "CPU use", "percent", "number"),
     Column("memory_use", "avg_cpu_mem_usage.global", "Memory use", "percent", "number"),
     Column("gpu_use", "avg_gpu_usage.global", "GPU use", "percent", "number"), *SUMS,
     # For the link only.
     Column("cluster_id", "cluster_id"), Column("since", "$string(started_at_ts)"),
     Column("until", 'ended_at_ts > 0 ? $string(ended_at_ts) : "now"')))

MY_USAGE = Api("usage/current", (("cluster_id", "$cluster"), *PERIOD, *fields("username", "project", "num_units", *USE_FIELDS)),
               USAGE_COLUMNS, filter='username == "${__user.login}"')

MY_UNITS = Dashboard(
    "ceems-my-units", "My units", "The jobs, VMs and pods of the person who is logged in, and what they used.", "users",
    (*SOURCES, CLUSTER, PROVIDER),
    (Row("Totals", open=True, panels=(
        Panel("stat", "Energy of my units", "Energy of all my units that were updated in the range, host and GPUs.", "kwatth",
              (Shared("mine", ("energy",)),), "api", width=6, height=4, calculation="sum", decimals=2),
        Panel("stat", "Emissions of my units", "Emissions of these units by the chosen provider.", "massg",
              (Shared("mine", ("emissions",)),), "api", width=6, height=4, calculation="sum", decimals=1),
        Panel("stat", "Number of my units", "All my units in the range.", "count", (Shared("mine", ("num_units",)),), "api", width=6,
              height=4, calculation="sum"),
        Panel("stat", "Units in the list", "Units that the list below shows: the newest %d. If there are more, choose a shorter range."
              % SHOWN_UNITS, "count", (Shared("units", ("uuid",)),), "api", width=6, height=4, calculation="count"),
    )), Row("Units", open=True, panels=(
        Panel("table", "My units", "The newest %d units of the range, running ones first. The ID leads to the unit's dashboard." % SHOWN_UNITS,
              queries=(UNITS,), origin="api", width=24, height=12, key="units", links=(("uuid", UNIT_LINK),)),
    )), Row("By project and week", open=True, panels=(
        Panel("table", "My use by project", "Sums of my units in the range for each of my projects.", queries=(MY_USAGE,), origin="api",
              width=24, height=6, key="mine", sort="energy"),
        Panel("columns", "My energy by project", "Host and GPU energy of my units for each project.", "kwatth",
              (Shared("mine", ("project", "host_energy", "gpu_energy")),), "api"),
        Panel("columns", "Energy of the listed units by week", "Energy of the units in the list above, by the week in which they started.",
              "kwatth", (Shared("units", ("started_at_ts", "host_energy", "gpu_energy"), by_week="started_at_ts"),), "api"),
    ))), since="now-7d")

PROJECT_USE = (("cluster_id", "$cluster"), ("project", "$project"))


def weighted(metric, weight):
    """The average over the members of the project, weighted by the time that they reserved: an idle member does not halve it."""
    return "$sum(data.(%s.global * total_time_seconds.%s)) / $sum(data[$exists(%s.global)].total_time_seconds.%s)" % (
        metric, weight, metric, weight)


AVERAGES = Api(
    "usage/current", (*PROJECT_USE, *PERIOD, *fields("username", "total_time_seconds", "avg_cpu_usage", "avg_cpu_mem_usage",
                                                      "avg_gpu_usage", "avg_gpu_mem_usage")),
    (Column("cpu", weighted("avg_cpu_usage", "alloc_cputime"), "CPU", "percent", "number"),
     Column("memory", weighted("avg_cpu_mem_usage", "alloc_cpumemtime"), "Memory", "percent", "number"),
     Column("gpu", weighted("avg_gpu_usage", "alloc_gputime"), "GPU", "percent", "number"),
     Column("gpu_memory", weighted("avg_gpu_mem_usage", "alloc_gpumemtime"), "GPU memory", "percent", "number")), whole=True)


def month(title, ago):
    return Panel("columns", title, "Host and GPU energy of each member of the project in that month.", "kwatth",
                 (Api("usage/current", (*PROJECT_USE, *PERIOD, *fields("username", *USE_FIELDS[1:3])),
                      (USAGE_COLUMNS[0], *SUMS[:2])),), "api", width=8, months_ago=ago)


PROJECT = Dashboard(
    "ceems-project", "Project", "What the members of a project used together. Its members and leads can see it.", "users",
    (*SOURCES, CLUSTER,
     Variable("names", "project", "Project", query="projects", field="name", params=(("cluster_id", "$cluster"), ("field", "name"))),
     PROVIDER),
    (Row("Totals", open=True, panels=(
        Panel("stat", "Energy of the project", "Energy of all units of the project that were updated in the range, host and GPUs.",
              "kwatth", (Shared("members", ("energy",)),), "api", width=6, height=5, calculation="sum", decimals=2),
        Panel("stat", "Emissions of the project", "Emissions of these units by the chosen provider.", "massg",
              (Shared("members", ("emissions",)),), "api", width=6, height=5, calculation="sum", decimals=1),
        Panel("stat", "Units of the project", "Number of these units.", "count", (Shared("members", ("num_units",)),), "api", width=4,
              height=5, calculation="sum"),
        Panel("stat", "Average use of what was reserved", "Averages over all units of the project, weighted by the time that they"
              " reserved.", "percent", (AVERAGES,), "api", width=8, height=5),
    )), Row("Members", open=True, panels=(
        Panel("table", "Use by member", "Sums of each member's units in the range. To export it: menu of the panel, Inspect, Data,"
              " Download CSV.",
              queries=(Api("usage/current", (*PROJECT_USE, *PERIOD, *fields("username", "project", "num_units", *USE_FIELDS)),
                           USAGE_COLUMNS),), origin="api", width=24, height=8, key="members", sort="energy"),
        Panel("columns", "Energy by member", "Host and GPU energy of each member of the project.", "kwatth",
              (Shared("members", ("username", "host_energy", "gpu_energy")),), "api", width=24),
    )), Row("Months", open=True, panels=(
        month("Energy by member, this month", 0), month("Energy by member, last month", 1),
        month("Energy by member, two months ago", 2),
    ))), since="now-30d")

ALL = (MY_UNITS, PROJECT)
