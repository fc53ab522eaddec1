#!/usr/bin/env python3
"""Two API servers and two load balancers on one PostgreSQL database, each pair behind one address, while users ask both. Each of the four
is killed with kill -9 in turn, in the middle of requests and of updates, and started again. In the end the database contains exactly
what one API server makes that nobody disturbs, no answer was wrong, and no two API servers were updating at the same time.

Jobs come from a stand-in for sacct, their energy from a real Prometheus with back-filled samples. CEEMS_SEED repeats a run. With --long
each program is killed four times, there are four times as many windows, and owners are remembered for as long as by default."""

import contextlib
import http.client
import json
import os
import random
import sys
import threading
import time
import urllib.parse

import fake_slurm
import harness
from address import Address
from harness import Program, free_port, get, need_programs, scratch, start_api_server, wait_until, write
from kill_test import WATTS, openmetrics
from postgres_test import Postgres

LONG = "--long" in sys.argv[1:]
ROUNDS = int(os.environ.get("CEEMS_KILLS", "4" if LONG else "1"))  # kills of each program
JOBS, USERS, PROJECTS = 60, 6, 3
SPAN, CHUNK = 7200 if LONG else 1800, 60  # seconds of history, and in a window
INTERVAL = 1            # seconds between rounds of updates
REMEMBERED = 15 if LONG else 1  # seconds that a load balancer remembers owners (access.cache_age)
CACHE_AGE = REMEMBERED + 1
PAUSE = 0.02            # seconds between two requests of a client
ROUNDING = 0.02         # joules: the API has eight decimals of kWh
OPERATOR = {"X-Grafana-User": "operator"}


class Member:
    """One of the four programs. It has a new port after each start."""

    def __init__(self, name, begin):
        self.name, self.begin = name, begin  # begin(name, number of the start) -> (Program, port)
        self.program, self.port, self.starts, self.killed = None, 0, 0, {}

    def start(self):
        self.starts += 1
        self.program, self.port = self.begin(self.name, self.starts)

    def answers(self):
        """Whether it does. A load balancer that found no API server at its start ends, and systemd starts it again."""
        if not self.program.alive():
            assert "start" in self.program.output(), self.program.output()[-3000:]
            self.program.log.close()
            self.start()
        return get("http://127.0.0.1:%d/health" % self.port, {"X-Ceems-Cluster-Id": "test", **OPERATOR}).status == 200

    def kill(self):
        self.killed["%s.%d" % (self.name, self.starts)] = time.time()
        self.program.kill()

    def url(self):
        return "http://127.0.0.1:%d" % self.port


class Site:
    """All programs. `limit` is the time up to which updates may go on."""

    def __init__(self, stack, directory, jobs, begin):
        self.stack, self.directory, self.begin = stack, directory, begin
        fake_slurm.install(directory, jobs)
        self.limit(0)
        self.postgres = Postgres(directory + "/pg")
        stack.callback(self.postgres.stop)
        self.postgres.query("CREATE DATABASE whole")
        prometheus, port = harness.start_prometheus_with(directory, "prometheus", openmetrics(jobs))
        stack.enter_context(prometheus)
        self.prometheus = "http://127.0.0.1:%d" % port
        self.api = [Member(name, self.start_api) for name in ("api1", "api2")]
        self.lb = [Member(name, self.start_lb) for name in ("lb1", "lb2")]
        self.members = self.api + self.lb
        stack.callback(lambda: [member.program.__exit__() for member in self.members if member.program])
        self.api_address = stack.enter_context(Address(lambda: [member.port for member in self.api]))
        self.lb_address = stack.enter_context(Address(lambda: [member.port for member in self.lb]))

    def limit(self, seconds):
        write(self.directory + "/limit.new", repr(float(seconds)))
        os.replace(self.directory + "/limit.new", self.directory + "/limit")

    def start_api(self, name, number, database="postgres"):
        environment = {} if database == "whole" else {"CEEMS_FAKE_LIMIT_FILE": self.directory + "/limit",
                                                      "CEEMS_FAKE_LOG": self.directory + "/calls",
                                                      "CEEMS_FAKE_CALLER": "%s.%d" % (name, number)}
        config = fake_slurm.api_config(self.directory, self.begin, self.directory + "/" + name, self.postgres.url_of(database),
                                       "%ds" % INTERVAL, "%ds" % CHUNK, self.prometheus, environment)
        user = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
        program, url = start_api_server(self.directory, config, user, wait=False, name="%s-%d" % (name, number))
        return program, urllib.parse.urlsplit(url).port

    def start_lb(self, name, number):
        """One asks the API servers who owns what, the other one the database."""
        owners = "web: {url: '%s'}" % self.api_address.url if name == "lb1" else "data: {database_url: '%s'}" % self.postgres.url
        config = write(self.directory + "/%s.yml" % name, "ceems_lb:\n  strategy: round-robin\n  access: {cache_age: %ds}\n  backends:\n    - id: test\n      tsdb: "
                       "[{web: {url: '%s'}}]\nceems_api_server:\n  %s\n" % (REMEMBERED, self.prometheus, owners))
        port = free_port()
        return Program([os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + config, "--web.listen-address=127.0.0.1:%d" % port],
                       "%s/%s-%d.log" % (self.directory, name, number)), port

    def watermark(self, database="postgres"):
        rows = self.postgres.query("SELECT window_end_ms FROM ceems_watermarks", database)
        return int(rows[0][0]) / 1000 if rows else 0.0

    def content(self, database):
        """What must not depend on who was killed when."""
        units = self.postgres.query("SELECT uuid, cluster_id, name, project, username, started_at_ts, ended_at_ts, elapsed, state, "
                                    "total_time_seconds, avg_cpu_usage, total_cpu_energy_usage_kwh FROM units ORDER BY uuid", database)
        sums = {}
        for table, key in (("usage", ""), ("daily_usage", ", last_updated_at")):
            sums[table] = self.postgres.query("SELECT username, project%s, num_units, total_time_seconds, total_cpu_energy_usage_kwh FROM %s "
                                              "ORDER BY username, project%s" % (key, table, key), database)
        return {"units": plain(units), **{table: plain(rows) for table, rows in sums.items()}}


def plain(rows):
    """Columns of JSON as values."""
    return [[json.loads(value) if value.startswith(("{", "[")) else value for value in row] for row in rows]


def joules(kwh):
    return kwh.get("total", 0.0) * 3.6e6 if kwh else 0.0


class Client(threading.Thread):
    """Asks through both addresses until it is ended. `problems` are wrong answers; `broken` counts answers that did not come or were a 502
    or 503."""

    def __init__(self, site, jobs, number):
        super().__init__(daemon=True)
        self.site, self.jobs, self.rng = site, {job["id"]: job for job in jobs}, random.Random(number)
        self.ended, self.problems, self.counts = threading.Event(), [], {"complete": 0, "broken": 0, "refused": 0}
        self.connections = {}
        self.known, self.seen = {}, {}  # (address, job) -> when its owner first got it; user -> unit -> (seconds, joules)

    def run(self):
        while not self.ended.is_set():
            user = "u%d" % self.rng.randrange(USERS)
            try:
                self.rng.choice([self.units, self.units_of_all, self.verify, self.query, self.query])(user)
            except (OSError, http.client.HTTPException):
                self.counts["broken"] += 1
                self.drop()
            except (ValueError, KeyError, TypeError) as error:  # a 200 whose content is not what it should be
                self.problems.append("%r" % error)
            time.sleep(PAUSE)
        self.drop()

    def drop(self):
        for connection in self.connections.values():
            connection.close()
        self.connections = {}

    def ask(self, address, path, user, refusal, **headers):
        """The JSON of a 200; None if the answer was `refusal`, a 502 or a 503. Everything else is a problem."""
        if self.rng.random() < 0.2:
            self.drop()
        if address not in self.connections:
            self.connections[address] = http.client.HTTPConnection(urllib.parse.urlsplit(address.url).netloc, timeout=60)
        connection = self.connections[address]
        connection.request("GET", path, headers={"X-Grafana-User": user, **headers})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == 200:
            self.counts["complete"] += 1
            return json.loads(body)
        if answer.status in (502, 503):
            self.counts["broken"] += 1
        elif answer.status == refusal:
            self.counts["refused"] += 1
        else:
            self.problems.append("%s as %s: status %d: %s" % (path, user, answer.status, body[:300]))
        return None

    def expect(self, truth, what):
        if not truth:
            self.problems.append(what[:500])

    def units(self, user):
        """The user's own units. None is ever missing again, and no sum ever gets smaller or too large."""
        document = self.ask(self.site.api_address, "/api/v1/units?from=%d&to=%d" % (self.site.begin, time.time() + 60), user, None)
        if document is None:
            return
        seen = {}
        for unit in document["data"] or []:
            job = self.jobs[unit["uuid"]]
            seconds = job["end"] - job["start"]
            self.expect((unit["username"], unit["project"], unit["name"]) == (user, job["account"], job["name"]) and job["user"] == user,
                        "%s got %r" % (user, unit))
            now = (unit["total_time_seconds"]["walltime"], joules(unit.get("total_cpu_energy_usage_kwh")))
            self.expect(now[0] <= seconds and now[1] <= WATTS * seconds + ROUNDING, "too much: %r" % unit)
            before = self.seen.get(user, {}).get(unit["uuid"], (0, 0.0))
            self.expect(now[0] >= before[0] and now[1] >= before[1] - ROUNDING, "less than before, %r: %r" % (before, unit))
            seen[unit["uuid"]] = now
        self.expect(set(self.seen.get(user, {})) <= set(seen), "%s misses %r" % (user, set(self.seen.get(user, {})) - set(seen)))
        self.seen[user] = seen

    def units_of_all(self, user):
        path = "/api/v1/units/admin?from=%d&to=%d" % (self.site.begin, time.time() + 60)
        self.expect(self.ask(self.site.api_address, path, user, 403) is None, "%s got all units" % user)

    def either(self, address, path, job, user, **headers):
        """The answer about a job, as its owner or as a stranger. Owners are refused only until the job is known; the other load balancer may
        remember a while longer that it was not."""
        mine = job["account"] == "p%d" % (int(user[1:]) % PROJECTS)
        first = self.known.get((address, job["id"]))
        grace = CACHE_AGE if address is self.site.lb_address else 0
        refusal = None if mine and first is not None and time.monotonic() - first > grace else 403
        document = self.ask(address, path, user, refusal, **headers)
        if document is not None:
            self.expect(mine, "%s got %s of %s: %r" % (user, path, job["account"], document))
            self.known.setdefault((address, job["id"]), time.monotonic())
        return document

    def verify(self, user):
        job = self.rng.choice(list(self.jobs.values()))
        self.either(self.site.api_address, "/api/v1/units/verify?cluster_id=test&uuid=" + job["id"], job, user)

    def query(self, user):
        job = self.rng.choice(list(self.jobs.values()))
        query = 'ceems_compute_unit_energy_joules_total{uuid="%s",domain="node"}' % job["id"]
        path = "/api/v1/query?" + urllib.parse.urlencode({"query": query, "time": job["end"]})
        document = self.either(self.site.lb_address, path, job, user, **{"X-Ceems-Cluster-Id": "test"})
        if document is not None:
            result = document["data"]["result"]
            self.expect(len(result) == 1 and result[0]["metric"]["uuid"] == job["id"]
                        and float(result[0]["value"][1]) == WATTS * (job["end"] - job["start"]), "%s: %r" % (path, document))

    def end(self):
        self.ended.set()
        self.join(120)
        assert not self.is_alive(), "a request takes longer than two minutes"


def undisturbed(site, newest):
    """What one API server makes of the jobs."""
    program, port = site.start_api("whole", 1, "whole")
    with program:
        program.wait_ready("http://127.0.0.1:%d/health" % port)
        wait_until("the undisturbed run caught up", lambda: site.watermark("whole") >= newest + CHUNK, 600, 0.25)
    return site.content("whole")


def kill_in_turn(site, rng, end):
    """Each kill is in the middle of updates and of requests. Returns how often the program that updates was killed."""
    order = [member for _ in range(ROUNDS) for pair in zip(site.api, site.lb) for member in pair]
    leaders = 0
    for number, member in enumerate(order):
        before = site.watermark()
        site.limit(site.begin + (end - site.begin) * (number + 1) / (len(order) + 1))
        wait_until("updates go on before kill %d" % number, lambda before=before: site.watermark() > before, every=0.02)
        time.sleep(rng.uniform(0, 0.3))
        leaders += "this program leads" in member.program.output()
        member.kill()
        time.sleep(rng.uniform(0, 0.5))
        member.start()
        wait_until("%s answers again" % member.name, member.answers, every=0.05)
    return leaders


def overlaps(path, killed):
    """Calls of sacct by two API servers at the same time, and the number of calls. A call of a server that was killed may go on for a while,
    and nobody reads it."""
    calls = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            caller, process, what, when = line.split()
            calls.setdefault((caller, process), {})[what] = float(when)
    found = []
    times = sorted((call["begins"], call.get("ends", float("inf")), caller) for (caller, _), call in calls.items())
    for place, (_, ends, caller) in enumerate(times):
        for begins, _, other in times[place + 1:]:
            if begins < min(ends, killed.get(caller, float("inf"))) and other != caller:
                found.append((caller, other, begins))
    return found, len(times)


def check_every_server(site, jobs):
    """In the end each server alone gives everybody what is theirs. A load balancer may remember for a while that nobody owned a job."""
    known_by = time.monotonic() + CACHE_AGE
    for member in site.api:
        units = get("%s/api/v1/units/admin?from=%d&to=%d" % (member.url(), site.begin, time.time() + 60), OPERATOR).json["data"]
        assert {unit["uuid"] for unit in units} == {job["id"] for job in jobs}, (member.name, len(units))
        for unit in units:
            job = next(job for job in jobs if job["id"] == unit["uuid"])
            expected = WATTS * (job["end"] - job["start"])
            assert abs(joules(unit["total_cpu_energy_usage_kwh"]) - expected) <= ROUNDING, (member.name, unit)
    for member in site.lb:
        for job in jobs[:10]:
            for user, status in ((job["user"], 200), ("u%d" % ((int(job["user"][1:]) + 1) % USERS), 403)):
                def ask(user=user, job=job, member=member):
                    return get("%s/api/v1/query?query=%s" % (member.url(), urllib.parse.quote('x{uuid="%s"}' % job["id"])),
                               {"X-Grafana-User": user, "X-Ceems-Cluster-Id": "test"})
                answer = ask()
                if status == 200 and answer.status == 403 and time.monotonic() < known_by:  # asked for before the last jobs were known
                    time.sleep(max(known_by - time.monotonic(), 0))
                    answer = ask()
                assert answer.status == status, (member.name, user, job, answer.text)


def work(site, jobs, newest, rng):
    expected = undisturbed(site, newest)
    assert len(expected["units"]) == len(jobs), len(expected["units"])
    for unit in expected["units"]:
        job = next(job for job in jobs if job["id"] == unit[0])
        seconds = job["end"] - job["start"]
        assert unit[9]["walltime"] == seconds and abs(joules(unit[11]) - WATTS * seconds) <= 1e-6 * WATTS * seconds, unit

    for member in site.api:
        member.start()
    first = min(job["start"] for job in jobs) - site.begin
    site.limit(site.begin + max(SPAN / 20, first + 2 * CHUNK))  # windows up to the first job's
    for member in site.api:
        wait_until("%s answers" % member.name, member.answers)
    wait_until("the first jobs are known", lambda: site.postgres.query("SELECT 1 FROM units LIMIT 1"))
    for member in site.lb:
        member.start()
        wait_until("%s answers" % member.name, member.answers)
    clients = [Client(site, jobs, number) for number in range(3)]
    for client in clients:
        client.start()
    try:
        leaders = kill_in_turn(site, rng, newest)
        site.limit(1e12)
        wait_until("all windows are written", lambda: site.watermark() >= newest + CHUNK, 600, 0.25)
    finally:
        for client in clients:
            client.end()

    problems = [problem for client in clients for problem in client.problems]
    assert not problems, "%d wrong answers:\n%s" % (len(problems), "\n".join(problems[:10]))
    counts = {what: sum(client.counts[what] for client in clients) for what in clients[0].counts}
    assert counts["complete"] > 4 * ROUNDS and counts["refused"] > 4 * ROUNDS, counts
    assert leaders >= ROUNDS, "only %d kills of the program that updates" % leaders
    actual = site.content("postgres")
    for table, rows in expected.items():
        assert actual[table] == rows, "%s differ:\n%s" % (table, "\n".join("%s\n%s" % pair for pair in zip(rows, actual[table]) if pair[0] != pair[1]))
    found, calls = overlaps(site.directory + "/calls", {name: when for member in site.api for name, when in member.killed.items()})
    assert not found, "two API servers asked for jobs at the same time: %r" % found[:5]
    assert calls >= SPAN // CHUNK, calls
    check_every_server(site, jobs)
    print("PASS: %d kills, %d of them of the program that updates; %d answers complete and right, %d refused, %d broken off or 502 or 503"
          % (4 * ROUNDS, leaders, counts["complete"], counts["refused"], counts["broken"]))


def main():
    need_programs("psql", "prometheus", "promtool")
    seed = int(os.environ.get("CEEMS_SEED", str(random.SystemRandom().randrange(1 << 30))))
    print("seed %d" % seed, flush=True)
    rng = random.Random(seed)
    now = int(time.time())
    end = now - now % 60 - 120
    begin = end - SPAN
    jobs = fake_slurm.random_jobs(JOBS, begin, end, rng)
    for number, job in enumerate(jobs):
        job.update(user="u%d" % (number % USERS), account="p%d" % (number % PROJECTS))
    with scratch("ceems-ha-") as directory, contextlib.ExitStack() as stack:
        work(Site(stack, directory, jobs, begin), jobs, max(job["end"] for job in jobs), rng)


if __name__ == "__main__":
    sys.exit(main())
