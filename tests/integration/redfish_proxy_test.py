#!/usr/bin/env python3
"""redfish_proxy in front of BMCs that answer, hang, redirect and break off, with plain HTTP and TLS on both sides, and attacks on it.

usage: redfish_proxy_test.py [NAME...]"""

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading

import harness
from fake_backend import Backend
from harness import Program, free_port, get, need_programs, wait_until

PASSWORD_HASH = "$2b$04$abcdefghijklmnopqrstuuwjI.wa2R9/ujOvVvZlNRrlgaM.tjXv6"  # of "gate-test"
NO_TARGET = "failed to find redfish target"


class Bmc(Backend):
    """A BMC: answers with its name. Further moods: redirect, split."""

    def serve(self, rfile, wfile):
        if self.mood not in ("well", "redirect", "split"):
            return super().serve(rfile, wfile)
        request = self.read(rfile)
        if not request:
            return False
        if self.mood == "redirect":
            wfile.write(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n")
            return True
        if self.mood == "split":
            wfile.write(b"HTTP/1.1 200 OK\r\nX-One: a\nX-Two: b\r\n folded\r\nContent-Length: 2\r\n\r\nhi")
            return False
        text = b"BMC %d" % self.port
        wfile.write(b"HTTP/1.1 200 OK\r\nX-Auth-Token: t%d\r\nContent-Length: %d\r\n\r\n" % (self.port, len(text))
                    + (b"" if request[0] == "HEAD" else text))
        return True


class Chassis(Bmc):
    """A Redfish service with one chassis, which wants a session."""
    PAGES = {"/redfish/v1/": {"Chassis": {"@odata.id": "/redfish/v1/Chassis"}, "Links": {"Sessions": {"@odata.id": "/redfish/v1/Sessions"}}},
             "/redfish/v1/Chassis": {"Members": [{"@odata.id": "/redfish/v1/Chassis/System.Embedded.1"}]},
             "/redfish/v1/Chassis/System.Embedded.1": {"Id": "System.Embedded.1", "Power": {
                 "@odata.id": "/redfish/v1/Chassis/System.Embedded.1/Power"}},
             "/redfish/v1/Chassis/System.Embedded.1/Power": {"PowerControl": [{"PowerConsumedWatts": 344}]}}

    def serve(self, rfile, wfile):
        request = self.read(rfile)
        if not request:
            return False
        method, path, headers, body = request
        status, more, page = 404, "", {}
        if method == "POST" and path == "/redfish/v1/Sessions" and json.loads(body) == {"UserName": "u", "Password": "p"}:
            status, more = 201, "X-Auth-Token: s3cret\r\nLocation: /redfish/v1/Sessions/1\r\n"
        elif path == "/redfish/v1/" or headers.get("x-auth-token") == ["s3cret"]:
            status, page = (200, self.PAGES[path]) if path in self.PAGES else (404, {})
        else:
            status = 401
        text = json.dumps(page).encode()
        wfile.write(b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n" % (status, more.encode(), len(text))
                    + text)
        return True


class Proxy(Program):
    def __init__(self, directory, config=None, arguments=(), scheme="http", ready=True, env=None):
        self.port = free_port()
        self.config = None
        command = [os.path.join(harness.BIN, "redfish_proxy"), "--web.listen-address=127.0.0.1:%d" % self.port, "--log.level=debug"]
        if config is not None:
            self.config = harness.write(os.path.join(directory, "proxy.yml"), config)
            command.append("--config.file=" + self.config)
        super().__init__(command + list(arguments), os.path.join(directory, "proxy-%d.log" % self.port), env)
        self.url = "%s://127.0.0.1:%d" % (scheme, self.port)
        if ready:
            self.wait_ready(self.url + "/health")

    def ask(self, path="/redfish/v1/", node=None, bmc=None, timeout=90, data=None, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if node:
            sent["X-Real-IP"] = node
        if bmc:
            sent["X-Redfish-Url"] = bmc
        return get(self.url + path, sent, timeout, data)

    def raw(self, request, wait=5.0):
        """Sends bytes, and returns all that comes until the end or a pause."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=harness.PATIENCE) as s:
            s.sendall(request)
            got = b""
            with contextlib.suppress(socket.timeout):
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        break
                    s.settimeout(wait)
                    got += piece
                    head, _, body = got.partition(b"\r\n\r\n")
                    length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                    if length and len(body) >= int(length[0].split(b":")[1]):
                        break
            return got

    def reload(self, config):
        with open(self.config + ".new", "w", encoding="utf-8") as out:
            out.write(config)
        os.replace(self.config + ".new", self.config)
        before = self.output().count("reload")
        self.process.send_signal(signal.SIGHUP)
        wait_until("the configuration is read again", lambda: self.output().count("reload") > before)

    def metric(self, series):
        for line in get(self.url + "/metrics").text.splitlines():
            if line.startswith(series + " "):
                return float(line.rsplit(" ", 1)[1])
        return None


def targets(bmcs, first="192.0.2."):
    return "redfish_proxy:\n  targets:\n" + "".join(
        "    - {host_ip_addrs: [%s%d], url: '%s'}\n" % (first, i, getattr(bmc, "url", bmc)) for i, bmc in enumerate(bmcs))


def equal(got, wanted, what=""):
    assert got == wanted, "%s: got %r, expected %r" % (what, got, wanted)


def certificate(directory):
    need_programs("openssl")
    paths = os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=bmc", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", paths[1], "-out", paths[0]],
                   check=True, stderr=subprocess.DEVNULL)
    os.chmod(paths[1], 0o644)
    return paths


def context_of(directory):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(directory))
    return context


# The tests.

def routes(directory):
    """Nodes reach their BMC by address; a header names configured targets only."""
    with Bmc() as one, Bmc() as two, Bmc() as secret, Proxy(directory, targets([one, two])) as proxy:
        equal(proxy.ask(node="192.0.2.0").text, "BMC %d" % one.port)
        equal(proxy.ask(node="192.0.2.1").text, "BMC %d" % two.port)
        answer = proxy.ask(node="192.0.2.77")
        equal((answer.status, answer.text), (400, NO_TARGET))
        equal(proxy.ask(bmc=two.url).text, "BMC %d" % two.port)
        equal(proxy.ask().text, "BMC %d" % two.port, "remembered")
        equal(proxy.ask(node="192.0.2.77", bmc=secret.url).status, 400)
        equal(secret.connections, 0)
        equal(proxy.ask("/redfish/v1/Chassis/1/Power?$select=Id", node="192.0.2.0", X_Auth_Token="t", Authorization="Basic eDp5").status, 200)
        method, target, headers, _ = one.seen[-1]
        equal((method, target), ("GET", "/redfish/v1/Chassis/1/Power?$select=Id"))
        equal(proxy.ask("/redfish/v1/Chassis?$expand=.", node="192.0.2.0").status, 401)
        equal(headers["x-auth-token"], ["t"])
        equal(headers["user-agent"], ["ceems/redfish_proxy"])
        equal(headers["x-forwarded-for"], ["127.0.0.1"])
        equal(headers["host"], ["127.0.0.1:%d" % one.port])
        for name in ("authorization", "x-redfish-url"):
            assert name not in headers, headers
        answer = proxy.ask("/redfish/v1/SessionService/Sessions", node="192.0.2.1", data=b'{"UserName":"u"}')
        equal((answer.status, answer.headers["X-Auth-Token"]), (200, "t%d" % two.port))
        equal(two.seen[-1][3], b'{"UserName":"u"}')
        answer = proxy.ask("/redfish/v1/Managers", node="192.0.2.0")
        equal((answer.status, answer.text), (401, "access to api resource /redfish/v1/Managers is not allowed"))
        equal(proxy.ask("/redfish/v1/Chassis/1", node="192.0.2.0", data=b"{}").status, 405)
        equal(proxy.ask("/redfish/v1/Sessions", node="192.0.2.0", data=b"x" * 65537).status, 413)
        equal(proxy.metric('redfish_proxy_requests_total{outcome="target_refused"}'), 1)
        equal(proxy.metric("redfish_proxy_targets"), 2)
        equal(proxy.metric("redfish_proxy_requests_in_flight"), 0)


def without_configuration(directory):
    """The header is followed on the loopback interface only, with a warning."""
    with Bmc() as bmc, Proxy(directory) as proxy:
        equal(proxy.ask().status, 400)
        equal(proxy.ask(bmc=bmc.url).text, "BMC %d" % bmc.port)
        equal(proxy.ask(bmc="http://localhost:%d" % bmc.port).text, "BMC %d" % bmc.port)
        equal(proxy.ask().text, "BMC %d" % bmc.port)
        equal(proxy.ask(node="192.0.2.7").status, 400)
        equal(proxy.ask("/redfish/v1/Systems", bmc=bmc.url).status, 401)
        equal(proxy.ask(node="192.0.2.7", bmc=bmc.url).status, 400, "another machine must not reach this one's loopback interface")
        assert "no targets are configured" in proxy.output()
    refused = subprocess.run([os.path.join(harness.BIN, "redfish_proxy"), "--web.listen-address=0.0.0.0:%d" % free_port()],
                             capture_output=True, text=True, timeout=90)
    equal(refused.returncode, 1)
    assert "anybody in the network could reach any server" in refused.stderr + refused.stdout, refused
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        refused = subprocess.run([os.path.join(harness.BIN, "redfish_proxy"), "--web.listen-address=127.0.0.1:%d" % other.getsockname()[1]],
                                 capture_output=True, text=True, timeout=90)
    assert refused.returncode == 1 and "address already in use" in refused.stderr.splitlines()[-1], refused


def attacks(directory):
    """Requests for other servers, and requests that two parsers read differently."""
    with Bmc() as bmc, Proxy(directory) as proxy:
        for url in ("http://169.254.169.254", "http://[::ffff:169.254.169.254]", "http://0/", "file:///etc/passwd", "gopher://127.0.0.1",
                    bmc.url + "/x", bmc.url + "?x", "http://u:p@127.0.0.1:%d" % bmc.port, "unix:///run/x.sock", "http://[fe80::1]",
                    "http:127.0.0.1:%d" % bmc.port, "//127.0.0.1", "http://224.0.0.1"):
            answer = proxy.ask(node=None, bmc=url, timeout=90)
            equal((answer.status, answer.text), (400, NO_TARGET), url)
        equal(bmc.seen, [])
        for outcome in ("unreachable", "timeout"):
            assert not proxy.metric('redfish_proxy_requests_total{outcome="%s"}' % outcome), "it tried to connect"
        tail = b"Host: x\r\nX-Redfish-Url: %s\r\n" % bmc.url.encode()
        for line, status in ((b"GET /redfish/v1/%0d%0aX-Evil:%201/ HTTP/1.1", b"401"), (b"GET /redfish/v1/../../etc HTTP/1.1", b"301"),
                             (b"GET /redfish/v1/%2e%2e/x HTTP/1.1", b"301"), (b"GET http://evil/redfish/v1/ HTTP/1.1", b"200"),
                             (b"GET /redfish/v1/Chassis%2F1 HTTP/1.1", b"200"), (b"CONNECT 10.0.0.1:22 HTTP/1.1", b"40"),
                             (b"OPTIONS * HTTP/1.1", b"40"), (b"TRACE /redfish/v1/ HTTP/1.1", b"405"),
                             (b"PATCH /redfish/v1/ HTTP/1.1", b"405")):
            got = proxy.raw(line + b"\r\n" + tail + b"\r\n")
            assert got.startswith(b"HTTP/1.1 " + status) or (status == b"40" and got.startswith(b"HTTP/1.1 30")), (line, got)
        equal([target for _, target, _, _ in bmc.seen], ["/redfish/v1/", "/redfish/v1/Chassis/1"])
        before = len(bmc.seen)
        for fields in (b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                       b"X-A: b\r\n folded\r\n\r\n", b"Transfer-Encoding: xchunked\r\n\r\n"):
            got = proxy.raw(b"POST /redfish/v1/Sessions HTTP/1.1\r\n" + tail + fields)
            assert got.startswith(b"HTTP/1.1 400"), (fields, got)
        equal(len(bmc.seen), before)
        got = proxy.raw(b"DELETE /redfish/v1/Sessions/1 HTTP/1.1\r\nX-HTTP-Method-Override: PATCH\r\nX-Evil: a\x0bb\r\n" + tail + b"\r\n")
        if got.startswith(b"HTTP/1.1 200"):
            assert "x-http-method-override" not in bmc.seen[-1][2]
        bmc.mood = "redirect"
        answer = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=90)
        answer.request("GET", "/redfish/v1/", headers={"X-Redfish-Url": bmc.url})
        reply = answer.getresponse()
        equal((reply.status, reply.headers["Location"]), (307, "http://169.254.169.254/latest"), "redirects are not followed")
        answer.close()
        bmc.mood = "split"
        got = proxy.raw(b"GET /redfish/v1/ HTTP/1.1\r\n" + tail + b"\r\n")
        assert b"\nX-Two" not in got.replace(b"\r\nX-Two", b"\nX-Two") or got.startswith(b"HTTP/1.1 400"), got


def spoofing(directory):
    """X-Real-IP counts only from trusted proxies."""
    with Bmc() as one, Bmc() as two:
        config = targets([one, two]) + "  trusted_proxies: [192.0.2.0/24]\n"
        with Proxy(directory, config) as proxy:
            equal(proxy.ask(node="192.0.2.0").status, 400)
            equal(proxy.ask(node="192.0.2.0", bmc=two.url).text, "BMC %d" % two.port)
            equal(proxy.ask(node="192.0.2.1").text, "BMC %d" % two.port, "remembered for the address of the connection")
        config = targets([one, two]) + "    - {host_ip_addrs: [127.0.0.1], url: '%s'}\n  trusted_proxies: []\n" % one.url.replace("127.0.0.1",
                                                                                                                            "localhost")
        with Proxy(directory, config) as proxy:
            equal(proxy.ask(node="192.0.2.1").text, "BMC %d" % one.port)


def hanging(directory):
    """A BMC that hangs stalls nobody else, and a client has a bounded number of requests."""
    with Bmc() as good, Bmc("silent") as bad, socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # does not listen: refuses
        refused = "http://127.0.0.1:%d" % deaf.getsockname()[1]
        with Proxy(directory, targets([good, bad, refused]) + "  timeout: 10s\n  max_requests_per_client: 20\n") as proxy:
            statuses, threads = [], []
            for _ in range(30):
                threads.append(threading.Thread(target=lambda: statuses.append(proxy.ask(node="192.0.2.1").status)))
                threads[-1].start()
            wait_until("requests wait", lambda: proxy.metric("redfish_proxy_requests_in_flight") == 20)
            for _ in range(20):
                equal(proxy.ask(node="192.0.2.0").status, 200)
            equal(proxy.metric("redfish_proxy_requests_in_flight"), 20, "the other BMC answered meanwhile")
            for thread in threads:
                thread.join()
            equal(sorted(statuses), [429] * 10 + [504] * 20)
            answer = proxy.ask(node="192.0.2.2")
            equal((answer.status, answer.text), (400, NO_TARGET))
            equal(proxy.metric('redfish_proxy_requests_total{outcome="timeout"}'), 20)
            equal(proxy.metric('redfish_proxy_requests_total{outcome="unreachable"}'), 1)
            equal(proxy.metric('redfish_proxy_requests_total{outcome="too_many"}'), 10)
            bad.mood = "broken"
            try:
                proxy.ask(node="192.0.2.1")
                raise AssertionError("half an answer looked complete")
            except (http.client.IncompleteRead, ConnectionError):
                pass
            bad.mood = "garbage"
            equal(proxy.ask(node="192.0.2.1").status, 400)


def rates(directory):
    """A client that sends too many requests in a second gets 429 before anything else is looked at; others do not notice."""
    with Bmc() as bmc:
        with Proxy(directory, targets([bmc, bmc]) + "  max_request_rate_per_client: 2\n") as proxy:
            statuses = []
            while len(statuses) < 1000 and statuses.count(429) < 5:  # as fast as this machine can
                statuses.append(proxy.ask(node="192.0.2.0").status)
            equal(statuses[:20], [200] * 20)
            assert statuses.count(429) == 5 and set(statuses) == {200, 429}, statuses
            refused = proxy.ask(node="192.0.2.0", path="/etc/passwd")
            equal((refused.status, refused.headers["Retry-After"], refused.text), (429, "1", "Too Many Requests\n"))
            equal(proxy.ask(node="192.0.2.1").status, 200)
            equal(len(bmc.seen), statuses.count(200) + 1)
            equal(proxy.metric('redfish_proxy_requests_total{outcome="too_fast"}'), statuses.count(429) + 1)
            equal(proxy.output().count("max_request_rate_per_client"), 1, "the log has one line for it")
            for _ in range(50):
                equal(get(proxy.url + "/health").status, 200)
            wait_until("the client has been slow enough", lambda: proxy.ask(node="192.0.2.0").status == 200)
            proxy.reload(targets([bmc]) + "  max_request_rate_per_client: 0\n")
            equal({proxy.ask(node="192.0.2.0").status for _ in range(50)}, {200})


def tls(directory):
    """All four combinations, with and without checked certificates, and a password at the front."""
    bmc_context = context_of(directory)
    web = harness.write(os.path.join(directory, "web.yml"), "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"
                        "basic_auth_users: {admin: '%s'}\n" % PASSWORD_HASH)
    ca = "  tls_config: {ca_file: cert.pem}\n"
    open_context = ssl.create_default_context(cafile=os.path.join(directory, "cert.pem"))
    basic = "Basic " + base64.b64encode(b"admin:gate-test").decode()

    def status(port, front, authorization=None):
        connection = (http.client.HTTPSConnection("127.0.0.1", port, timeout=90, context=open_context) if front
                      else http.client.HTTPConnection("127.0.0.1", port, timeout=90))
        headers = {"X-Real-IP": "192.0.2.0"}
        if authorization:
            headers["Authorization"] = authorization
        try:
            connection.request("GET", "/redfish/v1/", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode().strip()
        finally:
            connection.close()

    for back in (False, True):
        with Bmc(context=bmc_context if back else None) as bmc:
            for front in (False, True):
                proxy = Proxy(directory, targets([bmc]) + ca, ["--web.config.file=" + web] if front else [], ready=False)
                with proxy:
                    wait_until("listening", lambda proxy=proxy: "msg=listening" in proxy.output())
                    wanted = (200, "BMC %d" % bmc.port)
                    equal(status(proxy.port, front, basic if front else None), wanted, "front %s, back %s" % (front, back))
                    assert "authorization" not in bmc.seen[-1][2]
                    if front:
                        equal(status(proxy.port, front), (401, "Unauthorized"))
    with Bmc(context=bmc_context) as bmc:
        with Proxy(directory, targets([bmc])) as proxy:
            equal(proxy.ask(node="192.0.2.0").status, 400, "a certificate of an unknown authority")
            proxy.reload(targets([bmc]).replace("url:", "tls_config: {ca_file: cert.pem}, url:"))
            equal(proxy.ask(node="192.0.2.0").status, 200, "the authority of one target")
            proxy.reload(targets([bmc]).replace("redfish_proxy", "redfish_config") + "  insecure_skip_verify: true\n")
            equal(proxy.ask(node="192.0.2.0").status, 200, "not checked")
            assert "deprecated" in proxy.output()


def reload(directory):
    """SIGHUP reads the configuration again; a mistake changes nothing."""
    unlimited = "  max_request_rate_per_client: 0\n"
    with Bmc() as one, Bmc() as two, Proxy(directory, targets([one]) + unlimited) as proxy:
        equal(proxy.ask(node="192.0.2.0").text, "BMC %d" % one.port)
        proxy.reload(targets([two]) + unlimited)
        equal(proxy.ask(node="192.0.2.0").text, "BMC %d" % two.port)
        proxy.reload("redfish_proxy: {targets: [{url: 'http:1.2.3.4:80'}]}\n")
        assert "invalid url string" in proxy.output()
        equal(proxy.ask(node="192.0.2.0").text, "BMC %d" % two.port)
        stop, wrong = threading.Event(), []

        def ask_on():
            while not stop.is_set():
                answer = proxy.ask(node="192.0.2.0")
                if answer.status != 200 or answer.text not in ("BMC %d" % one.port, "BMC %d" % two.port):
                    wrong.append((answer.status, answer.text))
        threads = [threading.Thread(target=ask_on) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(20):
            proxy.reload(targets([(one, two)[i % 2]]) + unlimited)
        stop.set()
        for thread in threads:
            thread.join()
        equal(wrong, [], "answers during reloads")
        equal(proxy.stop(), 0)


def thousands(directory):
    """3,000 targets over TLS: memory and connections of those in use are bounded."""
    bmc_context = context_of(directory)
    count = 3000
    with Bmc(context=bmc_context) as bmc:
        lines = "".join("    - {host_ip_addrs: [10.%d.%d.1], url: 'https://127.0.0.1:%d/b%d'}\n" % (i // 250, i % 250, bmc.port, i)
                        for i in range(count))
        config = "redfish_proxy:\n  tls_config: {ca_file: cert.pem}\n  max_requests_per_client: 1000\n  targets:\n" + lines
        with Proxy(directory, config) as proxy:
            def memory():
                with open("/proc/%d/status" % proxy.pid, encoding="ascii") as text:
                    return sum(int(line.split()[1]) for line in text if line.startswith("RssAnon:")) / 1024
            before = memory()
            connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=90)
            asked = 300
            for i in range(0, count, count // asked):
                connection.request("GET", "/redfish/v1/Chassis", headers={"X-Real-IP": "10.%d.%d.1" % (i // 250, i % 250)})
                answer = connection.getresponse()
                equal((answer.status, answer.read()), (200, b"BMC %d" % bmc.port))
                equal(bmc.seen[-1][1], "/b%d/redfish/v1/Chassis" % i)
            connection.close()
            each = (memory() - before) / asked
            print("%.0f KiB for each BMC in use" % (each * 1024))
            assert each < 2, "%.2f MiB for each BMC" % each  # a tenth of it without AddressSanitizer
            files = len(os.listdir("/proc/%d/fd" % proxy.pid))
            assert files < asked + 100, "at most one kept connection for each BMC in use, got %d files" % files
            equal(proxy.metric("redfish_proxy_targets"), count)


def exporter(directory):
    """ceems_exporter logs in to its BMC and reads the power through the proxy, by its address and by the header."""
    if not os.path.exists(os.path.join(harness.BIN, "ceems_exporter")):
        print("exporter: SKIPPED, %s does not contain ceems_exporter" % harness.BIN)
        return
    with Chassis() as bmc:
        for config in ("redfish_proxy:\n  targets: [{host_ip_addrs: [127.0.0.1], url: '%s'}]\n" % bmc.url,
                       "redfish_proxy: {allowed_targets: ['http://127.0.0.1:%d']}\n" % bmc.port):
            bmc.seen.clear()
            with Proxy(directory, config) as proxy:
                file = harness.write(directory + "/redfish.yml", "redfish_collector: {protocol: http, hostname: 127.0.0.1, port: %d, "
                                     "username: u, password: p, external_url: '%s'}\n" % (bmc.port, proxy.url), 0o600)
                program, url = harness.start_exporter(directory, ["--collector.redfish", "--collector.redfish.config.file=" + file])
                with program:
                    wait_until("the power is on the page", lambda url=url: [
                        value for labels, value in harness.samples(get(url + "/metrics").text, "ceems_redfish_current_watts")
                        if 'chassis="System_Embedded_1"' in labels] == [344.0])
            equal({name for _, _, fields, _ in bmc.seen for name in fields["user-agent"]}, {"ceems/redfish_proxy"})
            assert ("POST", "/redfish/v1/Sessions") in [(method, path) for method, path, *_ in bmc.seen]


def documentation(directory):
    """The metrics, flags and configurations of the page and of the example exist and work."""
    with open(os.path.join(harness.ROOT, "docs", "redfish-proxy.md"), encoding="utf-8") as file:
        page = file.read()
    with open(os.path.join(harness.ROOT, "packaging", "config", "redfish-proxy.yml"), encoding="utf-8") as file:
        example = file.read()
    usage = subprocess.run([os.path.join(harness.BIN, "redfish_proxy"), "--help"], capture_output=True, text=True, check=True, timeout=90)
    known = set(re.findall(r"--(?:\[no-\])?([a-z][a-z.-]+)", usage.stdout))
    equal(sorted(set(re.findall(r"--(?:\[no-\])?([a-z][a-z.-]+)", page)) - known), [])
    configurations = re.findall(r"```yaml\n(.*?)```", page, re.S) + [example, re.sub(r"(?m)^( *)#( *)(?=-|\w+:(?! )|\w+: [\[/])", r"\1\2", example)]
    assert len(configurations) == 4 and configurations[3].count("#") < example.count("#") - 4, configurations[3]
    for text in configurations:
        text = re.sub(r"(?m)^ *ca_file:.*$", "        ca_file: ''", text)
        with Proxy(directory, text) as proxy:
            families = set(re.findall(r"# TYPE (\S+)", get(proxy.url + "/metrics").text))
    # The commands, with other places: what starts the proxy, and what a node would get.
    start, ask = re.search(r"```sh\n(redfish_proxy .*)\n```", page).group(1), re.search(r"`(curl .*?)`", page).group(1)
    with Bmc() as bmc:
        harness.write(directory + "/etc/config.yml", configurations[0].replace("https://bmc-1.example.org", bmc.url))
        harness.write(directory + "/etc/web-config.yml", "")
        arguments = start.replace("/etc/redfish_proxy/", directory + "/etc/").split()[1:]
        with Proxy(directory, arguments=arguments) as proxy:
            header, url = re.fullmatch(r"curl -H '(.*)' (\S+)", ask).groups()
            name, value = header.split(": ")
            answer = get(url.replace("http://localhost:5000", proxy.url), {name: value})
            equal((answer.status, answer.text), (200, "BMC %d" % bmc.port), ask)
            equal(get(proxy.url + "/redfish/v1/", {name: "10.1.0.9"}).text.strip(), NO_TARGET)
    with Proxy(directory, configurations[1]) as proxy:
        for url, outcome in (("https://node.bmc.example.org", "unreachable"), ("http://node.bmc.example.org", "target_refused"),
                             ("https://10.3.0.1", "target_refused"), ("https://10.2.0.1:8443", "target_refused")):
            before = proxy.metric('redfish_proxy_requests_total{outcome="%s"}' % outcome) or 0
            equal(proxy.ask(bmc=url).status, 400, url)
            equal(proxy.metric('redfish_proxy_requests_total{outcome="%s"}' % outcome), before + 1, url)
    # Each row of the flags says the default that the program prints.
    for flag, default in re.findall(r"^\| `--(?:\[no-\])?([a-z.-]+)` \| (?:`([^`]*)`|\S+) \|", page, re.M):
        shown = re.search(r"--(?:\[no-\])?%s\b[^\n]*" % re.escape(flag), usage.stdout)
        assert shown and (not default or default in shown.group(0)), (flag, default, shown and shown.group(0))
    for name in re.findall(r"^\| `(redfish_proxy_\w+)`", page, re.M):
        assert name in families or name.endswith(("dropped_requests_total", "answers_total", "duration_seconds")), name
    for name in families:
        assert name.startswith("process_") or "`%s`" % name in page, name


TESTS = (routes, without_configuration, attacks, spoofing, hanging, rates, tls, reload, thousands, exporter, documentation)

if __name__ == "__main__":
    sys.exit(harness.run_tests(TESTS, "ceems-redfish-", together=3))
