"""Shared by the integration tests: processes, ports, HTTP, waiting. Needs only Python 3.9 and its library.

Every program has its own log file and is ended by its process ID, even after an error."""

import contextlib
import http.server
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("CEEMS_BIN_DIR", os.path.join(ROOT, "build", "bin"))
# tests/servers/with runs tests with VictoriaMetrics, whose language is not quite PromQL, in the place of Prometheus.
VICTORIA = os.environ.get("CEEMS_TEST_SERVER") == "victoriametrics"
SKIP = 77  # exit status that ctest shows as "skipped"


def skip(why):
    """Ends the test as skipped and prints what is missing."""
    print("SKIPPED: " + why)
    sys.exit(SKIP)


def need_programs(*names):
    for name in names:
        if not shutil.which(name):
            skip("program %s is not installed" % name)


def free_port():
    """A free port below those that the kernel assigns automatically, so that connections of other tests cannot take it before the
    program that it is for."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
            end = int(f.read().split()[0])
    except OSError:
        end = 32768
    while True:
        with socket.socket() as s:
            port = random.randrange(10000, end) if end > 12000 else 0
            try:
                s.bind(("127.0.0.1", port))
                return s.getsockname()[1]
            except OSError:
                pass


def wait_until(what, condition, timeout=30.0, every=0.1):
    """Returns the first true value of condition(). After the timeout raises AssertionError with `what` and the last value or error."""
    end = time.monotonic() + timeout
    last = None
    while True:
        try:
            value = condition()
            if value:
                return value
            last = value
        except (OSError, ValueError, KeyError, IndexError, urllib.error.URLError) as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError("timed out after %g s: %s (last: %r)" % (timeout, what, last))
        time.sleep(every)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)


def get(url, headers=None, timeout=20.0, data=None):
    request = urllib.request.Request(url, headers=headers or {}, data=data)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers, error.read())


class Program:
    """A running program. A context manager that ends it."""

    def __init__(self, arguments, log, env=None, cwd=None):
        self.arguments, self.log_path = arguments, log
        self.log = open(log, "ab")
        full_env = dict(os.environ)
        full_env.update(env or {})
        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=full_env, cwd=cwd, start_new_session=True)

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def wait_ready(self, url, timeout=60.0, headers=None):
        def ready():
            if not self.alive():
                raise AssertionError("%s ended with %s:\n%s" % (self.arguments[0], self.process.returncode, self.output()))
            return get(url, headers).status < 500
        wait_until("%s answers at %s" % (self.arguments[0], url), ready, timeout)
        return self

    def output(self):
        with open(self.log_path, "rb") as f:
            return f.read().decode("utf-8", "replace")

    def stop(self, sig=signal.SIGTERM, timeout=30.0):
        if self.alive():
            self.process.send_signal(sig)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("%s did not end on signal %s" % (self.arguments[0], sig))
        self.log.close()
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.alive():
            try:
                self.stop()
            except AssertionError as error:
                print(error)
        elif kind and self.process.returncode not in (0, -signal.SIGKILL):
            print("%s had ended with %s:\n%s" % (self.arguments[0], self.process.returncode, self.output()[-8000:]))
        if not self.log.closed:
            self.log.close()


@contextlib.contextmanager
def scratch(prefix):
    """A directory that others can search, because daemons run as other users. Removed at the end unless KEEP is set."""
    path = tempfile.mkdtemp(prefix=prefix)
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        if os.environ.get("KEEP"):
            print("kept: " + path)
        else:
            shutil.rmtree(path, ignore_errors=True)


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def start_prometheus(directory, targets, interval="1s"):
    """Starts Debian's Prometheus, which scrapes `targets` (host:port). Returns (Program, base URL)."""
    need_programs("prometheus")
    port = free_port()
    config = write(os.path.join(directory, "prometheus.yml"), """
global:
  scrape_interval: %s
  scrape_timeout: %s
scrape_configs:
  - job_name: ceems
    static_configs:
      - targets: %s
""" % (interval, interval, json.dumps(targets)))
    url = "http://127.0.0.1:%d" % port
    program = Program(["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(directory, "tsdb"),
                       "--web.listen-address=127.0.0.1:%d" % port, "--log.level=warn"],
                      os.path.join(directory, "prometheus.log"))
    return program.wait_ready(url + "/-/ready"), url


def start_prometheus_with(directory, name, openmetrics):
    """Starts a Prometheus that contains these samples (a text of OpenMetrics, with any times) and scrapes nothing. Returns (Program,
    port)."""
    path, text, config = (os.path.join(directory, name + end) for end in ("", ".txt", ".yml"))
    os.makedirs(path)
    write(text, openmetrics)
    write(config, "global: {}\n")
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", text, path], stdout=subprocess.DEVNULL, check=True)
    port = free_port()
    program = Program(["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + path, "--storage.tsdb.retention.time=100y",
                       "--web.listen-address=127.0.0.1:%d" % port], os.path.join(directory, name + ".log"))
    return program.wait_ready("http://127.0.0.1:%d/-/ready" % port), port


def start_exporter(directory, arguments, env=None):
    port = free_port()
    url = "http://127.0.0.1:%d" % port
    program = Program([os.path.join(BIN, "ceems_exporter"), "--web.listen-address=127.0.0.1:%d" % port] + arguments,
                      os.path.join(directory, "exporter.log"), env)
    return program.wait_ready(url + "/health"), url


def start_api_server(directory, config_text, arguments=(), env=None, wait=True, name="api"):
    port = free_port()
    url = "http://127.0.0.1:%d" % port
    config = write(os.path.join(directory, name + ".yml"), config_text)
    program = Program([os.path.join(BIN, "ceems_api_server"), "--config.file=" + config,
                       "--web.listen-address=127.0.0.1:%d" % port] + list(arguments),
                      os.path.join(directory, name + ".log"), env)
    return (program.wait_ready(url + "/health") if wait else program), url


class FakeHttp:
    """A server whose responses come from the test: handler(path, query dict, body) -> (status, type, bytes), optionally followed by a
    dict of more headers, or None to close the connection without a response."""

    def __init__(self, handler):
        outer = self
        self.handler = handler
        self.seen = []
        self.headers = []  # of the same requests

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                parts = urllib.parse.urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                query = urllib.parse.parse_qs(parts.query)
                query.update(urllib.parse.parse_qs(body.decode("utf-8", "replace")))
                outer.seen.append((self.command, parts.path, query))
                outer.headers.append(dict(self.headers))
                result = outer.handler(parts.path, query, body)
                if result is None:
                    self.close_connection = True
                    return
                status, kind, data, *more = result
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(data)))
                    for name, value in (more[0] if more else {}).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def run_tests(tests, prefix):
    """Runs the functions whose names are on the command line, or all, each with a new directory. Returns the exit status."""
    names = sys.argv[1:]
    unknown = set(names) - {test.__name__ for test in tests}
    if unknown:
        print("unknown: %s; the tests are %s" % (" ".join(sorted(unknown)), " ".join(test.__name__ for test in tests)))
        return 2
    for test in tests:
        if names and test.__name__ not in names:
            continue
        started = time.monotonic()
        with scratch(prefix) as directory:
            test(directory)
        print("%s: passed in %.1f s" % (test.__name__, time.monotonic() - started), flush=True)
    return 0


def samples(page, name):
    """[(labels text, value)] of one metric on a text page."""
    found = []
    for line in page.splitlines():
        if line.startswith(name) and line[len(name):len(name) + 1] in ("{", " "):
            series, value = line.rsplit(" ", 1)
            found.append((series[len(name):], float(value)))
    return found
