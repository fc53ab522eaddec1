"""The check of what clusters have today: native sidecars, static pods with their mirrors, and pods without limits, as a real API server
shows them to the manager `k8s` and the collector `k8s`."""

import json
import os
import sys
import time

from cluster import Refused
from harness import ROOT, start_api_server, wait_until, write
from manager import AS_ROOT, running
from webhooks import pod

sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
from k8s_test import config, expect, unit  # noqa: E402

NODE = "worker-s"
HASH = "4c1b1f7f0e3a5d6c7b8a9f0e1d2c3b4a"


def mirror(name, node_uid, **changes):
    """What a kubelet sends for a static pod (pkg/kubelet/pod/mirror_client.go)."""
    thing = pod(name, {"kubernetes.io/config.hash": HASH, "kubernetes.io/config.mirror": HASH, "kubernetes.io/config.source": "file"})
    thing["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node_uid, "controller": True}]
    thing["metadata"].update(changes)
    thing["spec"].update(nodeName=NODE, automountServiceAccountToken=False)
    return thing


def container(name, limits=None, requests=None, **more):
    resources = {key: value for key, value in (("limits", limits), ("requests", requests)) if value}
    return {"name": name, "image": "none", "resources": resources, **more}


def today(cluster):
    """Native sidecars count where the API server knows them; a static pod has the UID of its cgroup, forged mirrors have their own; requests
    stand in for limits that are missing."""
    space = "today"
    cluster.namespace(space)
    cluster.kubectl("create", "serviceaccount", "server", "-n", space)
    directory = cluster.path("today")
    os.makedirs(directory)
    node = json.loads(cluster.kubectl("create", "-f", "-", "-o", "json", given={"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}))
    uids, start = {}, int(time.time())

    def make(thing):
        made = cluster.create(thing, namespace=space, more=("--validate=false",))
        uids[made["metadata"]["name"]] = made["metadata"]["uid"]
        cluster.set_status(made["metadata"]["name"], running(int(time.time())), space)
        return made

    def owners(*references):
        return [{"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node["metadata"]["uid"], "controller": True, **one}
                for one in references]

    make(mirror("static-" + NODE, node["metadata"]["uid"]))
    time.sleep(1.1)  # the API server writes whole seconds
    make(mirror("second-" + NODE, node["metadata"]["uid"]))
    make(mirror("forged", node["metadata"]["uid"]))
    make(mirror("elsewhere-" + NODE, node["metadata"]["uid"], ownerReferences=owners({"name": "other"})))
    make(mirror("unowned-" + NODE, node["metadata"]["uid"], ownerReferences=[]))
    thing = pod("sidecar")
    thing["spec"]["initContainers"] = [container("proxy", {"cpu": "250m", "memory": "32Mi"}, restartPolicy="Always"),
                                       container("setup", {"cpu": "3", "memory": "1Gi"})]
    knows = "restartPolicy" in make(thing)["spec"]["initContainers"][0]
    thing = pod("requests")
    thing["spec"]["containers"] = [container("a", {"cpu": "1"}, {"cpu": "500m", "memory": "128Mi"}), container("b", None, {"cpu": "250m"}),
                                   container("c")]
    make(thing)

    write(directory + "/users.yaml", "users: {}\n")
    os.symlink(cluster.configs["admin"], directory + "/kubeconfig")
    found = {}
    for option in ("false", "true"):
        text = config(directory, start - 60).replace("%s/data" % directory, "%s/data-%s" % (directory, option))
        server, _ = start_api_server(directory, text + "      requests_without_limits: %s\n" % option, AS_ROOT, name="api-" + option)
        place = cluster.path("today", "of-" + option)
        os.makedirs(place)
        os.symlink(directory + "/data-" + option, place + "/data")
        with server:
            wait_until("the pods", lambda place=place: unit(place, uids["requests"], "Running/Ready"), 90)
            found[option] = {name: unit(place, uid) for name, uid in uids.items() if name != "static-" + NODE}
            found[option]["static"] = unit(place, HASH)
            expect("exit status", server.stop(), 0)
    for option, units in found.items():
        expect("the static pod", units["static"]["name"], "static-" + NODE)
        for name in ("second-" + NODE, "forged", "elsewhere-" + NODE, "unowned-" + NODE):
            expect("UID of " + name, units[name]["uuid"], uids[name])
        held = {name: json.loads(units[name]["allocation"]) for name in ("sidecar", "requests")}
        expect("CPUs with a sidecar", held["sidecar"]["vcpus"], 0.75 if knows else 0.5)
        expect("memory with a sidecar", held["sidecar"]["mem"], (96 if knows else 64) << 20)
        expect("CPUs without limits", held["requests"]["vcpus"], 1.25 if option == "true" else 1)
        expect("memory without limits", held["requests"]["mem"], 128 << 20 if option == "true" else 1)
        expect("requests", held["requests"]["req_cpus"], 0.75)
    try:
        cluster.kubectl("delete", "namespace", space, "--wait=false")
    except Refused:
        pass
    return "native sidecars: %s" % ("yes" if knows else "this API server does not know them")


CHECKS = (today,)
