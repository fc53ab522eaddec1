#!/usr/bin/env python3
"""Kills the API server with kill -9 in the middle of updates, 12 times ($CEEMS_KILLS). The database must open each time, and in the end contain
exactly what a run without interruption contains: no unit is lost, none is counted twice. The same holds for what the server sends of ended
units meanwhile.

Jobs come from a stand-in for sacct, energy and CPU counters from a real Prometheus with back-filled samples."""

import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
import urllib.parse

import fake_slurm
from harness import (Program, free_port, get, need_programs, samples, scratch, start_api_server, wait_until, write)

SERVER = os.environ.get("CEEMS_TEST_SERVER", "")  # tests/servers/with
KILLS = int(os.environ.get("CEEMS_KILLS", "12"))
JOBS = 60
SPAN = 3600  # seconds of history to catch up on
CHUNK = 120      # seconds in a window
WATTS = 40.0     # power of every job


def openmetrics(jobs):
    """The counters of the jobs as an exporter scraped every 15 s would have left them, including the last value."""
    families = {"ceems_compute_unit_energy_joules": [], "ceems_compute_unit_cpu_user_seconds": [],
                "ceems_compute_unit_cpu_system_seconds": []}
    for job in jobs:
        labels = 'manager="slurm",hostname="n1",cgrouphostname="",uuid="%s"' % job["id"]
        times = [t for t in range(job["start"] - job["start"] % 15 + 15, job["end"], 15)] + [job["end"]]
        for t in times:
            seconds = t - job["start"]
            families["ceems_compute_unit_energy_joules"].append(
                'ceems_compute_unit_energy_joules_total{%s,domain="node"} %r %d' % (labels, WATTS * seconds, t))
            families["ceems_compute_unit_cpu_user_seconds"].append(
                "ceems_compute_unit_cpu_user_seconds_total{%s} %r %d" % (labels, 0.5 * job["cpus"] * seconds, t))
            families["ceems_compute_unit_cpu_system_seconds"].append(
                "ceems_compute_unit_cpu_system_seconds_total{%s} %r %d" % (labels, 0.25 * job["cpus"] * seconds, t))
    lines = []
    for name, rows in families.items():
        lines += ["# TYPE %s counter" % name] + rows
    return "\n".join(lines + ["# EOF", ""])


def export_config(url):
    """Sends ended units back into the TSDB, as all of them can take them."""
    targets = [("prom", "remote_write", "/api/v1/write")]
    if SERVER == "victoriametrics":
        targets.append(("otlp", "otlp", "/opentelemetry/v1/metrics"))
    return "  export:\n" + "".join("    - {name: %s, protocol: %s, labels: [user], web: {url: '%s%s'}}\n" % (name, protocol, url, path)
                                    for name, protocol, path in targets)


def config(directory, data, begin, prometheus_url, export=False):
    text = plain_config(directory, data, begin, prometheus_url)
    return text.replace("clusters:\n", export_config(prometheus_url) + "clusters:\n", 1) if export else text


def plain_config(directory, data, begin, prometheus_url):
    return fake_slurm.api_config(directory, begin, data, interval="1h", max_interval="%ds" % CHUNK, tsdb=prometheus_url,
                                 environment={"CEEMS_FAKE_LOG": data + ".calls", "CEEMS_FAKE_CALLER": "api"})


def windows(data):
    """How many windows were asked for so far."""
    if not os.path.exists(data + ".calls"):
        return 0
    with open(data + ".calls", encoding="ascii") as f:
        return sum(" begins " in line for line in f)


def rows(path):
    """Everything in the database that must not depend on how often an update was interrupted."""
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        columns = "cluster_id,uuid,name,project,username,started_at_ts,ended_at_ts,elapsed,state,total_time_seconds,avg_cpu_usage,total_cpu_energy_usage_kwh"
        units = db.execute("select %s from units order by uuid,started_at_ts" % columns).fetchall()
        usage = db.execute("select cluster_id,username,project,num_units,total_time_seconds,total_cpu_energy_usage_kwh "
                           "from usage order by username,project").fetchall()
        daily = db.execute("select cluster_id,username,project,last_updated_at,num_units,total_time_seconds "
                           "from daily_usage order by username,project,last_updated_at").fetchall()
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    return units, usage, daily


def value(url, query):
    result = get(url + "/api/v1/query?query=" + urllib.parse.quote(query)).json["data"]["result"]
    return float(result[0]["value"][1]) if result else 0


def check_sent(url, path, jobs):
    """Each job has arrived, with the energy that the database has; those that came twice are one sample."""
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        energies = [json.loads(row[0])["total"] for row in db.execute("select total_cpu_energy_usage_kwh from units")]
        places = db.execute("select count(*) from ceems_ended_units").fetchone()[0]
    assert len(energies) == len(jobs) and places == 0, (len(energies), places)
    received = [("ceems_unit_cpu_energy_kwh", 1)]
    if SERVER == "victoriametrics":
        received.append(('{__name__="hw.energy"}', 3.6e6))
    for series, scale in received:
        last = "last_over_time(%s[3h])" % series
        # VictoriaMetrics has taken what queries do not see yet.
        wait_until("all of %s can be read" % series, lambda last=last: value(url, "count(%s)" % last) >= len(jobs))
        count, total = value(url, "count(%s)" % last), value(url, "sum(%s)" % last) / scale
        assert count == len(jobs) and abs(total - sum(energies)) <= 1e-9 * total, (series, count, total, sum(energies))
        print("%s: %d jobs, %.6f kWh; the database has %.6f" % (series, count, total, sum(energies)))


def sent(api_url, path):
    """Whether nothing waits to be sent."""
    def check():
        waiting = samples(get(api_url + "/metrics").text, "ceems_api_server_export_waiting_units")
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
            return waiting and db.execute("select count(*) from ceems_ended_units").fetchone()[0] == 0
    return check


def caught_up(url, path, jobs):
    def check():
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
            (running,) = db.execute("select count(*) from units where ended_at_ts = 0").fetchone()
            (known,) = db.execute("select count(*) from units").fetchone()
            (last,) = db.execute("select max(last_updated_at) from usage").fetchone()
        newest = max(j["end"] for j in jobs)
        return known == len(jobs) and running == 0 and last >= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(newest))
    return check


def check_hours(url, begin, now):
    """Energy by hour, which is from the TSDB, adds up to that by day, which is from the database."""
    def totals(step, by):
        path = "/api/v1/usage/series/admin?step=%s&by=%s&top=50&from=%d&to=%d" % (step, by, begin, now)
        data = get(url + path, {"X-Grafana-User": "operator"}).json["data"]
        assert not data.get("missing"), data
        return dict(zip(data["groups"], data["totals"]["kwh"])), len(data["times"])
    days, hours = totals("day", "user")[0], totals("hour", "user")
    assert hours[1] in (2, 3) and days.keys() == hours[0].keys() and len(days) > 1, (days, hours)
    for user, kwh in days.items():
        assert abs(kwh - hours[0][user]) <= 1e-4 * kwh, (user, days, hours)
    # The beginnings of counters are estimated where no list of units is read.
    (whole,) = totals("hour", "none")[0].values()
    assert abs(whole - sum(days.values())) <= 0.1 * whole, (whole, days)
    print("%.4f kWh by day, %.4f by hour of units, %.4f of the cluster" % (sum(days.values()), sum(hours[0].values()), whole))


def main():
    need_programs("prometheus", "promtool")
    seed = int(os.environ.get("CEEMS_SEED", str(random.SystemRandom().randrange(1 << 30))))
    print("seed %d" % seed)
    rng = random.Random(seed)
    now = int(time.time())
    end = now - now % 60 - 120
    begin = end - SPAN
    jobs = fake_slurm.random_jobs(JOBS, begin, end, rng)
    with scratch("ceems-kill-") as directory:
        fake_slurm.install(directory, jobs)
        write(directory + "/tsdb.txt", openmetrics(jobs))
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", directory + "/tsdb.txt", directory + "/tsdb"],
                       check=True, stdout=subprocess.DEVNULL)
        port = free_port()
        config_file = write(directory + "/prometheus.yml", "global: {scrape_interval: 15s}\n" +
                            ("" if SERVER == "victoriametrics" else "storage: {tsdb: {out_of_order_time_window: 1d}}\n"))
        url = "http://127.0.0.1:%d" % port
        with Program(["prometheus", "--config.file=" + config_file, "--storage.tsdb.path=" + directory + "/tsdb",
                      "--storage.tsdb.retention.time=30d", "--web.enable-remote-write-receiver",
                      "--web.listen-address=127.0.0.1:%d" % port, "--log.level=warn"],
                     directory + "/prometheus.log") as prometheus:
            prometheus.wait_ready(url + "/-/ready")
            compare(directory, url, jobs, begin, rng)
    print("PASS: %d kills" % KILLS)


def compare(directory, url, jobs, begin, rng):
    user = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
    whole = directory + "/whole"
    started = time.monotonic()
    api, api_url = start_api_server(directory, config(directory, whole, begin, url), user, name="whole")
    with api:
        wait_until("the undisturbed run caught up", caught_up(api_url, whole + "/ceems.db", jobs), 600, 0.25)
        check_hours(api_url, begin, int(time.time()))
    print("undisturbed: %.1f s" % (time.monotonic() - started))
    expected = rows(whole + "/ceems.db")
    for unit in expected[0]:
        job = next(j for j in jobs if j["id"] == unit[1])
        seconds = job["end"] - job["start"]
        times, energy = json.loads(unit[9]), json.loads(unit[11])
        assert times["walltime"] == seconds, (unit, seconds)
        assert abs(energy["total"] * 3.6e6 - WATTS * seconds) <= 1e-6 * WATTS * seconds, (unit, WATTS * seconds)

    broken = directory + "/broken"
    kills = 0
    while kills < KILLS:
        api, api_url = start_api_server(directory, config(directory, broken, begin, url, True), user, wait=False, name="broken")
        # Some kills are at the start, the others in the middle of a window or between two. In the end there are windows left.
        goal = windows(broken) + rng.randrange(max(1, min(4, 2 * SPAN // CHUNK // KILLS)))
        wait_until("updates go on", lambda api=api, goal=goal: not api.alive() or windows(broken) >= goal, every=0.02)
        time.sleep(rng.uniform(0, 0.2))
        if not api.alive():
            raise AssertionError("the API server ended without being killed, after kill %d:\n%s" % (kills, api.output()[-3000:]))
        api.kill()
        kills += 1
    api, api_url = start_api_server(directory, config(directory, broken, begin, url, True), user, name="broken")
    with api:
        wait_until("the disturbed run caught up", caught_up(api_url, broken + "/ceems.db", jobs), 600, 0.25)
        count = len(get(api_url + "/api/v1/units/admin?from=%d&to=%d" % (begin, time.time() + 60),
                        {"X-Grafana-User": "operator"}).json["data"])
        assert count == len(jobs), count
        wait_until("all ended units were sent", sent(api_url, broken + "/ceems.db"))
    check_sent(url, broken + "/ceems.db", jobs)
    actual = rows(broken + "/ceems.db")
    for name, a, b in zip(("units", "usage", "daily_usage"), expected, actual):
        assert a == b, "%s differ:\n%s" % (name, "\n".join("%s\n%s" % pair for pair in zip(a, b) if pair[0] != pair[1]))


if __name__ == "__main__":
    sys.exit(main())
