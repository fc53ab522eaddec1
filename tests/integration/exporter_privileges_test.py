#!/usr/bin/env python3
"""ceems_exporter started as root: every thread runs as the unprivileged user, with only the capability that opens energy counters.
This capability works, even for a counter that appears later. Keys, passwords and the web configuration may be readable only by root,
and are read again when they change."""

import base64
import glob
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.request

from harness import BIN, FakeHttp, Program, ROOT, free_port, get, samples, scratch, skip, start_exporter, wait_until, write

CAP_DAC_READ_SEARCH = 2


def field(status, name):
    return re.search(r"^%s:[ \t]*(.*)$" % name, status, re.M).group(1)


def unprivileged(pid):
    """Every thread runs as nobody, with one capability permitted and none effective."""
    for path in glob.glob("/proc/%d/task/*/status" % pid):
        with open(path) as f:
            status = f.read()
        assert set(field(status, "Uid").split()) == {"65534"}, status
        assert int(field(status, "CapPrm"), 16) == 1 << CAP_DAC_READ_SEARCH, status
        assert int(field(status, "CapEff"), 16) == 0, status
        assert field(status, "Groups").split() == [], status


def make_certificate(directory, name):
    for suffix in ("key", "crt"):
        if os.path.exists("%s/%s.new" % (directory, suffix)):
            os.unlink("%s/%s.new" % (directory, suffix))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", directory + "/key.new", "-out",
                    directory + "/crt.new", "-days", "2", "-subj", "/CN=" + name], check=True, capture_output=True)
    for suffix in ("key", "crt"):
        os.chmod("%s/%s.new" % (directory, suffix), 0o400)
        os.rename("%s/%s.new" % (directory, suffix), "%s/web.%s" % (directory, suffix))


def web_secrets_of_root(d):
    """Configuration, certificate and key of the web layer are in a directory that only root can search."""
    if not shutil.which("openssl"):
        print("  (the program openssl is missing, TLS not tested)")
        return
    secret = d + "/secret"
    os.mkdir(secret, 0o700)
    make_certificate(secret, "first")
    config = "tls_server_config:\n  cert_file: web.crt\n  key_file: web.key\n"
    write(secret + "/web.yml", config, 0o400)
    port = free_port()
    arguments = ["--web.listen-address=127.0.0.1:%d" % port, "--collector.disable-defaults", "--collector.meminfo",
                 "--web.config.file=" + secret + "/web.yml"]
    anybody = ssl.create_default_context()
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE

    def page():
        with urllib.request.urlopen("https://127.0.0.1:%d/metrics" % port, timeout=90, context=anybody) as answer:
            return answer.status, dict(answer.headers)

    def served():
        return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port)))

    with Program([os.path.join(BIN, "ceems_exporter")] + arguments, d + "/web.log") as exporter:
        wait_until("the exporter responds over TLS", lambda: page()[0] == 200)
        unprivileged(exporter.pid)
        first = served()
        make_certificate(secret, "second")
        wait_until("the new certificate is served", lambda: served() != first)
        os.unlink(secret + "/web.yml")
        write(secret + "/web.yml", config + "http_server_config:\n  headers:\n    X-Frame-Options: deny\n", 0o400)
        wait_until("the new configuration is used", lambda: page()[1].get("X-Frame-Options") == "deny")
        unprivileged(exporter.pid)
        assert "Web configuration became invalid" not in exporter.output(), exporter.output()


def redfish_password_of_root(d):
    """A password file that only root can read is read for each request, so a new password is used at once."""
    secret = d + "/bmc"
    os.mkdir(secret, 0o700)
    write(secret + "/password", "one", 0o400)
    passwords = ["one"]

    def answer(path, _query, _body):
        return 200, "application/json", json.dumps({
            "/redfish/v1/": {"Chassis": {"@odata.id": "/redfish/v1/Chassis"}},
            "/redfish/v1/Chassis": {"Members": [{"@odata.id": "/redfish/v1/Chassis/1"}]},
            "/redfish/v1/Chassis/1": {"Id": "1", "Power": {"@odata.id": "/redfish/v1/Chassis/1/Power"}},
            "/redfish/v1/Chassis/1/Power": {"PowerControl": [{"PowerConsumedWatts": 100 + len(passwords)}]},
        }.get(path, {})).encode()

    with FakeHttp(answer) as bmc:
        handler = bmc.server.RequestHandlerClass
        plain = handler.answer

        def guarded(self):
            given = base64.b64encode(("admin:" + passwords[-1]).encode()).decode()
            if self.headers.get("Authorization") != "Basic " + given:
                self.send_response(401)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            plain(self)
        handler.do_GET = guarded
        port = bmc.url.rsplit(":", 1)[1]
        config = write(d + "/redfish.yml", "redfish_collector:\n  protocol: http\n  hostname: 127.0.0.1\n  port: %s\n"
                       "  use_session_token: false\n  basic_auth:\n    username: admin\n    password_file: %s/password\n"
                       % (port, secret))
        exporter, url = start_exporter(d, ["--collector.disable-defaults", "--collector.redfish",
                                           "--collector.redfish.config.file=" + config])
        with exporter:
            def watts():
                return [value for _, value in samples(get(url + "/metrics").text, "ceems_redfish_current_watts")]
            wait_until("the power of the BMC is on the page", lambda: watts() == [101])
            unprivileged(exporter.pid)
            os.unlink(secret + "/password")
            write(secret + "/password", "two", 0o400)
            passwords.append("two")
            wait_until("the new password is used", lambda: watts() == [102])


def main():
    if os.geteuid() != 0:
        skip("needs root")
    with scratch("ceems-secrets-") as d:
        web_secrets_of_root(d)
        redfish_password_of_root(d)
    with scratch("ceems-privileges-") as d:
        shutil.copytree(os.path.join(ROOT, "tests", "fixtures", "intel-2s"), d + "/host", symlinks=True)
        counters = sorted(glob.glob(d + "/host/sys/class/powercap/*/energy_uj"))
        for path in counters:
            os.chmod(path, 0o400)
        exporter, url = start_exporter(d, ["--path.sysfs=" + d + "/host/sys", "--collector.disable-defaults", "--collector.rapl"])
        with exporter:
            def packages():
                return len(samples(get(url + "/metrics").text, "ceems_rapl_package_joules_total"))
            assert packages() == 2, exporter.output()
            unprivileged(exporter.pid)
            os.rename(counters[0], counters[0] + ".gone")
            shutil.copyfile(counters[0] + ".gone", counters[0])
            os.chmod(counters[0], 0o400)
            os.unlink(counters[0] + ".gone")
            assert packages() == 2, exporter.output()
        assert exporter.process.returncode == 0, exporter.output()
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
