#!/usr/bin/env python3
"""Logins to the real API server: by password, by an OpenID Connect provider (a small one here, which signs with the openssl command),
and by header from trusted peers. Also sessions over restarts, and revocation. One function for each subject; to run some of them:
`login_test.py NAME...`."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse

from harness import BIN, FakeHttp, need_programs, scratch, start_api_server, wait_until, write

AS_ROOT = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
# Hashes of "correct horse" and of "other", with the lowest cost.
HASH = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
OTHER = "$2b$04$zbcdefghijklmnopqrstuuh0YGVY8iawwcMGvF8QMhjZ4kINk7Yyi"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Browser:
    """The cookies of one server. Does not follow redirects."""

    def __init__(self, url, headers=None):
        self.host = urllib.parse.urlsplit(url).netloc
        self.headers, self.cookies = headers or {}, {}

    def ask(self, method, path, form=None, headers=None):
        connection = http.client.HTTPConnection(self.host, timeout=90)
        with contextlib.closing(connection):
            all_headers = dict(self.headers, **(headers or {}))
            if self.cookies:
                all_headers["Cookie"] = "; ".join("%s=%s" % pair for pair in self.cookies.items())
            body = None
            if form is not None:
                body = urllib.parse.urlencode(form)
                all_headers["Content-Type"] = "application/x-www-form-urlencoded"
            connection.request(method, path, body, all_headers)
            answer = connection.getresponse()
            answer.text = answer.read().decode("utf-8", "replace")
            for cookie in answer.headers.get_all("Set-Cookie") or []:
                name, _, rest = cookie.partition("=")
                if "Max-Age=0;" in cookie:
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = rest.split(";")[0]
            return answer

    def get(self, path, headers=None):
        return self.ask("GET", path, headers=headers)

    def whoami(self):
        answer = self.get("/api/v1/whoami")
        return json.loads(answer.text)["data"][0] if answer.status == 200 else None

    def token(self):
        answer = json.loads(self.get("/api/v1/whoami").text)
        return (answer["data"][0] if answer["data"] else answer)["login"]["token"]

    def log_in(self, user, password, **more):
        return self.ask("POST", "/login", dict(more, user=user, password=password, token=self.token()))


class Provider(FakeHttp):
    """A minimal OpenID Connect provider."""

    def __init__(self, directory):
        super().__init__(self.serve)
        self.directory, self.codes, self.claims, self.signed_by, self.header = directory, {}, {}, "key.pem", None
        for name in ("key.pem", "other.pem"):
            subprocess.run(["openssl", "genrsa", "-out", os.path.join(directory, name), "2048"], check=True,
                           capture_output=True)
        text = subprocess.run(["openssl", "rsa", "-in", os.path.join(directory, "key.pem"), "-noout", "-modulus"], check=True,
                              capture_output=True, text=True).stdout
        self.modulus = bytes.fromhex(text.strip().partition("=")[2])

    def visit(self, location):
        """Logs the user in at the provider and returns the path to come back to."""
        query = {k: v[0] for k, v in urllib.parse.parse_qs(urllib.parse.urlsplit(location).query).items()}
        assert location.startswith(self.url + "/authorize?"), location
        assert query["response_type"] == "code" and query["code_challenge_method"] == "S256", query
        code = "code%d" % len(self.codes)
        self.codes[code] = query
        back = urllib.parse.urlsplit(query["redirect_uri"]).path
        return back + "?" + urllib.parse.urlencode({"code": code, "state": query["state"]})

    def sign(self, query):
        now = int(time.time())
        claims = {"iss": self.url, "aud": "ceems", "sub": "1", "iat": now, "exp": now + 60, "nonce": query["nonce"],
                  "preferred_username": "lin"}
        claims.update(self.claims)
        header = self.header or {"alg": "RS256", "kid": "k"}
        text = b64(json.dumps(header).encode()) + "." + b64(json.dumps(claims).encode())
        key = os.path.join(self.directory, self.signed_by)
        return text + "." + b64(subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=text.encode(), check=True,
                                               capture_output=True).stdout)

    def serve(self, path, query, body):
        def answer(value, status=200):
            return status, "application/json", json.dumps(value).encode()

        if path == "/.well-known/openid-configuration":
            return answer({"issuer": self.url, "authorization_endpoint": self.url + "/authorize",
                           "token_endpoint": self.url + "/token", "jwks_uri": self.url + "/keys"})
        if path == "/keys":
            return answer({"keys": [{"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "n": b64(self.modulus),
                                     "e": "AQAB"}]})
        if path == "/token":
            asked = self.codes.pop(query["code"][0], None)
            challenge = b64(hashlib.sha256(query["code_verifier"][0].encode()).digest())
            if asked is None or challenge != asked["code_challenge"] or query["redirect_uri"][0] != asked["redirect_uri"]:
                return answer({"error": "invalid_grant"}, 400)
            return answer({"access_token": "x", "token_type": "Bearer", "id_token": self.sign(asked)})
        return answer({}, 404)


def config(directory, identity, roles=""):
    return """
ceems_api_server:
  data:
    path: %s/data
    update_interval: 1h
  admin:
    users: [operator]
  identity:
%s
%s""" % (directory, identity, roles)


def users(directory, **hashes):
    text = "basic_auth_users:\n" + "".join("  %s: %s\n" % (n, h) for n, h in hashes.items())
    return write(os.path.join(directory, "users.yml"), text, 0o640)


def local(directory, proxies="[]"):
    return "    local: {users_file: users.yml}\n    header: {trusted_proxies: %s}\n" % proxies


def password():
    with scratch("ceems-login-") as d:
        users(d, ada=HASH, operator=OTHER)
        program, url = start_api_server(d, config(d, local(d), "  roles: {support: [ada]}\n"), AS_ROOT)
        with program:
            ada = Browser(url)
            stranger = json.loads(ada.get("/api/v1/whoami").text)
            assert stranger["login"]["local"] is True and stranger["login"]["header"] is None, stranger
            page = ada.get("/login?next=//evil.example/")
            assert page.status == 200 and 'name="token"' in page.text and "evil" not in page.text, page.text
            assert ada.log_in("ada", "wrong").status == 401
            assert ada.log_in("nobody", "correct horse").status == 401
            came = ada.log_in("ada", "correct horse", next="/ui/#/unit/a/1")
            assert (came.status, came.headers["Location"]) == (303, "/ui/#/unit/a/1"), came.text
            who = ada.whoami()
            assert (who["user"], who["role"], who["via"]) == ("ada", "support", "local"), who
            assert ada.get("/api/v1/units/admin").status == 200
            assert ada.get("/api/v1/users/admin?role=admin").status == 403
            operator = Browser(url)
            operator.log_in("operator", "other")
            assert operator.whoami()["admin"] is True
            # A form from another site, and one without the token.
            form = {"user": "ada", "password": "correct horse", "token": Browser(url).token()}
            assert Browser(url).ask("POST", "/login", form).status == 403
            assert operator.ask("POST", "/logout", {"token": operator.token()},
                                {"Origin": "https://evil.example"}).status == 403
            copied = dict(operator.cookies)
            assert operator.ask("POST", "/logout", {"token": operator.token()}).status == 303
            assert operator.whoami() is None
            operator.cookies = copied
            assert operator.whoami() is None, "a copied cookie is still valid after the logout"
            # The file changes while the server runs.
            users(d, operator=OTHER)
            wait_until("ada's session ends", lambda: ada.whoami() is None)
            assert "correct horse" not in program.output() and "$2b$" not in program.output()


def guessing():
    with scratch("ceems-login-") as d:
        users(d, ada=HASH)
        program, url = start_api_server(d, config(d, local(d, "[127.0.0.1]")), AS_ROOT)
        with program:
            browser = Browser(url, {"X-Forwarded-For": "1.1.1.1, 198.51.100.7"})
            for _ in range(5):
                assert browser.log_in("ada", "guess").status == 401
            late = browser.log_in("ada", "correct horse")
            assert late.status == 429 and 800 < int(late.headers["Retry-After"]) <= 900, late.headers
            assert Browser(url, {"X-Forwarded-For": "198.51.100.8"}).log_in("ada", "correct horse").status == 303


def sessions_outlive_a_restart():
    with scratch("ceems-login-") as d:
        users(d, ada=HASH)
        program, url = start_api_server(d, config(d, local(d)), AS_ROOT)
        with program:
            ada = Browser(url)
            ada.log_in("ada", "correct horse")
        key = os.path.join(d, "data", "ceems-session.key")
        assert os.stat(key).st_mode & 0o777 == 0o600, oct(os.stat(key).st_mode)
        program, url = start_api_server(d, config(d, local(d)), AS_ROOT)
        with program:
            ada.host = urllib.parse.urlsplit(url).netloc
            assert ada.whoami()["user"] == "ada"
        os.unlink(key)
        program, url = start_api_server(d, config(d, local(d)), AS_ROOT)
        with program:
            ada.host = urllib.parse.urlsplit(url).netloc
            assert ada.whoami() is None


def header():
    with scratch("ceems-login-") as d:
        users(d, ada=HASH)
        write(d + "/web.yml", "basic_auth_users:\n  lb: %s\n" % HASH)
        basic = {"Authorization": "Basic " + base64.b64encode(b"lb:correct horse").decode()}
        token = "0123456789abcdef0123456789abcdef"
        write(d + "/token", token + "\n")
        os.chmod(d + "/token", 0o600)
        account = "    service_account: {web_user: lb, token_file: %s/token}\n" % d
        program, url = start_api_server(d, config(d, local(d, "[127.0.0.1/32]") + account),
                                        AS_ROOT + ["--web.config.file=" + d + "/web.yml"], wait=False)
        with program:
            balancer = Browser(url, basic)
            wait_until("the server responds", lambda: balancer.get("/health").status == 200)
            assert balancer.whoami()["admin"] is True
            assert balancer.get("/api/v1/units/admin").status == 200
            named = Browser(url, dict(basic, **{"X-Grafana-User": "ceems-int-svc"}))
            assert named.get("/api/v1/units/admin").status == 401, "the name of the service account in the header of people"
            assert Browser(url, {"X-Grafana-User": "ceems-int-svc"}).get("/api/v1/units/admin").status == 401
        program, url = start_api_server(d, config(d, local(d, "[127.0.0.1/32]") + account), AS_ROOT)
        with program:
            assert Browser(url, {"X-Ceems-Service-Token": token}).whoami()["admin"] is True
            assert Browser(url, {"X-Ceems-Service-Token": token[:-1] + "x"}).whoami() is None
            assert Browser(url, {"X-Grafana-User": "ceems-int-svc"}).whoami() is None
            assert Browser(url, {"X-Grafana-User": "operator"}).whoami()["admin"] is True
            log = [line for line in program.output().splitlines() if "service_account" in line]
            assert len(log) == 2, log  # one for each server: the file is the same
        program, url = start_api_server(d, config(d, local(d, "[10.0.0.0/8]")), AS_ROOT)
        with program:
            ada = Browser(url)
            ada.log_in("ada", "correct horse")
            for _ in range(5):
                assert ada.get("/api/v1/units", {"X-Grafana-User": "operator"}).status == 401
            assert ada.whoami()["user"] == "ada"
            lines = [line for line in program.output().splitlines() if "trusted_proxies" in line]
            assert len(lines) == 1, lines


def oidc():
    need_programs("openssl")
    with scratch("ceems-login-") as d, Provider(d) as provider:
        identity = """    header: {enabled: false}
    oidc:
      name: Example
      issuer: %s
      client_id: ceems
      client_secret_file: secret
      groups_claim: groups
      admin_groups: [ops]
""" % provider.url
        write(d + "/secret", "s3cret\n", 0o600)
        program, url = start_api_server(d, config(d, identity), AS_ROOT + ["--web.external-url=http://127.0.0.1/ceems"])
        with program:
            lin = Browser(url)
            away = lin.get("/login/oidc?next=/ui/")
            assert away.status == 303, away.text
            # The proxy in front removes the path prefix that browsers see.
            back = provider.visit(away.headers["Location"])
            assert back.startswith("/ceems/login/callback?"), back
            back = back[len("/ceems"):]
            stranger = Browser(url)
            assert stranger.get(back).status == 403, "the state works in another browser"
            kept = dict(lin.cookies)
            home = lin.get(back)
            assert (home.status, home.headers["Location"]) == (303, "/ui/"), home.text
            assert "Path=/ceems/;" in home.headers["Set-Cookie"], home.headers
            assert lin.whoami()["user"] == "lin" and lin.whoami()["role"] == "user"
            lin.cookies = kept
            assert lin.get(back).status == 403, "the state works twice"

            def outcome():
                browser = Browser(url)
                answer = browser.get("/login/oidc")
                status = browser.get(provider.visit(answer.headers["Location"])[len("/ceems"):]).status
                return status, (browser.whoami() or {}).get("role")

            provider.claims = {"groups": ["ops"]}
            assert outcome() == (303, "admin"), outcome()
            for claims in ({"aud": "other"}, {"iss": "https://evil.example"}, {"nonce": "x"}, {"exp": 1},
                           {"preferred_username": "ceems-int-svc"}):
                provider.claims = claims
                assert outcome() == (403, None), claims
            provider.claims = {}
            provider.signed_by = "other.pem"
            assert outcome() == (403, None)
            provider.signed_by, provider.header = "key.pem", {"alg": "none"}
            assert outcome() == (403, None)
            provider.header = {"alg": "HS256", "kid": "k"}
            assert outcome() == (403, None)
            log = program.output()
            assert "s3cret" not in log and not re.search(r"eyJ[A-Za-z0-9_-]{20}", log), log


def bad_configuration():
    with scratch("ceems-login-") as d:
        users(d, ada=HASH)

        def refused(identity, *parts):
            path = write(d + "/bad.yml", config(d, identity))
            done = subprocess.run([os.path.join(BIN, "ceems_api_server"), "--config.file=" + path,
                                   "--web.listen-address=127.0.0.1:0"] + AS_ROOT, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=60)
            text = done.stdout + done.stderr
            assert done.returncode == 1, text
            assert any(all(p in line for p in parts) for line in text.splitlines()), (parts, text)

        refused("    local: {users_file: users.yml}\n", "bad.yml:", "trusted_proxies")
        refused("    locl: {users_file: users.yml}\n", "bad.yml:", "locl", "local")
        refused("    header: {enabled: false}\n    local: {users_file: none.yml}\n", "none.yml")
        refused("    header: {enabled: false}\n    oidc: {issuer: 'http://id.example', client_id: c}\n", "issuer", "https")
        refused("    header: {enabled: false}\n    oidc: {issuer: 'https://id.example', client_id: c}\n", "redirect_url")
        write(d + "/key", "0123456789" * 5, 0o644)
        refused(local(d) + "    session: {key_file: key}\n", "session key", "0600")


TESTS = [password, guessing, sessions_outlive_a_restart, header, oidc, bad_configuration]


def main():
    wanted = sys.argv[1:]
    for test in TESTS:
        if not wanted or test.__name__ in wanted:
            begin = time.monotonic()
            test()
            print("ok %s (%.1f s)" % (test.__name__, time.monotonic() - begin), flush=True)


if __name__ == "__main__":
    main()
