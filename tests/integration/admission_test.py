#!/usr/bin/env python3
"""ceems_k8s_admission_controller with reviews as an API server sends them: patches that are applied, forged creators, custom
resources, hostile bodies, and a certificate that is replaced while it runs.

usage: admission_test.py [NAME...]"""

import base64
import contextlib
import copy
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time

import harness
from harness import Program, free_port, get, need_programs, wait_until

BY, UID = "ceems.io/created-by", "ceems.io/created-by-uid"
HUB = "system:serviceaccount:jupyterhub:hub"
JOBS = "system:serviceaccount:kube-system:job-controller"
DEPLOYMENTS = "system:serviceaccount:kube-system:deployment-controller"


class Controller(Program):
    def __init__(self, directory, arguments=(), scheme="http"):
        self.port = free_port()
        self.url = "%s://127.0.0.1:%d" % (scheme, self.port)
        super().__init__([os.path.join(harness.BIN, "ceems_k8s_admission_controller"), "--web.listen-address=127.0.0.1:%d" % self.port,
                          "--log.level=debug"] + list(arguments), os.path.join(directory, "admission-%d.log" % self.port))
        if scheme == "http":
            self.wait_ready(self.url + "/health")
        else:
            wait_until("listening", lambda: "msg=listening" in self.output())

    def post(self, hook, body, kind="application/json"):
        return get("%s/ceems-admission-controller/%s" % (self.url, hook), {"Content-Type": kind}, data=body)

    def review(self, hook, thing, user="ann", uid="1", old=None, groups=(), operation=None):
        """The response of a review."""
        request = {"uid": "42", "kind": {}, "namespace": "ns", "name": "n", "operation": operation or ("UPDATE" if old else "CREATE"),
                   "userInfo": {"username": user, "uid": uid, "groups": list(groups)}, "object": thing, "oldObject": old, "dryRun": False}
        answer = self.post(hook, json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode())
        assert answer.status == 200, (answer.status, answer.text)
        assert answer.headers["Content-Type"] == "application/json"
        document = answer.json
        assert (document["kind"], document["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1"), document
        assert document["response"]["uid"] == "42"
        return document["response"]

    def mutate(self, thing, *args, **kwargs):
        """The object after the patch."""
        response = self.review("mutate", thing, *args, **kwargs)
        assert response["allowed"] is True
        if "patch" not in response:
            return thing
        assert response["patchType"] == "JSONPatch"
        return patched(thing, json.loads(base64.b64decode(response["patch"])))


def patched(document, operations):
    """Applies a JSON patch of "add" operations as RFC 6902 says: the parent must exist."""
    document = copy.deepcopy(document)
    for operation in operations:
        assert operation["op"] == "add" and operation["from"] == "", operation
        parts = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place = document
        for part in parts[:-1]:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[parts[-1]] = operation["value"]
    return document


def marked(by, uid="1", **others):
    return {"annotations": {BY: by, UID: uid, **others}}


def pod(metadata=None):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata or {}, "spec": {"containers": []}}


def workload(kind="Deployment", top=None, template=None, version="apps/v1"):
    return {"apiVersion": version, "kind": kind, "metadata": top or {}, "spec": {"template": {"metadata": template or {}, "spec": {}}}}


def equal(got, wanted, what=""):
    assert got == wanted, "%s: got %r, expected %r" % (what, got, wanted)


# The tests.

def creators(directory):
    """What each kind of object gets from users and from controllers, and what validation says."""
    with Controller(directory) as controller:
        equal(controller.mutate(pod())["metadata"], marked("ann"))
        equal(controller.mutate(pod(marked("bob", "2")))["metadata"], marked("bob", "2"))
        others = {"example.org/%d" % i: "v" for i in range(10)}
        equal(controller.mutate(pod({"annotations": others}))["metadata"], marked("ann", **others), "other annotations stay")
        for kind, version in (("Deployment", "apps/v1"), ("StatefulSet", "apps/v1"), ("DaemonSet", "apps/v1"), ("Job", "batch/v1")):
            made = controller.mutate(workload(kind, version=version))
            equal(made["spec"]["template"]["metadata"], marked("ann"), kind)
            # Its controller copies the template.
            equal(controller.mutate(pod(made["spec"]["template"]["metadata"]), JOBS, "9")["metadata"], marked("ann"))
        cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {}, "spec": {"jobTemplate": {"spec": {"template": {"metadata": {}}}}}}
        equal(controller.mutate(cron)["spec"]["jobTemplate"]["spec"]["template"]["metadata"], marked("ann"))
        response = controller.review("validate", pod())
        equal((response["allowed"], "patch" in response), (True, False))
        assert "level=WARN" in controller.output()


def updates(directory):
    """An UPDATE leaves templates alone that the request does not change."""
    with Controller(directory) as controller:
        old = workload()
        scaled = copy.deepcopy(old)
        scaled["spec"]["replicas"] = 3
        equal(controller.mutate(scaled, old=old), scaled, "an unmarked Deployment")
        finished = workload("Job", {"finalizers": []}, version="batch/v1")
        equal(controller.mutate(finished, JOBS, old=workload("Job", {"finalizers": ["x"]}, version="batch/v1")), finished)
        image = copy.deepcopy(old)
        image["spec"]["template"]["spec"]["x"] = 1
        equal(controller.mutate(image, old=old)["spec"]["template"]["metadata"], marked("ann"))
        before = workload(template=marked("bob", "2"))
        equal(controller.mutate(image, old=before)["spec"]["template"]["metadata"], marked("bob", "2"), "the mark was lost")
        revision = copy.deepcopy(old)
        revision["metadata"] = {"annotations": {"deployment.kubernetes.io/revision": "2"}}
        equal(controller.mutate(revision, DEPLOYMENTS, old=old), revision)


def trust(directory):
    """Only trusted callers name somebody else."""
    with Controller(directory, ["--trusted-creators=" + HUB, "--trusted-creators=operators", "--enforce"]) as controller:
        equal(controller.mutate(pod(marked("bob", "2")))["metadata"], marked("ann"), "forged by a user")
        equal(controller.mutate(pod(marked("bob", "2")), HUB, "9")["metadata"], marked("bob", "2"), "by a trusted account")
        equal(controller.mutate(pod(marked("bob", "2")), "x", "9", groups=["operators"])["metadata"], marked("bob", "2"), "by a group")
        made = controller.mutate(workload(top=marked("bob", "2"), template=marked("bob", "2", a="b")))
        equal(made["metadata"], {"annotations": {}})
        equal(made["spec"]["template"]["metadata"], marked("ann", a="b"))
        equal(controller.mutate(pod(made["spec"]["template"]["metadata"]), JOBS, "9")["metadata"], marked("ann", a="b"))
        old, stolen = pod(marked("bob", "2")), pod(marked("ann"))
        equal(controller.mutate(stolen, old=old)["metadata"], marked("bob", "2"))
        response = controller.review("validate", stolen, old=old)
        equal((response["allowed"], response["status"]["code"]), (False, 403))
        response = controller.review("validate", pod(marked("bob", "2")))
        equal(response["status"]["message"], "ann may not set the annotation ceems.io/created-by to bob")
        assert controller.review("validate", pod(marked("bob", "2")), HUB, "9")["allowed"]
        assert controller.review("validate", pod(marked("ann")))["allowed"]
        page = get(controller.url + "/metrics").text
        assert 'ceems_k8s_admission_controller_reviews_total{hook="validate",outcome="refused"} 2\n' in page, page


def custom_resources(directory):
    """Unknown kinds pass, those of --workload get a creator."""
    job = {"apiVersion": "example.org/v1", "kind": "Job", "metadata": {}, "spec": {"template": {}}}
    with Controller(directory) as controller:
        equal(controller.mutate(job), job)
        assert controller.review("validate", job)["allowed"]
    flags = ["--workload=kubeflow.org/Notebook:/spec/template", "--workload=ray.io/RayCluster:/spec/workers/*/template",
             "--workload=apps/ReplicaSet:/spec/template"]
    with Controller(directory, flags) as controller:
        notebook = {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "n"}, "spec": {"template": {"spec": {}}}}
        equal(controller.mutate(notebook)["spec"]["template"], {"spec": {}, "metadata": marked("ann")})
        ray = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": {"workers": [{"template": {}}, {"template": {"metadata": {}}}]}}
        made = controller.mutate(ray)
        equal([worker["template"]["metadata"] for worker in made["spec"]["workers"]], [marked("ann")] * 2)
        equal(controller.mutate(workload("ReplicaSet"))["spec"]["template"]["metadata"], marked("ann"))
        owned = workload("ReplicaSet", {"ownerReferences": [{"kind": "Deployment", "controller": True}]})
        equal(controller.mutate(owned, DEPLOYMENTS), owned, "its Deployment would make it again and again")
        equal(controller.mutate(owned)["spec"]["template"]["metadata"], marked("ann"), "anybody can name an owner")
    wrong = subprocess.run([os.path.join(harness.BIN, "ceems_k8s_admission_controller"), "--workload=Notebook"], capture_output=True,
                           text=True, timeout=90)
    equal(wrong.returncode, 1)
    assert "--workload: expected GROUP/KIND:/PATH/OF/TEMPLATE" in wrong.stderr + wrong.stdout, wrong


def hostile(directory):
    """Bodies that are too large, too deep or no reviews."""
    with Controller(directory) as controller:
        equal(controller.post("mutate", b"{}", "text/plain").text, "only content type 'application/json' is supported\n")
        for body, text in ((b"", "could not deserialize request: "), (b"{" * 100000, "could not deserialize request: "),
                           (b'{"kind":"Pod","apiVersion":"v1"}', "unsupported group version kind\n"),
                           (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "malformed admission review: request is nil\n")):
            answer = controller.post("mutate", body)
            equal(answer.status, 400, body[:40])
            assert answer.text.startswith(text), answer.text
        large = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
            "uid": "1", "operation": "CREATE", "object": pod({"labels": {"x": "y" * (2 << 20)}}), "userInfo": {"username": "ann"}}}).encode()
        equal(controller.post("mutate", large).status, 200)
        connection = http.client.HTTPConnection("127.0.0.1", controller.port, timeout=90)
        with contextlib.suppress(OSError):
            connection.request("POST", "/ceems-admission-controller/mutate", b" " * (10 << 20), {"Content-Type": "application/json"})
        with contextlib.suppress(OSError):
            equal(connection.getresponse().status, 413)
        connection.close()
        equal(get(controller.url + "/health").text, "CEEMS k8s Admission Controller is healthy")
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(controller.post("mutate", large).status)) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(answers) <= {200, 503}, answers
        equal(controller.mutate(pod())["metadata"], marked("ann"))
        equal(controller.stop(), 0)


def certificates(directory):
    """A certificate that is replaced is used for the next connection."""
    need_programs("openssl")

    def renew(name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        "/CN=" + name, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", directory + "/new.key",
                        "-out", directory + "/new.crt"], check=True, stderr=subprocess.DEVNULL)
        os.chmod(directory + "/new.key", 0o644)
        os.replace(directory + "/new.key", directory + "/tls.key")
        os.replace(directory + "/new.crt", directory + "/tls.crt")

    renew("first")
    web = harness.write(directory + "/web.yml", "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n")
    with Controller(directory, ["--web.config.file=" + web], "https") as controller:
        def names():
            shown = subprocess.run(["openssl", "x509", "-noout", "-subject"], capture_output=True, text=True, check=True,
                                   input=ssl.get_server_certificate(("127.0.0.1", controller.port)))
            return shown.stdout.strip().rsplit("=", 1)[1].strip()
        equal(names(), "first")
        renew("second")
        wait_until("the new certificate", lambda: names() == "second")
        context = ssl.create_default_context(cafile=directory + "/tls.crt")
        connection = http.client.HTTPSConnection("localhost", controller.port, timeout=90, context=context)
        connection.request("POST", "/ceems-admission-controller/mutate", json.dumps(
            {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1", "request": {"uid": "1", "operation": "CREATE", "object": pod(),
                                                                                         "userInfo": {"username": "ann"}}}),
            {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        equal((answer["apiVersion"], answer["response"]["allowed"]), ("admission.k8s.io/v1beta1", True))
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        end = float(page.split("\nceems_k8s_admission_controller_certificate_end_timestamp_seconds ")[1].split()[0])
        assert abs(end - time.time() - 2 * 86400) < 600, end
        equal(end, float(page.split("\nceems_web_certificate_not_after_timestamp_seconds ")[1].split()[0]))
        connection.close()


def consistent(page, manifest):
    """The objects of the manifest name each other, and the page names them. (tests/k8s/run gives it to a real API server.)"""
    parts = {}
    for text in re.split(r"(?m)^---\n", manifest):
        kind, = re.findall(r"(?m)^kind: (\w+)$", text)
        assert kind not in parts and re.search(r"(?m)^apiVersion: \S+$", text), kind
        parts[kind] = text
        name, = re.findall(r"(?m)^  name: (\S+)$", text)
        equal(name, "ceems" if kind == "Namespace" else "ceems-admission-controller", kind)
        if kind not in ("Namespace", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            equal(re.findall(r"(?m)^  namespace: (\S+)$", text), ["ceems"], kind)

    def one(kind, pattern):
        found = set(re.findall(pattern, parts[kind]))
        equal(len(found), 1, "%s in %s" % (pattern, kind))
        return found.pop()

    mutating, validating = parts["MutatingWebhookConfiguration"], parts["ValidatingWebhookConfiguration"]
    equal(mutating[mutating.index("    rules:"):].strip(), validating[validating.index("    rules:"):].strip(), "the rules of the two webhooks")
    for kind, hook in (("MutatingWebhookConfiguration", "mutate"), ("ValidatingWebhookConfiguration", "validate")):
        equal(re.search(r"service:\n +name: (\S+)\n +namespace: (\S+)\n +path: (\S+)", parts[kind]).groups(),
              ("ceems-admission-controller", "ceems", "/ceems-admission-controller/" + hook))
        equal(one(kind, r"inject-ca-from: (\S+)"), "ceems/ceems-admission-controller")
        equal(one(kind, r"\n  - name: (\S+)"), hook + ".ceems.io")
    port = one("Deployment", r"--web.listen-address=:(\d+)")
    equal((one("Deployment", r"containerPort: (\d+)"), one("NetworkPolicy", r"port: (\d+)")), (port, port))
    equal((one("Service", r"targetPort: (\S+)"), one("Deployment", r"port: (\S+)")), ("https", "https"))
    label = one("Deployment", r"app.kubernetes.io/name: (\S+)")
    for kind in ("Service", "NetworkPolicy", "PodDisruptionBudget"):
        equal(one(kind, r"app.kubernetes.io/name: (\S+)"), label, kind)
    secret = one("Certificate", r"secretName: (\S+)")
    equal((one("Deployment", r"secretName: (\S+)"), re.findall(r"create secret tls (\S+)", page)), (secret, [secret]))
    name = re.search(r"subjectAltName=DNS:(\S+)", page).group(1)
    assert "- %s\n" % name in parts["Certificate"], name
    equal(name, "ceems-admission-controller.ceems.svc")


def documentation(directory):
    """The metrics and flags of the page exist, and the commands of the page and of the manifest start the program."""
    with open(os.path.join(harness.ROOT, "docs", "admission-controller.md"), encoding="utf-8") as file:
        page = file.read()
    with open(os.path.join(harness.ROOT, "packaging", "kubernetes", "admission-controller.yml"), encoding="utf-8") as file:
        manifest = file.read()
    program = os.path.join(harness.BIN, "ceems_k8s_admission_controller")
    usage = subprocess.run([program, "--help"], capture_output=True, text=True, check=True, timeout=90).stdout
    known = set(re.findall(r"--(?:\[no-\])?([a-z][a-z.-]+)", usage))
    named = set(re.findall(r"[`=\n -]--(?:\[no-\])?([a-z][a-z.-]+)", page + manifest))
    equal(sorted(name for name in named - known if name not in ("image", "type", "cert", "key")), [])
    for flag, default in re.findall(r"^\| `--(?:\[no-\])?([a-z.-]+)` \| (?:`([^`]*)`|\S+) \|", page, re.M):
        shown = re.search(r"--(?:\[no-\])?%s\b[^\n]*" % re.escape(flag), usage)
        assert shown and (not default or default in shown.group(0)), (flag, default, shown and shown.group(0))
    flags = re.findall(r"(--(?:trusted-creators|workload)=[^`\s]+|--enforce)", page) + re.findall(r"- (--trusted-creators\S+|--enforce)", manifest)
    assert len(flags) > 8, flags
    with Controller(directory, [flag for flag in dict.fromkeys(flags) if "GROUP/KIND" not in flag]) as controller:
        families = set(re.findall(r"# TYPE (\S+)", get(controller.url + "/metrics").text))
        for name in re.findall(r"^\| `(ceems_k8s\w+)`", page, re.M):
            assert name in families or name.endswith(("dropped_requests_total", "end_timestamp_seconds")), name
        for name in families:
            assert name.startswith("process_") or "`%s`" % name in page, name
    consistent(page, manifest)
    web = re.search(r"web-config.yaml: \|\n((?:    .*\n)+)", manifest).group(1).replace("/certs", directory)
    harness.write(directory + "/web.yml", re.sub(r"(?m)^    ", "", web))
    subprocess.run(re.search(r"(?m)^openssl req.*$", page).group(0).split(), check=True, cwd=directory, stderr=subprocess.DEVNULL)
    os.chmod(directory + "/tls.key", 0o644)
    with Controller(directory, ["--web.config.file=" + directory + "/web.yml"], "https") as controller:
        context = ssl.create_default_context(cafile=directory + "/tls.crt")
        with socket.create_connection(("127.0.0.1", controller.port), timeout=90) as plain:
            with context.wrap_socket(plain, server_hostname="ceems-admission-controller.ceems.svc") as tls:
                tls.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                assert b" 200 " in tls.recv(4096)


TESTS = (creators, updates, trust, custom_resources, hostile, certificates, documentation)

if __name__ == "__main__":
    sys.exit(harness.run_tests(TESTS, "ceems-admission-"))
