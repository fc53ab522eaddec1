"""Runs the invented cluster: its past goes into the TSDB, its present is served for scraping, and its jobs are listed for the stand-in of
SLURM's commands."""

import contextlib
import http.server
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time

from . import Problem, bills, invented, past
from .invented import DAY, HOUR, MINUTE, NODES
from .processes import beside
from .terminal import Waiting

PAST = 33 * DAY  # before the first start: in the TSDB
OLDER = 363 * DAY  # before that: only sums of days, in the database
AHEAD = 14 * DAY  # jobs are known for as long as the launcher may run
DENSE = 8 * HOUR  # jobs that had ended before have charts of a few points, except the last two of each kind
FEW = 13  # a rate of such a chart needs two in a sixth of the run
HOURLY = 4 * DAY  # the page shows hours
EDITION = 2  # of the cluster; a state directory keeps the one that it began with
METERS = 12 * MINUTE  # a longer pause of a meter is not covered in the days of nodes
LOST = 10 * MINUTE  # shorter pauses of the launcher leave a gap
BLOCKS = "--max-block-duration=40000h"  # one block: promtool reads the whole file again for each
PARTS = 2  # of the history that are written at the same time
STAND_IN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "demo_slurm.py")


class DemoCluster:
    """Keeps in `folder` since when the cluster exists and until when it was measured, and what the stand-in of SLURM reads."""

    def __init__(self, folder, interval, owner=None):
        self.folder, self.interval = folder, interval
        self.bills = os.path.join(folder, "bills.csv")
        self.owner = owner  # (user id, group id) of Prometheus, if it is not ours
        self.server = None
        self.thread = None
        now = int(time.time())
        known = self._known()
        if known.get("edition", EDITION if not known else 1) != EDITION:
            raise Problem("%s holds the demo of an earlier release; to start over, remove %s" % (folder, os.path.dirname(folder)))
        self.origin = known.get("origin") or (now - PAST) // DAY * DAY
        self.until = known.get("until") or self.origin
        jobs = invented.jobs_of(self.origin - OLDER, now + AHEAD)
        self.older = [job for job in jobs if job.start < self.origin]
        self.jobs = [job for job in jobs if job.end > self.origin]  # measured
        self.machines = [invented.Machine(node, [job for job in self.jobs if node in job.nodes], self.origin) for node in NODES]

    def _known(self):
        try:
            with open(os.path.join(self.folder, "cluster.json")) as f:
                return json.load(f)
        except (OSError, ValueError):
            return {}

    def _keep(self, until):
        write(os.path.join(self.folder, "cluster.json"), json.dumps({"edition": EDITION, "origin": self.origin, "until": until}))

    def write_bills(self):
        """The file with what the utility's meter counted, until today began."""
        before = [invented.Machine(node, [job for job in self.older if node in job.nodes], self.origin - OLDER) for node in NODES]
        write(self.bills, bills.table([(self.origin - OLDER, self.origin, before), (self.origin, math.inf, self.machines)], time.time()))
        return self.bills

    def write_slurm(self):
        """The folder with sacct and sacctmgr."""
        jobs = [{"id": job.id, "shown": job.shown_id(), "name": job.kind.name, "user": job.kind.user, "account": job.kind.project,
                 "partition": "gpu" if job.kind.busy else "cpu", "submit": job.submit, "start": job.start, "end": job.end, "state": job.state,
                 "cpus": job.kind.cpus * job.kind.nodes, "gib": job.kind.gib * job.kind.nodes, "gpus": len(job.kind.busy) * job.kind.nodes,
                 "nodes": [node[0] for node in job.nodes], "limit": job.kind.limit * 60} for job in self.jobs]
        write(os.path.join(self.folder, "jobs.json"), json.dumps({"jobs": jobs, "projects": invented.PROJECTS}))
        folder = os.path.join(self.folder, "slurm")
        os.makedirs(folder, exist_ok=True)
        for name in ("sacct", "sacctmgr"):
            path = os.path.join(folder, name)
            write(path, "#!/bin/sh\nexec '%s' -S -E '%s' %s '%s' \"$@\"\n" % (
                sys.executable, STAND_IN, name, os.path.join(self.folder, "jobs.json")))
            os.chmod(path, 0o755)
        return folder

    def start(self, tsdb, data):
        """Before Prometheus and the API server start. Returns what Prometheus has to scrape."""
        def before():
            past.write(os.path.join(data, "ceems.db"), self.older, self.origin, self.owner)
            self.write_bills()
        now = int(time.time())
        pending = [beside(before), *self.fill(tsdb, now)]
        with Waiting("the history of the demo to be written"):
            for wait in pending:
                wait()
        if len(pending) > 1:
            self._keep(now)
        for where, _, files in os.walk(tsdb) if self.owner else ():
            for path in [where] + [os.path.join(where, name) for name in files]:
                os.chown(path, *self.owner, follow_symlinks=False)
        port = self.serve(0)
        return [{"targets": ["127.0.0.1:%d" % port], "labels": {"instance": "demo", "ceems_id": invented.CLUSTER}}]

    def fill(self, tsdb, now):
        """Writes what was missed into the TSDB's folder, while no Prometheus uses it, in processes beside this one. Returns functions that wait
        for them."""
        if now - self.until < LOST:
            return []
        promtool = shutil.which("promtool")
        if not promtool:
            raise Problem("the program promtool is not installed; install it with: apt-get install prometheus")
        return [beside(lambda part=part: self._fill_part(promtool, tsdb, now, part)) for part in range(PARTS)]

    def _fill_part(self, promtool, tsdb, now, part):
        path = os.path.join(self.folder, "history-%d.txt" % part)
        try:
            with open(path, "w") as f:
                for series, points in self._missed(now, part):
                    labels = self._labels(series)
                    f.writelines("%s %.10g %d\n" % (labels, value, at) for value, at in points)
                f.write("# EOF\n")
            done = subprocess.run([promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", BLOCKS, path, tsdb],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode != 0:
                raise Problem("promtool could not write the history of the demo: %s" % done.stderr.strip()[-400:])
        finally:
            with contextlib.suppress(OSError):
                os.remove(path)

    @staticmethod
    def _labels(series):
        """The series with the labels that scraping adds."""
        cluster = "" if "ceems_id=" in series else ',ceems_id="%s"' % invented.CLUSTER
        return '%s,instance="demo",job="demo"%s}' % (series[:-1], cluster)

    def _missed(self, now, part=None):
        """(series, [(value, time)]) of all, or of one of PARTS, each series in order of time. Charts need points that are as close as the page
        asks for them; for sums, a point every few hours does, for meters of nodes, which the bill is made of, one every twelve minutes, and for
        averages and for how much of a run is covered, one every four. Charts of jobs that ended hours ago have few points, except the last two of
        each kind."""
        since = max(self.until, now - 2 * HOUR)  # from then on machines have series of their own
        ends = {}  # of each kind
        for job in (job for machine in self.machines for job in machine.jobs if job.end <= now):
            ends.setdefault(job.kind.name, set()).add(job.end)
        # Two, because the API server does not know yet what ended a moment ago.
        last = {(name, end) for name, all_ends in ends.items() for end in sorted(all_ends)[-2:]}

        def is_recent(job):
            return job.end > now - DENSE or (job.kind.name, job.end) in last

        for machine in self.machines[part::PARTS] if part is not None else self.machines:
            node = machine.node
            for job in machine.jobs:
                begin, end = max(job.start, self.until - 3 * HOUR), min(job.end, now)
                if begin >= end:
                    continue
                life = end - job.start
                close = max(self.interval, life // 600 // 5 * 5)
                recent = is_recent(job)
                few = max(MINUTE, life // FEW // MINUTE * MINUTE)

                def of_job(values, step, begin=begin, end=end, node=node):
                    return sampled(lambda at: values(at, node), begin, end, step)
                yield from of_job(job.charts, close if recent else min(few, HOUR) if job.end > now - HOURLY else few)
                yield from of_job(job.lines, close if recent else few)
                yield from of_job(job.gauges, 4 * MINUTE)
                yield from of_job(job.present, self.interval if job.end - job.start < 1500 * self.interval + MINUTE else 4 * MINUTE)
                yield from of_job(job.totals, 4 * HOUR)
                yield from of_job(job.reserved, METERS)
            ends = {job.end for job in machine.jobs if self.until - 3 * HOUR < job.end < since}
            known = sorted(ends.union(range(self.until // HOUR * HOUR + HOUR, since, HOUR)))
            for series, value in invented.facts(node):
                yield series, [(value, at) for at in known]
            yield from sampled(machine.use, since, now, 2 * MINUTE)
            yield from joined(sampled(machine.energy, self.until, since, METERS), sampled(machine.energy, since + MINUTE, now, 2 * MINUTE))
            shown = min([now - DENSE - 12 * HOUR, *(job.start for job in machine.jobs if job.start < now and is_recent(job))])
            yield from sampled(machine.gpus, max(self.until, shown), now, 2 * MINUTE)
        if part:
            return
        yield from sampled(invented.grid_series, self.until, now, 5 * MINUTE)
        yield from sampled(invented.site_series, self.until, now, 4 * MINUTE)

    def page(self):
        now = time.time()
        found = [*invented.grid_series(now), *invented.site_series(now)]
        for machine in self.machines:
            found += [*machine.use(now), *machine.energy(now), *machine.gpus(now)]
            for job in machine.jobs:
                # An exporter keeps units that have ended until they were scraped.
                if job.start <= now < job.end + 3 * self.interval:
                    for values in (job.charts, job.lines, job.gauges, job.present, job.totals, job.reserved):
                        found += values(now, machine.node)
        self._keep(int(now))
        return "".join("%s %.10g\n" % pair for pair in found).encode()

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
    """(series, [(value, time)]) of a function of time, at whole steps and at both ends."""
    times = sorted({begin, *range(begin // step * step + step, end, step), end})
    lines = {}
    for at in times:
        for series, value in values(at):
            lines.setdefault(series, []).append((value, at))
    return lines.items()


def joined(first, second):
    """Two samplings of the same series, one after the other."""
    second = dict(second)
    return [(series, points + second[series]) for series, points in first]


def write(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.replace(path + ".new", path)
