#!/usr/bin/env python3
"""Reports of the real API server over a database and a real Prometheus, and by the real cacct: the same digits in every form, the right
suggestion with the right number, and nothing of other people."""

import base64
import contextlib
import gzip
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import api_database
from api_database import local_z
from harness import BIN, get, need_programs, run_tests, start_api_server, start_prometheus_with, wait_until, write

OWN = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
GIB = 2 ** 30
HOUR = 3600
NAME = "relax <script>alert(1)</script>\x1b]0;x\x07"
NOW = int(time.time()) // 60 * 60
END = NOW - 2 * HOUR  # of the last run, when Prometheus has nothing newer of it


def unit(uuid, end, owner=OWN, project="fluids", **more):
    """A run of two hours on one node with 4 of its 64 CPUs, 200 GiB and two GPUs, of which one never ran a kernel."""
    row = {"resource_manager": "slurm", "cluster_id": "hpc-a", "uuid": uuid, "name": NAME + uuid, "project": project, "groupname": "g",
           "username": owner, "created_at": local_z(end - 3 * HOUR), "started_at": local_z(end - 2 * HOUR), "ended_at": local_z(end),
           "created_at_ts": (end - 3 * HOUR) * 1000, "started_at_ts": (end - 2 * HOUR) * 1000, "ended_at_ts": end * 1000,
           "elapsed": "02:00:00", "state": "COMPLETED", "ignore": 0, "num_updates": 1, "last_updated_at": local_z(end)[:19],
           "allocation": {"cpus": 4, "nodes": 1, "gpus": 2, "mem": 200 * GIB, "time_limit": 86400, "req_cpus": 4},
           "tags": {"partition": "gpu", "qos": "normal"}, "total_time_seconds": {"walltime": 7200, "alloc_cputime": 28800},
           "avg_cpu_usage": {"global": 95.5}, "total_cpu_energy_usage_kwh": {"total": 0.5},
           "total_gpu_energy_usage_kwh": {"total": 1.5}, "total_cpu_emissions_gms": {"owid_total": 25, "rte_total": 20.04}}
    row.update(more)
    return row


def series(uuid, end):
    """The samples of that run, one a minute; the counters grow evenly."""
    common = 'manager="slurm",hostname="n1",cgrouphostname="",uuid="%s"' % uuid
    gpus = [',index="%d",gpuuuid="GPU-%d",gpuiid=""' % (i, i) for i in (0, 1)]
    unit_series = {
        "cpus": ("", 4, 4), "cpu_user_seconds_total": ("", 0, 27000), "cpu_system_seconds_total": ("", 0, 504), "cpu_used_max": ("", 1, 4),
        "memory_peak_bytes": ("", GIB, 2 * GIB), "idle_seconds_total": ("", 0, 0)}
    lines = {}
    for i in range(121):
        at, share = end - 2 * HOUR + 60 * i, i / 120
        for name, (labels, low, high) in unit_series.items():
            lines.setdefault("ceems_compute_unit_" + name, []).append((common + labels, low + (high - low) * share, at))
        for domain, joules in (("node", 7.2e6), ("gpu", 5.4e6), ("package", 0.9e6)):
            lines.setdefault("ceems_compute_unit_energy_joules_total", []).append(('%s,domain="%s"' % (common, domain), joules * share, at))
            lines.setdefault("ceems_compute_unit_idle_energy_joules_total", []).append(
                ('%s,domain="%s"' % (common, domain), joules / 10 * share, at))
        for labels, busy in zip(gpus, (6000, 0)):
            lines.setdefault("ceems_compute_unit_gpu_busy_seconds_total", []).append((common + labels, busy * share, at))
            lines.setdefault("ceems_compute_unit_gpu_memory_peak_bytes", []).append((common + labels, busy * 1e6 * share, at))
        lines.setdefault("ceems_cpu_count", []).append(('hostname="n1"', 64, at))
        lines.setdefault("ceems_meminfo_MemTotal_bytes", []).append(('hostname="n1"', 256 * GIB, at))
        lines.setdefault("ceems_energy_source_info", []).append(('hostname="n1",domain="node",source="ipmi",method="measured"', 1, at))
    return lines


def gpus_now():
    """The GPUs of a node in the last half hour: one of this user's running job, one of somebody else's, and an idle one."""
    lines = {}
    for i in range(31):
        at = NOW - 60 * i
        for index, uuid, busy, sm in (("0", "300", 0.75, 0.25), ("1", "500", 0.5, 0.5)):
            labels = 'hostname="n1",uuid="%s",index="%s",gpuuuid="GPU-%s",gpuiid=""' % (uuid, index, index)
            for name, share in (("busy", busy), ("sm", sm)):
                lines.setdefault("ceems_compute_unit_gpu_%s_seconds_total" % name, []).append((labels, share * (3600 - 60 * i), at))
        for index in "012":
            lines.setdefault("ceems_gpu_utilization_ratio", []).append(('hostname="n1",index="%s",gpuuuid="GPU-%s",gpuiid=""' % (index, index), 0, at))
    return lines


def openmetrics(runs):
    merged = {name: set(samples) for name, samples in gpus_now().items()}
    for uuid, end in runs:
        for name, samples in series(uuid, end).items():
            merged.setdefault(name, set()).update(samples)
    text = ""
    for name, samples in merged.items():
        text += "# TYPE %s gauge\n" % name + "".join("%s{%s} %r %d\n" % (name, *sample) for sample in sorted(samples, key=lambda s: (s[0], s[2])))
    return text + "# EOF\n"


class Site:
    """The servers, and cacct as this user."""

    def __init__(self, directory, with_tsdb=True, rules=None, rate=20):
        self.directory, self.programs = directory, []
        runs = [(str(100 + i), END - (5 - i) * 3 * HOUR) for i in range(6)]
        database = api_database.create(os.path.join(directory, "ceems.db"))
        with database:
            api_database.insert(database, "units", [unit(*run) for run in runs] + [
                unit("200", END, owner="eve", project="optics"),
                unit("300", 0, state="RUNNING", ended_at="Unknown", ended_at_ts=0, started_at_ts=(NOW - HOUR) * 1000, started_at=local_z(NOW - HOUR)),
                unit("400", END - 60, name="oom", state="OUT_OF_MEMORY")])
            member = {"cluster_id": "hpc-a", "resource_manager": "slurm", "last_updated_at": local_z(NOW)[:19]}
            api_database.insert(database, "projects", [dict(member, uid="", name="fluids", users=[OWN], tags=[])])
            # The project's month: 40 kWh on its first day, and as much in the month before, which does not count.
            first = local_z(END)[:7] + "-01T00:00:00"
            for day in (first, local_z(api_database.epoch(first) - 86400)[:10] + "T00:00:00"):
                api_database.insert(database, "daily_usage", [dict(member, num_units=1, project="fluids", username=OWN, groupname="g", num_updates=1,
                                                                   total_cpu_energy_usage_kwh={"total": 40}, last_updated_at=day)])
        database.close()
        updaters = ""
        if with_tsdb:
            need_programs("prometheus", "promtool")
            prometheus, port = start_prometheus_with(directory, "tsdb", openmetrics(runs))
            self.programs.append(prometheus)
            updaters = "updaters:\n  - {id: tsdb, updater: tsdb, web: {url: 'http://127.0.0.1:%d'}}\n" % port
        write(os.path.join(directory, "sacct"), "#!/bin/sh\nexit 0\n", 0o755)
        write(os.path.join(directory, "sacctmgr"), "#!/bin/sh\nexit 0\n", 0o755)
        os.makedirs(directory + "/rules.d")
        if rules:
            write(directory + "/rules.d/site.yml", rules)
        self.api, self.url = start_api_server(directory, """
ceems_api_server:
  data: {path: %s, time_zone: UTC, update_interval: 1h, retention_period: 400d}
  admin: {users: [root1]}
  roles: {support: [sue]}
  report: {rules: %s, rate: %d}
  ui: {help_url: "mailto:help@example.org"}
clusters:
  - id: hpc-a
    manager: slurm
    cli: {path: %s}
%s%s""" % (directory, directory + "/rules.d", rate, directory, "    updaters: [tsdb]\n" if with_tsdb else "", updaters),
            ["--security.run-as-user=root"] if os.geteuid() == 0 else [])
        self.programs.append(self.api)
        if rate:
            wait_until("all reports of ended units are stored", lambda: self.made("final") + self.made("partial") >= len(runs) + 2)
        write(directory + "/ceems/config.yml", "ceems_api_server:\n  cluster_id: hpc-a\n  web: {url: '%s'}\n" % self.url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.stop()

    def made(self, state):
        """How many reports the server has stored."""
        found = re.search(r'^ceems_api_server_reports_made_total\{state="%s"\} (\d+)$' % state, get(self.url + "/metrics").text, re.M)
        return int(found.group(1)) if found else 0

    def report(self, query, user=OWN, path="report"):
        return get("%s/api/v1/units/%s?cluster_id=hpc-a&%s" % (self.url, path, query), {"X-Grafana-User": user})

    def cacct(self, *arguments, program=os.path.join(BIN, "cacct")):
        environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": self.directory, "HOME": self.directory, "LANG": "C.UTF-8"}
        return subprocess.run([program] + list(arguments), env=environment, capture_output=True, timeout=60)


def numbers(directory):
    """Database and Prometheus together give the report, every form the same digits, and the suggestions their numbers."""
    with Site(directory) as site:
        assert (site.made("final"), site.made("partial")) == (6, 2), "two are not in the TSDB"
        found = get(site.url + "/api/v1/units/findings?from=%d&to=%d&rule=gpu-unused" % (NOW - 86400, NOW), {"X-Grafana-User": OWN})
        assert [one["uuid"] for one in found.json["data"]["findings"]] == ["105", "104", "103", "102", "101", "100"], found.text
        listed = get(site.url + "/api/v1/units/list?columns=uuid&advice=oom&from=%d&to=%d" % (NOW - 86400, NOW), {"X-Grafana-User": OWN})
        assert listed.json["data"]["rows"] == [["400"]], listed.text
        answer = site.report("uuid=105")
        assert get("%s/api/v1/units/report?cluster_id=hpc-a&uuid=105" % site.url,
                   {"X-Grafana-User": OWN, "If-None-Match": answer.headers["ETag"]}).status == 304, answer.headers
        report = answer.json["data"][0]
        assert report["state"] == "final" and report["coverage"] == 1, report
        assert report["use"] == {"cpu": 0.96, "mem": None, "mem_peak_node_bytes": 2 * GIB, "mem_alloc_node_bytes": 200 * GIB, "gpu_busy": 0.42,
                                 "gpu_sm": None, "gpu_mem": None}, report["use"]
        assert report["nodes"][0]["node"] == "n1" and report["nodes"][0]["cpu_seconds"] == 27504, report["nodes"]
        assert [gpu["busy"] for gpu in report["nodes"][0]["gpus"]] == [0.83, 0], report["nodes"]
        assert report["energy"] == {"kwh": 2, "idle_kwh": 0.2, "not_used_kwh": None, "domains": {"gpu": 1.5, "package": 0.25, "other": 0.25},
                                    "method": "measured"}, report["energy"]
        assert report["co2"] == {"g": 20, "provider": "rte_total"} and report["compared"]["family_n"] == 6, report
        assert report["compared"]["project_month_share"] == 0.05, report["compared"]
        found = {finding["rule"]: finding for finding in report["findings"]}
        assert set(found) == {"gpu-unused", "mem-excess", "time-limit"}, found
        assert all(finding["confidence"] == "sure" for finding in found.values()), found
        assert found["gpu-unused"]["sbatch"] == ["--gres=gpu:1"] and found["gpu-unused"]["saves"] == {}, (found, "not counted")
        assert found["mem-excess"]["sbatch"] == ["--mem=3G"] and found["mem-excess"]["runs"] == 6, found
        assert found["time-limit"]["sbatch"] == ["--time=03:00:00"], found
        for format_ in ("text", "ascii", "markdown", "html"):
            text = site.report("uuid=105&format=" + format_).text
            for digits in ("96 %", "42 %", "2 kWh", "1.5 kWh", "0.2 kWh", "20 g", "2 GiB", "200 GiB", "83 0", "--mem=3G", "help@example.org"):
                assert digits in text.replace("\\-", "-"), (format_, digits, text)
            assert "\x1b" not in text and ("<script>" not in text or format_ in ("text", "ascii")), text
        # The same report by cacct, byte for byte.
        for flags, format_ in (([], "text"), (["--ascii"], "ascii"), (["--markdown"], "markdown"), (["--html"], "html"),
                               (["--width", "100"], "text&width=100"), (["--lang", "de"], "text&lang=de")):
            done = site.cacct("report", "105", *flags)
            assert done.returncode == 0 and not done.stderr, done
            assert done.stdout.decode() == site.report("uuid=105&format=" + format_).text, (flags, done.stdout.decode())
        done = site.cacct("report", "105,104", "--json")
        assert json.loads(done.stdout) == [report, site.report("uuid=104").json["data"][0]], done
        done = site.cacct("compare", "104", "105")
        assert done.returncode == 0 and re.search(rb"Energy +2 kWh +2 kWh +\+0 %", done.stdout), done
        # The month, byte for byte: 40 kWh in the database, and what the stored reports suggest.
        month = local_z(END)[:7]
        for flags, format_ in (([], "text"), (["--ascii"], "ascii"), (["--markdown"], "markdown"), (["--html"], "html"),
                               (["--width", "100", "--lang", "fr"], "text&width=100&lang=fr")):
            done = site.cacct("digest", "--month", month, *flags)
            text = get("%s/api/v1/usage/digest?cluster_id=hpc-a&month=%s&format=%s" % (site.url, month, format_), {"X-Grafana-User": OWN}).text
            assert done.returncode == 0 and not done.stderr and done.stdout.decode() == text and "40 kWh" in text, (flags, done, text)
        done = site.cacct("digest", "--month", month, "--json")
        digest = json.loads(done.stdout)["data"]
        assert digest["user"] == OWN and digest["months"][0]["kwh"] == 40 and digest["band"] is None, digest
        assert len(digest["suggestions"]) == 3 and {one["rule"] for one in digest["suggestions"]} < {"gpu-unused", "mem-excess", "time-limit", "oom"}, digest
        # The link for people who are used to jobstats.
        os.symlink(os.path.join(BIN, "cacct"), directory + "/jobstats")
        assert site.cacct("105", program=directory + "/jobstats").stdout.decode() == site.report("uuid=105&format=text").text
        js1 = json.loads(site.cacct("-c", "hpc-a", "-j", "105", program=directory + "/jobstats").stdout)
        assert js1 == {"nodes": {"n1": {"total_time": 27504, "cpus": 4, "used_memory": 2 * GIB, "total_memory": 200 * GIB,
                                        "gpu_utilization": {"0": 83, "1": 0}, "gpu_used_memory": {"0": 6e9, "1": 0}}},
                       "total_time": 7200, "gpus": 2}, js1
        packed = site.cacct("-nbB", "105", program=directory + "/jobstats").stdout
        assert packed.startswith(b"H4s") and json.loads(gzip.decompress(base64.b64decode(packed))) == js1, packed
        assert b"unknown cluster 'x'" in site.cacct("-c", "x", "105", program=directory + "/jobstats").stderr
        # What a user does when the advice is followed: it is gone.
        oom = site.report("uuid=400").json["data"][0]
        assert [finding["rule"] for finding in oom["findings"]] == ["oom"], oom["findings"]


def gpus(directory):
    """What jobs did on GPUs, by the real Prometheus and cacct: own jobs by name, those of others without."""
    with Site(directory) as site:
        done = site.cacct("gpus", "--json")
        assert done.returncode == 0 and not done.stderr, done
        rows = json.loads(done.stdout)["rows"]
        assert [(row["host"], row["gpu"]) for row in rows] == [("n1", "0"), ("n1", "1"), ("n1", "2")], rows
        assert rows[0]["cells"][-2] == {"units": [{"uuid": "300", "user": OWN, "busy": 0.75, "sm": 0.25}], "others": False}, rows[0]
        assert rows[1]["cells"][-2] == {"units": [], "others": True} and rows[2]["cells"][-2] == {"units": [], "others": False}, rows
        assert rows[0]["cells"][0] is None, rows[0]
        own = site.cacct("gpus", "--me", "--node", "^n", "--ascii").stdout.decode()
        assert re.search(r"\nn1 +0 +.*= %s 25 \(75\)" % re.escape(OWN[:12]), own) and "\nn1    1" not in own, own
        assert site.cacct("gpus", "--node", "^x").stdout.decode().startswith("Node  GPU"), "no such node"
        assert b",shown,%s,300,0.75,0.25\n" % OWN.encode() in site.cacct("gpus", "--csv").stdout
        for arguments, text in ((["--csv", "--json"], "exclude each other"), (["--node", "("], "--node: "), (["-a"], "forbidden"), (["x"], "unexpected")):
            done = site.cacct("gpus", *arguments)
            assert done.returncode == 1 and not done.stdout and text in done.stderr.decode(), (arguments, done)


def refusals(directory):
    """Whom a report is refused, and what support does not see."""
    with Site(directory, with_tsdb=False) as site:
        assert site.report("uuid=105", "eve").status == 404 and site.report("uuid=200").status == 404
        assert site.report("uuid=105", "eve", "report/admin").status == 403
        assert site.report("uuid=300").status == 409 and site.report("uuid=300&so_far").json["data"][0]["state"] == "so_far"
        support = site.report("uuid=105&format=text", "sue", "report/admin").text
        assert "relax" not in support and "#SBATCH" not in support and "Time: runs like" in support, support
        assert "relax" in site.report("uuid=105&format=text", "root1", "report/admin").text
        for arguments, text in ((["200"], "no such job among those that you may see"), (["300"], "the job has not ended; --so-far"),
                                ([], "expected the ID of a job"), (["105", "--width", "9"], "--width: expected a number from 60"),
                                (["105", "-a"], "forbidden"), (["105", "--json", "--html"], "exclude each other"),
                                (["--config=x", "1"], "unknown long flag '--config'")):
            done = site.cacct("report", *arguments)
            assert done.returncode == 1 and not done.stdout and text in done.stderr.decode() and done.stderr.count(b"\n") == 1, (arguments, done)
        for arguments, text in ((["--project", "optics"], "no such project among those that you may see"), (["--json", "--html"], "exclude each other"),
                                (["--month", "x"], "expected a month such as 2026-11"), (["--width", "9"], "--width: expected a number from 60"),
                                (["x"], "unexpected")):
            done = site.cacct("digest", *arguments)
            assert done.returncode == 1 and not done.stdout and text in done.stderr.decode() and done.stderr.count(b"\n") == 1, (arguments, done)
        # One of several that cannot be had does not keep the others.
        done = site.cacct("report", "105", "200")
        assert done.returncode == 1 and b"Job 105" in done.stdout and b"job 200: no such job" in done.stderr, done
        assert site.cacct("report", "300", "--so-far").returncode == 0
        for arguments in (["105"], ["105", "105"], ["105", "104", "103"]):
            assert b"expected the IDs of two" in site.cacct("compare", *arguments).stderr, arguments
        # Without a TSDB, a report says so and makes suggestions from the accounting only.
        report = site.report("uuid=105").json["data"][0]
        assert report["state"] == "partial" and report["coverage"] is None and report["nodes"] == [], report
        assert [finding["rule"] for finding in report["findings"]] == ["time-limit"], report
        assert re.search(r"Memory +not measured", site.cacct("report", "105").stdout.decode())


def rules_of_a_site(directory):
    """A site switches rules off and adds its own; a mistake stops the start with file and line."""
    rules = "rules:\n- {id: time-limit, enabled: false}\n- id: tip\n  basis: accounting\n  when: state == 'COMPLETED'\n  text: {en: The wiki helps.}\n"
    with Site(directory, with_tsdb=False, rules=rules, rate=0) as site:
        def texts():
            return [f["text"] for f in site.report("uuid=105").json["data"][0]["findings"]]
        assert texts() == ["The wiki helps."]
        # SIGHUP reads them again; with a mistake they stay as they are.
        write(directory + "/rules.d/site.yml", rules.replace("wiki", "forum"))
        site.api.process.send_signal(signal.SIGHUP)
        wait_until("the new rules are in use", lambda: texts() == ["The forum helps."])
        write(directory + "/rules.d/site.yml", rules.replace("when", "wen"))
        site.api.process.send_signal(signal.SIGHUP)
        wait_until("the mistake is in the log", lambda: "site.yml:5: rules[1].wen: unknown key" in site.api.output())
        assert texts() == ["The forum helps."]
    write(directory + "/rules.d/site.yml", "rules:\n- id: tip\n  wen: 1 < 2\n")
    done = subprocess.run([os.path.join(BIN, "ceems_api_server"), "--config.file=" + directory + "/api.yml", "--web.listen-address=127.0.0.1:0"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "site.yml:3: rules[0].wen: unknown key" in done.stdout + done.stderr, done


def kills(directory, count=200, rate=100, times=3):
    """kill -9 while reports are made: each ended unit has one final report, and none is made twice."""
    database = api_database.create(os.path.join(directory, "ceems.db"))
    with database:
        api_database.insert(database, "units", [unit(str(1000 + i), NOW - 2 * HOUR - i) for i in range(count)])
    database.close()
    write(os.path.join(directory, "sacct"), "#!/bin/sh\nexit 0\n", 0o755)
    write(os.path.join(directory, "sacctmgr"), "#!/bin/sh\nexit 0\n", 0o755)
    config = """
ceems_api_server:
  data: {path: %s, time_zone: UTC, update_interval: 1h, retention_period: 400d}
  report: {rules: %s/none, rate: %d}
clusters:
  - {id: hpc-a, manager: slurm, cli: {path: %s}}
""" % (directory, directory, rate, directory)

    def final():
        with contextlib.closing(sqlite3.connect("file:%s/ceems.db?mode=ro" % directory, uri=True)) as db:
            return dict(db.execute("select uuid, made_ms from ceems_unit_reports where state = 2").fetchall())
    made = {}
    for kill in range(times):
        program, _ = start_api_server(directory, config, ["--security.run-as-user=root"] if os.geteuid() == 0 else [])
        goal = max(len(made) + 1, count * (kill + 1) // (times + 2))
        wait_until("more reports are made", lambda: len(final()) >= goal or len(made) == count, 600)
        program.kill()
        now = final()
        assert made.items() <= now.items(), "a final report was made again"
        made = now
    program, _ = start_api_server(directory, config, ["--security.run-as-user=root"] if os.geteuid() == 0 else [])
    wait_until("all reports are made", lambda: len(final()) == count, 1200)
    program.stop()
    assert made.items() <= final().items(), "a final report was made again"
    with contextlib.closing(sqlite3.connect("file:%s/ceems.db?mode=ro" % directory, uri=True)) as db:
        assert db.execute("select count(*) from ceems_unit_reports").fetchone() == (count,)
        assert db.execute("select count(*), count(distinct uuid) from ceems_findings where rule = 'time-limit'").fetchone() == (count, count)


def many_kills(directory):
    """The same with 10,000 units that ended at once."""
    kills(directory, count=10000, rate=1000, times=5)


if __name__ == "__main__":
    if sys.argv[1:] == ["--long"]:
        sys.argv[1:] = ["many_kills"]
        sys.exit(run_tests([many_kills], "ceems-report-"))
    sys.exit(run_tests([kills, numbers, gpus, refusals, rules_of_a_site], "ceems-report-", together=2))
