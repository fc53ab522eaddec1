"""The check of the manager `k8s` of ceems_api_server: a real API server, whose webhooks name the creators, tells it which pods exist."""

import json
import os
import sys
import time

from cluster import Refused
from harness import ROOT, get, start_api_server, wait_until, write
from webhooks import Hooks, lab, pod

sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
from k8s_test import config, expect, members, rows, unit  # noqa: E402

AS_ROOT = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
MANY = 300  # more than one part of a list


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def running(start, ready="True"):
    return {"phase": "Running", "startTime": stamp(start),
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": stamp(start)}],
            "containerStatuses": [{"name": "c", "image": "none", "imageID": "", "ready": ready == "True", "restartCount": 0,
                                   "state": {"running": {"startedAt": stamp(start)}}}]}


def ended(start, end, phase="Succeeded", reason="Completed"):
    status = running(start, "False")
    status["phase"] = phase
    status["conditions"][0].update(reason="PodCompleted", lastTransitionTime=stamp(end))
    status["containerStatuses"][0]["state"] = {"running": None, "terminated": {
        "exitCode": 137 if reason == "OOMKilled" else 0, "reason": reason, "startedAt": stamp(start), "finishedAt": stamp(end)}}
    return status


def account(cluster):
    """The kubeconfig of a service account of ceems_api_server, without any rights yet."""
    cluster.namespace("ceems-api")
    return cluster.service_account("ceems-api", "server", "ceems-api")


def allow(cluster):
    """The rights that the page of resource managers names."""
    cluster.kubectl("create", "clusterrole", "ceems-pods", "--verb=list,watch", "--resource=pods")
    cluster.kubectl("create", "clusterrole", "ceems-bindings", "--verb=list", "--resource=rolebindings.rbac.authorization.k8s.io")
    for role in ("ceems-pods", "ceems-bindings"):
        cluster.kubectl("create", "clusterrolebinding", role, "--clusterrole=" + role, "--serviceaccount=ceems-api:server")


def mine(directory):
    return [row for row in rows(directory).values() if row["project"] == "site"]


def manager(cluster):
    """Units with their creators, states and times; members of projects; lists in parts; watches that break and are too old; rights that
    are missing at first."""
    space = lab(cluster, "site")
    cluster.kubectl("create", "rolebinding", "people", "--clusterrole=view", "--user=dora", "--user=bob", "--group=everybody", "-n", space)
    directory = cluster.path("api")
    os.makedirs(directory)
    begin = int(time.time()) - 600
    kubeconfig = account(cluster)
    write(directory + "/users.yaml", "users:\n  site: [file-user]\n")
    os.symlink(kubeconfig, directory + "/kubeconfig")
    uid = {}

    def make(name, user="ann"):
        uid[name] = cluster.create(pod(name), user, space)["metadata"]["uid"]

    with Hooks(cluster):
        for name, user in (("running", "ann"), ("finished", "bob"), ("waiting", "ann"), ("victim", "bob"), ("lost", "ann")):
            make(name, user)
        start = int(time.time())  # no pod starts before it was created
        for name in ("running", "victim", "lost"):
            cluster.set_status(name, running(start), space)
        cluster.set_status("finished", ended(start + 1, start + 4), space)
        cluster.kubectl("create", "-n", space, "-f", "-", user="bob", timeout=300, given={
            "apiVersion": "v1", "kind": "List", "items": [pod("many-%d" % i) for i in range(MANY)]})
        server, url = start_api_server(directory, config(directory, begin), AS_ROOT)
        with server:
            wait_until("403 in the log", lambda: "forbidden" in server.output() and "403" in server.output(), 60)
            expect("units without rights", rows(directory), {})
            allow(cluster)
            wait_until("first units", lambda: unit(directory, uid["finished"], "Succeeded"), 90)
            wait_until("all pods of the namespace", lambda: len(mine(directory)) == MANY + 5, 30)
            one = unit(directory, uid["finished"])
            expect("a finished pod", (one["username"], one["project"], one["name"], one["time"]["walltime"], one["ended_at_ts"]),
                   ("bob", "site", "finished", 3, (start + 4) * 1000))
            expect("its CPU time", one["time"]["alloc_cputime"], 1.5)
            one = unit(directory, uid["running"])
            expect("a running pod", (one["username"], one["state"], one["started_at_ts"]), ("ann", "Running/Ready", start * 1000))
            expect("its allocation", json.loads(one["allocation"]),
                   {"vcpus": 0.5, "mem": 67108864, "req_cpus": 0.5, "req_mem": 67108864})  # requests are the limits unless given
            one = unit(directory, uid["waiting"])
            expect("a pod that waits", (one["state"].split("/")[0], one["started_at"], one["time"]["walltime"]), ("Pending", "N/A", 0))
            expect("members", members(url, space), ["ann", "bob", "dora", "file-user"])

            # What a watch tells: a start, an end, a deletion, a pod of a controller.
            now = int(time.time())
            cluster.set_status("waiting", running(now - 1), space)
            wait_until("the start", lambda: unit(directory, uid["waiting"], "Running/Ready"))
            expect("one row", unit(directory, uid["waiting"])["started_at_ts"], (now - 1) * 1000)
            cluster.set_status("waiting", ended(now - 1, now + 1, "Failed", "OOMKilled"), space)
            wait_until("the end", lambda: unit(directory, uid["waiting"], "Failed"))
            expect("its time", unit(directory, uid["waiting"])["time"]["walltime"], 2)
            expect("why it ended", json.loads(unit(directory, uid["waiting"])["tags"])["exit_reason"], "OOMKilled")
            cluster.kubectl("delete", "pod", "victim", "-n", space, "--grace-period=0", "--force")
            gone = time.time()
            wait_until("the deletion", lambda: unit(directory, uid["victim"], "Deleted"))
            expect("the end of the deleted pod", unit(directory, uid["victim"])["ended_at_ts"] / 1000, gone, 5)
            expect("its time", unit(directory, uid["victim"])["time"]["walltime"], gone - start, 5)

            # The API server is restarted. Pods that it deletes while nobody watches are found missing.
            server.process.send_signal(19)
            cluster.kubectl("delete", "pod", "lost", "-n", space, "--grace-period=0", "--force")
            lost = time.time()
            make("fresh", "bob")
            cluster.restart_api()
            cluster.compact()
            server.process.send_signal(18)
            wait_until("the pod that vanished", lambda: unit(directory, uid["lost"], "Deleted"), 120)
            expect("its end", unit(directory, uid["lost"])["ended_at_ts"] / 1000, lost, 90)
            wait_until("the pod that was created meanwhile", lambda: unit(directory, uid["fresh"], "Pending"), 60)
            expect("its creator", unit(directory, uid["fresh"])["username"], "bob")
            now = int(time.time())
            cluster.set_status("fresh", running(now), space)
            wait_until("the watch goes on", lambda: unit(directory, uid["fresh"], "Running/Ready"), 60)
            expect("no pod has two rows", len({row["uuid"] for row in mine(directory)}), len(mine(directory)))
            one = unit(directory, uid["running"])
            expect("time of the pod that ran all along", one["time"]["walltime"], time.time() - start, 6)

            cluster.kubectl("delete", "rolebinding", "people", "-n", space)
            wait_until("revocation", lambda: members(url, space) == ["ann", "file-user"], 30)
            expect("verification", get(url + "/api/v1/units/verify?cluster_id=kube&uuid=" + uid["running"], {"X-Grafana-User": "dora"}).status, 403)
            expect("exit status", server.stop(), 0)
            text = server.output()
            assert "panic" not in text and "Sanitizer" not in text, text
    try:
        cluster.kubectl("delete", "namespace", space, "--wait=false")
    except Refused:
        pass
    return "%d pods in one list" % (MANY + 5)


CHECKS = (manager,)
