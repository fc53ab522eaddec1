#!/usr/bin/env python3
"""The programs but the exporter compared with the tables of programs.md, row by row."""

import base64
import http.client
import http.server
import json
import os
import re
import shlex
import subprocess
import sys
import threading

from harness import BIN, FakeHttp, Program, ROOT, free_port, run_tests, write

OWN = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
PAGE = os.path.join(ROOT, "tests", "integration", "programs.md")


def table(title):
    """The rows of the table below a title, as dicts."""
    with open(PAGE, encoding="utf-8") as f:
        section = f.read().split("\n## %s\n" % title)[1].split("\n## ")[0]
    lines = [[cell.strip().replace("&nbsp;", " ") for cell in line[1:-1].split("|")]
             for line in section.splitlines() if line.startswith("|")]
    rows = [dict(zip(lines[0], line)) for line in lines[2:]]
    assert rows and all(len(line) == len(lines[0]) for line in lines), (title, [line for line in lines if len(line) != len(lines[0])])
    return rows


def listed(cell):
    return [part.strip() for part in cell.split(",") if part.strip()]


def run(words, **more):
    environment = {"PATH": "/usr/bin:/bin", "TZ": "UTC", "COLUMNS": "400"}
    environment.update(more.pop("env", {}))
    return subprocess.run([os.path.join(BIN, words[0])] + list(words[1:]), env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, **more)


def one_of_each(row, prefix="--"):
    return prefix + row["Flag"] if row["Value"] == "switch" else "--%s=%s" % (row["Flag"], row["Example"])


def flags(_directory):
    """Every flag is accepted as often as it may be, and the help texts name those that are not hidden, with their defaults."""
    commands = {}
    for row in table("Flags"):
        commands.setdefault(row["Program"], []).append(row)
    for command, rows in commands.items():
        words = command.split()
        done = run(words + ["--help"])
        assert done.returncode == 0 and not done.stderr, (command, done)
        shown = {name: (no, value, rest) for no, name, value, rest in
                 re.findall(r"^  (?:-\w, )?--(\[no-\])?([\w.-]+)(?:=(.*?))?(?:$|  )(.*(?:\n {10,}.*)*)", done.stdout, re.M)}
        shown.pop("help"), shown.pop("version")
        hidden = {row["Flag"] for row in rows if "hidden" in row["Since"]}
        assert set(shown) == {row["Flag"] for row in rows} - hidden, (command, set(shown) ^ ({row["Flag"] for row in rows} - hidden))
        for row in rows:
            if row["Flag"] in shown:
                no, value, text = shown[row["Flag"]]
                assert bool(no) == (row["Value"] == "switch"), (command, row)
                assert value.endswith(" ...") == (row["Value"] == "many"), (command, row, value)
                default = OWN if row["Default"] == "nobody" and os.geteuid() != 0 else row["Default"]
                assert not default or value.split(" ")[0].strip('"') == default, (command, row, value)
                assert not row["Environment"] or "($%s)" % row["Environment"] in text, (command, row, text)
            if row["Value"] == "one":
                done = run(words + [one_of_each(row), one_of_each(row), "--help"])
                assert done.returncode == 1 and "cannot be repeated" in done.stderr, (command, row, done)
        # Flags and aliases of the same value would be a repetition.
        for chosen in (lambda row: "hidden" not in row["Since"], lambda row: "hidden" in row["Since"]):
            given = [one_of_each(row) for row in rows if chosen(row)] + [one_of_each(row) for row in rows if chosen(row) and row["Value"] == "many"]
            assert run(words + given + ["--help"]).returncode == 0, (command, given, run(words + given + ["--help"]).stderr)
        done = run(words + [one_of_each(row, "--no-") for row in rows if row["Value"] == "switch"] + ["--help"])
        assert done.returncode == 0, (command, done)
    for program in {command.split()[0] for command in commands}:
        for flag in ("--help", "-h", "--help-long", "--help-man", "--version", "--completion-script-bash", "--completion-script-zsh"):
            done = run([program, flag])
            assert done.returncode == 0 and done.stdout and not done.stderr, (program, flag, done)
    with_flags = run(["ceems_tool", "--help-long"]).stdout
    for command, rows in commands.items():
        if command.startswith("ceems_tool"):
            assert command[len("ceems_tool "):] + " [<flags>]" in with_flags, command
            assert [row for row in rows if "hidden" not in row["Since"] and not re.search(r"^ +--(\[no-\])?%s\b" % re.escape(row["Flag"]),
                                                                                     with_flags, re.M)] == [], command


METRICS = {"ratio": {"global": 12.3456}, "amount": {"total": 1234567.25}, "whole": {"walltime": 7.0}}
LONG = "abcdefghijklmnopqrstuvwxyz"


def pieces(text, width):
    return [text[i:i + width] for i in range(0, len(text), width)]


def cells(line):
    return [cell[1:-1].rstrip() for cell in re.split("│", line)[1:-1]]


def columns(directory):
    """Names, titles, widths, order and number formats of every column, in the table and in the requests."""
    rows = table("Columns of cacct")
    unit = {row["Tag"]: LONG if row["Kind"] == "text" else METRICS[row["Kind"]] for row in rows}
    usage = dict(unit, username=OWN, num_units=3, total_time_seconds={"walltime": 93784})

    def answer(path, query, _body):
        record = unit if path == "/api/v1/units" else usage
        data = [{tag: value for tag, value in record.items() if tag in query["field"]}]
        return 200, "application/json", json.dumps({"status": "success", "data": data}).encode()

    def cacct(*arguments):
        api.seen.clear()
        done = run(["cacct", *arguments], env={"XDG_CONFIG_HOME": directory})
        assert done.returncode == 0 and not done.stderr, (arguments, done)
        return done.stdout.splitlines()

    with FakeHttp(answer) as api:
        write(directory + "/ceems/config.yml", "ceems_api_server: {cluster_id: c0, web: {url: '%s'}}\n" % api.url)
        for arguments, shown in (([], ("always",)), (["--long"], ("always", "long")),
                                 (["--long", "--format=jobid"], ("always", "long")),
                                 (["--format=" + ",".join(row["Field"].upper() for row in reversed(rows))], ("always", "long", "named"))):
            wanted = [row for row in rows if row["Shown"] in shown]
            lines = [cells(line) for line in cacct(*arguments) if line.startswith("│")]
            # The widest piece of a column is what it is wide.
            for at, row in enumerate(wanted):
                least, most = int(row["Min"]), int(row["Max"])
                value = {"text": LONG, "ratio": "12.35", "amount": "1234567.250000", "whole": "7"}[row["Kind"]]
                title, text = pieces(row["Title"].upper(), most), pieces(value, most)
                column = [line[at] for line in lines if len(line) == len(wanted)]
                assert column[:len(title)] == title, (row, column)
                body = column[max(len(pieces(r["Title"], int(r["Max"]))) for r in wanted) + 1:]  # behind titles and sub-titles
                assert body[:len(text)] == text, (row, body)
                top = cacct(*arguments)[0][1:-1].split("┬")
                width = max(len(piece) for piece in title + text)
                if row["Field"] == "elapsed":
                    width = max(width, len("1-02:03:04"))
                if row["Field"] == "jobID":
                    width = max(width, len("Summary"))
                assert len(top[at]) == max(least, width) + 2, (row, top[at])
            (_, path, query), (_, usage_path, usage_query) = api.seen[-2:]
            assert (path, usage_path) == ("/api/v1/units", "/api/v1/usage/current"), api.seen
            tags = [row["Tag"] for row in wanted]
            for_sums = ["project", "username", "groupname", "total_time_seconds", "allocation", "started_at_ts", "ended_at_ts"]
            assert set(query["field"]) == set(tags + for_sums), query
            assert set(usage_query["field"]) == set(tags + for_sums[:-2] + ["num_units"]), usage_query
            assert query["cluster_id"] == ["c0"] and int(query["to"][0]) >= int(query["from"][0])
            footer = lines[-1] if len(lines[-1]) == len(wanted) else []
            if not arguments:
                assert "1-02:03:04" in [line[2] for line in lines if len(line) == len(wanted)], lines
                assert "3" in [line[0] for line in lines if len(line) == len(wanted)], footer
        csv = cacct("--csv", "--long")
        assert csv[0] == ",".join(row["Title"] for row in rows if row["Shown"] != "named"), csv
        # As in the reference, the first column stays, with the word Summary in it.
        for names, shown in (("account", ["Job ID", "Account"]), ("hostenergy,user", ["Job ID", "User", "Host Energy(kWh)"])):
            csv = cacct("--csv", "--format=" + names)
            assert csv[0].split(",") == shown and csv[2].startswith(",") and csv[3].startswith("Summary,"), csv
            assert "uuid" not in api.seen[-2][2]["field"], api.seen
        help_rows = [line.split("|")[1].strip() for line in cacct("--helpformat") if line.startswith("|")]
        assert help_rows == ["FIELD"] + sorted((row["Field"] for row in rows), key=str.lower), help_rows


class FakeProm:
    """The part of Prometheus' API that ceems_tool asks, with series of the test."""

    def __init__(self, series):
        self.series = series

    def matches(self, selector):
        name, matchers = re.fullmatch(r"([\w:]*)(?:\{(.*)\})?", selector).groups()
        wanted = re.findall(r'(\w+)(=~?)"([^"]*)"', matchers or "") + ([("__name__", "=", name)] if name else [])
        return [s for s in self.series if all(s.get(label, "") == value if op == "=" else re.fullmatch(value, s.get(label, ""))
                                              for label, op, value in wanted)]

    def __call__(self, path, query, _body):
        found = [s for selector in query.get("match[]", []) for s in self.matches(selector)]
        if path == "/api/v1/status/config":
            data = {"yaml": "global:\n  scrape_interval: 15s\n  evaluation_interval: 20s\n"}
        elif path == "/api/v1/targets":
            data = {"activeTargets": [{"discoveredLabels": {"job": "cpu", "__scrape_interval__": "10s"}, "labels": {"job": "cpu"},
                                       "health": "up", "scrapeUrl": "http://n1:9010/metrics"}], "droppedTargets": []}
        elif path == "/api/v1/series":
            data = found
        elif path == "/api/v1/query":
            data = {"resultType": "vector", "result": [{"metric": {"instancehost": "n1"}, "value": [1, "100"]}]}
        else:
            label = path.split("/")[-2]
            data = sorted({s[label] for s in found if label in s})
        return 200, "application/json", json.dumps({"status": "success", "data": data}).encode()


def host_series(names):
    more = {"ceems_redfish": {"chassis": "c1"}, "ceems_hwmon": {"chip": "p1", "chip_name": "power_meter"}}
    return [dict({"__name__": name, "job": "cpu", "instance": "n1:9010"}, **next((labels for start, labels in more.items()
                                                                            if name.startswith(start)), {})) for name in names]


def gpu_series(names):
    return host_series(["ceems_ipmi_dcmi_current_watts", "ceems_compute_unit_gpu_index_flag"]) + [
        {"__name__": name, "job": "gpu", "instance": "n1:9400"} for name in names]


FACTOR = {"__name__": "ceems_emissions_gCo2_kWh", "provider": "owid", "country_code": "FR", "job": "e", "instance": "n0:9010"}


def rule_groups(directory, series, *arguments):
    """{file: [(group, interval, [record])]} of create-recording-rules."""
    rules = os.path.join(directory, "rules")
    for name in os.listdir(rules) if os.path.isdir(rules) else ():
        os.unlink(os.path.join(rules, name))
    with FakeHttp(FakeProm(series + [FACTOR])) as prom:
        done = run(["ceems_tool", "tsdb", "create-recording-rules", "--url=" + prom.url, "--country-code=FR", "--output-dir=" + rules, *arguments])
    assert done.returncode == 0 and not done.stdout, done
    found = {}
    for name in os.listdir(rules):
        path = os.path.join(rules, name)
        assert os.stat(path).st_mode & 0o777 == 0o600 and os.stat(rules).st_mode & 0o777 == 0o700
        with open(path, encoding="utf-8") as f:
            text = f.read()
        assert text.startswith("---\ngroups:\n")
        assert ("generating recording rules for job cpu in file cpu.rules" if name == "cpu.rules" else
                "generating recording rules for GPU for job gpu in file gpu-gpu.rules") in done.stderr, done
        found[name] = [(group, interval, re.findall(r"record: (\S+)", rest)) for group, interval, rest in
                       re.findall(r"- name: (\S+)\n    interval: (\S+)\n    rules:\n((?:      .*\n)*)", text)]
    return found


def rules(directory):
    """Files, groups, intervals and records of each family."""
    rows = {row["Family"]: row for row in table("Rule families")}
    before, behind, job = (listed(rows.pop("every family, " + part)["Records"]) for part in ("before", "behind", "job"))
    for family, row in rows.items():
        found = rule_groups(directory, host_series(listed(row["Series"])))
        expected = {"cpu.rules": [("compute-unit-rules-cpu", "20s", before + listed(row["Records"]) + behind), ("host-agg-rules-cpu", "40s", job)]}
        assert found == expected, (family, found, expected)
    for row in table("Rules for GPUs"):
        found = rule_groups(directory, gpu_series(listed(row["Series"])), "--record-names=" + row["Names"])
        expected = [("compute-unit-gpu-rules-gpu", "20s", listed(row["Records of units"])),
                    ("host-agg-gpu-rules-gpu", "1m0s", listed(row["Records of the job"]))]
        assert set(found) == {"cpu.rules", "gpu-gpu.rules"} and found["gpu-gpu.rules"] == expected, (row, found, expected)


def traffic(directory):
    """Records of profiling, of input and output, and of the network."""
    for row in table("Records of profiling, input and output, and network"):
        series = gpu_series(["DCGM_FI_DEV_POWER_USAGE_INSTANT"] + ([row["Series"]] if row["Series"].startswith("DCGM") else []))
        series += host_series([row["Series"]] if row["Series"].startswith("ceems") else [])
        found = rule_groups(directory, series, "--record-names=" + row["Names"])
        groups = {group: records for groups in found.values() for group, _, records in groups}
        kind = "io" if "_io_" in row["Records"] else "net"
        if row["Series"].startswith("ceems"):
            records = groups.pop("compute-unit-%s-rules-cpu" % kind) + groups.pop("host-agg-%s-rules-cpu" % kind)
        else:
            records = groups["compute-unit-gpu-rules-gpu"][5:]
        assert records == listed(row["Records"]), (row, records)
        assert set(groups) == {"compute-unit-rules-cpu", "host-agg-rules-cpu", "compute-unit-gpu-rules-gpu", "host-agg-gpu-rules-gpu"}, groups


def updater_queries(_directory):
    """Every metric alone, and the text with all of them byte by byte except for the queries."""
    rows = table("Queries of the updater")
    all_series = [{"__name__": row["Record"], "uuid": "1", "provider": re.sub("_total$", "", row["Sub-metric"])} for row in rows]
    for row, series in zip(rows, all_series):
        with FakeHttp(FakeProm([series])) as prom:
            done = run(["ceems_tool", "tsdb", "create-ceems-tsdb-updater-queries", "--url=" + prom.url])
        text = done.stderr
        start = "Queries for TSDB updater:\n---\n\nqueries:\n  %s:\n    %s: " % (row["Metric"], row["Sub-metric"])
        assert done.returncode == 0 and not done.stdout and text.startswith(start) and text.endswith("\n\n\n\n"), done
        query = text[len(start):].rstrip("\n")
        assert "\n" not in query and row["Record"] + "{" in query, query
        assert [part for part in listed(row["Parts"]) if part not in query] == [], (row, query)
    with FakeHttp(FakeProm(all_series)) as prom:
        text = run(["ceems_tool", "tsdb", "create-ceems-tsdb-updater-queries", "--url=" + prom.url]).stderr
    expected, last = "Queries for TSDB updater:\n---\n\nqueries:", None
    for row in sorted(rows, key=lambda row: (row["Metric"], row["Sub-metric"])):
        expected += "" if row["Metric"] == last else ("\n" if last else "") + "\n  %s:" % row["Metric"]
        expected += "\n    %s: QUERY\n" % row["Sub-metric"]
        last = row["Metric"]
    assert re.sub(r"(?m)^(    \w+: ).*", r"\1QUERY", text) == expected + "\n\n\n", text


def messages(directory):
    """What is printed on which mistake, and with which status."""
    write(directory + "/web.yml", "basic_auth_users:\n  ceems: $2y$10$GQUblMhmbhVOvwQ4wSL2C.MFA.wVlKrROdWT92a27GhfrjfHvSy96\n")
    write(directory + "/broken.yml", "no_such_section: 1\n")
    write(directory + "/no-ca.yml", "tls_config: {ca_file: /nonexistent/ca.pem}\n")
    write(directory + "/http.yml", "basic_auth: {username: u, password: p}\n")
    write(directory + "/bad-target.yml", "redfish_proxy:\n  targets:\n    - {host_ip_addrs: [10.0.0.1], url: 'http:1.2.3.4:80'}\n")
    with FakeHttp(lambda path, *_: (200 if path == "/health" else 404, "text/plain", b"healthy")) as api, \
            FakeHttp(lambda *_: (503, "text/plain", b"sick")) as sick, FakeHttp(FakeProm([])) as prom:
        names = {"dir": directory, "api": api.url, "sick": sick.url, "prom": prom.url, "api-host": api.url[len("http://"):]}
        for row in table("Messages"):
            command, text = (re.sub(r"\{([\w-]+)\}", lambda match: names[match.group(1)], row[key]) for key in ("Command", "Text"))
            done = run(shlex.split(command), env={"XDG_CONFIG_HOME": directory}, cwd=directory)
            assert done.returncode == int(row["Status"]) and text in done.stderr and not done.stdout, (command, text, done)


def configuration(directory):
    """Keys and forms of configuration files, and mistakes in them."""
    rows = table("Configuration")
    files = [write("%s/%03d.yml" % (directory, number), row["Configuration"] + "\n") for number, row in enumerate(rows)]
    done = run(["ceems_tool", "check", "config", "--json", *files])
    checks = json.loads(done.stdout)
    assert done.returncode == 1 and len(checks) == len(rows), done
    for row, check in zip(rows, checks):
        assert check["programs"] == [row["Program"]], (row, check)
        error = check.get("error", "")
        assert row["Refused"] in error if row["Refused"] else not error, (row, check)


def hostile_names(directory):
    """Names from Prometheus are not obeyed by the terminal, and rules of such jobs are still valid."""
    names = ("a/b \x1b[31m\"\\", "..", "\u202e", "- {x}: y")
    series = [dict(s, job=name) for name in names for s in host_series(["ceems_compute_units", "ceems_redfish_current_watts"])]
    series += [dict(s, job="\x1b]0;x\x07 idle") for s in host_series(["ceems_compute_units"])]
    with FakeHttp(FakeProm(series)) as prom:
        done = run(["ceems_tool", "tsdb", "create-recording-rules", "--url=" + prom.url, "--output-dir=" + directory + "/r"])
    assert done.returncode == 0 and "idle' is skipped" in done.stderr, done
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", done.stderr), done.stderr
    files = sorted(os.listdir(directory + "/r"))
    assert len(files) == 4 and not [name for name in files if not re.fullmatch(r"[\w.-]+\.rules", name) or name.startswith(".")], files


class AnyMethod(http.server.BaseHTTPRequestHandler):
    """A BMC that answers every method."""
    protocol_version = "HTTP/1.1"
    seen = []

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.path, self.headers))
        self.send_response(200)
        self.send_header("X-Bmc", "1")
        self.send_header("Content-Length", "2")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


# By these, some servers choose a path, a method or a host.
DROPPED = ("X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "Forwarded", "X-Forwarded-Host",
           "Cookie")


def resources(directory):
    """Methods and paths that redfish_proxy passes on without configuration, and what it makes of others."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), AnyMethod) as bmc:
        threading.Thread(target=bmc.serve_forever, daemon=True).start()
        port = free_port()
        with Program([os.path.join(BIN, "redfish_proxy"), "--web.listen-address=127.0.0.1:%d" % port], directory + "/log") as proxy:
            proxy.wait_ready("http://127.0.0.1:%d/health" % port)
            for row in table("Resources that redfish_proxy passes by default"):
                AnyMethod.seen.clear()
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
                connection.request(row["Method"], row["Path"], headers={
                    "X-Redfish-Url": "http://127.0.0.1:%d" % bmc.server_port, "Authorization": "Basic YTpi", "X-Auth-Token": "t",
                    "Host": "evil.example", **dict.fromkeys(DROPPED, "/redfish/v1/Systems")})
                answer = connection.getresponse()
                body = answer.read().decode()
                connection.close()
                got = "yes" if answer.headers["X-Bmc"] else str(answer.status)
                assert got == row["Passed"], (row, got, body)
                assert len(AnyMethod.seen) == (got == "yes"), (row, AnyMethod.seen)
                if got == "401" and re.fullmatch(r"[\w/]+", row["Path"]):
                    assert body == "access to api resource %s is not allowed" % row["Path"], body
                if got == "301":
                    assert re.fullmatch(r"/[^/].*", answer.headers["Location"]) and ".." not in answer.headers["Location"], row
                if got == "yes":
                    method, path, headers = AnyMethod.seen[0]
                    assert (method, path) == (row["Method"], row["Path"]), AnyMethod.seen
                    assert headers["User-Agent"] == "ceems/redfish_proxy" and headers["X-Auth-Token"] == "t", headers
                    assert not {name.lower() for name in headers} & {"authorization", "x-redfish-url", *map(str.lower, DROPPED)}, headers
                    assert headers["Host"] == "127.0.0.1:%d" % bmc.server_port, headers
                    assert headers["X-Forwarded-For"] == "127.0.0.1", headers
        bmc.shutdown()


REQUEST = {"uid": "u", "operation": "CREATE", "userInfo": {"username": "ann", "uid": "1"}, "object": {"apiVersion": "v1", "kind": "Pod"}}
HOOKS = "/ceems-admission-controller/"


def patch_text(path, by, uid):
    value = {"ceems.io/created-by": by, "ceems.io/created-by-uid": uid}
    return json.dumps([{"op": "add", "path": path, "from": "", "value": value}], separators=(",", ":"))


class Webhook:
    def __init__(self, directory):
        self.port = free_port()
        self.program = Program([os.path.join(BIN, "ceems_k8s_admission_controller"), "--web.listen-address=127.0.0.1:%d" % self.port],
                               directory + "/log")
        self.program.wait_ready("http://127.0.0.1:%d/health" % self.port)

    def ask(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        connection.request(method, path, body, {"Content-Type": kind} if kind else {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def __enter__(self):
        return self

    def __exit__(self, *more):
        self.program.__exit__(*more)


def review_of(text):
    """The body for the text of a row: what follows a hook or a type."""
    match = re.fullmatch(r"REVIEW(?: with (operation|object) ?(.*))?", text)
    if not match:
        return "" if text == "(empty)" else text
    request = dict(REQUEST)
    if match.group(1):
        request[match.group(1)] = json.loads(match.group(2)) if match.group(1) == "object" else match.group(2)
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def admission_requests(directory):
    """Paths, methods, envelopes and the bytes of answers."""
    names = {"{patch}": base64.b64encode(patch_text("/metadata/annotations", "ann", "1").encode()).decode()}
    with Webhook(directory) as webhook:
        for row in table("Requests to the admission controller"):
            text, expected = row["Request"], row["Body of the answer"]
            plain = re.fullmatch(r"([A-Z]+) (/\S*)", text)
            typed = re.fullmatch(r"(?:type (.*)|no type): (.*)", text)
            if plain:
                answer, body = webhook.ask(*plain.groups(), kind=None)
            elif typed:
                answer, body = webhook.ask("POST", HOOKS + "mutate", review_of(typed.group(2)), typed.group(1))
            else:
                hook = "validate" if text.startswith("validate ") else "mutate"
                answer, body = webhook.ask("POST", HOOKS + hook, review_of(text.replace("validate ", "")))
            assert answer.status == int(row["Status"]), (row, answer.status, body)
            expected = expected.replace("{patch}", names["{patch}"])
            if not expected and answer.status == 500:
                assert body == "", (row, body)
            elif expected.endswith("…"):
                assert body.startswith(expected[:-1]) and body.endswith("\n") and body.count("\n") == 1, (row, body)
            elif expected:
                assert body == expected.replace("\\n", "\n"), (row, body)
            if text == "GET /health":
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
            if answer.status == 200 and not plain:
                assert answer.headers["Content-Type"] == "application/json", answer.headers


def creators(directory):
    """The default rules, for both versions of reviews and both operations. Validation never patches."""
    account = "system:serviceaccount:a:b"

    def annotations(cell):
        if cell in ("-", ""):
            return {}
        name, *without = {"A": account, "(empty)": ""}.get(cell, cell).split(" without ")
        mark = {"ceems.io/created-by": name}
        return mark if without or not name else dict(mark, **{"ceems.io/created-by-uid": "uid-of-" + name})

    with Webhook(directory) as webhook:
        for row in table("Creators"):
            version, kind = row["Kind"].split()
            thing = {"apiVersion": version, "kind": kind, "metadata": {"annotations": annotations(row["At the top"])}}
            template = {"metadata": {"annotations": annotations(row["In the template"])}}
            if kind == "CronJob":
                thing["spec"] = {"jobTemplate": {"spec": {"template": template}}}
            elif row["In the template"]:
                thing["spec"] = {"template": template}
            user = account if row["User"] == "A" else row["User"]
            path, by, uid = (row["Patch"].split() + [""] * 3)[:3]
            expected = None if path == "-" else json.loads(patch_text(path, account if by == "A" else by, uid))
            for review_version in ("v1", "v1beta1"):
                for operation in ("CREATE", "UPDATE"):
                    request = {"uid": "u", "operation": operation, "userInfo": {"username": user, "uid": "1"}, "object": thing}
                    body = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/" + review_version, "request": request})
                    _, text = webhook.ask("POST", HOOKS + "mutate", body)
                    answer = json.loads(text)
                    assert answer["apiVersion"] == "admission.k8s.io/" + review_version and answer["response"]["allowed"] is True, (row, text)
                    patch = answer["response"].get("patch")
                    assert (json.loads(base64.b64decode(patch)) if patch else None) == expected, (row, operation, patch)
                    _, text = webhook.ask("POST", HOOKS + "validate", body)
                    answer = json.loads(text)["response"]
                    assert answer == {"uid": "u", "allowed": True, "status": {"metadata": {}}}, (row, text)


def named_tests(_directory):
    """The tests that the last table names exist."""
    for row in table("Tests of everything else"):
        name, *what = row["Test"].split()
        with open(os.path.join(ROOT, name if "/" in name else "tests/integration/" + name), encoding="utf-8") as f:
            text = f.read()
        for word in what:
            assert re.search(r"^(def %s\(|TEST(_F)?\(%s,)" % (word, word), text, re.M), row


def main():
    return run_tests([flags, columns, rules, traffic, updater_queries, messages, configuration, hostile_names, resources, admission_requests, creators, named_tests],
                     "ceems-programs-")


if __name__ == "__main__":
    sys.exit(main())
