#!/usr/bin/env python3
"""Our PromQL parser against a real Prometheus: what one accepts the other accepts, and our canonical text of a query means to
Prometheus what the query means.

Queries are made from a grammar by a seeded generator, half of them then broken at a random place. Prometheus' /api/v1/format_query
parses without evaluating; its own formatting of a query and of our text of it must be equal. What VictoriaMetrics refuses is refused by us, too: numbers
that only seem to be octal (08, 00.5), and on() and ignoring() beside a scalar.

usage: oracle_test.py PRINT_QUERIES [COUNT [SEED]]"""

import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import harness  # noqa: E402

LABELS = ["uuid", "job", "instance", "a_b", "by", "on", "sum", "le", "offset", "_x"]
METRICS = ["up", "foo", "a:b:c", "ceems_compute_units", "sum", "by", "offset", "start", "topk", "and"]
WORDS = ["", "own", "1|2", "a.*", "x\\\\.y", "^a$", "(a|b)c", "[0-9]+", "\\u00e9", "q\\\"q", "\\x41"]
DURATIONS = ["5m", "1h", "1h30m", "90s", "1d", "1w", "100ms", "1y2w"]
NUMBERS = ["1", "0.5", ".5", "5.", "1e3", "0x1F", "010", "Inf", "nan", "-1", "+2", "1e-7"]
VECTOR1 = ["abs", "absent", "ceil", "floor", "sqrt", "ln", "sort", "timestamp", "sgn", "hour", "month", "histogram_sum"]
MATRIX1 = ["rate", "irate", "increase", "delta", "avg_over_time", "last_over_time", "changes", "deriv", "absent_over_time"]
AGGREGATES = ["sum", "avg", "count", "min", "max", "group", "stddev", "stdvar", "SUM", "Count"]
BINARY = ["+", "-", "*", "/", "%", "^", "atan2", "==", "!=", "<", "<=", ">", ">=", "and", "or", "unless", "AND"]


class Maker:
    durations, numbers = DURATIONS, NUMBERS
    odd = False  # with what Prometheus accepts and VictoriaMetrics refuses

    def __init__(self, seed):
        self.r = random.Random(seed)

    def pick(self, choices):
        return self.r.choice(choices)

    def chance(self, share):
        return self.r.random() < share

    def blank(self):
        return self.pick(["", "", " ", "  ", "\n", " # c {uuid=\"1\"}\n"])

    def string(self):
        text = self.pick(WORDS)
        if self.chance(0.2) and "\\" not in text:
            return "`%s`" % text
        if self.chance(0.3) and "\\\"" not in text:
            return "'%s'" % text
        return '"%s"' % text

    def matcher(self):
        op = self.pick(["=", "=", "!=", "=~", "!~"])
        return self.pick(LABELS) + self.blank() + op + self.blank() + self.string()

    def selector(self):
        name = self.pick(METRICS + [""])
        count = self.r.randint(0 if name else 1, 3)
        if count == 0 and self.chance(0.7):
            return name
        inner = ("," + self.blank()).join(self.matcher() for _ in range(count))
        if count and self.chance(0.1):
            inner += ","
        return name + self.blank() + "{" + inner + "}"

    def shift(self):
        text = ""
        if self.chance(0.15):
            text += " offset " + self.pick(["", "-", "- "]) + self.pick(self.durations)
        if self.chance(0.15):
            text += " @ " + self.pick(["1609746000", "0.5", "-3", "start()", "end( )", "1e3"])
        return text

    def matrix(self, depth):
        if depth > 0 and self.chance(0.2):
            step = self.pick(["", "1m", "30s"])
            return "(%s)[%s:%s]%s" % (self.vector(depth - 1), self.pick(self.durations), step, self.shift())
        return self.selector() + self.blank() + "[" + self.pick(self.durations) + "]" + self.shift()

    def number(self):
        return self.pick(self.numbers)

    def scalar(self, depth):
        if depth > 0 and self.chance(0.3):
            return self.pick(["time()", "pi()", "scalar(%s)" % self.vector(depth - 1),
                              "(%s)" % self.scalar(depth - 1),
                              "%s %s %s" % (self.scalar(depth - 1), self.pick(["+", "*", "^", "== bool", "%", "atan2"]),
                                            self.scalar(depth - 1))])
        return self.number()

    def labels(self):
        names = [self.pick(LABELS) for _ in range(self.r.randint(0, 3))]
        return "(" + ",".join(names) + ("," if names and self.chance(0.1) else "") + ")"

    def grouping(self):
        return self.pick(["by", "without", "BY"]) + self.blank() + self.labels()

    def aggregate(self, depth):
        arguments = self.vector(depth - 1)
        op = self.pick(AGGREGATES)
        if self.chance(0.25):
            op = self.pick(["topk", "bottomk", "quantile", "count_values"])
            first = self.string() if op == "count_values" else self.scalar(depth - 1)
            arguments = first + ", " + arguments
        where = self.r.randint(0, 2)
        if where == 0:
            return "%s(%s)" % (op, arguments)
        if where == 1:
            return "%s %s (%s)" % (op, self.grouping(), arguments)
        return "%s(%s) %s" % (op, arguments, self.grouping())

    def call(self, depth):
        kind = self.r.randint(0, 6)
        if kind == 0:
            return "%s(%s)" % (self.pick(VECTOR1), self.vector(depth - 1))
        if kind <= 2:
            return "%s(%s)" % (self.pick(MATRIX1), self.matrix(depth - 1))
        if kind == 3:
            return "histogram_quantile(%s, %s)" % (self.scalar(depth - 1), self.vector(depth - 1))
        if kind == 4:
            return "label_replace(%s, %s)" % (self.vector(depth - 1), ", ".join(self.string() for _ in range(4)))
        if kind == 5:
            return "clamp(%s, %s, %s)" % (self.vector(depth - 1), self.scalar(0), self.scalar(0))
        return "quantile_over_time(%s, %s)" % (self.scalar(0), self.matrix(depth - 1))

    def binary(self, depth):
        op = self.pick(BINARY)
        modifiers = ""
        if op in ("==", "!=", "<", "<=", ">", ">=") and self.chance(0.3):
            modifiers += " bool"
        matching = ""
        if self.chance(0.3):
            matching += " " + self.pick(["on", "ignoring"]) + self.labels()
            if self.chance(0.4):
                matching += " " + self.pick(["group_left", "group_right"]) + self.pick(["", "()", self.labels()])
        scalar = not self.chance(0.8)
        right = self.scalar(depth - 1) if scalar else self.vector(depth - 1)
        left = self.vector(depth - 1)
        if matching and not self.odd:
            left, matching = "(%s)" % left, "" if scalar else matching  # "a - 5 / on() b" has it beside 5
        return "%s %s%s%s %s" % (left, op, modifiers, matching, right)

    def vector(self, depth):
        kind = self.r.randint(0, 9) if depth > 0 else 0
        if kind <= 3:
            return self.selector() + self.shift()
        if kind <= 5:
            return self.call(depth)
        if kind <= 6:
            return self.aggregate(depth)
        if kind == 7:
            return "(" + self.blank() + self.vector(depth - 1) + ")"
        if kind == 8:
            return self.pick(["-", "+"]) + self.vector(depth - 1)
        return self.binary(depth)

    def query(self):
        kind = self.r.randint(0, 9)
        depth = self.r.randint(0, 4)
        if kind == 0:
            return self.scalar(depth)
        if kind == 1:
            return self.matrix(depth)
        return self.vector(depth)

    def broken(self, query):
        place = self.r.randint(0, len(query))
        kind = self.r.randint(0, 3)
        if kind == 0:
            return query[:place] + query[place + 1:]
        if kind == 1:
            return query[:place] + self.pick(list("(){}[],:@=!~+-*/%^<>\"'`#;$?\\ 0a") + [" bool ", " by ", " offset ", "1h"]) + query[place:]
        if kind == 2:
            other = self.query()
            return query[:place] + other[self.r.randint(0, len(other)):]
        end = self.r.randint(place, len(query))
        return query[:place] + query[end:]


def ours(program, queries):
    lines = "".join(q.replace("\\", "\\\\").replace("\n", "\\n") + "\n" for q in queries)
    done = subprocess.run([program, "2"], input=lines.encode(), stdout=subprocess.PIPE, timeout=300, check=True)
    answers = done.stdout.decode().split("\n")[:-1]
    assert len(answers) == len(queries), (len(answers), len(queries))
    undo = lambda text: text.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\")
    return [(answer.startswith("ok "), undo(answer[3:])) for answer in answers]


class MakerOfOddQueries(Maker):
    numbers = NUMBERS + ["08"]
    odd = True


def is_known(error):
    """Whether we refuse the query because VictoriaMetrics does: because of a number such as 08, or of on() beside a scalar."""
    return re.search(r"bad number or duration syntax: '0[0-9_]|vector matching only allowed", error) is not None


class Prometheus:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def formatted(self, query):
        """(accepted, formatted text or error)"""
        body = urllib.parse.urlencode({"query": query})
        self.connection.request("POST", "/api/v1/format_query", body, {"Content-Type": "application/x-www-form-urlencoded"})
        answer = json.loads(self.connection.getresponse().read())
        if answer["status"] == "success":
            return True, answer["data"]
        return False, answer["error"]


# Prometheus 3 reads more than the language of Prometheus 2, which is ours: numbers as durations, durations as numbers, names of metrics
# in quotes. Nothing that we accept may mean something else there.
NEWER = os.environ.get("CEEMS_TEST_SERVER") == "prometheus3"


def without_parentheses(formatted):
    """Lists of words are printed without the parentheses around them (promql::print), which change nothing."""
    return re.sub(r'([=!]~)"\(([\w|-]*)\)"', r'\1"\2"', formatted)


def main():
    harness.need_programs("prometheus")
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    maker = MakerOfOddQueries(seed)
    queries = []
    for number in range(count):
        query = maker.query()
        queries.append(maker.broken(query) if number % 2 else query)
    answers = ours(program, queries)
    problems = []
    accepted = known = newer = 0
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as out:
            out.write("global: {}\n")
        port = harness.free_port()
        log = open(os.path.join(directory, "log"), "wb")
        child = subprocess.Popen(["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(directory, "tsdb"),
                                  "--web.listen-address=127.0.0.1:%d" % port], stdout=log, stderr=log)
        try:
            harness.wait_until("Prometheus is ready", lambda: harness.get("http://127.0.0.1:%d/-/ready" % port).status == 200)
            server = Prometheus(port)
            for query, (ok, text) in zip(queries, answers):
                theirs, formatted = server.formatted(query)
                accepted += theirs
                if theirs and not ok and is_known(text):
                    known += 1
                elif theirs and not ok and NEWER:
                    newer += 1
                elif ok != theirs:
                    problems.append("%r\n    ours: %s %s\n    Prometheus: %s %s" % (query, ok, text, theirs, formatted))
                elif ok:
                    again, same = server.formatted(text)
                    if not again or without_parentheses(same) != without_parentheses(formatted):
                        problems.append("%r\n    printed as %r\n    is to Prometheus: %s\n    instead of: %s" %
                                        (query, text, same, formatted))
        finally:
            child.terminate()
            child.wait()
            log.close()
    for problem in problems[:20]:
        print(problem)
    print("%d queries, %d accepted by Prometheus, %d refused for VictoriaMetrics, %d only in Prometheus 3, %d differences" %
          (count, accepted, known, newer, len(problems)))
    return 1 if problems or accepted < count // 4 or known == 0 or newer > count // 100 else 0


if __name__ == "__main__":
    sys.exit(main())
