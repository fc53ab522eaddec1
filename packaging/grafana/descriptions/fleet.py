"""ceems-fleet: what is slow, broken or held without use in a cluster, for operators with Prometheus itself."""

from .cluster import CLUSTERS, HERE, SOURCES
from .model import Dashboard, Level, Panel, Prom, Row
from .promql import UNIT_ENERGY, increase, rate

MOST = 20
NONE_OR_SOME = (Level(0, "none", "#0072B2"), Level(1e-9, "some", "#D55E00"))
FAULTS = 'reason=~"hardware_thermal|software_thermal|power_brake|hardware_slowdown", ' + HERE
# Xids 13, 31, 43 and 45 come from programs.
ERRORS = '__name__=~"ceems_gpu_(xid|ecc)_errors_total", xid!~"13|31|43|45", type=~"|uncorrected", ' + HERE
WAITS = 'resource="io", kind="some", ' + HERE
GPUS = "count by (hostname) (group by (hostname, gpuuuid) (%s))"
# The information on a lost GPU stays until the exporter starts again.
GPUS_NOW = GPUS % ("ceems_gpu_up{%s} == 1" % HERE)
GPUS_BEFORE = GPUS % ("max_over_time(ceems_gpu_up{%s}[$__range]) == 1" % HERE)


def of_nodes(metric):
    """Errors of links by node: their series have no hostname of their own."""
    return ("topk(%d, sum by (hostname) (%s * on (job, instance) group_left (hostname) topk by (job, instance) (1, max by (job, instance, hostname) (ceems_node_info{%s}))))"
            % (MOST, increase(metric, HERE), HERE))


def busiest(by, *metrics):
    return "topk(10, sum by (uuid, %s) (%s))" % (by, " + ".join(rate(metric, HERE) for metric in metrics))


FLEET = Dashboard(
    "ceems-fleet", "Fleet", "Which nodes, GPUs, links and jobs make others wait, and what is held without use.", "operators",
    (SOURCES[0], CLUSTERS),
    (Row("Sick and slow", open=True, panels=(
        Panel("bars", "Sick nodes", "How much evidence there is that a node is sick, from 30 to 100: its power in jobs, failed jobs and signs"
              " of broken hardware. `cacct insight nodes` shows it. Healthy nodes have no bar.", "count",
              (Prom("topk(%d, max by (cluster, hostname) (ceems_node_health_score))" % MOST, "{{hostname}}", instant=True),), "health", width=8,
              levels=(Level(30, "look at it", "#E69F00"), Level(60, "drain it", "#D55E00"))),
        Panel("bars", "Power of sick nodes", "By what share such a node draws more than the nodes of the same jobs.", "percentunit",
              (Prom("topk(%d, exp(max by (cluster, hostname) (ceems_node_health_effect)) - 1)" % MOST, "{{hostname}}", instant=True),),
              "health", width=8, decimals=1),
        Panel("lines", "Jobs with slow members", "Running jobs of which a GPU or node differs from its peers, by kind of difference."
              " `cacct insight stragglers` names them.", "count",
              (Prom("sum by (kind) (max by (cluster_id, kind) (ceems_api_server_straggler_units))", "{{kind}}"),), "health", width=8),
        Panel("bars", "GPUs that are gone", "GPUs that a node had in the range and does not have now.", "count",
              (Prom("topk(%d, %s - (%s or 0 * %s))" % (MOST, GPUS_BEFORE, GPUS_NOW, GPUS_BEFORE), "{{hostname}}", instant=True),), "exporter",
              width=8, levels=NONE_OR_SOME),
        Panel("bars", "Throttled GPUs", "Share of the range in which heat, a power brake or the hardware kept the clock down: the %d GPUs that"
              " suffer most." % MOST, "percentunit",
              (Prom("topk(%d, max by (hostname, index, reason) (rate(ceems_gpu_clock_reason_seconds_total{%s}[$__range])))" % (MOST, FAULTS),
                    "{{hostname}} GPU {{index}} {{reason}}", instant=True),), "exporter", width=8, levels=NONE_OR_SOME),
        Panel("bars", "Errors of GPUs", "Xids that programs do not cause, and memory errors that could not be corrected, in the range.", "count",
              (Prom("topk(%d, sum by (hostname) (({%s} unless {%s} offset $__range) or increase({%s}[$__range])))" % (MOST, ERRORS, ERRORS, ERRORS), "{{hostname}}", instant=True),), "exporter",
              width=8, levels=NONE_OR_SOME),
    )), Row("Fabric and file systems", (
        Panel("bars", "Errors of links", "How often links of a node went down, recovered or counted symbol errors in the range.", "count",
              (Prom(of_nodes("ceems_infiniband_link_downed_total"), "{{hostname}} down", instant=True),
               Prom(of_nodes("ceems_infiniband_link_error_recovery_total"), "{{hostname}} recovered", instant=True),
               Prom(of_nodes("ceems_infiniband_symbol_error_total"), "{{hostname}} symbol errors", instant=True)), "exporter", width=8,
              levels=NONE_OR_SOME),
        Panel("lines", "Links that are not active", "Ports of all nodes that are in another state than active.", "count",
              (Prom("count(ceems_infiniband_state_id{%s} != 4) or 0 * count(ceems_infiniband_state_id{%s})" % (HERE, HERE), "links"),),
              "exporter", width=8),
        Panel("lines", "Units that wait for I/O", "Units that wait for I/O for more than a fiftieth of the time.", "count",
              (Prom("count(max by (uuid) (%s) > 0.02) or vector(0)" % rate("ceems_compute_unit_pressure_seconds_total", WAITS), "units"),),
              "exporter", width=8),
        Panel("lines", "Requests to file systems", "The units that ask most: of Lustre's servers, and of the mounts of nodes.", "reqps",
              (Prom(busiest("filesystem", "ceems_lustre_job_operations_total"), "{{filesystem}} {{uuid}}"),
               Prom(busiest("mountpoint", "ceems_ebpf_read_requests_total", "ceems_ebpf_write_requests_total"), "{{mountpoint}} {{uuid}}")),
              "exporter"),
        Panel("lines", "Share of the busiest unit", "Share of one unit in the requests to a file system. Above a half, with others that wait"
              " for I/O, it is a storm.", "percentunit",
              (Prom("max by (filesystem) (sum by (filesystem, uuid) (%s)) / sum by (filesystem) (%s)" % (
                  (rate("ceems_lustre_job_operations_total", HERE),) * 2), "{{filesystem}}"),), "exporter"),
    )), Row("Held and idle", open=True, panels=(
        Panel("lines", "GPUs held and in use", "GPUs that units have reserved, and how many of them had work.", "count",
              (Prom("count(group by (gpuuuid) (ceems_compute_unit_gpu_index_flag{%s}))" % HERE, "reserved"),
               Prom("sum(%s)" % rate("ceems_compute_unit_gpu_busy_seconds_total", HERE), "in use")), "exporter", width=8),
        Panel("bars", "Idle units", "Share of the range in which a unit did nothing on any of its nodes: the %d most idle ones." % MOST,
              "percentunit", (Prom("topk(%d, min by (uuid) (rate(ceems_compute_unit_idle_seconds_total{%s}[$__range])))" % (MOST, HERE),
                                   "{{uuid}}", instant=True),), "exporter", width=8),
        Panel("lines", "Power held without use", "Power of units, and the part that is idle power of what they have reserved.", "watt",
              (Prom("sum(%s)" % rate(UNIT_ENERGY, 'domain="node", ' + HERE), "units"),
               Prom("sum(%s)" % rate("ceems_compute_unit_idle_energy_joules_total", 'domain="node", ' + HERE), "idle power")), "energy",
              width=8),
    ))))

ALL = (FLEET,)
