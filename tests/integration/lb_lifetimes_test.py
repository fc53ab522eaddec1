#!/usr/bin/env python3
"""`access.lifetimes` of ceems_lb in front of a real Prometheus: job 7 belonged to bob before it belonged to alice.

There are two Prometheus servers: one contains both jobs, the other only alice's. Random queries at random times are sent through the
gate to the first. Step by step, whatever passes must give the same response as the second server to the same request; then it contains
nothing of bob's. Queries that reach only into alice's time must all pass completely.

usage: lb_lifetimes_test.py [--count N] [--seed N]"""

import argparse
import contextlib
import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import api_database  # noqa: E402
import harness  # noqa: E402
import lb_attack  # noqa: E402
from harness import Program, free_port, get, wait_until  # noqa: E402
from lb_test import same  # noqa: E402

START = 1_700_000_000
BOB, ALICE = (START, START + 3600), (START + 7200, START + 10800)
METRICS = lb_attack.METRICS
METADATA = ["series", "labels", "label/instance/values"]


class Maker(lb_attack.Owner):
    """Queries about job 7 and another job of alice's, at any time."""

    durations = ["90s", "5m", "10m", "30m", "1h"]

    def unit_matcher(self):
        return self.pick(['uuid="7"', 'uuid=~"7|8"', 'uuid="8"'])

    def selector(self):
        return self.pick(METRICS) + "{" + self.unit_matcher() + "}"

    def shift(self):
        at = self.r.randint(START - 600, ALICE[1] + 600)
        return self.pick(["", "", "", " offset 5m", " offset 1h", " offset 2h", " offset -1h", " @ %d" % at, " @ start()", " @ end()",
                          " @ %d offset 30m" % at])


class Near(Maker):
    """Queries that look back for less than an hour."""

    durations = ["90s", "1m", "5m"]

    def shift(self):
        return self.pick(["", "", " offset 1m"])


def openmetrics(jobs):
    """A sample every 30 s. No value of bob's can be one of alice's."""
    lines = []
    for number, metric in enumerate(METRICS):
        lines.append("# TYPE %s gauge" % metric)
        for unit, (begin, end), node, base in jobs:
            for time in range(begin, end + 1, 30):
                lines.append('%s{uuid="%s",instance="%s"} %d %d' % (metric, unit, node, base + number * 10 + (time // 30) % 7, time))
    return "\n".join(lines + ["# EOF", ""])


def make_database(directory):
    path = os.path.join(directory, "data")
    os.makedirs(path)
    database = api_database.create(os.path.join(path, "ceems.db"))
    row = {"cluster_id": "c0", "resource_manager": "slurm", "last_updated_at": "2023-11-15T00:00:00"}
    with database:
        api_database.insert(database, "admin_users", [dict(row, cluster_id="all", name="root")])
        api_database.insert(database, "projects", [dict(row, name="pa", users=["alice"]), dict(row, name="pb", users=["bob"])])
        for unit, project, user, (begin, end) in (("7", "pb", "bob", BOB), ("7", "pa", "alice", ALICE), ("8", "pa", "alice", (BOB[0], ALICE[1]))):
            api_database.insert(database, "units", [dict(row, uuid=unit, project=project, username=user, started_at=str(begin), ignore=0,
                                                         created_at_ts=begin * 1000, started_at_ts=begin * 1000, ended_at_ts=end * 1000)])
    database.close()
    for folder in (directory, path):
        os.chmod(folder, 0o755)
    return path


class Site:
    def __init__(self, stack, directory):
        bob = ("7", BOB, "bobs-node", 900_000)
        own = [("7", ALICE, "n1", 1000), ("8", (BOB[0], ALICE[1]), "n2", 2000)]
        self.ports = {}
        for name, jobs in (("all", [bob] + own), ("own", own)):
            prometheus, self.ports[name] = harness.start_prometheus_with(directory, name, openmetrics(jobs))
            stack.enter_context(prometheus)
        data = make_database(directory)
        api, url = harness.start_api_server(directory, "ceems_api_server:\n  data: {path: %s, update_interval: 1d}\n  admin: {users: [root]}\n" % data,
                                            ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges"])
        stack.enter_context(api)
        self.start_lb(stack, directory, "lb", "data: {path: %s}" % data)
        self.start_lb(stack, directory, "lb-api", "web: {url: '%s'}" % url)

    def start_lb(self, stack, directory, name, owners):
        config = os.path.join(directory, name + ".yml")
        harness.write(config, "ceems_lb:\n  strategy: round-robin\n  access: {lifetimes: true}\n  backends:\n"
                              "    - {id: c0, tsdb: [{web: {url: 'http://127.0.0.1:%d'}}]}\n"
                              "ceems_api_server:\n  %s\n" % (self.ports["all"], owners))
        self.ports[name] = free_port()
        stack.enter_context(Program([os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + config,
                                     "--web.listen-address=127.0.0.1:%d" % self.ports[name]], os.path.join(directory, name + ".log")))
        wait_until("the load balancer responds", lambda: self.ask(name, "query", {"query": "1"}).status == 200)

    def ask(self, server, name, fields, user="alice"):
        return get("http://127.0.0.1:%d/api/v1/%s?%s" % (self.ports[server], name, urllib.parse.urlencode(fields)),
                   headers={"X-Grafana-User": user, "X-Ceems-Cluster-Id": "c0"})


def points(answer):
    """{(labels, time): value} of a vector or matrix"""
    data = answer.json["data"]
    if data["resultType"] in ("scalar", "string"):
        return {("", data["result"][0]): data["result"][1]}
    found = {}
    for series in data["result"]:
        labels = json.dumps(series["metric"], sort_keys=True)
        for time, value in series.get("values", []) + ([series["value"]] if "value" in series else []):
            found[labels, time] = value
    return found


def leak(ours, own, whole):
    """What is in `ours` and not in `own`. Also the reverse, if nothing had to be removed."""
    for key, value in ours.items():
        if key not in own or not same(value, own[key]):
            return "%s: %s, not %s" % (key, value, own.get(key))
    return "cut" if whole and len(ours) != len(own) else None


def request(maker, begin, end, step):
    """(name, fields) of one query at a random time"""
    fields = {"query": maker.query()}
    if maker.chance(0.3):
        fields["lookback_delta"] = maker.pick(["0", "0.0001", "1", "90s", "10m"])
    if maker.chance(0.5):
        times = sorted(maker.r.randint(begin, end) for _ in range(2))
        return "query_range", dict(fields, start=times[0], end=times[1], step=maker.pick([7, 15, 60, step]))
    return "query", dict(fields, time=maker.r.randint(begin, end))


def test_queries(site, options, maker, begin, end, must_pass):
    passed, problems = 0, []
    for number in range(options.count):
        name, fields = request(maker, begin, end, 600)
        own = site.ask("own", name, fields)
        if own.status != 200:
            continue  # syntax that is newer than this Prometheus
        answer = site.ask("lb-api" if number % 4 == 3 else "lb", name, fields)
        if answer.status == 403:
            if must_pass:
                problems.append("%r: refused: %s" % (fields, answer.text))
            continue
        if answer.status == 422 or (answer.status == 400 and harness.VICTORIA and "parse error" in answer.text):
            continue  # the latter: not PromQL, even if VictoriaMetrics reads it
        assert answer.status == 200, (fields, answer.status, answer.text)
        passed += 1
        told = leak(points(answer), points(own), must_pass)
        if told:
            problems.append("%r: %s" % (fields, told))
    print("    %d queries, %d passed, %d problems" % (options.count, passed, len(problems)))
    for problem in problems[:5]:
        print(problem)
    assert not problems
    assert passed > options.count // 10, "nearly all queries are refused"


def test_fixed(site, lb):
    query = "m_cpu{uuid='7'}"
    assert site.ask(lb, "query", {"query": query, "time": BOB[1]}).status == 403
    assert "ID '7'" in site.ask(lb, "query", {"query": query, "time": BOB[1]}).json["error"]
    assert site.ask(lb, "query", {"query": query, "time": BOB[1]}, user="bob").status == 200
    assert site.ask(lb, "query", {"query": query, "time": ALICE[1]}, user="bob").status == 403
    assert site.ask(lb, "query", {"query": query, "time": BOB[1]}, user="root").status == 200
    whole = {"query": query, "start": START, "end": ALICE[1], "step": 60}
    answer = points(site.ask(lb, "query_range", whole))
    assert len(answer) == 61 and min(time for _, time in answer) == ALICE[0], answer
    # Some servers look back one step and start up to one step earlier: two steps of half an hour after bob's end.
    coarse = points(site.ask(lb, "query_range", dict(whole, step=1800)))
    assert min(time for _, time in coarse) == START + 9000, coarse
    times = [time for _, time in points(site.ask(lb, "query_range", whole, user="bob"))]
    assert min(times) == BOB[0] and BOB[1] <= max(times) <= BOB[1] + 300, times  # the lookback extends it
    for name in METADATA:
        answer = site.ask(lb, name, {"match[]": query, "start": ALICE[0], "end": ALICE[1]})
        assert answer.status == 200, (name, answer.text)
        assert site.ask(lb, name, {"match[]": query, "start": BOB[0], "end": BOB[1]}).status == 403, name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    harness.need_programs("prometheus", "promtool")
    with harness.scratch("ceems-test-") as directory, contextlib.ExitStack() as stack:
        site = Site(stack, directory)
        test_fixed(site, "lb")
        test_fixed(site, "lb-api")
        print("ok    fixed requests, owners from the database and from the API")
        test_queries(site, options, Maker(options.seed), START - 1200, ALICE[1] + 1200, False)
        print("ok    random queries at all times")
        test_queries(site, options, Near(options.seed), ALICE[0] + 1200, ALICE[1] + 1200, True)
        print("ok    random queries at alice's time")


if __name__ == "__main__":
    main()
