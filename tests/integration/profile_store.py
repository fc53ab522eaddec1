"""A stand-in for Pyroscope that keeps what is pushed to it, and answers queries by label selectors as Pyroscope does."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "vm"))
import pyroscope  # noqa: E402

TESTS = {"=": lambda value, wanted: value == wanted, "!=": lambda value, wanted: value != wanted,
         "=~": lambda value, wanted: re.fullmatch(wanted, value) is not None, "!~": lambda value, wanted: not re.fullmatch(wanted, value)}


def selects(selector, labels):
    """Whether a selector such as {service_name="1"} selects these labels."""
    body = re.fullmatch(r"\s*\{(.*)\}\s*", selector, re.S)
    assert body, selector
    matchers = re.findall(r'([\w.]+)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|`[^`]*`)', body.group(1))
    rest = re.sub(r'[\w.]+\s*(?:=~|!~|!=|=)\s*(?:"(?:[^"\\]|\\.)*"|`[^`]*`)', "", body.group(1))
    assert not rest.strip(" ,"), selector
    return all(TESTS[test](labels.get(name, ""), json.loads(text) if text[0] == '"' else text[1:-1]) for name, test, text in matchers)


class ProfileStore(pyroscope.Pyroscope):
    """`profiles` is what was pushed: (labels, {function: CPU nanoseconds}, all nanoseconds). Calls are in JSON."""

    def __init__(self):
        super().__init__()
        outer = self
        push = self.server.RequestHandlerClass.do_POST

        class Handler(self.server.RequestHandlerClass):
            def do_POST(self):
                if not self.path.startswith("/querier.v1.QuerierService/"):
                    push(self)
                    return
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = json.dumps(outer.answer(self.path.rsplit("/", 1)[1], asked)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
        self.server.RequestHandlerClass = Handler

    def answer(self, call, asked):
        selectors = [asked["labelSelector"]] if "labelSelector" in asked else asked.get("matchers") or ["{}"]
        found = [profile for profile in list(self.profiles) if any(selects(selector, profile[0]) for selector in selectors)]
        if call == "LabelNames":
            return {"names": sorted({name for labels, _, _ in found for name in labels})}
        if call == "LabelValues":
            return {"names": sorted({labels[asked["name"]] for labels, _, _ in found if asked["name"] in labels})}
        if call == "Series":
            return {"labelsSet": [{"labels": [{"name": n, "value": v} for n, v in sorted(labels.items())]} for labels, _, _ in found]}
        assert call == "SelectMergeStacktraces", call
        time = {}
        for _, functions, _ in found:
            for name, spent in functions.items():
                time[name] = time.get(name, 0) + spent
        names, total = sorted(time), str(sum(total for _, _, total in found))
        nodes = [part for i, name in enumerate(names) for part in ("0", str(time[name]), str(time[name]), str(i + 1))]
        levels = [{"values": ["0", total, "0", "0"]}, {"values": nodes}]
        return {"flamegraph": {"names": ["total"] + names, "levels": levels, "total": total, "maxSelf": str(max(time.values(), default=0))}}
