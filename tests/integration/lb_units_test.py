#!/usr/bin/env python3
"""ceems_lb with `access.confine` in front of a real TSDB, for a user with 10,000 units that all live in the asked time.

Whatever she asks without naming units must give all of hers and nothing of others: sums, rates, single series, labels. VictoriaMetrics
refuses queries of more than 16 KiB, so it is asked with filters beside the text (docs/lb/access.md, "Many units").

usage: lb_units_test.py [NAME...]"""

import contextlib
import json
import os
import random
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import api_database  # noqa: E402
import harness  # noqa: E402
from harness import Program, free_port, get, wait_until  # noqa: E402

VICTORIA = os.environ.get("CEEMS_TEST_SERVER") == "victoriametrics"
COUNT = 10_000
# IDs without an order, so that no range of them is a short pattern.
IDS = [str(number) for number in random.Random(5).sample(range(1_000_000, 9_999_999), COUNT + 500)]
OWN, FOREIGN = IDS[:COUNT], IDS[COUNT:]


def openmetrics(now):
    """Counters that grow by 2 a second, 20 nodes; what the servers need is `up`, which is nobody's."""
    lines = ["# TYPE m_total counter"]
    for place, unit in enumerate(IDS):
        for step in (2, 1, 0):
            lines.append('m_total{uuid="%s",instance="n%d"} %d %d' % (unit, place % 20, 1000 - 120 * step, now - 60 * step))
    for name, value in (("up", 1), ("node_power", 777), ("ceems_emissions_gCo2_kWh", 50)):
        lines += ["# TYPE %s gauge" % name, '%s{instance="n0"} %d %d' % (name, value, now)]
    return "\n".join(lines + ["# EOF", ""])


class Site:
    def __init__(self, stack, directory):
        self.now = int(time.time())
        tsdb, self.tsdb = harness.start_prometheus_with(directory, "tsdb", openmetrics(self.now))
        stack.enter_context(tsdb)
        data = os.path.join(directory, "data")
        os.makedirs(data)
        database = api_database.create(os.path.join(data, "ceems.db"))
        row = {"cluster_id": "c0", "resource_manager": "slurm", "last_updated_at": "2023-11-15T00:00:00"}
        with database:
            api_database.insert(database, "projects", [dict(row, name="pa", users=["alice"]), dict(row, name="pb", users=["bob"])])
            begin = (self.now - 86400) * 1000
            api_database.insert(database, "units", [
                dict(row, uuid=unit, project="pa" if place < COUNT else "pb", username="alice" if place < COUNT else "bob", started_at="1",
                     ignore=0, created_at_ts=begin, started_at_ts=begin, ended_at_ts=0) for place, unit in enumerate(IDS)])
        # No server has it open, so a load balancer started by root, which runs as nobody by then, could not make files beside it.
        database.execute("PRAGMA journal_mode = DELETE")
        database.close()
        for folder in (directory, data):
            os.chmod(folder, 0o755)
        config = os.path.join(directory, "lb.yml")
        server = ", server: victoriametrics" if VICTORIA else ""
        harness.write(config, "ceems_lb:\n  strategy: round-robin\n  access: {confine: true}\n  backends:\n"
                              "    - {id: c0, tsdb: [{web: {url: 'http://127.0.0.1:%d'}%s}]}\n"
                              "ceems_api_server:\n  data: {path: %s}\n" % (self.tsdb, server, data))
        self.port = free_port()
        self.lb = Program([os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + config, "--web.listen-address=127.0.0.1:%d" % self.port],
                          os.path.join(directory, "lb.log"))
        stack.enter_context(self.lb)
        wait_until("the load balancer responds", lambda: self.send("query", {"query": "1"}).status == 200)

    def send(self, path, fields, post=False):
        form = urllib.parse.urlencode(fields, doseq=True)
        url = "http://127.0.0.1:%d/api/v1/%s" % (self.port, path)
        headers = {"X-Grafana-User": "alice", "X-Ceems-Cluster-Id": "c0"}
        if post:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            return get(url, headers=headers, data=form.encode())
        return get(url + "?" + form, headers=headers)

    def data(self, path, fields, post=False):
        begin = time.monotonic()
        answer = self.send(path, fields, post)
        assert answer.status == 200, (path, fields, answer.status, answer.text[:500])
        print("  %s: %.2f s" % (path, time.monotonic() - begin), flush=True)
        return json.loads(answer.text)["data"]

    def value(self, query):
        """Of a query with one sample."""
        result = self.data("query", {"query": query, "time": self.now})["result"]
        assert len(result) == 1, (query, result)
        return float(result[0]["value"][1])


def test_sums(site):
    assert site.value("count(m_total)") == COUNT
    assert site.value("sum(m_total)") == 1000 * COUNT
    assert site.value("count(rate(m_total[90s]) > 0)") == COUNT
    nodes = site.data("query", {"query": "count by (instance) (m_total)", "time": site.now})["result"]
    assert sorted(int(one["value"][1]) for one in nodes) == [COUNT // 20] * 20, nodes
    # A shared metric beside, and something of the node, which is not hers.
    assert site.value("sum(m_total) * on() group_left() ceems_emissions_gCo2_kWh") == 50_000 * COUNT
    assert site.data("query", {"query": "node_power or up", "time": site.now})["result"] == []
    steps = site.data("query_range", {"query": "sum(m_total)", "start": site.now - 60, "end": site.now, "step": 60})["result"]
    assert [float(value) for _, value in steps[0]["values"]] == [880.0 * COUNT, 1000.0 * COUNT], steps


def test_series(site):
    every = site.data("query", {"query": "m_total", "time": site.now})["result"]
    assert {one["metric"]["uuid"] for one in every} == set(OWN)
    span = {"start": site.now - 300, "end": site.now}
    assert {one["uuid"] for one in site.data("series", {"match[]": ["m_total", "up"], **span})} == set(OWN)
    assert set(site.data("label/uuid/values", {"match[]": "m_total", **span})) == set(OWN)
    assert set(site.data("label/__name__/values", span)) == {"m_total"}
    assert set(site.data("labels", span)) == {"__name__", "instance", "uuid"}


def test_a_variable_with_all(site):
    """What a dashboard sends if its variable has all units. The gate leaves out the parentheses, with which Prometheus 2 takes ten seconds a
    selector."""
    own = '{uuid=~"(%s)"}' % "|".join(OWN)
    found = site.data("query", {"query": "count(m_total%s) + count(m_total%s)" % (own, own), "time": site.now}, post=True)["result"]
    assert [one["value"][1] for one in found] == [str(2 * COUNT)], found
    for more in (FOREIGN[0], "x"):
        query = 'count(m_total{uuid=~"%s"})' % "|".join(OWN[1:] + [more])
        assert site.send("query", {"query": query, "time": site.now}, post=True).status == 403


TESTS = [test_sums, test_series, test_a_variable_with_all]


def main():
    harness.need_programs("prometheus", "promtool")
    with harness.scratch("ceems-test-") as directory, contextlib.ExitStack() as stack:
        site = Site(stack, directory)
        try:
            for test in TESTS:
                if not sys.argv[1:] or any(name in test.__name__ for name in sys.argv[1:]):
                    test(site)
                    print("%s: passed" % test.__name__, flush=True)
        except AssertionError:
            print(site.lb.output()[-3000:])
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
