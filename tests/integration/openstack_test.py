#!/usr/bin/env python3
"""The manager `openstack` of the real ceems_api_server against a fake Keystone and Nova that fail in every way: nothing is lost or
counted twice in its database, and access follows Keystone's lists."""

import contextlib
import datetime
import json
import os
import sqlite3
import sys
import time

from fake_openstack import FakeOpenstack, iso
from harness import get, scratch, start_api_server, wait_until

AS_ROOT = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
ADMIN = {"X-Grafana-User": "operator"}


def config(directory, cloud, begin, password=FakeOpenstack.PASSWORD):
    return """
ceems_api_server:
  data: {path: %s/data, update_interval: 300ms, max_update_interval: 1h, update_from: %s, time_zone: UTC}
  admin: {users: [operator]}
clusters:
  - id: os
    manager: openstack
    extra_config:
      api_service_endpoints: {compute: %s/v2.1, identity: %s}
      auth:
        identity:
          methods: [password]
          password:
            user: {name: admin, domain: {name: Default}, password: %s}
        scope: {project: {name: admin, domain: {name: Default}}}
      request_timeout: 4s
      users_refresh_interval: 0s
""" % (directory, iso(begin, False)[:-1], cloud.url, cloud.url, password)


def rows(directory, uuid=None):
    """The stored units, sorted by start."""
    with contextlib.closing(sqlite3.connect("file:%s/data/ceems.db?mode=ro" % directory, uri=True)) as db:
        db.row_factory = sqlite3.Row
        found = [dict(r) for r in db.execute("select * from units order by started_at_ts")]
    return [r for r in found if uuid in (None, r["uuid"])]


def seconds(row, key="walltime"):
    return json.loads(row["total_time_seconds"])[key]


def last_update(row):
    return datetime.datetime.strptime(row["last_updated_at"], "%Y-%m-%dT%H:%M:%S").replace(
        tzinfo=datetime.timezone.utc).timestamp()


def verify(url, user, uuid):
    return get(url + "/api/v1/units/verify?cluster_id=os&uuid=" + uuid, {"X-Grafana-User": user}).status


def rounds(directory, count=2):
    """Waits until some windows have been written."""
    for _ in range(count):
        before = max([last_update(r) for r in rows(directory)] or [0])
        wait_until("a window is written", lambda b=before: max(last_update(r) for r in rows(directory)) > b)


def whole(directory, uuid, launched):
    """Every second since the launch was counted once."""
    row = rows(directory, uuid)[0]
    assert seconds(row) == last_update(row) - launched, (row, seconds(row), last_update(row) - launched)
    assert seconds(row, "alloc_cputime") == 2 * seconds(row), row


def faults_lose_nothing(api, url, cloud, d, launched):
    for fault in ("401", "500", "page loop", "types", "truncated", "many", "close", "hang"):
        written = last_update(rows(d, "a")[0])
        asked = cloud.token_requests
        failures = api.output().count("update failed")
        cloud.fault = fault
        wait_until("the fault is logged: " + fault, lambda n=failures: api.output().count("update failed") > n)
        time.sleep(0.4)  # more than a round, because the fault must be logged only once
        assert api.alive() and get(url + "/health").status == 200, fault
        assert last_update(rows(d, "a")[0]) <= written + 2, "%s: a window was written" % fault
        assert cloud.token_requests - asked < 15, (fault, cloud.token_requests - asked)
        cloud.fault = None
    rounds(d)
    whole(d, "a", launched)
    for fault in ("10 MB", "wrong types inside"):
        cloud.fault = fault
        rounds(d, 1)
        cloud.fault = None
    whole(d, "a", launched)
    text = api.output()
    assert text.count("pages go round in a circle") == 1, "not logged exactly once"
    assert text.count("HTTP status 401") == 1, text
    assert text.count("servers left out") == 1, text


def tokens_end_and_are_taken_back(api, cloud, d):
    failures = api.output().count("update failed")
    before = cloud.token_requests
    cloud.token_seconds = 1.0
    cloud.forget_tokens()  # causes one 401
    wait_until("tokens are renewed", lambda: cloud.token_requests >= before + 3)
    cloud.token_seconds = 3600.0
    rounds(d, 1)
    assert api.output().count("update failed") == failures, api.output()[-2000:]


def servers_come_and_go(cloud, d):
    born = int(time.time()) - 30
    cloud.add_server("deleted", "u1", "p1", born)
    cloud.add_server("resized", "u1", "p1", int(time.time()))
    cloud.add_server("failed", "u1", "p1", None, status="ERROR")
    cloud.change("a", status="SHUTOFF")
    wait_until("all servers are seen", lambda: len(rows(d)) == 12 and rows(d, "a")[0]["state"] == "SHUTOFF")
    first = rows(d, "resized")[0]["started_at_ts"]
    stood = seconds(rows(d, "a")[0])
    time.sleep(1.1)
    now = int(time.time())
    cloud.change("deleted", status="DELETED", terminated=iso(now))
    cloud.change("resized", status="VERIFY_RESIZE", launched=iso(now),
                 flavor={"vcpus": 8, "ram": 1024, "disk": 1, "swap": 0, "original_name": "big", "extra_specs": {}})
    cloud.change("a", metadata={"k": "v"})
    wait_until("one server has ended, one was launched again",
               lambda: rows(d, "deleted")[0]["ended_at_ts"] == now * 1000 and len(rows(d, "resized")) == 2)
    rounds(d)

    row = rows(d, "deleted")[0]  # its first window began after its launch; the rest is continuous
    assert row["state"] == "DELETED" and len(rows(d, "deleted")) == 1, row
    assert 0 < seconds(row) <= now - born, (seconds(row), now - born)

    old, new = rows(d, "resized")
    assert old["ended_at_ts"] == new["started_at_ts"] == now * 1000, (old, new)
    assert seconds(old) == now - first / 1000, (seconds(old), now - first / 1000)
    assert seconds(new) == last_update(new) - now
    assert seconds(new, "alloc_cputime") == 8 * seconds(new)
    assert json.loads(old["allocation"])["vcpus"] == 2 and json.loads(new["allocation"])["vcpus"] == 8

    row = rows(d, "failed")[0]
    assert row["started_at"] == "N/A" and row["started_at_ts"] == 0 and seconds(row) == 0, row
    assert seconds(rows(d, "a")[0]) == stood, "a change of metadata was taken for a start"


def access_follows_keystone(api, url, cloud, d):
    ann, bob = ({"X-Grafana-User": n} for n in ("ann", "bob"))
    units = get(url + "/api/v1/units?cluster_id=os&uuid=a&from=%d&to=%d" % (time.time() - 3600, time.time()), ann).json["data"]
    assert [(u["uuid"], u["state"], u["allocation"]["vcpus"], u["tags"]["az"]) for u in units] == [("a", "SHUTOFF", 2, "nova")], units
    assert [u["name"] for u in get(url + "/api/v1/users", ann).json["data"]] == ["ann"]
    everyone = {u["name"] for u in get(url + "/api/v1/users/admin", ADMIN).json["data"]}
    assert everyone == {"ann", "bob", "idle"}, everyone
    assert verify(url, "ann", "a") == 200 and verify(url, "bob", "a") == 200, "a belongs to their project"
    assert verify(url, "idle", "a") == 403 and verify(url, "eve", "a") == 403

    # A failure takes access from nobody.
    cloud.members["u2"] = []
    cloud.broken_users = {"u2"}
    rounds(d)
    assert verify(url, "bob", "a") == 200, "lost access although his list could not be read"
    cloud.fault = "no users"
    rounds(d)
    assert verify(url, "bob", "a") == 200, "lost access although the list of users is empty"
    cloud.fault = None
    # The first response without the project does.
    cloud.broken_users = set()
    wait_until("bob has lost access to the project", lambda: verify(url, "bob", "a") == 403)
    assert verify(url, "ann", "a") == 200
    assert get(url + "/api/v1/projects?project=alpha", bob).json["data"] == []
    # A user who no longer exists in Keystone.
    cloud.members["u2"] = ["p1"]
    wait_until("bob is back", lambda: verify(url, "bob", "a") == 200)
    del cloud.users["u2"]
    wait_until("bob is gone", lambda: verify(url, "bob", "a") == 403)


def main():
    begin = time.monotonic()
    with scratch("ceems-openstack-") as d, FakeOpenstack(page_size=3) as cloud:
        start = int(time.time()) - 600
        launched = start + 60
        cloud.users = {"u1": "ann", "u2": "bob", "u3": "idle"}
        cloud.projects = {"p1": "alpha", "p2": "beta"}
        cloud.members = {"u1": ["p1", "p2"], "u2": ["p1"]}
        cloud.add_server("a", "u1", "p1", launched)
        for i in range(8):  # three pages
            cloud.add_server("m%d" % i, "u2", "p1", start + 1)
        cloud.keystone_down = True
        api, url = start_api_server(d, config(d, cloud, start), AS_ROOT)
        with api:
            wait_until("Keystone was asked", lambda: "HTTP status 503" in api.output())
            time.sleep(0.8)  # more than a round, because the fault must be logged only once
            assert api.alive() and rows(d) == [], "does not start without Keystone"
            assert api.output().count("HTTP status 503") == 1, api.output()
            cloud.keystone_down = False
            wait_until("all servers are units", lambda: len(rows(d)) == 9)
            whole(d, "a", launched)
            row = rows(d, "a")[0]
            assert (row["username"], row["project"], row["resource_manager"]) == ("ann", "alpha", "openstack"), row
            for step in (lambda: tokens_end_and_are_taken_back(api, cloud, d),
                         lambda: faults_lose_nothing(api, url, cloud, d, launched),
                         lambda: servers_come_and_go(cloud, d),
                         lambda: access_follows_keystone(api, url, cloud, d)):
                step()
            cloud.fault = "hang"
            time.sleep(0.7)
            api.stop()  # a response that hangs does not delay it
        text = api.output()
        assert api.process.returncode == 0, (api.process.returncode, text[-3000:])
        assert "Sanitizer" not in text, text[-3000:]
        assert text.count("cannot read the list of flavors") == 1, "a list that Nova refuses is not logged exactly once"
        assert FakeOpenstack.PASSWORD not in text and "token1" not in text, "the log contains a secret"
    print("openstack: passed (%.1f s)" % (time.monotonic() - begin))
    return 0


if __name__ == "__main__":
    sys.exit(main())
