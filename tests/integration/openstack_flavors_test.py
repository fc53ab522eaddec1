#!/usr/bin/env python3
"""A fake Nova with flavors, a real Prometheus and the real ceems_api_server: the report of a server that runs names the smallest flavor
that holds its peaks, also of the time before its exporter was restarted, and does so when Nova no longer lists its flavors."""

import sys
import time

from fake_openstack import FakeOpenstack, iso
from harness import get, need_programs, scratch, start_api_server, start_prometheus_with, wait_until
from openstack_test import AS_ROOT, config, rows

GIB = 2 ** 30
DAY = 86400
ANN = {"X-Grafana-User": "ann"}
SHARED = {"hw:cpu_policy": "shared"}


def samples(uuid, start, end):
    """One a minute. The exporter was restarted in the middle, after the peaks."""
    text, middle = "", (start + end) // 2
    for name, before, after in (("cpus", 8, 8), ("cpu_user_seconds_total", 1, 2), ("cpu_used_max", 3.2, 1), ("memory_peak_bytes", 5 * GIB, GIB)):
        name = "ceems_compute_unit_" + name
        text += "# TYPE %s gauge\n" % name
        text += "".join('%s{manager="libvirt",hostname="n1",cgrouphostname="",uuid="%s"} %r %d\n' % (name, uuid, before if at < middle else after, at)
                        for at in range(start, end, 60))
    return text + "# EOF\n"


def report(url, more=""):
    answer = get(url + "/api/v1/units/report?cluster_id=os&uuid=vm" + more, ANN)
    assert answer.status == 200, answer.text
    return answer


def lines(url, more=""):
    found = report(url, more).json["data"][0]
    return [(f["rule"], f["confidence"], [(line["type"], line["was"]) for line in f["lines"]]) for f in found["findings"]]


def main():
    need_programs("prometheus", "promtool")
    with scratch("ceems-flavors-") as d, FakeOpenstack(page_size=2) as cloud:
        now = int(time.time())
        launched = now - 8 * DAY
        cloud.users, cloud.projects, cloud.members = {"u1": "ann"}, {"p1": "alpha"}, {"u1": ["p1"]}
        cloud.add_server("vm", "u1", "p1", launched)
        cloud.change("vm", updated=iso(launched, False),
                     flavor={"vcpus": 8, "ram": 16384, "disk": 20, "swap": "", "original_name": "m1.large", "extra_specs": SHARED})
        cloud.add_flavor("1", "m1.large", 8, 16384, specs=SHARED)
        cloud.add_flavor("2", "m1.medium", 4, 8192, specs=SHARED)
        cloud.add_flavor("3", "m1.small", 2, 4096, specs=SHARED)  # holds what was used since the restart only
        cloud.add_flavor("4", "p1.private", 4, 7168, specs=SHARED, public=False)
        cloud.add_flavor("5", "m1.disabled", 4, 7168, specs=SHARED, disabled=True)
        cloud.add_flavor("6", "d1.small", 4, 7168, disk=10, specs=SHARED)
        cloud.add_flavor("7", "g1.medium", 4, 7168, specs={"resources:VGPU": "1"})
        prometheus, port = start_prometheus_with(d, "tsdb", samples("vm", launched, now))
        with prometheus:
            text = config(d, cloud, now - 600).replace("    manager: openstack\n", "    manager: openstack\n    updaters: [tsdb]\n")
            text += "updaters:\n  - {id: tsdb, updater: tsdb, web: {url: 'http://127.0.0.1:%d'}, extra_config: {scrape_interval: 1s}}\n" % port
            resize = [("flavor-large", "maybe", [("openstack server resize --flavor m1.medium vm", "--flavor m1.large")])]
            api, url = start_api_server(d, text, AS_ROOT)
            with api:
                wait_until("the server is a unit", lambda: len(rows(d)) == 1)
                assert lines(url, "&so_far") == resize, report(url, "&so_far").text
                assert "openstack server resize --flavor m1.medium vm" in report(url, "&so_far&format=text").text
                asked = [s for s in cloud.seen if s[1] == "/v2.1/flavors/detail"]
                assert len(asked) == 4 and all(s[2]["is_public"] == ["None"] for s in asked), asked  # pages of one reading
                api.stop()
            cloud.flavors = None
            cloud.change("vm", status="DELETED", terminated=iso(now))
            api, url = start_api_server(d, text, AS_ROOT, name="again")
            with api:
                assert lines(url, "&so_far") == resize, report(url, "&so_far").text  # from the database
                wait_until("the server is gone", lambda: rows(d)[0]["ended_at_ts"] > 0)
                assert "cannot read the list of flavors" in api.output(), api.output()
                create = [("flavor-large", "maybe", [("openstack server create --flavor m1.medium", "--flavor m1.large")])]
                assert lines(url) == create, report(url).text
                api.stop()
            assert "Sanitizer" not in api.output(), api.output()[-3000:]
    print("openstack flavors: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
