#!/usr/bin/env python3
"""Computes all lines of a report again from its appendix, and compares the formats.

recompute.py REPORT.json [REPORT.csv] [REPORT.xlsx] [REPORT.md] [REPORT.html]

It shares no code with the program. It exits with 1 and says what differs.
"""
import collections
import csv
import hashlib
import html.parser
import io
import json
import re
import sys
import xml.etree.ElementTree
import zipfile

TOLERANCE = 1e-9
failures = []


def check(what, got, expected, scale=0.0):
    """Compares two numbers; `scale` is the largest number that was added up to them."""
    if got is None or expected is None:
        if got is not expected:
            failures.append(f"{what}: {got} and not {expected}")
        return
    allowed = TOLERANCE * max(abs(got), abs(expected), scale)
    if not abs(got - expected) <= allowed:
        failures.append(f"{what}: {got} and not {expected}")


def column(report, name):
    table, field = name.split(".")
    return [row[field] for row in report["appendix"][table]]


def known_sum(values):
    known = [value for value in values if value is not None]
    return sum(known) if known else 0.0


class Formula:
    """sum(table.column), cell(table.column, row), line(id), numbers, + - * / and parentheses."""

    TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?(?:e[-+]?\d+)?)|(sum|cell|line)\(([^()]*)\)|([-+*/()]))")

    def __init__(self, text, report):
        self.report = report
        self.tokens = []
        self.scale = 0.0
        at = 0
        while at < len(text):
            match = self.TOKEN.match(text, at)
            if not match:
                raise ValueError(f"not a formula: {text}")
            self.tokens.append(match)
            at = match.end()

    def value(self):
        result = self.terms()
        if self.tokens:
            raise ValueError("text behind a formula")
        return result

    def next_is(self, signs):
        return self.tokens and self.tokens[0].group(4) and self.tokens[0].group(4) in signs

    def terms(self):
        result = self.factors()
        self.scale = max(self.scale, abs(result))
        while self.next_is("+-"):
            sign = self.tokens.pop(0).group(4)
            term = self.factors()
            self.scale = max(self.scale, abs(term))
            result = result + term if sign == "+" else result - term
        return result

    def factors(self):
        result = self.atom()
        while self.next_is("*/"):
            sign = self.tokens.pop(0).group(4)
            factor = self.atom()
            result = result * factor if sign == "*" else result / factor
        return result

    def atom(self):
        token = self.tokens.pop(0)
        if token.group(1):
            return float(token.group(1))
        if token.group(2) == "sum":
            return known_sum(column(self.report, token.group(3)))
        if token.group(2) == "cell":
            name, row = token.group(3).split(",")
            return column(self.report, name)[int(row) - 1]
        if token.group(2) == "line":
            return next(line["value"] for line in self.report["lines"] if line["id"] == token.group(3))
        if token.group(4) == "(":
            result = self.terms()
            self.tokens.pop(0)
            return result
        raise ValueError("a sign where a number is expected")


def check_lines(report):
    computed = 0
    for line in report["lines"]:
        if line["value"] is None:
            if line["how"] != "missing" or line["formula"]:
                failures.append(f"{line['id']}: no value, but {line['how']}")
            continue
        if line["how"] == "declared" and not line["formula"]:
            continue
        formula = Formula(line["formula"], report)
        value = formula.value()
        check(line["id"], line["value"], value, formula.scale)
        computed += 1
    return computed


def check_months(report):
    """The table of months from those of days and of bills."""
    tables = report["appendix"]
    if "months" not in tables:
        return
    parts = {"nodes_kwh": "energy_kwh", "reserved_idle_kwh": "idle_kwh", "system_kwh": "system_kwh",
             "unallocated_kwh": "unallocated_kwh"}
    for month in tables["months"]:
        name = month["month"]
        days = [day for day in tables["node_days"] if day["day"].startswith(name)]
        for to, of in parts.items():
            check(f"{name} {to}", month[to], sum(day[of] for day in days) if month[to] is not None else None)
        known = known_sum([month["nodes_kwh"], month["other_kwh"], month["cooling_kwh"]])
        if month["billed_share"] == 1 and month["known_billed_kwh"] is not None:
            check(f"{name} known", month["known_billed_kwh"], known)
            # The parts are the meter, to a millionth.
            gap = known + month["unexplained_kwh"] - month["meter_kwh"]
            if abs(gap) > 1e-6 * month["meter_kwh"]:
                failures.append(f"{name}: {gap} kWh are lost")
        bills = [bill for bill in tables["bills"] if bill["from"].startswith(name)]
        if month["basis"] == "bill" and bills:
            check(f"{name} bill", month["energy_kwh"], sum(bill["kwh"] for bill in bills))
        used = [day for day in tables.get("usage_days", []) if day["day"].startswith(name)]
        for kind, grams, of in [("location", "grams", "grams_of_kwh"), ("market", "market_grams", "market_of_kwh")]:
            kwh = known_sum([day[of] for day in used])
            factor = known_sum([day[grams] for day in used]) / kwh if kwh else None
            check(f"{name} {kind}", month[f"{kind}_g_kwh"], factor)
            if factor is not None and month["energy_kwh"] is not None:
                check(f"{name} {kind}_kg", month[f"{kind}_kg"], month["energy_kwh"] * factor / 1000)


def check_hardware(report):
    tables = report["appendix"]
    if not tables.get("hardware"):
        return
    rates = collections.defaultdict(float)
    for row in tables["hardware"]:
        check(row["class"], row["kg"], row["kg_per_node"] * row["node_hours"] / row["lifetime_hours"])
    values = {line["id"]: line["value"] for line in report["lines"]}
    check("embodied", values["embodied"], values["embodied_projects"] + values["embodied_unallocated"])
    if abs(values["embodied"] - values["embodied_projects"] - values["embodied_unallocated"]) > 1e-6:
        failures.append("embodied: groups and the site do not make the total")
    # Nodes of classes without an entry share as well, but have no row.
    whole = all(line["coverage"] == 1 for line in report["lines"] if line["id"] == "embodied")
    if whole and len({row["cluster"] for row in tables["hardware"]}) == 1:
        for row in tables["hardware"]:
            gpu = row["gpu_share"] if row["gpu_hours"] > 0 else 0
            rates["cpu"] += row["kg"] * (1 - gpu)
            rates["gpu"] += row["kg"] * gpu
            rates["core_hours"] += row["core_hours"]
            rates["gpu_hours"] += row["gpu_hours"]
        for row in tables["projects"]:
            kg = rates["cpu"] * row["core_hours"] / rates["core_hours"]
            if rates["gpu_hours"]:
                kg += rates["gpu"] * row["gpu_hours"] / rates["gpu_hours"]
            check(f"embodied of {row['project']}", row["embodied_kg"], kg)


def cell_of(text):
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def cells_of_json(row):
    return ["" if value is None else value for value in row.values()]


def compare_tables(form, report, tables):
    """Tables of another format, as lists of rows without the head, by name."""
    expected = {"Lines": report["lines"], "Sources": report["sources"], **report["appendix"]}
    for name, rows in expected.items():
        got = tables.get(name)
        if got is None or len(got) != len(rows):
            failures.append(f"{form}: the table {name} has {None if got is None else len(got)} rows, not {len(rows)}")
            continue
        for row, cells in zip(rows, got):
            for value, cell in zip(cells_of_json(row), cells):
                if isinstance(value, float | int):
                    if cell_of(cell) != value:
                        failures.append(f"{form}: {name}: {cell} and not {value}")
                elif form != "md" and cell.lstrip("'") != value.lstrip("'"):
                    failures.append(f"{form}: {name}: {cell!r} and not {value!r}")


def tables_of_csv(path, report):
    with open(path, newline="", encoding="utf-8") as file:
        text = file.read()
    tables = {}
    hashes = {source["what"]: source["sha256"] for source in report["sources"]}
    for part in text.split("\r\n\r\n")[1:]:
        title, _, body = part.partition("\r\n")
        name = title.split(",", 1)[1]
        body = body.rstrip("\r\n") + "\r\n"
        tables[name] = list(csv.reader(io.StringIO(body)))[1:]
        if f"table {name}" in hashes:
            found = hashlib.sha256(body.encode()).hexdigest()
            if found != hashes[f"table {name}"]:
                failures.append(f"csv: the hash of {name} is {found}")
    return tables


def tables_of_xlsx(path):
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    tables = {}
    with zipfile.ZipFile(path) as book:
        strings = ["".join(text.text or "" for text in item.iter(space + "t"))
                   for item in xml.etree.ElementTree.fromstring(book.read("xl/sharedStrings.xml"))]
        sheets = xml.etree.ElementTree.fromstring(book.read("xl/workbook.xml")).iter(space + "sheet")
        for number, sheet in enumerate(sheets, 1):
            rows = []
            root = xml.etree.ElementTree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml"))
            for row in root.iter(space + "row"):
                cells = {}
                for cell in row.iter(space + "c"):
                    value = cell.find(space + "v")
                    if value is not None:
                        letters = re.match("[A-Z]+", cell.get("r")).group()
                        at = 0
                        for letter in letters:
                            at = at * 26 + ord(letter) - 64
                        cells[at - 1] = strings[int(value.text)] if cell.get("t") == "s" else value.text
                rows.append(cells)
            width = 1 + max((at for cells in rows for at in cells), default=0)
            tables[sheet.get("name")] = [[cells.get(at, "") for at in range(width)] for cells in rows[1:]]
    return tables


def tables_of_markdown(path):
    tables = {}
    name = None
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = re.sub(r"\\(?=[^|\w\s])", "", line.rstrip("\n"))
            line = line.replace("\\_", "_")
            if line.startswith("### "):
                name = line[4:]
                tables[name] = []
            elif line.startswith("## "):
                name = None
            elif name and line.startswith("| "):
                tables[name].append([cell.strip() for cell in line[1:-1].split(" |")])
    return {name: rows[1:] for name, rows in tables.items()}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tables, self.name, self.row, self.text = {}, None, None, None

    def handle_starttag(self, tag, attrs):
        if tag in ("caption", "td", "th"):
            self.text = ""
        if tag == "tr":
            self.row = []

    def handle_endtag(self, tag):
        if tag == "caption":
            self.name = self.text
            self.tables[self.name] = []
        elif tag in ("td", "th"):
            self.row.append(self.text)
        elif tag == "tr":
            self.tables[self.name].append(self.row)

    def handle_data(self, data):
        if self.text is not None:
            self.text += data


def tables_of_html(path):
    page = Page()
    with open(path, encoding="utf-8") as file:
        page.feed(file.read())
    return {name: rows[1:] for name, rows in page.tables.items()}


def main(paths):
    with open(paths[0], encoding="utf-8") as file:
        report = json.load(file)
    computed = check_lines(report)
    check_months(report)
    check_hardware(report)
    for path in paths[1:]:
        form = path.rsplit(".", 1)[1]
        read = {"xlsx": tables_of_xlsx, "md": tables_of_markdown, "html": tables_of_html}
        tables = tables_of_csv(path, report) if form == "csv" else read[form](path)
        compare_tables(form, report, tables)
    for failure in failures[:20]:
        print(failure)
    print(f"{report['kind']}: {computed} lines computed again, {len(failures)} differences")
    return 1 if failures or computed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
