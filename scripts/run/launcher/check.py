"""Checks the running stack from a user's view: do the demo units appear, with plausible CPU time and energy?"""

import json
import os
import time
import urllib.parse

from .stack import fetch
from .terminal import Waiting, say

TIMEOUT = 900.0  # the weeks of the demo are added up first
CPU_TOLERANCE = 0.05
CPU_RESOLUTION = 0.02  # seconds: cgroup v1 counts user and system time in ticks of 10 ms


class Check:
    def __init__(self, stack, demo, state):
        self.stack, self.demo, self.state = stack, demo, state
        self.headers = stack.headers()
        self.failed = 0

    def line(self, good, text):
        say("%s: %s" % ("PASS" if good else "FAIL", text))
        self.failed += not good

    def api(self, path, query):
        status, body = fetch(self.stack.api_url + "/api/v1/" + path + "?" + urllib.parse.urlencode(query), self.headers, 20.0)
        if status != 200:
            raise ValueError("%s returned HTTP status %d: %s" % (path, status, body[:200].decode("utf-8", "replace")))
        return json.loads(body)["data"] or []

    def units(self):
        now = int(time.time())
        return {u["uuid"]: u for u in self.api("units/admin", {"running": 1, "from": now - 3600, "to": now + 60})}

    def run(self):
        """Prints a line for each property and returns the number of failures."""
        page = self.stack.page_url()
        if page:
            self.line(True, "the web page is at " + page)
        else:
            say("SKIP: the API server was built without the web page (npm was missing)")
        if self.demo is None:
            say("SKIP: no demo units, because cgroups cannot be made here")
            return self.failed
        wanted = {unit.name: unit.uuid for unit in self.demo.units}
        short = wanted["five-seconds"]
        found, problem = {}, ""
        end = time.monotonic() + TIMEOUT
        begin = time.monotonic()
        with Waiting("the demo units to appear with their energy"):
            while True:
                self.stack.watch()
                try:
                    found = self.units()
                    missing = [uuid for uuid in wanted.values() if not energy(found.get(uuid)) > 0]
                    if short in found and not found[short].get("ended_at_ts"):
                        missing.append(short + " to end")
                    if not missing:
                        break
                    problem = "missing, or without energy: " + ", ".join(sorted(missing))
                except (OSError, ValueError, KeyError) as error:
                    problem = str(error)
                if time.monotonic() > end:
                    self.line(False, "the demo units are not complete after %d s: %s" % (TIMEOUT, problem))
                    return self.failed
                time.sleep(0.5)
        self.line(True, "all %d demo units are in the API with energy after %.0f s" % (len(wanted), time.monotonic() - begin))
        for name, uuid in wanted.items():
            unit = found[uuid]
            say("  %-20s %-8s %-10s elapsed %s  CPU %6.2f s  memory %5.1f %%  energy %8.2f J  %s" % (
                uuid, unit.get("username", ""), unit.get("state", ""), unit.get("elapsed", ""), cpu(unit),
                unit.get("avg_cpu_mem_usage", {}).get("global", 0), energy(unit) * 3.6e6, emissions(unit)))
        self.short_unit(found[short])
        self.line(energy(found[wanted["cpu-bound"]]) > energy(found[wanted["idle"]]), "the computing unit uses more energy than the idle one")
        self.series(found[wanted["cpu-bound"]])
        return self.failed

    def short_unit(self, unit):
        with open(os.path.join(self.state, "demo", unit["uuid"] + ".json")) as f:
            final = json.load(f)["cpu_seconds"]
        seen = cpu(unit)
        self.line(abs(seen - final) <= CPU_TOLERANCE * final + CPU_RESOLUTION,
                  "%s: CPU time %.3f s, the cgroup's own final count %.3f s (%+.1f %%)"
                  % (unit["uuid"], seen, final, 100 * (seen - final) / final))

    def series(self, unit):
        query = {"cluster_id": unit["cluster_id"], "uuid": unit["uuid"], "from": unit["started_at_ts"] // 1000, "to": int(time.time())}
        try:
            series = {s["name"]: s["points"] for s in self.api("units/series", query)}
        except (OSError, ValueError, KeyError) as error:
            self.line(False, "series of %s: %s" % (unit["uuid"], error))
            return
        for name in ("cpu", "memory", "power"):
            points = series.get(name, [])
            self.line(any((value or 0) > 0 for _, value in points), "%s: %d points of %s over time" % (unit["uuid"], len(points), name))


def energy(unit):
    return ((unit or {}).get("total_cpu_energy_usage_kwh") or {}).get("total", 0)


def cpu(unit):
    return (unit.get("total_time_seconds") or {}).get("used_cputime", 0)


def emissions(unit):
    return ", ".join("%s %.4g g" % item for item in sorted((unit.get("total_cpu_emissions_gms") or {}).items()))
