#!/usr/bin/env python3
"""Administrators from Grafana teams with the real ceems_api_server. It starts without Grafana. Users who join a team become
administrators, users who leave lose the role, and a failing Grafana changes nothing."""

import base64
import json
import os
import sys
import time

from harness import FakeHttp, get, scratch, start_api_server, wait_until

AS_ROOT = ["--security.run-as-user=root"] if os.geteuid() == 0 else []


def config(directory, url):
    return """
ceems_api_server:
  data: {path: %s/data, update_interval: 300ms, time_zone: UTC}
  admin:
    users: [operator]
    grafana:
      url: %s/grafana/
      teams_ids: [1, two]
      basic_auth: {username: ceems, password: swordfish}
""" % (directory, url)


def main():
    teams = {"1": ["ann", "bob"], "two": ["eve"]}
    state = {"status": 503, "team": None}

    def handler(path, query, body):
        parts = path.split("/")
        if len(parts) != 6 or parts[1:4] != ["grafana", "api", "teams"] or parts[5] != "members" or parts[4] not in teams:
            return 404, "application/json", b'{"message":"Not found"}'
        if state["status"] != 200 and state["team"] in (None, parts[4]):
            return state["status"], "application/json", b'{"message":"no"}'
        return 200, "application/json", json.dumps([{"login": n, "teamId": 1} for n in teams[parts[4]]]).encode()

    with scratch("ceems-grafana-") as d, FakeHttp(handler) as grafana:
        api, url = start_api_server(d, config(d, grafana.url), AS_ROOT)

        def admins():
            answer = get(url + "/api/v1/users/admin?role=admin", {"X-Grafana-User": "operator"})
            return {row["name"] for row in answer.json["data"]} - {"operator", "ceems-int-svc"}

        def rounds(count=2):
            before = len(grafana.seen)
            wait_until("Grafana is asked again", lambda: len(grafana.seen) >= before + 2 * count + 1)

        with api:
            rounds()
            assert admins() == set() and api.output().count("HTTP status 503") == 1, api.output()
            state["status"] = 200
            wait_until("members are administrators", lambda: admins() == {"ann", "bob", "eve"})
            assert get(url + "/api/v1/users/admin", {"X-Grafana-User": "ann"}).status == 200
            # If one team cannot be read, users who left the other one stay administrators, and users who joined it become one.
            state.update(status=500, team="two")
            teams["1"] = ["ann", "new"]
            wait_until("the new one is an administrator", lambda: "new" in admins())
            rounds()
            assert admins() == {"ann", "bob", "eve", "new"}, admins()
            state.update(status=200, team=None)
            wait_until("bob is no longer an administrator", lambda: admins() == {"ann", "eve", "new"})
            assert get(url + "/api/v1/users/admin", {"X-Grafana-User": "bob"}).status == 403
            # All teams fail, or all are empty.
            state["status"] = 401
            rounds()
            state["status"] = 200
            teams.update({"1": [], "two": []})
            rounds()
            assert admins() == {"ann", "eve", "new"}, admins()
            assert "swordfish" not in api.output()
            assert base64.b64encode(b"ceems:swordfish").decode() not in api.output()
        assert api.process.returncode == 0, api.output()[-3000:]
    print("grafana: ok")
    return 0


if __name__ == "__main__":
    begin = time.monotonic()
    status = main()
    print("%.1f s" % (time.monotonic() - begin))
    sys.exit(status)
