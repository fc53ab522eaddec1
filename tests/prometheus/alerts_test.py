#!/usr/bin/env python3
"""Every alert of packaging/prometheus fires for the series of alert_cases.py, with its text, and stays quiet for others."""

import os
import re
import sys
import tempfile

import alert_cases
import promtool

ALERTS = {rule.name: rule for rule in promtool.records(promtool.alerts.groups(promtool.Settings()))}


def filled(text, labels):
    return re.sub(r"{{ \$labels\.(\w+) }}", lambda found: labels.get(found.group(1), ""), text)


def expected(name, labels):
    alert = ALERTS[name]
    return {"exp_labels": dict(labels, severity=alert.severity), "exp_annotations": {
        "summary": filled(alert.summary, labels), "description": filled(alert.action, labels),
        "runbook_url": "docs/runbooks/%s.md#%s" % (alert.page, name.lower())}}


def promtool_test(name, case, series, alerts):
    return {"interval": case.step, "name": name, "input_series": [{"series": one, "values": values} for one, values in series],
            "alert_rule_test": [{"eval_time": case.at, "alertname": name, "exp_alerts": alerts}]}


def check_group(group, directory):
    """Only with the alerts of the group, because promtool evaluates all rules at all steps."""
    path = os.path.join(directory, group.name + ".yml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("groups:\n" + promtool.GENERATE.group_text(group, promtool.Settings()))
    files = [path] + [promtool.rule_file("ceems.rules.yml")] * any(":ceems_" in alert.expr for alert in group.rules)
    names = {alert.name for alert in group.rules}
    for step in sorted({case.step for name, case in alert_cases.CASES if name in names}):
        tests = []
        for name, case in alert_cases.CASES:
            if name in names and case.step == step:
                tests.append(promtool_test(name, case, case.fires, [expected(name, case.labels)]))
                tests += [promtool_test(name, case, quiet, []) for quiet in case.quiet]
        status, output = promtool.test_rules(files, tests, step)
        assert status == 0, output[:6000]
        print("ok  %s: %d tests with steps of %s" % (group.name, len(tests), step))


def every_alert_is_tested():
    assert len(ALERTS) >= 45, len(ALERTS)
    tested = {name for name, case in alert_cases.CASES if case.fires and any(case.quiet)}
    assert tested == set(ALERTS), tested ^ set(ALERTS)
    numbers = {alert.number for alert in ALERTS.values()}
    assert numbers == set(range(1, 39)), sorted(set(range(1, 39)) ^ numbers)
    for alert in ALERTS.values():
        assert alert.severity in ("critical", "warning", "info") and alert.summary and alert.action, alert.name
        used = set(re.findall(r"\$\w+", alert.summary + alert.action))
        assert used <= {"$labels"}, (alert.name, used)
    print("ok  %d alerts" % len(ALERTS))


def main():
    promtool.need_promtool()
    every_alert_is_tested()
    with tempfile.TemporaryDirectory() as directory:
        for group in promtool.alerts.groups(promtool.Settings()):
            if len(sys.argv) < 2 or sys.argv[1] in group.name:
                check_group(group, directory)


if __name__ == "__main__":
    main()
