#!/usr/bin/env python3
"""The counts and sums of docs/numbers.md are the same wherever they are shown: in the data of the pages, lists, the digest, cacct and the
API, on a site whose accounting begins within a month, with days without jobs, and whose energy is never known."""

import csv
import datetime
import json
import os
import subprocess
import sys
import time

import fake_slurm
from harness import BIN, get, run_tests, start_api_server, wait_until, write

OWN = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
DAY = 86400
# The accounting begins within a month. Each day since costs a window with two programs, and every third has no jobs.
UNKNOWN_DAYS = 24
ADMIN = {"X-Grafana-User": "operator"}


def months():
    """The first moments of the month before last, of the last month, of this one and of the next."""
    now = datetime.datetime.now(datetime.timezone.utc)
    this = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    last = (this - datetime.timedelta(days=1)).replace(day=1)
    following = (this + datetime.timedelta(days=32)).replace(day=1)
    return [int(moment.timestamp()) for moment in ((last - datetime.timedelta(days=1)).replace(day=1), last, this, following)]


def jobs_of(begin, today):
    """Two jobs of two hours a day, of two projects, at the beginning of the day; none on every third day."""
    jobs = []
    for i, day in enumerate(range(begin, today, DAY)):
        if i % 3 == 2:
            continue
        for k, account in enumerate(("p0", "p1")):
            jobs.append({"id": str(1000 + 2 * i + k), "name": "job", "user": OWN, "account": account, "cpus": 4, "start": day + 600, "end": day + 7800})
    return jobs


def numbers_agree(directory):
    _, last, this, following = months()
    today = int(time.time()) // DAY * DAY
    begin = last + UNKNOWN_DAYS * DAY
    jobs = jobs_of(begin, today)
    fake_slurm.install(directory, jobs)
    config = fake_slurm.api_config(directory, begin, interval="100ms", max_interval="1d").replace("time_zone: UTC", "time_zone: UTC\n    retention_period: 400d")
    server, url = start_api_server(directory, config, ["--security.run-as-user=root"] if os.geteuid() == 0 else [])
    with server:
        def ask(path, user=OWN):
            answer = get(url + "/api/v1/" + path, {"X-Grafana-User": user})
            assert answer.status == 200, (path, answer.text)
            return answer.json["data"]
        wait_until("all jobs are known", lambda: ask("units/summary/admin?from=%d&to=%d" % (begin, today + DAY), "operator")["count"] == len(jobs), 120, 0.2)
        compare(directory, url, ask, jobs, last, this, following, today)


def compare(directory, url, ask, jobs, last, this, following, today):
    inside = [job for job in jobs if last <= job["end"] < this]
    hours = sum(job["cpus"] * (job["end"] - job["start"]) for job in inside) / 3600
    # Units that ended in the month, and their core-hours.
    summary = ask("units/summary?from=%d&to=%d" % (last, this - 1))
    listed = ask("units/list?from=%d&to=%d&columns=uuid&limit=1000" % (last, this - 1))["rows"]
    sums = ask("usage/series/admin?from=%d&to=%d&step=month&by=none&field=core_hours,units,kwh" % (last + DAY // 2, this - DAY // 2), "operator")
    days = ask("usage/series/admin?from=%d&to=%d&step=day&by=none&field=core_hours,units" % (last + DAY // 2, this - DAY // 2), "operator")
    projects = ask("usage/series/admin?from=%d&to=%d&step=month&by=project&field=core_hours,units" % (last + DAY // 2, this - DAY // 2), "operator")
    month = time.strftime("%Y-%m", time.gmtime(last))
    digest = ask("usage/digest?month=" + month)
    digest = digest[0] if isinstance(digest, list) else digest
    of_month = next(one for one in digest["months"] if one["month"] == month)
    table = cacct(directory, url, ["-S", day_of(last), "-E", day_of(this), "--json"])["units"]
    kinds = ask("units/kinds?from=%d&to=%d&top=100" % (last, this - 1))["kinds"]
    groups = {by: ask("insight/idle?by=%s&from=%d&to=%d" % (by, last, this - 1)) for by in ("project", "user", "cluster", "partition")}
    usage_file = ask_file(url, "usage/series/admin?from=%d&to=%d&step=month&by=none&field=core_hours,units,kwh&format=csv" % (last + DAY // 2, this - DAY // 2))
    counts = {"jobs": len(inside), "summary": summary["count"], "list": len(listed), "digest": of_month["units"], "cacct": len(table),
              "series": sums["totals"]["units"][0], "days": sum(value or 0 for value in days["values"]["units"][0]), "projects": sum(projects["totals"]["units"]),
              "kinds": sum(kind["units"] for kind in kinds), "file": float(usage_file[1][2]), **{by: sum(one["units"] for one in rows) for by, rows in groups.items()}}
    assert len(set(counts.values())) == 1, counts
    core = {"jobs": hours, "summary": summary["core_hours"], "series": sums["totals"]["core_hours"][0],
            "days": days["totals"]["core_hours"][0], "projects": sum(projects["totals"]["core_hours"]), "file": float(usage_file[1][1])}
    assert all(abs(value - hours) < 0.01 for value in core.values()), core
    # What cacct prints is the API's answer.
    assert cacct(directory, url, ["digest", "--month", month, "--json"])["data"] == ask("usage/digest?cluster_id=test&month=" + month), digest
    assert cacct(directory, url, ["insight", "idle", "--by", "project", "--json"])["data"] == ask("insight/idle?cluster_id=test&by=project"), groups
    # Energy that nobody measured is unknown, never 0.
    energy = {"digest": of_month["kwh"], "series": sums["totals"]["kwh"][0], "idle": of_month["idle_share"], "not used": of_month["not_used_share"],
              "summary": summary["not_used_kwh"], "file": usage_file[1][3] or None, **{by: rows[0]["not_used_kwh"] for by, rows in groups.items()}}
    assert all(value is None for value in energy.values()), energy

    # A month whose first days are not known is not a small month: it is a gap by day, and not compared.
    known = days["values"]["core_hours"][0]
    assert known[:UNKNOWN_DAYS] == [None] * UNKNOWN_DAYS and known[UNKNOWN_DAYS] == 16 and 0 in known[UNKNOWN_DAYS:], known
    compared = ask("usage/series/admin?from=%d&to=%d&step=month&by=none&field=core_hours&previous=1" % (last + DAY // 2, this - DAY // 2), "operator")["compared"]
    assert compared["coverage"] == 0 and compared["energy_coverage"] == 0, compared
    # The month that runs is compared with as many days of the last one, without today.
    running = ask("usage/series/admin?from=%d&to=%d&step=month&by=none&field=core_hours&previous=1" % (this + DAY // 2, following - DAY // 2), "operator")
    done = (today - this) // DAY
    if done == 0:
        assert "compared" not in running, running
        return
    compared = running["compared"]
    same = min(done, (this - last) // DAY)

    def of(first, count):
        return sum(4 * 2 for job in jobs if first <= job["end"] < first + count * DAY)
    assert compared["days"] == done, (compared, done)
    assert compared["now"]["core_hours"] == [of(this, done)] and compared["before"]["core_hours"] == [of(last, same)], (compared, done)
    assert compared["coverage"] < 0.8, compared  # the page does not compare them


def day_of(seconds):
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def ask_file(url, path):
    """The rows of a CSV file."""
    answer = get(url + "/api/v1/" + path, ADMIN)
    assert answer.status == 200, answer.text
    return list(csv.reader(answer.text.splitlines()))


def cacct(directory, url, arguments):
    write(directory + "/ceems/config.yml", "ceems_api_server:\n  cluster_id: test\n  web: {url: '%s'}\n" % url)
    environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory, "HOME": directory, "LANG": "C.UTF-8", "TZ": "UTC"}
    done = subprocess.run([os.path.join(BIN, "cacct"), *arguments], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(run_tests([numbers_agree], "ceems-numbers-"))
