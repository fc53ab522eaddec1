#!/usr/bin/env python3
"""Recording rules of ceems_tool for every kind of hardware: a real Prometheus holds the series of tests/integration/tool_site.py,
promtool checks the files and evaluates them, and the results are compared with numbers worked out by hand."""

import json
import os
import re
import subprocess
import sys
import time

import harness
import tool_site

SAMPLES = 41


def labels_text(labels):
    return ",".join('%s=%s' % (name, json.dumps(value)) for name, value in sorted(labels.items()))


def openmetrics(jobs, start):
    """All series from `start` on as OpenMetrics text, in which the samples of a metric stand together."""
    by_metric = {}
    for job in jobs:
        for metric, labels, value, rate in job.series:
            by_metric.setdefault(metric, []).append((labels, value, rate))
    lines = []
    for metric, series in by_metric.items():
        for labels, value, rate in series:
            for i in range(SAMPLES):
                lines.append("%s{%s} %r %d" % (metric, labels_text(labels), value + rate * i * tool_site.STEP,
                                               start + i * tool_site.STEP))
    return "\n".join(lines) + "\n# EOF\n"


def fill_prometheus(directory, jobs, start, extra=""):
    """The data directory of a Prometheus that has scraped these jobs."""
    text = openmetrics(jobs, start).replace("# EOF\n", extra + "# EOF\n")
    source = harness.write(os.path.join(directory, "site.om"), text)
    data = os.path.join(directory, "tsdb")
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", source, data], check=True, stdout=subprocess.DEVNULL)
    return data


def serve_prometheus(directory, jobs, start, extra=""):
    data = fill_prometheus(directory, jobs, start, extra)
    scrapes = "".join("  - job_name: %s\n    static_configs: [{targets: ['127.0.0.1:9']}]\n" % json.dumps(job.name) for job in jobs)
    config = harness.write(os.path.join(directory, "prometheus.yml"),
                           "global: {scrape_interval: %ds, evaluation_interval: 30s}\nscrape_configs:\n%s" % (tool_site.STEP, scrapes))
    port = harness.free_port()
    program = harness.Program(["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + data,
                               "--storage.tsdb.retention.time=30d", "--web.listen-address=127.0.0.1:%d" % port, "--log.level=warn"],
                              os.path.join(directory, "prometheus.log"))
    url = "http://127.0.0.1:%d" % port
    return program.wait_ready(url + "/-/ready"), url


def tool(*arguments, stdin="", status=0):
    result = subprocess.run([os.path.join(harness.BIN, "ceems_tool"), *arguments], input=stdin, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=120, encoding="utf-8", check=False)
    assert result.returncode == status, "exit status %d:\n%s%s" % (result.returncode, result.stdout, result.stderr)
    return result


def check_rules(files):
    result = subprocess.run(["promtool", "check", "rules", "--lint-fatal", *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            encoding="utf-8", check=False)
    assert result.returncode == 0, result.stdout


def series_notation(metric, labels, value, rate):
    step = rate * tool_site.STEP
    return {"series": "%s{%s}" % (metric, labels_text(labels)), "values": "%r+%rx%d" % (float(value), float(step), SAMPLES)}


def expectation(query, label, expected):
    """A test of promtool. It compares numbers exactly, so they are rounded first."""
    if label is None:
        return {"expr": "round(%s, 0.001)" % query, "eval_time": "8m", "exp_samples": [{"labels": "{}", "value": expected}]}
    return {"expr": "sum by (%s) (round(%s, 0.001))" % (label, query), "eval_time": "8m",
            "exp_samples": [{"labels": "{%s=%s}" % (label, json.dumps(name)), "value": value} for name, value in expected.items()]}


def test_rules(directory, files, jobs, expected, name="unit"):
    """Evaluates the rules over all series with promtool."""
    tests = {"rule_files": files, "evaluation_interval": "15s",
             "tests": [{"interval": "%ds" % tool_site.STEP,
                        "input_series": [series_notation(*series) for job in jobs for series in job.series],
                        "promql_expr_test": [expectation(*one) for one in expected]}]}
    # JSON is YAML as well.
    path = harness.write(os.path.join(directory, name + "_test.yml"), json.dumps(tests))
    result = subprocess.run(["promtool", "test", "rules", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                            check=False, timeout=120)
    assert result.returncode == 0, result.stdout[:6000]


class Site:
    def __init__(self, directory, url, start):
        self.directory, self.url, self.start = directory, url, start

    def create(self, name, *arguments, stdin="", status=0):
        """Writes rules; returns (directory, sorted files, what was printed)."""
        out = os.path.join(self.directory, name)
        result = tool("tsdb", "create-recording-rules", "--url=" + self.url, "--output-dir=" + out, *self.times(), *arguments,
                      stdin=stdin, status=status)
        return out, sorted(os.listdir(out)), result

    def times(self):
        return ["--start=%d" % self.start, "--end=%d" % (self.start + 40 * tool_site.STEP)]


def test_every_family(site):
    out, files, result = site.create("all", "--country-code=FR", "--pue=%g" % tool_site.PUE, "--redfish.chassis=System", "--json")
    assert files == ["amd-dme.rules", "amd-smi.rules", "cray.rules", "dcgm-gpu.rules", "dme-gpu.rules", "gpu.rules", "hwmon.rules",
                     "ipmi.rules", "ipmi_rapl.rules", "later.rules", "rapl.rules", "redfish.rules", "smi-gpu.rules"], files
    report = json.loads(result.stdout)
    assert {one["job"]: one["power"] for one in report["hosts"]} == {
        "rapl": "RAPL", "ipmi": "IPMI", "ipmi+rapl": "IPMI", "later": "IPMI", "redfish": "Redfish", "cray": "Cray PM counters",
        "hwmon": "hwmon", "gpu": "IPMI", "amd-smi": "RAPL", "amd-dme": "RAPL"}, report
    assert [one["job"] for one in report["hosts"] if one["gpus_included"]] == ["gpu"], report
    assert any("'nothing' is skipped" in line for line in report["remarks"]), report
    assert any("'counted' is skipped: its exporters count" in line for line in report["remarks"]), report
    assert any("'mixed' is skipped: the exporters on 1 of its 2 hosts count" in line for line in report["remarks"]), report
    assert os.stat(out).st_mode & 0o777 == 0o700
    paths = [os.path.join(out, name) for name in files]
    assert {os.stat(path).st_mode & 0o777 for path in paths} == {0o600}
    check_rules(paths)
    test_rules(site.directory, paths, tool_site.jobs(), tool_site.EXPECTED)
    with open(os.path.join(out, "ipmi.rules"), encoding="utf-8") as f:
        text = f.read()
    assert text.startswith("---\ngroups:\n  - name: compute-unit-rules-ipmi\n    interval: 30s\n"), text[:100]
    assert "  - name: host-agg-rules-ipmi\n    interval: 1m0s\n" in text and "[1m0s]" in text


def written_series(files, jobs, directory):
    """The series that the rules write: an expectation that cannot hold makes promtool print them."""
    tests = {"rule_files": files, "evaluation_interval": "15s", "tests": [{
        "interval": "%ds" % tool_site.STEP, "input_series": [series_notation(*series) for job in jobs for series in job.series],
        "promql_expr_test": [{"expr": '{__name__=~"(uuid|job|instance|dev):.+"}', "eval_time": "8m", "exp_samples": []}]}]}
    path = harness.write(os.path.join(directory, "written.yml"), json.dumps(tests))
    output = subprocess.run(["promtool", "test", "rules", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                            check=False, timeout=120).stdout
    got = output.split("got: ", 1)[1]
    return re.findall(r'\{__name__=(?:[^"}]|"(?:[^"\\]|\\.)*")*\}', got)


def test_beside_the_shipped_rules(site):
    """Rules for nodes that do not count energy and those for nodes that do never write the same series, and no watt is in both."""
    out, files, _ = site.create("beside", "--country-code=FR", "--redfish.chassis=System")
    generated = [os.path.join(out, name) for name in files]
    shipped = [os.path.join(harness.ROOT, "packaging", "prometheus", name) for name in ("ceems.rules.yml", "ceems-compat.rules.yml")]
    jobs = tool_site.jobs()
    ours, theirs = (written_series(one, jobs, site.directory) for one in (shipped, generated))
    assert len(ours) == len(set(ours)) > 40 and len(theirs) == len(set(theirs)) > 100, (len(ours), len(theirs))
    # With all of them loaded there are as many: nothing is written twice.
    assert sorted(written_series(shipped + generated, jobs, site.directory)) == sorted(ours + theirs)
    assert not set(ours) & set(theirs)
    both = {one.split('"')[1] for one in ours} & {one.split('"')[1] for one in theirs}
    assert {"uuid:ceems_cpu_usage:ratio_irate", "uuid:ceems_host_power_watts:pue", "uuid:ceems_gpu_power_watts:pue",
            "uuid:ceems_gpu_usage:ratio", "uuid:ceems_gpu_emissions_g_s:pue", "uuid:ceems_host_emissions_g_s:pue",
            "uuid:ceems_io_read_bytes:irate", "job:ceems_io_read_bytes:sum_irate", "job:ceems_host_power_watts:pue",
            "job:ceems_gpu_power_watts:pue", "job:ceems_host_emissions_g_s:pue"} <= both, sorted(both)
    # One country was chosen for the one, none for the other.
    test_rules(site.directory, shipped + generated, jobs, [
        ('job:ceems_gpu_power_watts:pue{job=~"dcgm|counted"}', "job", {"dcgm": 680, "counted": 120}),
        ('job:ceems_host_power_watts:pue{job=~"ipmi|counted|mixed"}', "job", {"ipmi": 400, "counted": 80, "mixed": 80}),
        ('uuid:ceems_gpu_power_watts:pue{job="counted"}', "gpuuuid", {"GPU-E": 100}),
    ], "beside")


def test_constant_factors(site):
    for name, arguments, provider, factor in (("factor", ["--emission-factor=36"], "custom", 36),
                                              ("static", ["--country-code=FR", "--disable-providers"], "owid", 44.179085)):
        out, files, result = site.create(name, "--pue=1.25", "--redfish.chassis=System", *arguments)
        paths = [os.path.join(out, one) for one in files]
        check_rules(paths)
        assert ("static emission factor 44.179085 g/kWh from OWID data will be used" in result.stderr) == (name == "static")
        micrograms = 237.5 / 3.6 * factor
        test_rules(site.directory, paths, tool_site.jobs(), [
            ('1e6 * uuid:ceems_host_emissions_g_s:pue{job="rapl",uuid="a"}', "provider", {provider: round(micrograms, 3)}),
            ('1e6 * job:ceems_gpu_emissions_g_s:pue{job="dcgm"}', "provider", {provider: round(850 / 3.6 * factor, 3)}),
            ('1e6 * uuid:ceems_gpu_emissions_g_s:pue{job="gpu",hindex="g1/gpu-2"}', "provider",
             {provider: round(100 / 3.6 * factor, 3)}),
        ], name)
    out, files, result = site.create("none", "--redfish.chassis=System", "--country-code=XX")
    check_rules([os.path.join(out, one) for one in files])
    assert "no emission factor for country code 'XX' is known" in result.stderr
    for one in files:
        with open(os.path.join(out, one), encoding="utf-8") as f:
            assert "emissions" not in f.read()


def test_choices(site):
    # The chassis in the order of the list: Fans, System.
    out, _, result = site.create("ask", "--gpu-power-included=no", "--no-skip-energy-counters", stdin="1\n")
    assert "[0]: Fans\n[1]: System\n" in result.stderr, result.stderr
    with open(os.path.join(out, "redfish.rules"), encoding="utf-8") as f:
        text = f.read()
    assert 'chassis="System"' in text and "Fans" not in text
    with open(os.path.join(out, "gpu.rules"), encoding="utf-8") as f:
        assert "DCGM" not in f.read()
    assert os.path.exists(os.path.join(out, "counted.rules"))
    for answer, why in (("-1\n", "user input out of range: -1"), ("2\n", "user input out of range: 2"), ("", "invalid user input"),
                        ("x\n", "invalid user input")):
        _, files, result = site.create("wrong", stdin=answer, status=1)
        assert why in result.stderr and "redfish.rules" not in files and "ipmi.rules" in files, result.stderr
    _, _, result = site.create("wrong", "--redfish.chassis=redfish=Nothing", status=1)
    assert "job 'redfish' has no chassis 'Nothing', but Fans, System" in result.stderr
    out, _, _ = site.create("later", "--redfish.chassis=System", "--record-names=0.11", "--eval-interval=90s")
    with open(os.path.join(out, "dcgm-gpu.rules"), encoding="utf-8") as f:
        text = f.read()
    assert "uuid:ceems_gpu_prof_sm_active:ratio" in text and "uuid:ceems_gpu_sm_active:ratio" not in text
    assert "interval: 1m30s" in text
    # Later releases tell the kinds of memory of AMD's GPUs apart.
    test_rules(site.directory, [os.path.join(out, "dme-gpu.rules")], tool_site.jobs(), [
        ('uuid:ceems_gpu_memory_usage:ratio{job="amd-dme",uuid="x"}', "type", {"vram": 25, "gtt": 12.5, "visiblevram": 50})], "later")
    out, files, _ = site.create("old", "--redfish.chassis=System", "--record-names=0.10")
    check_rules([os.path.join(out, one) for one in files])
    with open(os.path.join(out, "dcgm-gpu.rules"), encoding="utf-8") as f:
        text = f.read()
    assert "_prof_" not in text.replace("DCGM_FI_PROF_", "") and "uuid:ceems_gpu_pcie_tx_bytes:ratio" in text


def test_mistakes(site):
    for arguments, why in (
            (["--country-code=FR", "--emission-factor=50"], "--country-code and --emission-factor cannot be used together"),
            (["--emission-factor=-1"], "--emission-factor: expected a number that is not negative"),
            (["--pue=0"], "--pue: expected a positive number"),
            (["--start=yesterday"], 'cannot parse "yesterday" to a valid timestamp'),
            (["--start=20", "--end=10"], "start time is not before end time"),
            (["--eval-interval=soon"], "--eval-interval"),
            (["--url=http://127.0.0.1:1"], "error fetching series"),
            (["--http.config.file=/nonexistent"], "path '/nonexistent' does not exist, try --help")):
        if not any(one.startswith("--url") for one in arguments):
            arguments = ["--url=" + site.url, *arguments]
        result = tool("tsdb", "create-recording-rules", "--output-dir=" + os.path.join(site.directory, "no"), *arguments, status=1)
        assert why in result.stderr and result.stderr.startswith("ceems_tool: error: "), result.stderr
        assert "password" not in result.stderr
    both = harness.write(os.path.join(site.directory, "http.yml"), "basic_auth: {username: u, password: p}\n")
    result = tool("tsdb", "create-recording-rules", "--url=http://u:secret@127.0.0.1:1", "--http.config.file=" + both, status=1)
    assert "Cannot set base auth in the server URL and use a http.config.file" in result.stderr and "secret" not in result.stderr


def test_relabel_configs(site):
    result = tool("tsdb", "create-relabel-configs", "--url=" + site.url, *site.times())
    assert result.stdout == "" and result.stderr.startswith("Merge the following scrape_configs with the current config.\n")
    assert "  - job: dcgm\n    metric_relabel_configs:\n      - source_labels:\n          - modelName\n          - UUID\n" in result.stderr
    configs = json.loads(tool("tsdb", "create-relabel-configs", "--json", "--url=" + site.url, *site.times()).stdout)["scrape_configs"]
    assert {one["job"]: len(one["metric_relabel_configs"]) for one in configs} == {"smi": 6, "dcgm": 4, "dme": 4}, configs
    empty = tool("tsdb", "create-relabel-configs", "--url=" + site.url, "--start=1", "--end=2")
    assert "scrape_configs: []" in empty.stderr


RECORDS = [
    ("uuid:ceems_cpu_usage:ratio_irate", {"uuid": "1.batch"}, 40),
    ("uuid:ceems_cpu_usage:ratio_irate", {"uuid": "1xbatch"}, 80),
    ("uuid:ceems_host_power_watts:pue", {"uuid": "1.batch"}, 100),
    ("uuid:ceems_host_emissions_g_s:pue", {"uuid": "1.batch", "provider": "wt"}, 0.5),
    ("uuid:ceems_host_emissions_g_s:pue", {"uuid": "1.batch", "provider": "owid"}, 0.25),
]


def record_text(start):
    return "".join("%s{%s} %r %d\n" % (name, labels_text(labels), float(value), start + i * tool_site.STEP)
                   for name, labels, value in RECORDS for i in range(SAMPLES))


def test_updater_queries(site):
    arguments = ["tsdb", "create-ceems-tsdb-updater-queries", "--url=" + site.url, *site.times()]
    text = tool(*arguments).stderr
    power = "uuid:ceems_host_power_watts:pue{uuid=~`{{.UUIDs}}`}"
    assert text.startswith("Queries for TSDB updater:\n---\n\nqueries:\n  avg_cpu_usage:\n    global: avg_over_time(avg by (uuid) ("
                           "uuid:ceems_cpu_usage:ratio_irate{uuid=~`{{.UUIDs}}`} > 0 < inf)[{{.Range}}:])\n\n\n"
                           "  total_cpu_emissions_gms:\n    owid_total: "), text
    assert text.endswith("\n  total_cpu_energy_usage_kwh:\n    total: sum_over_time(sum by (uuid) (%s > 0 < inf)[{{.Range}}:"
                         "{{.ScrapeInterval}}]) * {{.ScrapeIntervalMilli}} / 3.6e9\n\n\n\n" % power), text
    queries = {(one["metric"], one["sub_metric"]): one["query"] for one in json.loads(tool(*arguments, "--json").stdout)}
    assert sorted(queries) == [("avg_cpu_usage", "global"), ("total_cpu_emissions_gms", "owid_total"),
                               ("total_cpu_emissions_gms", "wt_total"), ("total_cpu_energy_usage_kwh", "total")], queries
    # As the updater fills them in: an id with a dot, escaped as a class.
    end = site.start + 40 * tool_site.STEP
    for key, expected in ((("avg_cpu_usage", "global"), 40), (("total_cpu_energy_usage_kwh", "total"), 40 * 15 * 100 / 3.6e6),
                          (("total_cpu_emissions_gms", "wt_total"), 40 * 15 * 0.5)):
        query = queries[key]
        for name, value in (("UUIDs", "1[.]batch"), ("Range", "10m"), ("ScrapeIntervalMilli", "15000"), ("ScrapeInterval", "15s")):
            query = query.replace("{{.%s}}" % name, value)
        answer = harness.get(site.url + "/api/v1/query?" + harness.urllib.parse.urlencode({"query": query, "time": end - 1})).json
        values = [float(one["value"][1]) for one in answer["data"]["result"]]
        assert len(values) == 1 and abs(values[0] - expected) <= 0.03 * expected, (key, answer)
    nothing = tool("tsdb", "create-ceems-tsdb-updater-queries", "--url=" + site.url, "--start=1", "--end=2")
    assert nothing.stderr == "Queries for TSDB updater:\n---\n\nqueries:\n\n", repr(nothing.stderr)


TESTS = [test_every_family, test_beside_the_shipped_rules, test_constant_factors, test_choices, test_mistakes, test_relabel_configs, test_updater_queries]


def main():
    harness.need_programs("prometheus", "promtool")
    wanted = sys.argv[1:]
    with harness.scratch("ceems_tool_rules") as directory:
        start = (int(time.time()) - 3 * 3600) // 60 * 60
        program, url = serve_prometheus(directory, tool_site.jobs(), start, record_text(start))
        with program:
            site = Site(directory, url, start)
            for test in TESTS:
                if not wanted or any(word in test.__name__ for word in wanted):
                    begin = time.monotonic()
                    test(site)
                    print("ok  %s (%.1f s)" % (test.__name__, time.monotonic() - begin))


if __name__ == "__main__":
    main()
