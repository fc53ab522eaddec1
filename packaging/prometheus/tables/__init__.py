"""What packaging/prometheus/generate makes rule files of: one table for each file.

A table is a function that takes Settings and returns groups."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Settings:
    """What differs between sites."""
    interval: int = 30  # seconds between scrapes of the exporters
    pue: float = 1
    countries: tuple = ()
    exporter_jobs: tuple = ("ceems",)
    runbooks: str = "docs/runbooks/"

    @property
    def window(self):
        """The range of rates: four scrapes, so that one lost scrape leaves no hole, and at least a minute."""
        return duration(max(60, 4 * self.interval))

    @property
    def exporters(self):
        """The matcher of the jobs that scrape ceems_exporter."""
        if len(self.exporter_jobs) == 1:
            return 'job="%s"' % self.exporter_jobs[0]
        return 'job=~"%s"' % self.exporter_pattern

    @property
    def exporter_pattern(self):
        return "|".join(re.sub(r"[.*+?()\[\]{}^$]", r"[\g<0>]", job) for job in self.exporter_jobs)


@dataclasses.dataclass
class Record:
    name: str
    expr: str
    labels: dict = dataclasses.field(default_factory=dict)
    comment: str = ""


@dataclasses.dataclass
class Alert:
    number: int  # in the list of docs/prometheus.md
    name: str
    expr: str
    severity: str  # critical, warning or info
    summary: str
    action: str
    thresholds: str  # why these numbers
    hold: str = ""  # `for`
    page: str = ""  # the runbook; set by the group


@dataclasses.dataclass
class Group:
    name: str
    rules: list
    interval: str
    comment: str = ""


def duration(seconds):
    """In the notation of Prometheus: 90 -> "90s", 120 -> "2m"."""
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds % size == 0:
            return "%d%s" % (seconds // size, unit)
    return "%ds" % seconds
