"""Turns the descriptions into Grafana's JSON with the types of grafana-foundation-sdk."""

import json
import re

from grafana_foundation_sdk.builders import bargauge, barchart, common as options, dashboard as sdk, prometheus, stat, table, text, \
    timeseries
from grafana_foundation_sdk.cog import builder as cog
from grafana_foundation_sdk.cog import runtime
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard, grafanapyroscope
from grafana_foundation_sdk.models import text as text_model

from descriptions.model import ORIGINS, Api, Prom, Profile, Shared

EDITION = 1  # of these dashboards; part of a tag, so that a site sees which ones it has
UNITS = {  # unit: (Grafana's name, what the title says)
    "watt": ("watt", "W"), "kwatth": ("kwatth", "kWh"), "percentunit": ("percentunit", "%"), "percent": ("percent", "%"),
    "bytes": ("bytes", "B"), "Bps": ("binBps", "B/s"), "hertz": ("hertz", "Hz"), "s": ("s", "s"), "d": ("d", "d"), "h": ("short", "h"),
    "count": ("short", ""), "cores": ("short", "cores"), "ipc": ("short", "1"), "events": ("short", "1/s"), "pps": ("pps", "1/s"),
    "reqps": ("reqps", "1/s"), "massg": ("massg", "g"), "gps": ("suffix: g/s", "g/s"), "gpkwh": ("suffix: g/kWh", "g/kWh"),
    "celsius": ("celsius", "°C"), "yesno": ("short", ""), "": ("none", "")}
TYPES = {"tsdb": "prometheus", "api": "yesoreyeram-infinity-datasource", "profiles": "grafana-pyroscope-datasource"}
SOURCE_LABEL = "/^CEEMS/"  # only data sources whose name begins so are offered
# Okabe and Ito's colours, which people with any kind of colour vision can tell apart, and a dash for each.
COLOURS = {"package": "#0072B2", "dram": "#E69F00", "gpu": "#009E73", "other": "#CC79A7", "host": "#0072B2", "units": "#0072B2",
           "ended units": "#56B4E9", "system": "#E69F00", "unallocated": "#CC79A7", "in use": "#0072B2", "reserved": "#E69F00",
           "limit": "#D55E00", "lowest node": "#56B4E9", "mean of the nodes": "#0072B2", "highest node": "#D55E00"}
DASHED = {"reserved", "limit", "lowest node", "highest node", "total", "known parts"}
ON_WORD = re.compile(r"<<([^>]*)>>")


class Ready(cog.Builder):
    """A builder of something that is built already."""

    def __init__(self, made):
        self.made = made

    def build(self):
        return self.made


def source(name):
    return dashboard.DataSourceRef(type_val=TYPES[name], uid="${%s}" % name)


def setting(name, value):
    return dashboard.DynamicConfigValue(id_val=name, value=value)


class Build:
    """One dashboard in one language. `tr` translates a text."""

    def __init__(self, description, tr):
        self.description, self.tr = description, tr
        panels = [panel for row in description.rows for panel in row.panels]
        self.ids = {panel.key: number for number, panel in enumerate(panels, 1) if panel.key}
        self.by_key = {panel.key: panel for panel in panels if panel.key}
        self.next_id = 0

    def title(self, panel):
        title, symbol = self.tr(panel.title), UNITS[panel.unit][1]
        if symbol and symbol != "1":
            title += " (%s)" % self.symbol(symbol)
        if "$pue *" in "".join(query.expr for query in panel.queries if isinstance(query, Prom)):
            title += ", PUE ${pue}"
        return title

    def symbol(self, symbol):
        return self.tr(symbol) if symbol == "cores" else symbol

    def about(self, panel):
        parts = [self.tr(panel.about)]
        for query in panel.queries[:1]:
            if isinstance(query, Prom):
                parts.append("%s: `%s`" % (self.tr("Formula"), self.words(getattr(query.expr, "shown", query.expr))))
            elif isinstance(query, Api):
                parts.append("%s: `/api/v1/%s`" % (self.tr("Request"), query.path))
        if any(isinstance(query, Prom) and hasattr(query.expr, "shown") for query in panel.queries):
            parts.append(self.tr("Where the first choice has no data, a recording rule is asked."))
        levels = [level for level in panel.levels if level.text]
        if levels:
            parts.append("%s: %s." % (self.tr("Levels"), ", ".join(
                "%s %s" % (self.tr(level.text), self.number(level.start, panel.unit)) for level in levels)))
        if panel.origin:
            parts.append("%s: %s." % (self.tr("Origin"), self.tr(ORIGINS[panel.origin])))
        return "\n\n".join(parts)

    def number(self, value, unit):
        if value == 1e-9:
            return "> 0"
        return "≥ %g%s" % ((100 * value, " %") if unit == "percentunit" else (value, " " + UNITS[unit][1] if UNITS[unit][1] else ""))

    def words(self, expr):
        return ON_WORD.sub(lambda found: self.tr(found.group(1)), expr)

    def legend(self, text):
        """Translates the words of a legend between its {{labels}}."""
        parts = re.split(r"(\{\{\w+\}\})", text)
        return "".join(part if part.startswith("{{") or not part.strip() else
                       part.replace(part.strip(), self.tr(part.strip())) for part in parts)

    # Queries

    def target(self, panel, query, ref):
        if isinstance(query, Prom):
            made = prometheus.Dataquery().expr(self.words(query.expr)).ref_id(ref).datasource(source("tsdb"))
            made = made.instant() if query.instant else made.range()
            if query.table:
                return made.format("table")
            made = made.format("time_series")
            return made.legend_format(self.legend(query.legend)) if query.legend else made
        if isinstance(query, Api):
            return Ready(runtime.UnknownDataquery({"refId": ref, "datasource": {"type": TYPES["api"], "uid": "${api}"},
                                                   **self.request(query)}))
        if isinstance(query, Profile):
            return Ready(grafanapyroscope.Dataquery(label_selector=query.selector, profile_type_id=query.profile_type, ref_id=ref,
                                                    query_type="profile", datasource=source("profiles")))
        assert isinstance(query, Shared), query
        return Ready(runtime.UnknownDataquery({"refId": ref, "datasource": {"type": "datasource", "uid": "-- Dashboard --"},
                                               "panelId": self.ids[query.panel]}))

    def request(self, query):
        row = "{%s}" % ", ".join('"%s": %s' % (column.name, column.value) for column in query.columns)
        return {"type": "json", "source": "url", "format": "table", "parser": "backend", "url": "/api/v1/" + query.path,
                "url_options": {"method": "GET", "data": "",
                                "params": [{"key": key, "value": value} for key, value in query.params]},
                "root_selector": "$." + row if query.whole else "$.data." + row,
                "columns": [{"selector": column.name, "text": column.name, "type": column.kind} for column in query.columns],
                "filters": [], "computed_columns": [], "filterExpression": query.filter}

    # Fields

    def levels(self, panel, made):
        steps = [dashboard.Threshold(value=None, color="text")]
        steps += [dashboard.Threshold(value=level.start, color=level.colour) for level in panel.levels]
        made.thresholds(sdk.ThresholdsConfig().mode("absolute").steps(steps))
        mappings = []
        if panel.unit == "yesno":
            mappings.append(self.mapping({"1": "yes", "0": "no"}))
        if panel.levels and panel.levels[0].text == "none":
            mappings.append(self.mapping({"0": "none"}))
        if panel.texts:
            mappings.append(self.mapping(dict(panel.texts)))
        if mappings:
            made.mappings(mappings)

    def mapping(self, texts):
        return dashboard.ValueMap(options={value: dashboard.ValueMappingResult(text=self.tr(text), index=number)
                                           for number, (value, text) in enumerate(texts.items())})

    def has_level_text(self, panel):
        return panel.kind == "stat" and len(panel.levels) > 1 and panel.levels[0].text != "none"

    def level_text(self, panel, made):
        """The second value of a stat: the level in words."""
        ranges = []
        for number, level in enumerate(panel.levels):
            end = panel.levels[number + 1].start if number + 1 < len(panel.levels) else None
            ranges.append({"type": "range", "options": {
                "from": level.start, "to": None if end is None else end - 1e-9,
                "result": {"text": self.tr(level.text), "color": level.colour, "index": number}}})
        made.override_by_query("B", [setting("mappings", ranges)])

    def colours(self, panel, made):
        names = [query.legend for query in panel.queries if isinstance(query, Prom)]
        if "{{domain}}" in names:
            names += ["package", "dram", "gpu", "other", "host"]
        if "{{share}}" in names:
            names += ["units", "ended units", "system", "unallocated"]
        for name in dict.fromkeys(names):
            properties = []
            if name in COLOURS:
                properties.append(setting("color", {"mode": "fixed", "fixedColor": COLOURS[name]}))
            if name in DASHED and panel.kind == "lines":
                properties.append(setting("custom.lineStyle", {"fill": "dash", "dash": [10, 6]}))
            if properties:
                made.override_by_name(self.tr(name) if name not in ("package", "dram", "gpu", "other", "host") else name, properties)

    # Kinds of panels

    def panel(self, panel):
        kinds = {"stat": self.stat, "bars": self.bars, "lines": self.lines, "stack": self.lines, "table": self.table,
                 "columns": self.columns, "text": self.text, "flame": self.flame}
        made = kinds[panel.kind](panel)
        self.next_id += 1
        made.id(self.next_id).title(self.title(panel)).description(self.about(panel)).height(panel.height).span(panel.width)
        if panel.repeat:
            made.repeat(panel.repeat).repeat_direction("h").max_per_row(4)
        if panel.kind == "text":
            return made
        queries = list(panel.queries)
        if self.has_level_text(panel):
            queries.append(Prom(queries[0].expr, "level", instant=True))
            self.level_text(panel, made)
        made.targets([self.target(panel, query, chr(ord("A") + number)) for number, query in enumerate(queries)])
        first = panel.queries[0]
        made.datasource(source("tsdb") if isinstance(first, Prom) else source("api") if isinstance(first, Api) else
                        source("profiles") if isinstance(first, Profile) else
                        dashboard.DataSourceRef(type_val="datasource", uid="-- Dashboard --"))
        if panel.kind == "flame":
            return made
        self.levels(panel, made)
        if panel.kind != "table":
            made.unit(UNITS[panel.unit][0])
        made.no_value(self.tr("no data"))
        if panel.decimals is not None:
            made.decimals(panel.decimals)
        if panel.months_ago is not None:
            made.time_from("now/M")
            if panel.months_ago:
                made.time_shift("%dM/M" % panel.months_ago)
        shared = first if isinstance(first, Shared) else None
        if shared and shared.by_week:
            numbers = [name for name in shared.fields if name != shared.by_week]
            self.transform(made, "filterFieldsByName", {"include": {"names": list(shared.fields)}})
            self.transform(made, "formatTime", {"timeField": shared.by_week, "outputFormat": "GGGG-[W]WW", "useTimezone": True})
            self.transform(made, "groupBy", {"fields": {
                shared.by_week: {"operation": "groupby", "aggregations": []},
                **{name: {"operation": "aggregate", "aggregations": ["sum"]} for name in numbers}}})
        elif shared and panel.kind == "columns":
            self.transform(made, "filterFieldsByName", {"include": {"names": list(shared.fields)}})
        return made

    def transform(self, made, name, settings):
        made.with_transformation(dashboard.DataTransformerConfig(id_val=name, options=settings))

    def reduced(self, panel):
        made = options.ReduceDataOptions().calcs([panel.calculation or "lastNotNull"]).values(False)
        first = panel.queries[0]
        if isinstance(first, Shared):
            return made.fields("/^(%s)$/" % "|".join(first.fields))
        return made.fields("/.*/" if isinstance(first, Api) else "")

    def shown_columns(self, panel):
        """The columns of the answer that a panel gets, directly or from another panel."""
        first = panel.queries[0]
        if isinstance(first, Shared):
            return [column for column in self.by_key[first.panel].queries[0].columns if column.name in first.fields]
        return list(first.columns) if isinstance(first, Api) else []

    def titles(self, panel, made, suffix=""):
        for column in self.shown_columns(panel):
            if column.title:
                made.override_by_name(column.name + (suffix if column.kind == "number" else ""),
                                      [setting("displayName", self.tr(column.title))])

    def stat(self, panel):
        several = len(self.shown_columns(panel)) > 1 or any(
            isinstance(query, Prom) and "{{" in query.legend for query in panel.queries) or self.has_level_text(panel)
        made = stat.Panel().graph_mode("none").color_mode("value" if panel.levels else "none").text_mode(
            "value_and_name" if several else "value").reduce_options(self.reduced(panel))
        if several:
            self.titles(panel, made)
        return made

    def bars(self, panel):
        made = bargauge.Panel().orientation("horizontal").display_mode("basic").value_mode("text").show_unfilled(True).reduce_options(
            self.reduced(panel))
        self.colours(panel, made)
        return made.min(0)

    def lines(self, panel):
        made = timeseries.Panel().line_width(2).show_points("auto").span_nulls(False).legend(
            options.VizLegendOptions().display_mode("table").placement("bottom").show_legend(True).calcs(["min", "mean", "max"])).tooltip(
                options.VizTooltipOptions().mode("multi").sort("desc"))
        if panel.kind == "stack":
            made.stacking(options.StackingConfig().mode("normal").group("A")).fill_opacity(40)
        made.axis_soft_min(0)
        self.colours(panel, made)
        return made

    def columns(self, panel):
        shared = panel.queries[0] if isinstance(panel.queries[0], Shared) else None
        across = shared.fields[0] if shared else panel.queries[0].columns[0].name
        made = barchart.Panel().orientation("auto").show_value("auto").stacking("normal").x_field(across).legend(
            options.VizLegendOptions().display_mode("list").placement("bottom").show_legend(True)).tooltip(
                options.VizTooltipOptions().mode("multi"))
        self.titles(panel, made, " (sum)" if shared and shared.by_week else "")
        return made

    def table(self, panel):
        made = table.Panel().show_header(True).cell_height("sm").footer(
            options.TableFooterOptions().show(False).reducer([]).count_rows(False).enable_pagination(True))
        first = panel.queries[0]
        if isinstance(first, Api):
            for column in first.columns:
                made.override_by_name(column.name, self.cell(panel, column))
            if panel.sort:
                made.sort_by([options.TableSortByFieldState().display_name(self.header(panel.sort, first.columns)).desc(True)])
            return made
        names = ["Value"] if len(panel.queries) == 1 else ["Value #" + chr(ord("A") + n) for n in range(len(panel.queries))]
        renames = {label: self.tr(title) for label, title in panel.labels}
        shown = [label for label, _title in panel.labels]
        for name, (title, unit) in zip(names, panel.values):
            if title:
                shown.append(name)
                renames[name] = self.tr(title) + (" (%s)" % self.symbol(UNITS[unit][1]) if UNITS[unit][1] else "")
                properties = [setting("unit", UNITS[unit][0])]
                if unit == "yesno":
                    properties.append(setting("mappings", [self.mapping({"1": "yes", "0": "no"})]))
                made.override_by_name(renames[name], properties)
        for label, url in panel.links:
            made.override_by_name(renames[label], [setting("links", [{"title": self.tr("Show"), "url": url, "targetBlank": False}])])
        if len(panel.queries) > 1:
            self.transform(made, "merge", {})
        self.transform(made, "filterFieldsByName", {"include": {"names": shown}})
        self.transform(made, "organize", {"excludeByName": {}, "indexByName": {name: n for n, name in enumerate(shown)},
                                          "renameByName": renames})
        return made

    def header(self, name, columns):
        column = next(column for column in columns if column.name == name)
        symbol = UNITS[column.unit][1]
        return self.tr(column.title) + (" (%s)" % self.symbol(symbol) if symbol else "")

    def cell(self, panel, column):
        if not column.title:
            return [setting("custom.hidden", True)]
        made = [setting("displayName", self.header(column.name, panel.queries[0].columns))]
        if column.unit:
            made.append(setting("unit", UNITS[column.unit][0]))
        if column.kind == "timestamp_epoch":
            made.append(setting("unit", "dateTimeAsLocal"))
        links = [{"title": self.tr("Show"), "url": url, "targetBlank": False} for name, url in panel.links if name == column.name]
        return made + ([setting("links", links)] if links else [])

    def text(self, panel):
        return text.Panel().mode(text_model.TextMode.MARKDOWN).content(self.tr(panel.content))

    def flame(self, panel):
        return sdk.Panel().type("flamegraph")

    # The rest

    def variable(self, variable):
        label, name = self.tr(variable.label), variable.name
        if variable.kind in TYPES:
            return sdk.DatasourceVariable(name).label(label).type(TYPES[variable.kind]).regex(SOURCE_LABEL)
        if variable.kind == "text":
            made = sdk.TextBoxVariable(name).label(label).default_value(variable.default).current(
                dashboard.VariableOption(text=variable.default, value=variable.default))
            return made.description(self.tr(variable.about)) if variable.about else made
        if variable.kind == "labels":
            made = sdk.QueryVariable(name).label(label).datasource(source("tsdb")).refresh(
                dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(dashboard.VariableSort.ALPHABETICAL_ASC).query(
                    {"query": "label_values(%s)" % variable.query, "refId": name, "qryType": 1})
            if variable.several:
                made.multi(True).include_all(True).all_value(".*").current(dashboard.VariableOption(text=["All"], value=["$__all"]))
            return made
        if variable.kind == "ranked":
            return sdk.QueryVariable(name).label(label).datasource(source("tsdb")).refresh(
                dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(dashboard.VariableSort.DISABLED).query(
                    {"query": "query_result(%s)" % variable.query, "refId": name, "qryType": 3}).regex(
                        '/%s="([^"]+)"/' % variable.field).multi(True).include_all(True).all_value(".*").current(
                            dashboard.VariableOption(text=["All"], value=["$__all"]))
        assert variable.kind == "names", variable
        request = {"type": "json", "source": "url", "format": "table", "parser": "backend", "url": "/api/v1/" + variable.query,
                   "url_options": {"method": "GET", "data": "",
                                   "params": [{"key": key, "value": value} for key, value in variable.params]},
                   "root_selector": "data", "columns": [{"selector": variable.field, "text": variable.field, "type": "string"}],
                   "filters": [], "refId": "variable"}
        return sdk.QueryVariable(name).label(label).datasource(source("api")).refresh(
            dashboard.VariableRefresh.ON_DASHBOARD_LOAD).sort(dashboard.VariableSort.ALPHABETICAL_ASC).query(
                {"queryType": "infinity", "query": "", "refId": name, "infinityQuery": request})

    def dashboard(self):
        this = self.description
        made = sdk.Dashboard(self.tr(this.title)).uid(this.uid).description(self.tr(this.about)).tags(
            [*this.tags, "ceems-edition-%d" % EDITION]).timezone("browser").time(this.since, "now").editable().tooltip(
                dashboard.DashboardCursorSync.CROSSHAIR)
        if this.link:
            made.link(sdk.DashboardLink(self.tr(this.link[0])).type("link").url(this.link[1]).icon("external link"))
        else:
            made.link(sdk.DashboardLink(self.tr("Other dashboards")).type("dashboards").tags(["ceems"]).as_dropdown(True).keep_time(True))
        if this.page:
            made.link(sdk.DashboardLink(self.tr(this.page[0])).type("link").url(this.page[1]).icon("external link"))
        for variable in this.variables:
            made.with_variable(self.variable(variable))
        for row in this.rows:
            if row.open:
                if row.title:
                    made.with_row(sdk.Row(self.tr(row.title)))
                for panel in row.panels:
                    made.with_panel(self.panel(panel))
            else:
                folded = sdk.Row(self.tr(row.title)).collapsed(True)
                for panel in row.panels:
                    folded.with_panel(self.panel(panel))
                made.with_row(folded)
        return made.build()


def build(description, tr):
    made = json.loads(json.dumps(Build(description, tr).dashboard(), cls=JSONEncoder))
    # Rows have no ID of their own in the library; Grafana wants one that no panel has.
    for number, panel in enumerate(panel for panel in made["panels"] if panel["type"] == "row"):
        panel["id"] = 1000 + number
    return made


def differences(made):
    """What the library's types do not know or would change, as a list of paths. Empty for a valid dashboard."""
    found = []

    def compare(before, after, path):
        if isinstance(before, dict) and isinstance(after, dict):
            for key in before:
                if key not in after:
                    found.append("%s/%s is unknown" % (path, key))
                else:
                    compare(before[key], after[key], "%s/%s" % (path, key))
        elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            for number, (left, right) in enumerate(zip(before, after)):
                compare(left, right, "%s/%d" % (path, number))
        elif before != after:
            found.append("%s is %r, not %r" % (path, after, before))
    compare(made, json.loads(json.dumps(dashboard.Dashboard.from_json(made), cls=JSONEncoder)), "")
    return found
