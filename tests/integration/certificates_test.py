#!/usr/bin/env python3
"""Every server exports when its certificate ends, before anybody connects and after a renewal, and nothing without TLS."""

import os
import ssl
import subprocess
import sys
import time
import urllib.request

import harness

SERIES = "ceems_web_certificate_not_after_timestamp_seconds"
ANYBODY = ssl.create_default_context()
ANYBODY.check_hostname = False
ANYBODY.verify_mode = ssl.CERT_NONE


def renew(directory, days):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days), "-subj",
                    "/CN=localhost", "-keyout", directory + "/new.key", "-out", directory + "/new.crt"], check=True,
                   stderr=subprocess.DEVNULL)
    for suffix in ("key", "crt"):
        os.chmod("%s/new.%s" % (directory, suffix), 0o644)
        os.replace("%s/new.%s" % (directory, suffix), "%s/tls.%s" % (directory, suffix))


def programs(directory):
    """(name, arguments)"""
    os.makedirs(directory + "/data")
    api = harness.write(directory + "/api.yml", "ceems_api_server: {data: {path: %s/data}}\n" % directory)
    lb = harness.write(directory + "/lb.yml", "ceems_lb: {backends: [{id: c0, tsdb: [{web: {url: 'http://127.0.0.1:1'}}]}]}\n")
    as_root = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
    yield "ceems_exporter", ["--collector.disable-defaults", "--collector.meminfo", "--no-security.drop-privileges"]
    yield "ceems_api_server", ["--config.file=" + api] + as_root
    yield "ceems_lb", ["--config.file=" + lb] + as_root
    yield "redfish_proxy", as_root
    yield "ceems_k8s_admission_controller", as_root


def page(port, scheme="https"):
    with urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=ANYBODY)).open(
            "%s://127.0.0.1:%d/metrics" % (scheme, port), timeout=90) as answer:
        return answer.read().decode()


def end(port):
    """In days from now; None if there is no page yet."""
    try:
        text = page(port)
    except OSError:
        return None
    values = [float(line.split()[1]) for line in text.splitlines() if line.startswith(SERIES + " ")]
    assert len(values) == 1, text[:2000]
    return round((values[0] - time.time()) / 86400, 1)


def main():
    harness.need_programs("openssl")
    with harness.scratch("ceems_certificates") as directory:
        web = harness.write(directory + "/web.yml", "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n")
        os.chmod(directory, 0o755)
        for name, arguments in programs(directory):
            renew(directory, 20)
            port = harness.free_port()
            command = [os.path.join(harness.BIN, name), "--web.listen-address=127.0.0.1:%d" % port, *arguments]
            with harness.Program(command + ["--web.config.file=" + web], os.path.join(directory, name + ".log")):
                harness.wait_until(name + " has a metric of its certificate", lambda at=port: end(at) == 20.0)
                renew(directory, 40)
                harness.wait_until(name + " uses the new one", lambda at=port: end(at) == 40.0)
            with harness.Program(command, os.path.join(directory, name + ".log")) as program:
                program.wait_ready("http://127.0.0.1:%d/metrics" % port)
                assert SERIES not in page(port, "http"), name
            print("ok  " + name)


if __name__ == "__main__":
    sys.exit(main())
