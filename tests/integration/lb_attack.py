"""Requests to a gate in front of Prometheus: random queries and tricky forms of requests. Only makes texts; lb_test.py sends them."""

import os
import random
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "promql"))
import oracle_test  # noqa: E402

END = 1_700_000_000
OWN, FOREIGN = ["1", "own-2"], ["2", "other"]
METRICS = ["m_cpu", "m_energy_total", "m_memory"]
SHARED = "ceems_emissions_gCo2_kWh"  # everybody may read it


def encoded(query, **more):
    return urllib.parse.urlencode(dict(query=query, time=END, **more))


class Attacker(oracle_test.Maker):
    """Queries over the series of the site, including tricky ones."""

    def __init__(self, seed):
        super().__init__(seed)
        self.units = OWN + FOREIGN

    def unit_matcher(self):
        ids = [self.pick(self.units) for _ in range(self.r.randint(1, 3))]
        kind = self.r.randint(0, 11)
        if kind <= 4:
            return 'uuid="%s"' % ids[0]
        if kind <= 6:
            return 'uuid=~"%s"' % "|".join(ids)
        return self.pick(['uuid=~"%s|"' % ids[0], 'uuid!="%s"' % ids[0], 'uuid=~".*"', "uuid='%s'" % ids[0], "uuid=`%s`" % ids[0],
                          'uuid=~"(%s)"' % "|".join(ids), 'uuid=~"^%s$"' % ids[0], 'uuid=""', 'xuuid=~"%s|"' % ids[0],
                          'uuid=~"[12]"', 'uuid="\\x31"', 'uuid=~"(?i)%s"' % ids[0], 'uuid=~"%s?"' % ids[0]])

    def selector(self):
        name = self.pick(METRICS + METRICS + ["node_power", SHARED, ""])
        matchers = [self.unit_matcher() for _ in range(self.pick([0, 1, 1, 1, 1, 2]))]
        if self.chance(0.2):
            matchers.append(self.pick(['job="x"', 'instance=~"n.*"', 'instance!="n0"', 'provider="rte"', 'ceems_id="c0"', 'ceems_id="c1"']))
        if not name and self.chance(0.5):
            matchers.append('__name__=~"m_.*"')
        self.r.shuffle(matchers)
        return name + "{" + ",".join(matchers) + "}" if matchers or not name else name

    def shift(self):
        return self.pick(["", "", "", "", " offset 5m", " @ %d" % (END - 600)])

    def query(self):
        return self.vector(self.r.randint(0, 3))


class Owner(Attacker):
    """Queries that touch only alice's units."""

    def __init__(self, seed):
        super().__init__(seed)
        self.units = OWN

    def unit_matcher(self):
        ids = [self.pick(OWN) for _ in range(self.r.randint(1, 2))]
        return self.pick(['uuid="%s"' % ids[0], "uuid='%s'" % ids[0], 'uuid=~"%s"' % "|".join(ids), 'uuid=~"(%s)"' % "|".join(ids),
                          'uuid=~"^%s$"' % ids[0]])

    def selector(self):
        matchers = [self.unit_matcher()]
        if self.chance(0.3):
            matchers.append(self.pick(['job="x"', 'instance=~"n.*"', 'instance!="n0"', 'ceems_id=~"c0"']) if self.chance(0.9) else 'le=""')
        return self.pick(METRICS) + "{" + ",".join(matchers) + "}"


class Sly:
    """Requests that try to look different to the gate and to Prometheus."""

    FOREIGN = ['m_cpu{uuid="2"}', 'm_memory{uuid="other"}', "node_power", "sum(node_power)", "count(m_cpu)", 'm_cpu{uuid=~".*"}',
               'm_cpu or m_memory{uuid="1"}', '{__name__=~".+"}', 'max(m_energy_total{uuid!="1"})', 'm_cpu{uuid=~"1|"}']
    OWN = ['m_cpu{uuid="1"}', 'sum(m_memory{uuid=~"1|own-2"})', "1", "ceems_emissions_gCo2_kWh", 'm_cpu{uuid="own-2"}[5m]']

    def __init__(self, seed):
        self.r = random.Random(seed)

    def pick(self, choices):
        return self.r.choice(choices)

    def encode(self, text):
        """The text in one of the ways to write it in a form, some of which are wrong."""
        kind = self.r.randint(0, 24)
        if kind == 6 or kind > 9:
            return urllib.parse.quote_plus(text)
        if kind <= 5:
            return "".join("%%%02x" % byte for byte in text.encode())
        if kind == 9:
            return urllib.parse.quote(urllib.parse.quote(text))
        if kind == 7:
            return text.replace(" ", "%20").replace("&", "%26").replace("+", "%2B").replace("#", "%23")
        if kind == 8:
            return urllib.parse.quote_plus(text + self.pick(["\n", "\r\n# ", "\0", "\u2028", ";", "&query=1"]))
        return urllib.parse.quote_plus(self.pick(["", " ", "\ufeff", "#\n"]) + text)

    def form(self, names):
        texts, parts = [], []
        for _ in range(self.pick([1, 1, 1, 1, 2, 3])):
            text = self.pick(self.FOREIGN if self.r.random() < 0.5 else self.OWN)
            texts.append(text)
            name = self.pick(names)
            parts.append("%s=%s" % (self.pick([name] * 20 + [urllib.parse.quote(name, safe=""), name.upper(), name + "%00", " " + name]),
                                    self.encode(text)))
        parts.append("time=%d" % END)
        if self.r.random() < 0.3:
            parts.append(self.pick(["x=y", "lookback_delta=1h", "timeout=5", "stats=all", "limit=9", "dedup=false", "storeMatch[]=a", "%", "&", ";"]))
        self.r.shuffle(parts)
        return self.pick(["&"] * 20 + [";", "&&"]).join(parts), texts

    def path(self):
        plain = "/api/v1/" + self.pick(["query", "query", "query", "query_range", "series", "labels", "label/uuid/values",
                                        "label/__name__/values", "query_exemplars", "label/instance/values"])
        if self.r.random() < 0.8:
            return plain
        return self.pick([plain + "/", "/" + plain, plain.replace("/v1", "/v1/."), "/api/v1/x/../" + plain[8:], plain.replace("/v1/", "/v1%2f"),
                          plain.replace("q", "%71"), "/federate", "/federate/", "/api/v1/read", "/api/v1/status/tsdb", "/api/v1/query%00",
                          "/api/v1/targets/metadata", "/api/v1/metadata", "/api/v1/status/config/", "/graph/api/v1/query", plain + ";x",
                          "http://x" + plain, "/api/v1/label/..%2f..%2fquery/values", plain + "#"])

    def headers(self):
        fields = [("Host", "x"), ("X-Grafana-User", "alice"), ("X-Ceems-Cluster-Id", "c0")]
        if self.r.random() < 0.15:
            fields.append(self.pick([("X-Grafana-User", "root"), ("x-grafana-user", "bob"), ("X-Ceems-Admin-User", "root"),
                                     ("X-Ceems-Logged-User", "root"), ("X_Grafana_User", "root"), ("Connection", "X-Grafana-User"),
                                     ("X-HTTP-Method-Override", "POST"), ("X-Ceems-Cluster-Id", "c1"), ("X-Original-URL", "/federate"),
                                     ("Content-Encoding", "gzip"), ("Expect", "100-continue"), ("Upgrade", "websocket")]))
        return fields

    def request(self):
        """(bytes, path, texts)"""
        path = self.path()
        names = ["query"] if "query" in path else ["match[]", "match[]", "match", "query"]
        method = self.pick(["GET"] * 10 + ["POST"] * 10 + ["HEAD", "PUT", "DELETE", "OPTIONS", "get", "PATCH"])
        query, texts = self.form(names) if method in ("GET", "HEAD", "get") or self.r.random() < 0.2 else ("", [])
        fields, body = self.headers(), b""
        if method not in ("GET", "HEAD", "get") or self.r.random() < 0.15:
            text, more = self.form(names)
            texts += more
            kind = self.pick(["application/x-www-form-urlencoded"] * 20 + ["multipart/form-data; boundary=b", "application/json", "text/plain",
                                                                          "application/x-www-form-urlencoded; charset=utf-16", ""])
            body = text.encode()
            if kind.startswith("multipart"):
                body = ("--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\n%s\r\n--b--\r\n" % texts[-1]).encode()
            if kind:
                fields.append(("Content-Type", kind))
            if self.r.random() < 0.1:
                fields.append(("Transfer-Encoding", "chunked"))
                body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            else:
                fields.append(("Content-Length", str(len(body))))
        target = urllib.parse.quote(path + ("?" + query if query else ""), safe="".join(map(chr, range(33, 127))))
        head = "%s %s HTTP/1.1\r\n" % (method, target) + "".join("%s: %s\r\n" % field for field in fields)
        return head.encode() + b"Connection: close\r\n\r\n" + body, path, texts
