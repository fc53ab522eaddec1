"""Small versions of the services that the machines in tests/fixtures talk to: a Redfish BMC, and Kubernetes (API server and kubelet).

Each is created with the folder of the machine and an empty folder for its own files. `settings` replace the {names} in a case's flags,
`environment` holds variables for the exporter, and close() stops the service."""

import http.server
import json
import os
import shutil
import socket
import struct
import threading
import time


class _Answers(http.server.BaseHTTPRequestHandler):
    """Serves JSON documents by path (`server.documents`). `server.refuse(request)` returns whether to deny a request."""

    protocol_version = "HTTP/1.1"

    def answer(self, status, document, headers=()):
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in [("Content-Type", "application/json"), ("Content-Length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.server.refuse(self):
            self.answer(401, {})
        elif self.path in self.server.documents:
            self.answer(200, self.server.documents[self.path])
        else:
            self.answer(404, {})

    def do_POST(self):
        login = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/redfish/v1/SessionService/Sessions" or login != Redfish.LOGIN:
            self.answer(401, {})
            return
        self.answer(201, {}, [("X-Auth-Token", Redfish.TOKEN), ("Location", self.path + "/1")])

    def do_DELETE(self):
        self.answer(200, {})

    def log_message(self, *_):
        pass


class _Http:
    def __init__(self, documents, refuse):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
        self.server.daemon_threads = True
        self.server.documents = documents
        self.server.refuse = refuse
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    @property
    def port(self):
        return self.server.server_address[1]

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Redfish:
    """Three chassis: "Node-1" with two power controls, "System.Embedded.1" whose metrics are partly unknown, and "Rack", which has no
    power."""

    LOGIN = {"UserName": "golden", "Password": "pa$$ word"}
    TOKEN = "8f1c"
    POWER = {
        "Node-1": [{"PowerConsumedWatts": 310.5, "PowerMetrics": {
            "MinConsumedWatts": 120, "MaxConsumedWatts": 705, "AverageConsumedWatts": 298}},
            {"MemberId": 1, "PowerConsumedWatts": 44, "PowerMetrics": {
                "MinConsumedWatts": 20, "MaxConsumedWatts": 60, "AverageConsumedWatts": 41.25}}],
        "System.Embedded.1": [{"PowerConsumedWatts": 96, "PowerMetrics": {
            "MinConsumedWatts": 0, "MaxConsumedWatts": None}}],
    }

    def __init__(self, _machine, _folder):
        base = "/redfish/v1/"
        chassis = base + "Chassis"
        documents = {
            base: {"Chassis": {"@odata.id": chassis}, "Links": {"Sessions": {"@odata.id": base + "SessionService/Sessions"}}},
            chassis: {"Members": [{"@odata.id": chassis + "/" + name} for name in [*self.POWER, "Rack"]]},
            chassis + "/Rack": {"Id": "Rack"},
        }
        for name, controls in self.POWER.items():
            path = chassis + "/" + name
            documents[path] = {"Id": name, "Power": {"@odata.id": path + "/Power"}}
            documents[path + "/Power"] = {"PowerControl": controls}
        self.http = _Http(documents, lambda request: request.path != base and
                          request.headers["X-Auth-Token"] != self.TOKEN)
        self.settings = {}
        self.environment = {"REDFISH_PORT": str(self.http.port), "REDFISH_USER": self.LOGIN["UserName"],
                            "REDFISH_PASSWORD": self.LOGIN["Password"]}

    def close(self):
        self.http.close()


class Kubernetes:
    """An API server that lists the pods of pods.json, and a kubelet socket that returns pod-resources.json."""

    def __init__(self, machine, folder):
        with open(os.path.join(machine, "pods.json"), encoding="utf-8") as f:
            pods = json.load(f)
        with open(os.path.join(machine, "pod-resources.json"), encoding="utf-8") as f:
            self.reply = _grpc_message(b"".join(_pod(pod) for pod in json.load(f)))
        path = "/api/v1/pods?fieldSelector=spec.nodeName%3Dworker3"
        self.http = _Http({path: pods}, lambda request: request.headers["Authorization"] != "Bearer golden")
        kubeconfig = os.path.join(folder, "kubeconfig.yml")
        with open(kubeconfig, "w", encoding="utf-8") as f:
            f.write("""apiVersion: v1
kind: Config
current-context: here
contexts:
  - name: here
    context: {cluster: here, user: exporter}
clusters:
  - name: here
    cluster: {server: "http://127.0.0.1:%d"}
users:
  - name: exporter
    user: {token: golden}
""" % self.http.port)
        path = os.path.join(folder, "kubelet.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        self.settings = {"kubeconfig": kubeconfig, "kubelet": path}
        self.environment = {"NODE_NAME": "worker3"}

    def close(self):
        self.http.close()
        self.listener.close()

    def _accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        """The part of HTTP/2 (RFC 9113) that one unary gRPC call needs."""
        data, headers, settings, ping = 0, 1, 4, 6
        end_stream, end_headers, ack = 1, 4, 1
        with connection, connection.makefile("rwb") as stream:
            def send(kind, flags, number, payload=b""):
                stream.write(struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, number) + payload)
                stream.flush()

            stream.read(24)  # the connection preface
            send(settings, 0, 0)
            while len(head := stream.read(9)) == 9:
                size, kind, flags, number = int.from_bytes(head[:3], "big"), *struct.unpack("!BBI", head[3:])
                payload = stream.read(size)
                if kind == settings and not flags & ack:
                    send(settings, ack, 0)
                elif kind == ping and not flags & ack:
                    send(ping, ack, 0, payload)
                elif kind in (data, headers) and flags & end_stream:
                    # RFC 7541: 0x88 is ":status: 200"; the others are literals without indexing.
                    send(headers, end_headers, number, b"\x88" + _literal("content-type", "application/grpc"))
                    send(data, 0, number, self.reply)
                    send(headers, end_headers | end_stream, number, _literal("grpc-status", "0"))


def _literal(name, value):
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def _grpc_message(message):
    return b"\0" + struct.pack("!I", len(message)) + message


def _field(number, value):
    """A length-delimited field of a protocol buffer message."""
    value = value.encode() if isinstance(value, str) else value
    size = b""
    rest = len(value)
    while rest >= 0x80:
        size += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return bytes([number << 3 | 2]) + size + bytes([rest]) + value


def _pod(pod):
    """A PodResources message of the kubelet's API podresources/v1, as an element of ListPodResourcesResponse."""
    containers = b""
    for container in pod["containers"]:
        devices = b"".join(_field(2, _field(1, device["resource_name"]) +
                                  b"".join(_field(2, name) for name in device["device_ids"]))
                           for device in container["devices"])
        containers += _field(3, _field(1, container["name"]) + devices)
    return _field(1, _field(1, pod["name"]) + _field(2, pod["namespace"]) + containers)


class Sockets:
    """A copy of the machine's sysfs, {sysfs}, in which the counters of amd_energy rise by WATTS."""

    WATTS = (114.257, 131.4, 72.747, 123.682)
    PERIOD = 0.1

    def __init__(self, machine, folder):
        sysfs = os.path.join(folder, "sys")
        shutil.copytree(os.path.join(machine, "sys"), sysfs)
        self.settings = {"sysfs": sysfs}
        self.environment = {}
        self._files = [os.path.join(sysfs, "class", "hwmon", "hwmon0", "energy%d_input" % (i + 1)) for i in range(len(self.WATTS))]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        start = time.monotonic()
        while not self._stop.wait(self.PERIOD):
            for file, watts in zip(self._files, self.WATTS):
                with open(file + ".new", "w", encoding="ascii") as f:
                    f.write("%d\n" % (1e9 + watts * 1e6 * (time.monotonic() - start)))
                os.replace(file + ".new", file)

    def close(self):
        self._stop.set()
        self._thread.join()
