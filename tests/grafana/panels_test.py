#!/usr/bin/env python3
"""Asks every question of every dashboard as Grafana would, and requires data: users through the load balancer and from the API server,
operators from Prometheus and as admins. Nothing may be refused, and with the variables of somebody else's unit a user gets nothing.

    panels_test.py [--verbose]
    panels_test.py --slow-scrapes    the same with a scrape every 30 s and gaps of five minutes

Grafana itself is not there: dashboards.py fills in variables, jsonata.py and this file do what the Infinity plugin and the
transformations of panels do."""

import contextlib
import http.client
import json
import re
import subprocess
import sys
import time
import urllib.parse

import jsonata
import reference_queries
import ceems_site as site
from dashboards import Settings, is_shared, load, panels, variables, with_several
from ceems_site import ARRAYS, CLUSTER, FOREIGN, OLD, OWN, SCRAPE, TASK, Site
from harness import Program, free_port, get, scratch, write

VERBOSE = "--verbose" in sys.argv
REFUSED = "refused"
# A short test has no database of that age; with --slow-scrapes it has.
EARLIER_MONTHS = ("Energy by member, last month (kWh)", "Energy by member, two months ago (kWh)")


class Asker:
    """Sends queries of one person. `metrics` and `profiles` are base URLs; with `gate` they are those of the load balancer."""

    def __init__(self, settings, several, metrics, profiles, api, gate, instant_shift=0):
        self.settings, self.several, self.metrics, self.profiles, self.api = settings, several, metrics, profiles, api
        self.headers = {"X-Grafana-User": settings.login, "Content-Type": "application/x-www-form-urlencoded"}
        if gate:
            self.headers["X-Ceems-Cluster-Id"] = settings.values.get("cluster", CLUSTER)

    def post(self, path, **parameters):
        return get(self.metrics + path, self.headers, data=urllib.parse.urlencode(parameters).encode())

    def promql(self, target):
        """[(labels, last number)] or REFUSED."""
        query = self.settings.promql(target["expr"], self.several)
        assert "$" not in re.sub(r'"\$1"', "", query), query
        if target.get("instant"):
            answer = self.post("/api/v1/query", query=query, time="%.3f" % self.settings.end)
        else:
            step = self.settings.interval
            answer = self.post("/api/v1/query_range", query=query, start="%.3f" % (self.settings.start // step * step),
                               end="%.3f" % (self.settings.end // step * step), step="%g" % step)
        if answer.status == 403:
            return REFUSED
        assert answer.status == 200, "%s: %d %s" % (query, answer.status, answer.text[:500])
        found = []
        for series in answer.json["data"]["result"]:
            samples = series.get("values") or [series["value"]]
            numbers = [float(value) for _, value in samples if value not in ("NaN", "+Inf", "-Inf")]
            if numbers:
                found.append((series["metric"], numbers[-1]))
        return found

    def label_values(self, text):
        inner = re.fullmatch(r"label_values\((.+), (\w+)\)", self.settings.promql(text, self.several))
        period = {"start": "%d" % self.settings.start, "end": "%d" % (self.settings.end + 1)}
        answer = get(self.metrics + "/api/v1/label/%s/values?%s" % (inner.group(2), urllib.parse.urlencode(
            {"match[]": inner.group(1), **period})), self.headers)
        # Older versions of Grafana, and those with another setting, ask for the series.
        series = self.post("/api/v1/series", **{"match[]": inner.group(1), **period})
        assert answer.status == series.status, (text, answer.status, series.status, answer.text, series.text)
        if answer.status == 403:
            return REFUSED
        assert answer.status == 200, (text, answer.text)
        values = sorted(value for value in answer.json["data"])
        assert values == sorted({labels[inner.group(2)] for labels in series.json["data"]}), text
        return values

    def ranked(self, text, expression):
        """The values of a label of the series of a query, in their order."""
        inner = re.fullmatch(r"query_result\((.+)\)", self.settings.promql(text, self.several)).group(1)
        answer = self.post("/api/v1/query", query=inner, time="%d" % self.settings.end)
        if answer.status == 403:
            return REFUSED
        assert answer.status == 200, (text, answer.text)
        series = [json.dumps(one["metric"]).replace(": ", "=").replace(", ", ",") for one in answer.json["data"]["result"]]
        # Grafana writes the series as Prometheus does: {gpuuuid="…"} value time.
        return [re.search(expression.strip("/"), one.replace('"gpuuuid"', "gpuuuid")).group(1) for one in series]

    def rows(self, request):
        """What the Infinity plugin makes of an answer: [{column: value}] or REFUSED."""
        pairs = [(pair["key"], self.settings.plain(pair["value"])) for pair in request["url_options"]["params"]]
        answer = get(self.api + request["url"] + "?" + urllib.parse.urlencode(pairs), {"X-Grafana-User": self.settings.login})
        if answer.status == 403:
            return REFUSED
        assert answer.status == 200, "%s: %d %s" % (request["url"], answer.status, answer.text[:500])
        root = self.settings.plain(request["root_selector"])
        found = jsonata.evaluate(root, answer.json)
        found = [] if found is None else found if isinstance(found, list) else [found]
        made = [{column["text"]: row.get(column["selector"]) for column in request["columns"]} for row in found]
        for column in request["columns"]:
            for row in made:
                value = row[column["text"]]
                assert value is None or isinstance(value, str if column["type"] == "string" else (int, float)), (root, column, value)
        wanted = request.get("filterExpression")
        if wanted:
            name, value = re.fullmatch(r'(\w+) == "(.*)"', self.settings.plain(wanted)).groups()
            made = [row for row in made if row[name] == value]
        return made

    def profile(self, target):
        body = {"profileTypeID": target["profileTypeId"], "labelSelector": self.settings.plain(target["labelSelector"]),
                "start": int(1000 * self.settings.start), "end": int(1000 * self.settings.end), "maxNodes": 16384}
        answer = get(self.profiles + "/querier.v1.QuerierService/SelectMergeStacktraces",
                     {**self.headers, "Content-Type": "application/json"}, data=json.dumps(body).encode())
        if answer.status == 403:
            return REFUSED
        assert answer.status == 200, answer.text
        return [answer.text]


def weekly(rows, field):
    """The transformations formatTime and groupBy."""
    made = {}
    for row in rows:
        week = time.strftime("%G-W%V", time.localtime(row[field] / 1000))
        one = made.setdefault(week, {field: week})
        for name, value in row.items():
            if name != field and value is not None:
                one[name + " (sum)"] = one.get(name + " (sum)", 0) + value
    return list(made.values())


def transformed(panel, rows):
    for step in panel.get("transformations") or ():
        settings = step["options"]
        if step["id"] == "filterFieldsByName":
            rows = [{name: row[name] for name in settings["include"]["names"]} for row in rows]
        elif step["id"] == "formatTime":
            assert settings["outputFormat"] == "GGGG-[W]WW"
            rows = weekly(rows, settings["timeField"])
        else:
            assert step["id"] == "groupBy", step
    return rows


def checked_rows(panel, target, rows, where):
    """Every column that is shown has a value somewhere, and sums and bars have numbers."""
    hidden = {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]
              if any(item["id"] == "custom.hidden" for item in override["properties"])}
    if panel["type"] == "table":
        for column in target["columns"]:
            assert column["text"] in hidden or any(row[column["text"]] not in (None, "") for row in rows), \
                "%s: no row has %s: %s" % (where, column["text"], rows)
            # Columns for links are there as well.
            assert any(row[column["text"]] is not None for row in rows), "%s: no row has %s" % (where, column["text"])
    elif panel["type"] == "stat":
        pattern = re.compile(panel["options"]["reduceOptions"]["fields"].strip("/"))
        names = [name for name in rows[0] if pattern.fullmatch(name)]
        calculation = panel["options"]["reduceOptions"]["calcs"][0]
        for name in names:
            values = [row[name] for row in rows if row[name] is not None]
            assert values and (calculation == "count" or sum(values) > 0), "%s: %s %s" % (where, name, rows)
        assert names, where
    else:
        assert panel["type"] == "barchart", where
        across = panel["options"]["xField"]
        assert all(row[across] for row in rows), where
        assert any(isinstance(value, float) and value > 0 for row in rows for name, value in row.items() if name != across), (where, rows)


def checked_table(panel, found, where):
    """Columns of a table of series exist after the transformations."""
    steps = {step["id"]: step["options"] for step in panel["transformations"]}
    known = set()
    for number, series in enumerate(found):
        known |= {label for labels, _ in series for label in labels}
        known.add("Value" if len(found) == 1 else "Value #" + chr(ord("A") + number))
    missing = set(steps["filterFieldsByName"]["include"]["names"]) - known
    assert not missing, "%s: no column %s" % (where, missing)


def values_of_variables(asker, dashboard, given):
    """Fills in the variables one after the other, as Grafana does, into asker.settings.values. Returns those that were asked for."""
    values, asked = asker.settings.values, {}
    given = {**values, **given}
    for variable in variables(dashboard):
        name = variable["name"]
        if name in given:
            values[name] = given[name]
        elif variable["type"] == "textbox":
            values[name] = variable["query"]
        if variable["type"] == "query":
            query = variable["query"]
            if query.get("queryType") == "infinity":
                rows = asker.rows({"filterExpression": "", **query["infinityQuery"],
                                   "root_selector": "$.data.{%s}" % ", ".join('"%s": %s' % (c["selector"], c["selector"])
                                                                             for c in query["infinityQuery"]["columns"])})
                column = query["infinityQuery"]["columns"][0]["text"]
                asked[name] = rows if rows == REFUSED else sorted({row[column] for row in rows})
            else:
                asked[name] = asker.ranked(query["query"], variable["regex"]) if query["query"].startswith("query_result") else \
                    asker.label_values(query["query"])
            if name not in given:
                found = [] if asked[name] == REFUSED else asked[name]
                values[name] = variable["allValue"] if variable.get("includeAll") else found[0] if found else ""
    return asked


def month(ago, now):
    """Start and end of a month: the time range of a panel with `now/M` and a shift."""
    here = time.localtime(now)
    start = time.mktime((here.tm_year, here.tm_mon - ago, 1, 0, 0, 0, 0, 0, -1))
    return start, now if ago == 0 else time.mktime((here.tm_year, here.tm_mon - ago + 1, 1, 0, 0, 0, 0, 0, -1)) - 1


def ask(asker, dashboard):
    """Every panel: {panel ID: [result of each target]}, shared ones with the rows of the panel that they use."""
    found = {}
    period = asker.settings.start, asker.settings.end
    for _, _, panel in panels(dashboard):
        if panel.get("timeFrom"):
            assert panel["timeFrom"] == "now/M", panel["timeFrom"]
            asker.settings.start, asker.settings.end = month(int(re.match(r"\d*", panel.get("timeShift") or "0").group(0) or 0), period[1])
        results = []
        for target in panel.get("targets") or ():
            kind = target["datasource"]["type"]
            if is_shared(target):
                results.append(("shared", target["panelId"]))
            elif kind == "prometheus":
                results.append(asker.promql(target))
            elif kind == "grafana-pyroscope-datasource":
                results.append(asker.profile(target))
            else:
                results.append(asker.rows(target))
        found[panel["id"]] = results
        asker.settings.start, asker.settings.end = period
    return {number: [found[result[1]][0] if isinstance(result, tuple) else result for result in results]
            for number, results in found.items()}


def require_data(asker, dashboard, where, may_be_empty=()):
    """Returns (panels, queries). `may_be_empty`: titles."""
    found, count, problems = ask(asker, dashboard), 0, []
    for row, _, panel in panels(dashboard):
        name = "%s › %s › %s" % (where, row, panel["title"])
        for target, result in zip(panel.get("targets") or (), found[panel["id"]]):
            count += panel["title"] not in may_be_empty
            if VERBOSE:
                print("%s %s: %s" % (name, target["refId"], result if isinstance(result, str) else str(result)[:150]))
            try:
                if panel["title"] in may_be_empty:
                    continue
                assert result != REFUSED, "%s %s: refused" % (name, target["refId"])
                assert result, "%s %s: no data for %s" % (name, target["refId"], target.get("expr") or target.get("url"))
                if target["datasource"]["type"] in ("yesoreyeram-infinity-datasource", "datasource"):
                    checked_rows(panel, target, transformed(panel, result), name)
            except AssertionError as error:
                problems.append(str(error))
        if panel["type"] == "table" and panel["targets"][0]["datasource"]["type"] == "prometheus" and not problems \
                and panel["title"] not in may_be_empty:
            checked_table(panel, found[panel["id"]], name)
    assert not problems, "\n".join(problems)
    return len(list(panels(dashboard))), count


class Test:
    """`metrics`: base URLs of the load balancer and of Prometheus."""

    def __init__(self, place, gate, profiles, prometheus, start, end, scrape):
        self.site, self.gate, self.profiles, self.prometheus = place, gate, profiles, prometheus
        self.start, self.end, self.scrape, self.loaded = start, end, scrape, load()

    def asker(self, uid, login, gate=None, cluster=CLUSTER):
        audience, dashboard = self.loaded[uid]
        settings = Settings(self.start, self.end, self.scrape, {"cluster": cluster} if audience == "users" else {}, login)
        as_user = audience == "users"
        return Asker(settings, with_several(dashboard), (gate or self.gate) if as_user else self.prometheus, self.profiles, self.site.api,
                     as_user), dashboard

    def users(self):
        """Every dashboard of users as alice."""
        table = []
        for uid, given in (("ceems-unit", {"uuid": OWN}), ("ceems-my-units", {}), ("ceems-project", {}),
                           ("slurm-single-job-metrics", {"jobid": OWN}), ("lsf-single-job-metrics", {"jobid": OWN}),
                           ("os-vm-metrics", {"uuid": OWN}), ("k8s-single-pod-metrics", {"uuid": OWN})):
            asker, dashboard = self.asker(uid, "alice")
            asked = values_of_variables(asker, dashboard, {**given, **self.country(uid)})
            for name, found in asked.items():
                assert found and found != REFUSED, "%s: the variable %s is %s" % (uid, name, found)
            if uid == "ceems-unit":
                assert asked["hostname"] == ["n1", "n2"] and asked["gpu"] == ["GPU-00000000"] and "owid" in asked["provider"], asked
            if uid != "slurm-single-job-metrics":
                asked.pop("cluster", None)
            table.append((uid, *require_data(asker, dashboard, uid, () if self.site.history else EARLIER_MONTHS)))
        return table

    @staticmethod
    def country(uid):
        return {"country": "FR", "provider": "owid"} if uid in ("ceems-unit", "ceems-cluster") else \
            {"provider": "owid"} if uid in ("ceems-my-units", "ceems-project") else {}

    def chosen_nodes(self):
        """One node, or two, instead of all: Grafana makes a regular expression of them."""
        for chosen in (["n1"], ["n1", "n2"]):
            asker, dashboard = self.asker("ceems-unit", "alice")
            values_of_variables(asker, dashboard, {"uuid": OWN, "hostname": chosen, "gpu": ["GPU-00000000"], **self.country("ceems-unit")})
            require_data(asker, dashboard, "ceems-unit on %s" % chosen)
            top = next(panel for _, _, panel in panels(dashboard) if panel["title"] == "Top nodes")
            assert sorted(labels["hostname"] for labels, _ in asker.promql(top["targets"][0])) == chosen

    def records(self):
        """A unit that only recording rules know: panels fall back, and nothing is added twice."""
        asker, dashboard = self.asker("ceems-unit", "alice")
        values_of_variables(asker, dashboard, {"uuid": OLD, **self.country("ceems-unit")})
        found = ask(asker, dashboard)
        by_title = {panel["title"]: found[panel["id"]] for _, _, panel in panels(dashboard)}
        power = {labels["domain"]: value for labels, value in by_title["Power by domain (W)"][0]}
        assert power == {"host": 130, "gpu": 260}, power
        assert [value for _, value in by_title["Power by node (W)"][1]] == [390], by_title["Power by node (W)"]
        assert by_title["GPU use (%)"][0][0][1] == 0.4 and by_title["GPU power by node (W)"][0][0][1] == 260
        assert by_title["Emission rate (g/s)"][0][0][1] == 0.002, by_title["Emission rate (g/s)"]
        asker.settings = Settings(self.site.started - 3600, self.end, self.scrape, asker.settings.values, "alice")
        energy = asker.promql(next(panel for _, _, panel in panels(dashboard)
                                   if panel["title"] == "Energy in the range (kWh)")["targets"][0])[0][1]
        # 390 W for ten minutes, up to five more (these samples end without a mark), and what has been scraped since.
        assert 390 * 600 / 3.6e6 <= energy <= 390 * (900 + 60 + self.end - self.site.started) / 3.6e6, energy
        own, _ = self.asker("ceems-unit", "alice")
        values_of_variables(own, dashboard, {"uuid": OWN, **self.country("ceems-unit")})
        domains = {labels["domain"] for labels, _ in ask(own, dashboard)[next(
            panel["id"] for _, _, panel in panels(dashboard) if panel["title"] == "Power by domain (W)")][0]}
        assert domains == {"package", "dram", "gpu", "other"}, domains

    def array_task(self):
        """An ID with brackets is a text and not a pattern: task 1 of the array 6 is alice's, job 61 is not."""
        for uuid, expected in ((TASK, True), ("61", False)):
            asker, dashboard = self.asker("ceems-unit", "alice", cluster=ARRAYS)
            values_of_variables(asker, dashboard, {"uuid": uuid, **self.country("ceems-unit")})
            found = ask(asker, dashboard)
            by_title = {panel["title"]: found[panel["id"]] for _, _, panel in panels(dashboard)}
            if expected:
                assert by_title["Memory (B)"][0][0][1] == 66 << 20 and by_title["Facts"][0][0]["uuid"] == TASK, by_title
                assert by_title["Flame graph"][0] not in (REFUSED, []), by_title["Flame graph"]
            else:
                assert by_title["Memory (B)"][0] == by_title["Flame graph"][0] == REFUSED and by_title["Facts"][0] == [], by_title
        rows = self.asker("ceems-my-units", "alice", cluster=ARRAYS)
        values_of_variables(rows[0], rows[1], self.country("ceems-my-units"))
        listed = next(panel for _, _, panel in panels(rows[1]) if panel["title"] == "My units")
        # Grafana replaces the fields of the row in the link of the ID.
        row = next(row for row in rows[0].rows(listed["targets"][0]) if row["uuid"] == TASK)
        link = next(item["value"][0]["url"] for override in listed["fieldConfig"]["overrides"] if override["matcher"]["options"] == "uuid"
                    for item in override["properties"] if item["id"] == "links")
        url = re.sub(r"\$\{__data\.fields\.(\w+)(:percentencode)?\}",
                     lambda found: urllib.parse.quote(row[found.group(1)], safe="") if found.group(2) else row[found.group(1)], link)
        path, _, query = url.partition("?")
        assert path == "/d/ceems-unit" and dict(urllib.parse.parse_qsl(query)) == {
            "var-tsdb": "ceems-tsdb-" + ARRAYS, "var-profiles": "ceems-profiles-" + ARRAYS, "var-cluster": ARRAYS, "var-uuid": TASK,
            "from": "%d" % (1000 * (int(self.site.started) - 60)), "to": "now"}, url

    def somebody_else(self):
        """alice with the unit and the project of bob: 403 or nothing, from every query and variable."""
        count = 0
        for uid, given in (("ceems-unit", {"uuid": FOREIGN}), ("ceems-unit", {"uuid": "12345"}), ("ceems-project", {"project": "pb"}),
                           ("ceems-my-units", {"project": "pb"})):
            asker, dashboard = self.asker(uid, "alice")
            asked = values_of_variables(asker, dashboard, {**given, **self.country(uid)})
            for name in ("hostname", "gpu"):
                assert asked.get(name, REFUSED) == REFUSED, (uid, name, asked)
            results = ask(asker, dashboard)
            for _, _, panel in panels(dashboard):
                for target, result in zip(panel.get("targets") or (), results[panel["id"]]):
                    count += 1
                    assert FOREIGN not in json.dumps(result) and "secret" not in json.dumps(result) and '"pb"' not in json.dumps(result), \
                        (uid, panel["title"], result)
                    if uid == "ceems-my-units":
                        continue
                    only_shared = target.get("expr", "").startswith("max by (provider) (ceems_emissions_gCo2_kWh")
                    empty = not result or all(isinstance(row, dict) and set(row.values()) == {None} for row in result)
                    assert result == REFUSED or only_shared or empty, (uid, panel["title"], result)
        return count

    def strangers(self):
        """Somebody who has no units sees empty dashboards and no error; without a name there is nothing at all."""
        for uid in ("ceems-my-units", "ceems-project"):
            asker, dashboard = self.asker(uid, "mallory")
            values_of_variables(asker, dashboard, self.country(uid))
            for results in ask(asker, dashboard).values():
                for result in results:
                    assert result != REFUSED and all(value is None for row in result for value in row.values()), (uid, result)
        asker, dashboard = self.asker("ceems-unit", "")
        answer = asker.post("/api/v1/query", query='ceems_compute_unit_cpus{uuid="%s"}' % OWN)
        assert answer.status == 401, answer.text
        # Whoever may send queries can add header fields to those of the Infinity plugin, but not a second name.
        connection = http.client.HTTPConnection(self.site.api[7:])
        connection.putrequest("GET", "/api/v1/units")
        for name in ("mallory", "alice"):
            connection.putheader("X-Grafana-User", name)
        connection.endheaders()
        assert connection.getresponse().status == 401
        connection.close()

    def other_values(self):
        """Values of the variable that would change the query if they were not filled in as Grafana does."""
        for value in ('%s"} or {uuid="%s' % (OWN, FOREIGN), "%s|%s" % (OWN, FOREIGN), ".*", "", OWN + "\\", FOREIGN + "'"):
            asker, dashboard = self.asker("ceems-unit", "alice")
            asker.settings.values["uuid"] = value
            answer = asker.post("/api/v1/query", query=asker.settings.promql('ceems_compute_unit_cpus{uuid="$uuid"}'))
            assert answer.status in (400, 403) and FOREIGN + '"' not in answer.text, (value, answer.status, answer.text)

    def operators(self):
        table = []
        for uid in ("ceems-cluster", "ceems-node", "ceems-audit", "ceems-quality", "ceems-health", "ceems-fleet"):
            asker, dashboard = self.asker(uid, "operator")
            asked = values_of_variables(asker, dashboard, {"hostname": "n1", **self.country(uid)})
            for name, found in asked.items():
                assert found, "%s: the variable %s is empty" % (uid, name)
            table.append((uid, *require_data(asker, dashboard, uid)))
        return table

    def clusters(self):
        """A Prometheus with several clusters: only the chosen ones are shown."""
        for chosen, expected in ((["hpc1"], True), (["hpc1", "hpc2"], True), (["hpc2"], False)):
            asker, dashboard = self.asker("ceems-cluster", "operator")
            values_of_variables(asker, dashboard, {"cluster": chosen, **self.country("ceems-cluster")})
            panel = next(panel for _, _, panel in panels(dashboard) if panel["title"] == "Power of all nodes by share (W)")
            assert bool(asker.promql(panel["targets"][0])) == expected, chosen

    def books(self):
        """The figures themselves: the audit balances, and watts are those that the meters of the nodes show."""
        asker, dashboard = self.asker("ceems-audit", "operator")
        values_of_variables(asker, dashboard, {"hostname": "n1"})
        found = ask(asker, dashboard)
        by_title = {panel["title"]: found[panel["id"]] for _, _, panel in panels(dashboard)}
        for labels, value in by_title["Imbalance by domain (%)"][0]:
            assert value < 1e-6, (labels, value)
        books = [{labels["domain"]: value for labels, value in one} for one in by_title["Account by domain"]]
        assert set(books[0]) == {"node", "package", "dram", "gpu", "other"}, books
        for domain, node in books[0].items():
            assert abs(sum(part.get(domain, 0) for part in books[1:]) - node) <= 1e-6 * node + 1e-12, (domain, books)
        users = self.asker("ceems-unit", "alice")
        values_of_variables(users[0], users[1], {"uuid": OWN, **self.country("ceems-unit")})
        cores = next(panel for _, _, panel in panels(users[1]) if panel["title"] == "CPU cores (cores)")
        busy = users[0].promql(cores["targets"][0])[0][1]
        assert 0.4 < busy < 2.5, busy  # half a core on each of two nodes, made by a thread that may be late

    def stricter(self, gate):
        """Where the operators do not share the metric of meters, only the panel about them is refused; nothing needs `instance`."""
        asker, dashboard = self.asker("ceems-unit", "alice", gate)
        values_of_variables(asker, dashboard, {"uuid": OWN, **self.country("ceems-unit")})
        found = ask(asker, dashboard)
        refused = [panel["title"] for _, _, panel in panels(dashboard) if REFUSED in found[panel["id"]]]
        assert refused == ["How the energy was found"], refused
        require_data(asker, dashboard, "ceems-unit without instance", refused)

    def reference(self):
        """The dashboards of CEEMS 0.10.2 and later: returns how many of their questions were answered, and how many wait for records."""
        asked, without = 0, set()
        settings = Settings(self.start, self.end, self.scrape, {"uuid": OWN, "host": ".*", "gpu": "GPU-00000000", "job": ".*",
                                                                "provider": "owid", "country_code": "FR"}, "alice")
        users = Asker(settings, {"host", "gpu", "job"}, self.gate, self.profiles, self.site.api, True)
        operators = Asker(settings, {"host", "gpu", "job"}, self.prometheus, self.profiles, self.site.api, False)
        for asker, questions in ((users, reference_queries.unit()), (operators, reference_queries.cluster())):
            for panel, query, needs in questions:
                result = asker.promql({"expr": query})
                assert result != REFUSED, (panel, query)
                if needs == reference_queries.RECORDS and not self.site.compat:
                    without.add(query)
                    continue
                assert result, "%s: no data for %s" % (panel, query)
                asked += 1
        foreign = Asker(Settings(self.start, self.end, self.scrape, {**settings.values, "uuid": FOREIGN}, "alice"), {"host", "gpu", "job"},
                        self.gate, self.profiles, self.site.api, True)
        for panel, query, _needs in reference_queries.unit():
            assert foreign.promql({"expr": query}) == REFUSED, (panel, query)
        for path, columns in reference_queries.summaries(self.site.started - 7200, self.end):
            login = "operator" if "/admin" in path else "alice"
            answer = get("%s/api/v1/%s" % (self.site.api, path), {"X-Grafana-User": login})
            rows = [row for row in answer.json["data"] if OWN == row.get("uuid", OWN) and "alice" in (row.get("username"), row.get("name"))]
            assert answer.status == 200 and rows, (path, answer.text[:300])
            for column in columns:
                value = rows[0]
                for key in column.split("."):
                    value = value[int(key) if key.isdigit() else key]
                assert value not in ("", None), (path, column)
            asked += 1
        return asked, len(without)


def live(place, stack):
    start, end = place.started, time.time()
    test = Test(place, "http://127.0.0.1:%d" % place.port, "http://127.0.0.1:%d" % place.profiles, place.prometheus, start, end, SCRAPE)
    table = steady(test, test.users)
    steady(test, test.chosen_nodes)
    steady(test, test.records)
    steady(test, test.array_task)
    others = test.somebody_else()
    test.strangers()
    test.other_values()
    bare, profiles = free_port(), free_port()
    site.start_lb(stack, place.directory, "bare", place.data, place.prometheus, place.pyroscope.url, bare, profiles, usual=False)
    steady(test, lambda: test.stricter("http://127.0.0.1:%d" % bare))
    time.sleep(5 * SCRAPE)  # the programs have answered: let Prometheus see it
    test.end = time.time()
    table += steady(test, test.operators)
    steady(test, test.clusters)
    steady(test, test.books)
    return table, others, steady(test, test.reference)


def steady(test, check):
    """On a loaded machine a scrape a second may be late, and a rate over four seconds has no value then: what is not there yet may come."""
    begin = time.monotonic()
    while True:
        try:
            made = check()
            if VERBOSE:
                print("%s: %.1f s" % (check.__name__, time.monotonic() - begin))
            return made
        except AssertionError as error:
            if VERBOSE:
                print("%s, not yet: %s" % (check.__name__, error))
            if time.monotonic() > begin + 120:
                raise
        time.sleep(2 * SCRAPE)
        test.end = time.time()


def slow(place, stack):
    """The series of the site as a scrape every 30 s would have left them in two hours, with gaps of five minutes."""
    step, hours, now = 30, 2, time.time()
    everything = {"query": '{__name__=~"ceems_.*|(uuid|job|instance|provider):.*|up|scrape_.*|process_resident.*|prometheus_rule_.*"}'}

    def values(moment):
        answer = get(place.prometheus + "/api/v1/query?" + urllib.parse.urlencode({**everything, "time": "%.3f" % moment}))
        return {json.dumps(one["metric"], sort_keys=True): float(one["value"][1]) for one in answer.json["data"]["result"]}
    newest, before = values(now), values(now - 10)
    end = int(now) - int(now) % step
    times = [moment for moment in range(end - hours * 3600, end + 1, step) if (moment // 60) % 25 >= 5 or moment > end - 300]
    assert len(times) < hours * 120 * 0.9, "there are no gaps"
    lines = []
    for key, value in newest.items():
        labels = json.loads(key)
        name = labels.pop("__name__")
        if labels.get("country_code", "FR") != "FR" or value != value:
            continue
        growth = max(0.0, value - before.get(key, value)) / 10 if re.search(r"_(total|bucket|count|sum)$", name) else 0
        # A counter must not begin below zero: it has grown for as long as its value lasts.
        growth = min(growth, value / (hours * 3600)) if value > 0 else 0
        text = "%s{%s}" % (name, ",".join("%s=%s" % (label, json.dumps(one)) for label, one in labels.items()))
        lines += ["%s %r %d" % (text, value - growth * (end - moment), moment) for moment in times]
    path = write(place.directory + "/slow.txt", "\n".join(lines + ["# EOF", ""]))
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", path, place.directory + "/slow"], check=True,
                   stdout=subprocess.DEVNULL)
    config = write(place.directory + "/slow.yml", "global: {}\n")
    own, port, profiles = free_port(), free_port(), free_port()
    url = "http://127.0.0.1:%d" % own
    stack.enter_context(Program(["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + place.directory + "/slow",
                                 "--storage.tsdb.retention.time=1y", "--web.listen-address=127.0.0.1:%d" % own, "--log.level=warn"],
                                place.directory + "/slow.log")).wait_ready(url + "/-/ready")
    site.start_lb(stack, place.directory, "slow-lb", place.data, url, place.pyroscope.url, port, profiles)
    test = Test(place, "http://127.0.0.1:%d" % port, "http://127.0.0.1:%d" % profiles, url, end - hours * 3600, end, step)
    print("%d series, %d samples each, a scrape every %d s, with gaps" % (len(lines) // len(times), len(times), step))
    table = test.users()
    test.chosen_nodes()
    others = test.somebody_else()
    return table + test.operators(), others, test.reference()


def report(table, others, reference=None):
    for uid, number, queries in table:
        print("%-26s %2d panels, %2d queries answered" % (uid, number, queries))
    print("%d panels, %d queries; %d queries about somebody else gave nothing" % (
        sum(row[1] for row in table), sum(row[2] for row in table), others))
    if reference:
        print("%d questions of the reference's dashboards answered, %d need packaging/prometheus/ceems-compat.rules.yml" % reference)


def main():
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(scratch("ceems-panels-"))
        long = "--slow-scrapes" in sys.argv
        place = Site(stack, directory, history=long)
        print("the site is up after %.1f s" % (time.time() - place.started), flush=True)
        report(*live(place, stack))
        if long:
            report(*slow(place, stack))
    return 0


if __name__ == "__main__":
    begin = time.monotonic()
    status = main()
    print("%.1f s" % (time.monotonic() - begin))
    sys.exit(status)
