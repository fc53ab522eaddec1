"""A Keystone and a Nova in one process: the part of their HTTP API that ceems_api_server uses, with faults on request."""

import datetime
import http.server
import json
import re
import threading
import time
import urllib.parse


def iso(seconds, fraction=True):
    text = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return text + (".000000" if fraction else "Z")


class FakeOpenstack:
    """Its state can be changed while the server runs. `fault` names the error in every list.

    users: {id: name}; members: {user id: [project ids]}; projects: {id: name}; servers: {id: dict as Nova returns it}."""

    PASSWORD = "swordfish"

    def __init__(self, page_size=1000, token_seconds=3600.0):
        self.lock = threading.Lock()
        self.page_size, self.token_seconds = page_size, token_seconds
        self.users, self.members, self.projects, self.servers = {}, {}, {}, {}
        self.tokens = {}  # token: expiry
        self.token_requests = 0
        self.seen = []
        self.fault = None
        self.keystone_down = False
        self.broken_users = set()  # the requests for their projects fail with 500
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # because head and body are written separately

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = urllib.parse.urlsplit(self.path)
                query = urllib.parse.parse_qs(parts.query)
                status, data, headers = outer.handle(self.command, parts.path, query, self.headers, body)
                if status is None:
                    self.close_connection = True
                    return
                if not isinstance(data, bytes):
                    data = json.dumps(data).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    # Changes made by the test -----------------------------------------------------------------------------------------

    def add_server(self, uuid, user, project, launched, status="ACTIVE", vcpus=2, ram=512):
        now = time.time()
        with self.lock:
            self.servers[uuid] = {
                "id": uuid, "name": "name-" + uuid, "status": status, "tenant_id": project, "user_id": user, "metadata": {},
                "flavor": {"vcpus": vcpus, "ram": ram, "disk": 1, "swap": "", "original_name": "g", "extra_specs": {}},
                "created": iso((launched or now) - 2, False), "updated": iso(launched or now, False),
                "OS-SRV-USG:launched_at": iso(launched) if launched else None, "OS-SRV-USG:terminated_at": None,
                "OS-EXT-AZ:availability_zone": "nova", "OS-EXT-STS:power_state": 1, "tags": []}

    def change(self, uuid, **fields):
        with self.lock:
            for name, value in fields.items():
                key = {"launched": "OS-SRV-USG:launched_at", "terminated": "OS-SRV-USG:terminated_at"}.get(name, name)
                self.servers[uuid][key] = value
            if "updated" not in fields:
                self.servers[uuid]["updated"] = iso(time.time(), False)

    def forget_tokens(self):
        with self.lock:
            self.tokens.clear()

    # Responses --------------------------------------------------------------------------------------------------------

    def handle(self, method, path, query, headers, body):
        fault = self.fault
        with self.lock:
            self.seen.append((method, path, query))
            if path == "/v3/auth/tokens" and method == "POST":
                return self.token(body)
            if fault == "hang":
                self.lock.release()
                try:
                    time.sleep(60)
                finally:
                    self.lock.acquire()
                return None, b"", {}
            if fault == "401" or self.tokens.get(headers.get("X-Auth-Token"), 0) < time.time():
                return 401, {"error": {"code": 401, "message": "The request you have made requires authentication."}}, {}
            if path == "/v2.1/servers/detail":
                return self.detail(query, fault)
            return self.identity(path)

    def token(self, body):
        self.token_requests += 1
        if self.keystone_down:
            return 503, b"<html>down</html>", {}
        auth = json.loads(body)["auth"]
        if auth["identity"]["password"]["user"]["password"] != self.PASSWORD:
            return 401, {"error": {"code": 401, "message": "wrong password"}}, {}
        text = "token%d" % self.token_requests
        now = time.time()
        self.tokens[text] = now + self.token_seconds
        skew = 86400 * 3  # Keystone's clock may differ from ours
        return 201, {"token": {"issued_at": iso(now - skew) + "Z", "expires_at": iso(now + self.token_seconds - skew) + "Z"}}, {
            "X-Subject-Token": text}

    def identity(self, path):
        if path == "/v3/users":
            if self.fault == "no users":
                return 200, {"users": []}, {}
            return 200, {"users": [{"id": i, "name": n, "domain_id": "default", "enabled": True}
                                   for i, n in self.users.items()], "links": {"next": None}}, {}
        match = re.fullmatch(r"/v3/users/([^/]+)/projects", path)
        if match and match.group(1) in self.users:
            if match.group(1) in self.broken_users:
                return 500, {"error": {"message": "data base"}}, {}
            return 200, {"projects": [{"id": p, "name": self.projects[p], "domain_id": "default"}
                                      for p in self.members.get(match.group(1), [])], "links": {"next": None}}, {}
        return 404, {"error": {"code": 404, "message": "not found"}}, {}

    def detail(self, query, fault):
        lies = {"500": (500, b"oops"), "types": (200, b'{"servers": {"a": [1]}}'),
                "truncated": (200, b'{"servers": [{"id": "x", "stat'),
                "many": (200, b'{"servers": [' + b"1," * 5000000 + b"1]}")}
        if fault in lies:
            return lies[fault] + ({},)
        if fault == "close":
            return None, b"", {}
        gone = ("DELETED",)
        wants_deleted = "deleted" in query
        rows = [s for i, s in sorted(self.servers.items()) if (s["status"] in gone) == wants_deleted]
        if wants_deleted:
            since = datetime.datetime.strptime(query["changes-since"][0], "%Y-%m-%dT%H:%M:%S%z").timestamp()
            rows = [s for s in rows if s["updated"] >= iso(since, False)]
        marker = query.get("marker", [""])[0]
        rows = [s for s in rows if s["id"] > marker]
        size = min(self.page_size, int(query.get("limit", ["1000"])[0]))
        page, rest = rows[:size], rows[size:]
        answer = {"servers": page}
        if rest or fault == "page loop":
            last = "loop" if fault == "page loop" else page[-1]["id"]
            answer["servers_links"] = [{"rel": "next", "href": "http://nova.invalid/v2.1/servers/detail?marker=" + last}]
        if fault == "10 MB":
            answer["filler"] = "x" * (10 << 20)
        if fault == "wrong types inside":
            answer["servers"] = [7, {"id": None}, {"id": "odd", "status": {}}] + page
        return 200, answer, {}
