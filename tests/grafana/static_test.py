#!/usr/bin/env python3
"""Checks Grafana's dashboards and provisioning files without Grafana: every panel says what it shows and in which unit, queries of users
name the unit in each selector, nothing is unbounded, and the three languages ask the same."""

import json
import os
import re
import sys

import dashboards
from dashboards import GRAFANA, LANGUAGES, is_shared, load, panels, variables

PLUGINS = {  # of Grafana 11 and newer, and the Infinity plugin of Grafana's catalogue
    "prometheus", "grafana-pyroscope-datasource", "yesoreyeram-infinity-datasource", "datasource",
    "stat", "bargauge", "timeseries", "table", "barchart", "text", "flamegraph", "row"}
UNITS = {"watt": "W", "kwatth": "kWh", "percentunit": "%", "percent": "%", "bytes": "B", "binBps": "B/s", "hertz": "Hz", "s": "s", "d": "d",
         "massg": "g", "suffix: g/s": "g/s", "suffix: g/kWh": "g/kWh", "celsius": "°C"}
PLAIN_UNITS = {"short", "pps", "reqps"}  # numbers, and rates whose title says of what
MAX_REQUESTS = 12
MAX_SIZE = 200_000
USERS = ["ceems-my-units", "ceems-project", "ceems-unit", "k8s-single-pod-metrics", "lsf-single-job-metrics", "os-vm-metrics",
         "slurm-single-job-metrics"]
OPERATORS = ["ceems-audit", "ceems-cluster", "ceems-fleet", "ceems-health", "ceems-node", "ceems-quality"]
FIXED_COLOURS = {"text", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"}
SHARED_METRICS = {"ceems_emissions_gCo2_kWh", "ceems_energy_source_info"}

AGGREGATIONS = {"sum", "avg", "min", "max", "count", "group", "quantile", "topk", "bottomk"}
RANKS = {"topk", "bottomk"}
# A cluster has thousands of the things that these labels name.
UNBOUNDED = {"uuid", "hostname", "instance", "gpuuuid", "hindex", "mountpoint", "source", "backend", "cgrouphostname"}
WORD = re.compile(r'\d+(?:\.\d+)?(?:e-?\d+)?|"(?:[^"\\]|\\.)*"|[A-Za-z_:][\w:]*|[(){}\[\],]|[^\s\w]')
KEYWORDS = {"by", "without", "on", "ignoring", "group_left", "group_right", "or", "and", "unless", "bool", "offset", "inf", "nan"}


def selectors(expr):
    """[(metric, matchers, enclosing functions, labels of enclosing aggregations)] of a query. A text of its own, so that the check does
    not depend on the gate, which the other test uses."""
    tokens = WORD.findall(re.sub(r"\[[^\]]*\]", "", expr).replace("$pue", "1"))
    found, stack, grouping, pending = [], [], None, None
    place = 0
    while place < len(tokens):
        token = tokens[place]
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        if token in AGGREGATIONS and following in ("(", "by", "without"):
            pending, grouping = token, set()
        elif token in ("by", "without", "on", "ignoring", "group_left", "group_right"):
            if following == "(":
                end = tokens.index(")", place)
                if token == "by" and pending:
                    grouping = {name for name in tokens[place + 2:end] if name != ","}
                place = end
        elif token == "(":
            stack.append((pending, grouping))
            pending, grouping = None, None
        elif token == ")":
            stack.pop()
        elif token == "{" or (re.match(r"[A-Za-z_:]", token) and token not in KEYWORDS and following != "(" and not token.startswith('"')):
            metric = "" if token == "{" else token
            matchers = []
            if token == "{" or following == "{":
                start = place + (1 if token == "{" else 2)
                end = tokens.index("}", start)
                matchers = "".join(tokens[start:end])
                place = end
            found.append((metric, matchers or "", [name for name, _ in stack if name],
                          [labels for name, labels in stack if name in AGGREGATIONS - RANKS]))
        elif re.match(r"[A-Za-z_:]", token) and following == "(":
            pending, grouping = token, None
        place += 1
    return found


def check_bounded(expr, where, audience):
    for metric, matchers, functions, groupings in selectors(expr):
        assert set(functions) & AGGREGATIONS, "%s: %s is not aggregated in %s" % (where, metric, expr)
        if not set(functions) & RANKS:
            # The outermost aggregation decides how many series there are.
            wide = groupings[0] & UNBOUNDED if groupings and groupings[0] else set()
            assert not wide, "%s: %s by %s without topk in %s" % (where, metric, wide, expr)
        if audience == "users":
            names_unit = 'uuid="$uuid"' in matchers
            assert names_unit or metric in SHARED_METRICS, "%s: %s names no unit in %s" % (where, metric, expr)


def check_selectors_helper():
    """The check itself finds what it is for."""
    for bad in ("a", "sum by (uuid) (a)", "rate(a[5m])", "topk(5, a) + b", "sum(a) or b", 'max by (hostname) (topk(3, a) + b)'):
        try:
            check_bounded(bad, "", "operators")
        except AssertionError:
            continue
        raise AssertionError("not found: " + bad)
    check_bounded('topk(5, sum by (uuid) (a)) or sum(rate(b{x="y"}[5m]))', "", "operators")
    for bad in ('sum(a{uuid="$uuid"}) or sum(b)', 'sum(a{uuid=~"$uuid"})', 'sum(a{uid="$uuid"})'):
        try:
            check_bounded(bad, "", "users")
        except AssertionError:
            continue
        raise AssertionError("not found: " + bad)


def check_panel(panel, where, audience, dashboard):
    assert panel["type"] in PLUGINS, where
    assert panel.get("title") and len(panel.get("description") or "") > 20, "%s: needs a title and a description" % where
    if panel["type"] in ("text", "flamegraph"):
        assert "${" not in re.sub(r"\(/d/[^)]*\)", "", panel["options"].get("content", "") if panel["type"] == "text" else ""), where
        if panel["type"] == "text":
            assert panel["options"]["mode"] == "markdown" and "<" not in panel["options"]["content"], where
            return
    origin = {"en": "Origin: ", "de": "Herkunft: ", "fr": "Origine : "}
    assert any(word in panel["description"] for word in origin.values()), "%s: no origin" % where
    if panel["type"] not in ("table", "flamegraph"):
        defaults = panel["fieldConfig"]["defaults"]
        unit = defaults.get("unit")
        assert unit in UNITS or unit in PLAIN_UNITS, "%s: unit %r" % (where, unit)
        if unit in UNITS:
            assert "(%s)" % UNITS[unit] in panel["title"], "%s: the title does not say the unit %s" % (where, UNITS[unit])
    if panel["type"] != "flamegraph":
        defaults = panel["fieldConfig"]["defaults"]
        colours = [step["color"] for step in defaults["thresholds"]["steps"]]
        assert colours[0] == "text" and set(colours) <= FIXED_COLOURS, "%s: colours %s" % (where, colours)
        assert defaults.get("noValue"), where
        if len(colours) > 1:
            check_words(panel, where)
    assert panel["targets"], where
    for target in panel["targets"]:
        kind = target["datasource"]["type"]
        assert kind in PLUGINS, where
        assert target["datasource"]["uid"] in ("${tsdb}", "${api}", "${profiles}", "-- Dashboard --"), where
        if kind == "prometheus":
            check_bounded(target["expr"], where, audience)
            assert "irate(" not in target["expr"], "%s: irate" % where
            assert not re.search(r"\[(?!\$__)", target["expr"]), "%s: a fixed range in %s" % (where, target["expr"])
        elif kind.startswith("yesoreyeram"):
            assert target["url"].startswith("/api/v1/"), where
            check_api(target, where, audience)
        elif kind.startswith("grafana-pyroscope"):
            assert target["labelSelector"] == '{service_name="$uuid"}', where
        else:
            assert is_shared(target) and any(inner["id"] == target["panelId"] and not is_shared(inner["targets"][0])
                                             for _, _, inner in panels(dashboard)), where


def check_words(panel, where):
    """A colour that means something has a text beside it."""
    texts = [mapping for mapping in panel["fieldConfig"]["defaults"].get("mappings") or ()]
    for override in panel["fieldConfig"].get("overrides") or ():
        texts += [one for item in override["properties"] if item["id"] == "mappings" for one in item["value"]]
    words = {"en": "Levels: ", "de": "Stufen: ", "fr": "Niveaux : "}
    assert any(word in panel["description"] for word in words.values()), "%s: colours without words" % where
    assert texts or panel["type"] == "bargauge", "%s: colours without a mapping to text" % where


def check_api(target, where, audience):
    admin = target["url"].endswith("/admin")
    assert not (admin and audience == "users"), "%s: a path for admins" % where
    keys = [pair["key"] for pair in target["url_options"]["params"]]
    assert "field" in keys, "%s: all fields are asked for" % where
    path = target["url"][len("/api/v1/"):]
    if path == "units":
        assert "limit" in keys or "uuid" in keys, "%s: no bound on rows" % where
    if path.startswith("usage/current"):
        assert {"from", "to"} <= set(keys), "%s: no period" % where


def requests_at_open(dashboard):
    """Queries that are sent when the dashboard is opened: those of variables and of panels outside folded rows."""
    count = sum(1 for variable in variables(dashboard) if variable["type"] == "query")
    return count + sum(not is_shared(target) for _, is_open, panel in panels(dashboard) if is_open for target in panel.get("targets") or ())


def check_dashboard(audience, dashboard, language):
    where = "%s %s" % (language, dashboard["uid"])
    text = json.dumps(dashboard, ensure_ascii=False)
    assert "\ufeff" not in text and len(text) < MAX_SIZE, where
    assert not re.search("[\U0001F000-\U0001FAFF\u2600-\u27BF]", text), "%s: emoji" % where
    for wrong in ("${DS_", "${VAR_", "orgId", "__inputs", "irate(", "provider=rte", "job=~\"$job\"" if audience == "users" else "${DS_"):
        assert wrong not in text, "%s: %s" % (where, wrong)
    assert dashboard["timezone"] == "browser" and dashboard["time"]["to"] == "now", where
    assert dashboard["time"]["from"] in ("now-6h", "now-7d", "now-30d"), where
    assert not (dashboard.get("timepicker") or {}).get("hidden"), where
    assert any(tag.startswith("ceems-edition-") for tag in dashboard["tags"]), where
    assert dashboard["links"], where
    assert all(link["type"] == "dashboards" or link["url"].startswith(("/d/", "${page:raw}/ui/#/unit/")) for link in dashboard["links"]), where
    names = [variable["name"] for variable in variables(dashboard)]
    assert len(names) == len(set(names)), where
    for variable in variables(dashboard):
        assert variable["type"] in ("datasource", "query", "textbox"), "%s: %s" % (where, variable["name"])
        if variable["type"] == "datasource":
            assert variable["regex"] == "/^CEEMS/" and variable["query"] in PLUGINS, where
        if variable["type"] == "query":
            assert variable["datasource"]["uid"] in ("${tsdb}", "${api}"), where
            if variable["datasource"]["type"] == "prometheus":
                ranked = re.fullmatch(r"query_result\((.+)\)", variable["query"]["query"])
                if ranked:  # in the order of the query, not of the alphabet
                    check_bounded(ranked.group(1), where, audience)
                    assert variable["sort"] == 0 and variable["regex"], "%s: %s" % (where, variable["name"])
                    continue
                inner = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
                assert inner, "%s: %s" % (where, variable["query"])
                if audience == "users":
                    assert 'uuid="$uuid"' in inner.group(1) or inner.group(1).split("{")[0] in SHARED_METRICS, where
            else:
                assert not variable["query"]["infinityQuery"]["url"].endswith("/admin") or audience == "operators", where
    ids = [panel["id"] for _, _, panel in panels(dashboard)] + [row["id"] for row in dashboard["panels"] if row["type"] == "row"]
    assert len(ids) == len(set(ids)), "%s: ids of panels" % where
    known = set(names) | {"__rate_interval", "__range", "__interval", "__from", "__to", "__user", "__url_time_range", "__data", "__value",
                          "__all", "sum", "append", "string", "exists", "data"}
    for name in re.findall(r"\$\{?(\w+)", text):
        assert name in known or name == "1", "%s: unknown variable %s" % (where, name)
    titles = [panel["title"] for _, _, panel in panels(dashboard)]
    assert len(titles) == len(set(titles)), "%s: a title is used twice" % where
    for row, _, panel in panels(dashboard):
        check_panel(panel, "%s › %s › %s" % (where, row, panel["title"]), audience, dashboard)
    count = requests_at_open(dashboard)
    assert count <= MAX_REQUESTS, "%s: %d requests when it is opened" % (where, count)
    return count


def same_questions(left, right):
    """Everything but texts is the same in two languages."""
    def questions(dashboard):
        made = []
        for _, _, panel in panels(dashboard):
            for target in panel.get("targets") or ():
                expr = re.sub(r'label_replace\((.*?), "(share|part)", "[^"]*"', r'label_replace(\1, "\2", "-"', target.get("expr", ""))
                made.append((panel["id"], panel["type"], expr, {k: v for k, v in target.items() if k not in ("expr", "legendFormat")}))
        return made, [(v["name"], v["type"], v.get("query")) for v in variables(dashboard)]
    assert questions(left) == questions(right), "%s: the languages do not ask the same" % left["uid"]


def check_provisioning():
    environment = {name: name.lower() for name in (
        "CEEMS_CLUSTER_ID", "CEEMS_LB_URL", "CEEMS_LB_PROFILES_URL", "CEEMS_LB_USER", "CEEMS_LB_PASSWORD", "CEEMS_API_URL",
        "CEEMS_API_USER", "CEEMS_API_PASSWORD", "CEEMS_PROMETHEUS_URL", "CEEMS_PROMETHEUS_USER", "CEEMS_PROMETHEUS_PASSWORD",
        "CEEMS_PYROSCOPE_URL", "CEEMS_SCRAPE_INTERVAL", "CEEMS_DASHBOARDS", "CEEMS_USERS_ORG", "CEEMS_OPERATORS_ORG")}
    provisioning = os.path.join(GRAFANA, "provisioning")
    sources = {}
    for name in ("users", "operators"):
        made = dashboards.expanded(dashboards.read_yaml(os.path.join(provisioning, "datasources", "ceems-%s.yaml" % name)), environment)
        assert made["apiVersion"] == 1
        sources[name] = made["datasources"]
        for source in sources[name]:
            assert source["type"] in PLUGINS and source["name"].startswith("CEEMS") and source["access"] == "proxy", source
            assert source["orgId"] == "ceems_%s_org" % name and source["editable"] is False and source["url"], source
            if source["type"].startswith("yesoreyeram"):
                assert source["jsonData"]["allowedHosts"] == [source["url"]], source
                assert source["jsonData"]["httpHeaderName1"] == "X-Grafana-User", source
                assert source["secureJsonData"]["httpHeaderValue1"] == "${__user.login}", source
            if source["type"] == "prometheus":
                assert source["jsonData"]["timeInterval"] == "ceems_scrape_interval", source
            assert "X-Ceems-Disable-User-Check" not in json.dumps(source), source
    for source in sources["users"]:
        # Nothing in the users' organisation leads to a server without access control.
        assert source["url"] in ("ceems_lb_url", "ceems_lb_profiles_url", "ceems_api_url"), source
        if "lb" in source["url"]:
            assert source["jsonData"]["httpHeaderName1"] == "X-Ceems-Cluster-Id" and source["basicAuth"] is True, source
            assert source["secureJsonData"]["httpHeaderValue1"] == "ceems_cluster_id", source
    assert {source["uid"] for source in sources["users"]} == {"ceems-tsdb-ceems_cluster_id", "ceems-profiles-ceems_cluster_id", "ceems-api"}
    uids = [source["uid"] for one in sources.values() for source in one]
    assert len(uids) == len(set(uids))
    providers = dashboards.expanded(dashboards.read_yaml(os.path.join(provisioning, "dashboards", "ceems.yaml")), environment)["providers"]
    assert [(p["folder"], p["orgId"], p["options"]["path"], p["allowUiUpdates"]) for p in providers] == [
        ("CEEMS", "ceems_users_org", "ceems_dashboards/users", False),
        ("CEEMS operators", "ceems_operators_org", "ceems_dashboards/operators", False)], providers
    documented = open(os.path.join(dashboards.ROOT, "docs", "grafana.md"), encoding="utf-8").read()
    for name in environment:
        assert "`%s`" % name in documented, "docs/grafana.md does not mention %s" % name


def main():
    check_selectors_helper()
    check_provisioning()
    loaded = {language: load(language) for language in LANGUAGES}
    english = loaded["en"]
    assert sorted(uid for uid, (audience, _) in english.items() if audience == "users") == USERS, english.keys()
    assert sorted(uid for uid, (audience, _) in english.items() if audience == "operators") == OPERATORS, english.keys()
    for language, found in loaded.items():
        assert set(found) == set(english), language
        for uid, (audience, dashboard) in found.items():
            count = check_dashboard(audience, dashboard, language)
            same_questions(english[uid][1], dashboard)
            if language == "en":
                print("%-26s %2d panels, %2d requests when opened" % (uid, len(list(panels(dashboard))), count))
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
