"""One address for several servers: a proxy of TCP connections on loopback, which tries the next server if one refuses the connection."""

import contextlib
import socket
import socketserver
import threading


def pump(source, sink):
    """Copies until the source ends or either breaks, then ends the other side as well."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            end.shutdown(how)


class Address:
    """Runs from start to stop; a context manager. `ports()` lists the ports of the servers in any state; they take turns."""

    def __init__(self, ports):
        self.turn = 0
        outer = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self):
                server = outer.connect(ports())
                if server is None:
                    return
                with server:
                    back = threading.Thread(target=pump, args=(server, self.request), daemon=True)
                    back.start()
                    pump(self.request, server)
                    back.join()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads, request_queue_size = True, 64

        self.server = Server(("127.0.0.1", 0), Connection)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def connect(self, ports):
        self.turn += 1
        for place in range(len(ports)):
            with contextlib.suppress(OSError):
                server = socket.create_connection(("127.0.0.1", ports[(self.turn + place) % len(ports)]), timeout=5)
                server.settimeout(120)
                return server
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
