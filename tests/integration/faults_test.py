#!/usr/bin/env python3
"""Feeds bad input to the real programs. Each fault gives one clear line, crashes nothing and loses nothing. Where the cause goes away,
the programs recover without a restart. One function for each fault; to run some of them: `faults_test.py NAME...`."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import fake_slurm
from harness import BIN, FakeHttp, get, run_together, samples, scratch, start_api_server, start_exporter, wait_for_rounds, wait_until, write

ADMIN = {"X-Grafana-User": "operator"}
AS_ROOT = ["--security.run-as-user=root"] if os.geteuid() == 0 else []


def refused(program, arguments, parts, env=None):
    """The program ends with status 1 and a line that contains all `parts`, without a stack trace or sanitizer report."""
    done = subprocess.run([os.path.join(BIN, program)] + arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, env=dict(os.environ, **(env or {})))
    text = done.stdout + done.stderr
    assert done.returncode == 1, "%s %s: exit %s:\n%s" % (program, arguments, done.returncode, text)
    lines = [line for line in text.splitlines() if all(p in line for p in parts)]
    assert lines, "%s %s: no line with %s in:\n%s" % (program, arguments, parts, text)
    assert "Sanitizer" not in text and "terminate called" not in text, text
    return lines[0]


def api_config(directory, extra="", prometheus="http://127.0.0.1:1", begin=None):
    return fake_slurm.api_config(directory, begin, tsdb=prometheus, interval="300ms") + extra


def slurm(directory, count=20, mode="ok"):
    now = int(time.time())
    jobs = [{"id": str(100 + i), "name": "job%d" % i, "user": "u%d" % (i % 3), "account": "p%d" % (i % 2), "cpus": 2,
             "start": now - 500 + i % 100, "end": now - 200 + i % 100} for i in range(count)]
    fake_slurm.install(directory, jobs, mode)
    return jobs


def empty_tsdb(path, query, body, scrape="15s"):
    if path == "/api/v1/query":
        return 200, "application/json", b'{"status":"success","data":{"resultType":"matrix","result":[]}}'
    if path == "/api/v1/status/config":
        return 200, "application/json", ('{"status":"success","data":{"yaml":"global:\\n  scrape_interval: %s\\n"}}' % scrape).encode()
    return 200, "application/json", b'{"status":"success","data":{}}'


def unit_rows(directory):
    with contextlib.closing(sqlite3.connect("file:%s/data/ceems.db?mode=ro" % directory, uri=True)) as db:
        return {u: json.loads(t or "{}") for u, t in db.execute("select uuid,total_time_seconds from units")}


def whole_jobs(directory, jobs):
    """Whether every job is stored once with exactly its run time: nothing lost, nothing counted twice."""
    seen = unit_rows(directory)
    return len(seen) == len(jobs) and all(seen[j["id"]].get("walltime") == j["end"] - j["start"] for j in jobs)


# The command line and files -------------------------------------------------------------------------------------------

def config_with_a_typo():
    with scratch("ceems-fault-") as d:
        slurm(d)
        text = api_config(d).replace("update_interval: 300ms", "update_intervall: 300ms")
        line = text[:text.index("update_intervall")].count("\n") + 1
        path = write(d + "/c.yml", text)
        refused("ceems_api_server", ["--config.file=" + path], ["c.yml:%d" % line, "update_intervall", "update_interval"])


def config_with_a_wrong_type():
    with scratch("ceems-fault-") as d:
        slurm(d)
        text = api_config(d).replace("users: [operator]", "users: {a: b}")
        path = write(d + "/c.yml", text)
        refused("ceems_api_server", ["--config.file=" + path], ["c.yml:", "users"])
        path = write(d + "/c.yml", api_config(d).replace("update_interval: 300ms", "update_interval: soon"))
        refused("ceems_api_server", ["--config.file=" + path], ["c.yml:", "update_interval", "soon"])
        path = write(d + "/c.yml", api_config(d).replace("manager: slurm", "manager: slrum"))
        refused("ceems_api_server", ["--config.file=" + path], ["slrum"])
        path = write(d + "/c.yml", "a: [1, 2\nb: }")
        refused("ceems_api_server", ["--config.file=" + path], ["c.yml:"])


def config_missing():
    refused("ceems_api_server", ["--config.file=/nonexistent/ceems.yml"], ["/nonexistent/ceems.yml", "No such file"])
    refused("ceems_exporter", ["--web.listen-address=127.0.0.1:0", "--web.config.file=/nonexistent/web.yml"],
            ["/nonexistent/web.yml", "No such file"])


def flags():
    refused("ceems_exporter", ["--colector.cpu"], ["--colector.cpu"])
    refused("ceems_exporter", ["--log.level=loud"], ["loud"])
    refused("ceems_api_server", ["--query.max-period=3l"], ["3l"])
    refused("ceems_exporter", ["extra"], ["extra"])


def tls_key_that_does_not_match():
    if not shutil.which("openssl"):
        print("  (the program openssl is missing, skipped)")
        return
    with scratch("ceems-fault-") as d:
        for n in ("a", "b"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "%s/%s.key" % (d, n), "-out",
                            "%s/%s.crt" % (d, n), "-subj", "/CN=localhost", "-days", "2"], check=True, capture_output=True)
        path = write(d + "/web.yml", "tls_server_config:\n  cert_file: a.crt\n  key_file: b.key\n")
        slurm(d)
        config = write(d + "/c.yml", api_config(d))
        refused("ceems_exporter", ["--web.listen-address=127.0.0.1:0", "--web.config.file=" + path], ["b.key"])
        refused("ceems_api_server", ["--config.file=" + config, "--web.listen-address=127.0.0.1:0", "--web.config.file=" + path] + AS_ROOT,
                ["b.key"])


def port_in_use():
    with scratch("ceems-fault-") as d:
        exporter, url = start_exporter(d, ["--no-security.drop-privileges"] if os.geteuid() == 0 else [])
        address = url.split("//")[1]
        with exporter:
            line = refused("ceems_exporter", ["--web.listen-address=" + address], [address, "in use"])
            assert str(exporter.pid) in line, "the line does not name the process %d that holds the port: %s" % (exporter.pid, line)
            slurm(d)
            config = write(d + "/c.yml", api_config(d))
            refused("ceems_api_server", ["--config.file=" + config, "--web.listen-address=" + address] + AS_ROOT, [address, "in use"])


# Files of the kernel --------------------------------------------------------------------------------------------------

def tree(d):
    proc, sys_, cgroup = d + "/proc", d + "/sys", d + "/sys/fs/cgroup"
    write(proc + "/stat", "cpu  100 2 30 4000 5 6 7 8 0 0\ncpu0 100 2 30 4000 5 6 7 8 0 0\nintr 1\n")
    write(proc + "/cpuinfo", "processor\t: 0\nphysical id\t: 0\ncpu cores\t: 1\n\n")
    write(proc + "/meminfo", "MemTotal:        8000000 kB\nMemFree:         4000000 kB\nMemAvailable:    6000000 kB\nSwapTotal: 0 kB\n")
    write(proc + "/diskstats", "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n")
    write(proc + "/4242/cmdline", "job")
    write(sys_ + "/class/powercap/intel-rapl:0/name", "package-0\n")
    write(sys_ + "/class/powercap/intel-rapl:0/energy_uj", "1000000\n")
    write(sys_ + "/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n")
    job = cgroup + "/system.slice/slurmstepd.scope/job_7"
    unit(job)
    return proc, sys_, cgroup, job


def unit(job):
    write(job + "/cgroup.controllers", "cpuset cpu io memory pids\n")
    write(job + "/cgroup.procs", "4242\n")
    write(job + "/cpu.stat", "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n")
    write(job + "/memory.stat", "anon 1000\nfile 2000\ninactive_file 100\n")
    write(job + "/memory.current", "3000\n")
    write(job + "/memory.max", "max\n")
    write(job + "/memory.events", "oom 0\n")
    write(job + "/cpuset.cpus.effective", "0\n")
    write(job + "/step_0/cgroup.procs", "4242\n")


def fixture_exporter(d, proc, sys_, cgroup, *more):
    return start_exporter(d, ["--path.procfs=" + proc, "--path.sysfs=" + sys_, "--path.cgroupfs=" + cgroup, "--collector.slurm",
                              "--collector.cgroups.force-version=v2", "--collector.energy.interval=200ms",
                              "--log.level=error"] + list(more) + (["--no-security.drop-privileges"] if os.geteuid() == 0 else []))


def kernel_files_break_and_come_back():
    with scratch("ceems-fault-") as d:
        proc, sys_, cgroup, job = tree(d)
        exporter, url = fixture_exporter(d, proc, sys_, cgroup, "--collector.energy")
        good = {}
        with exporter:
            def success():
                return {labels: v for labels, v in samples(get(url + "/metrics").text, "ceems_scrape_collector_success")}
            good = success()
            assert set(good.values()) == {1}, good
            junk = {"empty": b"", "binary": bytes(range(256)) * 64, "truncated": b"cpu  100 2", "huge": b"9" * (20 << 20),
                    "directory": None}
            for path in (proc + "/stat", proc + "/meminfo", sys_ + "/class/powercap/intel-rapl:0/energy_uj",
                         sys_ + "/class/powercap/intel-rapl:0/name", job + "/cpu.stat", job + "/memory.stat",
                         job + "/memory.current", job + "/cgroup.procs", job + "/cpuset.cpus.effective", job + "/cgroup.controllers"):
                with open(path, "rb") as f:
                    before = f.read()
                for kind, content in junk.items():
                    os.unlink(path)
                    if content is None:
                        os.mkdir(path)
                    else:
                        with open(path, "wb") as f:
                            f.write(content)
                    answer = get(url + "/metrics")
                    assert answer.status == 200 and "ceems_scrape_collector_success" in answer.text, (path, kind)
                    os.rmdir(path) if content is None else os.unlink(path)
                    get(url + "/metrics")  # while the file is missing
                    with open(path, "wb") as f:
                        f.write(before)
            wait_until("every collector works again", lambda: set(success().values()) == {1})
            page = get(url + "/metrics").text
            assert ('{cgrouphostname="",hostname="%s",manager="slurm",uuid="7"}' % os.uname().nodename, 2.0) in samples(
                page, "ceems_compute_unit_cpu_user_seconds_total"), page
        check_quiet(exporter)


def check_quiet(program):
    text = program.output()
    assert "Sanitizer" not in text and "terminate called" not in text, text[-3000:]
    assert program.process.returncode == 0, (program.process.returncode, text[-3000:])


def ten_thousand_hostile_cgroups():
    with scratch("ceems-fault-") as d:
        proc, sys_, cgroup, _ = tree(d)
        scope = (cgroup + "/system.slice/slurmstepd.scope").encode()
        names = [b'a"b', b"new\nline", b"back\\slash", b"\\x2d", b"\xff\xfe", b'x",uuid="9', b"{}", b" ", b"-", b"." * 3, b"%s%n",
                 b"job_", b"job_99999999999999999999999999", b"job_-1", b"job_1e9", "h\u00e9".encode(), b"j" * 255, b"$(reboot)", b"`id`"]
        for i in range(10000):
            name = b"job_%d" % (100000 + i) if i % 2 else (names[i // 2 % len(names)] + b"%d" % i)[-255:]
            path = os.path.join(scope, name)
            os.makedirs(path, exist_ok=True)
            if i % 2:
                for file, text in ((b"cgroup.procs", b"4242\n"), (b"cgroup.controllers", b"cpu memory\n"),
                                   (b"cpu.stat", b"usage_usec 30\nuser_usec 20\nsystem_usec 10\n"), (b"memory.current", b"1\n")):
                    with open(os.path.join(path, file), "wb") as f:
                        f.write(text)
        exporter, url = fixture_exporter(d, proc, sys_, cgroup, "--no-collector.energy")
        with exporter:
            text = get(url + "/metrics", timeout=60).text
            count = samples(text, "ceems_compute_units")[0][1]
            assert count >= 5001, count
            for line in text.splitlines():
                assert line.startswith("#") or line.count("{") <= 1 and line[:6] in ("ceems_", "promht", "proces"), line
            checked = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), capture_output=True) if shutil.which("promtool") else None
            assert checked is None or checked.returncode in (0, 3), checked.stderr[-2000:]
        check_quiet(exporter)


# Peers of the API server ----------------------------------------------------------------------------------------------

def tsdb_faults():
    lies = {
        "down": None,
        "error page": (502, "text/html", b"<html>Bad Gateway</html>"),
        "truncated": (200, "application/json", b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"uuid":"1'),
        "wrong types": (200, "application/json", b'{"status":"success","data":{"resultType":7,"result":{"a":1}}}'),
        "nan": (200, "application/json", b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"uuid":"100","domain":"node"},'
                b'"values":[[1,"NaN"],["x","y"],[2,"+Inf"],[]]}]}}'),
        "binary": (200, "application/json", bytes(range(256)) * 100),
        "no json": (200, "text/plain", b"hello"),
    }
    state = {"lie": None}

    def handler(path, query, body):
        if state["lie"] is not None:
            return lies[state["lie"]]
        return empty_tsdb(path, query, body)

    with scratch("ceems-fault-") as d, FakeHttp(handler) as tsdb:
        jobs = slurm(d)
        state["lie"] = "error page"
        api, url = start_api_server(d, api_config(d, prometheus=tsdb.url), AS_ROOT)
        with api:
            for lie in lies:
                state["lie"] = lie
                wait_for_rounds(url)
                assert api.alive(), api.output()[-3000:]
                assert get(url + "/health").status == 200, lie
            state["lie"] = None
            wait_until("all jobs are stored completely once the TSDB is back", lambda: whole_jobs(d, jobs))
        check_quiet(api)


def tsdb_slow_and_endless():
    def handler(path, query, body):
        if path == "/api/v1/query" and state["slow"]:
            time.sleep(3600)
        # What is asked of nodes is left out: a million series are parsed for seconds, which a stop waits for.
        asked = query.get("query", [""])[0]
        of_nodes = "ceems_node_" in asked or asked.startswith("ceems_compute_unit_idle_energy_joules_total{")
        if path == "/api/v1/query" and state["many"] and not of_nodes:
            row = ",".join('{"metric":{"uuid":"x%d"},"values":[[%d,"1"]]}' % (i, time.time()) for i in range(1000000))
            return 200, "application/json", ('{"status":"success","data":{"resultType":"matrix","result":[%s]}}' % row).encode()
        return empty_tsdb(path, query, body, "1s")

    state = {"slow": False, "many": True}
    with scratch("ceems-fault-") as d, FakeHttp(handler) as tsdb:
        jobs = slurm(d, 3)
        api, url = start_api_server(d, api_config(d, prometheus=tsdb.url), AS_ROOT)
        with api:
            wait_until("the TSDB has sent a million series", lambda: any(p == "/api/v1/query" for _, p, _ in tsdb.seen))
            assert get(url + "/health").status == 200
            state["many"] = False
            wait_until("jobs are stored", lambda: whole_jobs(d, jobs))
            state["slow"] = True
            tsdb.seen.clear()
            write(d + "/jobs.json", json.dumps(jobs + [dict(jobs[0], id="9", start=int(time.time()), end=int(time.time()) + 900)]))
            wait_until("an update is running", lambda: any(p == "/api/v1/query" for _, p, _ in tsdb.seen))
            assert get(url + "/api/v1/units/admin", ADMIN).status == 200, "while the TSDB does not answer"
            api.stop()  # a running update does not delay the stop
        check_quiet(api)


def vector_of(text, value):
    """A response with this value for every unit that the query names."""
    rows = ",".join('{"metric":{"uuid":"%s"},"value":[1,"%s"]}' % (i, value) for i in re.findall("[0-9]+", text.split('"')[1]))
    return 200, "application/json", ('{"status":"success","data":{"resultType":"vector","result":[%s]}}' % rows).encode()


def queries_that_fail_for_a_while():
    """A rejected query and an incomplete response do not delay anything. The missing metrics are filled in later, once."""
    state = {"broken": True}

    def handler(path, query, body):
        text = query.get("query", [""])[0]
        if path == "/api/v1/query" and text.startswith("energy"):
            return ((422, "application/json", b'{"status":"error","errorType":"execution","error":"many-to-many"}') if state["broken"]
                    else vector_of(text, "0.5"))
        if path == "/api/v1/query" and text.startswith("read"):
            answer = vector_of(text, "7")
            return answer[:2] + (answer[2][:-1] + b',"warnings":["a store is down"]}',) if state["broken"] else answer
        if path == "/api/v1/query" and text.startswith("cpu"):
            return vector_of(text, "40")
        return empty_tsdb(path, query, body, "1s")

    def maps(table, column):
        with contextlib.closing(sqlite3.connect("file:%s/data/ceems.db?mode=ro" % d, uri=True)) as db:
            return [json.loads(m or "null") or {} for (m,) in db.execute("select %s from %s" % (column, table))]

    extra = """    extra_config:
      queries:
        avg_cpu_usage: {global: 'cpu{uuid=~"{{.UUIDs}}"}'}
        total_cpu_energy_usage_kwh: {total: 'energy{uuid=~"{{- .UUIDs -}}"}'}
        total_io_read_stats: {bytes_total: 'read{uuid=~"{{.UUIDs}}"}'}
"""
    with scratch("ceems-fault-") as d, FakeHttp(handler) as tsdb:
        jobs = slurm(d)
        # A window ends at midnight, and each window contributes the same value. Use a zone in which midnight is far away.
        ahead = 12 - time.gmtime().tm_hour  # hours
        zone = "Etc/GMT%+d" % -ahead if ahead else "UTC"  # where it is noon; in these names a minus sign means east
        config = api_config(d, extra, tsdb.url, time.time() - 600 + 3600 * ahead).replace("time_zone: UTC", "time_zone: " + zone)
        api, url = start_api_server(d, config, AS_ROOT)
        with api:
            wait_until("jobs are stored completely, without the missing metrics", lambda: whole_jobs(d, jobs))
            assert all(m == {"global": 40} for m in maps("units", "avg_cpu_usage")), maps("units", "avg_cpu_usage")
            assert not any(maps("units", "total_cpu_energy_usage_kwh")) and not any(maps("units", "total_io_read_stats"))
            state["broken"] = False
            wait_until("the missing metrics are filled in", lambda: all(
                m == {"total": 0.5} for m in maps("units", "total_cpu_energy_usage_kwh")) and all(
                m == {"bytes_total": 7} for m in maps("units", "total_io_read_stats")))
            for table in ("usage", "daily_usage"):
                assert sum(m.get("total", 0) for m in maps(table, "total_cpu_energy_usage_kwh")) == len(jobs) / 2, table
                assert sum(m.get("bytes_total", 0) for m in maps(table, "total_io_read_stats")) == 7 * len(jobs), table
                assert all(m == {"global": 40} for m in maps(table, "avg_cpu_usage")), table
            assert whole_jobs(d, jobs)
        check_quiet(api)


def data_base_locked():
    """Another program holds the write lock for longer than the busy timeout: readers continue, and the window is retried."""
    with scratch("ceems-fault-") as d, FakeHttp(empty_tsdb) as tsdb:
        jobs = slurm(d, 20, "silent")
        api, url = start_api_server(d, api_config(d, prometheus=tsdb.url), AS_ROOT)
        with api:
            with contextlib.closing(sqlite3.connect(d + "/data/ceems.db", isolation_level=None)) as other:
                other.execute("begin exclusive")
                write(d + "/mode", "ok")
                wait_until("the lock is logged", lambda: "is locked" in api.output().lower())
                assert get(url + "/api/v1/units/admin", ADMIN).status == 200, "while another program writes"
                assert not unit_rows(d)
                other.execute("rollback")
            wait_until("all jobs are stored completely once the lock is gone", lambda: whole_jobs(d, jobs))
        check_quiet(api)


def backup_while_running():
    """Backups made during writes and reads are complete copies. A stop in the middle of a backup leaves no file."""
    with scratch("ceems-fault-") as d, FakeHttp(empty_tsdb) as tsdb:
        jobs = slurm(d, 500)
        os.mkdir(d + "/backup")
        text = api_config(d, prometheus=tsdb.url).replace("    time_zone: UTC\n", "    time_zone: UTC\n    backup_path: %s/backup\n"
                                                          "    backup_interval: 1s\n" % d)
        api, url = start_api_server(d, text, AS_ROOT + ["--test.disable.checks"])
        with api:
            wait_until("jobs are stored", lambda: whole_jobs(d, jobs))
            wait_until("a backup contains them", lambda: any(backup_rows(d + "/backup/" + n) == len(jobs)
                                                                  for n in os.listdir(d + "/backup") if n.endswith(".db")))
            for name in os.listdir(d + "/backup"):
                if name.endswith(".db"):
                    assert os.stat(d + "/backup/" + name).st_mode & 0o777 == 0o640, name
            assert get(url + "/api/v1/units/admin", ADMIN).status == 200
        assert not [n for n in os.listdir(d + "/backup") if not n.endswith(".db")], os.listdir(d + "/backup")
        check_quiet(api)


def backup_rows(path):
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro&immutable=1" % path, uri=True)) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        return db.execute("select count(*) from units").fetchone()[0]


def grafana_admins_come_and_go():
    state = {"members": ["grace"], "status": 200}

    def grafana(path, query, body):
        if path != "/api/teams/3/members":
            return 404, "application/json", b'{"message":"Team not found"}'
        return state["status"], "application/json", json.dumps([{"login": m} for m in state["members"]]).encode()

    def is_admin(name):
        return get(url + "/api/v1/units/admin", {"X-Grafana-User": name}).status == 200

    with scratch("ceems-fault-") as d, FakeHttp(empty_tsdb) as tsdb, FakeHttp(grafana) as server:
        slurm(d)
        text = api_config(d, prometheus=tsdb.url).replace("    users: [operator]\n", "    users: [operator]\n    grafana:\n      url: %s\n"
                                                          "      teams_ids: [3]\n" % server.url)
        api, url = start_api_server(d, text, AS_ROOT)
        with api:
            wait_until("a member of the team is admin", lambda: is_admin("grace"))
            assert not is_admin("ada") and is_admin("operator")
            state["members"] = ["ada"]
            wait_until("another member is admin", lambda: is_admin("ada"))
            assert not is_admin("grace"), "a user who left the team is still an administrator"
            for status, members in ((500, []), (200, [])):
                state["status"], state["members"] = status, members
                wait_for_rounds(url, 3)
                assert is_admin("ada"), "a fetch with status %d and %s removed an administrator" % (status, members)
        check_quiet(api)


def sacct_faults():
    with scratch("ceems-fault-") as d, FakeHttp(empty_tsdb) as tsdb:
        jobs = slurm(d, 20, "half")
        api, url = start_api_server(d, api_config(d, prometheus=tsdb.url), AS_ROOT)
        with api:
            for mode in ("half", "silent", "binary", "half"):
                write(d + "/mode", mode)
                wait_for_rounds(url)
                assert api.alive() and get(url + "/health").status == 200, mode
            os.rename(d + "/bin/sacct", d + "/bin/gone")
            wait_for_rounds(url)
            assert api.alive(), "sacct missing"
            os.rename(d + "/bin/gone", d + "/bin/sacct")
            write(d + "/mode", "ok")
            wait_until("all jobs are stored completely once sacct is back", lambda: whole_jobs(d, jobs))
            write(d + "/mode", "hang")
            wait_until("sacct hangs", lambda: subprocess.run(["pgrep", "-f", d + "/bin/sacct"], stdout=subprocess.DEVNULL).returncode == 0)
            time.sleep(0.5)  # long enough for one that does not hang
            assert get(url + "/api/v1/units/admin", ADMIN).status == 200
            api.stop()  # a hanging command does not delay the stop
        check_quiet(api)
        left = subprocess.run(["pgrep", "-f", d + "/bin/sacct"], capture_output=True, text=True).stdout
        assert not left, "sacct is still running: " + left


def disk_full_under_the_data_base():
    if os.geteuid() != 0:
        print("  (not root, cannot mount a tmpfs to fill, skipped)")
        return
    with scratch("ceems-fault-") as d, FakeHttp(empty_tsdb) as tsdb:
        jobs = slurm(d, 500)
        os.mkdir(d + "/data")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", d + "/data"], check=True)
        try:
            write(d + "/mode", "silent")
            api, url = start_api_server(d, api_config(d, prometheus=tsdb.url), AS_ROOT)
            with api:
                ballast = os.open(d + "/data/ballast", os.O_WRONLY | os.O_CREAT)
                try:
                    while os.write(ballast, b"x" * 4096):
                        pass
                except OSError:
                    pass
                os.close(ballast)
                write(d + "/mode", "ok")
                wait_until("the full disk is logged", lambda: "full" in api.output().lower() or "no space" in api.output().lower())
                assert api.alive()
                assert get(url + "/api/v1/units/admin", ADMIN).status == 200
                os.unlink(d + "/data/ballast")
                wait_until("all jobs are stored completely once there is room", lambda: whole_jobs(d, jobs))
            check_quiet(api)
        finally:
            subprocess.run(["umount", d + "/data"])


FAULTS = [tsdb_slow_and_endless, data_base_locked, queries_that_fail_for_a_while, ten_thousand_hostile_cgroups, tsdb_faults, sacct_faults,
          kernel_files_break_and_come_back, disk_full_under_the_data_base, backup_while_running, grafana_admins_come_and_go,
          config_with_a_typo, config_with_a_wrong_type, config_missing, flags, tls_key_that_does_not_match, port_in_use]


def main():
    wanted = sys.argv[1:]
    return run_together([fault for fault in FAULTS if not wanted or fault.__name__ in wanted], lambda fault: fault(), 3)


if __name__ == "__main__":
    sys.exit(main())
