#!/usr/bin/env python3
"""A stand-in for ceems_api_server: serves a built page and answers its requests with invented units.

    mock_server.py PAGE_FOLDER [--port N] [--proxy-user NAME] [--late SEED]

The units are invented but consistent: energy is power times time, CPU time is cores times time, and both grow with the clock. A test
changes the behaviour through POST /control with a JSON object: {"mode": "ok" | "error" | "hang" | "garbage" | "empty" | "no-series" |
"short-series" | "unmetered" | "series-error", "commit": time or null, "many": number of further units, "lists": false for an older server, "reports": "ok" | "none" | "refused" | "error", "fleet": "ok" | "none" | "silent",
"hours": "ok" | "gaps" | "none" | "silent" for usage by hour,
"insight": "ok" | "none" | "empty" | "no-meter" | "busy" | "silent" (of hpc-a), "ended": ID of a unit
that ends now or null, "managers": those of the clusters that the site names, "name": its own, "idle": seconds by which the unit with an idle GPU began earlier,
"gpus": of each unit with GPUs, if not 0, "tokens": personal tokens or null,
"proxy_user": NAME or null, "login": null or {"header", "local", "oidc"} as in whoami}. With logins, the password of
each user is their name, and the provider knows only lin. With --late, each answer comes up to 0.3 s later, by chance."""

import argparse
import gzip
import hashlib
import http.server
import json
import math
import mimetypes
import os
import random
import sys
import threading
import time
import urllib.parse

import mock_fleet
import mock_insight
import mock_lists
import mock_report

ADMINS = {"operator"}
SUPPORT = {"sue"}
LEADS = {"lea": [{"cluster_id": "hpc-a", "project": "optics"}]}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'"
WORLD_G_PER_KWH = 473.0

# name, uuid, owner, project, started s ago, lasted s (None: running), state, cores given, cores used, memory, of, watts
JOBS = [
    ("lattice-qcd", "48213", "ada", "fluids", 4210, None, "RUNNING", 16, 15.6, 21 << 30, 32 << 30, 214.0),
    ("ocean", "48214", "ada", "fluids", 300, None, "RUNNING", 8, 3.1, 3 << 30, 16 << 30, 61.0),
    ("waiting room", "48215", "ada", "fluids", None, None, "PENDING", 4, 0, 0, 8 << 30, 0),
    ("train-<b>bold</b>&co", "48190", "lin", "optics", 86000, 7260, "COMPLETED", 4, 3.9, 7 << 30, 8 << 30, 48.0),
    ("short", "48216", "operator", "operator", 95, 5, "COMPLETED", 1, 0.97, 1 << 20, 512 << 20, 8.2),
    ("mesh", "48188", "lin", "optics", 50000, 12000, "OUT_OF_MEMORY", 2, 1.2, 8 << 30, 8 << 30, 22.0),
    ("sweep", "48170", "ada", "fluids", 40000, 900, "CANCELLED by 1001", 64, 2.0, 2 << 30, 256 << 30, 70.0),
    ("probe", "48169", "grace", "optics", 39000, 60, "FAILED", 1, 0.1, 9 << 20, 1 << 30, 2.5),
]
OLD = ("archive", "31007", "lin", "optics", 40 * 86400, 3600, "COMPLETED", 4, 3.5, 1 << 30, 8 << 30, 30.0)
NODES = {"48213": 3}  # unit: nodes, the last one of them slow
GPUS = {"48190": (4, 38.0), "48214": (1, 0.0)}  # unit: GPUs, use in percent


# A program that spends an hour of CPU time: start, total and self in nanoseconds, and the function.
FUNCTIONS = ["total", "main", "solve_system", "write_output", "<img src=x onerror=alert(1)>\u202e", "dgemm_kernel"]
PROFILE = [[[int(part * 3.6e10) if i < 3 else int(part) for i, part in enumerate(node)] for node in level]
           for level in ([[0, 100, 0, 0]], [[0, 100, 5, 1]], [[5, 75, 15, 2], [80, 15, 15, 3], [95, 5, 5, 4]], [[20, 60, 60, 5]])]


class Mock:
    def __init__(self, page, proxy_user):
        self.page, self.proxy_user, self.mode, self.login = page, proxy_user, "ok", None
        self.begin = self.commit = time.time()  # commit: when the units were last written; null: they always are
        self.many = 0  # so many units more
        self.unchanged = 0  # answers 304
        self.lists = True  # false: as a server before units/list
        self.reports = "ok"
        self.fleet = "ok"  # "none": no TSDB; "silent": it does not answer
        self.insight = "ok"
        self.profiles = "none"  # "ok"; "empty": nothing was profiled; "busy": no answer
        self.hours = "ok"
        self.currency = ""  # of the site; with it, there are prices
        self.ended = None
        self.managers = []  # one cluster of each
        self.name = ""  # of the site
        self.gpus = 0
        self.answers, self.answering = {}, True  # by user, unit and rule
        self.tokens = None  # of everybody; None: the site offers none
        self.idle = 0  # ocean began so many seconds earlier

    def jobs(self):
        more = [("task_%05d" % i, str(100000 + i), ("ada", "lin", "grace")[i % 3], ("fluids", "optics")[i % 2], 80000 - i, 600 + i, "COMPLETED", 1 + i % 64,
                 (1 + i % 64) * (i % 100) / 100, 1 << 30, 4 << 30, 5.0 + i % 90) for i in range(self.many)]
        return [*JOBS, OLD, *more]

    def units(self, now):
        return [self.unit(job, now) for job in self.jobs()]

    def unit(self, job, now):
        name, uuid, owner, project, ago, lasted, state, cores, used, memory, limit, watts = job
        start = None if ago is None else math.floor(self.begin - ago - (self.idle if name == "ocean" else 0))
        if uuid == self.ended:
            lasted, state = int(now) - start, "COMPLETED"
        end = None if lasted is None else start + lasted
        seconds = 0 if start is None else (end or now) - start
        kwh = watts * seconds / 3.6e6
        unit = {
            "cluster_id": "hpc-a", "resource_manager": "slurm", "uuid": uuid, "name": name, "project": project,
            "username": owner, "created_at_ts": int(((start or now) - 30) * 1000),
            "elapsed": "%s%02d:%02d:%02d" % ("%d-" % (seconds // 86400) if seconds >= 86400 else "",
                                              seconds % 86400 // 3600, seconds % 3600 // 60, seconds % 60),
            "state": state, "allocation": {"nodes": self.gpus // 8 if self.gpus and uuid in GPUS else NODES.get(uuid, 1), "cpus": cores, "mem": limit, "gpus": GPUS.get(uuid, (0, 0))[0], "billing": cores},
            "total_time_seconds": {"walltime": seconds, "alloc_cputime": cores * seconds,
                                   "alloc_cpumemtime": limit // (1 << 20) * seconds, "alloc_gputime": GPUS.get(uuid, (0, 0))[0] * seconds,
                                   "alloc_gpumemtime": 0, "used_cputime": used * seconds},
            "tags": {"uid": 1001, "partition": "main", "qos": "normal", "workdir": "/home/%s" % owner},
        }
        if start is None:
            return unit
        unit["started_at_ts"] = start * 1000
        if end:
            unit["ended_at_ts"] = end * 1000
        unit["avg_cpu_usage"] = {"global": 100.0 * used / cores}
        unit["avg_cpu_mem_usage"] = {"global": 100.0 * memory / limit}
        unit["total_cpu_energy_usage_kwh"] = {"total": kwh}
        unit["total_cpu_emissions_gms"] = {"owid_total": kwh * 56.0, "global_total": kwh * WORLD_G_PER_KWH}
        if uuid in GPUS:
            unit["avg_gpu_usage"] = {"global": GPUS[uuid][1]}
            unit["total_gpu_energy_usage_kwh"] = {"total": 2 * kwh}
            unit["total_gpu_emissions_gms"] = {"owid_total": 2 * kwh * 56.0, "global_total": 2 * kwh * WORLD_G_PER_KWH}
        if name == "ocean":  # with metrics that the site defines itself
            unit["total_custom_stats"] = {"cache_misses": 52100}
            unit["avg_custom_stats"] = {"gpu_temperature_of_the_hottest_sensor": 61.52}
            unit["min_custom_stats"] = {"gpu_temperature_of_the_hottest_sensor": 41}
            unit["max_custom_stats"] = {"gpu_temperature_of_the_hottest_sensor": 78}
        return unit

    def visible(self, path, query, user, led, now):
        scope = query.get("scope", [""])[0]
        return [u for u in self.units(now) if path.endswith("admin") or (u["username"] == user and scope != "led") or (u["project"] in led and scope != "own")]

    def series(self, uuid, begin, end, metrics=("cpu", "memory", "power"), by="sum", agg=""):
        for job in JOBS:
            if job[1] == uuid and job[4] is not None:
                unit = self.unit(job, time.time())
                first = max(begin, unit["started_at_ts"] / 1000)
                last = min(end, unit.get("ended_at_ts", end * 1000) / 1000)
                step = max(5, math.ceil((last - first) / 250 / 5) * 5)
                times = [first + i * step for i in range(int(max(0, last - first) // step) + 1)] if last - first >= step else []
                wave = [1 + 0.06 * math.sin(i / 4) for i in range(len(times))]
                if len(times) > 40:  # a gap, as if a node did not respond
                    del times[20:26], wave[20:26]

                def line(name, unit, value, **more):
                    return {"name": name, "unit": unit, **more, "points": [[int(t * 1000), value * w] for t, w in zip(times, wave)]}

                gpus, use = GPUS.get(uuid, (0, 0.0))
                lines = []
                for metric in metrics:
                    if metric == "gpu_use" and by == "gpu" and 0 < self.gpus <= 64:  # as many lines as an answer has; the last one of each node does nothing
                        lines += [line(metric, "percent", 0 if i % 8 == 7 else i + 1, labels={"hostname": "n%03d" % (i // 8), "index": str(i % 8)}) for i in range(self.gpus)]
                    elif metric == "gpu_use" and by == "gpu" and self.gpus:  # of many, the last one of each node does nothing
                        if agg == "mean":
                            lines += [{"name": metric, "unit": "percent", "labels": {"hostname": "n%03d" % (i // 8), "index": str(i % 8)},
                                       "points": [[int(1000 * last), 0 if i % 8 == 7 else (i * 13 + 38) % 100 + 1]]} for i in range(self.gpus)]
                        elif agg == "bins":
                            hour = (last - first) / 4
                            lines += [{"name": metric, "unit": "percent", "labels": {"hostname": "n%03d" % (i // 8), "index": str(i % 8), "gpuuuid": "GPU-%d" % i},
                                       "points": [[int(1000 * (first + k * hour)), 0 if i % 8 == 7 else (i * 13 + 25 * k) % 100 + 1] for k in range(4)]} for i in range(self.gpus)]
                        else:
                            lines += [line(metric, "percent", 100 * part, labels={"quantile": str(part)}) for part in (0, 0.25, 0.5, 0.75, 1)]
                    elif metric == "gpu_use" and by == "sum" and gpus:
                        lines.append(line(metric, "percent", use))
                    elif metric == "gpu_use" and by == "gpu" and gpus:  # the first half does all the work
                        lines += [line(metric, "percent", use if 2 * i < gpus else 0, labels={"hostname": "n1", "index": str(i), "gpuuuid": "GPU-%d" % i})
                                  for i in range(gpus)]
                    elif metric == "power" and by == "component":
                        lines += [line(metric, "watts", job[11] * part, labels={"domain": domain}) for domain, part in (("package", 0.7), ("dram", 0.3))]
                    elif metric in ("cpu", "memory", "power") and by == "node":
                        last, value = NODES.get(uuid, 1), {"cpu": job[8], "memory": job[9], "power": job[11]}[metric]
                        lines += [line(metric, "", value / last * (0.4 if i == last else 1), labels={"hostname": "n%d" % i}) for i in range(1, last + 1)]
                    elif metric in ("cpu", "memory", "power"):
                        value = {"cpu": job[8], "memory": job[9], "power": job[11]}[metric]
                        limit = {"cpu": {"limit": job[7]}, "memory": {"limit": job[10]}}.get(metric, {})
                        lines.append(line(metric, {"cpu": "cores", "memory": "bytes", "power": "watts"}[metric], value, **limit))
                    elif metric in ("io_read", "gpu_power"):
                        lines.append(line(metric, "", 2.5e6))
                    else:
                        lines.append({"name": metric, "unit": "", "none": "not_collected", "collector": "perf" if metric == "ipc" else "ebpf", "points": []})
                return lines
        return []

    def answer(self, path, query, user, session=None):
        """(status, JSON value)"""
        def good(data):
            return 200, {"status": "success", "data": data}

        def bad(status, kind, text):
            return status, {"status": "error", "data": None, "errorType": kind, "error": text}

        login = dict(self.login or {"header": "X-Grafana-User", "local": False, "oidc": None}, token="t")
        if login["header"] is None:
            user = None
        via = "header" if self.proxy_user or user else "local"
        user = self.proxy_user or user or session
        if not user and path == "whoami" and "anonymous" in query:
            return 200, {"status": "success", "data": [], "login": login}
        if not user:
            status, value = bad(401, "unauthorized", "no user identified")
            return status, dict(value, login=login) if path == "whoami" else value
        role = ("admin" if user in ADMINS else "support" if user in SUPPORT else "project_lead" if user in LEADS else "user")
        led = [project["project"] for project in LEADS.get(user, [])]
        if path == "whoami":
            return good([{"user": user, "admin": role == "admin", "role": role, "via": via, "led": LEADS.get(user, []),
                          "login": login}])
        if path == "site":
            clusters = [("hpc-%d" % i, manager) for i, manager in enumerate(self.managers)] or [(cluster, "local") for cluster in mock_fleet.CLUSTERS]
            return good([{"unit_links": [{"name": "Profiles", "url": "https://grafana.example.org/d/p?var-service={uuid}&from={from_ms}",
                                          "clusters": []}],
                          "tokens": self.tokens is not None, "name": self.name, "currency": self.currency, "version": "1.2.3", "pue": 1.2, "time_zone": "UTC",
                          "clusters": [{"id": cluster, "manager": manager, "series": self.fleet != "none", "nodes": self.fleet != "none", "gpus": cluster == "gpu-b",
                                        "partitions": True, "updated": int((time.time() - 180) * 1000)} for cluster, manager in clusters]}])
        if path.endswith("admin") and role not in ("admin", "support"):
            return bad(403, "forbidden", "current user does not have admin privileges")
        if self.mode == "error":
            return bad(500, "internal", "the database is locked")
        now = time.time() if self.commit is None else self.commit
        what = path.removesuffix("/admin")
        if what == "grid":
            return bad(503, "timeout", "the TSDB is busy") if self.fleet == "silent" else good(mock_fleet.grid(now, self.fleet))
        if what == "grid/forecast":
            return bad(503, "timeout", "the TSDB is busy") if self.fleet == "silent" else good(mock_fleet.forecast(now, self.fleet))
        if path == "nodes/map/admin":
            return good(mock_fleet.nodes_map(query, now, self.fleet))
        if path == "tokens" and self.tokens is not None:
            return good([{key: value for key, value in token.items() if key != "token"} for token in self.tokens if token["user"] == user])
        if path == "search":
            text = query["q"][0].lower()
            everybody = role in ("admin", "support")
            seen = [job for job in (*JOBS, OLD) if everybody or job[2] == user or job[3] in led]
            return good({
                "units": [{"cluster_id": unit["cluster_id"], "uuid": unit["uuid"], "started_at_ts": unit.get("started_at_ts"), "shown": unit["uuid"],
                           "name": unit["name"] if role != "support" or unit["username"] == user else None, "user": unit["username"],
                           "project": unit["project"], "state": unit["state"]}
                          for unit in self.units(now) if any(job[1] == unit["uuid"] for job in seen) and (unit["uuid"].startswith(text) or
                          (role != "support" and text in unit["name"].lower()))][:6],
                "people": [{"user": one} for one in sorted({job[2] for job in seen}) if text in one],
                "projects": [{"cluster_id": "hpc-a", "project": one} for one in sorted({job[3] for job in seen}) if text in one],
                "nodes": [{"cluster_id": "hpc-a", "host": "n05"}] if everybody and text in "n05" else [],
            })
        if what == "insight/stragglers":
            return good([])
        if what == "insight/feedback" and self.insight != "none":
            return good(mock_insight.kFeedback if role in ("admin", "support") else [])
        if what in ("insight/report", "insight/report/kinds") and self.insight != "none":
            if role != "admin":
                return bad(403, "forbidden", "current user does not have admin privileges")
            if self.insight == "busy":
                return bad(503, "timeout", "other reports are being made, try again later")
            if what == "insight/report/kinds":
                return good(mock_insight.report_kinds())
            found = mock_insight.report(query)
            if found is None:
                return bad(400, "bad_data", "query parameter 'period': not of this report")
            return (200, json.dumps(found)) if "format" in query else good(found)
        if what in ("insight/bill", "insight/budgets", "insight/helped", "insight/idle") and self.insight != "none":
            if self.insight == "busy":
                return bad(503, "timeout", "the TSDB is busy")
            if what == "insight/bill":
                if role != "admin":
                    return bad(403, "forbidden", "current user does not have admin privileges")
                return good(mock_insight.bill(query, now, self.insight != "no-meter", bool(self.currency)))
            scope = query.get("scope", [""])[0]

            def visible(owner, project):
                return path.endswith("admin") or role == "admin" or (owner == user and scope != "led") or (project in led and scope != "own")
            if self.insight == "empty":
                return good([])
            if what == "insight/budgets":
                own = {job[3] for job in JOBS if job[2] == user} | set(led)
                return good(mock_insight.budgets(None if role in ("admin", "support") else own, now))
            if what == "insight/helped":
                return good(mock_insight.helped(visible))
            if "by" in query:
                return good(mock_insight.shares(visible, query["by"][0]))
            rows, missing = mock_insight.idle(visible, now, self.currency), []
            if self.insight == "silent":
                rows, missing = [row for row in rows if row["cluster_id"] != "hpc-a"], [{"cluster_id": "hpc-a", "reason": "unavailable"}]
            return 200, {"status": "success", "data": rows, "missing": missing}
        if path in ("nodes/admin", "nodes/series/admin", "units/on-node/admin"):
            if what == "nodes":
                answer = mock_fleet.nodes(query, now, self.fleet)
                return (200, answer) if isinstance(answer, str) else (200, {"status": "success", "data": answer[0], **answer[1]})
            if self.fleet == "silent":
                return bad(503, "timeout", "the TSDB is busy")
            if what == "nodes/series":
                return good(mock_fleet.node_series(query, self.fleet))
            facts = [mock_lists.facts(unit, role != "support" or unit["username"] == user) for unit in self.units(now)]
            return good(mock_fleet.units_on(query, facts, self.fleet))
        if self.lists and what in ("units/list", "units/summary", "units/kinds", "usage/series"):
            units = [] if self.mode == "empty" else self.visible(path, query, user, led, now)
            rows = [mock_lists.facts(unit, role != "support" or unit["username"] == user) for unit in units]
            try:
                mock_lists.known(what, query)
                if what == "usage/series" and query.get("step") == ["hour"]:
                    return good(mock_lists.by_hour(rows, query, now, self.hours))
                if what == "usage/series" and "format" in query:
                    return 200, mock_lists.series_file(mock_lists.series(rows, query))
                if what == "usage/series":
                    return good(mock_lists.series(rows, query))
                if what == "units/kinds":
                    return good(mock_lists.kinds(rows, query))
                if what == "units/summary":
                    return good(mock_lists.summary(rows, query))
                if query.get("format") == ["csv"]:
                    return 200, mock_lists.csv(rows, query)
                data, more = mock_lists.page(rows, query)
                return 200, {"status": "success", "data": data, **more}
            except mock_lists.Refused as refused:
                return bad(400, "bad_data", str(refused))
        if path == "units/feedback":
            return good([{"rule": rule, "answer": self.answers.get((user, query["uuid"][0], rule))} for rule in ("gpu-unused", "time-limit")])
        if what == "units/report" and self.reports != "none":
            if self.reports == "refused":
                return bad(403, "forbidden", "current user does not have admin privileges")
            if self.reports == "error":
                return bad(503, "timeout", "the TSDB is busy")
            found = [u for u in self.visible(path, query, user, led, now) if u["uuid"] in query["uuid"] and [u["cluster_id"]] == query["cluster_id"]
                     and (self.idle or query.get("start", [str(u.get("started_at_ts"))]) == [str(u.get("started_at_ts"))])]  # `idle` moves the start
            if not found:
                return bad(404, "not_found", "no such unit")
            if "ended_at_ts" not in found[0] and "so_far" not in query:
                return bad(409, "conflict", "not ended")
            report = mock_report.of(found[0], query.get("lang", ["en"])[0], role != "support" or found[0]["username"] == user)
            form = query.get("format", ["json"])[0]
            return good([report]) if form == "json" else (200, mock_report.form(report, form))
        if path in ("units", "units/admin"):
            if self.mode == "empty":
                return good([])
            units = self.visible(path, query, user, led, now)
            if role == "support":
                for unit in units:
                    if unit["username"] != user:
                        del unit["name"], unit["tags"]
            if "uuid" in query:
                units = [u for u in units if u["uuid"] in query["uuid"]]
            else:
                begin, end = float(query["from"][0]) * 1000, float(query["to"][0]) * 1000
                units = [u for u in units if ("running" in query if "ended_at_ts" not in u else begin <= u["ended_at_ts"] < end)]
            if "sort" in query:
                units.sort(key=lambda u: -u.get("ended_at_ts", sys.maxsize))
            limit = int(query.get("limit", [str(len(units))])[0])
            status, value = good(units[:limit])
            return status, dict(value, next="more") if len(units) > limit else value
        if path == "units/profile":
            if role == "support" and not any(j[1] == query["uuid"][0] and j[2] == user for j in JOBS):
                return bad(403, "forbidden", "user do not have permissions on uuids")
            if self.profiles == "busy":
                return bad(503, "timeout", "the profile server sent no profile of at most 4 MiB within 10 s")
            times = {name: 1000 * int(query[name][0]) for name in ("from", "to")}
            found = self.profiles == "ok"
            return good({"state": "profile" if found else self.profiles, **times, "total": PROFILE[0][0][1] if found else 0, "left_out": 3 if found else 0,
                         "names": FUNCTIONS if found else [], "levels": PROFILE if found else []})
        if path == "units/series":
            if role == "support" and not any(j[1] == query["uuid"][0] and j[2] == user for j in JOBS):
                return bad(403, "forbidden", "user do not have permissions on uuids")
            if self.mode == "series-error":
                return bad(500, "internal", "Prometheus does not answer")
            charts = query.get("metric", ["cpu,memory,power"])[0].split(",")
            if self.mode in ("short-series", "unmetered"):
                why = "too_short" if self.mode == "short-series" else "not_collected"
                return good([{"name": name, "unit": "", "none": why, **({"collector": "energy"} if name == "power" else {}), "points": []} for name in charts])
            return good([] if self.mode == "no-series" else
                        self.series(query["uuid"][0], float(query["from"][0]), float(query["to"][0]),
                                    charts, query.get("by", ["sum"])[0], query.get("agg", [""])[0]))
        return bad(404, "not_found", "no such endpoint")


def handler(mock, late):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def session(self):
            for part in self.headers.get("Cookie", "").split(";"):
                name, _, value = part.strip().partition("=")
                if name == "ceems_session" and value:
                    return value
            return None

        def pause(self):
            if self.path != "/control":
                time.sleep(late())

        def send(self, status, kind, data, headers=()):
            self.pause()
            if "gzip" in self.headers.get("Accept-Encoding", "") and len(data) > 1000:
                data = gzip.compress(data, 1)
                encoding = True
            else:
                encoding = False
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Content-Security-Policy", POLICY)
            if encoding:
                self.send_header("Content-Encoding", "gzip")
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            parts = urllib.parse.urlsplit(self.path)
            query = urllib.parse.parse_qs(parts.query)
            self.pause()
            if parts.path.startswith("/api/v1/"):
                if mock.mode == "hang":
                    time.sleep(30)
                if mock.mode == "garbage" and not parts.path.endswith("whoami"):
                    return self.send(200, "text/html", b"<html>proxy: please log in</html>")
                try:
                    status, value = mock.answer(parts.path[8:], query, self.headers.get("X-Grafana-User"), self.session())
                except (KeyError, ValueError) as error:
                    status, value = 400, {"status": "error", "data": None, "errorType": "bad_data", "error": "%s: %s" % (type(error).__name__, error)}
                if isinstance(value, tuple):
                    return self.send(status, value[0], value[1].encode())
                if isinstance(value, str):
                    return self.send(status, "text/csv; charset=utf-8", value.encode())
                data = json.dumps(value).encode()
                tag = 'W/"%s"' % hashlib.sha256(data).hexdigest()[:20]
                if status == 200 and self.headers.get("If-None-Match") == tag:
                    mock.unchanged += 1
                    return self.send(304, "application/json", b"", [("ETag", tag)])
                cache = "private, no-cache" if status == 200 else "no-store"
                return self.send(status, "application/json", data, [("ETag", tag), ("Cache-Control", cache)])
            if parts.path == "/control":
                return self.send(200, "application/json", json.dumps({"unchanged": mock.unchanged}).encode())
            if parts.path == "/login/oidc" and mock.login:
                return self.send(303, "text/plain", b"", [("Location", query["next"][0]),
                                                          ("Set-Cookie", "ceems_session=lin; Path=/; HttpOnly; SameSite=Lax")])
            name = os.path.normpath(parts.path).lstrip("/")
            if name in ("", "ui"):
                name = "index.html"
            full = os.path.join(mock.page, name.removeprefix("ui/"))
            if not os.path.isfile(full):
                return self.send(404, "text/plain; charset=utf-8", b"404 page not found\n")
            with open(full, "rb") as f:
                self.send(200, mimetypes.guess_type(full)[0] or "application/octet-stream", f.read())

        def do_DELETE(self):
            wanted = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("id", [""])[0]
            left = [token for token in mock.tokens if token["id"] != wanted]
            gone, mock.tokens = len(left) < len(mock.tokens), left
            self.send(200 if gone else 404, "application/json", json.dumps({"status": "success" if gone else "error", "data": None, "error": "no token has this ID"}).encode())

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.startswith("/api/v1/units/feedback?"):
                if not mock.answering:
                    return self.send(503, "application/json", b'{"status":"error","errorType":"unavailable","error":"the database is busy"}')
                said, user = json.loads(body), mock.proxy_user or self.headers.get("X-Grafana-User") or self.session()
                mock.answers[user, urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["uuid"][0], said["rule"]] = said["answer"]
                return self.send(200, "application/json", b'{"status":"success","data":null}')
            if self.path == "/api/v1/tokens":
                wish, user = json.loads(body), mock.proxy_user or self.headers.get("X-Grafana-User") or self.session()
                now = int(1000 * time.time())
                if self.headers["Content-Type"] != "application/json" or len(mock.tokens) > 19:
                    return self.send(409, "application/json", b'{"status":"error","errorType":"conflict","error":"you have 20 tokens already: revoke one first","data":null}')
                token = {"id": "id%d" % len(mock.tokens), "user": user, "name": wish["name"], "scope": wish["scope"], "created_ts": now,
                         "expires_ts": now + wish["days"] * 86400000, "used_ts": None, "token": "ceems_pat_" + "x" * 43}
                mock.tokens.append(token)
                return self.send(200, "application/json", json.dumps({"status": "success", "data": token}).encode())
            if self.path in ("/login", "/logout"):
                form = {k: v[0] for k, v in urllib.parse.parse_qs(body.decode()).items()}
                out = self.path == "/logout"
                good = form.get("token") == "t" and (out or form.get("user") == form.get("password"))
                cookie = "ceems_session=%s; Path=/; HttpOnly; SameSite=Lax" % ("; Max-Age=0" if out else form.get("user"))
                value = {"status": "success", "data": None} if good else {
                    "status": "error", "data": None, "errorType": "unauthorized", "error": "User name or password is wrong."}
                return self.send(200 if good else 401, "application/json", json.dumps(value).encode(),
                                 [("Set-Cookie", cookie)] if good else [])
            for key, value in json.loads(body).items():
                setattr(mock, key, value)
            self.send(200, "text/plain", b"ok\n")

        def log_message(self, *_):
            pass

    return Handler


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # A browser drops the connections of a page that it leaves.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--proxy-user")
    parser.add_argument("--late", metavar="SEED")
    options = parser.parse_args()
    mock = Mock(options.page, options.proxy_user)
    chance = random.Random(options.late)
    server = Server(("127.0.0.1", options.port), handler(mock, lambda: 0.15 * chance.random() if options.late else 0))
    # End with the test that started this server, even if it is killed: its end of the pipe then closes.
    if not sys.stdin.isatty():
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    print("http://127.0.0.1:%d" % server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
