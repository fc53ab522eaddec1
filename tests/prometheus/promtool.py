"""Runs promtool on the rules of packaging/prometheus."""

import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(ROOT, "packaging", "prometheus")
sys.path.insert(0, RULES)

from tables import Settings, alerts, compat, energy, site  # noqa: E402, F401


def program_as_module(path):
    loader = importlib.machinery.SourceFileLoader("generate", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("generate", loader))
    loader.exec_module(module)
    return module


GENERATE = program_as_module(os.path.join(RULES, "generate"))


def need_promtool():
    if not shutil.which("promtool"):
        print("SKIPPED: promtool is not installed (Debian: prometheus)")
        sys.exit(77)


def rule_file(name):
    return os.path.join(RULES, name)


def run(*arguments):
    """(exit status, output) of promtool."""
    result = subprocess.run(["promtool", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
                            timeout=240)
    return result.returncode, result.stdout


def test_rules(files, tests, step="30s"):
    """Evaluates rules as `promtool test rules` does. JSON is YAML as well."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "test.yml")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"rule_files": files, "evaluation_interval": step, "tests": tests}, f)
        return run("test", "rules", path)


def labels_text(labels):
    return "{%s}" % ",".join("%s=%s" % (name, json.dumps(value)) for name, value in sorted(labels.items()))


def records(groups):
    return [rule for group in groups for rule in group.rules]
