#!/usr/bin/env python3
"""The commands of docs/api/scripts.md, with a personal token and a real ceems_api_server that has invented units."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

from api_database import create, insert, local
from harness import BIN, FakeHttp, ROOT, run_tests, skip, start_api_server, write
from login_test import HASH

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import real_server  # noqa: E402

COUNT = 1000
IDENTITY = "  identity: {header: {trusted_proxies: [127.0.0.1]}}\n"


def blocks():
    with open(os.path.join(ROOT, "docs", "api", "scripts.md"), encoding="utf-8") as f:
        return re.findall(r"^```sh\n(.*?)^```$", f.read(), re.M | re.S)


def make_token(url, user, headers=None):
    request = urllib.request.Request(url + "/api/v1/tokens", data=json.dumps({"name": "test", "scope": "read-own"}).encode(),
                                     headers=dict(headers or {}, **{"X-Grafana-User": user, "Content-Type": "application/json"}))
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["data"]["token"]


def status(url, headers, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers, method=method), timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def attack(url, token):
    """What the server in front of the handlers makes of it: methods, long headers, and a token after it was revoked."""
    api, bearer = url + "/api/v1/", {"Authorization": "Bearer " + token}
    assert status(api + "units", bearer) == 200
    assert status(api + "units/admin", bearer) == 403
    assert status(api + "units/admin", dict(bearer, **{"X-Grafana-User": "operator"})) == 401
    assert status(api + "units?access_token=" + token, bearer) == 401
    assert status(api + "units", {"Authorization": "Bearer ceems_pat_" + "x" * 65536}) in (400, 401, 431)
    assert status(api + "tokens", bearer) == 403
    with urllib.request.urlopen(urllib.request.Request(api + "tokens", headers={"X-Grafana-User": "ada"}), timeout=30) as answer:
        known = json.load(answer)["data"][0]["id"]
    assert status(api + "tokens?id=" + known, bearer, "DELETE") == 403
    assert status(api + "tokens?id=" + known, {"X-Grafana-User": "lin"}, "DELETE") == 404
    assert status(api + "tokens?id=" + known, {"X-Grafana-User": "ada", "Origin": "https://evil.example"}, "DELETE") == 403
    assert status(api + "tokens?id=" + known, {"X-Grafana-User": "ada"}, "DELETE") == 200
    assert status(api + "units", bearer) == 401


def commands(directory):
    """Each command of the page succeeds for a user with a token, and prints what it promises."""
    texts = blocks()
    function, with_password = [text for text in texts if text.startswith("api()")]
    questions = [text for text in texts if not text.startswith(("api()", "export"))]
    assert len(questions) == 10, len(questions)
    expected = [
        r'"user": "ada".*"via": "token"', r'"100999"', r"task_00990", r'\["100990"', r'"FAILED"', r'"kwh"', r"\[", r"100987", r'"project":"fluids"',
        r'"cluster_id": "hpc-a"']
    with FakeHttp(real_server.tsdb(str(100000 + COUNT - 1))) as series:
        data = os.path.join(directory, "data")
        os.makedirs(data)
        now = int(time.time())
        units = [real_server.unit(i, COUNT, now) for i in range(COUNT)]
        database = create(os.path.join(data, "ceems.db"))
        with database:
            insert(database, "units", units)
            insert(database, "daily_usage", real_server.days(units))
            for user, project in zip(real_server.USERS, real_server.PROJECTS):
                shared = {"cluster_id": "hpc-a", "resource_manager": "slurm", "tags": [], "last_updated_at": local(now)}
                insert(database, "projects", [dict(shared, name=project, users=[user])])
                insert(database, "users", [dict(shared, name=user, projects=[project])])
        database.close()
        with open(os.path.join(directory, "budgets.yml"), "w", encoding="utf-8") as f:
            f.write(real_server.BUDGETS)
        with open(os.path.join(directory, "prices.yml"), "w", encoding="utf-8") as f:
            f.write("energy:\n  - kwh: 0.25\n")
        config = real_server.CONFIG.replace("  roles:\n", IDENTITY + "  roles:\n") % {"data": data, "tsdb": series.url, "ancestors": ""}
        program, url = start_api_server(directory, config, real_server.FLAGS)
        with program:
            environment = {"PATH": os.environ["PATH"], "CEEMS_API": url, "CEEMS_TOKEN": make_token(url, "ada"), "CLUSTER": "hpc-a", "JOB": "100990",
                           "OTHER": "100987", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
            for text, wanted in zip(questions, expected):
                done = subprocess.run(["sh", "-euc", function + text], env=environment, capture_output=True, timeout=60)
                out = done.stdout.decode()
                assert done.returncode == 0 and not done.stderr, (text, done)
                assert re.search(wanted, out, re.S), (text, wanted, out)
            foreign = subprocess.run(["sh", "-c", function + 'api "units/report?cluster_id=hpc-a&uuid=100001"'], env=environment, capture_output=True)
            assert foreign.returncode == 22 and b"404" in foreign.stderr, foreign
            attack(url, environment["CEEMS_TOKEN"])
            unknown = subprocess.run(["sh", "-c", function + "api whoami"], env=environment, capture_output=True)
            assert unknown.returncode == 22 and b"401" in unknown.stderr, unknown
        behind_a_password(directory, config, environment, function, with_password)


def behind_a_password(directory, config, environment, function, with_password):
    """The server takes Authorization for its own password, so the token is in the other header, for cacct, too."""
    web = write(os.path.join(directory, "web.yml"), "basic_auth_users: {scripts: %s}\n" % HASH)
    program, url = start_api_server(directory, config, real_server.FLAGS + ["--web.config.file=" + web])
    with program:
        password = {"Authorization": "Basic " + base64.b64encode(b"scripts:correct horse").decode()}
        token = make_token(url, "ada", password)
        environment = dict(environment, CEEMS_API=url, CEEMS_TOKEN=token, CEEMS_PASSWORD="scripts:correct horse")

        def asked(*command, **changed):
            return subprocess.run(command, env=dict(environment, **changed), capture_output=True, timeout=60)
        good = asked("sh", "-euc", with_password + 'api whoami | jq -r ".data[0].user"')
        assert good.stdout == b"ada\n" and not good.stderr, good
        for script, changed in ((function, {}), (with_password, {"CEEMS_PASSWORD": "scripts:wrong"}), (with_password, {"CEEMS_TOKEN": token[:-1]})):
            refused = asked("sh", "-euc", script + "api whoami", **changed)
            assert refused.returncode == 22 and b"401" in refused.stderr, refused
        for headers, expected in (({"X-Ceems-Token": token}, 401), (dict(password, **{"X-Ceems-Token": token}), 200),
                                  (dict(password, **{"X-Ceems-Token": token, "X-Grafana-User": "operator"}), 401), (password, 401)):
            assert status(url + "/api/v1/units", headers) == expected, headers
        settings = os.path.join(directory, "ceems", "config.yml")
        write(settings, "ceems_api_server: {cluster_id: hpc-a, web: {url: %s, basic_auth: {username: scripts, password: correct horse}}}\n" % url, 0o600)
        report = asked(os.path.join(BIN, "cacct"), "report", "100990", "--ascii", XDG_CONFIG_HOME=directory)
        assert report.returncode == 0 and b"100990" in report.stdout, report
        report = asked(os.path.join(BIN, "cacct"), "report", "100991", "--ascii", XDG_CONFIG_HOME=directory)
        assert report.returncode == 1 and b"no such job" in report.stderr, report


if __name__ == "__main__":
    if not os.access(os.path.join(BIN, "ceems_api_server"), os.X_OK):
        skip("ceems_api_server is not built in %s" % BIN)
    for program in ("curl", "jq"):
        if not shutil.which(program):
            skip("%s is not installed" % program)
    sys.exit(run_tests([commands], "ceems-scripts-"))
