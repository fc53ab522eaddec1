#!/usr/bin/env python3
"""cacct with stand-ins for the API server and the TSDB: formats, dumps that are killed and go on in constant memory, and attacks by the
user who runs a copy with privileges of its own."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import BIN, FakeHttp, ROOT, run_tests, scratch, wait_until, write

CACCT = os.path.join(BIN, "cacct")
OWN = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
HOSTILE = "\x1b]0;owned\x07\x1b[31mjob\u202e\n"
UNITS = [
    {"uuid": "7", "name": HOSTILE, "project": "physics", "username": "ada", "elapsed": "00:10:00", "state": "COMPLETED",
     "started_at_ts": 1700000000000, "ended_at_ts": 1700000600000, "avg_cpu_usage": {"global": 50.0},
     "total_cpu_energy_usage_kwh": {"total": 1.25}, "total_time_seconds": {"walltime": 600, "alloc_cputime": 600}},
    {"uuid": "8", "name": "b", "project": "biology", "username": "ada", "elapsed": "00:00:10", "state": "FAILED",
     "started_at_ts": 1700000000000, "ended_at_ts": 0, "avg_cpu_usage": {"global": 25.0},
     "total_cpu_energy_usage_kwh": {"total": 0.0005}, "total_time_seconds": {"walltime": 10, "alloc_cputime": 10}},
]
USAGE = [{"username": user, "project": "physics", "num_units": 2, "avg_cpu_usage": {"global": 50.0},
          "total_cpu_energy_usage_kwh": {"total": 2.0}, "total_time_seconds": {"walltime": 600, "alloc_cputime": 600}}
         for user in (OWN, "bob")]


def api_answer(path, _query, _body, units=None):
    data = (units or UNITS) if path.startswith("/api/v1/units") else USAGE
    return 200, "application/json", json.dumps({"status": "success", "data": data}).encode()


def config(api, tsdb=None):
    text = "ceems_api_server:\n  cluster_id: c0\n  web:\n    url: %s\n    basic_auth: {username: ceems, password: geheim}\n" % api.url
    if tsdb:
        text += "tsdb:\n  web: {url: %s}\n  scrape_interval: 10s\n  queries:\n    power: 'power{uuid=\"%%s\"}'\n" % tsdb.url
    return text


def run(directory, *arguments, **more):
    environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory, "HOME": directory, "TZ": "UTC"}
    environment.update(more.pop("env", {}))
    return subprocess.run([CACCT] + list(arguments), env=environment, capture_output=True, timeout=60, **more)


def formats(directory):
    """Every format holds the same numbers, and none of them a character that a terminal obeys."""
    with FakeHttp(api_answer) as api:
        write(directory + "/ceems/config.yml", config(api))
        for arguments in (["--long"], ["--csv", "--long"], ["--html", "--long"], ["--markdown", "--long"], ["-P", "--long"],
                          ["--json", "--long"], ["-o", "name%3,jobid"], ["--long", "--human", "--totals"]):
            done = run(directory, *arguments)
            assert done.returncode == 0 and not done.stderr, (arguments, done)
            assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xe2\x80\xae", done.stdout), (arguments, done.stdout)
        rows = list(csv.reader(io.StringIO(run(directory, "--csv", "-o", "jobid,cpuusage,hostenergy").stdout.decode())))
        assert rows == [["Job ID", "CPU Usage(%)", "Host Energy(kWh)"], ["", "", ""], ["7", "50.00", "1.250000"],
                        ["8", "25.00", "0.000500"], ["Summary", "", ""], ["1", "25.00", "0.000500"], ["1", "50.00", "1.250000"]], rows
        lines = run(directory, "-nP", "-o", "hostenergy,jobid,state").stdout.decode().splitlines()
        assert lines == ["1.250000|7|COMPLETED", "0.000500|8|FAILED"], lines
        document = json.loads(run(directory, "--json").stdout)
        assert [unit["uuid"] for unit in document["units"]] == ["7", "8"]
        assert document["units"][1]["total_cpu_energy_usage_kwh"] == {"total": 0.0005}
        assert [(usage["project"], usage["num_units"]) for usage in document["usage"]] == [("biology", 1), ("physics", 1)], document["usage"]
        # Answers that do not say what averages are weighted with have the sums of the server.
        old = [{key: value for key, value in unit.items() if key != "total_time_seconds"} for unit in UNITS]
        api.handler = lambda *request: api_answer(*request, units=old)
        document = json.loads(run(directory, "--json").stdout)
        assert [usage["num_units"] for usage in document["usage"]] == [2], document["usage"]
        run(directory, "--user", OWN)
        assert api.seen[-1][1] == "/api/v1/usage/current", api.seen[-1]
        run(directory, "-aX")
        assert api.seen[-1][1] == "/api/v1/usage/current/admin" and "user" not in api.seen[-1][2], api.seen[-1]
        # IDs as SLURM shows them: of what was found, and in what is asked for.
        api.handler = lambda *request: api_answer(*request, units=[dict(UNITS[0], allocation={"array_job": 7100, "array_task": 4})])
        assert "7100_4" in run(directory).stdout.decode() and "7100_4" in run(directory, "-P", "-o", "slurmid").stdout.decode()
        run(directory, "-j", "7100_[1,3-5],8200+1,9000")
        assert api.seen[-1][2]["uuid"] == ["7100_[1,3-5]", "8200+1", "9000", "9000_*", "9000+*"], api.seen[-1]
        api.handler = api_answer
        human = run(directory, "--human", "-o", "jobid,hostenergy%12").stdout.decode()
        assert "1.25 kWh" in human and "500 mWh" in human, human
        # The users have a column where there are several.
        assert "USER" not in run(directory).stdout.decode().splitlines()[1]
        api.handler = lambda *request: api_answer(*request, units=[UNITS[0], dict(UNITS[1], username="bob")])
        table = [[cell.strip() for cell in line.split("│")] for line in run(directory, "--user", "all").stdout.decode().splitlines()]
        at = table[1].index("USER")
        assert [row[at] for row in table if row[1:2] in (["7"], ["8"])] == ["ada", "bob"], table
        api.handler = api_answer
        # What was asked, and as whom.
        api.seen.clear(), api.headers.clear()
        run(directory, "-S", "2024-01-02", "-E", "2024-01-03T04:05", "-A", "a,,b", "--user", "all", env={"USER": "eve", "LOGNAME": "eve"})
        (_, path, query), headers = api.seen[0], api.headers[0]
        assert path == "/api/v1/units/admin" and "user" not in query, (path, query)
        assert query["from"] == ["1704153600"] and query["to"] == ["1704254700"] and query["project"] == ["a", "b"], query
        assert headers["X-Grafana-User"] == OWN and headers["Authorization"].startswith("Basic "), headers
        run(directory, "--user", OWN)
        assert api.seen[-1][1] == "/api/v1/units", api.seen[-1]
        run(directory, "-aX")
        assert api.seen[-1][1] == "/api/v1/units/admin" and "user" not in api.seen[-1][2], api.seen[-1]


def errors(directory):
    """Each error is one line that names the cause, with status 1."""
    answers = {"status": 200, "body": b"{}"}
    with FakeHttp(lambda *_: (answers["status"], "application/json", answers["body"])) as api:
        write(directory + "/ceems/config.yml", config(api))
        for status, body, text in ((401, b"", "forbidden. It is likely"), (403, b"x", "forbidden. It is likely"),
                                   (500, b"<html>", "the API server answered with HTTP status 500"),
                                   (503, b'{"status":"error","error":"too slow"}', "unknown error: too slow"),
                                   (200, b"[]", "unexpected answer of the API server")):
            answers.update(status=status, body=body)
            done = run(directory)
            assert done.returncode == 1 and done.stdout == b"", done
            assert text in done.stderr.decode() and done.stderr.count(b"\n") == 1, done
    for arguments, text in ((["--ts"], "explicit job IDs must be passed using --job when --ts is enabled"),
                            (["--starttime", "soon"], "failed to parse --starttime flag: invalid time format 'soon'"),
                            (["--endtime=2024-02-30"], "failed to parse --endtime flag: invalid time format"),
                            (["-S", "now", "-E", "yesterday"], "--starttime is after --endtime"),
                            (["-o", "jobidd"], "did you mean 'jobid'"), (["--account-filter", "("], "--account-filter: missing )"),
                            (["--config=/etc/passwd"], "cacct: error: failed to parse CLI flags: unknown long flag '--config'"), (["-x"], "unknown short flag '-x'")):
        done = run(directory, *arguments)
        assert done.returncode == 1 and text in done.stderr.decode(), (arguments, done)
    os.unlink(directory + "/ceems/config.yml")
    assert "no configuration file config.yml" in run(directory).stderr.decode()
    assert run(directory, "--helpformat").returncode == 0


def documentation(directory):
    """The example of the page gives what the page shows, its other commands work, and so does the example of a configuration."""
    with open(os.path.join(ROOT, "docs", "cacct.md"), encoding="utf-8") as f:
        page = f.read()
    with open(os.path.join(ROOT, "packaging", "config", "cacct.yml"), encoding="utf-8") as f:
        example = f.read()
    tsdb = Tsdb()
    with FakeHttp(lambda path, *rest: api_answer(path, *rest, units=UNITS[:1])) as api, FakeHttp(tsdb) as server:
        password = write(directory + "/password", "geheim\n")
        example = example.replace("http://localhost:9020", api.url).replace("http://localhost:9030", server.url)
        write(directory + "/ceems/config.yml", example.replace("/etc/ceems/cacct-password", password))
        command, shown = re.search(r"^\$ (cacct .*)\n((?:[┌│├└].*\n)+)", page, re.M).groups()
        done = run(directory, *command.split()[1:], cwd=directory)
        assert done.stdout.decode() == shown, done.stdout.decode()
        commands = re.findall(r"^\| .* \| `cacct ?([^`]*)` \|$", page, re.M)
        write(directory + "/job.sh", "#!/bin/sh\nhostname\n")  # for `cacct check`
        assert len(commands) > 6, commands
        for arguments in commands:
            done = run(directory, *arguments.split(), cwd=directory)
            assert done.returncode == 0, (arguments, done)
        assert tsdb.asked == 10 and len(files_of(directory + "/curves")) > 1, tsdb.asked


LISTED = """tsdb:
  web: {url: %s}
  scrape_interval: 30s
  evaluation_interval: 1m
%s  queries:
    - {name: power, title: Power, help: mean power of a job, kind: instant,
       query: 'avg_over_time(power{uuid=~"{{.UUIDs}}"}[{{.Range}}])'}
    - {name: curve, help: power over time, query: 'power{uuid=~"{{.UUIDs}}"}', kind: range}
logging: {enabled: true, format: json, directory: '%s'}
"""


def later(directory):
    """The configuration of later releases: instant queries, their limits, a filter of accounts, and a log in JSON."""
    log = directory + "/log"
    os.mkdir(log)
    many = {"units": UNITS}
    tsdb = Tsdb()

    def instant(path, query, body):
        if not path.endswith("/query"):
            return tsdb(path, query, body)
        many["asked"] = query
        if many.get("broken"):
            return 503, "text/plain", b"starting"
        result = [{"metric": {"uuid": "7"}, "value": [1, "125.5"]}, {"metric": {"uuid": "9"}, "value": [1, "1"]}]
        return 200, "application/json", json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()

    def lines():
        with open(log + "/cacct.json", encoding="utf-8") as text:
            return [json.loads(line) for line in text]

    with FakeHttp(lambda path, *rest: api_answer(path, *rest, units=many["units"])) as api, FakeHttp(instant) as server:
        write(directory + "/ceems/config.yml", config(api) + LISTED % (server.url, "", log))
        done = run(directory, "--csv", "-o", "jobid,power", "-S", "2024-01-02", "-E", "2024-01-03")
        assert list(csv.reader(io.StringIO(done.stdout.decode())))[:4] == [
            ["Job ID", "Power"], ["", ""], ["7", "125.500000"], ["8", ""]], done
        assert many["asked"] == {"query": ['avg_over_time(power{uuid=~"7|8"}[86400s])'], "time": ["1704240000"]}, many["asked"]
        assert server.headers[-1]["X-Grafana-User"] == OWN and server.headers[-1]["X-Ceems-Cluster-Id"] == "c0"
        # The IDs that its values are found by are asked for even if they are not shown.
        done = run(directory, "-P", "-o", "power")
        assert done.stdout == b"power\n125.500000\n\n" and "uuid" in api.seen[-2][2]["field"], done
        many["units"] = UNITS[:1]
        done = run(directory, "--job=7", "--ts.metrics=curve", "-o", "account", "--ts.out-dir=%s/named" % directory)
        assert done.returncode == 0 and len(files_of(directory + "/named")) == 2, done
        many["units"] = [dict(UNITS[0], started_at_ts=2 ** 63 - 1, ended_at_ts=-2 ** 63)]  # a server that makes no sense
        done = run(directory, "--job=7", "--ts", "--ts.out-dir=%s/none" % directory)
        assert done.returncode == 0 and list(files_of(directory + "/none")) == ["metadata.json"], done
        many["units"] = UNITS
        done = run(directory, "--ts.metrics=curve")
        assert done.returncode == 1 and b"explicit job IDs" in done.stderr, done
        help_text = run(directory, "--helpformat").stdout.decode()
        assert "mean power of a job" in help_text and re.search("curve +power over time", help_text), help_text
        units = json.loads(run(directory, "--json", "--long").stdout)["units"]
        assert units[0]["power"] == {"": 125.5} and not units[1].get("power"), units
        server.seen.clear()
        assert run(directory).returncode == 0 and not server.seen, "queries that are not shown are not asked"
        many["broken"] = True
        done = run(directory, "-P", "-o", "jobid,power")
        assert done.stdout == b"jobID|power\n7|\n8|\n" and b"failed to fetch power: " in done.stderr, done

        for pattern, shown in (("^phys", ["7"]), ("ics$|^bio", ["7", "8"]), ("PHYS", []), ("", ["7", "8"])):
            done = run(directory, "-nP", "-o", "jobid", "--account-filter", pattern)
            assert done.returncode == 0 and done.stdout.decode().split() == shown, (pattern, done)
            for _, path, query in api.seen[-2:] if pattern else ():
                assert "project" in query["field"], (path, query)  # it decides, although it is not shown
        sums = json.loads(run(directory, "--json", "--account-filter", "^bio").stdout)
        assert [unit["uuid"] for unit in sums["units"]] == ["8"] and [usage["project"] for usage in sums["usage"]] == ["biology"], sums

        text = config(api) + LISTED % (server.url, "", log)
        for limit, count, fits in (("", 10, True), ("", 11, False), ("  max_units: 3\n", 3, True), ("  max_units: 3\n", 4, False),
                                   ("  max_units_for_range_queries: 2\n", 3, False)):
            write(directory + "/ceems/config.yml", config(api) + LISTED % (server.url, limit, log))
            many["units"] = [dict(UNITS[0], uuid=str(i)) for i in range(count)]
            done = run(directory, "--job=7", "--ts", "--ts.out-dir=%s/limit" % directory)
            expected = "time series of at most %s jobs can be fetched at a time, got %d\n" % (limit.split()[-1] if limit else 10, count)
            assert (done.returncode == 0) == fits and (fits or expected in done.stderr.decode()), (limit, count, done)
            shutil.rmtree(directory + "/limit", ignore_errors=True)
        many["units"] = UNITS[:1]
        write(directory + "/ceems/config.yml", text)
        for end, fits in (("2024-01-08", True), ("2024-01-08T00:00:01", False)):
            done = run(directory, "--job=7", "--ts", "--ts.out-dir=%s/limit" % directory, "-S", "2024-01-01", "-E", end)
            assert (done.returncode == 0) == fits, done
            assert fits or "--starttime and --endtime may be at most 7 days apart" in done.stderr.decode(), done

        os.unlink(log + "/cacct.json")
        run(directory, "-A", "a,b", "-j", "7", "--user", "all", "-S", "2024-01-01", "-E", "2024-01-02")
        line, = lines()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time")), line
        assert line.pop("source", "cacct") == "cacct"
        assert line == {"level": "INFO", "msg": "request", "user": OWN, "uid": str(os.getuid()), "gid": str(os.getgid()),
                        "from": "1704067200", "to": "1704153600", "accounts": "a,b", "jobs": "7", "users": "all", "ts": "false"}, line
        assert os.stat(log + "/cacct.json").st_mode & 0o777 == 0o660
        api.handler = lambda *_: (403, "text/plain", b"")
        assert run(directory).returncode == 1
        assert lines()[-1]["level"] == "ERROR" and lines()[-1]["msg"] == "request failed", lines()
        shutil.rmtree(log)
        done = run(directory)
        assert done.returncode == 1 and "logging.directory: open %s/cacct.json" % log in done.stderr.decode(), done


class Tsdb:
    """Series `power` of a number of points, whose value is its time."""

    def __init__(self, series=1):
        self.series = series
        self.asked = 0
        self.hang_at = 0

    def __call__(self, path, query, _body):
        if not path.endswith("/query_range"):
            return 404, "text/plain", b""
        self.asked += 1
        if self.asked == self.hang_at:
            time.sleep(60)
        start, end, step = (float(query[name][0]) for name in ("start", "end", "step"))
        times = [start + i * step for i in range(int((end - start) / step) + 1)]
        values = ",".join('[%d,"%d"]' % (t, t) for t in times)
        result = ",".join('{"metric":{"__name__":"power","uuid":"7","core":"%d"},"values":[%s]}' % (i, values)
                          for i in range(self.series))
        body = '{"status":"success","data":{"resultType":"matrix","result":[%s]}}' % result
        return 200, "application/json", body.encode()


def files_of(directory):
    return {name: open(os.path.join(directory, name), "rb").read() for name in os.listdir(directory)}


def peak_memory(arguments, directory):
    """Peak resident memory in bytes of a run that succeeds. It is read while the run lasts, because ru_maxrss begins with what this
    program has."""
    # Builds with sanitizers keep freed memory for a while.
    environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory, "TZ": "UTC", "ASAN_OPTIONS": "quarantine_size_mb=4"}
    most = 0
    with subprocess.Popen([CACCT] + arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            with open("/proc/%d/status" % process.pid, encoding="ascii") as status:
                found = re.search(r"VmHWM:\s+(\d+)", status.read())
            most = max(most, int(found.group(1)) * 1024 if found else 0)
            time.sleep(0.01)
        assert process.returncode == 0 and most > 0, process.stderr.read()
    return most


def dumps(directory):
    """A dump that is killed goes on, with the same files in the end; ten times the points take the same memory."""
    length = {"seconds": 300000}

    def answer(path, query, body):
        unit = dict(UNITS[0], ended_at_ts=1700000000000 + 1000 * length["seconds"])
        if path.startswith("/api/v1/units"):
            return 200, "application/json", json.dumps({"status": "success", "data": [unit]}).encode()
        return api_answer(path, query, body)

    whole, parts = directory + "/whole", directory + "/parts"
    tsdb = Tsdb()
    with FakeHttp(answer) as api, FakeHttp(tsdb) as server:
        write(directory + "/ceems/config.yml", config(api, server))
        done = run(directory, "--job=7", "--ts", "--ts.out-dir=" + whole)
        assert done.returncode == 0 and b"time series data saved to directory" in done.stderr, done
        assert [h for h in server.headers if h.get("X-Ceems-Cluster-Id") != "c0" or "X-Grafana-User" not in h] == []
        expected = files_of(whole)
        assert sorted(os.path.splitext(name)[1] for name in expected) == [".csv", ".json"]
        text = next(data for name, data in expected.items() if name.endswith(".csv")).decode().splitlines()
        assert len(text) == 1 + 30001 and text[1] == "1700000000,1700000000" and text[-1] == "1700300000,1700300000"
        asked = tsdb.asked
        for at in range(2, asked + 1):
            shutil.rmtree(parts, ignore_errors=True)
            tsdb.asked, tsdb.hang_at = 0, at
            environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory, "TZ": "UTC"}
            process = subprocess.Popen([CACCT, "--job=7", "--ts", "--ts.out-dir=" + parts], env=environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_until("request %d" % at, lambda at=at: tsdb.asked >= at)
            process.send_signal(signal.SIGKILL)
            process.wait()
            tsdb.hang_at = 0
            done = run(directory, "--job=7", "--ts", "--ts.out-dir=" + parts)
            assert done.returncode == 0 and b"(continued)" in done.stderr, done
            assert files_of(parts) == expected, at
        tsdb.series = 20
        length["seconds"] = 100000
        small = peak_memory(["--job=7", "--ts", "--ts.out-dir=" + directory + "/small"], directory)
        length["seconds"] = 1000000
        large = peak_memory(["--job=7", "--ts", "--ts.out-dir=" + directory + "/large"], directory)
        samples = sum(data.count(b"\n") - 1 for name, data in files_of(directory + "/large").items() if name.endswith("csv"))
        assert samples == 20 * 100001, samples
        print("  memory of %d samples / of a tenth: %.2f" % (samples, large / small))
        assert large < 1.3 * small + (8 << 20), (small, large)


def as_ada(program, *arguments, env=None, **more):
    """Runs a program as the user ada of the changed /etc."""
    def become():
        os.setgroups([])
        os.setresgid(64001, 64001, 64001)
        os.setresuid(64001, 64001, 64001)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/home/ada"}
    environment.update(env or {})
    more.setdefault("capture_output", True)
    return subprocess.run([program] + list(arguments), env=environment, preexec_fn=become, timeout=60, **more)


def attacks(directory):
    """In a mount namespace with its own /etc: a copy that belongs to the group `ceems`, set-group-ID, and another that is set-user-ID."""
    os.makedirs("/etc/ceems", exist_ok=True)
    with open("/etc/passwd", "a") as f:
        f.write("ada:x:64001:64001:Ada Other Name,,,:/home/ada:/bin/sh\nceems:x:64100:64100::/:/bin/false\n")
    with open("/etc/group", "a") as f:
        f.write("ceems:x:64100:\n")
    evil = directory + "/evil"
    with FakeHttp(api_answer) as api, FakeHttp(api_answer) as trap:
        write(evil + "/ceems/config.yml", config(trap))
        write(evil + "/.config/ceems/config.yml", config(trap))
        for number, mode in enumerate((0o2755, 0o4755, 0o6755)):
            copy, logs = "%s/cacct%d" % (directory, number), "%s/logs%d" % (directory, number)
            os.makedirs(logs)
            os.chown(logs, 64100, 64100)
            os.chmod(logs, 0o770)
            write("/etc/ceems/config.yml", config(api) + "logging: {enabled: true, directory: %s}\n" % logs, 0o640)
            os.chown("/etc/ceems/config.yml", 64100, 64100)
            shutil.copy(CACCT, copy)
            os.chown(copy, 64100, 64100)
            os.chmod(copy, mode)
            hostile = {"USER": "root", "LOGNAME": "root", "HOME": evil, "XDG_CONFIG_HOME": evil, "http_proxy": trap.url,
                       "ALL_PROXY": trap.url, "TZ": "/etc/shadow", "COLUMNS": "999999999", "LD_PRELOAD": "/nonexistent/evil.so",
                       "LD_LIBRARY_PATH": evil, "LD_DEBUG": "all", "LD_AUDIT": evil, "SSLKEYLOGFILE": evil + "/keys", "LC_ALL": "xx",
                       "GCONV_PATH": evil, "CURL_HOME": evil, "OPENSSL_CONF": evil, "MALLOC_TRACE": evil + "/trace", "PAGER": evil}
            os.chmod(evil, 0o777)
            done = as_ada(copy, "--long", env=hostile)
            assert done.returncode == 0 and b"\x1b" not in done.stdout and not done.stderr, done
            assert api.headers[-1]["X-Grafana-User"] == "ada", api.headers[-1]
            assert api.headers[-1]["Authorization"].startswith("Basic ") and trap.seen == []
            assert sorted(os.listdir(evil)) == [".config", "ceems"], os.listdir(evil)
            # A file of arguments is read with the user's rights, so its error quotes nothing.
            done = as_ada(copy, "@/etc/ceems/config.yml")
            assert done.returncode == 1 and b"Permission denied" in done.stderr and b"geheim" not in done.stderr, done
            # Files are written with the user's rights: `logs` is open to the group ceems only.
            done = as_ada(copy, "--job=7", "--ts", "--ts.out-dir=" + logs + "/x")
            assert not os.path.exists(logs + "/x")
            # Closed descriptors: nothing lands in the log.
            for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
                as_ada("/bin/sh", "-c", "exec %s --job=7 %s" % (copy, closed))
            log = open(logs + "/cacct.log").read()
            assert "│" not in log and all(line.startswith("time=") for line in log.splitlines()), log
            assert 'user=ada uid=64001 gid=64001' in log and "geheim" not in log, log
            assert os.stat(logs + "/cacct.log").st_mode & 0o777 == 0o660
        # While a request hangs, the user cannot look into the program's memory.
        write("/etc/ceems/config.yml", config(api), 0o640)
        os.chown("/etc/ceems/config.yml", 64100, 64100)
        release = []
        api.handler = lambda *a: wait_until("release", lambda: release) and api_answer(*a)
        copy = directory + "/cacct0"
        process = subprocess.Popen([copy], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: (os.setgroups([]), os.setresgid(64001, 64001, 64001), os.setresuid(64001, 64001, 64001)))
        count = len(api.seen)
        wait_until("the request", lambda: len(api.seen) > count or process.poll() is not None)
        assert process.poll() is None
        with open("/proc/%d/status" % process.pid) as f:
            status = f.read()
        assert re.search(r"^Uid:\t64001\t64001\t64001\t64001$", status, re.M) and \
            re.search(r"^Gid:\t64001\t64001\t64001\t64001$", status, re.M), status
        assert os.stat("/proc/%d/mem" % process.pid).st_uid == 0, "the program may be traced"
        done = as_ada("/bin/cat", "/proc/%d/maps" % process.pid)
        assert done.returncode != 0, done
        release.append(True)
        assert process.wait() == 0
        # A broken configuration is not quoted.
        write("/etc/ceems/config.yml", "ceems_api_server: {web: {geheim: 1}}\n", 0o640)
        os.chown("/etc/ceems/config.yml", 64100, 64100)
        done = as_ada(copy)
        assert done.returncode == 1 and b"geheim" not in done.stderr and b"cannot be used" in done.stderr, done


def attacked(_directory):
    """Runs attacks() in a namespace of its own."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("SKIPPED attacks: needs root and unshare")
        return
    with scratch("ceems-cacct-etc-") as layers:
        for name in ("upper", "work"):
            os.mkdir(os.path.join(layers, name))
        options = "lowerdir=/etc,upperdir=%s/upper,workdir=%s/work" % (layers, layers)
        inside = ["unshare", "-m", "--propagation", "private", "sh", "-c",
                  "mount -t overlay overlay -o \"$0\" /etc || exit 77; exec \"$@\"", options, sys.executable, os.path.abspath(__file__)]
        status = subprocess.run(inside + ["--inside"], check=False).returncode
        if status == 77:
            print("SKIPPED attacks: this kernel allows no overlay file system here")
        else:
            assert status == 0, "attacks failed"


def main():
    if sys.argv[1:] == ["--inside"]:
        with scratch("ceems-cacct-") as directory:
            attacks(directory)
        return 0
    return run_tests((formats, errors, documentation, later, dumps, attacked), "ceems-cacct-")


if __name__ == "__main__":
    sys.exit(main())
