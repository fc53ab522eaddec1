#!/usr/bin/env python3
"""The dashboards in the repository are what their descriptions give, and valid by the types of grafana-foundation-sdk. The library is
installed below build/; the test is skipped where that cannot be done."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import ROOT, skip  # noqa: E402

GRAFANA = os.path.join(ROOT, "packaging", "grafana")
PLACE = os.path.join(ROOT, "build", "grafana")
MARK = os.path.join(PLACE, "installed")

# A dashboard that is wrong in ways which a person who edits JSON by hand would not see.
WRONG = {"panels/0/fieldConfig/defaults/unti": "watt", "panels/0/gridPos/hight": 7, "timzone": "utc", "templating/list/0/regx": "/a/"}


def library():
    """A Python with the library, or the test is skipped."""
    python = os.path.join(PLACE, "bin", "python3")
    with open(os.path.join(GRAFANA, "requirements.txt"), encoding="utf-8") as f:
        wanted = f.read()
    if os.path.exists(MARK) and open(MARK, encoding="utf-8").read() == wanted:
        return python
    if sys.version_info < (3, 11):
        skip("the library needs Python 3.11")
    made = subprocess.run([sys.executable, "-m", "venv", PLACE], capture_output=True, text=True)
    if made.returncode:
        skip("python3 -m venv: %s (Debian package python3-venv)" % made.stdout.strip().split("\n")[0])
    made = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--retries", "1",
                           "-r", os.path.join(GRAFANA, "requirements.txt")], capture_output=True, text=True)
    if made.returncode:
        if "do not match the hashes" in made.stderr.lower():
            raise AssertionError(made.stderr)
        skip("pip could not install grafana-foundation-sdk: " + made.stderr.strip().split("\n")[-1])
    with open(MARK, "w", encoding="utf-8") as f:
        f.write(wanted)
    return python


def changed(document, path, value):
    """The document with one value more."""
    copy = json.loads(json.dumps(document))
    *way, last = path.split("/")
    here = copy
    for step in way:
        here = here[int(step) if step.isdigit() else step]
    here[last] = value
    return copy


def main():
    python = library()
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    generate = os.path.join(GRAFANA, "generate")
    subprocess.run([python, generate, "--check"], check=True, env=env)
    # The check finds a file that was edited, one that is missing and one too many.
    with tempfile.TemporaryDirectory(prefix="ceems-grafana-") as directory:
        subprocess.run([python, generate, "--output", directory], check=True, env=env)
        edited, missing, more = (os.path.join(directory, "en", "users", name) for name in (
            "ceems-unit.json", "ceems-project.json", "another.json"))
        with open(edited, "a", encoding="utf-8") as f:
            f.write(" ")
        os.unlink(missing)
        with open(more, "w", encoding="utf-8") as f:
            f.write("{}")
        found = subprocess.run([python, generate, "--check", "--output", directory], capture_output=True, text=True, env=env)
        assert found.returncode == 1 and all(path[len(directory) + 1:] in found.stderr for path in (edited, missing, more)), found.stderr
        assert len(found.stderr.splitlines()) == 3, found.stderr
    # The types find names that Grafana does not know.
    with open(os.path.join(GRAFANA, "dashboards", "en", "operators", "ceems-health.json"), encoding="utf-8") as f:
        good = json.load(f)
    good["panels"] = [panel for panel in good["panels"] if panel["type"] != "row"]
    for path, value in WRONG.items():
        script = "import json, sys; sys.path.insert(0, %r); import build; print(build.differences(json.load(sys.stdin)))" % GRAFANA
        for document, expected in ((good, False), (changed(good, path, value), True)):
            found = subprocess.run([python, "-c", script], input=json.dumps(document), capture_output=True, text=True, check=True, env=env)
            assert (path.rsplit("/", 1)[-1] in found.stdout) == expected, (path, found.stdout)
            assert expected or found.stdout.strip() == "[]", found.stdout
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
