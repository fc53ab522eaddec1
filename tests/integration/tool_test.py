#!/usr/bin/env python3
"""ceems_tool with a site of real programs: Prometheus, an exporter, the API server and the load balancer. Runs every example of
docs/tool.md, and takes away one part of the site after the other to see what `check site` says."""

import http.server
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time

import harness

DOCS = os.path.join(harness.ROOT, "docs", "tool.md")
LOCAL = re.compile(r"http://localhost:(\d+)")


def tool(*arguments, cwd=None, status=0):
    result = subprocess.run([os.path.join(harness.BIN, "ceems_tool"), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=120, encoding="utf-8", check=False, cwd=cwd)
    if status is not None:
        assert result.returncode == status, "ceems_tool %s: exit status %d:\n%s%s" % (
            " ".join(arguments), result.returncode, result.stdout, result.stderr)
    return result


def examples():
    """The command lines in docs/tool.md, without comments."""
    with open(DOCS, encoding="utf-8") as f:
        blocks = re.findall(r"^```sh\n(.*?)^```$", f.read(), re.M | re.S)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    assert len(lines) > 12 and all(line[0] == "ceems_tool" for line in lines), lines
    return [line[1:] for line in lines]


class Page:
    """A page of metrics that the test writes."""

    def __init__(self):
        self.text = ""
        page = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = page.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Site:
    """Starts the programs. `url` has the address of each by the port that the documentation names."""

    def __init__(self, directory):
        self.directory = directory
        self.programs = {}
        self.ports = {9090: harness.free_port(), 9010: harness.free_port(), 9020: harness.free_port(), 9030: harness.free_port()}

    def url(self, port):
        return "http://127.0.0.1:%d" % self.ports[port]

    def start(self, name, arguments, ready):
        program = harness.Program(arguments, os.path.join(self.directory, name + ".log"))
        self.programs[name] = program
        program.wait_ready(ready)

    def start_all(self):
        directory = self.directory
        fixture = os.path.join(harness.ROOT, "tests", "fixtures", "intel-2s")
        self.start("exporter", [os.path.join(harness.BIN, "ceems_exporter"), "--path.sysfs=" + fixture + "/sys",
                                "--path.procfs=" + fixture + "/proc", "--collector.emissions", "--collector.emissions.provider=owid",
                                "--web.listen-address=127.0.0.1:%d" % self.ports[9010]], self.url(9010) + "/metrics")
        self.page = Page()
        targets = {"ceems": 9010, "api": 9020, "lb": 9030}
        config = harness.write(os.path.join(directory, "prometheus.yml"), "global: {scrape_interval: 1s}\nscrape_configs:\n" + "".join(
            "  - {job_name: %s, static_configs: [{targets: ['127.0.0.1:%d']}]}\n" % (job, self.ports[port])
            for job, port in targets.items()) + "  - {job_name: page, static_configs: [{targets: ['127.0.0.1:%d']}]}\n" % self.page.port)
        self.start("prometheus", ["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + directory + "/tsdb",
                                  "--web.listen-address=127.0.0.1:%d" % self.ports[9090], "--log.level=warn"],
                   self.url(9090) + "/-/ready")
        server = harness.write(os.path.join(directory, "api-server.yml"), (
            "ceems_api_server: {data: {path: %s/data}}\nclusters: [{id: demo, manager: local, updaters: [tsdb]}]\n"
            "updaters: [{id: tsdb, updater: tsdb, web: {url: '%s'}}]\n") % (directory, self.url(9090)))
        self.start("api", [os.path.join(harness.BIN, "ceems_api_server"), "--config.file=" + server,
                           "--no-security.drop-privileges", "--web.listen-address=127.0.0.1:%d" % self.ports[9020]],
                   self.url(9020) + "/health")
        # Without a source of owners: it checks nobody.
        lb = harness.write(os.path.join(directory, "lb.yml"),
                           "ceems_lb: {backends: [{id: slurm-0, tsdb: [{web: {url: '%s'}}]}]}\n" % self.url(9090))
        self.start("lb", [os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + lb, "--no-security.drop-privileges",
                          "--web.listen-address=127.0.0.1:%d" % self.ports[9030]], self.url(9030) + "/-/healthy")
        with open(os.path.join(harness.ROOT, "packaging", "config", "redfish-config.yml"), encoding="utf-8") as f:
            harness.write(os.path.join(directory, "redfish.yml"), f.read())
        harness.write(os.path.join(directory, "web-config.yml"), "basic_auth_users: {}\n")

    def check(self, *more):
        """The findings of `check site` as {(state, subject): [texts]}."""
        result = tool("check", "site", "--json", "--url=" + self.url(9090), "--api.url=" + self.url(9020),
                      "--lb.url=" + self.url(9030), "--lb.cluster-id=slurm-0", *more, status=None)
        report = json.loads(result.stdout)
        found = {}
        for one in report["findings"]:
            assert one["state"] == "ok" or one.get("fix"), "no fix: %r" % one
            found.setdefault((one["state"], one["subject"]), []).append(one["text"])
        assert result.returncode == (1 if report["problems"] else 0), result
        return found

    def stop(self):
        for program in self.programs.values():
            program.__exit__()


def has(found, state, subject, part):
    return any(part in text for text in found.get((state, subject), []))


def test_site(site):
    def scraped():
        found = site.check()
        late = has(found, "warning", "lb", "does not scrape") or has(found, "problem", "api server", "behind")  # at the start
        return has(found, "ok", "exporters", "1 are scraped") and not late and found

    found = harness.wait_until("everything is scraped, and up to date", scraped, every=1)
    assert {key: len(texts) for key, texts in found.items() if key[0] == "problem"} == {("problem", "lb"): 1}, found
    assert has(found, "problem", "lb", "a user without units reads the series of nodes"), found
    assert has(found, "ok", "prometheus", "answers") and has(found, "warning", "prometheus", "without a password"), found
    assert has(found, "warning", "exporters", "1 of 1 asked answer without a password"), found
    assert has(found, "warning", "units", "no exporter reports a running unit"), found
    assert has(found, "ok", "emissions", "owid"), found
    assert has(found, "ok", "api server", "is healthy") and has(found, "warning", "api server", "anybody who sends X-Grafana-User"), found
    assert has(found, "ok", "lb", "is healthy"), found
    assert not has(site.check("--max-exporters=0"), "warning", "exporters", "without a password")
    # Units without energy, a collector that fails, a meter that is silent, a database that is late, a backend that is down.
    site.page.text = ('ceems_compute_units{manager="slurm"} 2\nceems_scrape_collector_success{collector="rapl"} 0\n'
                      'ceems_energy_source_age_seconds{source="ipmi"} 500\nceems_exporter_source_age_seconds{source="bmc"} 900\n'
                      'ceems_api_server_update_watermark_timestamp_seconds{cluster_id="old"} 1000\n'
                      'ceems_lb_backend_up{backend="http://p2:9090"} 0\n')
    found = harness.wait_until("the page is scraped", lambda: has(site.check(), "problem", "energy", "neither energy counters") and
                               site.check(), every=1)
    assert has(found, "warning", "exporters", "collectors rapl fail") and has(found, "warning", "exporters", "readings of bmc"), found
    assert has(found, "warning", "energy", "silent") and has(found, "problem", "api server", "cluster old"), found
    assert has(found, "problem", "lb", "http://p2:9090"), found
    site.page.text = 'ceems_compute_units{manager="slurm"} 2\nceems_compute_unit_energy_joules_total{uuid="1"} 5\n'
    found = harness.wait_until("the page is scraped again", lambda: has(site.check(), "ok", "energy", "count the energy") and
                               site.check(), every=1)
    assert [key for key in found if key[0] == "problem"] == [("problem", "lb")], found


def test_documentation(site):
    for line in examples():
        words = [LOCAL.sub(lambda match: site.url(int(match.group(1))), word) for word in line]
        if words[0] in ("tsdb", "check") and words[1] in ("site", "create-recording-rules", "create-relabel-configs",
                                                          "create-ceems-tsdb-updater-queries"):
            if not any(word.startswith("--url") for word in words):
                words.append("--url=" + site.url(9090))
        result = tool(*words, cwd=site.directory, status=0)
        assert result.stdout or result.stderr, line
    directory = site.directory
    assert os.path.exists(os.path.join(directory, "web", "key.pem"))
    result = tool("emissions", "--country-code=FR", "--url=" + site.url(9090), "--json")
    factors = json.loads(result.stdout)["factors"]
    assert [(one["provider"], one["exporters"], one["applies"], one["grams_per_kwh"]) for one in factors] == [
        ("owid", 1, True, 44.179085), ("owid", 0, False, 44.179085)], factors
    assert tool("emissions", "--country-code=XX", status=1).stderr.startswith("ceems_tool: error: no emission factor")
    # The page names each command.
    with open(DOCS, encoding="utf-8") as f:
        text = f.read()
    for words in re.findall(r"^  ([a-z][a-z -]*[a-z]) \[<flags>\]", tool("--help").stdout, re.M):
        assert "ceems_tool " + words in text or "`" + words in text, words


def test_what_is_missing(site):
    site.programs["exporter"].stop()
    found = harness.wait_until("the exporter is missed", lambda: has(site.check(), "problem", "exporters", "cannot be scraped")
                               and site.check(), every=1)
    assert has(found, "problem", "exporters", "127.0.0.1:%d" % site.ports[9010]), found
    site.programs["api"].stop()
    site.programs["lb"].stop()
    found = site.check()
    assert has(found, "problem", "api server", "127.0.0.1:%d" % site.ports[9020]), found
    assert has(found, "problem", "lb", "127.0.0.1:%d" % site.ports[9030]), found
    site.programs["prometheus"].stop()
    found = site.check()
    assert has(found, "problem", "prometheus", "127.0.0.1"), found
    text = tool("check", "site", "--url=" + site.url(9090), status=1).stdout
    assert text.startswith("problem  prometheus ") and "fix: check --url" in text and text.endswith("1 problems, 0 warnings\n"), text


TESTS = [test_site, test_documentation, test_what_is_missing]


def main():
    harness.need_programs("prometheus")
    wanted = sys.argv[1:]
    with harness.scratch("ceems_tool") as directory:
        site = Site(directory)
        try:
            site.start_all()
            for test in TESTS:
                if not wanted or any(word in test.__name__ for word in wanted):
                    begin = time.monotonic()
                    test(site)
                    print("ok  %s (%.1f s)" % (test.__name__, time.monotonic() - begin))
        finally:
            site.stop()


if __name__ == "__main__":
    main()
