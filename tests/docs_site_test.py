#!/usr/bin/env python3
"""The documentation: no link, anchor or page is broken and no page is outside the navigation; no word is misspelled; docs/reference is
what the programs print; flags in commands and configurations in the docs are those of the programs.

Commands of other programs, and what a site has to fill in, are not run."""

import glob
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent
BIN = pathlib.Path(os.environ.get("CEEMS_BIN_DIR", ROOT / "build" / "bin"))
sys.path.insert(0, str(TESTS / "integration"))
sys.dont_write_bytecode = True
from harness import skip  # noqa: E402

PROGRAMS = ["ceems_exporter", "ceems_api_server", "ceems_lb", "ceems_mail", "ceems_mark", "cacct", "ceems_tool", "redfish_proxy", "ceems_k8s_admission_controller"]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.M | re.S)
# Sections by which `ceems_tool check config` knows a file.
OURS = re.compile(r"(?m)^(ceems_api_server|ceems_lb|clusters|updaters|redfish_proxy|ceems_cacct):")


def pages():
    names = subprocess.run(["git", "ls-files", "README.md", "docs/*.md", "SECURITY.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in names.stdout.split() if "docs/reference/" not in name]


def blocks(name, languages):
    """(number of the line, text) of the code blocks of a page in these languages."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        if found.group(2) in languages:
            indent = found.group(1)
            lines = [line[len(indent):] if line.startswith(indent) else line for line in found.group(3).splitlines()]
            yield text.count("\n", 0, found.start()) + 2, "\n".join(lines)


def help_of(program, cache={}):  # noqa: B006: a cache
    """The help of the program and its commands, as docs/reference has it, which is compared with the program itself."""
    if program not in cache:
        cache[program] = (ROOT / "docs" / "reference" / (program + ".md")).read_text(encoding="utf-8")
    return cache[program]


def flags_of(line):
    """(program, flag) for each flag that a line of shell gives to one of our programs."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    program = None
    for word in words:
        if word in ("|", ";", "&&", "||", "&"):
            program = None
        elif os.path.basename(word) in PROGRAMS:
            program = os.path.basename(word)
        elif program and word.startswith("--") and len(word) > 2:
            yield program, word.split("=")[0].rstrip(";")


def known(program, flag):
    text = help_of(program)
    name = re.escape(flag[2:])
    plain = re.escape(flag[5:]) if flag.startswith("--no-") else name
    hidden = ("--help", "--help-man", "--help-long", "--version", "--once", "--json")
    return flag in hidden or re.search(r"--(\[no-\])?(%s|%s)(?![\w.-]*\w)" % (name, plain), text) is not None


def unknown_flags():
    wrong = []
    for name in pages():
        for number, text in blocks(name, ("sh", "console", "bash")):
            for offset, line in enumerate(text.replace("\\\n", " ").splitlines()):
                wrong += ["%s:%d: %s has no flag %s" % (name, number + offset, program, flag)
                          for program, flag in flags_of(line.lstrip("$ ")) if not known(program, flag)]
    return wrong


def wrong_configurations(directory):
    wrong = []
    for name in pages():
        for number, text in blocks(name, ("yaml", "yml")):
            if not OURS.search(text) or "…" in text:
                continue
            path = os.path.join(directory, "config.yml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text + "\n")
            done = subprocess.run([BIN / "ceems_tool", "check", "config", path], capture_output=True, text=True, check=False,
                                  env={**os.environ, "OS_SECRET": "s"})
            unknown = [line for line in (done.stdout + done.stderr).splitlines() if "unknown key" in line or "expected" in line]
            wrong += ["%s:%d: %s" % (name, number, line) for line in unknown]
    return wrong


def main():
    missing = [name for name in ("codespell",) if not shutil.which(name)]
    if missing or not glob.glob("/usr/share/doc/python3-sphinx*"):
        skip("not installed: Sphinx, MyST, Furo or codespell (scripts/setup test)")
    problems = []
    built = subprocess.run([ROOT / "scripts" / "docs"], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        problems.append(built.stdout + built.stderr)
    spelled = subprocess.run([ROOT / "scripts" / "docs", "spelling"], capture_output=True, text=True, check=False)
    if spelled.returncode != 0:
        problems.append(spelled.stdout + spelled.stderr)
    with tempfile.TemporaryDirectory(prefix="ceems-docs-") as directory:
        problems += unknown_flags() + wrong_configurations(directory)
        for program in PROGRAMS:
            said = subprocess.run([ROOT / "scripts" / "docs", "page", program], check=True, capture_output=True, text=True,
                                  env={**os.environ, "CEEMS_BIN_DIR": str(BIN)}).stdout
            if said != (ROOT / "docs" / "reference" / (program + ".md")).read_text(encoding="utf-8"):
                problems.append("docs/reference/%s.md: not what the program prints; run scripts/docs reference" % program)
    assert not problems, "\n".join(problems)
    print("ok: %d pages" % len(pages()))


if __name__ == "__main__":
    sys.exit(main())
