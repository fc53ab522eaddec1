"""Makes hostile requests to the API server. Each says who its sender is at most; api_attack_test.py sends and judges them."""

import base64
import json
import random
import urllib.parse

from attack_site import ADMIN, CLUSTERS, LED, PEOPLE, PROJECTS, SUPPORT, sees

EVIL = "https://evil.example"
TEXTS = ["'", '"', "1 OR 1=1", "') UNION SELECT hash FROM ceems_tokens --", "../../etc/passwd", "\0", "a\0b", "%", "\x7f", "\u202e", "null", "NaN",
         "-0", "[]", "{}", "<script>alert(1)</script>", "x" * 9000, "\r\nX-Injected: 1", ":svc", "*", "_", ";", "&", "=", "9" * 400, "1e999",
         "-9223372036854775808", "\u0131", "#", "${jndi:x}", "{{7*7}}", '"} or up{uuid=~".+', "|.*", "\\", "7100_[0-999999999]", "7100_*"]
RAW = ["%00", "%ff%fe", "%c0%af", "%", "%2", "%zz", "+", "%0d%0aX-Injected:%201", "%ed%a0%80", "%25%30%30", "%u0061"]
MORE_PATHS = ["/", "/ui/", "/ui/index.html", "/index.html", "/health", "/metrics", "/openapi.json", "/swagger/doc.json", "/swagger/index.html",
              "/swagger/", "/login", "/logout", "/login/oidc", "/login/callback", "/mail/mute", "/api/v1/", "/api/v1/nothing", "/api/v2/units",
              "/.git/config", "/ceems.db", "/data/ceems.db", "/debug/pprof/heap", "/ui/../ceems.db", "/ui/%2e%2e/%2e%2e/etc/passwd"]
HEADERS = [("X-Ceems-Admin-User", ADMIN), ("X-Ceems-Logged-User", ADMIN), ("X_Grafana_User", ADMIN), ("X-Forwarded-User", ADMIN),
           ("Remote-User", ADMIN), ("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-For", "::1, 10.0.0.1"), ("X-Real-IP", "127.0.0.1"),
           ("X-Original-URL", "/api/v1/units/admin"), ("X-Rewrite-URL", "/api/v1/tokens/admin"), ("X-HTTP-Method-Override", "DELETE"),
           ("Forwarded", "for=127.0.0.1;host=evil.example"), ("X-Forwarded-Host", "evil.example"), ("Host", "evil.example"), ("Connection", "X-Grafana-User"),
           ("Origin", EVIL), ("Origin", "null"), ("Referer", EVIL + "/?token=1"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Dest", "iframe"),
           ("Range", "bytes=0-10"), ("If-None-Match", "*"), ("Accept-Encoding", "gzip"), ("Accept", "text/html"), ("Expect", "100-continue"),
           ("Upgrade", "h2c"), ("Cookie", "ceems_session=AAAA.BBBB; ceems_form=x"), ("Accept-Language", "../../de"), ("Content-Encoding", "gzip"),
           ("X-Junk", "j" * 7000)]
MONTH_FORMATS = ["2026-11", "1970-01", "9999-12"]


class Attack:
    """`user` is who the sender proves to be, or empty; `by` is "header", "token", "session" or "", and `way` names the trick."""

    def __init__(self):
        self.user = self.by = self.way = ""
        self.visible, self.role = set(), ""
        self.method, self.target, self.headers, self.body = "GET", "/", [], b""
        self.peer = "127.0.0.1"  # a proxy that may name users; others come from 127.0.0.2
        self.tag_of = None  # the sender of the request whose entity tag this one has
        self.broken = False  # whether the server may close the connection without an answer

    def bytes(self):
        fields = self.headers
        if not any(name.lower() == "host" for name, _ in fields):
            fields = [("Host", "x")] + fields
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            fields = fields + [("Content-Length", str(len(self.body)))]
        # One header Connection, so that the server closes it.
        options = ", ".join(["close"] + [value for name, value in fields if name == "Connection"])
        fields = [("Connection", options)] + [field for field in fields if field[0] != "Connection"]
        head = "%s %s HTTP/1.1\r\n" % (self.method, self.target) + "".join("%s: %s\r\n" % field for field in fields)
        return head.encode("utf-8", "surrogateescape") + b"\r\n" + self.body


def quoted(text):
    return urllib.parse.quote(text, safe="")


class Attacker:
    def __init__(self, seed, site, document, credentials):
        self.r, self.site = random.Random(seed), site
        self.credentials = credentials  # see api_attack_test.prepare
        self.operations = [(method.upper(), path, operation.get("parameters", [])) for path, item in sorted(document["paths"].items())
                           for method, operation in sorted(item.items()) if method in ("get", "post", "delete") and "servers" not in item]
        self.uuids = sorted(site.owner)
        self.cursors, self.tags = [], []  # of answers to anybody
        self.calm, self.unit, self.user = False, None, ""  # of the request that is being made

    def chance(self, share):
        return self.r.random() < share

    def pick(self, choices):
        return self.r.choice(choices)

    # Who sends it.

    def is_now(self, attack, user, by, way):
        """The sender is known as this user."""
        attack.user, attack.by, attack.way = user, by, way
        if by == "token":
            attack.visible = sees(user, "", LED.get(user, ()) if way.startswith("led") else ())
        else:
            attack.role = {SUPPORT: "support", ADMIN: "admin"}.get(user, "")
            attack.visible = sees(user, attack.role, LED.get(user, ()))

    def identify(self, attack):
        user, other = self.pick(PEOPLE + [ADMIN] * 3), self.pick(PEOPLE)
        headers, known, kind = attack.headers, self.credentials, self.r.randint(0, 31)
        attack.way = "nobody"
        if kind <= 6:
            headers.append((self.pick(["X-Grafana-User", "x-grafana-user", "X-GRAFANA-USER"]), user))
            self.is_now(attack, user, "header", "header")
        elif kind == 7:
            headers += [("X-Grafana-User", user), ("X-Grafana-User", other)]
            attack.way = "two names"
        elif kind == 8:
            name = self.pick([user.upper(), user + "\xa0", user + "%00", user + ",", user + ", " + other, quoted(user[:3]) + "%2d" + user[4:],
                              user.encode().hex(), "ceems-int-svc", "", "*", "%", "' OR '1'='1"])
            headers.append(("X-Grafana-User", name))
            attack.way = "odd name"
        elif kind == 9:
            headers.append(("X-Grafana-User", user))
            attack.peer, attack.way = "127.0.0.2", "name from elsewhere"
        elif kind <= 17:
            scope = self.pick(["own", "led"])
            secret = known["tokens"][user][scope]
            if self.chance(0.5):
                headers.append((self.pick(["Authorization", "authorization"]), self.pick(["Bearer ", "bearer  ", "BEARER "]) + secret))
            else:
                headers.append((self.pick(["X-Ceems-Token", "x-ceems-token"]), secret))
                if self.chance(0.3):
                    headers.append(("Authorization", self.pick(["Basic YTpi", "Bearer eyJ.x.y", "Digest x", ""])))
            if self.chance(0.2):
                headers.append(("X-Grafana-User", user))
            attack.peer = self.pick(["127.0.0.1", "127.0.0.2"])
            self.is_now(attack, user, "token", scope + " token")
        elif kind <= 23:
            self.bad_token(attack, user, other)
        elif kind <= 26:
            headers.append(("Cookie", "a=b; ceems_session=" + known["sessions"][user]))
            attack.peer = self.pick(["127.0.0.1", "127.0.0.2"])
            self.is_now(attack, user, "session", "session")
        elif kind <= 28:
            cookie = known["sessions"][user]
            at = self.r.randrange(len(cookie))
            other_cookie = known["sessions"][other if other != user else PEOPLE[PEOPLE.index(user) - 1]]
            forged = self.pick([cookie[:at] + ("A" if cookie[at] != "A" else "B") + cookie[at + 1:], cookie[:-1] + "-", cookie.rsplit(".", 1)[0],
                                cookie.rsplit(".", 1)[0] + "." + other_cookie.rsplit(".", 1)[-1], known["ended_session"], cookie + cookie,
                                base64.b64encode(user.encode()).decode()])
            # Base64 has bits at its end that mean nothing, so a changed last character may be the same cookie.
            headers.append(("Cookie", "ceems_session=" + forged))
            attack.way = "forged session"
        return attack

    def bad_token(self, attack, user, other):
        known = self.credentials
        secret = known["tokens"][user][self.pick(["own", "led"])]
        at = self.r.randrange(10, len(secret))
        changed = secret[:at] + ("A" if secret[at] != "A" else "B") + secret[at + 1:]
        other = other if other != user else PEOPLE[PEOPLE.index(user) - 1]
        attack.way, fields = self.pick([
            ("expired token", [("Authorization", "Bearer " + known["expired"][user])]),
            ("revoked token", [("Authorization", "Bearer " + known["revoked"][user])]),
            ("revoked token", [("X-Ceems-Token", known["revoked"][user]), ("X-Grafana-User", user)]),
            ("changed token", [("Authorization", "Bearer " + changed)]),
            ("changed token", [("X-Ceems-Token", self.pick([changed, secret[:-1], secret + "A", secret.swapcase(), secret.upper(), "", secret + "\t" + secret,
                                                            "Bearer " + secret, "ceems_pat_", quoted(secret) + "%20", "ceems_pat_" + "x" * 6000]))]),
            ("foreign token", [("Authorization", "Bearer " + secret), ("X-Grafana-User", other)]),
            ("foreign token", [("X-Ceems-Token", secret), ("X-Grafana-User", other)]),
            ("foreign token", [("X-Ceems-Token", secret), ("X-Grafana-User", user), ("X-Grafana-User", other)]),
            ("two tokens", [("Authorization", "Bearer " + secret), ("Authorization", "Bearer " + known["tokens"][other]["own"])]),
            ("two tokens", [("Authorization", "Bearer " + secret), ("X-Ceems-Token", known["tokens"][other]["own"])]),
            ("two tokens", [("X-Ceems-Token", secret), ("x-ceems-token", secret)]),
            ("token and service account", [("X-Ceems-Token", secret), ("X-Ceems-Service-Token", "x" * 40)]),
            ("token in a cookie", [("Cookie", "token=%s; ceems_session=%s" % (secret, secret))]),
            ("token of another scheme", [("Authorization", "Token " + secret)])])
        attack.headers += fields

    # What it asks.

    def value(self, param):
        """A value that may be right, often of somebody else."""
        name, schema, r = param["name"], param["schema"], self.r
        if self.calm and name in ("from", "to"):
            return str(self.site.now - (86400 * r.randint(1, 4) if name == "from" else 0))
        if self.calm and name in ("cluster_id", "uuid", "project"):
            return self.unit[name]
        if self.calm and name == "id" and self.chance(0.5):
            return self.pick(self.credentials["ids_of"].get(self.user, ["x"]))
        if name in ("from", "to"):
            return str(self.site.now - r.randrange(0, 5) * 86400 + r.randrange(3600))
        known = {"cluster_id": CLUSTERS, "project": PROJECTS, "user": PEOPLE, "uuid": self.uuids + ["7100_[0-3]", "7100_*", "7100"],
                 "month": MONTH_FORMATS, "scope": ["own", "led", "all", "read-led"], "role": ["admin", "user"], "q": PEOPLE + PROJECTS + ["train", "7100", "zqj"],
                 "match": ["name:.*", "project:.*zqp.*", "username:.*", "uuid:zq.*", "name:train-zqj1\\d.*"], "limit": ["1", "2", "100"],
                 "cursor": self.cursors[-50:] or ["AAAA"], "id": self.credentials["ids"], "host": ["n0", "n1"], "name": ["train-zqj10-0", "train-zqj#"],
                 "sort": ["kwh", "ended", "name", "user", "ended_at"], "by": ["user", "project"], "facets": ["user,project,state", "name"],
                 "step": ["hour", "day", "month"], "columns": ["uuid,name,user,project", "tags", "name,partition"], "start": ["1", str(self.site.now * 1000)],
                 "metric": ["cpu", "power", "gpu", "io"], "family": ["train-zqj10-#"], "format": ["json", "text", "csv", "html", "markdown", "js1-json"]}
        if name in known:
            return self.pick(list(known[name]))
        listed = schema.get("enum") or schema.get("items", {}).get("enum")
        return self.pick(listed) if listed else self.pick(["1", "true", "x"])

    def query(self, params):
        pairs = []
        for param in params:
            required = param.get("required")
            if not self.chance(0.93 if required else 0.2):
                continue
            if self.calm:
                pairs.append(param["name"] + "=" + quoted(self.value(param)))
                continue
            for _ in range(self.pick([1, 1, 1, 1, 1, 1, 2, 2, 3, 40])):
                value = self.value(param)
                if self.chance(0.12):
                    value = self.pick(TEXTS)
                text = quoted(value)
                if self.chance(0.08):
                    text = self.pick(RAW + ["".join("%%%02x" % byte for byte in value.encode()), quoted(quoted(value)), text + self.pick(RAW)])
                name = param["name"]
                if self.chance(0.06):
                    name = self.pick([name.upper(), name + "[]", name + "%00", quoted(name[:1]) + name[1:], "%" + "%02x" % ord(name[0]) + name[1:], "+" + name])
                pairs.append(name + "=" + text)
        if self.calm:
            return "&".join(pairs)
        if self.chance(0.15):
            pairs.append(self.pick(["user=" + self.pick(PEOPLE), "uuid=" + self.pick(self.uuids), "logged_user=" + ADMIN, "role=admin", "admin=1", "scope=all",
                                    "anonymous", "embed=1", "user", "&&", "=", "=x", "%", "X-Grafana-User=" + ADMIN, "project=" + self.pick(PROJECTS)]))
        if self.chance(0.02):
            pairs.append("access_token=" + self.credentials["tokens"][self.pick(PEOPLE)]["own"])
        self.r.shuffle(pairs)
        return self.pick(["&"] * 15 + [";", "&&"]).join(pairs)

    def odd_path(self, path):
        return self.pick([path + "/", "/" + path, path.replace("/v1", "/v1/."), path.replace("/v1/", "/v1//"), "/api/v1/x/.." + path[7:], path.upper(),
                          path.replace("/v1/", "/v1%2f"), path + "%00", path + "%20", path + ";x", path + ".json", "http://evil.example" + path,
                          path[:-1] + "%%%02x" % ord(path[-1]), "/ui" + path, path + "/admin", path.replace("/admin", "%2fadmin"), path + "/../admin",
                          path + "?" + path, path + "#x", "*", "/x/../.." + path])

    def body(self, path):
        """A body that fits to the path, with names of others and with nonsense."""
        r, user, project, uuid = self.r, self.pick(PEOPLE), self.pick(PROJECTS), self.pick(self.uuids)
        number = self.pick([unit["name"] for unit in self.site.units])
        if path.endswith("/tokens"):
            wish = {"name": self.pick(["laptop", "x" * 101, "a\nb", "<b>", ""]), "scope": self.pick(["read-own", "read-led", "admin", "all", "", "read-own\0"]),
                    "days": self.pick([1, 30, 0, -1, 366, 1e9, "7", None])}
            if self.calm:
                wish = {"name": "laptop", "scope": self.pick(["read-own", "read-led"]), "days": 7}
            wish.update(self.pick([{}, {}, {"user": user}, {"username": ADMIN}, {"role": "admin"}, {"id": "x", "hash": "x"}]))
            value = wish
        else:
            value = {"cluster_id": self.pick(CLUSTERS), "request": {"name": number, "project": project, "user": user, "nodes": self.pick([1, 0, -1, 1e300, 10 ** 30]),
                                                                    "cpus": 8, "time_limit_s": self.pick([3600, -1, 1e18]), "executable": "/scratch/" + number,
                                                                    "partition": self.pick(["cpu", "gpu", "' --"]), "script": "#SBATCH -A " + project}}
            if self.chance(0.6):
                value["request"] = {key: value["request"][key] for key in ("name", "project", "partition") if self.chance(0.7)}
                value["request"].update(nodes=1, cpus=8, time_limit_s=3600)
            value.update(self.pick([{}, {}, {}, {"user": user}, {"uuid": uuid}]))
        if path == "/login":
            return urllib.parse.urlencode({"user": user, "password": self.pick(["", "x", "correct horse", "x" * 3000]), "token": self.pick(["", "x"]),
                                           "next": self.pick(["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])}).encode()
        text = json.dumps(value).encode()
        if not self.calm and self.chance(0.3):
            text = self.pick([b"", b"{", b"null", b"[" * 5000, b'{"a":' * 3000, text[:-1], text + text, text.replace(b":", b"=", 1), b"\xff\xfe" + text,
                              b'{"cluster_id":"hpc-a","cluster_id":"hpc-b"}', b"x" * 300_000, b'{"request":{"name":"' + b"y" * 70_000 + b'"}}'])
        return text

    def make(self):
        attack = self.identify(Attack())
        if self.chance(0.1):
            return self.page(attack)
        # More than half of the requests are right, except for whose units they ask for, so that they get beyond the checks of parameters.
        method, path, params = self.pick(self.operations)
        self.calm, self.user = self.chance(0.6), attack.user
        mine = [unit for unit in self.site.units if unit["username"] == attack.user]
        self.unit = self.pick(mine if mine and self.chance(0.5) else self.site.units)
        path, query = "/api/v1" + path, self.query(params)
        if self.calm and path.startswith("/api/v1/units/compare"):
            query += "&uuid=" + quoted(self.pick(mine or self.site.units)["uuid"])
        if method == "POST":
            attack.body = self.body(path)
            if self.calm or not self.chance(0.1):
                attack.headers.append(("Content-Type", "application/json" if self.calm else self.pick(["application/json"] * 12 + ["text/plain", "application/x-www-form-urlencoded",
                                                                                              "multipart/form-data; boundary=x"])))
        if method != "GET" and self.chance(0.25):
            attack.headers += self.pick([[("Origin", EVIL)], [("Sec-Fetch-Site", "cross-site")], [("Origin", "null"), ("Sec-Fetch-Site", "same-site")]])
        if not self.calm and self.chance(0.12):
            path, attack.broken = self.odd_path(path), True
        if not self.calm and self.chance(0.12):
            method, attack.broken = self.pick(["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "get", "POST", "PROPFIND", "G\0T"]), True
        if self.chance(0.25):
            attack.headers += [self.pick(HEADERS) for _ in range(self.pick([1, 1, 2, 30]))]
        attack.method, attack.target = method, path + ("?" + query if query else "")
        if method == "GET" and self.tags and self.chance(0.05):
            attack.target, tag, attack.tag_of = self.pick(self.tags[-40:])
            attack.headers.append(("If-None-Match", tag))
        if self.chance(0.01):
            attack.target += "&x=" + "y" * self.pick([60_000, 200_000])
            attack.broken = True
        return attack

    def page(self, attack):
        """A page or file, in a frame of somewhere."""
        path, self.calm = self.pick(MORE_PATHS), False
        query = self.pick(["", "embed=1", "embed=1", "embed=%31", "EMBED=1", "embed=1&embed=0", "embed=0&embed=1", "x=1&embed=1", "embed=1;x", "embed", "embed=11",
                           "embed=1&ancestors=" + quoted(EVIL), "embed=1%0d%0aX-Injected:1", "next=//evil.example", "token=x", "anonymous"])
        attack.method = self.pick(["GET"] * 8 + ["POST", "HEAD", "OPTIONS", "DELETE"])
        if attack.method == "POST":
            attack.body = self.body(path)
            attack.headers.append(("Content-Type", "application/x-www-form-urlencoded"))
        attack.target = path + ("?" + query if query else "")
        attack.headers += [self.pick(HEADERS) for _ in range(self.pick([0, 1, 2]))]
        attack.broken = True
        return attack


