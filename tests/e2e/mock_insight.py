"""Bill, budgets and idle reservations of the stand-in server, as docs/api/insight.md describes them, invented."""

import calendar
import datetime

DAY = 86_400_000
HOUR = 3_600_000
HOSTILE = "=1+1<img src=x onerror=alert(1)>"

# project, cluster, unit, amount, used, forecast, state
BUDGETS = (
    ("fluids", "hpc-a", "kgco2", 1500.0, 1104.0, (1420.0, 1580.0), "warn_0.5"),
    ("optics", None, "kwh", 20000.0, 21000.0, (23900.0, 25100.0), "over"),
    ("optics", "gpu-b", "cost", 9000.0, None, (None, None), "unknown"),
    (HOSTILE, "gpu-b", "kwh", 3000.0, 300.0, (800.0, 950.0), "ok"),
    ("waves", "hpc-a", "kwh", 100.0, 40.0, (120.0, 140.0), "ok"),
    ("*", None, "kwh", 1200000.0, 60000.0, (90000.0, 110000.0), "ok"),  # the target of the site
)

# uuid, cluster, user, project, partition, hours idle, CPUs, GPUs, watts, exempt
IDLE = (
    ("48214", "hpc-a", "ada", "fluids", "main", 3.0, 8, 1, 61.0, None),
    ("47001", "gpu-b", "lin", "optics", "gpu", 30.0, 64, 4, 612.0, None),
    ("47002", "gpu-b", "grace", HOSTILE, "gpu", 5.5, 16, 0, None, None),
    ("46999", "hpc-a", "lin", "optics", "service", 47.9, 4, 0, 40.0, "partition"),
)


def bill(query, now, meter=True, billed=False):
    """The month's parts; the first four add up to the nodes, and those with the others to the meter."""
    year, month = (int(part) for part in query["month"][0].split("-")) if "month" in query else datetime.datetime.fromtimestamp(now, datetime.timezone.utc).timetuple()[:2]
    begin = calendar.timegm((year, month, 1, 0, 0, 0)) * 1000
    end = calendar.timegm((year + month // 12, month % 12 + 1, 1, 0, 0, 0)) * 1000
    size = 0.25 if "cluster_id" in query else 1.0
    known = (year, month) >= (2020, 1)
    kwh = {"active": 61240, "reserved_idle": 14480, "system": 3110, "unallocated": 9870}
    kwh["nodes"] = sum(kwh.values())
    kwh |= {"other": 9400, "cooling": 15900}
    total = kwh["nodes"] + kwh["other"] + kwh["cooling"]
    kwh |= {"unexplained": 118000 - total, "meter": 118000} if meter else {"unexplained": None, "meter": None}
    how = {"cooling": "configured", "unexplained": "derived"}
    whole = 118000 if meter else total
    rows = []
    for part, value in kwh.items():
        value = None if value is None or not known else value * size
        row = {"part": part, "kwh": value, "share": None if value is None else value / whole / size, "how": None if value is None else how.get(part, "measured")}
        if billed:
            row["billed_kwh"] = None if value is None else round(value * 118000 / total, 3)
        if part == "nodes":
            days = [[begin + i * DAY, 2041.3 * size, (482.6 + 20 * (i % 7)) * size, 103.6 * size, 329.0 * size] for i in range((end - begin) // DAY)]
            row |= {"nodes": 400 if known else 0, "coverage": 0.998 if known else None, "measured": 0.97 if known else None, "days": days if known else []}
        elif part == "unexplained":
            row["hints"] = [{"kind": "psu_losses", "kwh": 3100 * size}, {"kind": "uncovered_nodes", "kwh": 640 * size, "node_hours": 1920}] if meter and known else []
        elif part == "meter":
            there = meter and known
            row |= {"period_start": begin, "period_end": end, "factor": 118000 / total if there else None,
                    "bills": [{"period_start": begin, "period_end": end, "kwh": 118000 * size, "cost": 28320.5 * size, "currency": "EUR", "kgco2_market": 4120 * size}] if there else []}
        rows.append(row)
    return rows


def budgets(projects, now):
    """Those of these projects; None: all."""
    year = datetime.datetime.fromtimestamp(now, datetime.timezone.utc).year
    begin, end = (calendar.timegm((year + i, 1, 1, 0, 0, 0)) * 1000 for i in (0, 1))
    return [{"project": project, "cluster_id": cluster, "unit": unit, "amount": amount, "used": used, "used_share": None if used is None else used / amount, "burn": 3.4,
             "forecast": list(forecast), "period": str(year), "from_ts": begin, "to_ts": end, "warn": [0.5, 0.8, 1], "state": state}
            for project, cluster, unit, amount, used, forecast, state in BUDGETS if projects is None or project in projects]


def idle(visible, now, priced):
    """Units for whose user and project `visible` is true, most power first."""
    ms = int(now * 1000)
    rows = []
    for uuid, cluster, user, project, partition, hours, cpus, gpus, watts, exempt in sorted(IDLE, key=lambda row: -(row[8] or 0)):
        if not visible(user, project):
            continue
        kwh = None if watts is None else watts / 1000 * hours
        row = {"cluster_id": cluster, "uuid": uuid, "user": user, "project": project, "partition": partition, "since_ts": ms - int(hours * HOUR), "idle_s": int(hours * 3600),
               "cpus": cpus, "gpus": gpus, "watts": watts, "kwh": kwh}
        if priced:
            row["cost"] = None if kwh is None else 0.25 * kwh
        rows.append(dict(row, exempt=exempt))
    return rows


def shares(visible, by):
    """Of lin's units it is not known what they did not use: they ran before it was counted."""
    rows = [("fluids", "ada", "main", "hpc-a", 812, 2950.0, 2900.0, 319.0, 2400.0, 96.0), ("optics", "lin", "gpu", "gpu-b", 96, 611.0, 600.0, 210.0, 0.0, None),
            (HOSTILE, "grace", "gpu", "gpu-b", 3, 12.0, 0.0, None, 0.0, None)]
    place = ("project", "user", "partition", "cluster").index(by)
    found = {}
    for row in rows:
        if visible(row[1], row[0]):
            sums = found.setdefault(row[place], [0, 0.0, 0.0, None, 0.0, None])
            for i, more in enumerate(row[4:]):
                sums[i] = sums[i] if more is None else (sums[i] or 0) + more
    return [{"value": value, "units": units, "kwh": kwh, "measured_kwh": measured, "idle_kwh": idle, "share": idle / measured if measured else None,
             "not_used_of_kwh": of, "not_used_kwh": unused, "not_used_share": unused / of if of else None}
            for value, (units, kwh, measured, idle, of, unused) in sorted(found.items(), key=lambda item: (-(item[1][5] or -1), -(item[1][3] or 0)))]


kFeedback = [{"rule": "gpu-unused", "answers": 40, "people": 12, "no": 3, "not_applicable": 5, "false_share": 0.2},
             {"rule": "site-rule", "answers": 8, "people": 5, "no": 6, "not_applicable": 0, "false_share": 0.75}]


def helped(visible):
    rows = [("fluids", "ada", "gpu-unused", 3, 41, 0, 1230.4, 0, 210.42), ("fluids", "ada", "oom", 1, 2, 0, 0, 0, None),
            (HOSTILE, "grace", "site-rule", 1, 3, -2.5, 0, 64.2, -0.5)]
    return [{"cluster_id": "hpc-a", "project": project, "rule": rule, "kinds": kinds, "runs": runs, "core_hours": cores, "gpu_hours": gpus,
             "gib_hours": memory, "kwh": kwh} for project, owner, rule, kinds, runs, cores, gpus, memory, kwh in rows if visible(owner, project)]


KINDS = (("year", "Energy and emissions of a year", True, False), ("month", "Energy and emissions of a month", False, True),
         ("ghg", "Greenhouse gas inventory of computing", True, True), ("eed", "Energy performance of data centres (EU)", True, True))


def report_kinds():
    return [{"kind": kind, "title": title, "help": "", "year": year, "month": month} for kind, title, year, month in KINDS]


def report(query):
    """None for a kind or period that there is not."""
    kind, period = query.get("kind", [""])[0], query.get("period", [""])[0]
    found = [one for one in KINDS if one[0] == kind and one[2 if len(period) == 4 else 3]]
    if not found:
        return None
    grid = {"factor": 52.4, "factor_unit": "g/kWh", "factor_source": "the grid's factors of each hour", "factor_date": ""}
    rows = [
        ("Energy", "active_kwh", "Active use", 61239.4512345, "kWh", "measured", 0.998, "Energy of nodes while units ran.", {}, "sum(months.active_kwh)"),
        ("Energy", "cooling_kwh", "Cooling and losses", 15900, "kWh", "modelled", 1, "PUE of the configuration times the energy of the nodes.", {}, "sum(months.cooling_kwh)"),
        ("Energy", "unexplained_kwh", "Unexplained", None, "kWh", "missing", None, "No bill covers this time.", {}, ""),
        ("Scope 2", "scope2_location", "Location-based", 4821.25, "kg", "derived", 0.96, "Energy times the factor of the grid.", grid, "sum(months.location_kg)"),
        ("Building", "floor_area_m2", "Floor area", 420, "m²", "declared", None, "", {}, ""),
        ("Projects", "sci_hostile", HOSTILE, 0.0123456, "kg", "derived", 1, HOSTILE, {}, "cell(projects.kg, 1)"),
    ]
    none = {"factor": None, "factor_unit": "", "factor_source": "", "factor_date": ""}
    lines = [{"section": section, "id": name, "label": label, "value": value, "unit": unit, "how": how, "coverage": coverage, "note": note, **none, **factor, "formula": formula}
             for section, name, label, value, unit, how, coverage, note, factor, formula in rows]
    cluster = query.get("cluster_id", [""])[0]
    return {"kind": kind, "title": found[0][1], "site": "Example Centre", "period": period, "from": f"{period[:4]}-01-01T00:00:00+0100", "to": f"{int(period[:4]) + 1}-01-01T00:00:00+0100",
            "written": "2026-11-30T12:00:00+0100", "by": "ceems_api_server 1.0.0",
            "notes": ([f"Only of the cluster {cluster}."] if cluster else []) + ["A line without a value is not known; it is never 0."],
            "lines": lines, "sources": [{"what": "table months", "detail": "parts, meters and factors by month", "sha256": "9f" * 32},
                                        {"what": "meter main (total)", "detail": "sum(increase(meter_kwh_total[1h]))", "sha256": "1c" * 32}], "appendix": {}}
