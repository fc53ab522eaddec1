"""A page of metrics, for the tests in the virtual machine."""

import re
import time

from harness import get


class Page:
    """A scraped page. Sums series by name and by some of their labels."""

    def __init__(self, url):
        self.begin = time.monotonic()
        answer = get(url + "/metrics")
        self.seconds = time.monotonic() - self.begin
        assert answer.status == 200, answer.text
        self.series = {}
        for line in answer.text.splitlines():
            found = re.match(r"(\w+)(?:\{(.*)\})? (\S+)$", line)
            if found:
                labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found.group(2) or ""))
                self.series.setdefault(found.group(1), []).append((labels, float(found.group(3))))

    def all(self, name, **labels):
        return [value for have, value in self.series.get(name, []) if all(have.get(k) == v for k, v in labels.items())]

    def has(self, name, **labels):
        return bool(self.all(name, **labels))

    def one(self, name, **labels):
        values = self.all(name, **labels)
        assert len(values) == 1, "%d series %s%s" % (len(values), name, labels)
        return values[0]

    def sum(self, name, **labels):
        return sum(self.all(name, **labels))

    def cpu(self, uuid):
        return (self.one("ceems_compute_unit_cpu_user_seconds_total", uuid=uuid) +
                self.one("ceems_compute_unit_cpu_system_seconds_total", uuid=uuid))
