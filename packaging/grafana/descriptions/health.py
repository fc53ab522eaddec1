"""ceems-health: the programs of CEEMS themselves, for operators with Prometheus itself."""

from .cluster import SOURCES
from .model import Dashboard, Level, Panel, Prom, Row, Variable

JOB = 'job=~"$job"'
NONE_OR_SOME = (Level(0, "none", "#0072B2"), Level(1, "some", "#D55E00"))
API, LB = "ceems_api_server_", "ceems_lb_"

HEALTH = Dashboard(
    "ceems-health", "CEEMS itself", "Exporters, API server and load balancer: whether they work, and how well.", "operators",
    (SOURCES[0], Variable("labels", "job", "Exporter job", query="ceems_exporter_build_info, job", several=True)),
    (Row("Now", open=True, panels=(
        Panel("stat", "Exporters that answer", "Exporters that Prometheus could scrape, of all of the chosen jobs.", "percentunit",
              (Prom("avg(up{%s})" % JOB, "answering", instant=True),), "health", width=6, height=6,
              levels=(Level(0, "many are down", "#D55E00"), Level(0.95, "some are down", "#E69F00"), Level(1, "all", "#0072B2"))),
        Panel("stat", "Update lag", "Time since the end of the last window that the API server has written, by cluster.", "s",
              (Prom("max by (cluster_id) (time() - %supdate_watermark_timestamp_seconds)" % API, "{{cluster_id}}", instant=True),), "health",
              width=6, height=6, levels=(Level(0, "good", "#0072B2"), Level(3600, "late", "#D55E00"))),
        Panel("stat", "Gaps", "Windows of which metrics are incomplete, by cluster. They are filled when the TSDB has the data.", "count",
              (Prom("max by (cluster_id) (%supdate_gaps)" % API, "{{cluster_id}}", instant=True),), "health", width=6, height=6,
              levels=NONE_OR_SOME),
        Panel("table", "Backends", "Servers behind the load balancer. A server that is down gets no requests.",
              queries=(Prom("topk(50, min by (cluster_id, backend_type, backend) (%sbackend_up))" % LB, instant=True, table=True),),
              labels=(("cluster_id", "Cluster"), ("backend_type", "Type"), ("backend", "Server")), values=(("Up", "yesno"),),
              origin="health", width=6, height=6),
        Panel("lines", "Decisions of the load balancer", "Requests that it let through or refused, by reason (docs/lb/metrics.md).",
              "reqps", (Prom("sum by (backend_type, reason) (rate(%sdecisions_total[$__rate_interval]))" % LB,
                             "{{backend_type}} {{reason}}"),), "health"),
        Panel("lines", "Scrape duration", "Time that scrapes of the chosen exporters took: median, 99th percentile and slowest.", "s",
              (Prom("quantile(0.5, scrape_duration_seconds{%s})" % JOB, "median"),
               Prom("quantile(0.99, scrape_duration_seconds{%s})" % JOB, "99th percentile"),
               Prom("max(scrape_duration_seconds{%s})" % JOB, "slowest")), "health"),
        Panel("bars", "Failing collectors", "Exporters on which each collector failed.", "count",
              (Prom("count by (collector) (ceems_scrape_collector_success{%s} == 0) or 0 * count by (collector)"
                    " (ceems_scrape_collector_success{%s})" % (JOB, JOB), "{{collector}}", instant=True),), "health", levels=NONE_OR_SOME),
    )), Row("Exporters", (
        Panel("table", "Exporters that do not answer", "At most 50 targets of the chosen jobs that Prometheus could not scrape.",
              queries=(Prom("topk(50, up{%s} == 0)" % JOB, instant=True, table=True),),
              labels=(("instance", "Target"), ("job", "Job")), values=(("Up", "yesno"),), origin="health"),
        Panel("lines", "Slowest collectors", "The 10 collectors that take longest on any node.", "s",
              (Prom("topk(10, max by (collector) (ceems_scrape_collector_duration_seconds{%s}))" % JOB, "{{collector}}"),), "health"),
        Panel("lines", "Age of slow sources", "Oldest value of each slow source (BMC, GPUs) on any node.", "s",
              (Prom("topk(20, max by (collector, source) (ceems_exporter_source_age_seconds))", "{{collector}} {{source}}"),), "health"),
        Panel("lines", "Versions", "Exporters by version.", "count",
              (Prom("topk(20, count by (version) (ceems_exporter_build_info))", "{{version}}"),), "health"),
    )), Row("API server", (
        Panel("lines", "Answers of the API server", "Requests that the API server answered, by class of status.", "reqps",
              (Prom("sum by (status) (rate(%shttp_requests_total[$__rate_interval]))" % API, "{{status}}"),), "health"),
        Panel("lines", "Slowest answers of the API server", "99th percentile of the time to answer, by path.", "s",
              (Prom("topk(20, histogram_quantile(0.99, sum by (le, route) (rate(%shttp_request_duration_seconds_bucket"
                    "[$__rate_interval]))))" % API, "{{route}}"),), "health"),
        Panel("lines", "Failed updates", "Attempts to fetch, update or write a window that failed, by cluster.", "events",
              (Prom("sum by (cluster_id) (rate(%supdate_failures_total[$__rate_interval]))" % API, "{{cluster_id}}"),), "health"),
        Panel("lines", "Units in the last window", "Units that the last window of each cluster had.", "count",
              (Prom("max by (cluster_id) (%supdate_units)" % API, "{{cluster_id}}"),), "health"),
        Panel("bars", "Failures in the range", "Refused units, failed purges, failed fetches of admins and dropped requests.", "count",
              (Prom("sum(increase(%supdate_units_skipped_total[$__range]))" % API, "units refused", instant=True),
               Prom("sum(increase(%spurge_failures_total[$__range]))" % API, "purges failed", instant=True),
               Prom("sum(increase(%sadmin_sync_failures_total[$__range]))" % API, "fetches of admins failed", instant=True),
               Prom("sum(increase(%sdropped_requests_total[$__range])) or vector(0)" % API, "requests dropped", instant=True)), "health",
              levels=NONE_OR_SOME),
    )), Row("Load balancer", (
        Panel("lines", "Time to decide", "99th percentile of the time from a request to the decision.", "s",
              (Prom("histogram_quantile(0.99, sum by (le, backend_type) (rate(%sdecision_duration_seconds_bucket[$__rate_interval])))" % LB,
                    "{{backend_type}}"),), "health"),
        Panel("lines", "Answers of the backends", "Requests that were passed on, by class of status.", "reqps",
              (Prom("sum by (backend_type, status) (rate(%sanswers_total[$__rate_interval]))" % LB, "{{backend_type}} {{status}}"),),
              "health"),
        Panel("lines", "Requests in flight", "Requests that the servers are working on: the 20 busiest servers.", "count",
              (Prom("topk(20, sum by (backend) (%sbackend_requests_in_flight))" % LB, "{{backend}}"),), "health"),
        Panel("bars", "Broken answers in the range", "Answers that broke off because a server or a client went away.", "count",
              (Prom("sum by (backend_type) (increase(%sanswers_broken_total[$__range]))" % LB, "{{backend_type}}", instant=True),), "health",
              levels=NONE_OR_SOME),
    )), Row("Processes", (
        Panel("lines", "Memory of the programs", "Resident memory of the programs of CEEMS: the largest of each job.", "bytes",
              (Prom('topk(20, max by (job) (process_resident_memory_bytes * on (instance, job) group_left () group by (instance, job)'
                    ' ({__name__=~"ceems_(exporter|api_server|lb)_build_info"})))', "{{job}}"),), "health"),
        Panel("lines", "Days until certificates expire", "The certificate of each job that ends first. Without TLS it stays empty.", "d",
              (Prom("topk(20, min by (job) (ceems_web_certificate_not_after_timestamp_seconds - time()) / 86400)", "{{job}}"),), "health"),
    ))))

ALL = (HEALTH,)
