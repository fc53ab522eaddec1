#!/usr/bin/env python3
"""The profile of a job in the real API server: whose it is, of which cluster, what a Pyroscope that fails leads to, and that the question
ends with the client."""

import os
import random
import socket
import threading
import time

from api_database import World, create, insert, local
from harness import get, run_tests, start_api_server, wait_until
from profile_store import ProfileStore

NOW = int(time.time())
CONFIG = """
ceems_api_server:
  data: {path: %s/data, time_zone: UTC, update_interval: 1d}
  admin: {users: [root1]}
  profiles:
    - {clusters: [hpc-a, hpc-b], web: {url: "http://127.0.0.1:%d", basic_auth: {username: ceems, password: opensesame}}}
clusters:
  - {id: hpc-a, manager: exec, extra_config: {file: %s/none}}
  - {id: hpc-b, manager: exec, extra_config: {file: %s/none}}
  - {id: hpc-c, manager: exec, extra_config: {file: %s/none}}
"""


def make_database(directory):
    """On each cluster ada has job 1 and eve job 2."""
    os.makedirs(os.path.join(directory, "data"))
    world = World(random.Random(1), NOW, units=1)
    database = create(os.path.join(directory, "data", "ceems.db"))
    with database:
        for cluster in ("hpc-a", "hpc-b", "hpc-c"):
            insert(database, "units", [dict(world.units[0], cluster_id=cluster, username=user, project="p" + user, uuid=uuid, ignore=0,
                                            created_at_ts=1000 * (NOW - 7200), started_at_ts=1000 * (NOW - 7200), ended_at_ts=1000 * (NOW - 3600),
                                            last_updated_at=local(NOW)) for user, uuid in (("ada", "1"), ("eve", "2"))])
    database.close()


def start(directory, port):
    make_database(directory)
    return start_api_server(directory, CONFIG % (directory, port, directory, directory, directory))


def ask(url, user, uuid, cluster="hpc-a", more=""):
    return get("%s/api/v1/units/profile?cluster_id=%s&uuid=%s%s" % (url, cluster, uuid, more), {"X-Grafana-User": user} if user else {})


def whose(directory):
    store = ProfileStore()
    for cluster in ("hpc-a", "hpc-b"):
        for uuid in ("1", "2"):
            spent = int(uuid) * (10 if cluster == "hpc-a" else 1000)
            store.profiles.append(({"service_name": uuid, "ceems_id": cluster, "__name__": "process_cpu"},
                                   {"f_%s_%s" % (cluster, uuid): 3 * spent, "<b>g\u202e": spent}, 4 * spent))
    program, url = start(directory, store.port)
    with program:
        answer = ask(url, "ada", "1")
        assert answer.status == 200, answer.text
        profile = answer.json["data"]
        assert profile == {"state": "profile", "from": 1000 * (NOW - 7200), "to": 1000 * (NOW - 3600), "total": 40, "left_out": 0,
                           "names": ["total", "<b>g\ufffd", "f_hpc-a_1"], "levels": [[[0, 40, 0, 0]], [[0, 10, 10, 1], [10, 30, 30, 2]]]}, profile
        assert ask(url, "ada", "1", "hpc-b").json["data"]["total"] == 4000, "the job of the other cluster"
        assert ask(url, "root1", "2").json["data"]["names"] == ["total", "<b>g\ufffd", "f_hpc-a_2"]
        assert ask(url, "ada", "1", "hpc-c").json["data"]["state"] == "none"
        store.profiles = [profile for profile in store.profiles if profile[0]["service_name"] != "2"]
        assert ask(url, "eve", "2").json["data"]["state"] == "empty"
        for user, uuid, status in (("", "1", 401), ("ada", "2", 403), ("eve", "1", 403), ("ada", "3", 403), ("mallory", "1", 403),
                                   ("ada", "1%22%7D", 403), ("ada", "1&uuid=2", 400)):
            assert ask(url, user, uuid).status == status, (user, uuid)
        assert ask(url, "ada", "1", more="&from=x").status == 400


class Silent:
    """Accepts connections and says nothing, or what it is told to."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.answer = None
        self.asked, self.left = [], threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.socket.accept()
            self.asked.append(connection.recv(65536))
            if self.answer is not None:
                connection.sendall(self.answer)
            elif connection.recv(1) == b"":
                self.left.set()
            connection.close()


def fails(directory):
    silent = Silent()
    program, url = start(directory, silent.port)
    with program:
        def answered(status, body):
            silent.answer = b"HTTP/1.1 %d x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body)) + body
            answer = ask(url, "ada", "1")
            return answer.status, answer.json["error"]
        assert answered(200, b"<html>") == (500, "the profile server sent something that is not a profile")
        assert answered(401, b"") == (500, "the profile server refuses the credentials of this server")
        assert answered(500, b"broken")[0] == 503
        assert answered(200, b'{"tree":"' + b"x" * (5 << 20) + b'"}')[0] == 503
        assert b"Authorization: Basic Y2VlbXM6b3BlbnNlc2FtZQ==" in silent.asked[0], silent.asked[0]
        assert "broken" in program.output() and "opensesame" not in program.output()
        # A client that leaves ends the question.
        silent.answer = None
        count = len(silent.asked)
        client = socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1])))
        client.sendall(b"GET /api/v1/units/profile?cluster_id=hpc-a&uuid=1 HTTP/1.1\r\nHost: x\r\nX-Grafana-User: ada\r\n\r\n")
        wait_until("the question", lambda: len(silent.asked) > count)
        begun = time.monotonic()
        client.close()
        assert silent.left.wait(60) and time.monotonic() - begun < 9, "the question outlived the client"


if __name__ == "__main__":
    run_tests([whose, fails], "ceems-api-profile-")
