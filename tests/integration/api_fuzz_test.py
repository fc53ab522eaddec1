#!/usr/bin/env python3
"""Sends random requests, generated from the OpenAPI document, to the real API server. Every response must match the document, be a
2xx or a 4xx with the envelope, and contain exactly what docs/api/endpoints.md and access.md allow the caller to see, according to an
oracle over the same rows.

Callers are plain users, project leads, support, administrators and strangers. Each parameter of each endpoint is in two requests at least.

Usage: api_fuzz_test.py [requests [seed]]    With a number of requests alone, the seed is random; it is printed."""

import collections
import http.client
import json
import os
import random
import re
import sys
import time
import urllib.parse

from api_database import CUSTOM, MAPS, UNIT_NUMBERS, UNIT_TEXTS, USAGE_SCALARS, Oracle, World, same
from harness import scratch, start_api_server
from openapi import Document

ARGUMENTS = sys.argv[1:] if __name__ == "__main__" else []
COUNT = int(ARGUMENTS[0] if ARGUMENTS else os.environ.get("CEEMS_FUZZ_REQUESTS", "900"))
SEED = int(ARGUMENTS[1]) if len(ARGUMENTS) > 1 else random.randrange(10 ** 9) if ARGUMENTS else 1
UNIT_FIELDS = UNIT_TEXTS + UNIT_NUMBERS + MAPS + CUSTOM + ["allocation", "tags"]
USAGE_FIELDS = USAGE_SCALARS + MAPS + CUSTOM
USAGE_TEXTS = [name for name in USAGE_SCALARS if name != "num_units"]
# In these, RE2 and Python agree.
PATTERNS = [".*", "", "u.*", "u1|u2|p1", "(?i)P[0-4]", "[a-z]+[0-9]", "job|na.ve|", "hpc-.", "2.*", "RUNNING", ".{2,3}", "(", "[", "a{2,1}"]
ZONES = ["Europe/Paris", "America/New_York", "Asia/Kolkata", "UTC"]
GROUPS = ["cluster_id", "username", "project", "groupname", "resource_manager"]
DAY = 86400
IDLE = 8  # seconds; the server closes connections that are idle for ten
MAX_SECONDS = 253402300799
HOSTILE = ["'", '"', "1 OR 1=1", "') UNION SELECT name FROM admin_users --", "../../etc/passwd", "\0", "a\0b", "%", "%zz", "\x7f",
           "\u202e", "𝕏", "null", "NaN", "-0", "[]", "{}", "<b>", "x" * 500, "\r\nX-Injected: 1", "u1:svc", ":svc", "*", "_", ";", "&", "="]
RAW = ["%00", "%ff%fe", "%c0%af", "%", "%2", "%zz", "+", "%0d%0aX-Injected:%201", "%ed%a0%80"]
ERRORS = {
    400: {"invalid query fields", "uuids missing in the request", "one cluster_id and one uuid are needed",
          "query parameter 'from': malformed timestamp", "query parameter 'to': malformed timestamp",
          "query parameter 'limit': expected a whole number from 1 to 5000", "query parameter 'cursor': malformed cursor",
          "maximum query window exceeded", "query parameter 'sort': expected 'id' or 'ended_at'",
          "query parameter 'order': expected 'asc' or 'desc'",
          "query parameters 'tags.*' do not go together with 'experimental': days have no tags"},
    401: {"no user identified"},
    403: {"current user does not have admin privileges", "user do not have permissions on uuids"},
}


class Raw(str):
    """A value that is already percent-encoded, maybe incorrectly."""


class Request:
    def __init__(self, path, pairs, caller):
        self.path, self.pairs, self.caller = path, pairs, caller
        self.offset = 0  # rows on the previous pages

    def query(self):
        return "&".join(key + "=" + (value if isinstance(value, Raw) else urllib.parse.quote(value, safe=""))
                        for key, value in self.pairs)

    def target(self):
        return "/api/v1" + self.path + ("?" + self.query() if self.pairs else "")

    def params(self):
        """The parameters as the server must read them: {name: [distinct non-empty values]}. Flags count if present."""
        params = {}
        for key, value in self.pairs:
            value = urllib.parse.unquote_plus(value) if isinstance(value, Raw) else value
            if key in ("field", "groupby"):
                value = value.strip(" \t\r\n\f\v")
            if key in ("running", "experimental", "__terminated", "anonymous"):
                params[key] = ["on"]
            elif value and value not in params.setdefault(key, []):
                params[key].append(value)
        return {key: values for key, values in params.items() if values}


# What Judge has a rule for, with and without "/admin". The others need a TSDB; lists and sums are compared with a naive model in
# src/store/facts_test.cc.
JUDGED = {"/units", "/units/verify", "/usage/current", "/usage/global", "/users", "/projects", "/clusters", "/stats/current",
          "/stats/global", "/whoami", "/site", "/demo/units", "/demo/usage"}


class Generator:
    def __init__(self, rng, world, document):
        self.rng, self.world, self.document = rng, world, document
        self.routes = [path for path in document.routes() if path.removesuffix("/admin") in JUDGED]
        self.uuids = sorted({unit["uuid"] for unit in world.units})
        self.projects = sorted({project["name"] for project in world.projects})
        self.people = world.names + [name + ":svc" for name in self.projects]

    def text(self, name):
        known = {"cluster_id": list(self.world.clusters), "project": self.projects, "user": self.people, "uuid": self.uuids,
                 "timezone": ZONES + ["Mars/Base", "../../etc/localtime", "europe/paris"], "role": ["admin", "user"],
                 "scope": ["own", "led", "all"], "tags.partition": ["batch", "gpu"], "tags.qos": ["long"], "tags.queue": ["q"]}
        return self.hostile() if self.rng.random() < 0.06 else self.rng.choice(known.get(name, ["x"]))

    def hostile(self):
        if self.rng.random() < 0.3:
            return Raw(self.rng.choice(RAW))
        return self.rng.choice(HOSTILE + [""] * 5)

    def seconds(self):
        rng = self.rng
        if rng.random() < 0.06:
            return rng.choice([str(MAX_SECONDS), str(MAX_SECONDS + 1), "-1", "1.5", "1e9", "0x10", " 1", "99999999999999999999", "now",
                               "", str(-MAX_SECONDS), "+1", "٣"])
        return str(self.world.now - rng.randrange(-DAY, 12 * DAY))

    def value(self, param):
        rng, name, schema = self.rng, param["name"], param["schema"]
        if name in ("from", "to"):
            return self.seconds()
        if name == "limit":
            return str(rng.choice([1, 2, 3, 7, 50, 5000])) if rng.random() < 0.95 else rng.choice(["0", "-1", "5001", "x", "1.0"])
        if name in ("sort", "order") and rng.random() < 0.95:
            return rng.choice(["id", "ended_at"] if name == "sort" else ["asc", "desc"])
        if name == "cursor":
            return rng.choice(["", "x", "AAAA", param.get("example", "")[:-1], "A" * 300])
        if name == "match" and rng.random() < 0.97:
            return rng.choice(USAGE_TEXTS + USAGE_TEXTS + UNIT_TEXTS + ["num_units"]) + ":" + rng.choice(PATTERNS)
        if schema.get("type") == "boolean":
            return rng.choice(["", "true", "false", "1"])
        listed = schema.get("items", {}).get("enum")
        if listed:
            return rng.choice(listed) if rng.random() < 0.97 else self.hostile()
        return self.text(name)

    def parameters(self):
        """(route, name of a parameter) of all."""
        return [(path, param["name"]) for path in self.routes for param in self.document.operation(path)["parameters"]]

    def make(self, path=None, must=None):
        """A random request; to this route and with this parameter, if they are given."""
        rng = self.rng
        path = path or rng.choice(self.routes)
        pairs = []
        for param in self.document.operation(path)["parameters"]:
            chance = {"cursor": 0.02, "limit": 0.15, "uuid": 0.3, "user": 0.4, "role": 0.1, "match": 0.08, "tags.partition": 0.07,
                      "tags.qos": 0.07, "tags.queue": 0.02}.get(param["name"], 0.3)
            if param["name"] == must or param.get("required") and rng.random() < 0.95:
                chance = 1
            many = param["schema"].get("type") == "array"
            for _ in range(rng.choice([1, 1, 2, 4, 12]) if many and rng.random() < chance else int(rng.random() < chance)):
                pairs.append((param["name"], self.value(param)))
        if rng.random() < 0.1:
            pairs.append((rng.choice(["user", "uuid", "logged_user", "x", "role", "limit", "cluster-id"]), self.text("user")))
        rng.shuffle(pairs)
        kind = rng.random()
        admin = path.endswith("/admin")
        if kind < 0.03:
            caller = None
        elif kind < (0.7 if admin else 0.15):
            caller = rng.choice(self.world.admins + self.world.support)
        elif kind < 0.35:
            caller = rng.choice(list(self.world.led))
        elif kind < 0.97:
            caller = rng.choice(self.people)
        else:
            caller = rng.choice(["nobody", "root1 ", "Root1", "u1'", "' OR 1=1 --", "%75%31"])
        return Request(path, pairs, caller)


class Refused(Exception):
    """The status with which the server must refuse the request."""


def whole(text):
    """A number as std::from_chars reads it."""
    digits = text[1:] if text.startswith("-") else text
    if not digits.isascii() or not digits.isdigit():
        raise Refused(400)
    return int(text)


def seconds_of(params, name):
    if name not in params:
        return None
    value = whole(params[name][0])
    if abs(value) > MAX_SECONDS:
        raise Refused(400)
    return value


def window_of(params, now):
    first, last = seconds_of(params, "from"), seconds_of(params, "to")
    if first is not None:
        return first, first + DAY if last is None else last
    return (now - DAY, now) if last is None else (last - DAY, last)


def rounded_window_of(params, now):
    first, last = seconds_of(params, "from"), seconds_of(params, "to")
    first, last = now - DAY if first is None else first, now if last is None else last
    return first // 900 * 900, -(-last // 900) * 900


def fields_of(params, known):
    chosen = [name for name in known if name in params.get("field", known)]
    if not chosen:
        raise Refused(400)
    return set(chosen)


def check_patterns(params, known):
    conditions = params.get("match", [])
    if len(conditions) > 8:
        raise Refused(400)
    for condition in conditions:
        field, colon, pattern = condition.partition(":")
        if not colon or field not in known or len(pattern.encode()) > 256:
            raise Refused(400)
        try:
            re.compile(pattern)
        except re.error:
            raise Refused(400) from None


def page_of(params):
    if "cursor" in params and not params.get("_followed"):
        raise Refused(400)  # the generator never makes a valid one
    if "limit" not in params:
        return None
    limit = whole(params["limit"][0])
    if not 1 <= limit <= 5000:
        raise Refused(400)
    return limit


def sorting_of(params):
    """(whether by end, whether descending)"""
    by, order = params.get("sort", ["id"])[0], params.get("order", [None])[0]
    if by not in ("id", "ended_at") or order not in (None, "asc", "desc"):
        raise Refused(400)
    return by == "ended_at", by == "ended_at" if order is None else order == "desc"


class Judge:
    """Determines the required response to a request."""

    def __init__(self, world, document):
        self.oracle, self.world, self.document = Oracle(world), world, document

    def expected(self, request, now):
        """(rows or None for null, limit or None). Raises Refused."""
        path, caller, oracle = request.path, (request.caller or "").strip(" \t"), self.oracle
        taken = {param["name"] for param in self.document.operation(path)["parameters"]}
        params = {key: values for key, values in request.params().items() if key in taken}
        if request.offset:
            params["_followed"] = True
        if path.startswith("/demo"):
            return "anything", None
        if not caller and path == "/whoami" and "anonymous" in params:
            return "anything", None
        if not caller:
            raise Refused(401)
        admin = path.endswith("/admin")
        if admin and caller not in self.world.admins + self.world.support:
            raise Refused(403)
        limit = page_of(params) if "limit" in taken else None
        if path == "/users/admin" and params.get("role", [""])[0] == "admin":
            if caller not in self.world.admins:
                raise Refused(403)
            return "anything", None
        if path in ("/units", "/units/admin"):
            window = None if params.get("uuid") else window_of(params, now)
            fields = fields_of(params, UNIT_FIELDS)
            check_patterns(params, UNIT_TEXTS)
            zone = next((name for name in params.get("timezone", [])[:1] if name in ZONES), None)
            by_end, descending = sorting_of(params)
            units = list(oracle.visible_units(caller, admin, params, window))  # by id
            if by_end:
                units.sort(key=lambda row: row["ended_at_ts"] or float("inf"))
            rows = [oracle.unit_json(row, caller, fields, zone) for row in (reversed(units) if descending else units)]
        elif path in ("/usage/current", "/usage/current/admin"):
            window = rounded_window_of(params, now)
            fields = fields_of(params, USAGE_FIELDS)
            if set(params.get("groupby", [])) - set(GROUPS):
                raise Refused(400)
            check_patterns(params, USAGE_TEXTS)
            if "experimental" in params and any(key.startswith("tags.") for key in params):
                raise Refused(400)
            rows = list(oracle.current_usage(caller, admin, params, fields, window))
        elif path in ("/usage/global", "/usage/global/admin"):
            check_patterns(params, USAGE_TEXTS)
            rows = list(oracle.global_usage(caller, admin, params, fields_of(params, USAGE_FIELDS)))
        elif path in ("/users", "/users/admin"):
            rows = list(oracle.users(caller, admin, params))
        elif path in ("/projects", "/projects/admin"):
            rows = list(oracle.projects(caller, admin, params))
        elif path == "/units/verify":
            if not params.get("uuid"):
                raise Refused(400)
            if not oracle.may_verify(caller, params):
                raise Refused(403)
            rows = None
        elif path == "/clusters/admin":
            rows = [{"id": name, "manager": self.world.clusters[name]}
                    for name in sorted({unit["cluster_id"] for unit in self.world.units})]
        elif path.startswith("/stats/"):
            window = window_of(params, now) if "current" in path else None
            rows = list(oracle.stats(params, window))
        elif path == "/whoami":
            rows = "anything"
        elif path == "/site":
            rows = "anything"
        else:
            raise AssertionError("the oracle has no rule for " + path)
        return rows, limit


class Fuzzer:
    def __init__(self, url, generator, judge, document):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=90)
        self.generator, self.judge, self.document = generator, judge, document
        self.statuses = collections.Counter()
        self.rows = self.pages = self.tags = 0
        self.answered = time.monotonic()

    def send(self, request, more_headers=()):
        headers = {} if request.caller is None else {"X-Grafana-User": request.caller.encode().decode("latin-1")}
        headers.update(more_headers)
        idle = time.monotonic() - self.answered
        try:
            self.connection.request("GET", request.target(), headers=headers)
            answer = self.connection.getresponse()
        except (BrokenPipeError, ConnectionResetError):  # also that it was closed without an answer
            if idle < IDLE:
                raise
            self.connection.close()  # a busy machine took long to judge the last answer
            self.connection.request("GET", request.target(), headers=headers)
            answer = self.connection.getresponse()
        body = answer.read()
        self.answered = time.monotonic()
        return answer, body

    def complain(self, request, answer, body, why):
        raise AssertionError("seed %d: %s\ncaller %r: GET %s\n%d %s" % (
            SEED, why, request.caller, request.target(), answer.status, body[:2000]))

    def check(self, request):
        before = int(time.time())
        answer, body = self.send(request)
        after = int(time.time())
        self.statuses[answer.status] += 1
        if answer.status not in (200, 400, 401, 403):
            self.complain(request, answer, body, "status")
        if answer.headers["Content-Type"] != "application/json" or answer.headers["X-Injected"]:
            self.complain(request, answer, body, "headers")
        data = json.loads(body)
        if why := self.document.answer_complaint(request.path, answer.status, data):
            self.complain(request, answer, body, "the response does not match the document: " + why)
        unknown = {name.lower() for name in answer.headers} - self.document.headers(request.path, answer.status) - {
            "content-type", "content-length", "date", "transfer-encoding", "connection"}
        if unknown:
            self.complain(request, answer, body, "undocumented headers: %s" % unknown)
        if answer.status != 200 and data["error"] not in ERRORS[answer.status] and not (
                answer.status == 400 and data["error"].startswith("query parameter 'match': ")):
            self.complain(request, answer, body, "unknown error text")
        verdicts = [self.verdict(request, answer, data, now) for now in range(before, after + 1)]
        if all(verdicts):
            self.complain(request, answer, body, verdicts[-1])
        self.rows += len(data["data"] or [])
        return answer, data

    def verdict(self, request, answer, data, now):
        """What is wrong with the response if this was the server's time; None if it is correct."""
        try:
            rows, limit = self.judge.expected(request, now)
        except Refused as refused:
            return None if answer.status == refused.args[0] else "expected status %d" % refused.args[0]
        if answer.status != 200:
            return "expected status 200"
        if rows == "anything":
            return None
        if limit is not None and rows is not None:
            more = len(rows) > request.offset + limit
            rows = rows[request.offset:request.offset + limit]
            if more != ("next" in data) or more != ("Link" in answer.headers):
                return "expected %s next page" % ("a" if more else "no")
        if not same(data["data"], rows):
            return "expected " + json.dumps(rows)[:2000]
        return None

    def follow(self, request, answer, data):
        """Follows the Link headers and reads all further pages."""
        while "Link" in answer.headers and self.pages < COUNT:
            self.pages += 1
            request = Request(request.path, urllib.parse.parse_qsl(answer.headers["Link"][2:].split(">")[0], True), request.caller)
            request.offset = self.offset = self.offset + len(data["data"])
            answer, data = self.check(request)

    def run(self, count):
        wanted = self.generator.parameters() * 2
        assert count >= 2 * len(wanted), "%d parameters" % len(wanted)
        for path, must in wanted + [(None, None)] * (count - len(wanted)):
            request = self.generator.make(path, must)
            answer, data = self.check(request)
            if "Link" in answer.headers and self.generator.rng.random() < 0.2 and len(data["data"]) > 1:
                self.offset = 0
                self.follow(request, answer, data)
            if "ETag" in answer.headers and self.generator.rng.random() < 0.3 and (
                    "from" in dict(request.pairs) and "to" in dict(request.pairs)):
                self.tags += 1
                tag = answer.headers["ETag"]
                again, body = self.send(request, {"If-None-Match": tag})
                if again.status == 200 and again.headers.get("ETag", tag) != tag:
                    # The server committed something of its own in between, as it does after its start: the new tag must hold.
                    tag = again.headers["ETag"]
                    again, body = self.send(request, {"If-None-Match": tag})
                if again.status != 304 or body:
                    self.complain(request, again, body, "expected 304")
                other = Request(request.path, request.pairs, "somebody-else")
                again, body = self.send(other, {"If-None-Match": tag})
                if again.status == 304:
                    self.complain(other, again, body, "the entity tag of another caller was accepted")


def main():
    started = time.monotonic()
    rng = random.Random(SEED)
    print("seed %d" % SEED)
    with scratch("ceems-fuzz-") as directory:
        world = World(rng, int(time.time()), custom=rng.random() < 0.5)
        os.mkdir(os.path.join(directory, "data"))
        world.write(os.path.join(directory, "data", "ceems.db"))
        roles = {"support": world.support, "project_leads": [{"cluster": cluster, "project": project, "users": [user]}
                                                             for user, led in world.led.items() for cluster, project in led]}
        config = ("ceems_api_server:\n  data:\n    path: %s/data\n    time_zone: UTC\n    update_interval: 1d\n"
                  "  admin:\n    users: [root1]\n  roles: %s\n" % (directory, json.dumps(roles)))
        flags = ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges"]
        program, url = start_api_server(directory, config, flags)
        with program:
            connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=90)
            connection.request("GET", "/openapi.json")
            document = Document(json.loads(connection.getresponse().read()))
            for path in document.routes():
                for status, response in document.operation(path)["responses"].items():
                    for media in document.resolve(response).get("content", {}).values():
                        if "example" in media:
                            assert (why := document.complaint(media["schema"], media["example"])) is None, (path, status, why)
            fuzzer = Fuzzer(url, Generator(rng, world, document), Judge(world, document), document)
            fuzzer.run(COUNT)
            assert program.alive(), program.output()
            answers = sum(fuzzer.statuses.values())
        assert " 5xx" not in program.output() and "level=ERROR" not in program.output(), program.output()[-2000:]
        assert COUNT < 5000 or (fuzzer.rows > answers and fuzzer.pages > 50 and fuzzer.tags > 10), "found too few rows, pages or tags"
        for status in (200, 400, 401, 403):
            assert fuzzer.statuses[status] > answers // 100, fuzzer.statuses
    print("%d answers in %.0f s: %s; %d rows, %d pages followed, %d tags" % (
        answers, time.monotonic() - started, dict(sorted(fuzzer.statuses.items())), fuzzer.rows, fuzzer.pages, fuzzer.tags))


if __name__ == "__main__":
    main()
