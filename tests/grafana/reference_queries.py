"""The questions that the dashboards of CEEMS 0.10.2 to 0.16 ask, written down from what each of their panels shows and computes. A site
keeps these dashboards when it switches, so exporter and compatibility records have to answer them, and the load balancer has to let
users ask those about one unit.

A question is (panel, query, needs): needs is "exporter" where the exporter alone answers and "records" where
packaging/prometheus/ceems-compat.rules.yml has to be loaded."""

EXPORTER, RECORDS = "exporter", "records"
ON_HOSTS = 'uuid="$uuid", instance=~"$host"'
HOST_POWER, GPU_POWER = "job:ceems_host_power_watts:pue", "job:ceems_gpu_power_watts:pue"
HOST_RATE, GPU_RATE = ('job:ceems_%s_emissions_g_s:pue{job=~"$job", provider="$provider", country_code="$country_code"}' % part
                       for part in ("host", "gpu"))
USE = {"CPU usage": "job:ceems_cpu_usage:avg_ratio_irate", "CPU memory usage": "job:ceems_cpu_memory_usage:avg_ratio",
       "GPU usage": "job:ceems_gpu_usage:avg", "GPU memory usage": "job:ceems_gpu_memory_usage:avg_ratio"}
SUMMED = "sum_over_time(%s[$__range:$__interval]) * $__interval_ms / %s"


def cluster():
    """Cluster Status: for operators, from Prometheus itself."""
    yield "variable provider", "max_over_time(ceems_emissions_gCo2_kWh[$__range])", EXPORTER
    yield "variable country_code", 'max_over_time(ceems_emissions_gCo2_kWh{provider="$provider"}[$__range])', EXPORTER
    for part, record in (("host", HOST_POWER), ("gpu", GPU_POWER)):
        yield "energy by job, " + part, "sum by (job) (%s)" % (SUMMED % (record, "3.6e9")), RECORDS
        yield "power by job, " + part, '%s{job=~"$job"}' % record, RECORDS
        yield "power, " + part, 'sum(%s{job=~"$job"})' % record, RECORDS
        yield "energy, " + part, "sum(%s)" % (SUMMED % (record + '{job=~"$job"}', "3.6e9")), RECORDS
    yield "total power", 'sum(%s{job=~"$job"}) + sum(%s{job=~"$job"})' % (HOST_POWER, GPU_POWER), RECORDS
    yield "total energy", "sum(%s) + (sum(%s) or vector(0))" % (
        SUMMED % (HOST_POWER + '{job=~"$job"}', "3.6e9"), SUMMED % (GPU_POWER + '{job=~"$job"}', "3.6e9")), RECORDS
    for part, record in (("host", HOST_RATE), ("gpu", GPU_RATE)):
        yield "emissions by job, " + part, "sum by (job) (%s)" % (SUMMED % (record, "1e3")), RECORDS
        yield "emission rate, " + part, "sum(%s)" % record, RECORDS
    yield "total emission rate", "sum(%s) + sum(%s)" % (HOST_RATE, GPU_RATE), RECORDS
    for title, record in USE.items():
        yield "mean " + title, 'avg(avg_over_time(%s{job=~"$job"}[$__range:$__interval]))' % record, RECORDS
        yield title + " by job", '%s{job=~"$job"}' % record, RECORDS


def per_node(record, labels=ON_HOSTS, total="sum"):
    """A line per node, a total, and the form for VMs, which hides the hypervisor."""
    yield "%s{%s}" % (record, labels)
    yield "%s(%s{%s})" % (total, record, labels)
    yield '%s without (instance, hostname) (%s{uuid="$uuid"})' % (total, record)


def rates(metric, by=""):
    """Instant rates per node, and summed without it."""
    yield "irate(%s{%s}[$__rate_interval])" % (metric, ON_HOSTS)
    yield "sum by (%s) (irate(%s{%s}[$__rate_interval]))" % (by, metric, ON_HOSTS) if by else \
        "sum(irate(%s{%s}[$__rate_interval]))" % (metric, ON_HOSTS)


def unit():
    """Single job, VM and pod: for users, through the load balancer."""
    yield "variable gpu", 'max_over_time(ceems_compute_unit_gpu_index_flag{%s}[$__range])' % ON_HOSTS, EXPORTER
    yield "variable gpu of VMs", 'max_over_time(sum without (instance, hostname) (ceems_compute_unit_gpu_index_flag{uuid="$uuid"})' \
        "[$__range:])", EXPORTER
    for query in per_node("uuid:ceems_cpu_usage:ratio_irate", total="avg"):
        yield "CPU utilization", query, RECORDS
    for kind in ("total", "used", "rss", "cache"):
        for query in per_node("ceems_compute_unit_memory_%s_bytes" % kind):
            yield "CPU memory utilization", query, EXPORTER
    for query in per_node("uuid:ceems_host_power_watts:pue"):
        yield "host power usage", query, RECORDS
    for event in ("cpucycles", "ref_cpucycles"):
        yield "CPU frequency", ("irate(ceems_perf_%s_total{%s}[$__rate_interval]) / on (uuid, hostname) ceems_compute_unit_cpus{%s}"
                                % (event, ON_HOSTS, 'uuid="$uuid"')), EXPORTER
    ipc = "irate(ceems_perf_instructions_total{%s}[$__rate_interval]) / irate(ceems_perf_cpucycles_total{%s}[$__rate_interval])" % (
        ON_HOSTS, ON_HOSTS)
    yield "CPU IPC", ipc, EXPORTER
    yield "CPU IPC", "sum(%s)" % ipc, EXPORTER
    for event in ("context_switches", "cpu_migrations", "major_faults", "minor_faults"):
        for query in rates("ceems_perf_%s_total" % event):
            yield "CPU software and page fault events", query, EXPORTER
    for cache in ("l1d_read", "ll_read", "ll_write"):
        yield "CPU cache events", "irate(ceems_perf_cache_%s_misses_total{%s}[$__rate_interval]) / irate(ceems_perf_cache_%s_hits_total" \
            "{%s}[$__rate_interval])" % (cache, ON_HOSTS, cache, ON_HOSTS), EXPORTER
    chosen = 'uuid="$uuid", gpuuuid=~"$gpu"'
    for record, total in (("usage:ratio", "avg"), ("memory_usage:ratio", "avg"), ("power_watts:pue", "sum")):
        for query in per_node("uuid:ceems_gpu_" + record, chosen, total):
            yield "GPU " + record, query, RECORDS
    for name in ("sm_active", "sm_occupancy", "gr_engine_active", "pipe_tensor_active", "pipe_fp64_active", "pipe_fp32_active",
                 "pipe_fp16_active", "dram_active"):
        for prefix in ("", "prof_"):  # up to 0.10 and from 0.11 on
            for query in per_node("uuid:ceems_gpu_%s%s:ratio" % (prefix, name), chosen, "avg"):
                yield "GPU " + name, query, RECORDS
    for link in ("nvlink_tx", "nvlink_rx", "pcie_tx", "pcie_rx"):
        for record in ("uuid:ceems_gpu_%s_bytes:ratio", "uuid:ceems_gpu_prof_%s_bytes:sum", "uuid:ceems_gpu_prof_%s_bytes:rate"):
            for query in per_node(record % link, chosen):
                yield "GPU " + link, query, RECORDS
    for way in ("read", "write"):
        for what in ("bytes", "requests", "errors"):
            for query in rates("ceems_ebpf_%s_%s_total" % (way, what), "mountpoint"):
                yield "IO " + what, query, EXPORTER
            yield "IO " + what, 'uuid:ceems_io_%s_%s:irate{uuid="$uuid"}' % (way, what), RECORDS
    for way in ("ingress", "egress"):
        for what in ("bytes", "packets"):
            for query in rates("ceems_ebpf_%s_%s_total" % (way, what), "proto, family"):
                yield "network " + what, query, EXPORTER
            yield "network " + what, 'uuid:ceems_net_%s_%s:irate{uuid="$uuid"}' % (way, what), RECORDS
    yield "CPU time", "sum(irate(ceems_compute_unit_cpu_user_seconds_total{%s}[$__rate_interval])) + sum(irate(" \
        "ceems_compute_unit_cpu_system_seconds_total{%s}[$__rate_interval]))" % ('uuid="$uuid"', 'uuid="$uuid"'), EXPORTER


# Requests of the summary dashboards, as a user and, with /admin, as an operator. Columns that must be there, with a value.
USAGE = ("avg_cpu_usage.global", "avg_cpu_mem_usage.global", "avg_gpu_usage.global", "avg_gpu_mem_usage.global",
         "total_cpu_energy_usage_kwh.total", "total_gpu_energy_usage_kwh.total", "total_cpu_emissions_gms.owid_total",
         "total_gpu_emissions_gms.owid_total")
UNITS = USAGE + ("uuid", "name", "project", "username", "started_at", "started_at_ts", "created_at_ts", "elapsed", "state",
                 "tags.nodelist", "tags.partition", "tags.qos", "total_time_seconds.walltime")


def summaries(start, end):
    """(path and parameters, columns)"""
    period = "from=%d&to=%d" % (start, end)
    for suffix in ("", "/admin"):
        yield "users%s?cluster_id=test" % suffix, ("name", "projects.0")
        for field in USAGE:
            yield "usage/current%s?cluster_id=test&project=pa&user=alice&%s&field=%s&field=username" % (suffix, period, field.split(".")[0]), \
                (field, "username")
        yield "units%s?cluster_id=test&project=pa&user=alice&%s&running=1" % (suffix, period), UNITS
