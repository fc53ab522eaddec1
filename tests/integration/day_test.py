#!/usr/bin/env python3
"""A day of mixed load on the exporter, the API server and the load balancer together, in a few minutes. Descriptors, threads and memory
of all three must be the same at the end as after the first quarter.

    day_test.py [SECONDS]     (or CEEMS_DAY_SECONDS; default 480)

A day is 5,760 scrapes (fewer in less than 480 seconds) of a node on which a job starts and one ends every four scrapes; 96 windows of 15 minutes with 400 jobs by a
stand-in for sacct and a real Prometheus, and a round every 5 seconds after that; 24 reloads of the load balancer; and as many requests to
the API server and the load balancer as fit: by users, admins and strangers, allowed, refused and malformed, over kept and new connections,
some of which leave before the answer. Programs with sanitizers may grow more, because these keep memory of their own."""

import contextlib
import http.client
import os
import random
import signal
import socket
import sys
import threading
import time
import urllib.parse

import fake_slurm
import harness
import kill_test
from harness import Program, get, need_programs, scratch, start_api_server, start_exporter, wait_until
from slurm_node import SlurmNode

SECONDS = float((sys.argv[1:] or [os.environ.get("CEEMS_DAY_SECONDS", "480")])[0])
SCRAPES = min(5760, int(12 * SECONDS))
RELOADS, NODE_JOBS = 24, 20
WARM_UP = 0.25  # the fraction of the load after which everything is as large as it gets
PAUSE = 0.01  # seconds between two requests of a client
CLIENTS = 2  # threads for each server
MIB = 1 << 20
MAX_GROWTH = {"exporter": 2 * MIB, "api server": 4 * MIB, "load balancer": 2 * MIB}
MAX_GROWTH_SANITIZED = 24 * MIB
MAX_MORE_DESCRIPTORS = 2 * CLIENTS  # connections between the programs that are kept for a while


class Load:
    """Requests to one server from several threads, as long as it is not paused."""

    def __init__(self, url, make):
        self.address = urllib.parse.urlsplit(url).netloc
        self.make = make  # make(rng) -> (path, headers, allowed statuses)
        self.running, self.ended = threading.Event(), threading.Event()
        self.done, self.problems = 0, []
        self.idle = [threading.Event() for _ in range(CLIENTS)]
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        rng = random.Random(number)
        connection = None
        while not self.ended.is_set():
            if not self.running.is_set():
                if connection:
                    connection.close()
                    connection = None
                self.idle[number].set()
                self.running.wait(0.1)
                continue
            self.idle[number].clear()
            path, headers, allowed = self.make(rng)
            try:
                if rng.random() < 0.02:
                    self.leave(path, headers)
                    continue
                if connection is None or rng.random() < 0.05:
                    connection = http.client.HTTPConnection(self.address, timeout=60)
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                body = answer.read()
                if answer.status not in allowed:
                    self.problems.append("%s %s: status %d, expected one of %s: %s" % (path, headers, answer.status, allowed, body[:200]))
            except (OSError, http.client.HTTPException) as error:
                self.problems.append("%s: %r" % (path, error))
                connection = None
            self.done += 1
            time.sleep(PAUSE)  # so that the scrapes get their share of this process

    def leave(self, path, headers):
        """Sends a request and does not wait for the answer."""
        host, port = self.address.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as s:
            s.sendall(("GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (path, "".join("%s: %s\r\n" % field for field in headers.items()))).encode())

    def pause(self):
        self.running.clear()
        for idle in self.idle:
            assert idle.wait(90), "a request takes longer than 90 s"

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(90)


def api_requests(begin, jobs):
    def make(rng):
        user = "u%d" % rng.randrange(5)
        start = begin + rng.randrange(82800)
        span = "from=%d&to=%d" % (start, start + rng.choice([900, 3600, 86400]))
        job = rng.choice(jobs)
        me, admin = {"X-Grafana-User": user}, {"X-Grafana-User": "operator"}
        zipped = {"Accept-Encoding": rng.choice(["gzip", "zstd", "identity"])}
        return rng.choice([
            ("/api/v1/units?" + span, {**me, **zipped}, {200}),
            ("/api/v1/units?limit=10&" + span, me, {200}),
            ("/api/v1/units/admin?" + span, {**admin, **zipped}, {200}),
            ("/api/v1/units/admin?" + span, me, {403}),
            ("/api/v1/units/verify?cluster_id=test&uuid=" + job["id"], me, {200, 403}),
            ("/api/v1/usage/current?" + span, me, {200}),
            ("/api/v1/usage/current/admin?experimental&" + span, admin, {200}),
            ("/api/v1/usage/global", me, {200}),
            ("/api/v1/stats/current/admin?" + span, admin, {200}),
            ("/api/v1/projects", me, {200}),
            ("/api/v1/users/admin", admin, {200}),
            ("/api/v1/units?from=x", me, {400}),
            ("/api/v1/units", {}, {401}),
            ("/api/v1/nothing", me, {404}),
            ("/metrics", {}, {200}),
            ("/health", {}, {200}),
        ])
    return make


def lb_requests(jobs):
    def make(rng):
        job = rng.choice(jobs)
        me = {"X-Ceems-Cluster-Id": "test", "X-Grafana-User": job["user"]}
        own = 'ceems_compute_unit_cpu_user_seconds_total{uuid="%s"}' % job["id"]
        query = urllib.parse.quote(rng.choice([own, "rate(%s[5m])" % own, "sum(%s) / %d" % (own, rng.randrange(1, 10000))]))
        times = "start=%d&end=%d&step=60" % (job["start"], job["end"])
        foreign = {**me, "X-Grafana-User": "stranger"}
        return rng.choice([
            ("/api/v1/query?query=%s&time=%d" % (query, job["end"]), me, {200}),
            ("/api/v1/query_range?query=%s&%s" % (query, times), me, {200}),
            ("/api/v1/series?match[]=%s&start=%d&end=%d" % (urllib.parse.quote(own), job["start"], job["end"]), me, {200}),
            ("/api/v1/query?query=" + query, foreign, {403}),
            ("/api/v1/query?query=up", me, {403}),
            ("/api/v1/query?query=" + urllib.parse.quote(own + "%d" % rng.randrange(10 ** 6)), me, {400}),
            ("/api/v1/query?query=" + query, {"X-Ceems-Cluster-Id": "test"}, {401}),
            ("/api/v1/query?query=" + query, {**me, "X-Ceems-Cluster-Id": "nowhere"}, {400}),
            ("/metrics", {}, {200}),
            ("/-/healthy", {}, {200}),
        ])
    return make


def resources(program):
    """(descriptors, threads, bytes of anonymous memory): the minimum of several readings, because rounds of updates and checks of backends
    go on meanwhile."""
    seen = []
    for _ in range(30):
        with open("/proc/%d/status" % program.pid, encoding="ascii") as f:
            status = dict(line.split(":", 1) for line in f)
        seen.append((len(os.listdir("/proc/%d/fd" % program.pid)), int(status["Threads"]), int(status["RssAnon"].split()[0]) * 1024))
        time.sleep(0.1)
    return tuple(min(values) for values in zip(*seen))


def is_sanitized(program):
    with open("/proc/%d/status" % program.pid, encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("VmSize:")).split()[1]) > 1 << 30  # KiB, of shadow memory


class Node:
    """The exporter, its node, and the scrapes."""

    def __init__(self, stack, directory):
        self.node = stack.enter_context(SlurmNode(directory + "/node", processes=False))
        for _ in range(NODE_JOBS):
            self.node.add_job()
        self.program, self.url = start_exporter(directory, self.node.flags() + ["--collector.energy.keep-ended=1s",
                                                                                "--collector.energy.interval=100ms"], self.node.env())
        stack.enter_context(self.program)
        self.scrapes = 0

    def scrape(self):
        if self.scrapes % 4 == 0:
            self.node.add_job()
            self.node.end_job(min(self.node.jobs))
        assert get(self.url + "/metrics").status == 200
        self.scrapes += 1

    def settle(self):
        """Scrapes until ended jobs have left the page."""
        end = time.monotonic() + 4
        while time.monotonic() < end:
            get(self.url + "/metrics")
            time.sleep(0.1)


def start_prometheus(stack, directory, jobs):
    prometheus, port = harness.start_prometheus_with(directory, "prometheus", kill_test.openmetrics(jobs))
    stack.enter_context(prometheus)
    return "http://127.0.0.1:%d" % port


def start_lb(stack, directory, prometheus, api):
    port = harness.free_port()
    config = harness.write(directory + "/lb.yml", "ceems_lb:\n  strategy: round-robin\n  backends:\n    - {id: test, tsdb: [{web: {url: '%s'}}]}\n"
                           "ceems_api_server:\n  web: {url: '%s'}\n" % (prometheus, api))
    program = stack.enter_context(Program([os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + config,
                                           "--web.listen-address=127.0.0.1:%d" % port], directory + "/lb.log"))
    url = "http://127.0.0.1:%d" % port
    return program.wait_ready(url + "/-/healthy"), url


def run_load(node, loads, lb, share, whole):
    """One share of the day. Scrapes and reloads are spread over its time."""
    for load in loads:
        load.running.set()
    begin, first = time.monotonic(), node.scrapes
    reloads, passed = 0, 0.0
    while passed < 1 or node.scrapes < whole or reloads < RELOADS * share:
        passed = min(1.0, (time.monotonic() - begin) / (SECONDS * share))
        if node.scrapes < first + (whole - first) * passed:
            node.scrape()
        else:
            time.sleep(0.01)
        if reloads < RELOADS * share * passed:
            os.kill(lb.pid, signal.SIGHUP)
            reloads += 1
    for load in loads:
        load.pause()
    node.settle()
    return reloads


def check(name, program, before, after):
    sanitized = is_sanitized(program)
    print("%s: descriptors %d -> %d, threads %d -> %d, anonymous memory %.1f -> %.1f MB%s" % (
        name, before[0], after[0], before[1], after[1], before[2] / 1e6, after[2] / 1e6, ", with sanitizers" if sanitized else ""))
    most = MAX_GROWTH_SANITIZED if sanitized else MAX_GROWTH[name]
    return [name + ": " + what for what, grew in (("descriptors", after[0] - before[0] > MAX_MORE_DESCRIPTORS),
                                                 ("threads", after[1] > before[1]), ("memory", after[2] - before[2] > most)) if grew]


def day(directory):
    now = int(time.time())
    begin = now - now % 900 - 86400
    jobs = fake_slurm.random_jobs(400, begin, now - 900, random.Random(1))
    fake_slurm.install(directory, jobs)
    # The quarantine of AddressSanitizer would grow for the whole test.
    os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=1:" + os.environ.get("ASAN_OPTIONS", "")
    with contextlib.ExitStack() as stack:
        prometheus = start_prometheus(stack, directory, jobs)
        user = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
        api, api_url = start_api_server(directory, fake_slurm.api_config(directory, begin, interval="5s", max_interval="15m", tsdb=prometheus), user)
        stack.enter_context(api)
        admin = {"X-Grafana-User": "operator"}
        wait_until("the first window is written", lambda: get(api_url + "/api/v1/clusters/admin", admin).json["data"], 120)
        everything = api_url + "/api/v1/units/admin?from=%d&to=%d" % (begin, now)
        wait_until("all windows are written", lambda: len(get(everything, admin).json["data"]) == len(jobs), 300)
        print("%d jobs in the database after %.0f s" % (len(jobs), time.time() - now), flush=True)
        lb, lb_url = start_lb(stack, directory, prometheus, api_url)
        node = Node(stack, directory)
        loads = [Load(api_url, api_requests(begin, jobs)), Load(lb_url, lb_requests(jobs))]
        programs = {"exporter": node.program, "api server": api, "load balancer": lb}
        try:
            reloads = run_load(node, loads, lb, WARM_UP, int(SCRAPES * WARM_UP))
            before = {name: resources(program) for name, program in programs.items()}
            reloads += run_load(node, loads, lb, 1 - WARM_UP, SCRAPES)
            after = {name: resources(program) for name, program in programs.items()}
        finally:
            for load in loads:
                load.end()
        for problem in (loads[0].problems + loads[1].problems)[:10]:
            print(problem)
        failed = [problem for name, program in programs.items() for problem in check(name, program, before[name], after[name])]
        failed += [name + " has ended" for name, program in programs.items() if not program.alive()]
    failed += ["%s ended with status %s" % (name, program.process.returncode) for name, program in programs.items()
               if program.process.returncode != 0]
    print("%d scrapes, %d requests to the API server, %d to the load balancer, %d reloads" % (
        node.scrapes, loads[0].done, loads[1].done, reloads))
    assert not failed, failed
    assert not loads[0].problems + loads[1].problems, "%d requests failed" % len(loads[0].problems + loads[1].problems)


def main():
    need_programs("prometheus", "promtool")
    begin = time.monotonic()
    with scratch("ceems-day-") as directory:
        day(directory)
    print("PASS: a day in %.0f s" % (time.monotonic() - begin))
    return 0


if __name__ == "__main__":
    sys.exit(main())
