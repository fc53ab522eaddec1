#!/usr/bin/env python3
"""ceems_api_server with a fake Kubernetes API server: lists in parts, and watches that break, resume, are too old or send garbage. The
stored units must be right to the second. One server runs through everything, because windows take their time."""

import contextlib
import json
import sqlite3
import sys
import time

from fake_kube import FakeKube, pod
from harness import free_port, get, scratch, start_api_server, wait_until, write

ADMIN = {"X-Grafana-User": "operator"}


def binding(namespace, *users):
    return {"metadata": {"namespace": namespace, "name": "b"}, "subjects": [{"kind": "User", "name": u} for u in users] +
            [{"kind": "Group", "name": "everybody"}]}


def config(directory, begin):
    return """
ceems_api_server:
  data:
    path: %s/data
    update_interval: 1s
    max_update_interval: 1h
    update_from: %s
    time_zone: UTC
  admin:
    users: [operator]
clusters:
  - id: kube
    manager: k8s
    extra_config:
      kubeconfig_file: %s/kubeconfig
      ns_users_list_file: %s/users.yaml
""" % (directory, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(begin)), directory, directory)


def rows(directory):
    with contextlib.closing(sqlite3.connect("file:%s/data/ceems.db?mode=ro" % directory, uri=True)) as db:
        db.row_factory = sqlite3.Row
        return {row["uuid"] + "/" + row["started_at"][:4]: dict(row, time=json.loads(row["total_time_seconds"] or "{}"))
                for row in db.execute("select * from units")}


def unit(directory, uid, state=None):
    """The only row of a pod, once it has this state."""
    found = [row for row in rows(directory).values() if row["uuid"] == uid]
    if state and (not found or found[0]["state"] != state):
        return None
    assert len(found) == 1, "%s has %d rows: %s" % (uid, len(found), found)
    return found[0]


def members(url, project):
    answer = get(url + "/api/v1/projects/admin?project=" + project, ADMIN).json
    return sorted(u for row in answer["data"] for u in row["users"])


def expect(what, seen, wanted, tolerance=0.0):
    good = abs(seen - wanted) <= tolerance if tolerance else seen == wanted
    assert good, "%s: got %r, expected %r" % (what, seen, wanted)


def between(what, seen, low, high):
    """A time is known to two seconds before, because windows end at whole seconds and events come before the test looks."""
    assert low - 2 <= seen <= high + 1, "%s: got %r, expected %r to %r" % (what, seen, low, high)


def main():
    begin = int(time.time()) - 600
    kube = FakeKube(page=3)
    port = free_port()
    kube.bindings = [binding("lab", "eve", "bob"), binding("kube-system", "system:kube-scheduler")]
    # Pods that the first list contains.
    kube.put(pod("running", start=begin - 3600, cpu="500m", memory="512Mi", gpu=2))
    kube.put(pod("finished", phase="Succeeded", start=begin + 60, end=begin + 360))
    kube.put(pod("twin-a", name="twin", start=begin + 10))
    kube.put(pod("twin-b", name="twin", start=begin + 20))
    kube.put(pod("waiting", phase="Pending", created=begin))
    kube.put(pod("lost", start=begin + 100))
    kube.put(pod("victim", start=begin + 200))
    kube.put(pod("large", start=begin + 5, annotations={"x": "y" * 10_000_000}))
    kube.put({"metadata": {"uid": 5, "name": []}, "spec": 1, "status": "?"})
    kube.put({"metadata": {"uid": "odd", "name": 7, "labels": []}, "spec": {"containers": {"a": 1}}, "status": {"phase": []}})
    kube.delay = 0.3
    with scratch("ceems-k8s-") as d:
        write(d + "/users.yaml", "users:\n  lab: [file-user]\n")
        write(d + "/kubeconfig", json.dumps({
            "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "b", "user": "c"}}],
            "clusters": [{"name": "b", "cluster": {"server": "http://127.0.0.1:%d" % port}}],
            "users": [{"name": "c", "user": {"token": "good"}}]}))
        server, url = start_api_server(d, config(d, begin))
        with server:
            # While the API server is down, our server keeps running and logs why.
            wait_until("the failure in the log", lambda: "cannot watch pods, will retry" in server.output())
            assert get(url + "/health").status == 200
            assert not rows(d)
            kube.start(port)
            wait_until("first units", lambda: unit(d, "finished", "Succeeded"))
            expect("lists in parts", len(kube.seen("limit=250&continue=")) >= 3, True)
            expect("time of a finished pod", unit(d, "finished")["time"]["walltime"], 300)
            expect("its CPU time", unit(d, "finished")["time"]["alloc_cputime"], 600)
            expect("its end", unit(d, "finished")["ended_at_ts"], (begin + 360) * 1000)
            expect("names may repeat", unit(d, "twin-a")["name"] + unit(d, "twin-b")["name"], "twintwin")
            expect("a pod that waits", unit(d, "waiting")["started_at"], "N/A")
            expect("wrong types", unit(d, "odd")["time"]["walltime"], 0)
            assert len(unit(d, "large")["tags"]) < 1000
            running = unit(d, "running")
            expect("allocation", json.loads(running["allocation"]), {"vcpus": 0.5, "mem": 536870912, "nvidia.com/gpu": 2})
            expect("GPU time", running["time"]["alloc_gputime"], 2 * running["time"]["walltime"], 1e-6)

            # Events: a start, a life within one window, a large object, and a deletion while the connection is down.
            now = int(time.time())
            kube.put(pod("waiting", start=now - 1, created=begin))
            kube.put(pod("short", phase="Pending"))
            kube.put(pod("short", start=now - 2))
            kube.put(pod("short", phase="Failed", start=now - 2, end=now - 1))
            kube.delete("short")
            kube.put(pod("big-event", start=now, annotations={"x": "z" * 10_000_000}))
            kube.drop_watches()
            kube.delete("victim")
            gone_at = time.time()
            lists = len(kube.seen("limit=250")) - len(kube.seen("continue="))
            wait_until("the deletion", lambda: unit(d, "victim", "Deleted"))
            expect("lists after a broken watch", len(kube.seen("limit=250")) - len(kube.seen("continue=")), lists)
            between("time of the deleted pod", unit(d, "victim")["time"]["walltime"], gone_at - begin - 200, time.time() - begin - 200)
            between("its end", unit(d, "victim")["ended_at_ts"] / 1000, gone_at, time.time())
            expect("a short pod", unit(d, "short", "Failed")["time"]["walltime"], 1)
            expect("a started pod has one row", unit(d, "waiting")["started_at_ts"], (now - 1) * 1000)
            assert unit(d, "big-event")

            # A place that is too old, with a deletion that we missed; then garbage. Both make the server read the list again.
            kube.bindings = [binding("lab", "bob"), binding("kube-system", "system:kube-scheduler")]
            kube.drop_watches()
            kube.delete("lost")
            kube.compact()
            lost_at = time.time()
            wait_until("the list after 410", lambda: unit(d, "lost", "Deleted"))
            between("time of the pod that vanished", unit(d, "lost")["time"]["walltime"], lost_at - begin - 100, time.time() - begin - 100)
            wait_until("revocation", lambda: members(url, "lab") == ["ada", "bob", "file-user"])
            kube.bindings_status = 403
            kube.send_raw('{"type": "MODIFIED", "object": {"metadata": {"uid": "runn')
            write(d + "/users.yaml", "users:\n")
            wait_until("the failure of the lists in the log", lambda: "cannot read members, keeping the known ones" in server.output())
            ended = int(time.time())
            kube.put(pod("running", phase="Failed", start=begin - 3600, end=ended, reason="OOMKilled"))
            wait_until("the end after garbage", lambda: unit(d, "running", "Failed"))
            listed = get(url + "/api/v1/units/list/admin?state=out_of_memory&columns=uuid,state", ADMIN).json["data"]
            expect("what ran out of memory", listed["rows"], [["running", "OUT_OF_MEMORY"]])
            expect("time of the pod that ran all along", unit(d, "running")["time"]["walltime"], ended - begin, 1)
            expect("members while lists fail", members(url, "lab"), ["ada", "bob", "file-user"])
            expect("exit status", server.stop(), 0)  # a running watch, which lasts for minutes, does not delay it
            assert "Sanitizer" not in server.output(), server.output()

        # The file of users has a second name, which some of the reference's documentation uses.
        kube.bindings_status = 200
        write(d + "/other.yaml", "users:\n  lab: [renamed-user]\n")
        renamed = config(d, begin).replace("%s/data" % d, "%s/data2" % d).replace("ns_users_list_file: %s/users.yaml" % d,
                                                                                  "users_db_file: %s/other.yaml" % d)
        server, url = start_api_server(d, renamed, name="renamed")
        with server:
            wait_until("the other name of the file of users", lambda: "renamed-user" in members(url, "lab"))
            server.stop()
        both = renamed.replace("users_db_file:", "ns_users_list_file: %s/users.yaml\n      users_db_file:" % d)
        server, _ = start_api_server(d, both, wait=False, name="both")
        with server:
            wait_until("two different files are refused", lambda: not server.alive())
            assert "users_db_file: ns_users_list_file, its other name, has a different value" in server.output(), server.output()
    kube.stop()
    print("k8s: passed")


if __name__ == "__main__":
    sys.exit(main())
