"""ceems-alerts.yml. The numbers of the alerts are those of the table in docs/prometheus.md."""

from . import Alert, Group, alerts_servers

TARGET = "cluster, ceems_id, job, instance"
BUSY = 'ceems_cpu_seconds_total{mode!~"idle|iowait|steal"}'
NODE = 'ceems_node_energy_joules_total{domain="node"}'
WATTS = 'hostname:ceems_node_power_watts:rate{domain="node",virtual!="true"}'


def host(expr):
    """With a label for the host, which jobs of other exporters have in common."""
    return 'label_replace(%s, "host", "$1", "instance", "(.*?)(?::[0-9]+)?")' % expr


def exporter_alerts(settings):
    ours, others = settings.exporters, settings.exporters.replace("=~", "!~") if "=~" in settings.exporters else \
        settings.exporters.replace("=", "!=")
    yield Alert(
        1, "CeemsExporterDown",
        "%s\nand on (host)\n%s\nunless on (host) ceems:node_off" % (host("up{%s} == 0" % ours), host("up{%s} == 1" % others)),
        "warning", "ceems_exporter on {{ $labels.instance }} does not answer, although the node is up",
        "Look at the service on the node: systemctl status ceems_exporter. Energy of this time is missing for all units of the node.",
        "Another target on the same host answers, so nodes that are switched off do not page. `ceems:node_off`, with the label `host`, may be "
        "a record of the site that names drained nodes.", "10m")
    yield Alert(
        1, "CeemsExportersDown",
        "count by (cluster, job) (up{{{0}}} == 0) / count by (cluster, job) (up{{{0}}}) > 0.05\n"
        "and\ncount by (cluster, job) (up{{{0}}} == 0) > 1".format(ours),
        "critical", "More than 5 % of the exporters of job {{ $labels.job }} do not answer",
        "Look for what they have in common: a network, an update, a changed password or certificate.",
        "Threshold: 5 % of the nodes, and at least two. Raise it where more nodes are switched off at times.", "10m")
    yield Alert(
        2, "CeemsExporterMissing", "up{%s} offset 1h\nunless on (%s) up{%s}" % (ours, TARGET, ours),
        "warning", "{{ $labels.instance }} was scraped an hour ago and is no longer a target",
        "If the node was not removed on purpose, look at the service discovery of Prometheus.",
        "It fires for 45 minutes and then ends by itself, because an hour ago is then after the loss.", "15m")
    yield Alert(
        3, "CeemsScrapeSlow", "scrape_duration_seconds{%s} > 7" % ours,
        "warning", "Scrapes of {{ $labels.instance }} come close to the timeout",
        "ceems_scrape_collector_duration_seconds names the slow collector.",
        "Threshold: 7 s, 0.7 of Prometheus' default scrape_timeout of 10 s.", "15m")
    yield Alert(
        4, "CeemsCollectorFailing", "ceems_scrape_collector_success == 0",
        "warning", "The collector {{ $labels.collector }} on {{ $labels.instance }} fails",
        "Run ceems_exporter doctor on the node with the flags of the service; it says what is missing.",
        "A single failed scrape does not alert.", "15m")
    yield Alert(
        5, "CeemsBmcSilent", 'ceems_exporter_source_age_seconds{collector=~"ipmi|ipmi_dcmi|redfish"} > 300',
        "warning", "The BMC of {{ $labels.instance }} has not answered for five minutes",
        "Ask it by hand (ipmitool dcmi power reading, or curl for Redfish). Often it needs a reset: ipmitool mc reset cold.",
        "Threshold: 300 s. BMCs are read every few seconds and may be busy for a minute.", "10m")


def energy_alerts():
    yield Alert(
        6, "CeemsEnergySourceSilent", "ceems_energy_source_age_seconds > 120",
        "warning", "The energy source {{ $labels.source }} of {{ $labels.instance }} is silent",
        "ceems_exporter doctor on the node says why. Meanwhile the energy of its domain is that of the sources that still answer.",
        "Threshold: 120 s, after which the exporter no longer believes the last reading of a wall meter.", "10m")
    yield Alert(
        7, "CeemsEnergySourceLost",
        "ceems_energy_source_info offset 1h\nunless on ({0}, domain, source) ceems_energy_source_info\n"
        "and on ({0}) up == 1".format(TARGET),
        "warning", "{{ $labels.instance }} no longer has the energy source {{ $labels.source }} of domain {{ $labels.domain }}",
        "Compare the flags and privileges of the service with an hour ago; a kernel update can change the rights on powercap files.",
        "It fires for 45 minutes and then ends by itself.", "15m")
    yield Alert(
        8, "CeemsEnergyModelled",
        'count by (cluster, job) (ceems_energy_source_info{domain="node",method="modelled",virtual!="true"}) > 0',
        "info", "Nodes of job {{ $labels.job }} have no power meter; their energy is estimated",
        "Give the exporter access to RAPL, IPMI or Redfish, or calibrate the model (docs/energy.md). Label targets that are virtual machines "
        'with virtual="true".',
        "Virtual machines are left out if their targets have the label virtual=\"true\".", "1h")
    yield Alert(
        9, "CeemsEnergyStuck",
        "sum by ({0}) (rate({1}[10m])) == 0\nand on ({0})\nsum by ({0}) (rate({2}[10m])) > 1".format(TARGET, NODE, BUSY),
        "warning", "The energy counter of {{ $labels.instance }} stands still although CPUs are busy",
        "The meter repeats a value. Compare ceems_energy_source_age_seconds and the meter itself; restart the exporter if they differ.",
        "Threshold: more than one CPU busy on average over ten minutes.", "15m")
    yield Alert(
        10, "CeemsEnergyUnbalanced", "abs(hostname:ceems_energy_balance:ratio - 1) > 0.02",
        "warning", "On {{ $labels.hostname }} the energy of units, system and unallocated does not add up to that of the node",
        "This is a bug. Save the page of the exporter (curl http://NODE:9010/metrics) and report it.",
        "Threshold: 2 %. The exporter keeps the sum to rounding, so any lasting difference is wrong.", "30m")
    yield Alert(
        11, "CeemsEnergyUnaccounted",
        'hostname:ceems_system_power_watts:rate{domain="node"} / hostname:ceems_node_power_watts:rate{domain="node"} > 0.3',
        "info", "More than 30 % of the energy of {{ $labels.hostname }} goes to processes that belong to no unit",
        "Daemons, logins, or units that are not found: compare ceems_compute_units with the resource manager.",
        "Threshold: 30 %. Daemons of a compute node take a few per cent of the active energy.", "2h")
    yield Alert(
        12, "CeemsUnitsUndiscovered",
        'sum by ({0}) (ceems_compute_units{{manager=~"slurm|lsf|openpbs|k8s|libvirt"}}) == 0\nand on ({0})\n'
        "sum by ({0}) (rate({1}[5m])) / on ({0}) sum by ({0}) (ceems_cpu_count) > 0.5".format(TARGET, BUSY),
        "warning", "{{ $labels.instance }} is busy, but the exporter sees no units",
        "Compare the cgroups of the jobs with those that the collector expects (ceems_exporter doctor). Several slurmd on one host, or "
        "jobs without cgroups, are the usual reasons.",
        "Threshold: half of the CPUs busy.", "30m")
    yield Alert(
        13, "CeemsPowerImplausible",
        "{0} > 15000\nor\n{0} < 20\nor\n{0} > 3 * max_over_time({0}[6d:1h] offset 1d)".format(WATTS),
        "warning", "The power of {{ $labels.hostname }} is not plausible",
        "Compare with the BMC's own page or the power strip. A wrong unit or chassis, or a meter that covers several nodes, shows like this.",
        "Thresholds: 15000 W is more than any node with eight GPUs draws: lower it to the largest of the site. 20 W is less than any server "
        "at idle. The third is three times the most of the week before.", "10m")
    yield Alert(
        14, "CeemsMetersDisagree",
        '(\n  avg_over_time(hostname:ceems_node_power_watts:rate{{domain="other"}}[6h:5m]) == 0\n'
        '  and on (cluster, ceems_id, hostname) ceems_energy_source_info{{domain="node",method!="modelled",source!="sum"}}\n)\n'
        'or\n(\n  avg_over_time(hostname:ceems_node_power_watts:rate{{domain="node"}}[6h:5m])\n'
        "    > on ({0})\n"
        '  3 * sum by ({0}) (avg_over_time(hostname:ceems_node_power_watts:rate{{domain=~"package|dram|gpu"}}[6h:5m]))\n)'.format(
            "cluster, ceems_id, hostname"),
        "info", "The wall meter of {{ $labels.hostname }} and its RAPL or GPU counters disagree",
        "A meter below the sum of its parts, or above three times this sum, usually measures another chassis, or more than this node.",
        "Thresholds over means of six hours: nothing left for fans and disks, or node more than three times the known parts.", "6h")
    yield Alert(
        18, "CeemsUnallocatedHigh",
        'sum by (cluster) (avg_over_time(cluster:ceems_unallocated_power_watts:rate{domain="node"}[1d]))\n'
        '  / sum by (cluster) (avg_over_time(cluster:ceems_power_watts:rate{domain="node"}[1d])) > 0.5',
        "info", "Over a day, half of the energy was idle power that no unit had reserved",
        "Power down idle nodes (SLURM: SuspendProgram), or look for reservations that nobody uses.",
        "Threshold: 50 % over a day.", "1h")
    yield Alert(
        19, "CeemsEmissionFactorGone",
        "group by (provider) (ceems_emissions_gCo2_kWh offset 1d)\nunless on (provider) group by (provider) (ceems_emissions_gCo2_kWh)",
        "warning", "The provider {{ $labels.provider }} has given no emission factor for six hours",
        "Look at the log of the exporter with --collector.emissions: a proxy, a token that has expired, or a service that has moved.",
        "It fires for 18 hours and then ends by itself.", "6h")
    yield Alert(
        37, "CeemsUnitsWithoutEnergy",
        "sum by ({0}) (ceems_compute_units) > 0\nand on ({0}) {1}\nunless on ({0}) ceems_compute_unit_energy_joules_total{{domain=\"node\"}}".format(
            TARGET, NODE),
        "warning", "{{ $labels.instance }} has units, but no energy of units",
        "The sampler does not find the units that the page shows. Look at the log of the exporter and report it.",
        "The sampler sees a unit within a second.", "15m")


def gpu_alerts():
    yield Alert(
        15, "CeemsGpuEnergyMissing",
        'group by ({0}) (ceems_gpu_info)\nand on ({0}) {1}\nunless on ({0}) ceems_node_energy_joules_total{{domain="gpu"}}'.format(
            TARGET, NODE),
        "warning", "{{ $labels.instance }} has GPUs whose energy is not counted",
        "The driver gives neither power nor energy of them; ceems_exporter doctor names the library and the error.",
        "GPUs are read about once a second.", "30m")
    yield Alert(
        16, "CeemsGpuErrors",
        'increase(ceems_gpu_xid_errors_total{xid!~"13|31|43|45"}[15m]) > 0\nor\n'
        '(ceems_gpu_xid_errors_total{xid!~"13|31|43|45"} unless ceems_gpu_xid_errors_total offset 15m) > 0\nor\n'
        'increase(ceems_gpu_ecc_errors_total{type="uncorrected"}[15m]) > 0',
        "warning", "The GPU {{ $labels.gpuuuid }} of {{ $labels.instance }} reports errors",
        "Look up the Xid in NVIDIA's list. Drain the node after uncorrected memory errors, and replace the GPU if they return.",
        "Xids 13, 31, 43 and 45 are left out, because faults of programs cause them. A counter that is new counts from 0.")
    yield Alert(
        38, "CeemsGpuMissing",
        'ceems_gpu_up == 0\nor\n'
        '(ceems_gpu_info{{gpuiid=""}} offset 1h unless on ({0}, gpuuuid) ceems_gpu_info)\nand on ({0}) up == 1'.format(TARGET),
        "warning", "The GPU {{ $labels.gpuuuid }} of {{ $labels.instance }} does not answer",
        "Drain the node, look for Xid in its kernel log, and reset the GPU or reboot. Its energy is not counted meanwhile.",
        "The exporter opens the library again by itself, after 5 s and later every minute. A GPU that is gone from the page was there an "
        "hour ago.", "10m")
    yield Alert(
        17, "CeemsGpuHints", "ceems_exporter_unit_gpu_hints > 0",
        "info", "On {{ $labels.instance }} it is taken from the environment of jobs which GPUs they hold",
        "Users can change their environment. Constrain devices by cgroup (SLURM: ConstrainDevices=yes), or give the exporter the rights "
        "that doctor asks for.",
        "Anything above 0, for a day.", "1d")


GROUPS = (
    # name, interval, runbook, function
    ("ceems-exporter-alerts", "1m", "exporter", exporter_alerts),
    ("ceems-energy-alerts", "5m", "energy", lambda settings: energy_alerts()),
    ("ceems-gpu-alerts", "1m", "gpu", lambda settings: gpu_alerts()),
    ("ceems-api-server-alerts", "1m", "api-server", lambda settings: alerts_servers.api_alerts(host)),
    ("ceems-lb-alerts", "1m", "load-balancer", lambda settings: alerts_servers.lb_alerts()),
    ("ceems-rule-alerts", "1m", "rules", lambda settings: alerts_servers.rule_alerts()),
    ("ceems-record-alerts", "5m", "rules", lambda settings: alerts_servers.record_alerts(TARGET)),
    ("ceems-stack-alerts", "1m", "programs", lambda settings: alerts_servers.program_alerts(settings, host)),
)


def groups(settings):
    made = []
    for name, interval, page, make in GROUPS:
        alerts = list(make(settings))
        for alert in alerts:
            alert.page = page
        made.append(Group(name, alerts, interval=interval))
    return made
