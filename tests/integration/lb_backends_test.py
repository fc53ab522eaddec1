#!/usr/bin/env python3
"""ceems_lb in front of backends that misbehave, over TLS, with both kinds of backends, and while its configuration changes.

usage: lb_backends_test.py [--megabytes N] [--connections N] [NAME...]

--megabytes: size of the large response (default 64); --connections: number of idle connections (default 500)"""

import argparse
import base64
import contextlib
import gzip
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

import harness
import lb_test
from fake_backend import GOOD, SECRETIVE, Backend
from harness import Program, free_port, get, wait_until

OWN = "/api/v1/query?" + urllib.parse.urlencode({"query": 'm_cpu{uuid="1"}'})


class Gate:
    """A load balancer with its configuration file."""

    def __init__(self, directory, tsdb, profiles=(), web=None, strategy="round-robin", filter_labels=(), web_options="",
                 owners=None):
        self.directory = directory
        self.owners = owners
        if not owners:
            self.owners = "data: {path: %s}" % os.path.join(directory, "data")
            if not os.path.exists(os.path.join(directory, "data")):
                lb_test.make_database(directory)
        self.config = os.path.join(directory, "lb.yml")
        self.write(tsdb, profiles, strategy, filter_labels, web_options)
        self.ports = [free_port() for _ in range(2 if profiles else 1)]
        arguments = [os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + self.config, "--log.level=debug"]
        arguments += ["--web.listen-address=127.0.0.1:%d" % port for port in self.ports]
        if web:
            arguments.append("--web.config.file=" + web)
        self.scheme = "https" if web else "http"
        self.program = Program(arguments, os.path.join(directory, "lb.log"))
        self.program.__enter__()
        if not web:
            self.program.wait_ready("http://127.0.0.1:%d/-/healthy" % self.ports[0])

    def write(self, tsdb, profiles=(), strategy="round-robin", filter_labels=(), web_options=""):
        def servers(urls, labels=()):
            text = ""
            for url in urls:
                text += "        - web:\n            url: '%s'\n%s" % (url, web_options)
                if labels:
                    text += "          filter_labels: [%s]\n" % ", ".join(labels)
            return text
        with open(self.config + ".new", "w", encoding="utf-8") as out:
            out.write("ceems_lb:\n  strategy: %s\n  backends:\n    - id: c0\n      tsdb:\n%s" % (strategy, servers(tsdb, filter_labels)))
            if profiles:
                out.write("      pyroscope:\n" + servers(profiles))
            out.write("ceems_api_server:\n  %s\n" % self.owners)
        os.replace(self.config + ".new", self.config)

    def ask(self, path=OWN, user="alice", data=None, headers=None, timeout=60.0, port=None):
        sent = {"X-Grafana-User": user, "X-Ceems-Cluster-Id": "c0"}
        sent.update(headers or {})
        return get("http://127.0.0.1:%d%s" % (port or self.ports[0], path), headers=sent, data=data, timeout=timeout)

    def reload(self):
        before = self.program.output().count("configuration reloaded")
        os.kill(self.program.pid, signal.SIGHUP)
        wait_until("the configuration is reloaded", lambda: self.program.output().count("configuration reloaded") > before, every=0.02)

    def metric(self, name, **labels):
        for line in get("http://127.0.0.1:%d/metrics" % self.ports[0]).text.splitlines():
            if line.startswith(name) and all('%s="%s"' % pair in line for pair in labels.items()):
                return float(line.split()[-1])
        return 0.0

    def up(self, port):
        return self.metric("ceems_lb_backend_up", backend="127.0.0.1:%d" % port)

    def wait_up(self, *servers):
        wait_until("the servers are up", lambda: all(self.up(server.port) == 1 for server in servers))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.__exit__()
        text = self.program.output()
        assert "ERROR: AddressSanitizer" not in text and "runtime error" not in text, text


def whole(gate, user="alice"):
    """(status, whether the response was complete)"""
    try:
        return gate.ask(user=user).status, True
    except (http.client.IncompleteRead, http.client.HTTPException, ConnectionError):
        return 200, False


def test_servers_that_fail(directory, _options):
    with Backend() as bad, Backend() as good, Gate(directory, [bad.url, good.url]) as gate:
        for mood in ("gone", "garbage", "two lengths"):
            bad.mood = mood
            for _ in range(4):
                answer = gate.ask()
                assert answer.status == 200 and answer.body == GOOD, (mood, answer.text)
            assert gate.metric("ceems_lb_backend_up", backend="127.0.0.1:%d" % bad.port) == 0
            bad.mood = "well"
            gate.write([bad.url, good.url])
            gate.reload()  # the gate tries to connect to all of them at once
            gate.wait_up(bad)
        for mood in ("broken", "broken chunks"):
            bad.mood = mood
            results = [whole(gate) for _ in range(4)]
            assert results.count((200, True)) == 2 and results.count((200, False)) == 2, (mood, results)
        wait_until("all are counted", lambda: gate.metric("ceems_lb_answers_broken_total", backend_type="tsdb") == 4)
        bad.mood = "without length"
        assert [whole(gate) for _ in range(4)] == [(200, True)] * 4
        # Kept connections that the server closes without notice.
        bad.mood = good.mood = "closing"
        for _ in range(20):
            assert gate.ask().status == 200
        assert gate.metric("ceems_lb_backend_up", backend="127.0.0.1:%d" % bad.port) == 1


def test_writes_are_sent_only_once(directory, _options):
    with Backend("gone") as bad, Backend("gone") as other, Gate(directory, [bad.url, other.url]) as gate:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = gate.ask("/api/v1/admin/tsdb/delete_series", user="root", data=b"match[]=up", headers=form)
        assert answer.status == 503, answer.text
        assert len(bad.seen) + len(other.seen) == 1, (bad.seen, other.seen)
        # A query only reads, so it is sent to the other server as well, once.
        bad.seen, other.seen = [], []
        gate.reload()
        gate.wait_up(bad, other)
        assert gate.ask().status == 503
        assert (len(bad.seen), len(other.seen)) == (1, 1)


def test_requests_leave_a_hanging_server(directory, _options):
    with Backend("silent") as bad, Backend() as good, Gate(directory, [bad.url, good.url]) as gate:
        start = time.monotonic()
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(gate.ask().status)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
        took = time.monotonic() - start
        assert answers == [200] * 4, answers
        assert took > 5, took
        assert gate.metric("ceems_lb_backend_up", backend="127.0.0.1:%d" % bad.port) == 0
        asked = sum(seen[1] == OWN for seen in bad.seen)
        assert [gate.ask().status for _ in range(6)] == [200] * 6
        assert sum(seen[1] == OWN for seen in bad.seen) == asked, "it still gets requests"
        assert "accepts connections but does not answer" in gate.program.output()


def test_a_reload_remembers_dead_and_hanging_servers(directory, _options):
    """After a reload a dead server still gets no requests. Requests that wait for a hanging server leave it, even if the new configuration
    does not contain it."""
    dead = free_port()
    with Backend("silent") as bad, Backend() as good, Gate(directory, ["http://127.0.0.1:%d" % dead, good.url]) as gate:
        wait_until("the dead one is known", lambda: gate.up(dead) == 0)
        for strategy in ("least-connection", "round-robin"):
            gate.write(["http://127.0.0.1:%d" % dead, good.url], strategy=strategy)
            gate.reload()
            assert gate.up(dead) == 0
            assert [gate.ask().status for _ in range(4)] == [200] * 4
        assert "does not answer" not in gate.program.output(), "a request was sent to the dead one"
        gate.write([bad.url, good.url])
        gate.reload()
        gate.wait_up(bad)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(gate.ask().status)) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_until("requests wait", lambda: bad.seen)
        gate.write([good.url])
        gate.reload()
        for thread in threads:
            thread.join(90)
        assert answers == [200] * 4, answers


def test_reload_drops_nothing(directory, _options):
    with Backend("slow") as one, Backend("slow") as two, Gate(directory, [one.url]) as gate:
        stop, results = threading.Event(), []

        def work():
            connection = http.client.HTTPConnection("127.0.0.1", gate.ports[0], timeout=90)
            while not stop.is_set():
                connection.request("GET", OWN, headers={"X-Grafana-User": "alice", "X-Ceems-Cluster-Id": "c0"})
                answer = connection.getresponse()
                results.append((answer.status, answer.read() == GOOD))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for number in range(12):
            gate.write([(one, two)[number % 2].url])
            gate.reload()
            time.sleep(0.1)
        stop.set()
        for thread in threads:
            thread.join(90)
        assert len(results) > 20 and set(results) == {(200, True)}, set(results)
        assert one.seen and two.seen
        # A broken file changes nothing.
        with open(gate.config, "a", encoding="utf-8") as out:
            out.write("ceems_lb: {}\n")
        os.kill(gate.program.pid, signal.SIGHUP)
        wait_until("the broken file is noticed", lambda: "cannot reload" in gate.program.output())
        assert gate.ask().status == 200
        # SIGTERM lets current requests finish.
        late = []
        threads = [threading.Thread(target=lambda: late.append(gate.ask().status)) for _ in range(5)]
        for thread in threads:
            thread.start()
        wait_until("all are answered or asked for", lambda: len(late) + sum(gate.metric(
            "ceems_lb_backend_requests_in_flight", backend="127.0.0.1:%d" % server.port) for server in (one, two)) >= 5, every=0.01)
        assert gate.program.stop() == 0
        for thread in threads:
            thread.join(90)
        assert late == [200] * 5, late


def resident_mb(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as text:
        return next(int(line.split()[1]) for line in text if line.startswith("VmRSS:")) / 1024


def sanitized():
    with open(os.path.join(harness.BIN, "ceems_lb"), "rb") as program:
        return b"__asan_init" in program.read()


def take_big_answer(gate, hidden):
    """(bytes received, peak resident memory meanwhile)"""
    peak, total, end = 0, 0, b""
    with socket.create_connection(("127.0.0.1", gate.ports[0]), timeout=60) as s:
        s.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nX-Grafana-User: alice\r\nX-Ceems-Cluster-Id: c0\r\nConnection: close\r\n\r\n"
                   % OWN).encode())
        while True:
            piece = s.recv(1 << 20)
            if not piece:
                break
            total += len(piece)
            assert not hidden or b"secret-host" not in piece
            end = (end + piece)[-64:]
            if total % (1 << 23) < len(piece):
                peak = max(peak, resident_mb(gate.program.pid))
    assert end.endswith(b"0\r\n\r\n"), end
    return total, peak


def test_large_responses_are_streamed(directory, options):
    with Backend("big") as big, Gate(directory, [big.url]) as gate:
        for labels, megabytes in (((), options.megabytes), (("instance",), max(16, options.megabytes // 4))):
            gate.write([big.url], filter_labels=labels)
            gate.reload()
            big.megabytes = megabytes
            small = resident_mb(gate.program.pid)
            start = time.monotonic()
            total, peak = take_big_answer(gate, labels)
            print("    %s: %d MB in %.1f s, resident %.0f MB, at most %.0f MB"
                  % ("filtered" if labels else "as it is", total >> 20, time.monotonic() - start, small, peak))
            assert total > megabytes * 500_000
            assert peak - small < 24, "memory grows with the response"


def test_errors_do_not_name_hidden_labels(directory, _options):
    with Backend("secretive") as back, Backend("gone") as gone, Gate(directory, [back.url], filter_labels=["instance"]) as gate:
        answer = gate.ask()
        assert answer.status == 422 and "secret-host" not in answer.text, answer.text
        assert answer.json["errorType"] == "execution" and "many-to-many" in answer.json["error"], answer.text
        assert gate.ask(user="root").body == SECRETIVE, "admins may see the labels"
        # Whichever server is configured to hide the labels, all servers of the cluster hide them.
        gate.write([gone.url, back.url], filter_labels=["instance"])
        gate.reload()
        assert all("secret-host" not in gate.ask().text for _ in range(3))
        gate.write([back.url])
        gate.reload()
        assert gate.ask().body == SECRETIVE, "no labels are hidden"


def open_connections(port, count):
    """Opens this many connections, each of which is kept after one response."""
    request = ("GET %s HTTP/1.1\r\nHost: x\r\nX-Grafana-User: alice\r\nX-Ceems-Cluster-Id: c0\r\n\r\n" % OWN).encode()
    opened = []
    while len(opened) < count:
        batch = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(min(100, count - len(opened)))]
        for one in batch:
            one.sendall(request)
        for one in batch:
            answer = http.client.HTTPResponse(one)
            answer.begin()
            assert answer.status == 200 and answer.read() == GOOD
            answer.close()
        opened += batch
    return opened


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_idle_connections_cost_little(directory, options):
    files = options.connections + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < files:
        print("    (the limit of %d open files is too low, skipped)" % hard)
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, files), hard))  # also for the programs started here
    with contextlib.ExitStack() as stack:
        back = stack.enter_context(Backend())
        gate = stack.enter_context(Gate(directory, [back.url]))
        for one in open_connections(gate.ports[0], 100):
            one.close()
        before = resident_mb(gate.program.pid)
        opened = [stack.enter_context(one) for one in open_connections(gate.ports[0], options.connections)]
        grown = (resident_mb(gate.program.pid) - before) * 1048576
        held = [one for one in opened if is_open(one)]
        assert len(held) > len(opened) // 2, (len(held), len(opened))
        each = grown / len(held)
        print("    %d idle connections: resident %.1f MB before, %.1f MB more, %.0f bytes each"
              % (len(held), before, grown / 1048576, each))
        assert sanitized() or each < 16384, "an idle connection costs too much"
        assert gate.ask().status == 200, "no further connection is accepted"


def make_certificate(directory):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", directory + "/tls.key", "-out",
                    directory + "/tls.crt", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name in ("tls.key", "tls.crt"):  # readable only by the user who starts the load balancer, which may then become another user
        os.chmod(os.path.join(directory, name), 0o600)


def test_tls_and_passwords_on_both_sides(directory, _options):
    if not shutil.which("openssl"):
        print("    (the program openssl is missing, skipped)")
        return
    make_certificate(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory + "/tls.crt", directory + "/tls.key")
    web = os.path.join(directory, "web.yml")
    with open(web, "w", encoding="utf-8") as out:  # the password is gate-test
        out.write("tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
                  "basic_auth_users: {grafana: '$2b$04$abcdefghijklmnopqrstuuwjI.wa2R9/ujOvVvZlNRrlgaM.tjXv6'}\n")
    password = os.path.join(directory, "password")
    with open(password, "w", encoding="utf-8") as out:
        out.write("behind\n")
    os.chmod(password, 0o600)
    options = ("            basic_auth: {username: lb, password_file: password}\n"
               "            tls_config: {ca_file: %s/tls.crt}\n" % directory)
    client = ssl.create_default_context(cafile=directory + "/tls.crt")

    def ask(port, password, read=False):
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=90, context=client)
        token = base64.b64encode(("grafana:" + password).encode()).decode()
        connection.request("GET", OWN, headers={"X-Grafana-User": "alice", "X-Ceems-Cluster-Id": "c0",
                                                "Authorization": "Basic " + token})
        answer = connection.getresponse()
        return (answer.status, answer.read()) if read else answer.status

    with Backend(context=context) as back, Gate(directory, [back.url], web=web, web_options=options) as gate:
        wait_until("the load balancer responds", lambda: ask(gate.ports[0], "gate-test") == 200)
        assert ask(gate.ports[0], "wrong") == 401
        sent = {field[2]["authorization"][0] for field in back.seen}
        assert sent == {"Basic " + base64.b64encode(b"lb:behind").decode()}, sent
        assert "gate-test" not in gate.program.output() and "behind" not in gate.program.output()
        # A response that ends with the connection, so that nothing proves that it is complete.
        back.mood = "without length"
        try:
            raise AssertionError("an incomplete response passed for a complete one: %s" % ask(gate.ports[0], "gate-test", read=True))
        except http.client.IncompleteRead as broken:
            assert broken.partial == GOOD, broken.partial
        back.mood = "well"
        # Without the authority that signed its certificate, the server is not trusted.
        gate.write([back.url])
        gate.reload()
        assert ask(gate.ports[0], "gate-test") == 503
        assert "certificate verify failed" in gate.program.output(), gate.program.output()


def test_servers_behind_unix_sockets(directory, _options):
    path = os.path.join(directory, "p.sock")
    options = "            basic_auth: {username: lb, password: behind}\n"
    with contextlib.ExitStack() as stack:
        api = stack.enter_context(Backend("api", path=os.path.join(directory, "api.sock")))
        back = stack.enter_context(Backend(path=path))
        gate = stack.enter_context(Gate(directory, [back.url + ":/base/"], web_options=options, owners="web: {url: '%s'}" % api.url))
        assert all(seen[1].startswith("/api/v1/") and seen[2]["host"] == ["localhost"] for seen in api.seen), api.seen
        assert gate.ask().body == GOOD
        before = back.connections
        assert [gate.ask().body for _ in range(5)] == [GOOD] * 5
        assert back.connections <= before + 1, "connections are not kept; one may have been tried meanwhile"
        assert len(api.seen) > 1, "the owner of the unit was not looked up there"
        method, target, headers, _ = back.seen[-1]
        assert (method, target) == ("GET", "/base" + OWN), (method, target)
        assert headers["host"] == ["localhost"] and headers["x-forwarded-for"] == ["127.0.0.1"], headers
        assert headers["authorization"] == ["Basic " + base64.b64encode(b"lb:behind").decode()], headers
        assert gate.metric("ceems_lb_backend_up", backend=path) == 1
        assert 'backend="%s"' % path in gate.program.output() or "backend=" + path in gate.program.output()
        # A hanging server is also checked over the socket.
        back.mood = "silent"
        waiting = threading.Thread(target=lambda: contextlib.suppress(Exception) and whole(gate))
        waiting.start()
        wait_until("the server that hangs is left", lambda: gate.metric("ceems_lb_backend_up", backend=path) == 0)
        assert ("GET", "/base/-/healthy") in [seen[:2] for seen in back.seen], back.seen
        back.mood = "well"
        waiting.join(90)
        gate.reload()  # it is checked again at once
        wait_until("the server is back", lambda: gate.metric("ceems_lb_backend_up", backend=path) == 1)
        assert gate.ask().status == 200
        # The server disappears and comes back.
        back.__exit__()
        os.unlink(path)
        assert gate.ask().status == 503
        stack.enter_context(Backend(path=path))
        wait_until("it is found again", lambda: gate.ask().status == 200)
        for url, more, error in (("unix://run/p.sock", "", "has no host"), ("unix:///run/p.sock:9090", "", "begins with '/'"),
                                 ("unix:///" + "x" * 107, "", "at most 107 bytes"), ("unix:", "", "absolute path"),
                                 (back.url, "            tls_config: {insecure_skip_verify: true}\n", "TLS is not spoken over a unix socket")):
            gate.write([url], web_options=more)
            os.kill(gate.program.pid, signal.SIGHUP)
            wait_until("refused: " + url, lambda part=error: any(
                "cannot reload" in line and part in line and "lb.yml:" in line for line in gate.program.output().splitlines()))
        assert gate.ask().status == 200


def test_both_kinds_and_strategies(directory, _options):
    with Backend() as one, Backend() as two, Backend() as profiles, Gate(directory, [one.url, two.url], [profiles.url]) as gate:
        for _ in range(10):
            assert gate.ask().status == 200
        assert (len(one.seen), len(two.seen)) == (5, 5)
        call = "/querier.v1.QuerierService/SelectMergeStacktraces"
        text = {"Content-Type": "application/json"}

        def profile(unit, user="alice"):
            body = json.dumps({"labelSelector": '{service_name="%s"}' % unit, "start": "1", "end": "2"}).encode()
            return gate.ask(call, user=user, data=body, headers=text, port=gate.ports[1])

        assert profile("1").status == 200
        assert profile("2").status == 403 and profile("2", "bob").status == 200
        assert [seen[1] for seen in profiles.seen] == [call, call]
        assert gate.ask(call, data=b"{}", headers=text).status == 403, "the listener of the TSDB let a profile through"
        assert gate.ask(port=gate.ports[1]).status == 403, "the listener of profiles let a query through"
        # Least connections: while one server is busy with a slow request, the other gets the rest.
        one.mood, two.mood = "silent", "well"
        gate.write([one.url, two.url], [profiles.url], strategy="least-connection")
        gate.reload()
        waiting = threading.Thread(target=lambda: contextlib.suppress(Exception) and whole(gate))
        waiting.start()
        wait_until("the first server is busy", lambda: one.seen and one.seen[-1][1].startswith("/api") and len(one.seen) == 6)
        before = len(two.seen)
        for _ in range(6):
            assert gate.ask().status == 200
        assert len(two.seen) == before + 6
        one.mood = "well"
        waiting.join(90)


def field(number, value):
    """One field of a protocol buffer message: a text or an integer."""
    def varint(left):
        out = b""
        while left > 127:
            out += bytes([left & 127 | 128])
            left >>= 7
        return out + bytes([left])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value.encode()


def test_what_grafana_asks_pyroscope(directory, _options):
    """The calls of Grafana's Pyroscope data source: connect-go, unary, with protocol buffers."""
    connect = {"Content-Type": "application/proto", "Connect-Protocol-Version": "1", "User-Agent": "connect-go/1.16.2 (go1.23)",
               "Accept-Encoding": "gzip", "X-Grafana-Org-Id": "1"}
    kind, now = "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 1_700_000_000_000
    times = field(3, now - 3_600_000) + field(4, now)

    def select(unit):
        return field(1, kind) + field(2, '{service_name="%s"}' % unit) + times

    calls = [("SelectMergeStacktraces", lambda unit: select(unit) + field(5, 16384)),
             ("SelectSeries", lambda unit: select(unit) + field(5, "instance") + b"\x31" + b"\0" * 6 + b"\x2e\x40"),
             ("SelectMergeProfile", select),
             ("LabelNames", lambda unit: field(1, '{service_name="%s"}' % unit) + field(2, now - 3_600_000) + field(3, now)),
             ("LabelValues", lambda unit: field(1, "instance") + field(2, '{service_name="%s"}' % unit) + times),
             ("Series", lambda unit: field(1, '{service_name="%s"}' % unit) + field(2, "service_name"))]
    with Backend() as tsdb, Backend() as profiles, Gate(directory, [tsdb.url], [profiles.url]) as gate:
        for name, body in calls:
            path = "/querier.v1.QuerierService/" + name
            answer = gate.ask(path, data=body("1"), headers=connect, port=gate.ports[1])
            assert answer.status == 200, (name, answer.text)
            method, target, headers, sent = profiles.seen[-1]
            assert (method, target, headers["content-type"]) == ("POST", path, ["application/proto"])
            assert sent == body("1"), (name, sent, body("1"))
            assert headers["connect-protocol-version"] == ["1"] and headers["x-grafana-user"] == ["alice"], headers
            before = len(profiles.seen)
            for unit in ("2", "", "1|2"):
                assert gate.ask(path, data=body(unit), headers=connect, port=gate.ports[1]).status == 403, (name, unit)
            assert len(profiles.seen) == before
        packed = dict(connect, **{"Content-Encoding": "gzip"})
        path = "/querier.v1.QuerierService/SelectMergeProfile"
        assert gate.ask(path, data=gzip.compress(select("1")), headers=packed, port=gate.ports[1]).status == 200
        assert profiles.seen[-1][3] == select("1") and "content-encoding" not in profiles.seen[-1][2]
        assert gate.ask(path, data=gzip.compress(select("2")), headers=packed, port=gate.ports[1]).status == 403
        types = field(1, now - 3_600_000) + field(2, now)
        assert gate.ask("/querier.v1.QuerierService/ProfileTypes", data=types, headers=connect, port=gate.ports[1]).status == 200
        for path in ("/push.v1.PusherService/Push", "/ingest", "/pyroscope/render?query=x"):
            assert gate.ask(path, data=b"x", headers=connect, port=gate.ports[1]).status == 403, path


def test_a_pyroscope_that_ignores_matchers(directory, _options):
    """Such a server gets no call of users that it would answer for everybody."""
    text = {"Content-Type": "application/json"}
    own = {"matchers": ['{service_name="1"}']}
    calls = [("LabelNames", own), ("LabelValues", dict(own, name="service_name")), ("Series", own)]
    with Backend() as tsdb, Backend("old") as old, Backend() as new, Gate(directory, [tsdb.url], [old.url]) as gate:
        def ask(name, body, user="alice"):
            return gate.ask("/querier.v1.QuerierService/" + name, user=user, data=json.dumps(body).encode(), headers=text,
                            port=gate.ports[1])

        for name, body in calls:
            answer = ask(name, body)
            assert answer.status == 403 and "ignores the matchers" in answer.json["message"], (name, answer.text)
            assert answer.json["code"] == "permission_denied"
            assert not old.seen, "the call was sent on: %r" % (old.seen[-1],)
        assert ask("SelectSeries", {"labelSelector": '{service_name="1"}'}).status == 200
        assert ask("LabelNames", {}, user="root").status == 200
        gate.write([tsdb.url], [old.url, new.url])
        gate.reload()
        for name, body in calls * 2:
            answer = ask(name, body)
            assert answer.status == 200, (name, answer.text)
        sent = [b"ceems_lb asks" in seen[3] or b'"{}"' in seen[3] for seen in new.seen]
        assert sent.count(False) == 6, new.seen
        assert gate.metric("ceems_lb_decisions_total", backend_type="pyroscope", reason="matchers") == 3


def test_parameters_of_servers(directory, _options):
    more = "&dedup=false&max_source_resolution=5m&nocache=1&extra_label=uuid%3D2&storeMatch[]=x"
    with Backend() as server, Gate(directory, [server.url]) as gate:
        for kind, wanted in (("", ""), ("          server: thanos\n", "&dedup=false&max_source_resolution=5m"),
                             ("          server: victoriametrics\n", "&nocache=1"), ("          server: prometheus\n", "")):
            gate.write([server.url], web_options=kind)
            gate.reload()
            for _ in range(2):  # the second query is known
                assert gate.ask(OWN + more).status == 200
                sent = server.seen[-1][1]
                assert sent[sent.index("query="):].partition("&")[1:] == (("&", wanted[1:]) if wanted else ("", "")), (kind, sent)


# Three at a time; those that mostly wait come first.
TESTS = [test_servers_behind_unix_sockets, test_requests_leave_a_hanging_server, test_a_reload_remembers_dead_and_hanging_servers,
         test_large_responses_are_streamed, test_idle_connections_cost_little, test_servers_that_fail, test_reload_drops_nothing,
         test_both_kinds_and_strategies, test_writes_are_sent_only_once, test_a_pyroscope_that_ignores_matchers, test_parameters_of_servers,
         test_what_grafana_asks_pyroscope, test_errors_do_not_name_hidden_labels, test_tls_and_passwords_on_both_sides]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    def run(test):
        with harness.scratch("ceems-test-") as directory:
            test(directory, options)
    return harness.run_together(
        [test for test in TESTS if not options.names or any(name in test.__name__ for name in options.names)], run, 3)


if __name__ == "__main__":
    sys.exit(main())
