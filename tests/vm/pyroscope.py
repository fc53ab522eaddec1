"""A stand-in for Pyroscope, for the tests in the virtual machine."""

import gzip
import http.server
import threading


def fields(data):
    """The fields of a protobuf message: (number, value); values are numbers or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            assert tag & 7 == 2, tag
            size = varint()
            yield tag >> 3, data[at:at + size]
            at += size


class Pyroscope:
    """Receives pushes as Pyroscope does and decodes them by the published definitions. Reachable from the machine at 10.0.2.2."""

    def __init__(self):
        outer = self
        self.profiles = []  # (labels, {function: CPU nanoseconds}, all nanoseconds)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                wrong = (self.path, self.headers["Content-Type"], self.headers["Connect-Protocol-Version"]) != (
                    "/push.v1.PusherService/Push", "application/proto", "1")
                if not wrong:
                    outer.take(body)
                self.send_response(400 if wrong else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, body):
        for _, series in fields(body):
            labels, raw = {}, b""
            for number, value in fields(series):
                if number == 1:
                    pair = dict(fields(value))
                    labels[pair[1].decode()] = pair[2].decode()
                else:
                    raw = dict(fields(value))[1]
            self.profiles.append((labels, *self.decode(gzip.decompress(raw))))

    @staticmethod
    def decode(profile):
        strings, functions, locations, samples = [], {}, {}, []
        for number, value in fields(profile):
            if number == 6:
                strings.append(value.decode())
            elif number == 5:
                parts = dict(fields(value))
                functions[parts[1]] = parts[2]
            elif number == 4:
                parts = list(fields(value))
                line = dict(fields([v for n, v in parts if n == 4][0]))
                locations[dict((n, v) for n, v in parts if n == 1)[1]] = line[1]
            elif number == 2:
                samples.append(value)

        def packed(data):
            return [data] if isinstance(data, int) else [v for v in Pyroscope.varints(data)]
        inclusive, everything = {}, 0
        for sample in samples:
            ids, nanoseconds = [], 0
            for number, value in fields(sample):
                if number == 1:
                    ids += packed(value)
                elif number == 2:
                    nanoseconds += packed(value)[0]
            everything += nanoseconds
            for name in {strings[functions[locations[i]]] for i in ids}:
                inclusive[name] = inclusive.get(name, 0) + nanoseconds
        return inclusive, everything

    @staticmethod
    def varints(data):
        value = shift = 0
        for byte in data:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                yield value
                value = shift = 0
