"""A fake Kubernetes API server: pods with list (limit, continue) and watch (resume by resourceVersion, bookmarks, 410), and role
bindings. Needs only Python 3.9 and its library."""

import base64
import copy
import http.server
import json
import threading
import time
import urllib.parse


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def pod(uid, name=None, namespace="lab", user="ada", phase="Running", start=None, end=None, cpu="2", memory="1Gi", gpu=0,
        annotations=None, created=None):
    """A pod as the API server sends it, with start and end in epoch seconds."""
    limits = {"cpu": cpu, "memory": memory}
    if gpu:
        limits["nvidia.com/gpu"] = gpu
    created = int(created or start or time.time())
    status = {"phase": phase, "qosClass": "Guaranteed"}
    if start:
        status["startTime"] = stamp(start)
        ready = phase == "Running"
        status["conditions"] = [{"type": "Ready", "status": "True" if ready else "False",
                                 "reason": "" if ready else "PodCompleted", "lastTransitionTime": stamp(end or start)}]
        status["containerStatuses"] = [{"name": "main", "state": {"terminated": {"finishedAt": stamp(end)}} if end
                                        else {"running": {"startedAt": stamp(start)}}}]
    return {"metadata": {"name": name or uid, "namespace": namespace, "uid": uid, "creationTimestamp": stamp(created),
                         "annotations": dict({"ceems.io/created-by": user}, **(annotations or {}))},
            "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}, "status": status}


class FakeKube:
    def __init__(self, page=1000):
        self.lock = threading.Condition()
        self.page = page
        self.version = 100
        self.oldest = 100  # events up to this version are compacted
        self.pods = {}
        self.events = []   # (version, type, object)
        self.raw = []      # lines to send on the next watch
        self.generation = 0
        self.bindings = []
        self.bindings_status = 200
        self.delay = 0.0
        self.requests = []
        self.server = None

    # Changes made by the test

    def put(self, item):
        with self.lock:
            key = json.dumps(item["metadata"]["uid"])
            self._change("MODIFIED" if key in self.pods else "ADDED", item)
            self.pods[key] = item

    def delete(self, uid):
        with self.lock:
            self._change("DELETED", self.pods.pop(json.dumps(uid)))

    def send_raw(self, line):
        with self.lock:
            self.raw.append(line)
            self.lock.notify_all()

    def drop_watches(self):
        with self.lock:
            self.generation += 1
            self.lock.notify_all()

    def compact(self):
        with self.lock:
            self.oldest = self.version
            self.events.clear()

    def seen(self, part):
        with self.lock:
            return [r for r in self.requests if part in r]

    def _change(self, kind, item):
        self.version += 1
        item = copy.deepcopy(item)
        item["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, kind, item))
        self.lock.notify_all()

    # Responses

    def list_pods(self, query):
        with self.lock:
            items = [self.pods[key] for key in sorted(self.pods)]
            limit = min(int(query.get("limit", ["0"])[0]) or len(items), self.page)
            at = int(base64.b64decode(query["continue"][0])) if "continue" in query else 0
            metadata = {"resourceVersion": str(self.version)}
            if at + limit < len(items):
                metadata["continue"] = base64.b64encode(b"%d" % (at + limit)).decode()
            return {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items[at:at + limit]}

    def watch(self, query, send):
        at = int(query.get("resourceVersion", ["0"])[0])
        with self.lock:
            generation = self.generation
            if at < self.oldest:
                send({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410,
                                                  "message": "too old resource version"}})
                return
        last_bookmark = time.monotonic()
        while True:
            with self.lock:
                if self.generation != generation or self.server is None:
                    return
                fresh = [event for event in self.events if event[0] > at]
                raw, self.raw = self.raw, []
                if not fresh and not raw:
                    self.lock.wait(0.2)
                version = self.version
            for line in raw:
                send(line)
            for number, kind, item in fresh:
                send({"type": kind, "object": item})
                at = number
            if not fresh and time.monotonic() - last_bookmark > 1:
                last_bookmark = time.monotonic()
                send({"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": str(version)}}})

    def start(self, port=0):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def send_json(self, status, document):
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def refuse(self, status, message):
                self.send_json(status, {"kind": "Status", "status": "Failure", "code": status, "message": message})

            def send_line(self, line):
                data = (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def do_GET(self):
                parts = urllib.parse.urlsplit(self.path)
                query = urllib.parse.parse_qs(parts.query)
                with outer.lock:
                    outer.requests.append(self.path)
                if self.headers.get("Authorization") != "Bearer good":
                    return self.refuse(401, "Unauthorized")
                if parts.path.endswith("/rolebindings"):
                    if outer.bindings_status != 200:
                        return self.refuse(outer.bindings_status, "rolebindings is forbidden")
                    return self.send_json(200, {"metadata": {}, "items": outer.bindings})
                if parts.path != "/api/v1/pods":
                    return self.refuse(404, "not found")
                if query.get("watch") != ["true"]:
                    time.sleep(outer.delay)
                    return self.send_json(200, outer.list_pods(query))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.flush()
                try:
                    outer.watch(query, self.send_line)
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    pass
                self.close_connection = True

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Server(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self.server.server_port

    def stop(self):
        server, self.server = self.server, None
        self.drop_watches()
        if server:
            server.shutdown()
            server.server_close()
