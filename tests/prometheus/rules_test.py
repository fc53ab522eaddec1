#!/usr/bin/env python3
"""The recording rules of packaging/prometheus: every record with numbers worked out by hand for the site of site_series.py.

A test is (query, the labels that tell its series apart, {their values: number}). Numbers are rounded, because promtool compares
exactly."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import promtool
import site_series

AT = "20m"  # after the gap of n3
OURS = [promtool.rule_file("ceems.rules.yml"), promtool.rule_file("ceems-compat.rules.yml")]


def scaled(factor, values):
    return {key: value * factor for key, value in values.items()}


def joined(*parts):
    return {key: value for part in parts for key, value in part.items()}


UNIT_WATTS = {"a node": 500, "a gpu": 380, "a package": 80, "a dram": 10, "a other": 30, "b node": 190, "b gpu": 100, "c node": 200,
              "c gpu": 150, "d node": 60, "d gpu": 0, "e node": 25, "e gpu": 20, "f node": 100, "f package": 70, "f dram": 10,
              "f other": 20, "g node": 90, "g gpu": 40}
ENERGY = [
    ("uuid:ceems_unit_power_watts:rate", "uuid domain", UNIT_WATTS),
    ("uuid:ceems_cpu_cores:rate", "uuid", {"a": 8, "b": 1, "f": 6, "g": 2, "z": 6}),
    ("hostname:ceems_node_power_watts:rate", "hostname domain", {
        "n1 node": 1200, "n1 gpu": 660, "n2 node": 160, "n2 package": 140, "n3 node": 110, "n3 gpu": 40}),
    ("hostname:ceems_system_power_watts:rate", "hostname domain", {"n1 node": 100, "n2 node": 20}),
    ("hostname:ceems_unallocated_power_watts:rate", "hostname domain", {"n1 node": 120, "n2 node": 40}),
    ("cluster:ceems_power_watts:rate", "cluster domain", {"c1 node": 1470, "c1 gpu": 700, "c1 package": 140}),
    ("cluster:ceems_system_power_watts:rate", "cluster domain", {"c1 node": 120}),
    ("cluster:ceems_unallocated_power_watts:rate", "cluster domain", {"c1 node": 160}),
    ("provider:ceems_emission_factor:max", "provider country_code", {
        "rte FR": 36, "owid FR": 44, "owid DE": 300, "emaps FR": 40, "wt FR": 48, "global ZZ": 445}),
]

# 40 samples of 30 s, each series from 1000 J on: n1 has 5 units with a counter of the node and three more parts.
N1_PARTS = 8 * 1000 + (500 + 190 + 200 + 60 + 25 + 100 + 120 + 5) * 1200
N2_PARTS = 4 * 1000 + (100 + 20 + 40 + 0) * 1200
ENERGY.append(("hostname:ceems_energy_balance:ratio", "hostname", {
    "n1": N1_PARTS / (1000 + 1200 * 1200), "n2": N2_PARTS / (1000 + 160 * 1200), "n3": (1000 + 90 * 1200) / (1000 + 110 * 1200)}))

HOST_WATTS = {"a": 120, "b": 90, "c": 50, "d": 60, "e": 5, "f": 100, "g": 50}
# GPU-0 draws 300 W and GPU-1 100 W. GPU-2 draws 200 W, and its instances have 28 and 56 SMs. b and c share the 60 W of GPU-3.
B = 200 * 28 / 84 + 30
C = 200 * 56 / 84 + 30
GPU_WATTS = {"a GPU-0 ": 380 * 0.75, "a GPU-1 ": 380 * 0.25, "b GPU-2 1": 100 * (B - 30) / B, "b GPU-3 ": 100 * 30 / B,
             "c GPU-2 2": 150 * (C - 30) / C, "c GPU-3 ": 150 * 30 / C, "e  ": 20, "g GPU-8 ": 20, "g GPU-9 ": 20}
GPU_USE = {"a GPU-0 ": 95, "a GPU-1 ": 25, "b GPU-2 1": 50, "c GPU-2 2": 75, "b GPU-3 ": 40, "c GPU-3 ": 40, "g GPU-8 ": 0, "g GPU-9 ": 0}
GPU = "uuid gpuuuid gpuiid"
JOB_HOST = 1470 - 700
FACTORS = {"rte": 36, "owid": 44, "emaps": 40, "wt": 48}

COMPAT = [
    ("uuid:ceems_cpu_usage:ratio_irate", "uuid", {"a": 50, "b": 25, "f": 75, "g": 50}),
    ("uuid:ceems_cpu_memory_usage:ratio", "uuid", {"a": 25, "b": 50, "f": 50, "g": 25}),
    ("instance:ceems_ipmi_dcmi_current_watts:pue", "hostname", {"n2": 210}),
    ("instance:ceems_ipmi_dcmi_power_current_watts:pue", "hostname", {"n2": 210}),
    ("instance:ceems_redfish_current_watts:pue", "hostname", {"n2": 220}),
    ("instance:ceems_redfish_power_current_watts:pue", "hostname", {"n2": 220}),
    ("instance:ceems_cray_pm_counters_power_watts:pue", "hostname", {"n2": 230}),
    ("instance:ceems_rapl_package_joules_total:pue", "hostname", {"n2": 1000 + 140 * 1200}),
    ("instance:ceems_rapl_dram_joules_total:pue", "hostname", {"n2": 1000 + 15 * 1200}),
    ("uuid:ceems_host_power_watts:pue{job=\"ceems\"}", "uuid", HOST_WATTS),
    ("uuid:ceems_gpu_share:ratio", GPU, {"a GPU-0 ": 1, "a GPU-1 ": 1, "b GPU-2 1": 1, "c GPU-2 2": 1, "b GPU-3 ": 0.5, "c GPU-3 ": 0.5,
                                         "g GPU-8 ": 1, "g GPU-9 ": 1}),
    ("uuid:ceems_gpu_weight:watts", GPU, {"a GPU-0 ": 300, "a GPU-1 ": 100, "b GPU-2 1": 200 / 3, "c GPU-2 2": 400 / 3, "b GPU-3 ": 30,
                                          "c GPU-3 ": 30, "g GPU-8 ": 0, "g GPU-9 ": 0}),
    ("uuid:ceems_gpu_power_watts:pue{job=\"ceems\"}", GPU, GPU_WATTS),
    ("uuid:ceems_gpu_usage:ratio", GPU, GPU_USE),
    ("uuid:ceems_gpu_memory_usage:ratio", GPU + " type", {"a GPU-0  ": 75, "a GPU-1  vram": 25, "b GPU-2 1 ": 50, "c GPU-2 2 ": 25,
                                                          "b GPU-3  ": 5, "c GPU-3  ": 5}),
    ("job:ceems_cpu_usage:avg_ratio_irate", "job", {"ceems": 25}),
    ("job:ceems_cpu_memory_usage:avg_ratio", "job", {"ceems": 25}),
    ("job:ceems_host_power_watts:pue{job=\"ceems\"}", "job", {"ceems": JOB_HOST}),
    ("job:ceems_gpu_power_watts:pue", "job", {"ceems": 700}),
    # The GPUs and instances 0, 1, 2.1, 2.2, 3, 8 and 9, and not GPU-2 as a whole.
    ("job:ceems_gpu_usage:avg", "job", {"ceems": (95 + 25 + 50 + 75 + 80 + 0 + 0) / 7}),
    ("job:ceems_gpu_memory_usage:avg_ratio", "job", {"ceems": (75 + 25 + 50 + 25 + 10) / 5}),
    # Ours first, then NVIDIA's exporter, and the share of those who share a GPU.
    ("uuid:ceems_gpu_sm_active:ratio{job=\"ceems\"}", GPU, {
        "a GPU-0 ": 80, "a GPU-1 ": 35, "b GPU-2 1": 50, "c GPU-2 2": 70, "b GPU-3 ": 30, "c GPU-3 ": 30}),
    ("uuid:ceems_gpu_sm_occupancy:ratio", GPU, {"a GPU-0 ": 40}),
    ("uuid:ceems_gpu_gr_engine_active:ratio", GPU, {"a GPU-0 ": 90}),
    ("uuid:ceems_gpu_pipe_tensor_active:ratio", GPU, {"a GPU-0 ": 30}),
    ("uuid:ceems_gpu_pipe_fp64_active:ratio", GPU, {"a GPU-0 ": 20}),
    ("uuid:ceems_gpu_pipe_fp32_active:ratio", GPU, {"a GPU-0 ": 10}),
    ("uuid:ceems_gpu_pipe_fp16_active:ratio", GPU, {"a GPU-0 ": 5}),
    ("uuid:ceems_gpu_dram_active:ratio", GPU, {"a GPU-0 ": 60}),
]
COMPAT += [(query.replace("uuid:ceems_gpu_", "uuid:ceems_gpu_prof_").replace("{job=\"ceems\"}", ""), by, values)
           for query, by, values in COMPAT[-8:]]
for name, values in (("nvlink_tx_bytes", {"a GPU-0 ": 4e9}), ("nvlink_rx_bytes", {"a GPU-0 ": 3e9}),
                     ("pcie_tx_bytes", {"a GPU-0 ": 2e9, "b GPU-3 ": 3.5e8, "c GPU-3 ": 3.5e8}), ("pcie_rx_bytes", {"a GPU-0 ": 1e9})):
    COMPAT += [(record % name, GPU, values)
               for record in ("uuid:ceems_gpu_prof_%s:rate", "uuid:ceems_gpu_prof_%s:sum", "uuid:ceems_gpu_%s:ratio")]
COMPAT += [("uuid:ceems_gpu_prof_" + name, GPU, {"a GPU-1 ": value})
           for name, value in (("tensor_active_percent:ratio", 12), ("occupancy_percent:ratio", 34), ("total_16_ops:sum", 1e12),
                               ("total_32_ops:sum", 2e12), ("total_64_ops:sum", 3e12), ("write_size:sum", 5e9), ("fetch_size:sum", 6e9))]
for factor, direction in ((1, "read"), (2, "write")):
    for what, rate in (("bytes", 1e6), ("requests", 100), ("errors", 2)):
        values = {"/home": factor * rate, "/scratch": factor * rate}
        COMPAT += [("uuid:ceems_io_%s_%s:irate" % (direction, what), "mountpoint", values),
                   ("job:ceems_io_%s_%s:sum_irate" % (direction, what), "job mountpoint", {"ceems " + k: v for k, v in values.items()})]
for factor, direction in ((1, "ingress"), (2, "egress")):
    for what, rate in (("bytes", 5e5), ("packets", 400)):
        COMPAT += [("uuid:ceems_net_%s_%s:irate" % (direction, what), "uuid family proto", {"f ipv4 tcp": factor * rate}),
                   ("job:ceems_net_%s_%s:sum_irate" % (direction, what), "job family proto", {"ceems ipv4 tcp": factor * rate})]


def emissions(pue, chosen):
    """In µg/s for each provider; `chosen` says which factors count."""
    tests = [("provider:ceems_site_emission_factor:max", "provider", chosen)]
    for kind, watts, labels in (("host", HOST_WATTS, "uuid"), ("gpu", GPU_WATTS, GPU)):
        tests.append(("1e6 * uuid:ceems_%s_emissions_g_s:pue" % kind, labels + " provider", {
            "%s %s" % (key, provider): value * pue / 3.6 * factor
            for key, value in watts.items() for provider, factor in chosen.items()}))
    for kind, watts in (("host", JOB_HOST), ("gpu", 700)):
        tests.append(("1e6 * job:ceems_%s_emissions_g_s:pue" % kind, "job provider country_code country", {
            "ceems %s %s" % (provider, "ZZ World" if provider == "global" else "FR France"): watts * pue / 3.6 * factor
            for provider, factor in chosen.items()}))
    return tests


def with_pue(pue, tests):
    return [(query, by, scaled(pue, values) if ":pue" in query else values) for query, by, values in tests]


def expectation(test):
    query, by, values = test
    names = by.split()
    samples = [{"labels": promtool.labels_text({name: part for name, part in zip(names, key.split(" ")) if part}),
                "value": round(value, 3)} for key, value in values.items()]
    return {"expr": "sum by (%s) (round(%s, 0.001))" % (", ".join(names), query), "eval_time": AT, "exp_samples": samples}


def evaluate(files, tests, more=()):
    status, output = promtool.test_rules(files, [{
        "interval": "%ds" % site_series.STEP, "input_series": site_series.series() + list(more),
        "promql_expr_test": [expectation(test) for test in tests]}])
    assert status == 0, output[:8000]


def records_are_right_without_a_site_file():
    """The PUE is 1, and the factors of providers that know one country count."""
    evaluate(OURS, ENERGY + COMPAT + emissions(1, {"rte": 36, "emaps": 40, "wt": 48, "global": 445}))


def records_are_right_for_a_site():
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([promtool.rule_file("generate"), "--pue=1.25", "--country=FR", "--output", directory], check=True)
        files = [os.path.join(directory, name) for name in ("ceems.rules.yml", "ceems-compat.rules.yml", "ceems-site.rules.yml")]
        evaluate(files, ENERGY + with_pue(1.25, COMPAT) + emissions(1.25, FACTORS) + [("ceems:pue", "", {"": 1.25}),
                                                                                      ("ceems:country", "country_code", {"FR": 1})])


def records_are_the_same_in_victoriametrics():
    """Where its tool is there, as with `tests/servers/with victoriametrics`."""
    if not shutil.which("vmalert-tool"):
        print("    (vmalert-tool is not installed, skipped)")
        return
    tests = ENERGY + COMPAT + emissions(1, {"rte": 36, "emaps": 40, "wt": 48, "global": 445})
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "test.yml")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"rule_files": OURS, "evaluation_interval": "30s", "tests": [{
                "interval": "%ds" % site_series.STEP, "input_series": site_series.series(),
                "metricsql_expr_test": [expectation(test) for test in tests]}]}, f)
        result = subprocess.run(["vmalert-tool", "unittest", "--files=" + path, "--disableAlertgroupLabel"], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, encoding="utf-8", check=False, timeout=240)
        assert result.returncode == 0 and "SUCCESS" in result.stdout, result.stdout[:8000]


def a_label_of_the_site_may_be_missing():
    """Without `cluster` on the targets the joins hold as well."""
    series = [dict(one, series=one["series"].replace('cluster="c1",', "").replace(',cluster="c1"', "")) for one in site_series.series()]
    status, output = promtool.test_rules(OURS, [{"interval": "30s", "input_series": series, "promql_expr_test": [
        expectation(test) for test in COMPAT]}])
    assert status == 0, output[:8000]


def the_labels_are_those_of_the_reference():
    flag = {"cluster": "c1", "uuid": "c", "manager": "slurm", "hostname": "n1", "cgrouphostname": "n1", "index": "2.2",
            "hindex": "n1/gpu-2.2", "gpuuuid": "GPU-2", "gpuiid": "2", "instance": "n1:9010", "job": "ceems"}
    unit = {"cluster": "c1", "uuid": "f", "manager": "slurm", "hostname": "n2", "cgrouphostname": "n2", "instance": "n2:9010", "job": "ceems"}
    tests = []
    for record, labels, value in (("uuid:ceems_gpu_power_watts:pue", flag, round(GPU_WATTS["c GPU-2 2"], 3)),
                                  ("uuid:ceems_gpu_usage:ratio", flag, 75),
                                  ("uuid:ceems_host_power_watts:pue", unit, 100), ("uuid:ceems_cpu_usage:ratio_irate", unit, 75),
                                  ("uuid:ceems_io_read_bytes:irate", dict(unit, mountpoint="/home"), 1e6),
                                  ("job:ceems_host_power_watts:pue", {"cluster": "c1", "job": "ceems"}, JOB_HOST),
                                  ("instance:ceems_ipmi_dcmi_current_watts:pue", site_series.node("n2"), 210)):
        which = {name: labels[name] for name in ("uuid", "gpuiid", "mountpoint", "job") if name in labels}
        tests.append({"expr": "round(%s%s, 0.001)" % (record, promtool.labels_text(which)), "eval_time": AT,
                      "exp_samples": [{"labels": promtool.labels_text(labels), "value": value}]})
    status, output = promtool.test_rules(OURS, [{"interval": "30s", "input_series": site_series.series(), "promql_expr_test": tests}])
    assert status == 0, output[:8000]


def gaps_leave_holes_and_no_wrong_watts():
    """n3 is away from the 20th to the 25th sample: rates end with the last two samples in the window and begin with the first two."""
    tests = [{"expr": "uuid:ceems_host_power_watts:pue{uuid=\"g\"} and on () vector(1)", "eval_time": at, "exp_samples": [] if not watts else [
        {"labels": promtool.labels_text({"cluster": "c1", "uuid": "g", "manager": "slurm", "hostname": "n3", "cgrouphostname": "n3",
                                         "instance": "n3:9010", "job": "ceems", "__name__": "uuid:ceems_host_power_watts:pue"}),
         "value": watts}]} for at, watts in (("9m30s", 50), ("20m", 50))]
    # Two samples of four in the window: what is extrapolated beyond them is at most half an interval.
    for at in ("10m30s", "13m30s"):
        tests.append({"expr": "count(uuid:ceems_host_power_watts:pue{uuid=\"g\"} > 0 <= 50)", "eval_time": at,
                      "exp_samples": [{"labels": "{}", "value": 1}]})
    status, output = promtool.test_rules(OURS, [{"interval": "30s", "input_series": site_series.series(), "promql_expr_test": tests}])
    assert status == 0, output[:8000]


def every_record_is_tested():
    names = {rule.name for table in (promtool.energy, promtool.compat, promtool.site) for rule in
             promtool.records(table.groups(promtool.Settings()))}
    tested = " ".join(query for query, _, _ in ENERGY + COMPAT + emissions(1, FACTORS)) + " ceems:pue ceems:country "
    missing = sorted(name for name in names if name + " " not in tested.replace("{", " ") + " ")
    assert not missing, missing
    assert len(names) > 90, len(names)


def every_name_of_the_reference_is_written():
    """newer-releases of CEEMS: what dashboards of 0.10.2 to 0.16 and cacct ask for."""
    usual = ("cpu_usage:ratio_irate", "cpu_memory_usage:ratio", "host_power_watts:pue", "host_emissions_g_s:pue", "gpu_usage:ratio",
             "gpu_memory_usage:ratio", "gpu_power_watts:pue", "gpu_emissions_g_s:pue")
    wanted = {"uuid:ceems_" + name for name in usual}
    wanted |= {"job:ceems_" + name for name in ("cpu_usage:avg_ratio_irate", "cpu_memory_usage:avg_ratio", "host_power_watts:pue",
                                                "host_emissions_g_s:pue", "gpu_usage:avg", "gpu_memory_usage:avg_ratio",
                                                "gpu_power_watts:pue", "gpu_emissions_g_s:pue")}
    for name in ("sm_active", "sm_occupancy", "gr_engine_active", "pipe_tensor_active", "pipe_fp64_active", "pipe_fp32_active",
                 "pipe_fp16_active", "dram_active"):
        wanted |= {"uuid:ceems_gpu_%s:ratio" % name, "uuid:ceems_gpu_prof_%s:ratio" % name}
    for name in ("nvlink_tx_bytes", "nvlink_rx_bytes", "pcie_tx_bytes", "pcie_rx_bytes"):
        wanted |= {"uuid:ceems_gpu_%s:ratio" % name, "uuid:ceems_gpu_prof_%s:rate" % name, "uuid:ceems_gpu_prof_%s:sum" % name}
    for kind, directions, whats in (("io", ("read", "write"), ("bytes", "requests", "errors")),
                                    ("net", ("ingress", "egress"), ("bytes", "packets"))):
        for direction in directions:
            for what in whats:
                wanted |= {"uuid:ceems_%s_%s_%s:irate" % (kind, direction, what), "job:ceems_%s_%s_%s:sum_irate" % (kind, direction, what)}
    written = {rule.name for rule in promtool.records(promtool.compat.groups(promtool.Settings()))}
    assert wanted <= written, sorted(wanted - written)


def files_are_those_of_the_tables():
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([promtool.rule_file("generate"), "--output", directory], check=True)
        for name in sorted(os.listdir(directory)):
            with open(os.path.join(directory, name), encoding="utf-8") as f, open(promtool.rule_file(name), encoding="utf-8") as g:
                assert f.read() == g.read(), "%s is not what packaging/prometheus/generate writes" % name
            status, output = promtool.run("check", "rules", "--lint-fatal", os.path.join(directory, name))
            assert status == 0 and "SUCCESS" in output, output


def options_are_checked():
    for arguments in (["--pue=0.5"], ["--scrape-interval=0"], ["--job=a\"b"], ["--country=F R"]):
        with tempfile.TemporaryDirectory() as directory:
            result = subprocess.run([promtool.rule_file("generate"), "--output", directory, *arguments], stderr=subprocess.PIPE,
                                    encoding="utf-8", check=False)
            assert result.returncode != 0 and "error:" in result.stderr and not os.listdir(directory), arguments
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([promtool.rule_file("generate"), "--output", directory, "--scrape-interval=60", "--job=cpu", "--job=gpu.x"], check=True)
        with open(os.path.join(directory, "ceems-alerts.yml"), encoding="utf-8") as f:
            assert json.dumps('up{job=~"cpu|gpu[.]x"}')[1:-1] in f.read().replace('"', '\\"')
        with open(os.path.join(directory, "ceems.rules.yml"), encoding="utf-8") as f:
            text = f.read()
        assert "[4m]" in text and "interval: 1m\n" in text
        status, output = promtool.run("check", "rules", "--lint-fatal", *[os.path.join(directory, one) for one in os.listdir(directory)])
        assert status == 0, output


TESTS = [records_are_right_without_a_site_file, records_are_right_for_a_site, records_are_the_same_in_victoriametrics,
         a_label_of_the_site_may_be_missing,
         the_labels_are_those_of_the_reference, gaps_leave_holes_and_no_wrong_watts, every_record_is_tested,
         every_name_of_the_reference_is_written, files_are_those_of_the_tables, options_are_checked]


def main():
    promtool.need_promtool()
    for test in TESTS:
        if not sys.argv[1:] or any(word in test.__name__ for word in sys.argv[1:]):
            test()
            print("ok  " + test.__name__)


if __name__ == "__main__":
    main()
