"""Lists and sums of the stand-in server, as docs/api/lists.md describes them, computed the plain way from all units."""

import base64
import datetime
import pathlib
import re

COLUMNS = ["cluster_id", "uuid", "started", "name", "user", "project", "state", "created", "ended", "wall", "cpus", "gpus", "memory", "nodes", "time_limit",
           "array", "partition", "cpu", "mem", "gpu", "gpu_mem", "peak", "gpu_idle", "kwh", "cpu_kwh", "gpu_kwh", "grams", "cost", "unused", "not_used", "advice", "verdict", "strip"]
RANGES = ["cpu", "mem", "gpu", "gpu_mem", "kwh", "unused", "not_used", "grams", "wall"]
RULES = {"48190": ["gpu-unused", "time-limit", "<i>site</i>"], "48188": ["oom"], "48213": ["good"], "48170": ["cpu-low", "mem-excess"]}
VERDICTS = {"48190": "look", "48188": "look", "48213": "fits", "48170": "smaller"}
STRIPS = {"48190": "z_zzyz_zz_zyz....zz_zz_z" + "_______zzz0000000000zzzz", "48188": "jjkjhgfedcba987654321000", "48170": "2222222222222222222111..", "48169": "<script>"}
FAILED = {"FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "ERROR", "EXIT"}


class Refused(Exception):
    pass


def documented(heading):
    """The parameters that docs/api/lists.md names below a heading."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/api/lists.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {heading}, .*?(?=^## |\Z)", text, re.M | re.S).group()
    table = re.search(r"^\| Parameter .*?(?=^$)", section, re.M | re.S)
    return {name for line in table.group().splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])} if table else set()


FILTERS = documented("units/list") - {"sort", "order", "limit", "cursor", "columns", "format"}
PARAMETERS = {
    "units/list": documented("units/list"),
    "units/summary": FILTERS | documented("units/summary"),
    "units/kinds": FILTERS | {"sort", "top"},
    "usage/series": documented("usage/series") | {"scope"},
}


def known(what, query):
    """Refuses what the server would ignore: a page that sends it expects something of it."""
    unknown = sorted(set(query) - PARAMETERS[what])
    if unknown:
        raise Refused(f"the server does not know {', '.join(unknown)}")


def number(value, digits=4):
    return None if value is None else float("%.*g" % (digits, value))


def facts(unit, names):
    """The row of a unit, by column."""
    start, end = unit.get("started_at_ts"), unit.get("ended_at_ts")
    allocation, times = unit["allocation"], unit["total_time_seconds"]
    cpu_kwh = unit.get("total_cpu_energy_usage_kwh", {}).get("total")
    gpu_kwh = unit.get("total_gpu_energy_usage_kwh", {}).get("total")
    kwh = None if cpu_kwh is None and gpu_kwh is None else (cpu_kwh or 0) + (gpu_kwh or 0)
    grams = [unit[key]["owid_total"] for key in ("total_cpu_emissions_gms", "total_gpu_emissions_gms") if key in unit]
    cpu = unit.get("avg_cpu_usage", {}).get("global")
    return {
        "cluster_id": unit["cluster_id"], "uuid": unit["uuid"], "started": start, "name": unit.get("name") if names else None,
        "user": unit["username"], "project": unit["project"], "state": unit["state"].split()[0].upper(), "created": unit["created_at_ts"], "ended": end,
        "wall": times["walltime"], "cpus": allocation["cpus"], "gpus": allocation["gpus"], "memory": allocation["mem"], "nodes": 1, "time_limit": None,
        "array": None, "partition": "main", "cpu": number(cpu), "mem": number(unit.get("avg_cpu_mem_usage", {}).get("global")),
        "gpu": number(unit.get("avg_gpu_usage", {}).get("global")), "gpu_mem": None, "peak": None, "gpu_idle": None, "kwh": number(kwh),
        "cpu_kwh": number(cpu_kwh), "gpu_kwh": number(gpu_kwh), "grams": number(sum(grams)) if grams else None, "cost": None,
        "unused": number(None if cpu is None or kwh is None else 0.5 * kwh * (1 - cpu / 100)),
        "not_used": number(None if cpu is None or kwh is None else 0.3 * kwh * (1 - cpu / 100)), "advice": RULES.get(unit["uuid"], []), "verdict": VERDICTS.get(unit["uuid"]), "strip": STRIPS.get(unit["uuid"]) if names else None,
        "core_hours": allocation["cpus"] * times["walltime"] / 3600, "gpu_hours": allocation["gpus"] * times["walltime"] / 3600,
    }


def values(query, key):
    return [part for value in query.get(key, []) for part in value.split(",") if part]


def limits(text):
    low, dots, high = text.partition("..")
    return (float(low or "-inf"), float(high or "inf")) if dots else (float(low), float(low))


def wanted(row, query):
    if "from" in query or "to" in query or not ("q" in query or "uuid" in query):
        begin, end = float(query["from"][0]) * 1000, float(query["to"][0]) * 1000
        if not ("running" in query if row["ended"] is None else begin <= row["ended"] <= end):
            return False
    for key, column in (("uuid", "uuid"), ("cluster_id", "cluster_id"), ("project", "project"), ("user", "user"), ("partition", "partition")):
        if key in query and row[column] not in values(query, key):
            return False
    states = [state.upper() for state in values(query, "state")]
    if states and not (row["state"] in states or ("RUNNING" in states and row["ended"] is None) or ("FAILED" in states and row["state"] in FAILED)):
        return False
    for key in RANGES:
        if key in query:
            low, high = limits(query[key][0])
            if row[key] is None or not low <= row[key] <= high:
                return False
    advice = values(query, "advice")
    if advice and not any(rule in advice or ("any" in advice and rule != "good") for rule in row["advice"]):
        return False
    hay = [str(row[key] or "").lower() for key in ("name", "user", "project")]
    return all(any(word in text for text in hay) or row["uuid"].lower().startswith(word) for word in " ".join(query.get("q", [])).lower().split())


def ordered(rows, query):
    column = query.get("sort", ["ended"])[0]
    if column not in COLUMNS:
        raise Refused("sort: unknown column %s" % column)
    text = column in ("cluster_id", "uuid", "name", "user", "project", "state")
    down = query.get("order", ["asc" if text else "desc"])[0] == "desc"
    rank = {"fits": 0, "smaller": 1, "look": 2}
    key = ((lambda row: row["ended"] or 9e15) if column == "ended" else (lambda row: rank.get(row["verdict"])) if column == "verdict"
           else (lambda row: row[column]))
    rows = sorted(rows, key=lambda row: -(row["started"] or 0))
    known = sorted((row for row in rows if key(row) is not None), key=key, reverse=down)
    return known + [row for row in rows if key(row) is None]


def page(rows, query):
    """(data, members beside it)"""
    columns = values(query, "columns") or COLUMNS[:-1]
    for column in columns:
        if column not in COLUMNS:
            raise Refused("columns: unknown column %s" % column)
    limit = int(query.get("limit", ["100"])[0])
    at = 0
    if "cursor" in query:
        at = int(base64.b64decode(query["cursor"][0]))
    rows = ordered([row for row in rows if wanted(row, query)], query)
    more = {}
    if at + limit < len(rows):
        more["next"] = base64.b64encode(b"%d" % (at + limit)).decode()
    if at > 0:
        more["previous"] = base64.b64encode(b"%d" % max(0, at - limit)).decode()
    return {"columns": columns, "rows": [[row[column] for column in columns] for row in rows[at:at + limit]]}, more


def csv(rows, query):
    def cell(value):
        if value is None:
            return ""
        text = str(value)
        if isinstance(value, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r"):
            text = "'" + text
        return '"%s"' % text.replace('"', '""') if any(c in text for c in ',"\r\n') else text
    columns = values(query, "columns") or COLUMNS
    rows = ordered([row for row in rows if wanted(row, query)], query)
    return "".join(",".join(map(cell, line)) + "\r\n" for line in [columns, *[[row[c] for c in columns] for row in rows]])


def summary(rows, query):
    rows = [row for row in rows if wanted(row, query)]

    def total(key, of=rows):
        known = [row[key] for row in of if row[key] is not None]
        return number(sum(known), 6) if known else None

    def facet(name):
        column = {"cluster": "cluster_id"}.get(name, name)
        groups = {}
        for row in rows:
            for value in row[column] if name == "advice" else [row[column]]:
                groups.setdefault(value, []).append(row)
        found = sorted(([value, len(group), total("kwh", group)] for value, group in groups.items()), key=lambda item: -item[1])
        rest = found[20:]
        return found[:20] + ([["(others)", sum(r[1] for r in rest), number(sum(r[2] or 0 for r in rest), 6)]] if rest else [])
    cpu = [row for row in rows if row["cpu"] is not None]
    gpu = [row for row in rows if row["gpu"] is not None]
    return {
        "count": len(rows), "running": sum(row["ended"] is None for row in rows), "kwh": total("kwh"), "cpu_kwh": total("cpu_kwh"), "gpu_kwh": total("gpu_kwh"),
        "grams": total("grams"), "cost": None, "core_hours": total("core_hours"), "core_hours_measured": total("core_hours", cpu),
        "core_hours_used": sum(row["core_hours"] * row["cpu"] / 100 for row in cpu), "gpu_hours": total("gpu_hours"),
        "gpu_hours_measured": total("gpu_hours", gpu), "gpu_hours_used": sum(row["gpu_hours"] * row["gpu"] / 100 for row in gpu),
        "core_hours_with_energy": total("core_hours", [row for row in rows if row["kwh"] is not None]),
        "gpu_hours_with_energy": total("gpu_hours", [row for row in rows if row["kwh"] is not None]),
        "idle_kwh": total("unused"), "idle_of_kwh": total("kwh", [row for row in rows if row["unused"] is not None]) or 0, "idle_measured": len(cpu),
        "not_used_kwh": total("not_used"), "not_used_of_kwh": total("kwh", cpu) or 0, "not_used_measured": len(cpu), "facets": {name: facet(name) for name in values(query, "facets")},
        **({"heat": heat(rows, *values(query, "heat"), int(query.get("bins", ["20"])[0]))} if "heat" in query else {}),
    }


def kinds(rows, query):
    """Units of one cluster, user and project whose names differ in numbers only."""
    sort, top = query.get("sort", ["not_used"])[0], int(query.get("top", ["20"])[0])
    if sort not in ("unused", "not_used", "kwh", "units", "ended"):
        raise Refused("'sort': expected unused, not_used, kwh, units or ended")
    groups = {}
    for row in rows:
        if wanted(row, query):
            name = None if row["name"] is None else re.sub(r"\d+", "#", row["name"])
            groups.setdefault((row["cluster_id"], row["user"], row["project"], name), []).append(row)

    def total(of, key):
        known = [row[key] for row in of if row[key] is not None]
        return sum(known) if known else None

    def mean(of, key):
        known = [row for row in of if row[key] is not None]
        return number(sum(row[key] * row["wall"] for row in known) / sum(row["wall"] for row in known)) if any(row["wall"] for row in known) else None

    def half(of, later):
        middle = 500 * (float(query["from"][0]) + float(query["to"][0]))
        known = [row["kwh"] for row in of if row["ended"] and row["kwh"] is not None and (row["ended"] >= middle) == later]
        return number(sum(known) / len(known)) if known else None

    def finding(of):
        for row in sorted(of, key=lambda row: -(row["ended"] or 0)):
            rules = [rule for rule in row["advice"] if rule != "good"]
            if rules and row["ended"]:
                return {"uuid": row["uuid"], "started_at_ts": row["started"], "rule": rules[0], "severity": "important", "runs": 8, "values": {}, "saves_kwh": None}
        return None
    found = [{"cluster_id": cluster, "user": user, "project": project, "name": name, "units": len(of), "running": sum(row["ended"] is None for row in of),
              "failed": sum(row["state"] in FAILED for row in of), "measured": sum(row["kwh"] is not None for row in of), "kwh": number(total(of, "kwh")), "unused": number(total(of, "unused")),
              "unused_of": number(total([row for row in of if row["unused"] is not None], "kwh") or 0), "not_used": number(total(of, "not_used")), "not_used_of": number(total([row for row in of if row["not_used"] is not None], "kwh") or 0),
              "grams": number(total(of, "grams")), "cpu": mean(of, "cpu"), "mem": mean(of, "mem"), "gpu": mean(of, "gpu"), "kwh_before": half(of, False),
              "kwh_since": half(of, True), "ended": max((row["ended"] or 0 for row in of), default=None) or None, "finding": finding(of)}
             for (cluster, user, project, name), of in groups.items()]
    found.sort(key=lambda kind: -(kind[sort] or 0))
    return {"kinds": found[:top], "more": len(found) > top}


def heat(rows, x, y, bins):
    cells = {}
    for row in rows:
        if row[x] is not None and row[y] is not None:
            cells.setdefault(tuple(min(bins - 1, int(row[key] * bins / 100)) for key in (x, y)), []).append(row)
    return {"x": x, "y": y, "bins": bins, "cells": [[*at, len(of), number(sum(row["kwh"] or 0 for row in of), 6)] for at, of in sorted(cells.items())]}


def by_hour(rows, query, now, mode):
    """Energy by hour, as evenly as the units ran. `mode`: "ok"; "gaps": three hours were not measured, and a cluster never is; "none": an older
    server; "silent": no TSDB answers."""
    begin, end = float(query["from"][0]), float(query["to"][0])
    fields = values(query, "field") or ["kwh"]
    if mode == "none":
        raise Refused("step: expected day or month, got hour")
    if fields != ["kwh"] or end - begin > 14 * 86400 or begin > end:
        raise Refused("field or period: not by hour")
    by = query.get("by", ["none"])[0]
    hours = [hour * 3600 for hour in range(int(begin // 3600), int(end // 3600) + 1)]
    unmeasured = [hour for hour in hours if mode == "silent" or (mode == "gaps" and 8 * 3600 <= now - hour < 11 * 3600)]
    cells = {}
    for row in rows:
        if row["started"] is None or ("user" in query and row["user"] not in values(query, "user")):
            continue
        started, ended = row["started"] / 1000, (row["ended"] or now * 1000) / 1000
        parts = {"cpu": row["cpu_kwh"], "gpu": row["gpu_kwh"]} if by == "component" else {row[{"cluster": "cluster_id"}.get(by, by)] if by != "none" else "(all)": row["kwh"]}
        for name, kwh in parts.items():
            line = cells.setdefault(name, [0 if hour <= now else None for hour in hours])
            for i, hour in enumerate(hours):
                ran = min(hour + 3600, ended) - max(hour, started)
                if ran > 0 and kwh is not None:
                    line[i] = None if hour in unmeasured else line[i] + kwh * ran / (ended - started)
    for line in cells.values():
        line[:] = [None if hour in unmeasured and mode == "gaps" else number(value) for hour, value in zip(hours, line)]
    order = sorted(cells, key=lambda name: -sum(value or 0 for value in cells[name]))
    missing = {"ok": [], "gaps": [("gpu-b", "no_tsdb")], "silent": [("hpc-a", "unavailable"), ("gpu-b", "no_tsdb")]}[mode]
    return {"step": "hour", "groups": order, "times": [1000 * hour for hour in hours], "values": {"kwh": [cells[name] for name in order]},
            "totals": {"kwh": [sum(value or 0 for value in cells[name]) for name in order]}, "missing": [{"cluster_id": name, "reason": why} for name, why in missing]}


# What a field of sums by day is in a list. All units of the model that know their energy know these parts of it.
NAMES = {"idle_kwh": "unused", "not_used_kwh": "not_used", "idle_of_kwh": "kwh", "not_used_of_kwh": "kwh", "grams_of_kwh": "kwh", "market_of_kwh": "kwh",
         "market_grams": "kwh"}
MARKET_G_PER_KWH = 20.0  # of the bills


def series(rows, query):
    """Sums by day or month over the days on which units ended."""
    step = query.get("step", ["day"])[0]
    by = query.get("by", ["none"])[0]
    fields = values(query, "field") or ["kwh"]
    top = int(query.get("top", ["5"])[0])
    begin, end = float(query["from"][0]), float(query["to"][0])

    def floor(seconds):
        day = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
        return day.replace(day=1) if step == "month" else day

    def following(day):
        return day + datetime.timedelta(days=1) if step == "day" else (day.replace(day=28) + datetime.timedelta(days=4)).replace(day=1)

    def table(begin, end, groups=None):
        times, day = [], floor(begin)
        while day.timestamp() < end:
            times.append(int(day.timestamp() * 1000))
            day = following(day)
        cells = {}
        for row in rows:
            if any(key in query and row[column] not in values(query, key) for key, column in (("project", "project"), ("user", "user"), ("cluster_id", "cluster_id"))):
                continue
            when = int(floor((row["ended"] or row["started"] or 0) / 1000).timestamp() * 1000)
            if when not in times:
                continue
            names = [("(all)", 1)] if by == "none" else [(row[{"cluster": "cluster_id"}.get(by, by)], 1)] if by != "component" else [("cpu", "cpu_kwh"), ("gpu", "gpu_kwh")]
            for name, of in names:
                for field in fields:
                    share = 1 if field == "units" else (row[NAMES.get(field, field) if of == 1 else of] or 0) * (MARKET_G_PER_KWH if field == "market_grams" else 1)
                    cells[name, field, when] = cells.get((name, field, when), 0) + share
        sums = {}
        for (name, field, _), value in cells.items():
            if field == fields[0]:
                sums[name] = sums.get(name, 0) + value
        order = groups or sorted(sums, key=lambda name: -sums[name])
        kept = order if groups or len(order) <= top else order[:top] + ["(others)"]
        place = {name: name if name in kept else "(others)" for name in sums}
        found = {field: [[0.0] * len(times) for _ in kept] for field in fields}
        for (name, field, when), value in cells.items():
            if place.get(name) in kept:
                found[field][kept.index(place[name])][times.index(when)] += value
        return {"groups": kept, "times": times, "values": found, "totals": {field: [number(sum(line), 6) for line in lines] for field, lines in found.items()}}
    data = table(begin, end)
    if "market_grams" in fields:
        known = sum(sum(line) for line in data["values"].get("market_of_kwh", []))
        data["market"] = [{"bills": True, "source": "", "kwh": number(0.75 * known, 6)}, {"bills": False, "source": "guarantees of origin, hydro", "kwh": number(0.25 * known, 6)}]
    if "previous" in query:
        before = table(begin - (end - begin), begin, data["groups"])
        data["previous"] = {key: before[key] for key in ("times", "values", "totals")}
        data["compared"] = {"days": int((end - begin) / 86400) + 1, "coverage": 1, "energy_coverage": 1, "now": data["totals"], "before": before["totals"]}
    return dict(data, step=step)


def series_file(data):
    """The first field as CSV. A workbook is the same here: the page only passes it on."""
    field = next(iter(data["values"]))
    rows = ["%d,%s,%r" % (ms, group, data["values"][field][i][j]) for j, ms in enumerate(data["times"]) for i, group in enumerate(data["groups"])]
    return "\r\n".join(["time,group," + field, *rows, ""])
