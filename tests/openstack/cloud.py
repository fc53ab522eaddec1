"""A real Keystone and Nova on loopback, with Nova's fake compute driver, and a client for their administrator. Needs root and the root
file system of tests/openstack/root. Glance and Neutron are answered here, because the servers of the test have neither."""

import datetime
import json
import os
import re
import shutil
import sys
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
from harness import FakeHttp, Program, free_port, wait_until  # noqa: E402

IMAGE = "aaaaaaaa-0000-0000-0000-000000000001"
PORTS = ("DB_PORT", "KEYSTONE_PORT", "NOVA_PORT", "PLACEMENT_PORT", "RABBIT_PORT", "DIST_PORT", "EPMD_PORT")
# The namespaces end with the process that holds them, and with them all daemons and mounts.
ENTER = ('mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs -o mode=755,size=2g srv "$1/srv" && '
         'mount --bind "$2" "$1/mnt" && exec chroot "$1" /bin/bash /mnt/up')


def images_and_networks(path, _query, _body):
    """One image, its schema, and a network service that has nothing but a security group."""
    image = {"id": IMAGE, "name": "image", "status": "active", "visibility": "public", "disk_format": "qcow2", "container_format": "bare",
             "min_disk": 0, "min_ram": 0, "size": 100, "protected": False, "owner": "nobody", "tags": [], "os_hidden": False,
             "created_at": "2024-01-01T00:00:00Z", "updated_at": "2024-01-01T00:00:00Z", "file": "/v2/images/x/file",
             "self": "/v2/images/x", "schema": "/v2/schemas/image", "checksum": "0" * 32}
    kinds = {bool: "boolean", int: "integer", list: "array", str: "string"}
    if path.startswith("/v2/schemas/image"):
        answer = {"name": "image", "properties": {key: {"type": kinds[type(value)]} for key, value in image.items()},
                  "additionalProperties": {"type": "string"}, "links": []}
    elif path.startswith("/v2/images/"):
        answer = image
    elif path.startswith("/v2/images"):
        answer = {"images": [image]}
    elif path.startswith("/v2.0/security-groups"):
        answer = {"security_groups": [{"id": "bbbbbbbb-0000-0000-0000-000000000001", "name": "default", "tenant_id": "x", "description": "",
                                       "security_group_rules": []}]}
    elif match := re.match(r"/v2\.0/([a-z-]+)", path):
        answer = {match.group(1).replace("-", "_"): []}
    elif path in ("/", "/versions"):
        answer = {"versions": [{"id": "v2.9", "status": "CURRENT", "links": [{"rel": "self", "href": "/v2/"}]}]}
    else:
        return 404, "application/json", b"{}"
    return 200, "application/json", json.dumps(answer).encode()


def epoch(text):
    """Seconds of a time that Nova sent, without fraction."""
    return int(datetime.datetime.fromisoformat(re.sub(r"(\.\d+)?Z?$", "", text)).replace(tzinfo=datetime.timezone.utc).timestamp())


class Cloud:
    """Runs from start to stop; a context manager. Its users have the password "secret"."""

    def __init__(self, root, directory, token_seconds=3600):
        self.root, self.directory, self.token_seconds = root, directory, token_seconds
        ports = {name: str(free_port()) for name in PORTS}
        self.keystone = "http://127.0.0.1:" + ports["KEYSTONE_PORT"]
        self.nova = "http://127.0.0.1:%s/v2.1" % ports["NOVA_PORT"]
        self.placement = "http://127.0.0.1:" + ports["PLACEMENT_PORT"]
        self.environment = dict(ports, TOKEN_SECONDS=str(token_seconds), PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        self._token = None, 0.0

    def __enter__(self):
        self.images = FakeHttp(images_and_networks)
        self.environment["IMAGES_PORT"] = str(self.images.server.server_port)
        self.program = Program([shutil.which("unshare"), "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
                                "sh", "-c", ENTER, "sh", self.root, HERE], os.path.join(self.directory, "cloud.log"), self.environment)
        try:
            wait_until("the cloud is ready", self._ready, 900, 1)
            wait_until("Placement knows the compute host", self._has_host, 300, 1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.program.kill()
        self.images.__exit__()

    def _ready(self):
        assert self.program.alive(), self.program.output()[-3000:]
        return "ready" in self.program.output()

    def _has_host(self):
        found = self._send("GET", self.placement + "/allocation_candidates?resources=VCPU:1,MEMORY_MB:1,DISK_GB:1", None,
                           {"X-Auth-Token": self._admin(), "OpenStack-API-Version": "placement 1.10"})["body"]
        return found["provider_summaries"]

    def token(self, user="admin", project="admin"):
        answer = self._send("POST", self.keystone + "/v3/auth/tokens", {"auth": {
            "identity": {"methods": ["password"], "password": {"user": {"name": user, "domain": {"id": "default"}, "password": "secret"}}},
            "scope": {"project": {"name": project, "domain": {"id": "default"}}}}})
        return answer["X-Subject-Token"]

    def _send(self, method, url, body=None, headers=None):
        """The headers of the answer, and its document as the member "body"."""
        request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(),
                                         {"Content-Type": "application/json", **(headers or {})}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                text = answer.read()
                return dict(answer.headers, body=json.loads(text) if text else None)
        except urllib.error.HTTPError as error:
            raise AssertionError("%s %s: %d %s" % (method, url, error.code, error.read()[:500])) from error

    def identity(self, method, path, body=None):
        """An answer of Keystone to the administrator."""
        return self._send(method, self.keystone + "/v3" + path, body, {"X-Auth-Token": self._admin()})["body"]

    def compute(self, method, path, body=None, user="admin", project="admin"):
        """An answer of Nova."""
        token = self._admin() if user == "admin" else self.token(user, project)
        return self._send(method, self.nova + path, body, {"X-Auth-Token": token, "OpenStack-API-Version": "compute 2.79"})["body"]

    def _admin(self):
        if self._token[1] < time.monotonic():
            self._token = self.token(), time.monotonic() + self.token_seconds / 2
        return self._token[0]

    def create(self, kind, **fields):
        """The identifier of a new project, user or domain."""
        return self.identity("POST", "/%ss" % kind, {kind: fields})[kind]["id"]

    def assign(self, user, project, role="member", method="PUT"):
        roles = {one["name"]: one["id"] for one in self.identity("GET", "/roles")["roles"]}
        self.identity(method, "/projects/%s/users/%s/roles/%s" % (project, user, roles[role]))

    def flavor(self, name, vcpus, ram, disk, specs=None):
        made = self.compute("POST", "/flavors", {"flavor": {"name": name, "vcpus": vcpus, "ram": ram, "disk": disk}})["flavor"]["id"]
        if specs:
            self.compute("POST", "/flavors/%s/os-extra_specs" % made, {"extra_specs": specs})
        return made

    def boot(self, name, flavor, user="admin", project="admin", **fields):
        """The server once it is ACTIVE."""
        made = self.compute("POST", "/servers", {"server": {"name": name, "flavorRef": flavor, "imageRef": IMAGE, "networks": "none",
                                                            **fields}}, user, project)
        return self.await_status(made["server"]["id"], "ACTIVE")

    def server(self, uuid):
        return self.compute("GET", "/servers/" + uuid)["server"]

    def await_status(self, uuid, status, timeout=300):
        def reached():
            server = self.server(uuid)
            assert server["status"] != "ERROR" or status == "ERROR", server.get("fault")
            return server if server["status"] == status else None
        return wait_until("server %s is %s" % (uuid, status), reached, timeout, 0.5)

    def act(self, uuid, action, status, argument=None):
        """Does something to a server, and waits for its status."""
        self.compute("POST", "/servers/%s/action" % uuid, {action: argument})
        return self.await_status(uuid, status)
