#!/usr/bin/env python3
"""The files of packaging/ondemand: the widget as ERB renders it, the YAML files as Ruby reads them, and the proxy in a real Apache in front
of a real ceems_api_server, whose commands are those of docs/connect/portal.md."""

import base64
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import time

from api_database import create, insert
from attack_site import Site
from harness import BIN, ROOT, FakeHttp, Program, free_port, get, run_tests, scratch, skip, start_api_server, write

FILES = os.path.join(ROOT, "packaging", "ondemand")
MODULES = "/usr/lib/apache2/modules"
SECRET = "0123456789abcdef0123456789abcdef"
# ActiveSupport's html_escape marks its result as safe, so that Rails does not escape it again; ERB does neither.
RENDER = "require 'erb'; print ERB.new(File.read(ARGV[0]), trim_mode: '-').result(binding)"


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def rendered(**environment):
    done = subprocess.run(["ruby", "-e", RENDER, os.path.join(FILES, "_ceems.html.erb")], capture_output=True, check=True,
                          env=dict({b"PATH": os.environb[b"PATH"], b"LC_ALL": b"C"}, **{key: value for key, value in environment.items()}))
    assert not done.stderr, done.stderr
    return Tags(done.stdout.decode())


def widget(_directory):
    page = rendered(USER="ada")
    (frame,), (link,) = page.all("iframe"), page.all("a")
    assert frame["src"] == "/ceems/?embed=1#/card" and frame["title"] == "Last jobs of ada", frame
    assert (frame["width"], frame["height"]) == ("300", "200"), frame
    assert link["href"] == "/ceems/#/jobs" and link["rel"] == "noopener", link
    assert rendered(CEEMS_URL="https://ceems.example.org:8443/a/").all("iframe")[0]["src"] == "https://ceems.example.org:8443/a/?embed=1#/card"
    plain = {tag for tag, _ in page.tags}
    for name in ('"><script>alert(1)</script>', "' onload='x", "<b>&amp;", "a\nb", "zo\u00eb \u202e", "#{exit 3}", "<%= exit 3 %>"):
        page = rendered(USER=name)
        assert page.all("iframe")[0]["title"] == "Last jobs of " + name, (name, page.tags)
        assert set(page.all("iframe")[0]) == set(frame) and {tag for tag, _ in page.tags} == plain, (name, page.tags)
    assert rendered(USER=b"a\xff<").all("iframe")[0]["title"] == "Last jobs of a?<"
    assert rendered().all("iframe")[0]["title"] == "Last jobs of "


def wrong_configuration(_directory):
    for url in ("ceems", "/ceems", "//evil.example/", "http://ceems.example.org/", "javascript:alert(1)//", "https://", "https://u:p@x/", "/a b/", "/\n/",
                '/"><script>/', "/?x=/", "/ceems/\n", "https://x/#/", "data:text/html,x/"):
        page = rendered(CEEMS_URL=url, USER="ada")
        assert not page.all("iframe") and not page.all("a") and not page.all("script"), (url, page.tags)
        assert "must be a path such as /ceems/" in page.text and url in page.text, (url, page.text)


def yaml_files(_directory):
    def read(name):
        return json.loads(subprocess.run(["ruby", "-ryaml", "-rjson", "-e", "puts YAML.load_file(ARGV[0]).to_json", os.path.join(FILES, name)],
                                         capture_output=True, check=True).stdout)
    columns = read("dashboard.yml")["dashboard_layout"]["rows"][0]["columns"]
    assert sum(column["width"] for column in columns) == 12 and columns[1]["widgets"] == ["ceems"], columns
    app = read("manifest.yml")
    assert app["url"] == "/ceems/" and app["category"] == "Jobs" and app["new_window"] is False, app


def start_apache(directory, server):
    """Apache with ceems.conf, except that users have passwords, as there is no provider here."""
    for program in ("apache2", "htpasswd"):
        if program == "apache2" and not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            return None
    with open(os.path.join(FILES, "ceems.conf"), encoding="utf-8") as f:
        text = f.read()
    for old, new in (("http://ceems.example.org:9020", server), ("/etc/ood/config/", directory + "/"),
                     ("AuthType openid-connect", "AuthType Basic\n  AuthName x\n  AuthBasicProvider file\n  AuthUserFile %s/passwords" % directory)):
        assert old in text
        text = text.replace(old, new)
    write(os.path.join(directory, "ceems-secret.conf"), 'RequestHeader set X-Ceems-Proxy-Token "%s"\n' % SECRET, 0o600)
    hashed = base64.b64encode(__import__("hashlib").sha1(b"pw").digest()).decode()
    write(os.path.join(directory, "passwords"), "".join("%s:{SHA}%s\n" % (name, hashed) for name in ("ada-zqu1", "cat-zqu3")))
    port = free_port()
    modules = ["mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "alias", "headers", "proxy", "proxy_http"]
    config = "".join("LoadModule %s_module %s/mod_%s.so\n" % (name, MODULES, name) for name in modules)
    config += "ServerName portal\nListen 127.0.0.1:%d\nPidFile %s/apache.pid\nErrorLog %s/apache.log\nServerRoot %s\n" % (port, directory, directory, directory)
    if os.geteuid() == 0:
        config += "User nobody\nGroup nogroup\n"
    # As the portal's own configuration does.
    config += 'Header always set Content-Security-Policy "frame-ancestors https://portal.example.org;"\n' + text
    program = Program(["apache2", "-DFOREGROUND", "-f", write(os.path.join(directory, "apache.conf"), config)], os.path.join(directory, "apache.out"),
                      {"PATH": os.environ["PATH"] + ":/usr/sbin"})
    url = "http://127.0.0.1:%d" % port
    return program.wait_ready(url + "/ceems/"), url


def proxy(directory):
    """The name that Apache has checked gets through, and nothing that a browser or another process of the portal's host says."""
    if not shutil.which("apache2", path=os.environ["PATH"] + ":/usr/sbin"):
        print("apache2 is not installed: the proxy is not tested")
        return
    site = Site(int(time.time()))
    os.makedirs(os.path.join(directory, "data"))
    site.write(os.path.join(directory, "data", "ceems.db"))
    with open(os.path.join(ROOT, "docs", "connect", "portal.md"), encoding="utf-8") as f:
        (section,) = [block for block in re.findall(r"^```yaml\n(.*?)^```$", f.read(), re.M | re.S) if "proxy_token_file" in block]
    config = section.replace("10.1.2.3", "127.0.0.1").replace("/etc/ceems/portal-token", directory + "/portal-token")
    assert config.startswith("ceems_api_server:\n") and config != section, section
    config = config.replace("ceems_api_server:\n", "ceems_api_server:\n  data: {path: %s/data, time_zone: UTC, update_interval: 1d}\n" % directory)
    write(os.path.join(directory, "portal-token"), SECRET + "\n", 0o600)
    program, server = start_api_server(directory, config, ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges"])
    apache, url = start_apache(directory, server)
    with program, apache:
        def signed_in(user, **headers):
            return dict({"Authorization": "Basic " + base64.b64encode((user + ":pw").encode()).decode()},
                        **{name.replace("_", "-"): value for name, value in headers.items()})

        def who(headers, base=url + "/ceems"):
            answer = get(base + "/api/v1/whoami", headers)
            return answer.json["data"][0]["user"] if answer.status == 200 else answer.status
        assert who({}) == 401 and who({"X-Grafana-User": "ada-zqu1"}) == 401
        assert who(signed_in("ada-zqu1")) == "ada-zqu1"
        units = get(url + "/ceems/api/v1/units/list?columns=user", signed_in("ada-zqu1")).json["data"]["rows"]
        assert units and {row[0] for row in units} == {"ada-zqu1"}, units
        # What a browser sends besides.
        assert who(signed_in("ada-zqu1", X_Grafana_User="cat-zqu3")) == "ada-zqu1"
        assert who(signed_in("ada-zqu1", X_Grafana_User="ceems-int-svc", X_Ceems_Service_Token="x" * 40)) == "ada-zqu1"
        assert who(signed_in("ada-zqu1", X_Ceems_Token="ceems_pat_" + "A" * 43)) == "ada-zqu1"
        assert who(signed_in("ada-zqu1", X_Ceems_Proxy_Token="x", Cookie="ceems_session=x")) == "ada-zqu1"
        assert who(signed_in("ada-zqu1", Connection="X-Grafana-User, X-Ceems-Proxy-Token")) in ("ada-zqu1", 401)
        # Other processes of the host.
        assert who({"X-Grafana-User": "ada-zqu1"}, server) == 401
        assert who({"X-Grafana-User": "ada-zqu1", "X-Ceems-Proxy-Token": SECRET[1:]}, server) == 401
        # The card may be in a page of the portal, and only there.
        card = get(url + "/ceems/?embed=1", signed_in("ada-zqu1"))
        policies = card.headers.get_all("Content-Security-Policy")
        assert card.status == 200 and card.headers["X-Frame-Options"] is None, card.headers
        assert len(policies) == 2 and all("frame-ancestors https://portal.example.org" in policy for policy in policies), policies
        script = re.search(r'src="([^"]+\.js)"', card.text).group(1)
        assert not script.startswith("/") and get(url + "/ceems/" + script, signed_in("ada-zqu1")).status == 200, script
        assert SECRET not in card.text and SECRET not in str(card.headers)
        assert get(url + "/ceems", signed_in("ada-zqu1")).status == 200
        with open(os.path.join(directory, "apache.log"), encoding="utf-8") as f:
            assert "[proxy:error]" not in f.read()


if __name__ == "__main__":
    if not shutil.which("ruby"):
        skip("ruby is not installed")
    if not os.access(os.path.join(BIN, "ceems_api_server"), os.X_OK):
        skip("ceems_api_server is not built in %s" % BIN)
    sys.exit(run_tests([widget, wrong_configuration, yaml_files, proxy], "ceems-ondemand-"))
