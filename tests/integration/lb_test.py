#!/usr/bin/env python3
"""ceems_lb in front of a real Prometheus: everybody gets what they may see, and nothing more.

There are two Prometheus servers with the same series, but one contains only those of alice's units. Random queries are sent as alice
through the gate to the first server. Whatever passes must give the same response as the second server to the same query; then it
contains nothing of other units or of the node. Queries that touch only alice's units must all pass.

usage: lb_test.py [--count N] [--seed N] [NAME...]"""

import argparse
import concurrent.futures
import contextlib
import gzip
import http.client
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import api_database  # noqa: E402
import harness  # noqa: E402
from harness import Program, free_port, get, wait_until  # noqa: E402
from lb_attack import END, FOREIGN, METRICS, OWN, SHARED, Attacker, Owner, Sly, encoded  # noqa: E402


def openmetrics(units, node):
    lines = []
    for number, metric in enumerate(METRICS):
        lines.append("# TYPE %s gauge" % metric)
        for place, unit in enumerate(units):
            for step in range(0, 121):
                value = (number + 1) * 1000 + place * 37 + step * (place + 1)
                lines.append('%s{uuid="%s",instance="n%d",job="x"} %d %d' % (metric, unit, place % 2, value, END - 3600 + step * 30))
    if node:
        lines.append("# TYPE node_power gauge")
        for step in range(0, 121):
            lines.append('node_power{instance="n0",job="x"} %d %d' % (777000 + step, END - 3600 + step * 30))
    lines.append("# TYPE ceems_emissions_gCo2_kWh gauge")
    for step in range(0, 121):
        lines.append('ceems_emissions_gCo2_kWh{provider="rte"} %d %d' % (50 + step % 3, END - 3600 + step * 30))
    return "\n".join(lines + ["# EOF", ""])


def make_database(directory):
    """The database of an API server, as far as the gate reads it."""
    path = os.path.join(directory, "data")
    os.makedirs(path)
    db = sqlite3.connect(os.path.join(path, "ceems.db"))
    for statement in api_database.SCHEMA:
        db.execute(statement)
    db.executescript("""
        INSERT INTO admin_users (cluster_id, name) VALUES ('all', 'root');
        INSERT INTO projects (cluster_id, name, users) VALUES ('c0', 'pa', '["alice"]'), ('c0', 'pb', '["bob"]'),
                                                              ('c1', 'pa', '["bob"]');""")
    for cluster in ("c0", "c1"):
        for unit in OWN:
            db.execute("INSERT INTO units (cluster_id, resource_manager, uuid, project, username) VALUES (?, 'slurm', ?, 'pa', 'alice')",
                       (cluster, unit))
        for unit in FOREIGN:
            db.execute("INSERT INTO units (cluster_id, resource_manager, uuid, project, username) VALUES (?, 'slurm', ?, 'pb', 'bob')",
                       (cluster, unit))
    db.commit()
    db.close()
    os.chmod(directory, 0o755)
    os.chmod(path, 0o700)  # a load balancer started by root runs as nobody by then
    return path


class Site:
    """A Prometheus with everything, a Prometheus with alice's own series, and the load balancer."""

    def __init__(self, stack, directory):
        self.directory = directory
        self.ports = {}
        for name, units, node in (("all", OWN + FOREIGN, True), ("own", OWN, False)):
            prometheus, self.ports[name] = harness.start_prometheus_with(directory, name, openmetrics(units, node))
            stack.enter_context(prometheus)
        self.config = os.path.join(directory, "lb.yml")
        self.write_config()
        self.port = free_port()
        self.lb = stack.enter_context(Program([os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + self.config,
                                               "--web.listen-address=127.0.0.1:%d" % self.port], os.path.join(directory, "lb.log")))
        try:
            wait_until("the load balancer responds", lambda: get("http://127.0.0.1:%d/-/healthy" % self.port).status == 200)
        except AssertionError:
            print(self.lb.output())
            raise

    def write_config(self, backends=None, extra="", strategy="round-robin"):
        backends = backends or ["http://127.0.0.1:%d" % self.ports["all"]]
        data = os.path.join(self.directory, "data")
        if not os.path.exists(data):
            make_database(self.directory)
        with open(self.config, "w", encoding="utf-8") as out:
            out.write("ceems_lb:\n  strategy: %s\n%s  backends:\n    - id: c0\n      tsdb:\n" % (strategy, extra))
            for url in backends:
                out.write("        - web: {url: '%s'}\n" % url)
            out.write("ceems_api_server:\n  data: {path: %s}\n" % data)
        os.chmod(self.config, 0o600)

    def reload(self):
        os.kill(self.lb.pid, signal.SIGHUP)

    def ask(self, path, user="alice", cluster="c0", method="GET", body=None, headers=None):
        url = "http://127.0.0.1:%d%s" % (self.port, path)
        sent = {"X-Grafana-User": user, "X-Ceems-Cluster-Id": cluster}
        sent.update(headers or {})
        sent = {name: value for name, value in sent.items() if value is not None}
        return get(url, headers=sent, data=body if method == "POST" else None)


def same(left, right):
    """Equal except for the order of series and the last digits of sums."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, str) and isinstance(right, str) and left != right:
        try:
            a, b = float(left), float(right)
        except ValueError:
            return False
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1e-300)
    return left == right


def ordered(data):
    if isinstance(data, dict) and isinstance(data.get("result"), list) and data.get("resultType") in ("vector", "matrix"):
        data = dict(data, result=sorted(data["result"], key=lambda one: json.dumps(one["metric"], sort_keys=True)))
    return data


ALICE = {"X-Grafana-User": "alice", "X-Ceems-Cluster-Id": "c0"}


class Asker:
    """The kept connections of one thread."""

    def __init__(self, site):
        self.site = site
        self.lb = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
        self.own = http.client.HTTPConnection("127.0.0.1", site.ports["own"], timeout=60)

    @staticmethod
    def post(connection, path, body, headers):
        connection.request("POST", path, body, dict(headers, **{"Content-Type": "application/x-www-form-urlencoded"}))
        answer = connection.getresponse()
        return answer.status, answer.read()

    def means_something(self, path, body):
        """Whether Prometheus itself can parse the query."""
        if harness.VICTORIA and b"parse error" in self.post(self.lb, path, body, ALICE)[1]:
            return False  # not PromQL, even if VictoriaMetrics reads it, such as `on (job)` beside a number
        return self.post(self.own, path, body, {})[0] != 400

    def judge(self, path, body):
        """(whether the request passed, problem or None)"""
        status, text = self.post(self.lb, path, body, ALICE)
        if status in (400, 403, 405, 413, 415):
            return False, None
        if status == 422:
            return True, None  # Prometheus cannot evaluate it; its error contains no values
        if status != 200:
            return False, "status %d: %s" % (status, text[:200])
        status, wanted = self.post(self.own, path, body, {})
        if status == 400 and b"parse error" in wanted:
            # Syntax that is newer than this Prometheus, but which the gate rewrites in older syntax (offset 5). Check the labels instead.
            data = json.loads(text)["data"]
            series = data["result"] if data["resultType"] in ("vector", "matrix") else []  # a scalar has no labels
            strange = [one["metric"] for one in series
                       if one["metric"].get("uuid") not in OWN and one["metric"].get("__name__") != SHARED]
            return True, strange and "newer syntax, with series that are not alice's: %s" % strange[:3]
        if status != 200:
            return True, "passes here, but Prometheus itself returns %d: %s" % (status, wanted[:200])
        ours, theirs = ordered(json.loads(text)["data"]), ordered(json.loads(wanted)["data"])
        if not same(ours, theirs):
            return True, "the response depends on series that are not alice's:\n    %s\n    %s" % (json.dumps(ours)[:600], json.dumps(theirs)[:600])
        return True, None


def test_random_queries(site, options):
    maker, owner = Attacker(options.seed), Owner(options.seed)
    jobs = []
    for number in range(options.count):
        query = maker.query()
        if number % 5 == 4:
            query = maker.broken(query)
        jobs += [(query, False)] * (3 if number % 4 == 0 else 1)  # repeat some, because the gate remembers queries
        if number % 3 == 0:
            jobs.append((owner.query(), True))
    local = threading.local()
    outcome = {"passed": 0, "problems": []}
    lock = threading.Lock()

    def work(job):
        query, must_pass = job
        if not hasattr(local, "asker"):
            local.asker = Asker(site)
        path, body = "/api/v1/query", encoded(query)
        if len(query) % 4 == 0:
            path, body = "/api/v1/query_range", urllib.parse.urlencode({"query": query, "start": END - 900, "end": END, "step": 60})
        passed, problem = local.asker.judge(path, body)
        if must_pass and not passed and not problem and local.asker.means_something(path, body):
            problem = "was refused"
        with lock:
            outcome["passed"] += passed
            if problem:
                outcome["problems"].append("%r: %s" % (query, problem))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, jobs))
    for problem in outcome["problems"][:10]:
        print(problem)
    print("    %d queries, %d passed, %d problems" % (len(jobs), outcome["passed"], len(outcome["problems"])))
    assert not outcome["problems"]
    assert outcome["passed"] > len(jobs) // 5, "nearly all queries are refused"


def raw_answer(port, text):
    """(status, body) of one request, which is sent as it is"""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.sendall(text)
        answer = http.client.HTTPResponse(s, method=text.split(b" ")[0].decode())
        try:
            answer.begin()
            return answer.status, answer.read()
        except (http.client.HTTPException, ConnectionError):
            return 0, b""


class Visible:
    """Everything that the Prometheus with alice's own data can return."""

    def __init__(self, site):
        base = "http://127.0.0.1:%d/api/v1/" % site.ports["own"]
        span = "start=%d&end=%d" % (END - 7200, END)
        self.base = base
        self.known = {}
        series = get(base + "series?match[]=" + urllib.parse.quote('{__name__=~".+"}') + "&" + span).json["data"]
        self.series = {json.dumps(one, sort_keys=True) for one in series}
        self.words = {word for one in series for pair in one.items() for word in pair}

    def answers(self, text):
        """The responses to a query that alice may get."""
        if text not in self.known:
            answer = get(self.base + "query?" + encoded(text))
            self.known[text] = ordered(answer.json.get("data")) if answer.status == 200 else None
        return self.known[text]

    def leak(self, body, texts):
        data = json.loads(body).get("data")
        if data is None or data == []:
            return None
        if isinstance(data, list):
            strange = [one for one in data if (json.dumps(one, sort_keys=True) not in self.series if isinstance(one, dict)
                                               else one not in self.words)]
            return strange[:3] or None
        data.pop("stats", None)
        if data.get("result") == [] or "version" in data:
            return None
        if any(same(ordered(data), self.answers(text)) for text in texts):
            return None
        if harness.VICTORIA and "1" in texts and data["resultType"] == "matrix" and all(
                not one["metric"] and {value for _, value in one["values"]} == {"1"} for one in data["result"]):
            return None  # it answers query_range without start and end, here the query 1
        if data.get("resultType") in ("vector", "matrix"):
            strange = [one["metric"] for one in data["result"]
                       if one["metric"].get("__name__") and json.dumps(one["metric"], sort_keys=True) not in self.series]
            if not strange and all(one["metric"].get("__name__") for one in data["result"]):
                return None  # samples of her own series at other times
        return data


def test_sly_requests(site, options):
    visible = Visible(site)
    sly = Sly(options.seed)
    lock = threading.Lock()
    outcome = {"passed": 0, "leaks": [], "statuses": {}}

    def work(job):
        text, path, texts = job
        status, body = raw_answer(site.port, text)
        with lock:
            outcome["statuses"][status] = outcome["statuses"].get(status, 0) + 1
        if status // 100 != 2 or not body:
            return
        problem = visible.leak(body, texts + [one + "\n" for one in texts])
        with lock:
            outcome["passed"] += 1
            if problem:
                outcome["leaks"].append((text, problem))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, (sly.request() for _ in range(options.count))))
    for text, problem in outcome["leaks"][:10]:
        print("%r\n    %s" % (text, json.dumps(problem)[:400]))
    print("    %d requests, statuses %s, %d with answers, %d leaks"
          % (options.count, dict(sorted(outcome["statuses"].items())), outcome["passed"], len(outcome["leaks"])))
    assert not outcome["leaks"] and outcome["passed"] > options.count // 50
    assert not {500, 502, 503, 504} & set(outcome["statuses"])
    assert site.lb.alive()


def test_series_and_labels(site, _options):
    own, other = urllib.parse.quote('{uuid="1"}'), urllib.parse.quote('{uuid="2"}')
    span = "&start=%d&end=%d" % (END - 3600, END)
    for path in ("series", "labels", "label/uuid/values"):
        answer = site.ask("/api/v1/%s?match[]=%s%s" % (path, own, span))
        assert answer.status == 200, answer.text
        assert "other" not in answer.text and '"2"' not in answer.text, answer.text
        for query in ("match[]=" + other, "match[]=%s&match[]=%s" % (own, other), "x=1"):
            assert site.ask("/api/v1/%s?%s%s" % (path, query, span)).status == 403, (path, query)


GRAFANA = {"User-Agent": "Grafana/11.3.0", "Accept-Encoding": "gzip", "X-Grafana-Org-Id": "1", "X-Dashboard-Uid": "a1b2", "X-Panel-Id": "4",
           "X-Datasource-Uid": "p0", "X-Query-Group-Id": "9f", "X-Panel-Plugin-Id": "timeseries"}


def test_what_grafana_asks(site, _options):
    """The requests of Grafana's Prometheus data source: by POST, and by GET if configured or as a second try."""
    unit = 'm_cpu{uuid="1"}'
    span = {"start": END - 3600, "end": END}
    asked = [  # path, parameters, status for a user
        ("query", {"query": "1+1", "time": "4"}, 200),  # "Save & test"
        ("query_range", {"query": "rate(%s[1m0s])" % unit, "start": "%d.123" % (END - 900), "end": "%d.123" % END, "step": "15.0"}, 200),
        ("query_range", {"query": "sum by (instance) (avg_over_time(%s[$__x]))" % unit, "step": "15", **span}, 400),  # unreplaced variable
        ("query_range", {"query": 'm_cpu{uuid=~"1|own-2", instance=~"n0|n1"}', "step": "60", "timeout": "30s", **span}, 200),
        ("query", {"query": "max_over_time(%s[3600s:])" % unit, "time": str(END)}, 200),  # query_result()
        ("query", {"query": "topk(5, " + unit + ")\n", "time": "%d.5" % END, "stats": "all"}, 200),
        ("series", {"match[]": unit, **span}, 200),  # label_values(metric, label) of older versions
        ("label/instance/values", {"match[]": unit, **span}, 200),
        ("label/__name__/values", {"match[]": '{uuid="1"}', "limit": "40000", **span}, 200),
        ("labels", {"match[]": unit, **span}, 200),
        ("query_exemplars", {"query": unit, **span}, 200),
        ("status/buildinfo", {}, 403),
        ("labels", span, 403), ("label/__name__/values", span, 403),  # the query editor without a selector
        ("metadata", {"limit": "5000"}, 403), ("rules", {"type": "alert"}, 403),
        ("query", {"query": 'm_cpu{uuid="2"}', "time": str(END)}, 403),
    ]
    for path, parameters, status in asked:
        form = urllib.parse.urlencode(parameters)
        get_only = path.startswith("label/") or path in ("status/buildinfo", "metadata", "rules")
        for method in ("GET",) if get_only else ("GET", "POST"):
            headers = dict(GRAFANA)
            target = "/api/v1/" + path
            if method == "POST":
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            elif form:
                target += "?" + form
            answer = site.ask(target, method=method, body=form.encode(), headers=headers)
            assert answer.status == status, (method, path, parameters, answer.status, answer.body[:300])
            if status == 200:
                plain = gzip.decompress(answer.body) if answer.headers.get("Content-Encoding") == "gzip" else answer.body
                assert json.loads(plain)["status"] == "success"


def test_identity_and_clusters(site, _options):
    own = "/api/v1/query?" + encoded('m_cpu{uuid="1"}')
    assert site.ask(own).status == 200
    assert site.ask(own, user=None).status == 401
    assert site.ask(own, cluster=None).status == 400
    assert site.ask(own, cluster="c9").status == 400
    assert site.ask(own, user="bob").status == 403
    assert site.ask("/api/v1/query?" + encoded("node_power"), user="root").json["data"]["result"]
    assert site.ask("/api/v1/status/config").status == 403
    assert site.ask("/api/v1/status/config", user="root").status == 200
    answer = site.ask("/api/v1/query?" + encoded("m_cpu{uuid="))
    assert answer.status == 400 and answer.json["errorType"] == "bad_data" and "1:" in answer.json["error"], answer.text


def test_file_limit_is_raised(site, _options):
    """The soft limit is usually 1024, which is too low for a proxy; the program raises it to the hard limit."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    page = get("http://127.0.0.1:%d/metrics" % site.port).text
    limits = [float(line.split()[1]) for line in page.splitlines() if line.startswith("process_max_fds ")]
    assert limits == [float(limit)], (limits, limit)


def test_rude_requests(site, _options):
    """Bytes that different programs may read differently."""
    def raw(text):
        with socket.create_connection(("127.0.0.1", site.port), timeout=90) as s:
            s.sendall(text)
            s.settimeout(10)
            data = b""
            while b"\r\n" not in data:
                piece = s.recv(4096)
                if not piece:
                    break
                data += piece
            return int(data.split()[1]) if data else 0
    head = b"Host: x\r\nX-Grafana-User: alice\r\nX-Ceems-Cluster-Id: c0\r\nConnection: close\r\n"
    assert raw(b"GET /api/v1/query?query=1 HTTP/1.1\r\n" + head + b"\r\n") == 200
    assert raw(b"GET /api/v1/query?query=1 HTTP/1.1\r\n" + head + b"X-Grafana-User: root\r\n\r\n") == 401
    assert raw(b"GET /api/v1/query?query=1 HTTP/1.1\r\n" + head + b"X-Ceems-Cluster-Id: c1\r\n\r\n") == 400
    assert raw(b"POST /api/v1/query HTTP/1.1\r\n" + head + b"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\nquery=1") == 400
    assert raw(b"GET /federate/%2e%2e/api/v1/query?query=1 HTTP/1.1\r\n" + head + b"\r\n") == 400
    assert raw(b"GET /api/v1/label/..%2f..%2fx/values HTTP/1.1\r\n" + head + b"\r\n") == 400


def test_dead_backends_and_reload(site, _options):
    dead = free_port()
    site.write_config(["http://127.0.0.1:%d" % dead, "http://127.0.0.1:%d" % site.ports["all"]])
    site.reload()
    own = "/api/v1/query?" + encoded('m_cpu{uuid="1"}')
    wait_until("the new configuration is used", lambda: ("127.0.0.1:%d" % dead) in get("http://127.0.0.1:%d/metrics" % site.port).text)
    for _ in range(6):
        assert site.ask(own).status == 200
    page = get("http://127.0.0.1:%d/metrics" % site.port).text
    assert 'ceems_lb_backend_up{backend="127.0.0.1:%d",backend_type="tsdb",cluster_id="c0"} 0' % dead in page, page
    site.write_config(["http://127.0.0.1:%d" % dead])
    site.reload()
    wait_until("only the dead one is left", lambda: site.ask(own).status == 503)
    site.write_config(extra="  nonsense: 1\n")
    site.reload()
    time.sleep(0.5)
    assert site.ask(own).status == 503, "a broken configuration was accepted"
    site.write_config()
    site.reload()
    wait_until("everything works again", lambda: site.ask(own).status == 200)


def test_interrupted_reads_go_to_a_second_server(site, _options):
    """A server accepts requests and closes the connection. Requests that only read are sent again, also those of admins, who use POST
    like everybody else."""
    read = encoded('m_cpu{uuid="1"}').encode()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    asked = [("alice", "GET", "/api/v1/query?" + read.decode(), None, 200), ("alice", "POST", "/api/v1/query", read, 200),
             ("root", "GET", "/api/v1/query?" + read.decode(), None, 200), ("root", "POST", "/api/v1/query", read, 200),
             ("root", "POST", "/api/v1/admin/tsdb/clean_tombstones", b"", 503)]
    for user, method, path, body, status in asked:
        with socket.create_server(("127.0.0.1", 0)) as closing:
            seen = []

            def serve(closing=closing, seen=seen):
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = closing.accept()
                        with connection:
                            connection.settimeout(5)
                            seen.append(connection.recv(65536))

            threading.Thread(target=serve, daemon=True).start()
            first = "127.0.0.1:%d" % closing.getsockname()[1]
            site.write_config(["http://" + first, "http://127.0.0.1:%d" % site.ports["all"]], strategy="least-connection")
            site.reload()
            wait_until("the new configuration is used", lambda first=first: first in get("http://127.0.0.1:%d/metrics" % site.port).text)
            assert site.ask(path, user=user, method=method, body=body, headers=form).status == status, (user, method, path)
            assert any(text.startswith(method.encode()) for text in seen), "the first server got no request"
            closing.shutdown(socket.SHUT_RDWR)
    site.write_config()
    site.reload()
    wait_until("everything works again", lambda: site.ask("/api/v1/query", method="POST", body=read, headers=form).status == 200)


def test_database_that_no_server_has_open(site, _options):
    """SQLite's readers need a lock file, which a user with read access only cannot make."""
    if os.geteuid() != 0:
        return  # the user who made the directory may write to it
    data = os.path.join(site.directory, "closed")
    os.makedirs(data)
    api_database.create(os.path.join(data, "ceems.db")).close()
    config = os.path.join(site.directory, "closed.yml")
    harness.write(config, "ceems_lb:\n  backends: [{id: c0, tsdb: [{web: {url: http://127.0.0.1:1}}]}]\n"
                          "ceems_api_server: {data: {path: %s}}\n" % data)
    done = subprocess.run([os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + config, "--web.listen-address=127.0.0.1:0"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
    assert done.returncode == 1 and "start the API server first" in done.stderr, (done.returncode, done.stderr)


def test_stop_finishes_answers(site, _options):
    slow = "/api/v1/query?" + encoded('sum_over_time(m_cpu{uuid="1"}[1h:1s])')
    done = []
    thread = threading.Thread(target=lambda: done.append(site.ask(slow).status))
    thread.start()
    busy = re.compile(r"^ceems_lb_backend_requests_in_flight\{.*\} [1-9]", re.M)
    wait_until("a server works on it", lambda: done or busy.search(get("http://127.0.0.1:%d/metrics" % site.port).text), every=0.005)
    site.lb.stop()
    thread.join(20)
    assert done == [200], done


TESTS = [test_identity_and_clusters, test_file_limit_is_raised, test_what_grafana_asks, test_series_and_labels, test_rude_requests, test_random_queries, test_sly_requests, test_dead_backends_and_reload,
         test_interrupted_reads_go_to_a_second_server,
         test_database_that_no_server_has_open, test_stop_finishes_answers]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=int(os.environ.get("CEEMS_ATTACK_REQUESTS", "1500")),
                        help="number of random queries, and of requests that try to look different to the gate and to Prometheus "
                             "(default: $CEEMS_ATTACK_REQUESTS or 1500)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    harness.need_programs("prometheus", "promtool")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, most))
    with harness.scratch("ceems-test-") as directory, contextlib.ExitStack() as stack:
        site = Site(stack, directory)
        for test in TESTS:
            if options.names and not any(name in test.__name__ for name in options.names):
                continue
            start = time.monotonic()
            test(site, options)
            print("%s: passed in %.1f s" % (test.__name__, time.monotonic() - start), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
