"""Reads dashboards and provisioning files, and fills in variables as Grafana does. Needs only Python 3.9 and its library."""

import json
import os
import re
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAFANA = os.path.join(ROOT, "packaging", "grafana")
DASHBOARDS = os.path.join(GRAFANA, "dashboards")
LANGUAGES = ("de", "en", "fr")
VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+(?:\.\w+)*)(?::([\w:]+))?\}|\[\[(\w+)\]\]")
REGEX_SPECIAL = re.compile(r"[\\^$*+?.()|{}\[\]/]")


def files(language="en"):
    """(audience, path) of every dashboard of a language."""
    for audience in ("operators", "users"):
        directory = os.path.join(DASHBOARDS, language, audience)
        for name in sorted(os.listdir(directory)):
            yield audience, os.path.join(directory, name)


def load(language="en"):
    """{uid: (audience, dashboard)}"""
    found = {}
    for audience, path in files(language):
        with open(path, encoding="utf-8") as f:
            dashboard = json.load(f)
        found[dashboard["uid"]] = (audience, dashboard)
    return found


def panels(dashboard):
    """(row title, open, panel) of every panel."""
    title, is_open = "", True
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            title, is_open = panel["title"], not panel.get("collapsed")
            for inner in panel.get("panels") or ():
                yield title, is_open, inner
        else:
            yield title, True, panel


def variables(dashboard):
    return dashboard.get("templating", {}).get("list", [])


def is_shared(target):
    return target["datasource"]["uid"] == "-- Dashboard --"


class Settings:
    """What Grafana knows when it sends a query: the range, the resolution, the scrape interval of the data source, the values of
    variables (a text, or a list for several) and the person who is logged in."""

    def __init__(self, start, end, scrape, values, login="", points=1000):
        self.start, self.end, self.values, self.login = start, end, values, login
        # The interval is at least that of the data source.
        self.interval = max(scrape, self.rounded((end - start) / points))
        self.builtin = {"__interval": "%gs" % self.interval, "__interval_ms": "%d" % (1000 * self.interval),
                        "__rate_interval": "%gs" % max(self.interval + scrape, 4 * scrape),
                        "__range": "%ds" % max(1, round(end - start)), "__range_s": "%d" % round(end - start)}

    @staticmethod
    def rounded(seconds):
        """Grafana rounds intervals to steps that people like."""
        for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800,
                     21600, 43200, 86400):
            if seconds <= 1.5 * step:
                return step
        return 7 * 86400

    def replaced(self, text, form):
        """`form` formats the value of a variable that has no format of its own."""
        def one(found):
            name, kind = found.group(1) or found.group(2) or found.group(4), found.group(3)
            if name in self.builtin:
                return self.builtin[name]
            if name in ("__from", "__to"):
                moment = self.start if name == "__from" else self.end
                return "%d" % moment if kind == "date:seconds" else "%d" % (1000 * moment)
            if name == "__user.login":
                return self.login
            if name == "__url_time_range":
                return "from=%d&to=%d" % (1000 * self.start, 1000 * self.end)
            if name not in self.values:
                return found.group(0)
            value = self.values[name]
            if kind == "percentencode":
                return urllib.parse.quote(value if isinstance(value, str) else "{%s}" % ",".join(value), safe="")
            if kind == "regex":
                return as_regex(value)
            if kind is not None:
                raise AssertionError("the test does not know the format %r" % kind)
            return form(name, value)
        return VARIABLE.sub(one, text)

    def promql(self, text, several=()):
        """The Prometheus data source: the values of a variable with several values become a regular expression."""
        def form(name, value):
            if name not in several:
                return value.replace("\\", "\\\\").replace("'", "\\\\'")
            return value if value == ".*" else as_regex(value).replace("\\", "\\\\")
        return self.replaced(text, form)

    def plain(self, text):
        """Texts and parameters of the Infinity plugin and of Pyroscope."""
        return self.replaced(text, lambda _name, value: value if isinstance(value, str) else "{%s}" % ",".join(value))


def as_regex(value):
    if isinstance(value, str):
        return REGEX_SPECIAL.sub(r"\\\g<0>", value)
    parts = [REGEX_SPECIAL.sub(r"\\\g<0>", one) for one in value]
    return parts[0] if len(parts) == 1 else "(%s)" % "|".join(parts)


def with_several(dashboard):
    return {variable["name"] for variable in variables(dashboard) if variable.get("multi") or variable.get("includeAll")}


# Provisioning files: as much of YAML as they use.


def scalar(text):
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [part.strip() for part in text[1:-1].split(",")]
    return {"true": True, "false": False}.get(text, int(text) if re.fullmatch(r"\d+", text) else text)


def expanded(value, environment):
    """Grafana replaces $NAME and ${NAME} by variables of its environment, and $$ by a dollar sign."""
    if isinstance(value, dict):
        return {key: expanded(one, environment) for key, one in value.items()}
    if isinstance(value, list):
        return [expanded(one, environment) for one in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"\$\$|\$\{(\w+)\}|\$(\w+)",
                  lambda found: "$" if found.group(0) == "$$" else environment[found.group(1) or found.group(2)], value)


def read_yaml(path):
    """Maps, lists of maps, scalars and comments, by indentation."""
    lines = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.strip() and not line.lstrip().startswith("#"):
                lines.append((len(line) - len(line.lstrip()), line.strip()))

    def block(place, indent):
        made = None
        while place < len(lines) and lines[place][0] == indent:
            text = lines[place][1]
            if text.startswith("- "):
                made = [] if made is None else made
                lines[place] = (indent + 2, text[2:])
                item, place = block(place, indent + 2)
                made.append(item)
                continue
            made = {} if made is None else made
            key, _, rest = text.partition(":")
            if rest.strip():
                made[key] = scalar(rest)
                place += 1
            else:
                place += 1
                made[key], place = block(place, lines[place][0])
        return made, place
    return block(0, 0)[0]
