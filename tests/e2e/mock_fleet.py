"""Nodes and grid of the stand-in server, as docs/api/lists.md describes them, invented."""

import base64
import math
import random
import time

CLUSTERS = ["gpu-b", "hpc-a"]
COLUMNS = ["cluster_id", "host", "state", "units", "cpus", "cpu", "mem", "gpu", "gpus", "watts", "idle_since", "idle_kwh", "seen"]
HOUR = 3_600_000


def all_nodes(now):
    """126 nodes: n007, n014, ... are idle, n050 is silent, and the last two have been idle for more than two days."""
    ms = int(now * 1000)
    nodes = []
    for i in range(1, 121):
        idle, silent = i % 7 == 0 or i > 118, i == 50
        nodes.append({
            "cluster_id": "hpc-a", "host": "n%03d" % i, "state": "silent" if silent else "idle" if idle else "busy", "units": None if silent else 0 if idle else 1 + i % 3,
            "cpus": 64, "cpu": None if silent else 0.4 if idle else round(99 - i / 2, 2), "mem": None if silent else 3.1 if idle else 20 + i / 3, "gpu": None, "gpus": None,
            "watts": None if silent else 150 if idle else 300 + i, "idle_since": None if not idle or i > 118 else ms - i * HOUR // 3, "idle_kwh": round(0.5 * i, 4),
            "seen": ms - (2 * HOUR if silent else 15_000)})
    for i in range(1, 7):
        nodes.append({
            "cluster_id": "gpu-b", "host": "g%d" % i, "state": "busy" if i > 1 else "idle", "units": 1 if i > 1 else 0, "cpus": 32, "cpu": 40.0 + i if i > 1 else 0.2, "mem": 31.5,
            "gpu": 11.0 * i if i > 1 else 0.0, "gpus": 4, "watts": 1800 + 10 * i, "idle_since": ms - 90 * HOUR // 60 if i == 1 else None, "idle_kwh": 12.5, "seen": ms - 15_000})
    return nodes


def all_racked(now, fleet):
    """The nodes with rack, place in it, and their last 24 hours. `big`: 512 nodes with 4 GPUs each, whose jobs last for hours."""
    if fleet != "big":
        nodes = all_nodes(now)
    else:
        draw = random.Random(1)
        nodes = []
        for i in range(512):
            use = [0 if draw.random() < 0.2 else draw.randrange(70, 101) for _ in range(8)]
            nodes.append({"cluster_id": "gpu-b", "host": "gpu%03d" % (i + 1), "state": "busy", "units": 1, "cpus": 64, "cpu": draw.randrange(1000) / 10, "mem": draw.randrange(1000) / 10,
                          "gpu": use[-1], "gpus": 4, "watts": 600 + 9 * use[-1] + draw.randrange(60), "idle_since": None, "idle_kwh": 1.0, "seen": int(now * 1000) - 15_000, "use": use})
    for i, node in enumerate(nodes):
        number = int(node["host"].lstrip("gpun"))
        node["rack"], node["slot"] = ("R%d" % ((number - 1) // 30 + 1), (number - 1) % 30 + 1) if node["cluster_id"] == "hpc-a" or fleet == "big" else (None, None)
        use = node.get("use") or [(17 * i + 7 * k) % 100 for k in range(8)]
        letter = {"busy": "b", "idle": "i", "silent": "s"}[node["state"]]
        node["states"] = "b" * 12 + letter * 12
        by_hour = [use[hour // 3] for hour in range(24)]
        node["by_hour"] = by_hour
        # Two devices have the mean of the node between them.
        node["devices"] = [[str(d), min(100, 2 * node["gpu"]) if d % 2 == 0 else max(0, 2 * node["gpu"] - 100), "".join(str(min(9, (0 if d % 2 and i % 2 else u) // 10)) for u in by_hour)]
                           for d in range(8 if node["host"] == "g6" else node["gpus"] or 0)]
    return nodes


def nodes_map(query, now, fleet):
    columns = ["cluster_id", "host", "rack", "slot", "state", "units", "cpu", "mem", "gpu", "gpus", "watts", "states", "past", "devices"]
    metric = query.get("metric", ["power"])[0]
    end = int(now) // 60 * 60_000
    if fleet in ("none", "silent"):
        return {"metric": metric, "columns": columns, "rows": [], "times": [], "left_off": 0, "missing": []}
    rows = []
    for node in all_racked(now, fleet):
        if all(word in node["host"] for word in " ".join(query.get("q", [])).lower().split()) and (not values(query, "cluster_id") or node["cluster_id"] in values(query, "cluster_id")):
            past = {"state": [], "power": [200 + 3 * use for use in node["by_hour"]], "gpu": node["by_hour"] if node["gpus"] else []}.get(metric, node["by_hour"])
            rows.append([*(node[c] for c in columns[:12]), past, node["devices"] if metric == "gpu" else []])
    return {"metric": metric, "columns": columns, "rows": rows, "times": [end - (23 - i) * HOUR for i in range(24)], "left_off": 0, "missing": []}


def values(query, key):
    return [part for value in query.get(key, []) for part in value.split(",") if part]


def nodes(query, now, fleet):
    """(data, members beside it), or CSV"""
    if fleet not in ("ok", "big"):
        reason = "no_tsdb" if fleet == "none" else "unavailable"
        return {"columns": COLUMNS, "rows": [], "counts": {"busy": 0, "idle": 0, "silent": 0}, "watts": 0, "idle_watts": 0, "idle_kwh": None, "month_kwh": None, "covered": None,
                "missing": [{"cluster_id": cluster, "reason": reason} for cluster in CLUSTERS]}, {}
    found = [node for node in all_nodes(now) if all(word in node["host"] for word in " ".join(query.get("q", [])).lower().split())
             and ("host" not in query or node["host"] == query["host"][0]) and (not values(query, "cluster_id") or node["cluster_id"] in values(query, "cluster_id"))]
    rows = [node for node in found if not values(query, "state") or node["state"] in values(query, "state")]
    sort = query.get("sort", ["state"])[0]
    down = query.get("order", ["asc" if sort in ("state", "host", "cluster_id") else "desc"])[0] == "desc"

    def key(node):
        if sort == "state":
            return ["idle", "silent", "busy"].index(node["state"])
        return 0 if sort == "idle_since" and node["state"] == "idle" and node[sort] is None else node[sort]
    rows.sort(key=lambda node: (node["cluster_id"], node["host"]))
    known = sorted((node for node in rows if key(node) is not None), key=key, reverse=down)
    rows = known + [node for node in rows if key(node) is None]
    if query.get("format") == ["csv"]:
        return "".join(",".join("" if cell is None else str(cell) for cell in line) + "\r\n" for line in [COLUMNS, *[[node[c] for c in COLUMNS] for node in rows]])
    limit = int(query.get("limit", ["100"])[0])
    at = int(base64.b64decode(query["cursor"][0])) if "cursor" in query else 0
    more = {}
    if at + limit < len(rows):
        more["next"] = base64.b64encode(b"%d" % (at + limit)).decode()
    if at > 0:
        more["previous"] = base64.b64encode(b"%d" % max(0, at - limit)).decode()
    return {"columns": COLUMNS, "rows": [[node[c] for c in COLUMNS] for node in rows[at:at + limit]],
            "counts": {state: sum(node["state"] == state for node in found) for state in ("busy", "idle", "silent")},
            "watts": sum(node["watts"] or 0 for node in found), "idle_watts": sum(node["watts"] or 0 for node in found if node["state"] == "idle"),
            "idle_kwh": sum(node["idle_kwh"] for node in found), "month_kwh": 4 * sum(node["idle_kwh"] for node in found), "covered": 0.9, "missing": []}, more


def units_on(query, rows, fleet):
    """`rows` are facts of units: node nNNN had those whose number ends like its own, and n001 also what runs."""
    columns = ["uuid", "started", "ended", "state", "user", "project", "name", "cpus", "cpu", "gpu", "gpus", "kwh"]
    begin, end = float(query["from"][0]) * 1000, float(query["to"][0]) * 1000
    host = query["host"][0]
    there = [row for row in rows if row["started"] is not None and row["started"] < end and (row["ended"] is None or row["ended"] > begin)
             and (row["uuid"][-1] == host[-1] or (host == "n001" and row["ended"] is None))]
    there.sort(key=lambda row: row["started"])
    return {"columns": columns, "rows": [[row[c] for c in columns] for row in there] if fleet == "ok" else [], "source": "tsdb" if fleet == "ok" else None}


def node_series(query, fleet):
    begin, end = int(query["from"][0]), int(query["to"][0])
    step = max(60, (end - begin) // 290)
    gpu = query["host"][0].startswith("g")
    lines = []
    for name, unit, base, swing in (("cpu", "percent", 55, 40), ("memory", "percent", 30, 5), ("gpu", "percent", 60, 35), ("power", "watts", 350, 90), ("units", "units", 2, 1)):
        points = [[t * 1000, round(base + swing * math.sin(t / 9000), 2)] for t in range(begin, end, step)]
        lines.append({"name": name, "unit": unit, "points": [] if fleet != "ok" or (name == "gpu" and not gpu) else points})
    return lines


def grid(now, fleet):
    if fleet in ("none", "silent"):
        return {"now": None, "providers": [], "series": [], "best": []}
    end = int(now) // 900 * 900
    points = [[t * 1000, round(50 + 18 * math.cos((t % 86400 - 68400) / 86400 * 2 * math.pi) + 4 * math.sin(t / 50000), 1)] for t in range(end - 7 * 86400, end + 1, 900)]
    return {"now": {"provider": "rte", "country": "FR", "g_kwh": points[-1][1], "at": points[-1][0]},
            "providers": [{"provider": "rte", "country": "FR", "g_kwh": points[-1][1]}, {"provider": "owid", "country": "FR", "g_kwh": 56}],
            "series": [{"provider": "rte", "country": "FR", "points": points}, {"provider": "owid", "country": "FR", "points": [[t, 56] for t, _ in points[::40]]}],
            "best": [{"hours": 1, "from": 7, "to": 8, "mean": 32.1}, {"hours": 4, "from": 5, "to": 9, "mean": 33.4}, {"hours": 12, "from": 1, "to": 13, "mean": 38.9}]}


def forecast(now, fleet):
    """The greenest hours are counted the long way, by all windows of 48 hours."""
    first = (int(now) // 3600 + 1) * 3600
    if fleet != "ok":
        return {"provider": None, "country": None, "hours": [], "windows": []}
    def median(at):
        return round(50 + 18 * math.cos((at % 86400 - 68400) / 86400 * 2 * math.pi) + (at - first) / 86400, 1)
    hours = [[at * 1000, median(at), round(median(at) * 0.9, 1), round(median(at) * 1.2, 1)] for at in range(first, first + 48 * 3600, 3600)]
    windows = []
    for length in (1, 4, 12):
        best = min(range(0, 49 - length), key=lambda i: round(sum(hour[1] for hour in hours[i:i + length]), 6))
        mean = [sum(hour[k] for hour in hours[best:best + length]) / length for k in (1, 2, 3)]
        windows.append({"hours": length, "from": hours[best][0], "to": hours[best][0] + length * HOUR, "begin": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(hours[best][0] / 1000)),
                        "g_kwh": round(mean[0], 2), "low": round(mean[1], 2), "high": round(mean[2], 2), "next": round(sum(hour[1] for hour in hours[:length]) / length, 2)})
    return {"provider": "rte", "country": "FR", "hours": hours, "windows": windows}
