#!/usr/bin/env python3
"""Two API servers on one PostgreSQL database while things go wrong: kill -9 of either server, sessions ended in the middle of writes,
the database server restarted and crashed ($CEEMS_KILLS times, 8 by default). Only one of the two updates at a time, and in the end every job is counted once.

Jobs come from a stand-in for sacct. CEEMS_SEED repeats a run."""

import contextlib
import glob
import json
import os
import pathlib
import pwd
import random
import signal
import subprocess
import sys
import time

import fake_slurm
from harness import get, need_programs, scratch, skip, start_api_server, wait_until

BLOWS = int(os.environ.get("CEEMS_KILLS", "8"))
JOBS = 60
SPAN = 1800   # seconds of history to catch up on
CHUNK = 60    # seconds in a window
INTERVAL = 1  # seconds between rounds


class Postgres:
    """A PostgreSQL server on a Unix socket, which does not run as root."""

    def __init__(self, directory):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not programs:
            skip("PostgreSQL is not installed (Debian package postgresql)")
        self.programs, self.directory, self.who = programs[-1], directory, {}
        os.makedirs(directory)
        if os.geteuid() == 0:
            user = next((u for u in pwd.getpwall() if u.pw_name == "postgres"), None) or pwd.getpwnam("nobody")
            self.who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(directory, user.pw_uid, user.pw_gid)
        self.environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        subprocess.run([self.programs + "/initdb", "-D", directory + "/data", "-A", "trust", "-U", "ceems", "-E", "UTF8",
                        "--locale=C", "--no-sync"], check=True, stdout=subprocess.DEVNULL, env=self.environment, **self.who)
        self.start()

    def start(self):
        with open(self.directory + "/../postgres.log", "ab") as log:
            self.process = subprocess.Popen(
                [self.programs + "/postgres", "-D", self.directory + "/data", "-k", self.directory, "-c", "listen_addresses=",
                 "-c", "fsync=off"], stdout=log, stderr=log, env=self.environment, **self.who)
        state = pathlib.Path(self.directory, "data/postmaster.pid")
        wait_until("PostgreSQL is ready", lambda: state.exists() and "\nready" in state.read_text(), every=0.02)

    def stop(self, how="INT"):
        self.process.send_signal(getattr(signal, "SIG" + how))
        self.process.wait(60)

    def restart(self, how):
        self.stop(how)
        self.start()

    @property
    def url(self):
        return self.url_of("postgres")

    def url_of(self, database):
        return "postgresql://ceems@/%s?host=%s" % (database, self.directory)

    def query(self, sql, database="postgres"):
        out = subprocess.run(["psql", "-qAtX", "-F", "\t", "-d", self.url_of(database), "-c", sql], capture_output=True, text=True)
        if out.returncode != 0:
            raise OSError(out.stderr)
        return [line.split("\t") for line in out.stdout.splitlines()]


class Servers:
    def __init__(self, directory, url, begin):
        self.directory, self.url, self.begin = directory, url, begin
        self.running = {}

    def start(self, name):
        user = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
        config = fake_slurm.api_config(self.directory, self.begin, self.directory + "/" + name, self.url, "%ds" % INTERVAL,
                                       "%ds" % CHUNK)
        self.running[name] = start_api_server(self.directory, config, user, wait=False, name=name)

    def revive(self):
        """Restarts servers that have ended, which they do only if the database is down at their start."""
        for name, (program, _) in list(self.running.items()):
            if not program.alive():
                assert "cannot start" in program.output(), program.output()[-3000:]
                program.log.close()
                self.start(name)

    def ready(self):
        def answers():
            self.revive()
            return all(get(url + "/health").status == 200 for _, url in self.running.values())
        wait_until("both servers respond", answers)

    def kill(self, name):
        self.running.pop(name)[0].kill()

    def units(self, name):
        answer = get(self.running[name][1] + "/api/v1/units/admin?from=%d&to=%d" % (self.begin, time.time() + 60),
                     {"X-Grafana-User": "operator"})
        return answer.json["data"] or []  # null in case of an error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program, _ in self.running.values():
            program.__exit__()


def blow(postgres, servers, rng):
    """Makes something go wrong."""
    kind = rng.choice(["kill", "kill", "sessions", "sessions", "leader", "restart", "crash"])
    if kind == "kill":
        name = rng.choice(sorted(servers.running))
        servers.kill(name)
        time.sleep(rng.uniform(0, 1))
        servers.start(name)
    elif kind in ("sessions", "leader"):
        which = "" if kind == "sessions" else " AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
        with contextlib.suppress(OSError):
            postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ceems_api_server'"
                           + which)
    else:
        postgres.restart("INT" if kind == "restart" else "QUIT")
    return kind


def watermark(postgres):
    rows = postgres.query("SELECT window_end_ms FROM ceems_watermarks")
    return int(rows[0][0]) if rows else 0


def check_sums(postgres, jobs):
    expected = {job["id"]: job["end"] - job["start"] for job in jobs}
    units = postgres.query("SELECT uuid, total_time_seconds FROM units")
    found = {uuid: json.loads(times)["walltime"] for uuid, times in units}
    assert len(units) == len(jobs), (len(units), len(jobs))
    wrong = {uuid: (seconds, expected[uuid]) for uuid, seconds in found.items() if seconds != expected[uuid]}
    assert not wrong, wrong
    for table in ("usage", "daily_usage"):
        rows = postgres.query("SELECT num_units, total_time_seconds FROM " + table)
        assert sum(int(n) for n, _ in rows) == len(jobs), (table, rows)
        total = sum(json.loads(times)["walltime"] for _, times in rows)
        assert total == sum(expected.values()), (table, total, sum(expected.values()))


def main():
    need_programs("psql")
    seed = int(os.environ.get("CEEMS_SEED", str(random.SystemRandom().randrange(1 << 30))))
    print("seed %d" % seed)
    rng = random.Random(seed)
    now = int(time.time())
    end = now - now % 60 - 120
    begin = end - SPAN
    jobs = fake_slurm.random_jobs(JOBS, begin, end, rng)
    with scratch("ceems-postgres-") as directory:
        fake_slurm.install(directory, jobs)
        postgres = Postgres(directory + "/pg")
        try:
            with Servers(directory, postgres.url, begin) as servers:
                work(postgres, servers, jobs, rng)
        finally:
            postgres.stop()


def work(postgres, servers, jobs, rng):
    servers.start("one")
    servers.start("two")
    servers.ready()
    blows = {}
    for _ in range(BLOWS):
        time.sleep(rng.uniform(0.05, 0.8))
        kind = blow(postgres, servers, rng)
        blows[kind] = blows.get(kind, 0) + 1
        servers.revive()
    servers.ready()
    newest = max(job["end"] for job in jobs) * 1000
    wait_until("all windows are written", lambda: watermark(postgres) >= newest + 60_000, 600, 0.25)
    check_sums(postgres, jobs)
    assert servers.units("one") == servers.units("two") and len(servers.units("one")) == len(jobs)

    # The leader dies, and the other server continues within a round.
    leaders = [name for name in sorted(servers.running) if "this program leads" in servers.running[name][0].output()]
    last = max(leaders, key=lambda name: servers.running[name][0].output().rindex("this program leads"))
    before = watermark(postgres)
    begin = time.monotonic()
    servers.kill(last)
    other = next(iter(servers.running))
    wait_until("the other one leads", lambda: watermark(postgres) > before + 3000 * INTERVAL, every=0.1)
    took = time.monotonic() - begin
    assert len(servers.units(other)) == len(jobs)

    # Without the database, requests fail at once, and the program keeps running.
    postgres.stop()
    program, url = servers.running[other]
    answer = get(url + "/api/v1/units/admin", {"X-Grafana-User": "operator"})
    assert answer.status >= 500 or answer.status == 403, (answer.status, answer.text)
    assert "host=" not in answer.text and "pg" not in answer.text, answer.text
    assert program.alive()
    postgres.start()
    wait_until("units are served again", lambda: len(servers.units(other)) == len(jobs))
    check_sums(postgres, jobs)
    print("PASS: %s; the other server wrote its second window %.1f s after the kill"
          % (", ".join("%d x %s" % (count, kind) for kind, count in sorted(blows.items())), took))


if __name__ == "__main__":
    sys.exit(main())
