"""What a description of a dashboard consists of. Texts are in English; build.py translates them and adds what every panel needs."""

import dataclasses


class Formula(str):
    """A query with a fallback. `shown` is the first choice, which the description of the panel shows."""

    shown: str

    def __new__(cls, text, shown):
        self = super().__new__(cls, text)
        self.shown = shown
        return self


@dataclasses.dataclass(frozen=True)
class Prom:
    """PromQL for the data source of the variable `tsdb`. `legend` is translated unless it is only {{label}}."""

    expr: str
    legend: str = ""
    instant: bool = False
    table: bool = False


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of an answer of the API: a JSONata path or expression on a row. An empty title hides the column; it is there for links,
    bars and sums."""

    name: str
    value: str
    title: str = ""
    unit: str = ""
    kind: str = "string"  # or number, timestamp_epoch (milliseconds)


@dataclasses.dataclass(frozen=True)
class Api:
    """A request to the API server by the Infinity plugin. `params` is a list of pairs; `filter` is an expression on the columns. With
    `whole`, columns are expressions on the whole answer and give one row."""

    path: str
    params: tuple
    columns: tuple
    filter: str = ""
    whole: bool = False


@dataclasses.dataclass(frozen=True)
class Shared:
    """The rows of another panel of this dashboard, without a request. `fields` are the columns to keep; with `by_week` the numbers are
    added up by the week of that time."""

    panel: str
    fields: tuple
    by_week: str = ""


@dataclasses.dataclass(frozen=True)
class Profile:
    """A selector of profiles for the data source of the variable `profiles`."""

    selector: str
    profile_type: str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


@dataclasses.dataclass(frozen=True)
class Level:
    """From this value on the text applies: a stat shows it beside the value, so the colour is never the only sign."""

    start: float
    text: str
    colour: str


@dataclasses.dataclass(frozen=True)
class Panel:
    """kind: stat, bars (one bar per series), lines, stack, table, columns (a bar chart of rows), text, flame. `about` says what the
    panel shows, `origin` (a key of ORIGINS) where the data is from."""

    kind: str
    title: str
    about: str
    unit: str = ""
    queries: tuple = ()
    origin: str = ""
    width: int = 12
    height: int = 8
    key: str = ""  # for Shared
    levels: tuple = ()
    decimals: int | None = None
    sort: str = ""  # column by which a table is sorted, the largest first
    links: tuple = ()  # pairs of column and URL
    calculation: str = ""  # of a stat or bars over rows: sum, count, max
    months_ago: int | None = None  # the time range is that month
    content: str = ""  # of a text
    labels: tuple = ()  # tables of Prom: pairs of label and title
    values: tuple = ()  # tables of Prom: for each query (title, unit)
    texts: tuple = ()  # pairs of value and text to show for it
    repeat: str = ""  # a panel for each value of this variable


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    panels: tuple
    open: bool = False


@dataclasses.dataclass(frozen=True)
class Variable:
    """kind: tsdb, api, profiles (data sources), labels (label_values), ranked (a label of the series of a query, in their order), names (of an
    answer of the API), text."""

    kind: str
    name: str
    label: str
    about: str = ""
    query: str = ""  # PromQL of label_values without the function's name, or of a ranking; path of the API
    field: str = ""
    several: bool = False
    default: str = ""
    params: tuple = ()


@dataclasses.dataclass(frozen=True)
class Dashboard:
    uid: str
    title: str
    about: str
    audience: str  # users or operators
    variables: tuple
    rows: tuple
    since: str = "now-6h"
    tags: tuple = ("ceems",)
    link: tuple = ()  # title and URL of a link instead of the menu of dashboards
    page: tuple = ()  # title and URL of a link beside the menu


ORIGINS = {
    "counters": "energy counters of the exporter (without PUE); where there are none, recording rules (with the PUE of the rules)",
    "energy": "energy counters of the exporter, without PUE",
    "exporter": "metrics of the exporter",
    "either": "metrics of the exporter; where there are none, recording rules",
    "rules": "recording rules",
    "api": "database of the API server, read with your own rights",
    "api admin": "database of the API server",
    "health": "metrics of the programs of CEEMS and of Prometheus about themselves",
    "profiles": "profiles in Pyroscope",
    "factors": "energy counters of the exporter and emission factors",
}
