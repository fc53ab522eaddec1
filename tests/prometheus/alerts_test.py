#!/usr/bin/env python3
"""Every alert of packaging/prometheus fires for the series of alert_cases.py, with its text, and stays quiet for others."""

import dataclasses
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


def needed(alert):
    """The groups of records that the alert reads, and that those read, with nothing else in them. Records of CEEMS come with the series."""
    texts, names = [alert.expr], set()
    groups = promtool.energy.groups(promtool.Settings())
    while texts:
        found = set(re.findall(r"[a-z_]+:ceems_\w+(?::\w+)?", texts.pop())) - names
        names |= found
        texts += [rule.expr for rule in promtool.records(groups) if rule.name in found]
    kept = [dataclasses.replace(group, rules=[rule for rule in group.rules if rule.name in names]) for group in groups]
    return [group for group in kept if group.rules]


def check_alert(alert, group, directory):
    """With this alert and what it reads, because promtool evaluates all rules at all steps of all tests."""
    path = os.path.join(directory, alert.name + ".yml")
    with open(path, "w", encoding="utf-8") as f:
        groups = needed(alert) + [dataclasses.replace(group, rules=[alert])]
        f.write("groups:\n" + "".join(promtool.GENERATE.group_text(one, promtool.Settings()) for one in groups))
    count = 0
    for step in sorted({case.step for name, case in alert_cases.CASES if name == alert.name}):
        tests = []
        for name, case in alert_cases.CASES:
            if name == alert.name and case.step == step:
                tests.append(promtool_test(name, case, case.fires, [expected(name, case.labels)]))
                tests += [promtool_test(name, case, quiet, []) for quiet in case.quiet]
        status, output = promtool.test_rules([path], tests, step)
        assert status == 0, output[:6000]
        count += len(tests)
    return count


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
                print("ok  %s: %d tests" % (group.name, sum(check_alert(alert, group, directory) for alert in group.rules)))


if __name__ == "__main__":
    main()
