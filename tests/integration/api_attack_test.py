#!/usr/bin/env python3
"""Sends hostile requests to every endpoint of the real API server: other people's IDs, odd and doubled headers and parameters, tokens that
are expired, revoked, foreign, changed or too weak, forged sessions, other sites, huge and broken texts. Every text of the site has a mark
that says whose it is (attack_site.py). Failures are: a mark that the caller may not see, in an answer or in what the server asks the TSDB
or Pyroscope in its name; a 5xx; anything changed by whoever may not; a page that others than the portal may show in a frame.

Usage: api_attack_test.py [requests [seed]]"""

import base64
import collections
import gzip
import json
import os
import re
import socket
import sqlite3
import sys
import time
import urllib.parse

from attack_site import ADMIN, LED, MARK, PEOPLE, SUPPORT, Site, mark_of
from attacks import EVIL, Attacker
from harness import FakeHttp, get, scratch, start_api_server, wait_until, write
from login_test import HASH, Browser
from profile_store import ProfileStore

ARGUMENTS = sys.argv[1:] if __name__ == "__main__" else []
COUNT = int(ARGUMENTS[0]) if ARGUMENTS else 1500
SEED = int(ARGUMENTS[1]) if len(ARGUMENTS) > 1 else 34
PORTAL = "https://portal.example.org"
SERVICE = "service-account-secret-0123456789abcdef"
CONFIG = """
ceems_api_server:
  data: {path: %(data)s, time_zone: UTC, update_interval: 1d}
  admin: {users: [%(admin)s]}
  roles: {support: [%(support)s], project_leads: %(leads)s}
  identity:
    header: {trusted_proxies: [127.0.0.1]}
    local: {users_file: users.yml}
    service_account: {token_file: service}
  ui: {embed: {ancestors: ["%(portal)s"]}}
  series: {pin_cluster: true}
  report: {rate: 0}
  profiles: [{web: {url: "http://127.0.0.1:%(profiles)d"}}]
clusters:
  - {id: hpc-a, manager: exec, updaters: [tsdb], extra_config: {file: %(data)s/none}}
  - {id: hpc-b, manager: exec, updaters: [tsdb], extra_config: {file: %(data)s/none}}
updaters:
  - {id: tsdb, updater: tsdb, web: {url: "%(tsdb)s"}}
"""
# Tables that the server changes by itself.
OWN_TABLES = {"ceems_tokens", "sqlite_sequence", "sqlite_stat1"}
OPEN = re.compile(r"/api/v1/(demo/(units|usage)|whoami)$")
# What these ask is about all units, for all callers at once.
SHARED = re.compile(r"/api/v1/(insight/idle|gpus|nodes)\b")
FRAMED = {"/", "/ui/", "/index.html", "/ui/index.html"}
# Statuses that requests have got, of everything that is sent correctly.
STATUSES = {200, 204, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 411, 413, 414, 415, 417, 429, 431, 501, 505}


class Complaint(Exception):
    """What is wrong with an answer."""


class Reply:
    def __init__(self, data):
        while data.startswith(b"HTTP/1.1 100 "):
            data = data.partition(b"\r\n\r\n")[2]
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        self.status = int(lines[0].split(b" ")[1]) if lines[0].startswith(b"HTTP/1.1 ") else 0
        self.fields = [tuple(part.strip().decode("latin-1") for part in line.split(b":", 1)) for line in lines[1:] if b":" in line]
        if "chunked" in self.header("Transfer-Encoding"):
            body = unchunked(body)
        if self.header("Content-Encoding") == "gzip" and body:
            body = gzip.decompress(body)
        self.head, self.body = head, body

    def header(self, name):
        return next((value for key, value in self.fields if key.lower() == name.lower()), "")


def unchunked(data):
    out = []
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        out.append(data[:length])
        data = data[length + 2:]
        if not length:
            break
    return b"".join(out)


def send(port, attack):
    with socket.create_connection(("127.0.0.1", port), timeout=90, source_address=(attack.peer, 0)) as connection:
        data = b""
        try:
            connection.sendall(attack.bytes())
        except OSError:
            pass  # refused before its end; the answer is there
        try:
            while part := connection.recv(1 << 16):
                data += part
        except ConnectionResetError:
            pass
    return Reply(data) if data else None


def decoded(data):
    """The text and what is hidden in it: percent-encoded, JSON escapes, and Base64 as in cursors."""
    texts = [data, urllib.parse.unquote_to_bytes(data)]
    for part in set(re.findall(rb"[A-Za-z0-9_-]{16,}", data)):
        texts.append(base64.urlsafe_b64decode(part[:len(part) // 4 * 4]))
    return texts


def marks_in(data):
    return {mark for text in decoded(data) for mark in MARK.findall(text)}


class Judge:
    def __init__(self, database, directory, document, credentials):
        self.directory, self.document, self.credentials = directory.encode(), document, credentials
        self.database = sqlite3.connect(database, timeout=60)
        self.tokens = self.stored_tokens()
        self.before = self.state()
        self.secrets = [SERVICE.encode(), b"opensesame", HASH.encode()] + [
            secret.encode() for mine in credentials["tokens"].values() for secret in mine.values()]

    def stored_tokens(self):
        return dict(self.database.execute("SELECT id, username || ' ' || scope FROM ceems_tokens"))

    def state(self):
        tables = [name for name, in self.database.execute("SELECT name FROM sqlite_master WHERE type = 'table'") if name not in OWN_TABLES]
        return {table: sorted(map(repr, self.database.execute('SELECT * FROM "%s"' % table))) for table in tables}

    def check(self, attack, reply, asked):
        """Raises Complaint. `asked` are the questions to other servers that the request has led to."""
        if reply is None or reply.status == 0:
            # What is too long is refused before its end, and the refusal may be lost with the rest.
            if not attack.broken and len(attack.bytes()) < 60_000:
                raise Complaint("no answer")
            return
        if reply.status not in STATUSES:
            raise Complaint("status %d" % reply.status)
        path = urllib.parse.unquote(attack.target.split("?")[0])
        answer = reply.head + b"\r\n" + reply.body
        # What the attacker has sent says nothing in a refusal. In an answer it would say that it is there.
        echo = marks_in(attack.bytes()) if reply.status >= 300 else marks_in(reply.header("Link").encode())
        if attack.way == "odd name":
            echo |= {mark_of(user) for user in PEOPLE}
        if foreign := marks_in(answer) - attack.visible - echo:
            raise Complaint("marks of others: %s" % sorted(foreign))
        questions = [] if SHARED.match(path) else asked
        if foreign := {mark for question in questions for mark in marks_in(question.encode())} - attack.visible:
            raise Complaint("asks for others: %s" % sorted(foreign))
        if any(secret in answer and secret not in attack.target.encode() for secret in self.secrets):  # a redirect keeps the address
            raise Complaint("tells a secret")
        sent = decoded(attack.bytes())
        if any(text in answer and not any(text in part for part in sent) for text in (self.directory, b"SELECT ", b"sqlite")):
            raise Complaint("tells how it works")
        self.check_identity(attack, reply, path)
        self.check_headers(attack, reply, path)
        self.check_tokens(attack, reply, path)

    def check_identity(self, attack, reply, path):
        good = reply.status < 400
        api = path.startswith("/api/v1/") and path[7:] in self.document["paths"] and attack.method in ("GET", "POST", "DELETE")
        if api and good and not attack.user and not OPEN.match(path):
            # A name that nobody knows is a user without units.
            if attack.way != "odd name":
                raise Complaint("an answer to nobody")
        if api and good and path.endswith("/admin") and (attack.by == "token" or not attack.role):
            raise Complaint("an answer for administrators")
        if attack.by == "token" and good and api and path == "/api/v1/tokens":
            raise Complaint("an answer about tokens to a token")
        if path == "/api/v1/whoami" and good and attack.method == "GET" and reply.body and reply.status == 200:
            rows = json.loads(reply.body)["data"]
            if [row["user"] for row in rows] != ([attack.user] if attack.user else []) and attack.way != "odd name":
                raise Complaint("somebody else")
            if attack.by == "token" and (rows[0]["admin"] or rows[0]["role"] not in ("user", "project_lead")):
                raise Complaint("a token with a role")
        if attack.tag_of not in (None, attack.user) and reply.status == 304 and ("If-None-Match", "*") not in attack.headers:
            raise Complaint("the entity tag of another caller")

    def check_headers(self, attack, reply, path):
        if reply.header("X-Injected") or EVIL.encode() in reply.head:
            raise Complaint("injected headers")
        if reply.header("Access-Control-Allow-Credentials"):
            raise Complaint("credentials across origins")
        if reply.header("Content-Type").startswith("text/html") and reply.status == 200:
            policy, frames = reply.header("Content-Security-Policy"), reply.header("X-Frame-Options")
            ancestors = re.search(r"frame-ancestors ([^;]*)", policy)
            framed = ancestors and ancestors.group(1) == PORTAL
            if not ancestors or (not framed and ancestors.group(1) != "'none'") or (framed and frames):
                raise Complaint("frames: %r %r" % (policy, frames))
            if framed and (path not in FRAMED or "embed" not in attack.target):
                raise Complaint("may be framed")
        if path.startswith("/api/") and reply.status == 200 and attack.method == "GET" and not re.search("no-store|private", reply.header("Cache-Control")) and not OPEN.match(path):
            raise Complaint("caches may keep it")

    def check_tokens(self, attack, reply, path):
        if reply.status != 200 or path not in ("/api/v1/tokens", "/api/v1/tokens/admin"):
            return
        # Browsers do not let pages choose Host: where it is that of the page, the page is this server's.
        across = any(name in ("Origin", "Sec-Fetch-Site") for name, _ in attack.headers) and ("Host", "evil.example") not in attack.headers
        found = self.stored_tokens()
        made, gone = found.items() - self.tokens.items(), self.tokens.items() - found.items()
        if made and (attack.method != "POST" or {owner.split()[0] for _, owner in made} != {attack.user} or len(made) > 1 or attack.by == "token" or across):
            raise Complaint("made a token")
        if gone and (attack.method != "DELETE" or len(gone) > 1 or attack.by == "token" or across or
                     ({owner.split()[0] for _, owner in gone} != {attack.user} and not (attack.role == "admin" and path.endswith("/admin")))):
            raise Complaint("revoked a token")
        self.tokens = found

    def check_state(self):
        found = self.stored_tokens()
        assert found == self.tokens, ("tokens", set(found.items()) ^ set(self.tokens.items()))
        now = self.state()
        changed = {table: set(self.before[table]) ^ set(now.get(table, [])) for table in self.before if self.before[table] != now.get(table)}
        assert not changed and now.keys() == self.before.keys(), str(changed)[:2000]


def ask(url, method, path, headers, body=None):
    browser = Browser(url)
    answer = browser.ask(method, path, headers=headers) if body is None else None
    if answer is None:
        answer = get(url + path, dict(headers, **{"Content-Type": "application/json"}), data=json.dumps(body).encode())
    assert answer.status == 200, (path, answer.status, answer.text)
    return json.loads(answer.text)["data"]


def prepare(url, database):
    """What attackers have: their own credentials, and some that are no longer good."""
    known = {"tokens": {}, "expired": {}, "revoked": {}, "sessions": {}, "ids": ["x", "' OR 1=1 --"], "ids_of": {}}
    expired = []
    for user in PEOPLE:
        def make(scope, name="zqt"):
            made = ask(url, "POST", "/api/v1/tokens", {"X-Grafana-User": user}, {"name": name, "scope": scope})  # noqa: B023
            return made["token"], made["id"]
        known["tokens"][user] = {"own": make("read-own")[0], "led": make("read-led")[0]}
        known["expired"][user], old = make("read-led")
        expired.append(old)
        known["revoked"][user], gone = make("read-led")
        ask(url, "DELETE", "/api/v1/tokens?id=" + gone, {"X-Grafana-User": user})
        known["ids_of"][user] = [make("read-own")[1] for _ in range(4)]
        known["ids"] += [old, gone] + known["ids_of"][user]
        browser = Browser(url)
        assert browser.log_in(user, "correct horse").status == 303, user
        known["sessions"][user] = browser.cookies["ceems_session"]
    browser = Browser(url)
    assert browser.log_in(PEOPLE[0], "correct horse").status == 303
    known["ended_session"] = browser.cookies["ceems_session"]
    assert browser.ask("POST", "/logout", {"token": browser.token()}).status == 303
    with sqlite3.connect(database, timeout=60) as changed:
        # Each ended unit has a final report with a finding. None are made meanwhile, so that only requests ask the TSDB.
        changed.execute("UPDATE ceems_unit_reports SET state = 2")
        changed.execute("INSERT INTO ceems_findings SELECT cluster_id, uuid, started_at_ts, 'cpu-low', ended_at_ts, 1, 1, 3, 100, '{}' "
                        "FROM ceems_unit_reports")
        changed.executemany("UPDATE ceems_tokens SET expires_ms = created_ms WHERE id = ?", [(one,) for one in expired])
    changed.close()
    return known


def remember(attacker, attack, reply):
    if reply is None or reply.status != 200 or attack.method != "GET":
        return
    if (tag := reply.header("ETag")) and attack.target.startswith("/api/v1/") and attack.user:
        attacker.tags.append((attack.target, tag, attack.user))
    attacker.cursors += re.findall(r'"(?:next|prev)":"([^"]+)"', reply.body[:200].decode("utf-8", "replace") + reply.body[-2000:].decode("utf-8", "replace"))


def main():
    started = time.monotonic()
    site = Site(int(time.time()))
    profiles = ProfileStore()
    profiles.profiles = site.profiles()
    with scratch("ceems-attack-") as directory, FakeHttp(site.tsdb) as tsdb:
        data = os.path.join(directory, "data")
        os.makedirs(data)
        database = os.path.join(data, "ceems.db")
        site.write(database)
        write(os.path.join(directory, "users.yml"), "basic_auth_users:\n" + "".join("  %s: %s\n" % (user, HASH) for user in PEOPLE), 0o640)
        write(os.path.join(directory, "service"), SERVICE, 0o600)
        leads = [{"cluster": cluster, "project": project, "users": [user]} for user, led in LED.items() for cluster, project in led]
        config = CONFIG % {"data": data, "admin": ADMIN, "support": SUPPORT, "leads": json.dumps(leads), "portal": PORTAL, "tsdb": tsdb.url,
                           "profiles": profiles.port}
        program, url = start_api_server(directory, config, ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges", "--web.cors.origin=" + PORTAL])
        port = int(url.rsplit(":", 1)[1])
        with program:
            wait_until("the facts of all units", lambda: sqlite3.connect(database).execute("SELECT count(*) FROM ceems_facts_todo").fetchone() == (0,))
            document = get(url + "/openapi.json").json
            credentials = prepare(url, database)
            attacker = Attacker(SEED, site, document, credentials)
            judge = Judge(database, directory, document, credentials)
            statuses, ways, reached = collections.Counter(), collections.Counter(), collections.Counter()
            for number in range(COUNT):
                attack = attacker.make()
                before = len(tsdb.seen)
                reply = send(port, attack)
                asked = [str(query) for _, path, query in tsdb.seen[before:]]
                try:
                    judge.check(attack, reply, asked)
                except Complaint as complaint:
                    raise AssertionError("seed %d, request %d of %r by %s (%s): %s\n%r\n%r" % (
                        SEED, number, attack.user, attack.by or "nobody", attack.way, complaint, attack.bytes()[:3000],
                        reply and (reply.head + b"\r\n\r\n" + reply.body)[:3000])) from None
                remember(attacker, attack, reply)
                statuses[reply.status if reply else 0] += 1
                ways[attack.way] += 1
                if reply and reply.status == 200:
                    reached[attack.method, attack.target.split("?")[0]] += 1
                if number % 1000 == 0:
                    judge.check_state()
            judge.check_state()
            assert program.alive(), program.output()
            log = program.output()
        leaked = [secret for mine in credentials["tokens"].values() for secret in mine.values() if secret in log]
        assert not leaked and SERVICE not in log and "panic" not in log, log[-3000:]
    missed = [(method, path) for method, path, _ in attacker.operations if not reached[method, "/api/v1" + path]]
    print("%d requests in %.0f s, seed %d: %s; %s; %d operations, of which no attack was answered with 200: %s" % (
        COUNT, time.monotonic() - started, SEED, dict(sorted(statuses.items())), dict(sorted(ways.items())), len(attacker.operations), missed))


if __name__ == "__main__":
    main()
