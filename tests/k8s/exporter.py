"""The check of the collector `k8s` of ceems_exporter: which pod holds which GPU, with the pods of a real API server. The machine and the
kubelet are those of tests/fixtures/k8s-systemd."""

import os
import re
import shutil
import sys

from cluster import Refused
from harness import BIN, ROOT, Program, free_port, get, samples, wait_until
from webhooks import pod

sys.path.insert(0, os.path.join(ROOT, "tests", "golden"))
import services  # noqa: E402

MACHINE = os.path.join(ROOT, "tests", "fixtures", "k8s-systemd")
NODE = "worker3"
# The pods of the fixture with GPUs: namespace, name, UID there, and their shares of each GPU.
PODS = (("ml", "trainer", "c1000000-dddd-4eee-8fff-000000000001", {"0": 2 / 3}),
        ("ml", "notebook", "c2000000-dddd-4eee-8fff-000000000002", {"0": 1 / 3}),
        ("ml", "inference", "c4000000-dddd-4eee-8fff-000000000004", {"2": 1}))


def with_uid(machine, old, new):
    """Gives the cgroups of a pod another UID."""
    for path, names, _ in os.walk(os.path.join(machine, "sys", "fs", "cgroup"), topdown=False):
        for name in names:
            if old.replace("-", "_") in name:
                os.rename(os.path.join(path, name), os.path.join(path, name.replace(old.replace("-", "_"), new.replace("-", "_"))))
    for path, _, names in os.walk(os.path.join(machine, "proc")):
        for name in names:
            file = os.path.join(path, name)
            with open(file, encoding="utf-8") as text:
                content = text.read()
            if old.replace("-", "_") in content:
                with open(file, "w", encoding="utf-8") as out:
                    out.write(content.replace(old.replace("-", "_"), new.replace("-", "_")))


def exporter(cluster):
    """GPUs of pods by the UIDs that the API server gave them, with no more rights than the page says."""
    machine, folder = cluster.path("machine"), cluster.path("exporter")
    shutil.copytree(MACHINE, machine)
    os.makedirs(folder)
    cluster.kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    cluster.namespace("ml")
    cluster.namespace("monitoring")
    uid = {}
    for space, name, old, _ in PODS:
        thing = pod(name)
        thing["spec"]["nodeName"] = NODE
        uid[name] = cluster.create(thing, namespace=space)["metadata"]["uid"]
        with_uid(machine, old, uid[name])
    config = cluster.service_account("exporter", "exporter", "monitoring")
    cluster.kubectl("create", "clusterrole", "exporter", "--verb=get,list", "--resource=pods")
    kubelet = services.Kubernetes(MACHINE, folder)
    flags = ["--collector.disable-defaults", "--collector.k8s", "--collector.k8s.kubeconfig.file=" + config, "--no-security.drop-privileges",
             "--collector.k8s.kubelet-podresources-socket.file=" + kubelet.settings["kubelet"], "--collector.cgroups.force-version=v2",
             "--path.procfs=%s/proc" % machine, "--path.sysfs=%s/sys" % machine, "--path.cgroupfs=%s/sys/fs/cgroup" % machine]
    environment = {"NODE_NAME": NODE, "PATH": os.path.join(machine, "bin") + ":/usr/bin:/bin"}
    wanted = {(uid[name], index): share for _, name, _, shares in PODS for index, share in shares.items()}

    def flags_of(url):
        return {(re.search(r'uuid="([^"]*)"[^"]*$', labels).group(1), re.search(r'[{,]index="([^"]*)"', labels).group(1)): value
                for labels, value in samples(get(url + "/metrics").text, "ceems_compute_unit_gpu_index_flag")}

    try:
        for allowed in (False, True):
            if allowed:
                cluster.kubectl("create", "clusterrolebinding", "exporter", "--clusterrole=exporter", "--serviceaccount=monitoring:exporter")
            port = free_port()
            url = "http://127.0.0.1:%d" % port
            log = os.path.join(folder, "exporter-%s.log" % allowed)
            with Program([os.path.join(BIN, "ceems_exporter"), "--web.listen-address=127.0.0.1:%d" % port] + flags, log, environment) as program:
                program.wait_ready(url + "/health")
                if allowed:
                    wait_until("the GPUs of the pods", lambda url=url: flags_of(url) == wanted, 30)
                else:
                    wait_until("403 in the log", lambda url=url, program=program: get(url + "/metrics").status == 200 and
                               "HTTP status 403" in program.output(), 30)
                    assert flags_of(url) == {}, flags_of(url)
    finally:
        kubelet.close()
        try:
            cluster.kubectl("delete", "namespace", "ml", "--wait=false")
        except Refused:
            pass
    return "%d pods with GPUs" % len(PODS)


CHECKS = (exporter,)
