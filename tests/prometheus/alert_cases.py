"""For each alert, series that make it fire, with the labels of what fires, and series that must not.

A case is at(time) with `fires` and `labels`, and one or more `quiet` lists. Values are in the notation of promtool; `step` is the time
between them and between evaluations."""

import dataclasses

N1 = 'cluster="c1",job="ceems",instance="n1:9010"'
NODE1 = N1 + ',hostname="n1"'
T = {"cluster": "c1", "job": "ceems", "instance": "n1:9010"}
API = 'job="ceems_api_server",instance="api:9020"'
LB = 'job="ceems_lb",instance="lb:9030"'
DAY = 86400


@dataclasses.dataclass
class Case:
    at: str
    fires: list
    labels: dict
    quiet: list  # of lists of series
    step: str = "1m"


def busy(labels, cpus):
    """Counters of CPU time of a node of 16 CPUs."""
    return [('ceems_cpu_seconds_total{%s,mode="%s"}' % (labels, mode), "0+%gx400" % (60 * rate))
            for mode, rate in (("user", cpus), ("idle", 16 - cpus))] + [("ceems_cpu_count{%s}" % labels, "16x400")]


def energy(labels, of_watts, domain="node"):
    return ('ceems_node_energy_joules_total{%s,domain="%s",source="ipmi"}' % (labels, domain), "0+%gx400" % (60 * of_watts))


def info(labels, domain="node", source="ipmi", method="derived", values="1x400"):
    return ('ceems_energy_source_info{%s,domain="%s",source="%s",method="%s"}' % (labels, domain, source, method), values)


def watts(record, domain, values, host="n1", more=""):
    return ('hostname:ceems_%s_power_watts:rate{cluster="c1",hostname="%s",domain="%s"%s}' % (record, host, domain, more), values)


def ups(down, up, job="ceems"):
    return [('up{cluster="c1",job="%s",instance="%d:9010"}' % (job, i), "%dx400" % (i >= down)) for i in range(down + up)]


def increase(metric, labels, firing_labels, at="30m", grows="0x10 1+1x400", quiet=("0x400",), **more):
    """An alert on a counter that grows from minute 10 on."""
    series = "%s{%s}" % (metric, labels)
    return Case(at=at, fires=[(series, grows)], labels=firing_labels, quiet=[[(series, values)] for values in quiet], **more)


def for_nodes():
    return {
        "CeemsExporterDown": Case(
            at="20m", labels=dict(T, host="n1"),
            fires=[("up{%s}" % N1, "1 0x400"), ('up{job="node",instance="n1:9100"}', "1x400")],
            quiet=[[("up{%s}" % N1, "0x400")],  # the node is off
                   [("up{%s}" % N1, "0x400"), ('up{job="node",instance="n1:9100"}', "0x400")],
                   [("up{%s}" % N1, "0x400"), ('up{job="node",instance="n2:9100"}', "1x400")],
                   [("up{%s}" % N1, "0x400"), ('up{job="node",instance="n1:9100"}', "1x400"), ('ceems:node_off{host="n1"}', "1x400")],
                   [("up{%s}" % N1, "0x5 1x400"), ('up{job="node",instance="n1:9100"}', "1x400")]]),
        "CeemsExportersDown": Case(
            at="20m", fires=ups(2, 30), labels={"cluster": "c1", "job": "ceems"}, quiet=[ups(1, 5), ups(2, 40), ups(2, 2, "node")]),
        "CeemsExporterMissing": Case(
            at="85m", fires=[("up{%s}" % N1, "1x65 stale")], labels=T,
            quiet=[[("up{%s}" % N1, "1x400")], [("up{%s}" % N1, "0x400")], [("up{%s}" % N1, "_x60 1x400")],
                   [("up{%s}" % N1, "1x10 stale")]]),
        "CeemsScrapeSlow": Case(
            at="20m", fires=[("scrape_duration_seconds{%s}" % N1, "8x400")], labels=T,
            quiet=[[("scrape_duration_seconds{%s}" % N1, "6.9x400")], [('scrape_duration_seconds{job="x"}', "9x400")]]),
        "CeemsCollectorFailing": Case(
            at="20m", fires=[('ceems_scrape_collector_success{%s,collector="slurm"}' % N1, "0x400")], labels=dict(T, collector="slurm"),
            quiet=[[('ceems_scrape_collector_success{%s,collector="slurm"}' % N1, "0 1 0 1 1 0 1 1 1 0 1x400")]]),
        "CeemsBmcSilent": Case(
            at="15m", fires=[('ceems_exporter_source_age_seconds{%s,collector="redfish",source="s"}' % N1, "301x400")],
            labels=dict(T, collector="redfish", source="s"),
            quiet=[[('ceems_exporter_source_age_seconds{%s,collector="redfish",source="s"}' % N1, "299x400")],
                   [('ceems_exporter_source_age_seconds{%s,collector="emissions",source="s"}' % N1, "3000x400")]]),
    }


def for_energy():
    age = 'ceems_energy_source_age_seconds{%s,source="ipmi"}' % NODE1
    e = "ceems_compute_unit_energy_joules_total{%s,uuid=\"a\",domain=\"%s\"}"
    units = 'ceems_compute_units{%s,manager="%s"}'
    hosts = "ceems_compute_units{%s}" % N1
    cluster = 'cluster:ceems_%spower_watts:rate{cluster="c1",domain="node"}'
    emission = 'ceems_emissions_gCo2_kWh{provider="%s",country_code="FR",%s}'
    return {
        "CeemsEnergySourceSilent": Case(at="15m", fires=[(age, "0+60x400")], labels=dict(T, hostname="n1", source="ipmi"),
                                        quiet=[[(age, "119x400")], [(age, "200x5 0x400")]]),
        "CeemsEnergySourceLost": Case(
            at="80m", labels=dict(T, hostname="n1", domain="node", source="ipmi", method="derived"),
            fires=[info(NODE1, values="1x40 stale"), info(NODE1, "package", "rapl"), ("up{%s}" % N1, "1x400")],
            quiet=[[info(NODE1), ("up{%s}" % N1, "1x400")],
                   [info(NODE1, values="1x40 stale"), ("up{%s}" % N1, "1x40 0x400")]]),
        "CeemsEnergyModelled": Case(
            at="80m", fires=[info(NODE1, source="power-model", method="modelled")], labels={"cluster": "c1", "job": "ceems"},
            quiet=[[info(NODE1)], [info(NODE1 + ',virtual="true"', source="power-model", method="modelled")],
                   [info(NODE1, "other", "power-model", "modelled")]]),
        "CeemsEnergyStuck": Case(
            at="40m", fires=busy(NODE1, 4) + [energy(NODE1, 0)], labels=T,
            quiet=[busy(NODE1, 4) + [energy(NODE1, 100)], busy(NODE1, 0.5) + [energy(NODE1, 0)]]),
        "CeemsEnergyUnbalanced": Case(
            at="80m", labels={"cluster": "c1", "hostname": "n1"},
            fires=[energy(NODE1, 100), (e % (NODE1, "node"), "0+5400x400")],
            quiet=[[energy(NODE1, 100), (e % (NODE1, "node"), "0+3000x400"), ('ceems_system_energy_joules_total{%s,domain="node"}' % NODE1,
                                                                              "0+3000x400")],
                   # A unit ends, and its joules move to the ended ones.
                   [energy(NODE1, 100), (e % (NODE1, "node"), "0+6000x40 stale"),
                    ('ceems_ended_units_energy_joules_total{%s,domain="node"}' % NODE1, "0x40 246000+6000x400")]]),
        "CeemsEnergyUnaccounted": Case(
            at="150m", fires=[energy(NODE1, 100), ('ceems_system_energy_joules_total{%s,domain="node"}' % NODE1, "0+2100x400")],
            labels={"cluster": "c1", "hostname": "n1", "domain": "node"},
            quiet=[[energy(NODE1, 100), ('ceems_system_energy_joules_total{%s,domain="node"}' % NODE1, "0+1500x400")]]),
        "CeemsUnitsUndiscovered": Case(
            at="50m", fires=busy(NODE1, 10) + [(units % (NODE1, "slurm"), "0x400")], labels=T,
            quiet=[busy(NODE1, 10) + [(units % (NODE1, "slurm"), "1x400")], busy(NODE1, 6) + [(units % (NODE1, "slurm"), "0x400")],
                   busy(NODE1, 10) + [(units % (NODE1, "cgroup"), "0x400")], busy(NODE1, 10)]),
        "CeemsPowerImplausible": Case(
            at="30m", fires=[energy(NODE1, 15)], labels={"cluster": "c1", "hostname": "n1", "domain": "node"},
            quiet=[[energy(NODE1, 25)], [energy(NODE1, 14000)], [energy(NODE1 + ',virtual="true"', 5)]]),
        "CeemsMetersDisagree": Case(
            at="14h", step="5m", labels={"cluster": "c1", "hostname": "n1", "domain": "other"},
            fires=[watts("node", "node", "200x400"), watts("node", "package", "200x400"), watts("node", "other", "0x400"), info(NODE1)],
            quiet=[[watts("node", "node", "300x400"), watts("node", "package", "200x400"), watts("node", "other", "100x400"),
                    info(NODE1)],
                   # Without a wall meter there is no rest.
                   [watts("node", "node", "200x400"), watts("node", "package", "200x400"), watts("node", "other", "0x400"),
                    info(NODE1, source="sum")]]),
        "CeemsUnallocatedHigh": Case(
            at="30h", step="5m", labels={"cluster": "c1"},
            fires=[(cluster % "", "100x400"), (cluster % "unallocated_", "60x400")],
            quiet=[[(cluster % "", "100x400"), (cluster % "unallocated_", "45x400")]]),
        "CeemsEmissionFactorGone": Case(
            at="36h", step="5m", labels={"provider": "rte"},
            fires=[(emission % ("rte", N1), "50x300 stale"), (emission % ("owid", N1), "44x500")],
            # Another exporter still has it.
            quiet=[[(emission % ("rte", N1), "50x300 stale"), (emission % ("rte", "instance=\"n2\""), "50x500")],
                   [(emission % ("rte", N1), "50x300 _x40 50x200")], [(hosts, "1x500")]]),
        "CeemsUnitsWithoutEnergy": Case(
            at="30m", fires=[(hosts, "2x400"), energy(NODE1, 100)], labels=T,
            quiet=[[(hosts, "2x400"), energy(NODE1, 100), (e % (NODE1, "node"), "0+60x400")], [(hosts, "0x400"), energy(NODE1, 100)],
                   [(hosts, "2x400")]]),
    }


def for_gpus():
    gpu = NODE1 + ',gpuuuid="GPU-1"'
    labels = dict(T, hostname="n1", gpuuuid="GPU-1")
    return {
        "CeemsGpuEnergyMissing": Case(
            at="40m", fires=[("ceems_gpu_info{%s}" % gpu, "1x400"), energy(NODE1, 100)], labels=T,
            quiet=[[("ceems_gpu_info{%s}" % gpu, "1x400"), energy(NODE1, 100), energy(NODE1, 50, "gpu")],
                   [("ceems_gpu_info{%s}" % gpu, "1x400")], [energy(NODE1, 100)]]),
        # The first error makes the series.
        "CeemsGpuErrors": Case(
            at="32m", fires=[('ceems_gpu_xid_errors_total{%s,xid="79"}' % gpu, "_x30 1x400")], labels=dict(labels, xid="79"),
            quiet=[[('ceems_gpu_xid_errors_total{%s,xid="79"}' % gpu, "1x400")],
                   [('ceems_gpu_xid_errors_total{%s,xid="31"}' % gpu, "_x30 1x400")],
                   [('ceems_gpu_ecc_errors_total{%s,type="corrected"}' % gpu, "0+1x400")]]),
        "CeemsGpuMissing": Case(
            at="31m", fires=[("ceems_gpu_up{%s}" % gpu, "1x15 0x400")], labels=labels,
            quiet=[[("ceems_gpu_up{%s}" % gpu, "1x400")], [("ceems_gpu_up{%s}" % gpu, "1x15 0x8 1x400")]]),
        "CeemsGpuHints": Case(
            at="30h", step="5m", fires=[('ceems_exporter_unit_gpu_hints{%s,collector="slurm"}' % N1, "1x400")],
            labels=dict(T, collector="slurm"),
            quiet=[[('ceems_exporter_unit_gpu_hints{%s,collector="slurm"}' % N1, "0x400")],
                   [('ceems_exporter_unit_gpu_hints{%s,collector="slurm"}' % N1, "1x200 0 1x200")]]),
    }


def for_api():
    api = {"job": "ceems_api_server", "instance": "api:9020"}
    cluster = dict(api, cluster_id="s")
    requests = 'ceems_api_server_http_requests_total{%s,route="units",status="%s"}'
    bucket = 'ceems_api_server_http_request_duration_seconds_bucket{%s,route="units",le="%s"}'
    free = 'node_filesystem_avail_bytes{job="node",instance="%s:9100",mountpoint="/var/lib/ceems",device="d"}'
    here = {"instance": "api:9020"}

    def of_cluster(name):
        return "ceems_api_server_update_" + name + '{%s,cluster_id="s"}' % API

    cases = {
        "CeemsApiDown": Case(at="10m", fires=[("up{%s}" % API, "0x400")], labels=api,
                             quiet=[[("up{%s}" % API, "0 0 0 1x400")], [('up{job="other"}', "0x400")]]),
        # promtool's clock begins at 0.
        "CeemsUpdateLag": Case(at="60m", fires=[(of_cluster("watermark_timestamp_seconds"), "600x400")], labels=cluster,
                               quiet=[[(of_cluster("watermark_timestamp_seconds"), "0+60x400")]]),
        "CeemsUpdateFailing": Case(at="40m", fires=[(of_cluster("failing"), "1x400")], labels=cluster,
                                   quiet=[[(of_cluster("failing"), "1x20 0 1x400")]]),
        "CeemsUpdateGaps": Case(at="7h", step="5m", fires=[(of_cluster("gaps"), "2x400")], labels=cluster,
                                quiet=[[(of_cluster("gaps"), "2x60 0x400")]]),
        "CeemsUnitsRefused": increase("ceems_api_server_update_units_skipped_total", API + ',cluster_id="s"', cluster),
        "CeemsApiErrors": Case(
            at="30m", fires=[(requests % (API, "5xx"), "0+2x400"), (requests % (API, "2xx"), "0+98x400")], labels=here,
            quiet=[[(requests % (API, "5xx"), "0+0.5x400"), (requests % (API, "2xx"), "0+99.5x400")], [(requests % (API, "2xx"), "0+9x400")]]),
        "CeemsApiSlow": Case(
            at="30m", labels=dict(here, route="units"),
            fires=[(bucket % (API, "5"), "0+90x400"), (bucket % (API, "10"), "0+100x400"), (bucket % (API, "+Inf"), "0+100x400")],
            quiet=[[(bucket % (API, "5"), "0+100x400"), (bucket % (API, "10"), "0+100x400"), (bucket % (API, "+Inf"), "0+100x400")]]),
        "CeemsApiLimited": increase("ceems_api_server_http_requests_limited_total", API, api, at="40m", quiet=("0x400", "0x10 1x400")),
        "CeemsDbDiskFull": Case(
            at="8h", step="5m", labels={"job": "node", "instance": "api:9100", "mountpoint": "/var/lib/ceems", "device": "d", "host": "api"},
            fires=[(free % "api", "100e9-1e8x400"), ("up{%s}" % API, "1x400")],
            quiet=[[(free % "api", "100e9-5e7x400"), ("up{%s}" % API, "1x400")],
                   [(free % "n1", "100e9-1e8x400"), ("up{%s}" % API, "1x400")]]),
    }
    sick = 'ceems_node_health_score{%s,cluster="s",hostname="n1"}' % API
    cases["CeemsNodeSick"] = Case(at="40m", fires=[(sick, "40x400")], labels={"cluster": "s", "hostname": "n1"},
                                  quiet=[[(sick, "0x400")], [(sick, "40x20 0 40x400")], [(sick, "29x400")]])
    slow = 'ceems_api_server_straggler_units{%s,cluster_id="s",kind="%%s"}' % API
    cases["CeemsStragglers"] = Case(at="40m", fires=[(slow % "slow_device", "1x400"), (slow % "fabric_or_disk", "0x400")],
                                    labels={"cluster_id": "s"},
                                    quiet=[[(slow % "slow_device", "0x400")], [(slow % "imbalance", "9x400"), (slow % "waits", "9x400")],
                                           [(slow % "slow_device", "1x20 0 1x400")]])
    for name, metric, more in (("CeemsDbFailing", "db_query_failures_total", {"query": "units"}), ("CeemsPurgeFailing", "purge_failures_total", {}),
                               ("CeemsAdminSyncFailing", "admin_sync_failures_total", {})):
        labels = API + "".join(',%s="%s"' % one for one in more.items())
        cases[name] = increase("ceems_api_server_" + metric, labels, dict(here, **more), at="2h", grows="0+1x400",
                               quiet=("5x400", "0x10 1x400"))
    return cases


def for_lb():
    here = {"instance": "lb:9030", "backend_type": "tsdb"}
    backend = 'ceems_lb_backend_up{%s,backend="%s",backend_type="tsdb",cluster_id="s"}'
    decisions = 'ceems_lb_decisions_total{%s,backend_type="tsdb",reason="%s"}'
    answers = 'ceems_lb_answers_total{%s,backend_type="tsdb",status="%s"}'
    bucket = 'ceems_lb_decision_duration_seconds_bucket{%s,backend_type="tsdb",le="%s"}'
    lb = {"job": "ceems_lb", "instance": "lb:9030"}
    return {
        "CeemsLbDown": Case(at="5m", fires=[("up{%s}" % LB, "0x400")], labels=lb, quiet=[[("up{%s}" % LB, "0 1x400")]]),
        "CeemsLbNoBackend": Case(
            at="5m", fires=[(backend % (LB, "a"), "0x400"), (backend % (LB, "b"), "0x400")], labels=dict(here, cluster_id="s"),
            quiet=[[(backend % (LB, "a"), "0x400"), (backend % (LB, "b"), "1x400")]]),
        "CeemsLbBackendDown": Case(
            at="10m", fires=[(backend % (LB, "a"), "0x400"), (backend % (LB, "b"), "1x400")],
            labels=dict(lb, backend="a", backend_type="tsdb", cluster_id="s"), quiet=[[(backend % (LB, "a"), "0 0 0 1x400")]]),
        "CeemsLbOwnersUnknown": Case(at="15m", fires=[(decisions % (LB, "owners_unknown"), "0+1x400")], labels=here,
                                     quiet=[[(decisions % (LB, "allowed"), "0+1x400")], [(decisions % (LB, "owners_unknown"), "3x400")]]),
        "CeemsLbServerErrors": Case(
            at="30m", fires=[(answers % (LB, "5xx"), "0+6x400"), (answers % (LB, "2xx"), "0+94x400")], labels=here,
            quiet=[[(answers % (LB, "5xx"), "0+4x400"), (answers % (LB, "2xx"), "0+96x400")]]),
        "CeemsLbAnswersBreakOff": Case(
            at="30m", fires=[('ceems_lb_answers_broken_total{%s,backend_type="tsdb"}' % LB, "0+1x400")], labels=here,
            quiet=[[('ceems_lb_answers_broken_total{%s,backend_type="tsdb"}' % LB, "0+0.5x400")]]),
        "CeemsLbDecisionsSlow": Case(
            at="30m", labels=here, fires=[(bucket % (LB, "0.1"), "0+90x400"), (bucket % (LB, "1"), "0+100x400"),
                                          (bucket % (LB, "+Inf"), "0+100x400")],
            quiet=[[(bucket % (LB, "0.1"), "0+100x400"), (bucket % (LB, "1"), "0+100x400"), (bucket % (LB, "+Inf"), "0+100x400")]]),
        "CeemsLbForeignUnits": Case(at="2h", fires=[(decisions % (LB, "foreign_unit"), "0+20x400")], labels=here,
                                    quiet=[[(decisions % (LB, "foreign_unit"), "0+15x400")]]),
    }


def for_the_rest():
    failures = 'prometheus_rule_evaluation_failures_total{job="prometheus",rule_group="/etc/prometheus/rules/x.yml;%s"}'
    group = {"job": "prometheus", "rule_group": "/etc/prometheus/rules/x.yml;ceems-units"}
    units = "ceems_compute_units{%s}" % N1
    power = "uuid:ceems_host_power_watts:pue{%s,uuid=\"a\"}"
    end = "ceems_web_certificate_not_after_timestamp_seconds{%s}" % N1
    start = "process_start_time_seconds{%s}"
    memory = "process_resident_memory_bytes{%s}"
    bmc = 'ceems_exporter_source_age_seconds{cluster="c1",job="ceems",instance="%d",collector="redfish"}'
    opened = 'apiserver_admission_webhook_fail_open_count{name="%s",type="admit"}'
    reviews = 'ceems_k8s_admission_controller_reviews_total{hook="%s",outcome="%s"}'
    clock = 'node_time_seconds{job="node",instance="n1:9100"}'
    return {
        "CeemsRuleFailing": Case(at="20m", fires=[(failures % "ceems-units", "0+1x400")], labels=group,
                                 quiet=[[(failures % "ceems-units", "7x400")], [(failures % "node", "0+1x400")]]),
        "CeemsRuleEmpty": Case(
            at="60m", fires=[(units, "2x400"), ('job:ceems_host_power_watts:pue{job="other"}', "100x400")], labels=T,
            quiet=[[(units, "2x400")],  # no records anywhere
                   [(units, "2x400"), (power % N1, "9x400"), ('job:ceems_host_power_watts:pue{job="ceems"}', "100x400")],
                   [(units, "0x400"), ('job:ceems_host_power_watts:pue{job="other"}', "100x400")]]),
        "CeemsCertificateExpiry": Case(at="2h", fires=[(end, "%dx400" % (13 * DAY))], labels=T, quiet=[[(end, "%dx400" % (15 * DAY))]]),
        "CeemsCertificateEnds": Case(at="2h", fires=[(end, "%dx400" % (3 * DAY))], labels=T, quiet=[[(end, "%dx400" % (4 * DAY))]]),
        "CeemsRestarting": Case(
            at="30m", fires=[(start % N1, "0+60x400")], labels=T,
            quiet=[[(start % N1, "0 0 0 60 60 60 120 120 180x400")], [(start % 'job="other"', "0+60x400")]]),
        "CeemsMemoryHigh": Case(
            at="80m", fires=[(memory % N1, "300e6x400")], labels=T,
            quiet=[[(memory % N1, "100e6x400")], [(memory % API, "300e6x400"), (memory % LB, "500e6x400")],
                   [(memory % 'job="other"', "9e9x400")]]),
        "CeemsRedfishProxyDown": Case(at="15m", fires=[('up{job="redfish_proxy",instance="p"}', "0x400")],
                                      labels={"job": "redfish_proxy", "instance": "p"},
                                      quiet=[[('up{job="redfish_proxy",instance="p"}', "1x400")]]),
        "CeemsRedfishUnreachable": Case(
            at="15m", labels={"cluster": "c1", "job": "ceems"},
            fires=[(bmc % i, "%dx400" % (600 if i < 2 else 5)) for i in range(10)],
            quiet=[[(bmc % i, "%dx400" % (600 if i < 1 else 5)) for i in range(10)]]),
        # The first failure makes the series of the Kubernetes API server.
        "CeemsAdmissionBypassed": Case(
            at="60m", fires=[(opened % "mutate.ceems.io", "_x30 1+1x400")], labels={"name": "mutate.ceems.io", "type": "admit"},
            quiet=[[(opened % "mutate.ceems.io", "4x400")], [(opened % "other.io", "_x30 1+1x400")],
                   [(reviews % ("mutate", "unmarked"), "0+1x400")], [(reviews % ("validate", "unchanged"), "0+1x400")]]),
        "CeemsClockSkew": Case(
            at="20m", fires=[(clock, "45+60x400"), ("up{%s}" % N1, "1x400")],
            labels={"job": "node", "instance": "n1:9100", "host": "n1"},
            quiet=[[(clock, "10+60x400"), ("up{%s}" % N1, "1x400")], [(clock, "45+60x400")]]),
    }


# Other ways in which an alert fires.
MORE = [
    ("CeemsPowerImplausible", Case(at="30m", fires=[energy(NODE1, 16000)], labels={"cluster": "c1", "hostname": "n1", "domain": "node"},
                                   quiet=[])),
    # Ten days, of which the last shows four times as many watts.
    ("CeemsPowerImplausible", Case(
        at="8d", step="30m", labels={"cluster": "c1", "hostname": "n1", "domain": "node"},
        fires=[watts("node", "node", "100x381 400x20")],
        quiet=[[watts("node", "node", "100x100 350x2 100x277 400x20")]])),
    ("CeemsMetersDisagree", Case(
        at="14h", step="5m", labels={"cluster": "c1", "hostname": "n1"},
        fires=[watts("node", "node", "700x400"), watts("node", "package", "200x400"), info(NODE1)],
        quiet=[[watts("node", "node", "550x400"), watts("node", "package", "200x400"), info(NODE1)]])),
    # It is not on the page any more, which is scraped.
    ("CeemsGpuMissing", Case(at="85m", fires=[('ceems_gpu_info{%s,gpuuuid="GPU-1"}' % N1, "1x65 _x400"), ("up{%s}" % N1, "1x400")],
                             labels=dict(T, gpuuuid="GPU-1"),
                             quiet=[[('ceems_gpu_info{%s,gpuuuid="GPU-1"}' % N1, "1x65 _x400"), ("up{%s}" % N1, "1x65 0x400")]])),
    ("CeemsGpuErrors", Case(at="30m", fires=[('ceems_gpu_ecc_errors_total{%s,type="uncorrected"}' % N1, "0x20 1x400")],
                            labels=dict(T, type="uncorrected"), quiet=[])),
    ("CeemsGpuErrors", Case(at="30m", fires=[('ceems_gpu_xid_errors_total{%s,xid="48"}' % N1, "3x20 4x400")], labels=dict(T, xid="48"),
                            quiet=[])),
    ("CeemsMemoryHigh", Case(at="80m", fires=[(memory_of, "700e6x400") for memory_of in ("process_resident_memory_bytes{%s}" % LB,)],
                             labels={"job": "ceems_lb", "instance": "lb:9030"}, quiet=[])),
    ("CeemsMemoryHigh", Case(at="80m", fires=[("process_resident_memory_bytes{%s}" % API, "500e6x400")],
                             labels={"job": "ceems_api_server", "instance": "api:9020"}, quiet=[])),
    ("CeemsAdmissionBypassed", Case(at="60m", fires=[('ceems_k8s_admission_controller_reviews_total{hook="validate",outcome="unmarked"}',
                                                      "0+1x400")], labels={"hook": "validate", "outcome": "unmarked"}, quiet=[])),
]

CASES = [*for_nodes().items(), *for_energy().items(), *for_gpus().items(), *for_api().items(), *for_lb().items(), *for_the_rest().items(),
         *MORE]
