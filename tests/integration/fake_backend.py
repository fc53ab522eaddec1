"""A stand-in for Prometheus and Pyroscope behind ceems_lb that can fail on request."""

import contextlib
import json
import os
import socket
import socketserver
import threading
import time

NAMES = {"LabelNames": b'{"names":["service_name"]}', "LabelValues": b'{"names":["1"]}', "Series": b'{"labelsSet":[{"labels":[]}]}'}
GOOD = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
NOTHING = b'{"status":"success","data":[]}'
SECRETIVE = (b'{"status":"error","errorType":"execution","error":"found duplicate series for the match group {} on the right hand-side: '
             b'[{instance=\\"secret-host\\"}];many-to-many matching not allowed: matching labels must be unique on one side"}')


def is_probe(request):
    """Whether ceems_lb itself asks if the server honours matchers, as it does when it starts. Such requests are not recorded."""
    asked = request[1]
    return request[2].get("user-agent") == ["ceems"] and ("/api/v1/label" in asked or "/api/v1/series" in asked or asked.rsplit("/", 1)[-1] in NAMES)


class Backend:
    """An HTTP/1.1 server that behaves according to `mood`: well, broken, garbage, silent, gone, closing, slow, big, secretive, api,
    or one of the failures below. With `path` it listens on that Unix socket. As Pyroscope it has one profile, of service 1; with the
    mood "old" it ignores matchers, as Phlare did."""

    def __init__(self, mood="well", context=None, path=None):
        outer = self
        self.mood, self.seen, self.connections, self.megabytes = mood, [], 0, 64
        self.lock = threading.Lock()

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with outer.lock:
                    outer.connections += 1
                with contextlib.suppress(OSError, ValueError):
                    while outer.serve(self.rfile, self.wfile):
                        pass

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address, daemon_threads, request_queue_size = True, True, 64

            def handle_error(self, *_):
                pass

        class UnixServer(Server):
            address_family, allow_reuse_address = socket.AF_UNIX, False

        self.server = UnixServer(path, Handler) if path else Server(("127.0.0.1", 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        if path:
            os.chmod(path, 0o666)  # for the user that the program becomes
        self.port = 0 if path else self.server.server_address[1]
        self.url = "unix://" + path if path else "http%s://127.0.0.1:%d" % ("s" if context else "", self.port)
        threading.Thread(target=self.server.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()

    def read(self, rfile):
        """Reads and records a request: method, path, {lower-case name: [values]} and body. None at the end of the connection."""
        line = rfile.readline().decode()
        if not line:
            return None
        headers = {}
        while True:
            field = rfile.readline().decode().rstrip("\r\n")
            if not field:
                break
            name, value = field.split(":", 1)
            headers.setdefault(name.lower(), []).append(value.strip())
        body = rfile.read(int(headers.get("content-length", ["0"])[0]))
        request = (line.split()[0], line.split()[1], headers, body)
        if not is_probe(request):
            with self.lock:
                self.seen.append(request)
        return request

    def serve(self, rfile, wfile):
        request = self.read(rfile)
        if not request:
            return False
        _, path, _, body = request
        mood = self.mood
        if mood == "gone":
            return False
        if mood == "silent":
            while self.mood == "silent":
                time.sleep(0.05)
            return False
        if mood == "garbage":
            wfile.write(b"\x00\x01what is this?\r\n\r\n")
            return False
        if mood == "two lengths":
            wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
            return False
        if mood == "broken":
            wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(GOOD) + GOOD[:20])
            return False
        if mood == "broken chunks":
            wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n" + GOOD[:20] + b"\r\n")
            return False
        if mood == "without length":
            wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + GOOD)
            return False  # the response ends with the connection; with TLS that is not valid without its alert
        if is_probe(request) and "/api/v1/" in path:
            wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(NOTHING) + NOTHING)
            return True
        if mood == "big":
            wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            piece = b'{"metric":{"uuid":"1","instance":"secret-host"},"value":[1,"2"]},' * 1000
            start = b'{"status":"success","data":{"resultType":"vector","result":['
            wfile.write(b"%x\r\n%s\r\n" % (len(start), start))
            for _ in range(self.megabytes * 1_000_000 // len(piece)):
                wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            end = b'{"metric":{},"value":[1,"2"]}]}}'
            wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))
            return True
        if mood == "secretive":
            wfile.write(b"HTTP/1.1 422 Unprocessable Entity\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                        % len(SECRETIVE) + SECRETIVE)
            return True
        if mood == "api":
            good = json.dumps({"status": "success", "data": [{"id": "c0", "uuid": "1"}]}).encode()
            wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(good) + good)
            return True
        if mood == "slow":
            time.sleep(0.3)
        call = path.rsplit("/", 1)[-1]
        if call in NAMES:
            names = NAMES[call] if mood == "old" or b'"{}"' in body or b'service_name="1"' in body else b"{}"
            wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(names) + names)
            return True
        wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Port: %d\r\nContent-Length: %d\r\n\r\n"
                    % (self.port, len(GOOD)) + GOOD)
        return mood != "closing"  # closes without having announced it

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.mood = "gone"
        self.server.shutdown()
        self.server.server_close()
