#!/usr/bin/env python3
"""The HTTP side of the real API server: misbehaving clients, many clients, a stop while it streams, flags that it must reject."""

import contextlib
import http.client
import json
import os
import random
import resource
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.parse

from api_database import World, create, insert, local
from harness import BIN, Program, get, scratch, start_api_server, wait_until, write

USER = {"X-Grafana-User": "ada"}
FLAGS = ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges"]


def config_of(directory):
    return ("ceems_api_server:\n  data:\n    path: %s\n    time_zone: UTC\n    update_interval: 1d\n"
            "  admin:\n    users: [root1]\n" % os.path.join(directory, "data"))


def big_database(directory, rows):
    """`rows` finished units of ada, so many that a response with all of them has to be streamed."""
    os.makedirs(os.path.join(directory, "data"))
    world = World(random.Random(1), int(time.time()), units=1)
    unit = dict(world.units[0], cluster_id="hpc-a", username="ada", project="fluids", ignore=0, started_at_ts=1, ended_at_ts=1,
                last_updated_at=local(1))
    database = create(os.path.join(directory, "data", "ceems.db"))
    with database:
        insert(database, "units", [dict(unit, uuid="%06d" % i) for i in range(rows)])
        insert(database, "projects", [{"cluster_id": "hpc-a", "resource_manager": "slurm", "name": "fluids", "users": ["ada"],
                                       "tags": [], "last_updated_at": local(1)}])
    database.close()


def netloc(url):
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port


def connect(url):
    connection = socket.create_connection(netloc(url), timeout=90)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_all(connection):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            data += piece
    return data


def talk(url, text):
    """Everything the server sends in response to these bytes until it closes the connection."""
    with connect(url) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(text if isinstance(text, bytes) else text.encode())
        return read_all(connection)


def is_open(connection):
    timeout = connection.gettimeout()
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        connection.settimeout(timeout)


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


def once(target, head="", method="GET", version="1.1", body=""):
    return "%s %s HTTP/%s\r\nHost: x\r\nConnection: close\r\n%s\r\n%s" % (method, target, version, head, body)


def test_rude_requests(url):
    """Each request gets the right status, and the server keeps working."""
    api, user = "/api/v1/units", "X-Grafana-User: ada\r\n"
    cases = [
        (once("/%zz"), 400), (once("/%"), 400), (once("/health%"), 400), (once("/%00"), 404), (once("/health%00"), 404),
        (once(api + "?uuid=%zz&uuid=%", user), 200), (once(api + "?uuid=%00&project=%ff%fe", user), 200),
        (once(api + "?from=%00", user), 400), (once("/api/v1/units%3Fuuid=1", user), 404), (once("/api/v1%2Funits", user), 200),
        ("GET /health\0 HTTP/1.1\r\nHost: x\r\n\r\n", 400), (once("/health", "X-A: a\0b\r\n"), 400),
        (once("/health", "X-A: %s\r\n" % ("x" * 20000)), 431), (once("/health?" + "x" * 20000), 431),
        (once("/health", "".join("X-%d: y\r\n" % i for i in range(3000))), 431),
        ("GET /health HTTP/1.1\r\n\r\n", 400), (once("/health", "Host: y\r\n"), 400), ("nonsense\r\n\r\n", 400),
        ("GET /health HTTP/3.0\r\nHost: x\r\n\r\n", 505), (once("/health", version="1.0"), 200),
        ("GET /health HTTP/1.0\r\n\r\n", 200),
        (once(api, user + "Transfer-Encoding: chunked\r\n", body="3\r\nabc\r\n0\r\n\r\n"), 200),
        (once(api, user + "Transfer-Encoding: chunked\r\n", body="zz\r\nabc\r\n0\r\n\r\n"), 400),
        (once(api, user + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", body="3\r\nabc\r\n0\r\n\r\n"), 400),
        (once(api, user + "Content-Length: 3\r\nContent-Length: 4\r\n", body="abcd"), 400),
        (once(api, user + "Content-Length: 99999999999\r\n"), 413),
        (once(api, user, "POST"), 404), (once(api, user, "HEAD"), 404), (once(api, user, "BREW"), 404),
        (once("/health", "", "HEAD"), 200), (once("/openapi.json", "", "HEAD"), 200), (once(api, "", "OPTIONS"), 200),
        (once("//evil.example/..//api/v1/units", user), 301), (once("http://other.example/health"), 200),
        (once("/api/v1/units", "X-Grafana-User: \r\n"), 401), (once("/api/v1/units", user + "X-Grafana-User: root1\r\n"), 401),
        (once("/api/v1/units/admin", user + "X-Grafana-User: root1\r\n"), 401),
        (once("/api/v1/units/admin", "X-Ceems-Admin-User: root1\r\nX-Ceems-Logged-User: root1\r\n" + user), 403),
    ]
    for text, expected in cases:
        answer = talk(url, text)
        if status_of(answer) != expected:
            raise AssertionError("expected %d for %r, got %r" % (expected, text[:200], answer[:300]))
    body = talk(url, once("/api/v1/units", method="HEAD"))
    assert body.endswith(b"\r\n\r\n"), body
    assert status_of(talk(url, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)))) in (400, None)


def test_pipelining(url):
    """Requests that are sent at once are answered in order."""
    count = 60
    text = "".join("GET /api/v1/units?uuid=%06d&field=uuid HTTP/1.1\r\nHost: x\r\nX-Grafana-User: ada\r\n%s\r\n" % (
        i, "Connection: close\r\n" if i == count - 1 else "") for i in range(count))
    answer = talk(url, text)
    positions = [answer.find(b'{"uuid":"%06d"}' % i) for i in range(count)]
    assert all(at > 0 for at in positions) and positions == sorted(positions), answer[:500]
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == count


def test_http_1_0_stream(url):
    """A client with HTTP/1.0 gets a long response without chunks, which ends when the connection closes."""
    answer = talk(url, "GET /api/v1/units?to=1 HTTP/1.0\r\nX-Grafana-User: ada\r\nConnection: keep-alive\r\n\r\n")
    head, body = answer.split(b"\r\n\r\n", 1)
    assert b"Transfer-Encoding" not in head and b"Content-Length" not in head, head
    assert len(json.loads(body)["data"]) == ROWS


def test_compression(url):
    """Streams are compressed with the coding that the client prefers, and only if it accepts one."""
    import gzip
    plain = get(url + "/api/v1/units?to=1", USER).body
    packed = get(url + "/api/v1/units?to=1", dict(USER, **{"Accept-Encoding": "gzip"}))
    assert packed.headers["Content-Encoding"] == "gzip" and "Accept-Encoding" in packed.headers["Vary"]
    assert gzip.decompress(packed.body) == plain and len(packed.body) < len(plain) / 5
    for accepted, coding in (("zstd, gzip;q=0", "zstd"), ("gzip;q=0, zstd;q=0", None)):
        assert get(url + "/api/v1/units?to=1", dict(USER, **{"Accept-Encoding": accepted})).headers["Content-Encoding"] == coding
    assert get(url + "/health", {"Accept-Encoding": "gzip"}).headers["Content-Encoding"] is None, "it is too short"


def test_bodies(url):
    """Bodies of more than 64 KiB are refused, and those that no answer depends on are not waited for."""
    head = "POST %s HTTP/1.1\r\nHost: x\r\nX-Grafana-User: ada\r\nContent-Length: %d\r\n\r\nx"
    for path, length, status in (("/login", 65537, b"413"), ("/api/v1/units", 16384, b"404"), ("/nothing", 16384, b"404")):
        answer = talk(url, head % (path, length))
        assert answer.split()[1] == status and b"Connection: close" in answer, (path, answer)


def test_slow_loris(url):
    """Clients that send only a byte from time to time are disconnected. Others are served meanwhile."""
    slow = []

    def served_meanwhile():
        """Whether an answer came while slow clients were connected. On a busy machine they may be gone by then."""
        slow.extend(connect(url) for _ in range(100))
        for connection in slow[-100:]:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-")
        return get(url + "/health").status == 200 and any(is_open(connection) for connection in slow[-100:])
    wait_until("somebody is served while slow clients are connected", served_meanwhile)

    def cut():
        for connection in slow:
            with contextlib.suppress(OSError):
                connection.sendall(b"a")
        assert get(url + "/health").status == 200
        return not any(is_open(connection) for connection in slow)
    wait_until("slow clients are disconnected", cut, every=0.3)
    for connection in slow:
        assert read_all(connection) == b""
        connection.close()


def test_idle_connections(url, program, count=5000):
    """Thousands of idle connections cost little and are closed in the end."""
    before = memory(program.pid)
    idle = []
    for _ in range(count):
        idle.append(connect(url))
    asked = time.monotonic()
    assert get(url + "/api/v1/units?uuid=000001", USER).status == 200
    waited = time.monotonic() - asked
    assert is_open(idle[-1]), "the answer came only when idle connections had been closed"
    grown = memory(program.pid) - before
    wait_until("idle connections are closed", lambda: descriptors(program.pid) < 100)
    for connection in idle:
        connection.close()
    print("%d idle connections: answer in %.0f ms, %.1f kB each" % (count, waited * 1000, grown / count / 1024))
    return grown / count


def memory(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def test_clients_that_leave(url):
    """A client that disconnects during its response releases its database connection for others."""
    for _ in range(30):
        with connect(url) as connection:
            connection.sendall(once("/api/v1/units?to=1", "X-Grafana-User: ada\r\n").encode())
            connection.recv(1000)
    assert len(get(url + "/api/v1/units?to=1&field=uuid", USER).json["data"]) == ROWS
    wait_until("all requests have ended", lambda: "http_requests_in_flight 1\n" in get(url + "/metrics").text)


def test_metrics(url):
    page = get(url + "/metrics").text
    for name in ("ceems_api_server_build_info{", "ceems_api_server_update_rounds_total ", "process_resident_memory_bytes ",
                 'ceems_api_server_http_request_duration_seconds_bucket{route="units",le="+Inf"} '):
        assert "\n" + name in page, name
    names = [line.split(" ")[0] for line in page.splitlines() if not line.startswith("#")]
    assert len(names) == len(set(names))


def test_stop_finishes_answers(directory):
    """SIGTERM while many clients read long responses: each response that has started is completed."""
    program, url = start_api_server(directory, config_of(directory), FLAGS, name="stop")
    outcomes, started = [], threading.Barrier(9)

    def read_slowly():
        connection = http.client.HTTPConnection(*netloc(url), timeout=90)
        connection.request("GET", "/api/v1/units?to=1", headers=USER)
        answer = connection.getresponse()
        body = answer.read(1000)
        started.wait()
        time.sleep(0.5)
        try:
            body += answer.read()
        except http.client.IncompleteRead:
            outcomes.append((answer.status, "cut"))
            return
        try:
            outcomes.append((answer.status, len(json.loads(body)["data"])))
        except ValueError:
            outcomes.append((answer.status, "a part that looks complete"))

    threads = [threading.Thread(target=read_slowly) for _ in range(6)]
    threads += [threading.Thread(target=ask_until_stopped, args=(url, started, outcomes)) for _ in range(2)]
    for thread in threads:
        thread.start()
    started.wait()
    time.sleep(0.2)
    asked = time.monotonic()
    code = program.stop(timeout=90)
    took = time.monotonic() - asked
    for thread in threads:
        thread.join()
    assert code == 0, (code, program.output())
    streams = [outcome for outcome in outcomes if outcome[1] != "short"]
    # The stop waits at most 5 s, which a busy machine may need. A response that is then cut off must be recognisable as such.
    allowed = {(200, ROWS)} if took < 4.5 else {(200, ROWS), (200, "cut")}
    assert len(streams) == 6 and set(streams) <= allowed, (took, outcomes)
    assert all(outcome[0] > 0 for outcome in outcomes), outcomes


class SilentTsdb:
    """Takes requests and never answers; knows how many of its clients have left."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked, self.left = [], []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            threading.Thread(target=self.hold, args=(self.listener.accept()[0],), daemon=True).start()

    def hold(self, connection):
        request = connection.recv(65536)
        self.asked.append(request)
        read_all(connection)
        self.left.append(request)
        connection.close()


def test_stop_while_a_tsdb_hangs(directory):
    """A chart's requests to a TSDB end when the client leaves. SIGTERM does not wait for a TSDB that hangs."""
    tsdb = SilentTsdb()
    now = int(time.time() * 1000)
    with contextlib.closing(sqlite3.connect(os.path.join(directory, "data", "ceems.db"))) as database, database:
        database.execute("UPDATE units SET started_at_ts = ?, ended_at_ts = ? WHERE uuid = '000001'", (now - 3_600_000, now - 60_000))
    for name in ("sacct", "sacctmgr"):
        write(os.path.join(directory, name), "#!/bin/sh\nexit 0\n", 0o755)
    program, url = start_api_server(
        directory, config_of(directory) + "clusters:\n  - {id: hpc-a, manager: slurm, cli: {path: %s}, updaters: [tsdb]}\n"
        "updaters:\n  - {id: tsdb, updater: tsdb, web: {url: 'http://127.0.0.1:%d'}}\n" % (directory, tsdb.port), FLAGS, name="hang")
    chart = "GET /api/v1/units/series?cluster_id=hpc-a&uuid=000001 HTTP/1.1\r\nHost: x\r\nX-Grafana-User: ada\r\n\r\n"
    with program:
        with connect(url) as connection:
            before = len(tsdb.asked)
            connection.sendall(chart.encode())
            wait_until("the TSDB is asked", lambda: len(tsdb.asked) > before)
            left = len(tsdb.left)
            time.sleep(0.3)
            assert len(tsdb.left) == left, "given up while the client waits"
        wait_until("the request to the TSDB ends", lambda: len(tsdb.left) > left, 25)  # a second, and 30 without its end
        with connect(url) as connection:
            before = len(tsdb.asked)
            connection.sendall(chart.encode())
            wait_until("the TSDB is asked again", lambda: len(tsdb.asked) > before)
            asked = time.monotonic()
            code = program.stop(timeout=90)
            took = time.monotonic() - asked
        assert code == 0, (code, program.output())
        assert took < 28, took  # a second, and 30 and more if a TSDB is waited for


def ask_until_stopped(url, started, outcomes):
    """Short requests one after the other; a response that has started is completed."""
    started.wait()
    count = 0
    with contextlib.suppress(ConnectionError, http.client.BadStatusLine, TimeoutError):
        while True:
            connection = http.client.HTTPConnection(*netloc(url), timeout=90)
            connection.request("GET", "/api/v1/units?uuid=000001", headers=USER)
            answer = connection.getresponse()
            assert answer.status == 200 and len(json.loads(answer.read())["data"]) == 1
            count += 1
    outcomes.append((count, "short"))


def test_refused_starts(directory, url):
    """Errors such as a busy port or an invalid level end the program at its start, with status 1 and one line."""
    port = netloc(url)[1]
    other = os.path.join(directory, "other")
    config = write(os.path.join(other, "c.yml"), config_of(other))
    for flags, words in [(["--web.listen-address=127.0.0.1:%d" % port], str(port)),
                         (["--web.compression", "--web.compression.level=42"], "between 1 and 9"),
                         (["--web.listen-address=127.0.0.1:99999"], "99999"),
                         (["--web.cors.origin=("], "--web.cors.origin"), (["--query.max-period=3l"], "unknown unit"),
                         (["--web.route-prefix=api"], "--web.route-prefix"), (["--web.max-requests=-1"], "--web.max-requests"),
                         (["--web.systemd-socket"], "LISTEN"), (["--web.config.file=/nonexistent.yml"], "/nonexistent.yml")]:
        default = [] if "listen-address" in flags[0] else ["--web.listen-address=127.0.0.1:0"]
        done = subprocess.run([os.path.join(BIN, "ceems_api_server"), "--config.file=" + config] + FLAGS + default + flags,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
        assert done.returncode == 1, (flags, done.returncode, done.stderr)
        assert words in done.stderr, (flags, done.stderr)


def test_other_listeners(directory):
    """A socket from systemd, a Unix socket, a route prefix, and basic authentication for everything."""
    listener = socket.create_server(("127.0.0.1", 0))
    web = write(os.path.join(directory, "web.yml"), "basic_auth_users:\n"
                "  prom: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n")
    config = write(os.path.join(directory, "socket.yml"), config_of(directory))
    command = [os.path.join(BIN, "ceems_api_server"), "--config.file=" + config, "--web.systemd-socket",
               "--web.route-prefix=/ceems", "--web.config.file=" + web] + FLAGS
    log = open(os.path.join(directory, "socket.log"), "wb")

    listener.set_inheritable(True)
    script = 'exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"' % listener.fileno()
    process = subprocess.Popen(["/bin/bash", "-c", script, "bash"] + command, close_fds=False, stdout=log, stderr=log,
                               stdin=subprocess.DEVNULL)
    try:
        url = "http://127.0.0.1:%d" % listener.getsockname()[1]
        wait_until("it answers", lambda: get(url + "/health").status == 401)
        for path in ("/health", "/metrics", "/nothing", "/openapi.json", "/ceems/api/v1/units"):
            answer = get(url + path, USER)
            assert (answer.status, answer.text) == (401, "Unauthorized\n"), (path, answer.status, answer.text)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, open(log.name, encoding="utf-8").read()
        log.close()
        listener.close()
    path = os.path.join(directory, "api.sock")
    with Program(command[:2] + ["--web.listen-address=unix:" + path, "--web.route-prefix=/ceems", "--web.max-requests=3"] + FLAGS,
                 os.path.join(directory, "unix.log")) as program:
        wait_until("the socket exists", lambda: os.path.exists(path) or not program.alive())
        assert program.alive(), program.output()
        for target, status in (("/ceems/health", 200), ("/ceems/api/v1/demo/usage", 200), ("/api/v1/demo/usage", 404),
                               ("/ceems/openapi.json", 200), ("/health", 429)):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(once(target).encode())
                answer = read_all(connection)
                assert status_of(answer) == status, (target, answer[:300])


ROWS = 8000


def main():
    started = time.monotonic()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with scratch("ceems-http-") as directory:
        big_database(directory, ROWS)
        program, url = start_api_server(directory, config_of(directory), FLAGS)
        with program:
            test_rude_requests(url)
            test_pipelining(url)
            test_http_1_0_stream(url)
            test_compression(url)
            test_bodies(url)
            test_clients_that_leave(url)
            test_slow_loris(url)
            test_idle_connections(url, program, min(5000, hard // 2 - 200))
            test_metrics(url)
            test_refused_starts(directory, url)
            assert program.alive(), program.output()
            assert (code := program.stop()) == 0, (code, program.output()[-3000:])
            assert "level=ERROR" not in program.output(), program.output()[-3000:]
        test_stop_finishes_answers(directory)
        test_stop_while_a_tsdb_hangs(directory)
        test_other_listeners(directory)
    print("passed in %.0f s" % (time.monotonic() - started))


if __name__ == "__main__":
    main()
