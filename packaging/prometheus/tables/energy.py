"""ceems.rules.yml: power by unit, node and cluster from the energy counters of ceems_exporter."""

from . import Group, Record, duration

# Labels of the site, such as cluster, ceems_id or partition, stay on records of units and nodes. Those of clusters keep these two.
CLUSTER = "cluster, ceems_id"


def groups(settings):
    window = settings.window

    def rate(metric):
        return "rate(%s[%s])" % (metric, window)

    def of_nodes(name, metric, dropped="instance, job"):
        return Record("hostname:ceems_%s_power_watts:rate" % name, "sum without (%s) (%s)" % (dropped, rate(metric)))

    def of_cluster(name, record):
        return Record("cluster:ceems_%s:rate" % name, "sum by (%s, domain) (hostname:ceems_%s:rate)" % (CLUSTER, record))

    return [
        Group("ceems-units", interval=duration(settings.interval), comment="Watts and busy CPUs of units, on each node.", rules=[
            Record("uuid:ceems_unit_power_watts:rate",
                   "sum without (instance, job, cgrouphostname) (%s)" % rate("ceems_compute_unit_energy_joules_total")),
            Record("uuid:ceems_cpu_cores:rate",
                   "sum without (instance, job, cgrouphostname) (\n"
                   "  %s\n  + %s\n)" % (rate("ceems_compute_unit_cpu_user_seconds_total"),
                                        rate("ceems_compute_unit_cpu_system_seconds_total"))),
        ]),
        Group("ceems-nodes", interval=duration(settings.interval), comment=(
                "Watts of nodes and clusters by domain. The domain `node` contains the others: never sum over all of them."), rules=[
            of_nodes("node", "ceems_node_energy_joules_total", "instance, job, source"),
            of_nodes("system", "ceems_system_energy_joules_total"),
            of_nodes("unallocated", "ceems_unallocated_energy_joules_total"),
            of_cluster("power_watts", "node_power_watts"),
            of_cluster("system_power_watts", "system_power_watts"),
            of_cluster("unallocated_power_watts", "unallocated_power_watts"),
            Record("hostname:ceems_energy_balance:ratio", (
                "sum by ({0}, hostname) (\n"
                '  {{__name__=~"ceems_(compute_unit|ended_units|system|unallocated)_energy_joules_total",domain="node"}}\n'
                ")\n"
                "/\n"
                '(sum by ({0}, hostname) (ceems_node_energy_joules_total{{domain="node"}}) > 0)').format(CLUSTER), comment=(
                "1 as long as the parts add up to the node. It compares the counters themselves, because the counter of ended units "
                "jumps when a unit ends.")),
        ]),
        Group("ceems-emission-factors", interval="1m", comment="One factor per provider and country, however many exporters export it.",
              rules=[Record("provider:ceems_emission_factor:max", "max by (provider, country_code) (ceems_emissions_gCo2_kWh)")]),
    ]
