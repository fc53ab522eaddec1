"""The checks of ceems_k8s_admission_controller: it runs on loopback with the flags and files of our manifest, and the API server calls it
as the webhook configurations of the manifest say."""

import http.client
import json
import os
import re
import shlex
import ssl
import subprocess
import sys
import time

from cluster import Refused, encoded
from harness import ROOT, samples, wait_until, write

sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
from admission_test import BY, HUB, UID, Controller  # noqa: E402

MANIFEST = os.path.join(ROOT, "packaging", "kubernetes", "admission-controller.yml")
PAGE = os.path.join(ROOT, "docs", "admission-controller.md")
ANN, BOB = {BY: "ann", UID: "7f0c-ann"}, {BY: "bob", UID: "7f0c-bob"}


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def documents():
    """The documents of the manifest, as this version of Kubernetes knows them."""
    # policy/v1 and batch/v1 CronJob are of 1.21.
    text = text_of(MANIFEST).replace("apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n")
    return re.split(r"(?m)^---\n", text)


def marks(annotations):
    return {key: value for key, value in (annotations or {}).items() if key in (BY, UID)}


def mark(thing):
    return marks(thing["metadata"].get("annotations"))


def template_of(thing):
    spec = thing["spec"]
    return (spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec)["template"]


def equal(got, wanted, what=""):
    assert got == wanted, "%s: got %r, expected %r" % (what, got, wanted)


def pod(name, by=None):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **({"annotations": by} if by else {})},
            "spec": {"containers": [{"name": "c", "image": "none", "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}}]}}


def workload(kind, name, by=None, top=None, replicas=1):
    """A workload with a template that bears the annotations `by`; `top` are its own."""
    metadata = {"labels": {"app": name}, **({"annotations": by} if by else {})}
    template = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    spec = {"template": template}
    if kind in ("Deployment", "StatefulSet", "DaemonSet"):
        spec["selector"] = {"matchLabels": {"app": name}}
    if kind in ("Deployment", "StatefulSet"):
        spec["replicas"] = replicas
    if kind == "StatefulSet":
        spec["serviceName"] = name
    if kind in ("Job", "CronJob"):
        template["spec"]["restartPolicy"] = "Never"
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    version = {"Job": "batch/v1", "CronJob": "batch/v1beta1"}.get(kind, "apps/v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **({"annotations": top} if top else {})}, "spec": spec}


def lab(cluster, name):
    """A namespace in which the group `users` may do what users do."""
    cluster.namespace(name)
    cluster.kubectl("create", "rolebinding", "users", "--clusterrole=edit", "--group=users", "-n", name)
    return name


class Hooks:
    """The running webhooks, registered at the API server. The configurations are those of the manifest except that they name an address
    on loopback, that a failed call fails the request and may take longer, and that they list the older CronJobs, too."""

    def __init__(self, cluster, flags=None, only=None):
        self.cluster, self.only = cluster, only
        manifest = text_of(MANIFEST)
        self.flags = re.findall(r"- (--trusted-creators\S+|--enforce)", manifest) if flags is None else flags
        self.directory = os.path.join(cluster.directory, "webhook")
        os.makedirs(self.directory, exist_ok=True)
        self.renew()
        web = re.search(r"web-config.yaml: \|\n((?:    .*\n)+)", manifest).group(1).replace("/certs", self.directory)
        self.web = write(self.directory + "/web.yml", re.sub(r"(?m)^    ", "", web))

    def renew(self):
        """Replaces the certificate of the webhooks."""
        made = self.cluster.authority.issue("webhook", "/CN=webhook-%d" % time.monotonic_ns(), "IP:127.0.0.1")
        for source, name in zip(made, ("tls.crt", "tls.key")):
            write(self.directory + "/new", text_of(source))
            os.replace(self.directory + "/new", os.path.join(self.directory, name))

    def start(self):
        self.program = Controller(self.directory, ["--web.config.file=" + self.web] + self.flags, "https")

    def register(self, resources=(), **settings):
        """Writes the webhook configurations; `resources` are more of the group apps, and `settings` change the webhooks."""
        for text in documents():
            if "WebhookConfiguration\n" in text and (self.only or "") in text:
                thing = self.configuration(text)
                for hook in thing["webhooks"]:
                    hook.update(settings)
                    hook["rules"][1]["resources"] += resources
                self.cluster.kubectl("apply", "-f", "-", given=thing)

    def __enter__(self):
        self.start()
        try:
            self.register()
            if self.only != "Validating":
                wait_until("the API server calls the webhooks", lambda: self.marks_pods() and self.reviews("validate", "unchanged"), 60)
            else:
                wait_until("the API server calls the webhook", lambda: self.marks_pods() or self.reviews("validate", "unmarked"), 60)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with self.program:
            for kind in ("mutating", "validating"):
                self.cluster.kubectl("delete", kind + "webhookconfiguration", "--all")
            wait_until("the API server forgets the webhooks", self.forgotten, 60)

    def configuration(self, text):
        thing = json.loads(self.cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", given=text))
        for hook in thing["webhooks"]:
            hook["clientConfig"] = {"url": self.program.url + "/" + hook["clientConfig"]["service"]["path"].lstrip("/"),
                                    "caBundle": encoded(self.cluster.authority.certificate)}
            hook["timeoutSeconds"], hook["failurePolicy"] = 30, "Fail"
            for rule in hook["rules"]:
                if "cronjobs" in rule["resources"]:
                    rule["apiVersions"].append("v1beta1")
        return thing

    def marks_pods(self):
        try:
            return mark(self.cluster.create(pod("probe"), namespace="default", more=["--dry-run=server"]))
        except Refused:
            return None

    def forgotten(self):
        before = self.page()
        self.marks_pods()
        return before == self.page()

    def page(self):
        """The counters of reviews."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.program.port, timeout=20,
                                                 context=ssl.create_default_context(cafile=self.cluster.authority.certificate))
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        return samples(page, "ceems_k8s_admission_controller_reviews_total")

    def reviews(self, hook, outcome):
        return sum(value for labels, value in self.page() if 'hook="%s"' % hook in labels and 'outcome="%s"' % outcome in labels)


def pods_of(cluster, namespace, app):
    return [one for one in cluster.get("pods", namespace=namespace) if one["metadata"].get("labels", {}).get("app") == app]


def exactly(count, things):
    """The things if there are so many, else nothing, for wait_until."""
    return things if len(things) == count else None


def refused(what, text, call):
    try:
        call()
    except Refused as error:
        assert text in str(error), "%s: %s" % (what, error)
    else:
        raise AssertionError("%s was not refused" % what)


# The checks.

def manifest(cluster):
    """The API server takes every document of the manifest, its pods can be made, and the commands of the page for a cluster without
    cert-manager work."""
    for plural, kind in (("issuers", "Issuer"), ("certificates", "Certificate")):
        cluster.kubectl("apply", "-f", "-", given={
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": plural + ".cert-manager.io"},
            "spec": {"group": "cert-manager.io", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    wait_until("the kinds of cert-manager", lambda: "certificates.cert-manager.io" in cluster.kubectl(
        "api-resources", "--api-group=cert-manager.io", "-o", "name", "--cached=false"), 60)
    applied = []
    for text in documents():
        applied.append(cluster.kubectl("apply", "--validate=true", "-f", "-", given=text).split()[0])
    again = [cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=text) for text in documents()]
    assert all("unchanged" in one for one in again), again
    pods = wait_until("the pods of the manifest", lambda: exactly(2, cluster.get("pods", namespace="ceems")), 90)
    spec = pods[0]["spec"]
    equal((spec["priorityClassName"], spec["securityContext"]["runAsUser"]), ("system-cluster-critical", 65534))
    commands = re.search(r"make a certificate yourself:\n\n```sh\n(.*?)```", text_of(PAGE), re.S).group(1)
    environment = dict(os.environ, KUBECONFIG=cluster.configs["admin"], PATH=cluster.bin + ":" + os.environ["PATH"])
    done = subprocess.run(["bash", "-ec", commands], cwd=cluster.directory, env=environment, capture_output=True, text=True)
    equal(done.returncode, 0, done.stderr)
    secret = cluster.get("secret", "ceems-admission-controller-tls", "ceems")
    for kind in ("mutating", "validating"):
        made = cluster.get(kind + "webhookconfiguration", "ceems-admission-controller")
        equal(made["webhooks"][0]["clientConfig"]["caBundle"], secret["data"]["tls.crt"], kind)
        cluster.kubectl("delete", kind + "webhookconfiguration", "ceems-admission-controller")
    return "%d objects of the manifest" % len(applied)


def creators(cluster):
    """Whatever ann creates, its pods name her; controllers make them in their own names. A client certificate has no UID."""
    space = lab(cluster, "creators")
    cluster.kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    cluster.kubectl("taint", "nodes", "n1", "node.kubernetes.io/not-ready:NoSchedule-")  # for the DaemonSet
    with Hooks(cluster) as hooks:
        equal(mark(cluster.create(workload("CronJob", "cron"), "ann", space)), {}, "the top of a CronJob")
        equal(mark(cluster.create(pod("bare"), "ann", space)), ANN)
        equal(mark(cluster.create(pod("certificate"), "eve", space)), {BY: "eve", UID: ""})
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "Job"):
            made = cluster.create(workload(kind, kind.lower()), "ann", space)
            equal(marks(template_of(made)["metadata"]["annotations"]), ANN, kind)
            equal(mark(made), {}, kind)
        for kind in ("deployment", "statefulset", "daemonset", "job"):
            found = wait_until("the pod of the " + kind, lambda kind=kind: pods_of(cluster, space, kind), 90)
            equal(mark(found[0]), ANN, kind)
            assert found[0]["metadata"]["ownerReferences"][0]["controller"], found[0]["metadata"]
        page = text_of(PAGE)  # the commands at its top
        for line in re.findall(r"^kubectl (run|get) (.*)$", page, re.M)[:2]:
            seen = cluster.kubectl(line[0], "-n", space, *shlex.split(line[1]), user="bob")
        equal(marks(json.loads(seen)), BOB, "the example of the page")
        # The pod of the Job that the controller makes of the CronJob every minute.
        found = wait_until("the pod of the CronJob", lambda: pods_of(cluster, space, "cron"), 120, 1)
        equal(mark(found[0]), ANN, "CronJob")
        equal(hooks.reviews("mutate", "error") + hooks.reviews("mutate", "invalid") + hooks.reviews("validate", "refused"), 0)
        count = sum(value for _, value in hooks.page())
    return "%d reviews" % count


def updates(cluster):
    """No change of a Deployment, whoever makes it, changes its creator, and scaling starts nothing again."""
    space = lab(cluster, "updates")

    def deployment():
        return cluster.get("deployment", "d", space)

    def template_mark():
        return marks(template_of(deployment())["metadata"]["annotations"])

    def sets():
        return len(cluster.get("replicasets", namespace=space))

    with Hooks(cluster):
        cluster.create(workload("Deployment", "d"), "ann", space, how="apply")
        wait_until("the pod", lambda: pods_of(cluster, space, "d"), 90)
        cluster.kubectl("scale", "deployment", "d", "--replicas=2", "-n", space, user="bob")
        scaled = deployment()
        del scaled["metadata"]["resourceVersion"]  # its controller writes at the same time
        scaled["spec"]["replicas"] = 3
        cluster.kubectl("replace", "-f", "-", "-n", space, user="bob", given=scaled)
        found = wait_until("the pods of the scaled Deployment", lambda: exactly(3, pods_of(cluster, space, "d")), 90)
        equal([mark(one) for one in found], [ANN] * 3)
        equal(sets(), 1, "scaling made new pods")
        cluster.kubectl("set", "image", "deployment/d", "c=other", "-n", space, user="bob")
        equal(template_mark(), ANN, "set image")
        wait_until("the second ReplicaSet", lambda: sets() == 2, 60)
        # A file without the annotations.
        plain = workload("Deployment", "d", replicas=3)
        plain["spec"]["template"]["spec"]["containers"][0]["image"] = "third"
        cluster.kubectl("replace", "-f", "-", "-n", space, user="bob", given=plain)
        equal(template_mark(), ANN, "replace")
        plain["spec"]["template"]["spec"]["containers"][0]["image"] = "fourth"
        cluster.create(plain, "bob", space, how="apply")
        equal(template_mark(), ANN, "apply")
        equal(template_of(deployment())["spec"]["containers"][0]["image"], "fourth")
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", "-n", space, user="bob", given=workload("Deployment", "d", BOB))
        equal(template_mark(), ANN, "server-side apply of a forged creator")
        cluster.kubectl("rollout", "restart", "deployment/d", "-n", space, user="bob")
        assert "kubectl.kubernetes.io/restartedAt" in template_of(deployment())["metadata"]["annotations"]
        cluster.kubectl("rollout", "undo", "deployment/d", "-n", space, user="bob")
        equal(template_mark(), ANN, "rollout")
        cluster.kubectl("patch", "deployment", "d", "-n", space, "--type=json", "-p", json.dumps(
            [{"op": "remove", "path": "/spec/template/metadata/annotations/" + BY.replace("/", "~1")}]), user="bob")
        equal(template_mark(), ANN, "removal")
        wait_until("the pods of the last template", lambda: any(
            one["spec"]["containers"][0]["image"] == "none" and one["metadata"]["ownerReferences"] for one in pods_of(cluster, space, "d")), 90)
        for one in pods_of(cluster, space, "d"):
            equal(mark(one), ANN, one["metadata"]["name"])
        cluster.create(pod("p"), "ann", space)
        cluster.kubectl("annotate", "pod", "p", "--overwrite", BY + "=bob", UID + "=7f0c-bob", "x=y", "-n", space, user="bob")
        equal(mark(cluster.get("pod", "p", space)), ANN, "a pod that bob changes")
        cluster.kubectl("annotate", "pod", "p", BY + "-", "-n", space, user="bob")
        equal(mark(cluster.get("pod", "p", space)), ANN, "a pod whose annotation bob removes")
        # Finished Jobs lose finalizers, and everything goes away, without a question to the webhooks going wrong.
        cluster.kubectl("delete", "deployment", "d", "-n", space, user="ann", timeout=120)
        wait_until("the pods are gone", lambda: not pods_of(cluster, space, "d"), 90)
    return "scale, replace, set image, apply, server-side apply, restart, undo, patch, annotate"


def trust(cluster):
    """What others write counts only from accounts that are trusted; the validating webhook alone refuses it."""
    space = lab(cluster, "trust")
    account = HUB.split(":")
    cluster.namespace(account[2])
    cluster.service_account("hub", account[3], account[2])
    cluster.kubectl("create", "rolebinding", "hub", "--clusterrole=edit", "--serviceaccount=%s:%s" % (account[2], account[3]), "-n", space)
    with Hooks(cluster) as hooks:
        equal(mark(cluster.create(pod("forged", ANN), "bob", space)), BOB, "forged by bob")
        equal(mark(cluster.create(pod("notebook", {BY: "ann"}), "hub", space)), {BY: "ann"}, "by the hub")
        made = cluster.create(workload("Deployment", "forged", ANN, ANN), "bob", space)
        equal((mark(made), marks(template_of(made)["metadata"]["annotations"])), ({}, BOB), "a forged Deployment")
        found = wait_until("its pod", lambda: pods_of(cluster, space, "forged"), 90)
        equal(mark(found[0]), BOB)
        cluster.create(workload("CronJob", "cron"), "ann", space)
        cluster.kubectl("create", "job", "mine", "--from=cronjob/cron", "-n", space, user="bob")
        equal(marks(template_of(cluster.get("job", "mine", space))["metadata"]["annotations"]), BOB, "a Job from the CronJob of ann")
        # kubectl --as is a name that the API server vouches for.
        made = json.loads(cluster.kubectl("create", "-f", "-", "-o", "json", "-n", space, "--as=cleo", "--as-group=users", given=pod("as")))
        equal(mark(made), {BY: "cleo", UID: ""}, "impersonation")
        before = hooks.reviews("mutate", "patched")
        made = cluster.create(pod("dry"), "ann", space, more=["--dry-run=server"])
        equal(mark(made), ANN, "a dry run")
        equal(hooks.reviews("mutate", "patched"), before + 1)
        refused("a pod of a dry run", "not found", lambda: cluster.get("pod", "dry", space))
    with Hooks(cluster, only="Validating") as hooks:
        text = "bob may not set the annotation ceems.io/created-by to ann"
        refused("a forged pod", text, lambda: cluster.create(pod("forged2", ANN), "bob", space))
        refused("a forged Job", text, lambda: cluster.create(workload("Job", "forged2", ANN), "bob", space))
        refused("a stolen pod", "bob may not change the annotations", lambda: cluster.kubectl(
            "annotate", "pod", "notebook", "--overwrite", BY + "=bob", "-n", space, user="bob"))
        equal(mark(cluster.create(pod("notebook2", {BY: "ann"}), "hub", space)), {BY: "ann"})
        equal(mark(cluster.create(pod("own", BOB), "bob", space)), BOB)
        equal(mark(cluster.create(pod("none"), "bob", space)), {}, "validation changes nothing")
        cluster.kubectl("scale", "deployment", "forged", "--replicas=3", "-n", space, user="ann")
        wait_until("controllers are not refused", lambda: len(pods_of(cluster, space, "forged")) == 3, 90)
        assert hooks.reviews("validate", "refused") >= 3, hooks.page()  # the API server asks twice about some changes
        assert "level=WARN" in hooks.program.output()
    return "3 refused"


def default_rules(cluster):
    """Without flags the rules are those of CEEMS: the first creator that is named counts."""
    space = lab(cluster, "defaults")
    with Hooks(cluster, flags=[]):
        equal(mark(cluster.create(pod("plain"), "ann", space)), ANN)
        equal(mark(cluster.create(pod("named", {BY: "cleo"}), "ann", space)), {BY: "cleo"})
        made = cluster.create(workload("Deployment", "d", top={BY: "cleo", UID: "5"}), "ann", space)
        equal(marks(template_of(made)["metadata"]["annotations"]), {BY: "cleo", UID: "5"}, "the top of a Deployment")
        found = wait_until("its pod", lambda: pods_of(cluster, space, "d"), 90)
        equal(mark(found[0]), {BY: "cleo", UID: "5"})
        # A pod of a ReplicaSet without a creator belongs to the controller, until a person changes it.
        cluster.create(workload("Deployment", "e") | {"kind": "ReplicaSet"}, "ann", space)
        found = wait_until("the pod of the ReplicaSet", lambda: pods_of(cluster, space, "e"), 90)
        equal(mark(found[0])[BY], "system:serviceaccount:kube-system:replicaset-controller")
        assert re.fullmatch(r"[0-9a-f-]{36}", mark(found[0])[UID]), mark(found[0])
        cluster.kubectl("label", "pod", found[0]["metadata"]["name"], "x=y", "-n", space, user="bob")
        equal(mark(cluster.get("pod", found[0]["metadata"]["name"], space)), BOB, "a person takes it over")
    with Hooks(cluster, flags=["--workload=apps/ReplicaSet:/spec/template"]) as hooks:
        hooks.register(["replicasets"])
        replicas = workload("Deployment", "r") | {"kind": "ReplicaSet"}
        wait_until("ReplicaSets are reviewed", lambda: marks(template_of(cluster.create(
            replicas, "ann", space, more=["--dry-run=server"]))["metadata"].get("annotations")) == ANN, 60)
        cluster.create(workload("Deployment", "f"), "ann", space)
        found = wait_until("the pod of the Deployment", lambda: pods_of(cluster, space, "f"), 90)
        equal(mark(found[0]), ANN, "the ReplicaSet of a Deployment is left alone")
        equal(len([one for one in cluster.get("replicasets", namespace=space) if one["metadata"]["name"].startswith("f-")]), 1)
    return ""


def outage(cluster):
    """failurePolicy Ignore: while the webhooks are down, pods start without a creator. A new certificate is used without a restart."""
    space = lab(cluster, "outage")
    with Hooks(cluster) as hooks:
        first = hooks.marks_pods()
        equal(first[BY], "admin")
        hooks.renew()
        fresh = text_of(hooks.directory + "/tls.crt")
        wait_until("the new certificate is used", lambda: ssl.get_server_certificate(("127.0.0.1", hooks.program.port)) == fresh, 60)
        equal(hooks.marks_pods(), first, "with the new certificate")
        hooks.register(failurePolicy="Ignore", timeoutSeconds=3)
        time.sleep(2)  # until the API server has read it
        hooks.program.stop()
        equal(mark(cluster.create(pod("orphan"), "ann", space)), {}, "failurePolicy Ignore")
        hooks.start()
        hooks.register()
        wait_until("the webhooks are back", hooks.marks_pods, 60)
        # Who changes an orphan has not created it; its owner cannot be told any more.
        cluster.kubectl("label", "pod", "orphan", "x=y", "-n", space, user="bob")
        equal(mark(cluster.get("pod", "orphan", space)), {})
        equal(mark(cluster.create(pod("again"), "ann", space)), ANN)
    return ""


CHECKS = (manifest, creators, updates, trust, default_rules, outage)
