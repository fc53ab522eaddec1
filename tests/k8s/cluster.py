"""A control plane of Kubernetes on loopback: etcd, a real kube-apiserver and kube-controller-manager, and kubectl. It has no kubelet
and no scheduler, so pods stay as they are unless a test sets their status. Needs the programs of tests/k8s/build and etcd."""

import base64
import contextlib
import http.client
import json
import os
import ssl
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
from harness import Program, free_port, wait_until, write  # noqa: E402


class Refused(Exception):
    """kubectl failed; the text is what it printed."""


class Authority:
    """A certificate authority in a directory."""

    def __init__(self, directory):
        self.directory = directory
        self.certificate = os.path.join(directory, "ca.crt")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test-ca",
                      "-keyout", "ca.key", "-out", "ca.crt")

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=self.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def issue(self, name, subject, alternatives=None):
        """Makes NAME.crt and NAME.key. A subject is such as "/O=group/CN=user"."""
        extensions = write(os.path.join(self.directory, name + ".ext"), "extendedKeyUsage=serverAuth,clientAuth\n" + (
            "subjectAltName=%s\n" % alternatives if alternatives else ""))
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-keyout", name + ".key",
                      "-out", name + ".csr")
        self._openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                      "-extfile", extensions, "-out", name + ".crt")
        return os.path.join(self.directory, name + ".crt"), os.path.join(self.directory, name + ".key")


def encoded(path):
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()


class Cluster:
    """Runs from start to stop; a context manager. `users` are the names for kubectl(user=...): "admin" may do everything, the others
    have what the test binds to them."""

    # The UID of a user comes from this file; client certificates and impersonation have none.
    TOKENS = {"admin": ("admin", "1", ["system:masters"]), "ann": ("ann", "7f0c-ann", ["users"]), "bob": ("bob", "7f0c-bob", ["users"]),
              "ceems": ("ceems", "7f0c-ceems", [])}
    CERTIFICATES = {"eve": "/O=users/CN=eve", "controllers": "/CN=system:kube-controller-manager"}

    def __init__(self, bin_directory, directory):
        self.bin, self.directory = bin_directory, directory
        self.programs = contextlib.ExitStack()
        self.port, self.etcd_port = free_port(), free_port()
        self.server = "https://127.0.0.1:%d" % self.port
        self.configs = {}

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.programs.close()
            raise
        return self

    def __exit__(self, *_):
        self.api.kill()
        self.programs.close()

    def _program(self, name, arguments):
        return self.programs.enter_context(Program(arguments, self.path(name + ".log"), cwd=self.directory))

    def _start(self):
        self.authority = Authority(self.directory)
        certificate, key = self.authority.issue("server", "/CN=kube-apiserver", "IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes")
        subprocess.run(["openssl", "genrsa", "-out", self.path("sa.key"), "2048"], check=True, stderr=subprocess.DEVNULL)
        write(self.path("tokens.csv"), "".join('%s-token,%s,%s,"%s"\n' % (user, name, uid, ",".join(groups))
                                               for user, (name, uid, groups) in self.TOKENS.items()))
        peer = free_port()
        etcd = "http://127.0.0.1:%d" % self.etcd_port
        self._program("etcd", ["etcd", "--data-dir", self.path("etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
                               "--listen-peer-urls", "http://127.0.0.1:%d" % peer, "--initial-advertise-peer-urls",
                               "http://127.0.0.1:%d" % peer, "--initial-cluster", "default=http://127.0.0.1:%d" % peer, "--unsafe-no-fsync"])
        self.api_arguments = [
            os.path.join(self.bin, "kube-apiserver"), "--etcd-servers=" + etcd, "--bind-address=127.0.0.1", "--secure-port=%d" % self.port,
            "--tls-cert-file=" + certificate, "--tls-private-key-file=" + key, "--client-ca-file=" + self.authority.certificate,
            "--token-auth-file=" + self.path("tokens.csv"), "--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-key-file=" + self.path("sa.key"), "--service-account-signing-key-file=" + self.path("sa.key"),
            "--service-account-issuer=https://kubernetes.default.svc", "--allow-privileged"]
        self.api = self._program("apiserver", self.api_arguments)
        for user in self.TOKENS:
            self.add_user(user, {"token": user + "-token"})
        for user, subject in self.CERTIFICATES.items():
            certificate, key = self.authority.issue(user, subject)
            self.add_user(user, {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)})
        wait_until("the API server is ready", self._ready, 120, 0.3)
        # Each controller has a service account of its own, as clusters usually have it.
        self._program("controllers", [
            os.path.join(self.bin, "kube-controller-manager"), "--kubeconfig=" + self.configs["controllers"], "--bind-address=127.0.0.1",
            "--secure-port=%d" % free_port(), "--port=0", "--leader-elect=false", "--use-service-account-credentials=true",
            "--service-account-private-key-file=" + self.path("sa.key"), "--root-ca-file=" + self.authority.certificate,
            "--controllers=*,-nodelifecycle,-nodeipam"])

    def restart_api(self):
        self.api.kill()  # it would wait a minute for watches to end
        self.api = self._program("apiserver", self.api_arguments)
        wait_until("the API server is ready again", self._ready, 120, 0.3)

    def _ready(self):
        assert self.api.alive(), self.api.output()[-3000:]
        try:
            return self.kubectl("get", "--raw", "/readyz") == "ok"
        except Refused:
            return False

    def add_user(self, name, credentials):
        """Writes a kubeconfig and returns its name."""
        cluster = {"server": self.server, "certificate-authority-data": encoded(self.authority.certificate)}
        self.configs[name] = write(self.path(name + ".kubeconfig"), json.dumps({
            "apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": credentials}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x"}), 0o600)
        return self.configs[name]

    def kubectl(self, *arguments, user="admin", given=None, timeout=60):
        """What kubectl prints; Refused if it fails. `given` is its input: text, or an object to be sent as JSON."""
        text = given if given is None or isinstance(given, str) else json.dumps(given)
        done = subprocess.run([os.path.join(self.bin, "kubectl"), "--kubeconfig=" + self.configs[user], "--cache-dir=" + self.path("cache"),
                               *arguments], input=text, capture_output=True, text=True, timeout=timeout, cwd=self.directory)
        if done.returncode != 0:
            raise Refused(done.stderr + done.stdout)
        return done.stdout

    def get(self, kind, name=None, namespace="lab", **options):
        """An object, or the list of objects of a kind."""
        document = json.loads(self.kubectl("get", kind, *([name] if name else []), "-n", namespace, "-o", "json", **options))
        return document if name else document["items"]

    def create(self, thing, user="admin", namespace="lab", how="create", more=()):
        """The object as the API server answers."""
        return json.loads(self.kubectl(how, "-n", namespace, "-f", "-", "-o", "json", *more, user=user, given=thing))

    def set_status(self, pod, status, namespace="lab"):
        """Writes the status of a pod, as a kubelet does."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30,
                                                 context=ssl.create_default_context(cafile=self.authority.certificate))
        with contextlib.closing(connection):
            # This kubectl knows no --subresource.
            connection.request("PATCH", "/api/v1/namespaces/%s/pods/%s/status" % (namespace, pod), json.dumps({"status": status}),
                               {"Authorization": "Bearer admin-token", "Content-Type": "application/strategic-merge-patch+json"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()

    def service_account(self, name, account, namespace):
        """A user for kubectl with a token of this service account."""
        self.kubectl("create", "serviceaccount", account, "-n", namespace)
        answer = json.loads(self.kubectl("create", "--raw", "/api/v1/namespaces/%s/serviceaccounts/%s/token" % (namespace, account), "-f", "-",
                                         given={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}))
        return self.add_user(name, {"token": answer["status"]["token"]})

    def namespace(self, name):
        """Makes a namespace in which pods can be created."""
        self.kubectl("create", "namespace", name)
        wait_until("the service account of namespace " + name, lambda: self._exists("serviceaccount", "default", name), 60)

    def _exists(self, kind, name, namespace):
        try:
            self.get(kind, name, namespace)
        except Refused:
            return False
        return True

    def compact(self):
        """Makes etcd forget all earlier versions."""
        environment = dict(os.environ, ETCDCTL_API="3")
        etcdctl = ["etcdctl", "--endpoints=127.0.0.1:%d" % self.etcd_port]
        status = json.loads(subprocess.run([*etcdctl, "endpoint", "status", "-w", "json"], env=environment, check=True, capture_output=True,
                                           text=True).stdout)
        revision = status[0]["Status"]["header"]["revision"]
        subprocess.run([*etcdctl, "compact", str(revision)], env=environment, check=True, stdout=subprocess.DEVNULL)
