"""Runs the invented cluster: its past goes into the TSDB, its present is served for scraping, and its jobs are listed for the stand-in of
SLURM's commands."""

import contextlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time

from . import Problem, invented
from .invented import DAY, HOUR, MINUTE, NODES
from .terminal import Waiting

PAST = 35 * DAY  # of the first start
AHEAD = 14 * DAY  # jobs are known for as long as the launcher may run
DENSE = 3 * DAY  # charts of older jobs have no lines, only sums
LOST = 10 * MINUTE  # shorter pauses of the launcher leave a gap
STAND_IN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "demo_slurm.py")


class DemoCluster:
    """Keeps in `folder` since when the cluster exists and until when it was measured, and what the stand-in of SLURM reads."""

    def __init__(self, folder, interval, owner=None):
        self.folder, self.interval = folder, interval
        self.owner = owner  # (user id, group id) of Prometheus, if it is not ours
        self.server = None
        self.thread = None
        now = int(time.time())
        known = self._known()
        self.origin = known.get("origin") or (now - PAST) // DAY * DAY
        self.until = known.get("until") or self.origin
        self.jobs = [invented.jobs_of(number, self.origin, now + AHEAD) for number in range(len(NODES))]

    def _known(self):
        try:
            with open(os.path.join(self.folder, "cluster.json")) as f:
                return json.load(f)
        except (OSError, ValueError):
            return {}

    def _keep(self, until):
        write(os.path.join(self.folder, "cluster.json"), json.dumps({"origin": self.origin, "until": until}))

    def write_slurm(self):
        """The folder with sacct and sacctmgr."""
        jobs = [{"id": job.id, "name": job.kind.name, "user": job.kind.user, "account": job.kind.project, "partition": "gpu" if job.kind.busy else "cpu",
                 "submit": job.submit, "start": job.start, "end": job.end, "state": job.state, "cpus": job.kind.cpus, "gib": job.kind.gib,
                 "gpus": len(job.kind.busy), "node": job.node[0], "limit": job.kind.limit * 60}
                for jobs in self.jobs for job in jobs]
        write(os.path.join(self.folder, "jobs.json"), json.dumps({"jobs": jobs, "projects": invented.PROJECTS}))
        folder = os.path.join(self.folder, "slurm")
        os.makedirs(folder, exist_ok=True)
        for name in ("sacct", "sacctmgr"):
            path = os.path.join(folder, name)
            write(path, "#!/bin/sh\nexec '%s' -S -E '%s' %s '%s' \"$@\"\n" % (
                sys.executable, STAND_IN, name, os.path.join(self.folder, "jobs.json")))
            os.chmod(path, 0o755)
        return folder

    def start(self, tsdb):
        """Before Prometheus starts. Returns what it has to scrape."""
        with Waiting("the history of the demo to be written"):
            self.fill(tsdb)
        port = self.serve(0)
        return [{"targets": ["127.0.0.1:%d" % port], "labels": {"instance": "demo", "ceems_id": invented.CLUSTER}}]

    def fill(self, tsdb):
        """Writes what was missed into the TSDB's folder, while no Prometheus uses it."""
        now = int(time.time())
        if now - self.until < LOST:
            return
        promtool = shutil.which("promtool")
        if not promtool:
            raise Problem("the program promtool is not installed; install it with: apt-get install prometheus")
        path = os.path.join(self.folder, "history.txt")
        try:
            with open(path, "w") as f:
                for series, value, at in self._missed(now):
                    f.write("%s,%s} %.10g %d\n" % (series[:-1], self.target(), value, at))
                f.write("# EOF\n")
            done = subprocess.run([promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=480h", path, tsdb],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode != 0:
                raise Problem("promtool could not write the history of the demo: %s" % done.stderr.strip()[-400:])
            if self.owner:
                for where, _, files in os.walk(tsdb):
                    for path_of in [where] + [os.path.join(where, name) for name in files]:
                        os.chown(path_of, *self.owner, follow_symlinks=False)
        finally:
            with contextlib.suppress(OSError):
                os.remove(path)
        self._keep(now)

    @staticmethod
    def target():
        """The labels that scraping adds."""
        return 'instance="demo",job="demo",ceems_id="%s"' % invented.CLUSTER

    def _missed(self, now):
        """(series, value, time), each series in order of time. Charts need points that are as close as the page asks for them; for sums, a
        point every few minutes does. A run is covered where a scrape was at every interval."""
        since = max(self.until, now - 2 * HOUR)  # from then on machines have series of their own
        for number, jobs in enumerate(self.jobs):
            for job in jobs:
                begin, end = max(job.start, self.until - 3 * HOUR), min(job.end, now)
                if begin >= end:
                    continue
                life = job.end - job.start
                close = max(self.interval, life // 600 // 5 * 5) if job.end > now - DENSE else HOUR
                yield from sampled(job.charts, begin, end, close)
                yield from sampled(job.gauges, begin, end, 4 * MINUTE)
                yield from sampled(job.totals, begin, end, HOUR)
                yield from sampled(lambda at, job=job: [job.present()], begin, end, self.interval if life < 1500 * self.interval + MINUTE else 4 * MINUTE)
                for series, value in invented.facts(job.node):
                    if job.end < since:
                        yield series, value, job.end
            yield from sampled(lambda at, number=number, jobs=jobs: invented.node_series(number, jobs, self.origin, at),
                               since, now, 2 * MINUTE)

    def page(self):
        now = time.time()
        lines = []
        for number, jobs in enumerate(self.jobs):
            found = list(invented.node_series(number, jobs, self.origin, now))
            for job in jobs:
                # An exporter keeps units that have ended until they were scraped.
                if job.start <= now < job.end + 3 * self.interval:
                    found += [*job.charts(now), *job.gauges(now), *job.totals(now), job.present()]
            lines += ["%s %.10g\n" % (series, value) for series, value in found]
        self._keep(int(now))
        return "".join(lines).encode()

    def serve(self, port):
        cluster = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = cluster.page()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self.server.server_port

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()


def sampled(values, begin, end, step):
    """(series, value, time) of a function of time, at whole steps and at both ends."""
    times = sorted({begin, *range(begin // step * step + step, end, step), end})
    lines = {}
    for at in times:
        for series, value in values(at):
            lines.setdefault(series, []).append((value, at))
    for series, points in lines.items():
        for value, at in points:
            yield series, value, at


def write(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.replace(path + ".new", path)
