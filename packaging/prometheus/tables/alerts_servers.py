"""The alerts on ceems_api_server, ceems_lb, the rules and all programs, for alerts.py."""

from . import Alert

API = "ceems_api_server_"


def api_alerts(host):
    yield Alert(
        20, "CeemsApiDown", 'up{job="ceems_api_server"} == 0',
        "critical", "The API server at {{ $labels.instance }} does not answer",
        "Look at its service and log. No units are recorded meanwhile; they are fetched when it is back.",
        "A restart with an upgrade of the database may take minutes.", "5m")
    yield Alert(
        21, "CeemsUpdateLag", "time() - %supdate_watermark_timestamp_seconds > 2700" % API,
        "critical", "Units of cluster {{ $labels.cluster_id }} are not up to date",
        "The log of the API server says what fails: the resource manager, the TSDB or the database. The windows are made up for later.",
        "Threshold: 2700 s, three times the default update_interval of 15 minutes. Adapt it to yours.")
    yield Alert(
        22, "CeemsUpdateFailing", "%supdate_failing == 1" % API,
        "warning", "Updates of cluster {{ $labels.cluster_id }} fail",
        "The log of the API server names the window and the reason.",
        "Two update intervals of 15 minutes.", "30m")
    yield Alert(
        23, "CeemsUpdateGaps", "%supdate_gaps > 0" % API,
        "warning", "Windows of cluster {{ $labels.cluster_id }} are without metrics",
        "The TSDB was away or refused queries. The number shrinks when it is back; if it does not, its data of that time is lost.",
        "A TSDB that was away for a while is caught up with within an hour or two.", "6h")
    yield Alert(
        24, "CeemsUnitsRefused", "increase(%supdate_units_skipped_total[1h]) > 0" % API,
        "warning", "The database refused units of cluster {{ $labels.cluster_id }}",
        "The log names the units and the reason. Their use is missing in all sums.",
        "Any unit.")
    yield Alert(
        25, "CeemsApiErrors",
        'sum by (instance) (rate({0}http_requests_total{{status="5xx"}}[10m]))\n'
        "  / sum by (instance) (rate({0}http_requests_total[10m])) > 0.01".format(API),
        "warning", "More than 1 % of the answers of {{ $labels.instance }} are server errors",
        "Look at the log and at {0}db_query_failures_total and {0}dropped_requests_total.".format(API),
        "Threshold: 1 %.", "10m")
    yield Alert(
        25, "CeemsApiSlow",
        "histogram_quantile(0.99, sum by (instance, route, le) (rate(%shttp_request_duration_seconds_bucket[10m]))) > 5" % API,
        "warning", "Of the requests for {{ $labels.route }}, 1 % take more than 5 s",
        "{0}db_query_duration_seconds shows whether the database is slow. Long ranges over all users are expensive.".format(API),
        "Threshold: 5 s at the 99th percentile; a year of all users takes 0.2 s in the benchmarks.", "10m")
    yield Alert(
        25, "CeemsApiLimited", "increase(%shttp_requests_limited_total[10m]) > 0" % API,
        "warning", "Requests to {{ $labels.instance }} are refused with 429",
        "Somebody polls too fast, or --web.max-requests is too low for the number of users.",
        "Any request, for ten minutes.", "10m")
    for name, metric, labels, what, action in (
            ("CeemsDbFailing", "db_query_failures_total", "instance, query", "Queries of the database fail",
             "Look at the log of the API server, the disk and, for PostgreSQL, the server."),
            ("CeemsPurgeFailing", "purge_failures_total", "instance", "Old units are not purged",
             "The log says why. The database grows until a purge succeeds."),
            ("CeemsAdminSyncFailing", "admin_sync_failures_total", "instance", "The list of administrators is not fetched",
             "Check the URL and the token of Grafana in ceems_api_server.admin. Those who were administrators stay so.")):
        yield Alert(26, name, "sum by (%s) (increase(%s%s[1h])) > 0" % (labels, API, metric), "warning",
                    what + " at {{ $labels.instance }}", action, "Failures in each hour, for an hour.", "1h")
    yield Alert(
        27, "CeemsDbDiskFull",
        '%s\nand on (host)\n%s' % (
            host('(predict_linear(node_filesystem_avail_bytes{mountpoint=~"/|/var|/var/lib|/var/lib/ceems"}[6h], 4 * 86400) < 0)'),
            host('up{job="ceems_api_server"}')),
        "warning", "The file system {{ $labels.mountpoint }} of the API server on {{ $labels.host }} will be full within four days",
        "Shorten retention_period, move the database (ceems_tool db copy) or enlarge the file system.",
        "Threshold: four days, a long weekend. Change mountpoint if the data directory is elsewhere.", "1h")
    yield Alert(
        35, "CeemsNodeSick", "max by (cluster, hostname) (ceems_node_health_score) >= 30",
        "warning", "Node {{ $labels.hostname }} of cluster {{ $labels.cluster }} is probably sick",
        "`cacct insight nodes` shows the evidence and a line to drain the node.",
        "30 is the least score of a finding: power away from the peers counts 40, failures 50, signs of broken hardware 30 to 60.", "30m")
    yield Alert(
        35, "CeemsStragglers", 'sum by (cluster_id) (%sstraggler_units{kind=~"slow_device|fabric_or_disk"}) > 0' % API,
        "info", "Running jobs of cluster {{ $labels.cluster_id }} wait for a slow GPU, a link or a disk",
        "`cacct insight stragglers` names the jobs, nodes and devices.",
        "Half an hour, as each finding is of the last 20 minutes and a short heat wave ends by itself.", "30m")


def lb_alerts():
    yield Alert(
        28, "CeemsLbDown", 'up{job="ceems_lb"} == 0',
        "critical", "{{ $labels.instance }} does not answer; Grafana shows no metrics of units",
        "Look at the service and log of ceems_lb.", "Two minutes, as users notice at once.", "2m")
    yield Alert(
        28, "CeemsLbNoBackend", "max by (instance, backend_type, cluster_id) (ceems_lb_backend_up) == 0",
        "critical", "No {{ $labels.backend_type }} backend of {{ $labels.cluster_id }} can be reached; requests get 503",
        "Look at the TSDB or Pyroscope servers and at the network between.", "One minute, as users notice at once.", "1m")
    yield Alert(
        28, "CeemsLbBackendDown", "ceems_lb_backend_up == 0",
        "warning", "{{ $labels.backend }} of {{ $labels.cluster_id }} gets no requests because it cannot be reached or hangs",
        "Look at this server. The others carry its load meanwhile.", "Five minutes, so that a restart does not alert.", "5m")
    yield Alert(
        28, "CeemsLbOwnersUnknown", 'sum by (instance, backend_type) (rate(ceems_lb_decisions_total{reason="owners_unknown"}[5m])) > 0',
        "critical", "The database or the API server does not say who owns units; users are refused their own data",
        "Look at the API server and its database, and at the service account of the load balancer.", "Any request, for five minutes.", "5m")
    yield Alert(
        28, "CeemsLbServerErrors",
        'sum by (instance, backend_type) (rate(ceems_lb_answers_total{status="5xx"}[10m]))\n'
        "  / sum by (instance, backend_type) (rate(ceems_lb_answers_total[10m])) > 0.05",
        "warning", "More than 5 % of the {{ $labels.backend_type }} answers are server errors",
        "Look at the log of ceems_lb and of the servers behind it.", "Threshold: 5 %.", "10m")
    yield Alert(
        28, "CeemsLbAnswersBreakOff", "sum by (instance, backend_type) (increase(ceems_lb_answers_broken_total[15m])) > 10",
        "warning", "Answers of {{ $labels.backend_type }} backends break off before their end",
        "The server dies or runs into a limit during answers; or clients close their tabs.", "Threshold: ten in 15 minutes.")
    yield Alert(
        28, "CeemsLbDecisionsSlow",
        "histogram_quantile(0.99, sum by (instance, backend_type, le) (rate(ceems_lb_decision_duration_seconds_bucket[10m]))) > 0.5",
        "warning", "Access decisions take over half a second; the database or the API server is slow",
        "Look at the latencies of the API server, or let ceems_lb read the database itself (ceems_api_server.data.path).",
        "Threshold: 0.5 s at the 99th percentile; a decision takes microseconds while the owners are cached.", "10m")
    yield Alert(
        28, "CeemsLbForeignUnits", 'sum by (instance, backend_type) (increase(ceems_lb_decisions_total{reason="foreign_unit"}[1h])) > 1000',
        "info", "Many requests ask for other users' units",
        "Either a dashboard has a fixed uuid or somebody is probing; the log of ceems_lb names the user.",
        "Threshold: 1000 an hour. A dashboard with a wrong unit sends about one a second.")


def rule_alerts():
    yield Alert(
        29, "CeemsRuleFailing",
        'increase(prometheus_rule_evaluation_failures_total{rule_group=~".*;(ceems-|compute-unit-|host-agg-).*"}[5m]) > 0',
        "critical", "Rules of the group {{ $labels.rule_group }} fail",
        "Open Status, Rules in Prometheus; it shows the error. \"many-to-many\" means that a target is scraped by two jobs, or that two rule "
        "files write the same record.",
        "Any failure, for five minutes.", "5m")


def record_alerts(target):
    yield Alert(
        30, "CeemsRuleEmpty",
        "(\n  sum by ({0}) (ceems_compute_units) > 0\n  unless on ({0}) uuid:ceems_host_power_watts:pue\n)\n"
        "and on () group(last_over_time(job:ceems_host_power_watts:pue[1d]))".format(target),
        "warning", "{{ $labels.instance }} has units, but no record of their power",
        "Load ceems-compat.rules.yml for exporters that count energy, and run ceems_tool tsdb create-recording-rules for others.",
        "Only where the records of CEEMS exist at all.", "30m")


def program_alerts(settings, host):
    jobs = settings.exporter_pattern + "|ceems_api_server|ceems_lb|redfish_proxy|ceems_k8s_admission_controller"
    end = "ceems_web_certificate_not_after_timestamp_seconds - time() < %s"
    action = "Renew it and replace the files; the program reads them again by itself. An expired one makes scrapes fail."
    yield Alert(31, "CeemsCertificateExpiry", end % "14 * 86400", "warning",
                "The certificate of {{ $labels.instance }} ends within two weeks", action,
                "Threshold: 14 days. Certificates that are renewed by themselves are usually replaced 30 days before.", "1h")
    yield Alert(31, "CeemsCertificateEnds", end % "3 * 86400", "critical",
                "The certificate of {{ $labels.instance }} ends within three days", action, "Threshold: 3 days.", "1h")
    yield Alert(
        32, "CeemsRestarting", 'changes(process_start_time_seconds{job=~"%s"}[1h]) > 3' % jobs,
        "warning", "{{ $labels.job }} on {{ $labels.instance }} restarts again and again",
        "journalctl of the service shows why; a crash is a bug, please report it.",
        "Threshold: more than three starts in an hour.")
    yield Alert(
        33, "CeemsMemoryHigh",
        'process_resident_memory_bytes{{{0}}} > 250e6\nor\nprocess_resident_memory_bytes{{job="ceems_api_server"}} > 400e6\nor\n'
        'process_resident_memory_bytes{{job=~"ceems_lb|redfish_proxy|ceems_k8s_admission_controller"}} > 600e6'.format(settings.exporters),
        "warning", "{{ $labels.job }} on {{ $labels.instance }} takes more memory than it should",
        "Note how many units, users and targets it has, and report it. A restart helps meanwhile.",
        "Thresholds: four times what the benchmarks show, with room: exporters take 20 MB, with profiles 90; the API server 30 to 60, and "
        "requests together at most 256 MiB.", "1h")
    yield Alert(
        34, "CeemsRedfishProxyDown", 'up{job="redfish_proxy"} == 0',
        "warning", "The Redfish proxy at {{ $labels.instance }} does not answer",
        "Look at its service and log. The power of the BMCs behind it is missing meanwhile.", "", "10m")
    yield Alert(
        34, "CeemsRedfishUnreachable",
        'count by (cluster, job) (ceems_exporter_source_age_seconds{collector="redfish"} > 300)\n'
        '  / count by (cluster, job) (ceems_exporter_source_age_seconds{collector="redfish"}) > 0.1',
        "warning", "More than 10 % of the BMCs of job {{ $labels.job }} do not answer over Redfish",
        "Look at the proxy, the management network and whether the password of the BMCs has changed.",
        "Threshold: 10 % of the nodes, each silent for 300 s.", "10m")
    yield Alert(
        35, "CeemsAdmissionBypassed",
        'increase(apiserver_admission_webhook_fail_open_count{name="mutate.ceems.io"}[15m]) > 0\nor\n'
        '(apiserver_admission_webhook_fail_open_count{name="mutate.ceems.io"} unless apiserver_admission_webhook_fail_open_count offset 15m) '
        "> 0\nor\n"
        'increase(ceems_k8s_admission_controller_reviews_total{hook="validate",outcome="unmarked"}[15m]) > 0',
        "warning", "Pods were created without their creator; their use is accounted to nobody",
        "See whether the admission controller runs and whether its certificate is trusted; create the pods again.",
        "Any pod. A counter that is new counts from 0.", "15m")
    yield Alert(
        36, "CeemsClockSkew",
        "%s\nand on (host)\n%s" % (host("(abs(node_time_seconds - timestamp(node_time_seconds)) > 30)"), host("up{%s}" % settings.exporters)),
        "warning", "The clock of {{ $labels.host }} differs from that of Prometheus by more than 30 s",
        "Check NTP or chrony on the node. Windows of units are shifted by as much.",
        "Threshold: 30 s, one scrape.", "15m")
