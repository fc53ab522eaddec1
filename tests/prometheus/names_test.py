#!/usr/bin/env python3
"""Rules and alerts read only series that exist: those of the tables of metrics in docs/, records of the rules themselves, and the few of
other programs that are listed here. Every alert has a runbook, every link of docs/prometheus.md and the runbooks leads somewhere, and the
samples of configuration are valid."""

import glob
import json
import os
import re
import shutil
import sys
import tempfile

import promtool

sys.path.insert(0, os.path.join(promtool.ROOT, "tests"))
import docs_test  # noqa: E402

DOCS = os.path.join(promtool.ROOT, "docs")
RUNBOOKS = os.path.join(DOCS, "runbooks")
METRICS = ["exporter/metrics.md", "api/metrics.md", "lb/metrics.md", "redfish-proxy.md", "admission-controller.md", "energy.md",
           "web-config.md"]
FOREIGN = {
    "up", "scrape_duration_seconds",  # Prometheus, for each target
    "prometheus_rule_evaluation_failures_total",
    "node_filesystem_avail_bytes", "node_time_seconds",  # node_exporter
    "apiserver_admission_webhook_fail_open_count",  # Kubernetes
    "ceems:node_off",  # optional, of the site
    # Names of 0.11 and later, which exporters have beside the older ones.
    "ceems_ipmi_dcmi_power_current_watts", "ceems_redfish_power_current_watts",
}
FOREIGN_PATTERN = r"DCGM_FI_PROF_[A-Z0-9_]+|gpu_prof_\w+"  # GPU exporters of NVIDIA and AMD
WORDS = set("""abs and avg avg_over_time bool by changes clamp_min count group group_left group_right histogram_quantile ignoring increase inf irate
label_replace last_over_time max max_over_time offset on or predict_linear rate scalar sum time timestamp topk unless vector without""".split())


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def rows(text, prefix):
    """The tables of a page, with the prefix that the page says its names leave out."""
    return "\n".join(re.sub(r"`([a-z]\w*)`", lambda found: "`%s%s`" % (prefix, found.group(1)), line) if line.startswith("|") else line
                     for line in text.splitlines())


def known_metrics():
    patterns = set()
    for name in METRICS:
        text = read(os.path.join(DOCS, name))
        patterns |= docs_test.documented(text)
        if name == "api/metrics.md":
            patterns |= docs_test.documented(rows(text, "ceems_api_server_"))
    return re.compile("|".join(sorted(patterns)))


def metrics_of(expr):
    """The names of metrics in an expression: what is neither in braces, quotes, ranges and lists of labels nor a word of PromQL."""
    found = set(re.findall(r'__name__=~"([^"]+)"', expr))
    names = set()
    for pattern in found:
        begin, alternatives, end = re.fullmatch(r"(\w*)\(([^()]*)\)(\w*)", pattern).groups()
        names |= {begin + one + end for one in alternatives.split("|")}
    text = re.sub(r"\{[^}]*\}", " ", expr)
    text = re.sub(r'"(?:[^"\\]|\\.)*"', " ", text)
    text = re.sub(r"\[[^\]]*\]", " ", text)
    text = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", text)
    text = re.sub(r"\boffset \w+", " ", text)
    return names | (set(re.findall(r"(?<![\w.])[a-zA-Z_:][\w:]*", text)) - WORDS)


def every_metric_exists():
    settings = promtool.Settings()
    rules = [rule for table in (promtool.energy, promtool.compat, promtool.alerts, promtool.site)
             for rule in promtool.records(table.groups(settings))]
    records = {rule.name for rule in rules if hasattr(rule, "comment")}
    known = known_metrics()
    assert metrics_of('sum by (a) (rate(b_c{d="e"}[5m] offset 1h)) / on (x) group_left (y) f:g{__name__=~"h_(i|j)_k"} and inf > 1e6') == {
        "b_c", "f:g", "h_i_k", "h_j_k"}
    used, wrong = set(), []
    for rule in rules:
        for name in metrics_of(rule.expr):
            used.add(name)
            if not (name in records | FOREIGN or known.fullmatch(name) or known.fullmatch(re.sub("_bucket$", "", name))
                    or re.fullmatch(FOREIGN_PATTERN, name)):
                wrong.append("%s: %s" % (rule.name, name))
    assert not wrong, wrong
    assert FOREIGN <= used and len(used) > 100, (FOREIGN - used, len(used))
    assert not known.fullmatch("ceems_nonsense_total") and not known.fullmatch("up")
    print("ok  %d metrics in %d rules" % (len(used), len(rules)))


def anchors(path):
    """Of the headings of a page, as GitHub and GitLab make them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", read(path), re.M)}


def every_alert_has_a_runbook():
    alerts = promtool.records(promtool.alerts.groups(promtool.Settings()))
    sections = {}
    for path in glob.glob(os.path.join(RUNBOOKS, "*.md")):
        for name, text in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", read(path), re.M | re.S):
            assert name not in sections, name
            sections[name] = (os.path.splitext(os.path.basename(path))[0], text)
    assert {alert.name for alert in alerts} == set(sections), {alert.name for alert in alerts} ^ set(sections)
    table = read(os.path.join(DOCS, "prometheus.md"))
    assert "%d [alerts](#alerts)" % len(alerts) in table, len(alerts)
    for alert in alerts:
        page, text = sections[alert.name]
        assert page == alert.page, (alert.name, page, alert.page)
        for part in ("**Means**: ", "**Check**: ", "**Do**: "):
            assert text.count(part) == 1, (alert.name, part)
        assert "[%s](runbooks/%s.md#%s)" % (alert.name, page, alert.name.lower()) in table, alert.name + " is not in docs/prometheus.md"
        links = read(promtool.rule_file("ceems-alerts.yml"))
        assert "docs/runbooks/%s.md#%s\"" % (page, alert.name.lower()) in links, alert.name
    print("ok  %d runbooks" % len(sections))


def links_resolve():
    count = 0
    for path in [os.path.join(DOCS, "prometheus.md"), *glob.glob(os.path.join(RUNBOOKS, "*.md"))]:
        for link in re.findall(r"\]\(([^)]+)\)", read(path)):
            if link.startswith("http"):
                continue
            target, _, anchor = link.partition("#")
            full = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            assert os.path.exists(full), "%s: %s" % (path, link)
            assert not anchor or anchor in anchors(full), "%s: %s" % (path, link)
            count += 1
    assert count > 60, count
    print("ok  %d links" % count)


def metrics_of_runbooks_exist():
    known = known_metrics()
    records = {rule.name for table in (promtool.energy, promtool.compat, promtool.site) for rule in
               promtool.records(table.groups(promtool.Settings()))}
    for path in glob.glob(os.path.join(RUNBOOKS, "*.md")) + [os.path.join(DOCS, "prometheus.md")]:
        for name in re.findall(r"`(?:rate\()?((?:ceems|redfish|hostname:ceems|cluster:ceems|uuid:ceems|job:ceems)_\w+(?::\w+)?)[{`\[]", read(path)):
            if not re.search(r"_(seconds|watts|total|joules|info|units|up|ratio|gaps|success|hints|failing)(:\w+)?$", name):
                continue  # a program
            assert known.fullmatch(name) or name in records, "%s: %s" % (path, name)


def samples_are_valid():
    with tempfile.TemporaryDirectory() as directory:
        os.makedirs(directory + "/rules")
        os.makedirs(directory + "/targets")
        for name in promtool.GENERATE.FILES:
            shutil.copy(promtool.rule_file(name), directory + "/rules")
        shutil.copy(promtool.rule_file("samples/nodes.yml"), directory + "/targets/nodes.yml")
        for name in ("ca.pem", "ceems.password", "inventory.token", "token"):
            with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
                f.write("x\n")
        with open(directory + "/targets/node-exporters.yml", "w", encoding="utf-8") as f:
            f.write("- targets: [cpu001:9100]\n")
        found = sorted(glob.glob(promtool.rule_file("samples/prometheus*.yml")))
        assert len(found) == 3, found
        for path in found:
            text = read(path).replace("/etc/prometheus", directory).replace(
                "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", directory + "/ca.pem").replace(
                    "/var/run/secrets/kubernetes.io/serviceaccount", directory)
            for variant in (text, text.replace("  # - /", "  - /")):  # with what is commented out, too
                copy = os.path.join(directory, "prometheus.yml")
                with open(copy, "w", encoding="utf-8") as f:
                    f.write(variant)
                status, output = promtool.run("check", "config", "--lint-fatal", copy)
                if "field kubernetes_sd_configs not found" in output:  # Debian builds Prometheus without it
                    with open(copy, "w", encoding="utf-8") as f:
                        f.write(re.sub(r"kubernetes_sd_configs:\n(?: {6}.*\n)+?(?= {4}\w)", "static_configs: [{targets: [pod]}]\n", variant))
                    status, output = promtool.run("check", "config", "--lint-fatal", copy)
                assert status == 0 and "SUCCESS" in output and "rules found" in output, output
            jobs = set(re.findall(r"job_name: (\w+)", text))
            assert "ceems" in jobs and "target_label: ceems_id" in text, path
        used = set(re.findall(r'job=~?"([\w|]+)"', read(promtool.rule_file("ceems-alerts.yml"))))
        named = set(re.findall(r"job_name: (\w+)", "".join(read(path) for path in found)))
        assert {job for one in used for job in one.split("|")} <= named, (used, named)
        print("ok  %d samples" % len(found))


def mapping_of_supremm_has_metrics_that_exist():
    """The form is that of ubccr/supremm: config/prometheus/mapping.json."""
    with open(os.path.join(promtool.ROOT, "packaging", "supremm", "mapping.json"), encoding="utf-8") as f:
        mapping = json.load(f)
    assert mapping["common"] == {"params": ["host"], "defaults": {}}, mapping["common"]
    known = known_metrics()
    for name, metric in mapping["metrics"].items():
        assert known.fullmatch(metric["name"]), (name, metric)
        assert set(metric) <= {"name", "groupby", "out_fmt"} and metric["groupby"], (name, metric)
        assert metric.get("out_fmt", [""])[0].count("{}") == len(metric.get("out_fmt", [""])) - 1, (name, metric)
    print("ok  %d metrics of SUPReMM" % len(mapping["metrics"]))


def main():
    promtool.need_promtool()
    for test in (every_metric_exists, mapping_of_supremm_has_metrics_that_exist, every_alert_has_a_runbook, links_resolve, metrics_of_runbooks_exist, samples_are_valid):
        if not sys.argv[1:] or any(word in test.__name__ for word in sys.argv[1:]):
            test()


if __name__ == "__main__":
    main()
