#!/usr/bin/env python3
"""Every metric family on the golden pages of the exporter must be in docs/exporter/metrics.md, the code in CONTRIBUTING.md must be part
of an example in tests/examples, the tests that docs/releases.md names must exist, each file in changes/ must hold one valid line, and
the table of rules in docs/report.md must be that of data/advice/rules, and the table of results in docs/energy-validation.md that of
data/validation.

There, names are in backquotes in the tables. {a,b} stands for each of a and b, <zone> for any word, and … for a beginning of the
full name before it in the same row."""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.abspath(__file__))
PAGES = os.path.join(TESTS, "golden", "exporter", "*.txt")
EXAMPLES = os.path.join(TESTS, "examples", "*", "*.*")
CONTRIBUTING = os.path.join(TESTS, "..", "CONTRIBUTING.md")
DOCS = os.path.join(TESTS, "..", "docs", "exporter", "metrics.md")
ADVICE = os.path.join(TESTS, "..", "data", "advice", "generate")
VALIDATION = os.path.join(TESTS, "..", "scripts", "validation")
RELEASES = os.path.join(TESTS, "..", "docs", "releases.md")
UNIT_TESTS = os.path.join(TESTS, "..", "src", "**", "*_test.cc")


def spelled_out(name):
    """All names that `name` stands for, without braces."""
    found = re.search(r"\{([^{}]*)\}", name)
    if not found:
        return [name]
    return [full for part in found.group(1).split(",")
            for full in spelled_out(name[:found.start()] + part.strip() + name[found.end():])]


def pattern(name):
    """A regular expression for the names that `name` stands for."""
    return "".join(r"\w+" if part.startswith("<") else re.escape(part) for part in re.split(r"(<\w+>)", name))


def documented(text):
    """Regular expressions for all names in the tables."""
    patterns = set()
    for row in text.splitlines():
        before = []
        for name in re.findall(r"`([^`]+)`", row) if row.startswith("|") else []:
            names = spelled_out(name)
            if re.match(r"\w+_", name):
                before = names
            elif name.startswith("…_"):
                names = [full[:end] + rest[1:] for full in before for rest in names
                         for end in (place.start() for place in re.finditer("_", full))]
            else:
                continue
            patterns.update(pattern(full) for full in names)
    return patterns


def families(pages):
    """The names of all families, each with the first page that has it."""
    found = {}
    for page in sorted(pages):
        with open(page, encoding="utf-8") as f:
            for line in f:
                if line.startswith("# TYPE "):
                    found.setdefault(line.split()[2], os.path.basename(page))
    return found


def check_myself():
    rows = "| `a_{b,c}_total`, `…_d_total` | `x` |\n| `a_<zone>_watts` | `<zone>` |\n`a_text_total`\n"
    known = documented(rows)

    def matches(name):
        return any(re.fullmatch(one, name) for one in known)

    for name, wanted in [("a_b_total", True), ("a_c_total", True), ("a_d_total", True), ("a_dram_watts", True),
                         ("a_e_total", False), ("b_total", False), ("a_text_total", False), ("a_dram_watts_total", False)]:
        assert matches(name) == wanted, name


def wrong_code():
    """The blocks of code in CONTRIBUTING.md that are not part of an example."""
    with open(CONTRIBUTING, encoding="utf-8") as f:
        blocks = re.findall(r"^( *)```(?:cpp|yaml)\n(.*?)^ *```$", f.read(), re.M | re.S)
    examples = []
    for path in glob.glob(EXAMPLES):
        with open(path, encoding="utf-8") as f:
            examples.append(f.read())
    assert len(blocks) > 5 and len(examples) > 5, "found no examples in CONTRIBUTING.md or in %s" % EXAMPLES
    return [code for code in (re.sub("^" + margin, "", block, flags=re.M) for margin, block in blocks)
            if not any(code in example for example in examples)]


def unknown_tests(text, units, scripts):
    """What is wrong with the last column of the tables in `text`, where `units` are the names of unit tests and `scripts` the texts of
    scripts by file name; and how many tests it names."""
    wrong, count = [], 0
    for row in re.findall(r"^\|(.*)\|$", text, re.M):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)]
        if cells[-1] in ("Test", "None") or set(cells[-1]) == {"-"}:
            continue
        names = re.findall(r"`([^`]+)`", cells[-1])
        count += len(names)
        if not names or re.sub(r"`[^`]+`|[, ]", "", cells[-1]):
            wrong.append("the row '%s' does not end with names of tests" % cells[0])
        for name in names:
            script, _, function = name.partition(" ")
            if script.endswith(".py"):
                known = script in scripts and (not function or re.search(r"^def %s\(" % re.escape(function), scripts[script], re.M))
            else:
                known = name in units
            if not known:
                wrong.append("the row '%s' names a test that does not exist: %s" % (cells[0], name))
    return wrong, count


def check_tests_of_releases():
    units, scripts = set(), {}
    for path in glob.glob(UNIT_TESTS, recursive=True):
        with open(path, encoding="utf-8") as f:
            units.update(map(".".join, re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)", f.read(), re.M)))
    for path in glob.glob(os.path.join(TESTS, "**", "*.py"), recursive=True):
        with open(path, encoding="utf-8") as f:
            scripts[os.path.basename(path)] = f.read()
    rows = "| What | Test |\n|---|---|\n| a | `A.B`, `x.py f` |\n| b \\| c | None |\n| d | `A.C` |\n| e | `x.py g` |\n| f | later |\n"
    assert unknown_tests(rows, {"A.B"}, {"x.py": "def f():\n"}) == ([
        "the row 'd' names a test that does not exist: A.C", "the row 'e' names a test that does not exist: x.py g",
        "the row 'f' does not end with names of tests"], 4)
    with open(RELEASES, encoding="utf-8") as f:
        wrong, count = unknown_tests(f.read(), units, scripts)
    assert len(units) > 1000 and count > 100, "found too few tests"
    return wrong


SAMPLE = {"node": {"cpu": "Some | CPU", "cpu_family": "AMD EPYC Milan", "sockets": 2, "gpus": ["A100", "A100"]}, "meter": "csv",
          "meter_model": "WT310", "sources": [{"domain": "node", "kind": "ipmi_dcmi"}],
          "errors": [{"class": "compute", "bias_percent": -40.25, "error_percent": 40.5}, {"class": "all", "bias_percent": 1, "error_percent": 3}]}


def check_validation(directory):
    """scripts/validation writes what two files of results give, and notices that the table is another."""
    def run(*arguments):
        return subprocess.run([VALIDATION, "--root", directory, *arguments], capture_output=True, text=True, check=False)

    for folder in ("docs", "data/validation", "data/power-models"):
        os.makedirs(os.path.join(directory, folder))
    files = {"docs/energy-validation.md": "before\n<!-- begin results -->\nold\n<!-- end results -->\nafter\n",
             "data/power-models/cpus.csv": "# note\nname;match\nAMD EPYC Milan;x\nARM Neoverse V2;x\nUnknown CPU;*\n",
             "data/validation/schema.json": "{}", "data/validation/a.json": json.dumps(SAMPLE),
             "data/validation/b.json": json.dumps({**SAMPLE, "errors": [{**SAMPLE["errors"][1], "error_percent": 6}]})}
    for name, text in files.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
            f.write(text)
    assert run("--check").returncode == 1 and run("--write").returncode == 0 and run("--check").returncode == 0
    with open(os.path.join(directory, "docs/energy-validation.md"), encoding="utf-8") as f:
        page = f.read()
    assert page.startswith("before\n") and page.endswith("after\n") and "| ARM Neoverse V2 | nobody yet | |" in page, page
    assert ("| AMD EPYC Milan | [2 x Some \\| CPU](../data/validation/a.json) | 2 x A100 | node: ipmi_dcmi | csv, WT310 | | -40.2 (40.5) | | | | "
            "+1.0 (3.0) |") in page, page
    assert "Unknown" not in page and "schema" not in page
    with open(os.path.join(directory, "data/validation/results.csv"), encoding="utf-8") as f:
        assert f.read().endswith("all\nAMD EPYC Milan;2;;40.5;;;;4.5\n")


def main():
    check_myself()
    with tempfile.TemporaryDirectory() as directory:
        check_validation(directory)
    pages = glob.glob(PAGES)
    with open(DOCS, encoding="utf-8") as f:
        known = re.compile("|".join(sorted(documented(f.read()))))
    found = families(pages)
    assert len(pages) > 10 and len(found) > 100, "found too few golden pages: %s" % PAGES
    faults = 0
    for name, page in sorted(found.items()):
        if not known.fullmatch(name):
            print("%s (on %s) is not in docs/exporter/metrics.md" % (name, page))
            faults += 1
    for code in wrong_code():
        print("CONTRIBUTING.md shows code that is in no file of tests/examples:\n" + code)
        faults += 1
    for arguments in (["--check"], ["bits", os.devnull, os.path.join(TESTS, "examples", "rule", "15-gpu-small.yml")]):
        faults += subprocess.run([ADVICE, *arguments], check=False).returncode != 0
    faults += subprocess.run([VALIDATION, "--check"], check=False).returncode != 0
    for wrong in check_tests_of_releases():
        print("docs/releases.md: " + wrong)
        faults += 1
    changes = subprocess.run([os.path.join(TESTS, "..", "scripts", "changelog")], capture_output=True, text=True, check=False)
    if changes.returncode != 0:
        print(changes.stderr, end="")
        faults += 1
    print("%d families, %d faults" % (len(found), faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
