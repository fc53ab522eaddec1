"""The programs of the stack: configures, starts, watches and stops them."""

import json
import os
import pwd
import shutil
import string
import subprocess
import time
import urllib.error
import urllib.request

from . import Problem
from .accounts import Accounts
from .demo import names
from .demo_cluster import DemoCluster
from .processes import Child, need_free_port
from .terminal import Waiting

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TEMPLATES = os.path.join(ROOT, "packaging", "demo")
INTERVAL = 5  # seconds between scrapes
# Units of `make run` in addition to those that the exporter finds by default: services, scopes, containers.
UNIT_PATTERNS = (
    "^/ceems_demo/(?P<id>[^/]+)$",
    r"/(?P<id>(?:docker|libpod|crio|nerdctl|cri-containerd|buildkit)-[0-9a-f]{12})[0-9a-f]{52}(?:\.scope)?$",
    r"^/system\.slice/(?:[^/]+\.slice/)*(?P<id>[^/]+\.service)$",
    r"/user@(?P<owner>[0-9]+)\.service/(?:.*/)?(?P<id>[^/]+\.(?:service|scope))$",
)
READY_SECONDS = 60


def fetch(url, headers=None, timeout=5.0):
    """(status, body). Raises OSError if nothing responds. Never uses a proxy, because everything is on loopback."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers or {}), timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def who_asked():
    """(name, uid, gid) of the user; under sudo, of the user who called sudo."""
    uid = int(os.environ.get("SUDO_UID", "-1")) if os.geteuid() == 0 else -1
    entry_uid = uid if uid > 0 else os.geteuid()
    try:
        entry = pwd.getpwuid(entry_uid)
        return entry.pw_name, entry.pw_uid, entry.pw_gid
    except KeyError:
        return str(entry_uid), entry_uid, os.getegid()


class Stack:
    def __init__(self, options, state, person, changed):
        self.options, self.state, self.person = options, state, person
        self.changed = changed  # called when a child starts or ends
        self.children = []
        # Under sudo, only the exporter and the cgroups need root.
        behind_sudo = os.geteuid() == 0 and person[1] != 0
        self.credentials = person[1:] if behind_sudo else None
        self.accounts = None if options.no_demo else Accounts(os.path.join(state, "config"), self.credentials)
        self.cluster = None if options.no_demo else DemoCluster(os.path.join(state, "demo"), INTERVAL, self.credentials)
        self.exporter_url = "http://127.0.0.1:%d" % options.exporter_port
        self.api_url = "http://127.0.0.1:%d" % options.api_port
        self.prometheus_url = "http://127.0.0.1:%d" % options.prometheus_port

    def check(self):
        """Raises Problem for everything that is known to fail."""
        for name in ("ceems_exporter", "ceems_api_server"):
            path = os.path.join(self.options.bin_dir, name)
            if not os.access(path, os.X_OK):
                raise Problem("%s does not exist; build it with: make build" % path)
        if not shutil.which("prometheus"):
            raise Problem("the program prometheus is not installed; install it with: apt-get install prometheus")
        ports = {}
        for what, variable, port in (("the exporter", "CEEMS_PORT_EXPORTER", self.options.exporter_port),
                                     ("the API server", "CEEMS_PORT_API", self.options.api_port),
                                     ("Prometheus", "CEEMS_PORT_PROMETHEUS", self.options.prometheus_port)):
            if port in ports:
                raise Problem("%s and %s cannot both listen on port %d; see %s" % (ports[port], what, port, variable))
            ports[port] = what
            need_free_port(port, what, variable)

    def _write(self, name, **values):
        with open(os.path.join(TEMPLATES, name)) as f:
            text = string.Template(f.read()).safe_substitute(values)
        path = os.path.join(self.state, "config", name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def _start(self, name, arguments, credentials=None):
        log = os.path.join(self.state, "logs", name + ".log")
        child = Child(name, arguments, log, credentials)
        self.children.append(child)
        self.changed()
        return child

    def start(self):
        options = self.options
        rules = [os.path.join(ROOT, "packaging", "prometheus", name)
                 for name in ("ceems.rules.yml", "ceems-compat.rules.yml", "ceems-alerts.yml")]
        tsdb = os.path.join(self.state, "prometheus")
        # First, because it needs a second for its first energy, and the history keeps the CPUs busy for some.
        exporter = self._start("ceems_exporter", [
            os.path.join(options.bin_dir, "ceems_exporter"),
            "--web.listen-address=127.0.0.1:%d" % options.exporter_port, "--collector.cgroup"]
            + ["--collector.cgroup.pattern=" + pattern for pattern in UNIT_PATTERNS])
        demo = self.cluster.start(tsdb, os.path.join(self.state, "data")) if self.cluster else []
        prometheus = self._write("prometheus.yml", interval="%ds" % INTERVAL, rules=json.dumps(rules),
                                 exporter="127.0.0.1:%d" % options.exporter_port,
                                 prometheus="127.0.0.1:%d" % options.prometheus_port,
                                 names=json.dumps(names() if self.cluster else []), demo=json.dumps(demo))
        api = self._write_api()

        server = self._start("prometheus", [
            shutil.which("prometheus"), "--config.file=" + prometheus,
            "--storage.tsdb.path=" + tsdb, "--storage.tsdb.retention.time=60d",
            "--web.listen-address=127.0.0.1:%d" % options.prometheus_port, "--log.level=warn"], self.credentials)
        self._wait_ready(exporter, self.exporter_url + "/health")
        self._wait_ready(server, self.prometheus_url + "/-/ready")
        # Start this after Prometheus, so that its first update can query it.
        run_as = ["--security.run-as-user=root"] if os.geteuid() == 0 and not self.credentials else []
        child = self._start("ceems_api_server", [
            os.path.join(options.bin_dir, "ceems_api_server"), "--config.file=" + api,
            "--web.listen-address=127.0.0.1:%d" % options.api_port,
            "--web.cors.origin=http://(localhost|127\\.0\\.0\\.1):%d" % options.api_port] + run_as, self.credentials)
        self._wait_ready(child, self.api_url + "/health")
        if self.cluster:
            self._import_bills(api)

    def _import_bills(self, config):
        """The program becomes the owner of the database by itself."""
        done = subprocess.run([os.path.join(self.options.bin_dir, "ceems_api_server"), "import-bill", "--config.file=" + config, "--replace",
                               self.cluster.bills], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Problem("the bills of the demo could not be imported: %s" % done.stderr.strip()[-400:])

    def _write_api(self):
        """The configuration of the API server. `update_from` matters only at the first start; later, the watermark in the database counts."""
        def moment(seconds):
            return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))
        common = {"data": json.dumps(os.path.join(self.state, "data")), "prometheus": self.prometheus_url}
        if not self.cluster:
            return self._write("api_server.yml", update_from=moment(time.time() - 60), admins=json.dumps(sorted({self.person[0], "root"})), **common)
        users, token = self.accounts.write()
        return self._write("api_server_demo.yml", update_from=moment(self.cluster.origin), users=json.dumps(users), token=json.dumps(token),
                           slurm=json.dumps(self.cluster.write_slurm()), **common)

    def headers(self):
        """Headers of a request by an administrator."""
        return self.accounts.headers() if self.accounts else {"X-Grafana-User": self.person[0]}

    def _wait_ready(self, child, url):
        end = time.monotonic() + READY_SECONDS
        with Waiting(child.name):
            while True:
                self.watch()
                try:
                    if fetch(url)[0] == 200:
                        return
                except OSError:
                    pass
                if time.monotonic() > end:
                    raise Problem("%s does not respond at %s after %d s%s" % (child.name, url, READY_SECONDS, self._tail(child)))
                time.sleep(0.05)

    @staticmethod
    def _tail(child):
        lines = child.last_lines()
        return ("; the end of %s:\n    " % child.log) + "\n    ".join(lines) if lines else "; it wrote nothing to " + child.log

    def watch(self):
        """Raises Problem if a child has ended unexpectedly."""
        for child in self.children:
            how = child.ended()
            if how:
                raise Problem("%s %s%s" % (child.name, how, self._tail(child)))

    def page_url(self):
        """The URL of the web page; None if the API server was built without it."""
        for path in ("/ui/", "/"):
            try:
                status, body = fetch(self.api_url + path)
            except OSError:
                continue
            if status == 200 and b'id="app"' in body:
                return self.api_url + path
        return None

    def records(self):
        return [{"name": c.name, "pid": c.pid, "started": c.started} for c in self.children if c.ended() is None]

    def stop(self):
        """Stops the children in reverse order and returns the names of those that had to be killed."""
        for child in reversed(self.children):
            child.ask_to_stop()
        killed = [child.name for child in reversed(self.children) if child.stop()]
        if self.cluster:
            self.cluster.stop()
        return killed
