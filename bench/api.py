#!/usr/bin/env python3
"""Measures what ceems_api_server needs to answer: time and memory, with many units in its database (SQLite).

    cmake --preset bench && cmake --build build/bench --target ceems_api_server database
    bench/api.py --bin build/bench/bin [--units 200000] [--written N] [--data DIRECTORY] [--write bench/RESULTS.md]

The database holds the units of 1,000 users in a year (bench/database.cc) and is made anew unless the directory already has one. With
--written, only that many are written, and then repeated under other IDs; --section names the part of the page that is written. The
server starts and makes one empty update round. Then each endpoint is asked by turns, 1,000 requests in all (--requests), each time with another
user, range or unit, so that few answers come from a cache. The last table is the memory of the process: RssAnon is what it has
allocated, RSS also counts the code and libraries that the kernel has mapped for it."""

import argparse
import datetime
import http.client
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

from cpu_time import process_cpu_seconds
from repeated_units import repeat_units
from section import write_section

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
import harness  # noqa: E402

REQUESTS = 1000
USERS = 1000
BEGIN = 1735689600  # of the year, in seconds
DAY = 86400
WARM_UP = 50


def owner(unit):
    """As in bench/database.cc: the user of a unit, and who leads the project."""
    user = unit * 2654435761 % USERS
    return "user%d" % user, "lead%d" % (user % 100 // 10)


def targets(number, units, only, days=365):
    """(name, target, user) of all endpoints whose names begin with one of `only`, in a cycle. The database has that many days."""
    chance = random.Random(number)
    user = "user%d" % chance.randrange(USERS)
    begin = BEGIN + chance.randrange(days - 35) * DAY
    week = {"from": begin, "to": begin + 7 * DAY}
    year = {"from": BEGIN, "to": BEGIN + chance.randrange(days - 65, days) * DAY}
    ids = ["%d" % chance.randrange(units) for _ in range(3)]

    def path(name, parameters):
        return "/api/v1/%s?%s" % (name, urllib.parse.urlencode(parameters, doseq=True))

    cycle = [
        ("units, a user's week", path("units", week), user),
        ("units, newest 100 of a user's year", path("units", dict(year, sort="ended_at", order="desc", limit=100)), user),
        ("units, first 100 of a user's year", path("units", dict(year, limit=100)), user),
        ("units/admin, newest 100 of all", path("units/admin", dict(year, sort="ended_at", order="desc", limit=100)), "root"),
        ("units/list, newest 100 of a user's year", path("units/list", dict(year, sort="ended", limit=100)), user),
        ("units/list, 50 of a user's year with most energy", path("units/list", dict(year, sort="kwh", limit=50)), user),
        ("units/list/admin, newest 100 of all", path("units/list/admin", dict(year, sort="ended", limit=100)), "root"),
        ("units/list/admin, 50 of a week with most energy", path("units/list/admin", dict(week, sort="kwh", limit=50)), "root"),
        ("units/summary, a user's year with facets", path("units/summary", dict(year, facets="state,project", heat="cpu,mem")), user),
        ("usage/series, a user's year by project", path("usage/series", dict(year, by="project")), user),
        ("units/verify, 3 ids", path("units/verify", {"uuid": ids}), user),
        ("usage/current, a user's week", path("usage/current", week), user),
        ("usage/global", path("usage/global", {}), user),
        ("usage/current/admin, a year", path("usage/current/admin", year), "root"),
        ("stats/current/admin, a year", path("stats/current/admin", year), "root"),
        ("stats/global/admin", path("stats/global/admin", {}), "root"),
        ("users", path("users", {}), user),
        ("projects", path("projects", {}), user),
        ("users/admin", path("users/admin", {}), "root"),
        ("search, a whole id, of all", path("search", {"q": ids[0]}), "root"),
        ("search, the beginning of an id, of all", path("search", {"q": ids[1][:3]}), "root"),
        ("search, the beginning of an id, a user's", path("search", {"q": ids[1][:3]}), user),
        ("search, a part of a name, of all", path("search", {"q": "ob-%d" % chance.randrange(97)}), "root"),
        ("search, a part of a name, a user's", path("search", {"q": "ob-%d" % chance.randrange(97)}), user),
        ("search, a part of a name, a lead's", path("search", {"q": "ob-%d" % chance.randrange(97)}), "lead%d" % chance.randrange(10)),
        ("search, a user or project, of all", path("search", {"q": chance.choice([user, "project%d" % chance.randrange(100), "no such thing"])}), "root"),
    ]
    # What the page of a job, the lists by kind and the overview ask for, in three roles.
    unit = chance.randrange(units)
    owned, lead = owner(unit)
    month = {"from": begin, "to": begin + 30 * DAY}
    for role, who, admin in (("a user", owned, ""), ("a lead", lead, ""), ("an admin", "root", "/admin")):
        history = {"q": "job", "cluster_id": "hpc", "user": owned, "sort": "ended", "order": "desc", "limit": 100}
        cycle += [
            ("job page, %s: the unit" % role, path("units" + admin, {"uuid": unit, "cluster_id": "hpc"}), who),
            ("job page, %s: the report" % role, path("units/report" + admin, {"uuid": unit, "cluster_id": "hpc"}), who),
            ("job page, %s: the history" % role, path("units/list" + admin, history), who),
            ("units/list, newest 100 of the month of %s" % role, path("units/list" + admin, dict(month, sort="ended", order="desc", limit=100)), who),
            ("units/kinds, the month of %s" % role, path("units/kinds" + admin, dict(month, sort="not_used", top=20)), who),
            ("units/summary, the month of %s with facets" % role, path("units/summary" + admin, dict(month, facets="state,project,user,cluster,advice")), who),
            ("usage/series, the month of %s by project" % role, path("usage/series" + admin, dict(month, by="project", field="kwh,units,core_hours")), who),
            ("usage/current, the month of %s" % role, path("usage/current" + admin, month), who),
        ]
    chosen = [one for one in cycle if one[0].startswith(only)]
    return chosen[number % len(chosen)]


def memory(pid):
    """{name: MB} of the process."""
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        found = dict(re.findall(r"(VmHWM|VmRSS|RssAnon):\s+(\d+) kB", status.read()))
    return {name: int(value) * 1024 / 1e6 for name, value in found.items()}


def ask(connection, target, user):
    connection.request("GET", target, headers={"X-Grafana-User": user, "Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    return answer.status, len(answer.read())


def settled(pid):
    """The memory of the process once it has given back what it can, which it does ten seconds after a request."""
    time.sleep(12)
    return memory(pid)


def measure(bin_dir, directory, units, only, requests, days):
    """`units`: those that were written first, by whose IDs some endpoints are asked."""
    harness.BIN = bin_dir
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work:
        config = ("ceems_api_server:\n  data:\n    path: %s\n    time_zone: UTC\n    update_interval: 1d\n  admin:\n    users: [root]\n"
                  % directory)
        begin = time.monotonic()
        program, url = harness.start_api_server(work, config, ["--storage.data.skip.delete.old.units", "--web.compression",
                                                               "--no-security.drop-privileges", "--log.level=warn"])
        rows, states = {}, []
        with program:
            started = time.monotonic() - begin
            states.append(("after the start, which took %.1f s, and one empty round" % started, settled(program.pid)))
            connection = http.client.HTTPConnection(url[len("http://"):], timeout=120)
            for number in range(-WARM_UP, requests):
                name, target, user = targets(number, units, tuple(only), days)
                before, started = process_cpu_seconds(program.pid), time.monotonic()
                status, size = ask(connection, target, user)
                took, used = time.monotonic() - started, process_cpu_seconds(program.pid) - before
                # A user may not see the three units; a list or its sums may take no longer than 2 s.
                assert status == 200 or (status == 403 and name.startswith("units/verify")) or (status == 503 and name.startswith(("units/list", "units/sum", "units/kinds", "job page"))), (
                    status, target, user)
                if number >= 0:
                    rows.setdefault(name, []).append((took * 1e3, used * 1e3, size, status == 503))
            states.append(("with the last of %d requests" % requests, memory(program.pid)))
            states.append(("12 s after it", settled(program.pid)))
        return rows, states


def table(rows, states, units, days):
    lines = ["Measured on %s: %d CPUs, Linux %s; %d units of %d users in %d days."
             % (datetime.date.today(), os.cpu_count(), platform.release(), units, USERS, days), "",
             "| endpoint | p50, ms | p99, ms | CPU p50, ms | bytes, compressed |", "|---|---|---|---|---|"]
    for name, found in rows.items():
        def at(column, share, found=found):
            values = sorted(one[column] for one in found)
            return values[int(share * (len(values) - 1))]
        refused = sum(one[3] for one in found)
        name += " (%d of %d took more than 2 s: 503)" % (refused, len(found)) if refused else ""
        lines.append("| %s | %.1f | %.1f | %.1f | %d |" % (name, at(0, 0.5), at(0, 0.99), at(1, 0.5), at(2, 0.5)))
    lines += ["", "| memory, MB | RssAnon | RSS | peak RSS |", "|---|---|---|---|"]
    for name, state in states:
        lines.append("| %s | %.1f | %.1f | %.1f |" % (name, state["RssAnon"], state["VmRSS"], state["VmHWM"]))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--units", type=int, default=200_000)
    parser.add_argument("--written", type=int, help="units to write, which are then repeated (default: all)")
    parser.add_argument("--data", help="directory of the database; temporary by default")
    parser.add_argument("--write")
    parser.add_argument("--section", default="api")
    parser.add_argument("--days", type=int, default=365, help="of the year that the database has, if it was not filled to the end (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--only", nargs="+", default=[""], help="how names of endpoints begin; repeated units are in no sums, so \"units\" with --written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as temporary:
        directory = options.data or temporary
        os.makedirs(directory, exist_ok=True)
        if not os.path.exists(os.path.join(directory, "ceems.db")):
            written = min(options.written or options.units, options.units)
            subprocess.run([os.path.join(options.bin, "database"), "sqlite:" + directory, str(written), str(USERS)], check=True, stdout=sys.stderr)
            if written < options.units:
                repeat_units(os.path.join(directory, "ceems.db"), options.units)
        text = table(*measure(options.bin, directory, min(options.written or options.units, options.units), options.only, options.requests, options.days),
                     options.units, options.days)
    print(text)
    if options.write:
        write_section(options.write, options.section, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
