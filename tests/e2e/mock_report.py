"""Reports of mock_server.py, in the form of units/report (docs/report.md)."""

import html

GPU = {"en": "3 of 4 GPUs never ran a kernel. Asking for fewer starts sooner.",
       "de": "3 von 4 GPUs führten nie einen Kernel aus. Mit weniger GPUs startet der Job früher.",
       "fr": "3 GPU sur 4 n'ont exécuté aucun noyau. En demander moins permet de démarrer plus tôt."}
TIME = {"en": "Time: runs like this one end within 2 h, 1 d reserved.", "de": "Zeit: solche Läufe enden in 2 h, reserviert war 1 d.",
        "fr": "Temps : de tels calculs finissent en 2 h, 1 j réservé."}
GOOD = {"en": "The job used 99 % of what it reserved. There is nothing to change.",
        "de": "Der Job nutzte 99 % von dem, was er reservierte. Es gibt nichts zu ändern.",
        "fr": "Le calcul a utilisé 99 % de ce qu'il réservait. Il n'y a rien à changer."}


def finding(rule, severity, confidence, runs, text, sbatch=(), was=(), kwh=None):
    lines = [{"type": "#SBATCH " + line, "was": was[i] if i < len(was) else None} for i, line in enumerate(sbatch)]
    return {"rule": rule, "severity": severity, "confidence": confidence, "runs": runs, "values": {}, "text": text, "lines": lines,
            "sbatch": list(sbatch), "was": list(was), "saves": {} if kwh is None else {"kwh": kwh}}


def findings(unit, lang, written):
    used = unit.get("avg_cpu_usage", {"global": 0})["global"]
    found = []
    if unit["uuid"] == "48190":  # more than are shown, one of them with a text that wants to be more than a text
        found = [finding("gpu-unused", "important", "sure", 8, GPU[lang], ["--gres=gpu:1"], ["--gres=gpu:4"], 0.0726),
                 finding("time-limit", "suggest", "likely", 1, TIME[lang], ["--time=03:00:00"], ["--time=1-00:00:00"]),
                 finding("<i>site</i>", "info", "maybe", 1, "<img src=x onerror=alert(1)>\u202e See {docs}\n& <b>ask</b>.", ["--comment=\"a<b>\"\u202e"]),
                 finding("cpu-low", "suggest", "maybe", 1, "The fourth is not shown.")]
    elif unit["uuid"] == "48188":  # without measurements only the state is known
        found = [finding("oom", "important", "sure", 1, "The job ran out of its memory of 8 GB a node.", ["--mem=12G"], ["--mem=8G"])]
    elif unit["uuid"] == "48170":
        found = [finding("cpu-low", "suggest", "likely", 1, "3 % of the reserved CPU time was used.")]
    elif used >= 90 and unit["total_time_seconds"]["walltime"] >= 300:
        found = [finding("good", "good", "likely", 1, GOOD[lang])]
    for each in found if not written else []:
        each["lines"], each["sbatch"], each["was"] = [], [], []
    return found


def marks(unit, written):
    if unit["uuid"] != "48190" or not written:
        return {"phases": [], "results": [], "fom": []}
    return {"phases": [{"region": "solve", "count": 1250, "nodes": 2, "seconds": 5882, "share": 0.87, "kwh": 0.9, "self_kwh": 0.8, "watts": 690,
                        "slowest": "n07", "longer": 0.09},
                       {"region": "<i>\u202eread</i>", "count": 1, "nodes": 1, "seconds": 370, "share": 0.06, "kwh": None, "self_kwh": None, "watts": None,
                        "slowest": None, "longer": None}],
            "results": [{"result": "step", "unit": None, "n": 1250, "joules_per": 1512, "family_joules_per": 1720,
                         "family": [{"uuid": str(48000 + n), "started_at_ts": 1767225600000, "joules_per": 1700 + 2 * n} for n in range(19)]}],
            "fom": [{"fom": "speed", "unit": "ns/day", "last": 83.2, "mean": 81.4}]}


def of(unit, lang, written):
    lang = lang if lang in GPU else "en"
    running = "ended_at_ts" not in unit
    coverage = {"48188": 0.72, "31007": None}.get(unit["uuid"], 0.998)
    state = "so_far" if running else "final" if coverage and coverage >= 0.9 else "partial"
    return {"v": 1, "cluster_id": unit["cluster_id"], "uuid": unit["uuid"], "started_at_ts": unit.get("started_at_ts"),
            "ended_at_ts": unit.get("ended_at_ts"), "state": state, "coverage": coverage,
            "job": {"name": unit.get("name", ""), "user": unit["username"], "project": unit["project"], "state": unit["state"],
                    "elapsed_s": unit["total_time_seconds"]["walltime"]},
            "use": {}, "nodes": [], "energy": {"kwh": None, "idle_kwh": 0.031 if unit["uuid"] == "48190" else None, "not_used_kwh": 0.012 if unit["uuid"] == "48190" else None}, "co2": {}, "compared": {}, **marks(unit, written),
            "findings": [] if running else findings(unit, lang, written)}


def form(report, name):
    """(type, text)"""
    if name == "html":
        return "text/html; charset=utf-8", "<!doctype html><html lang=en><title>Job %s</title><h1>Job %s</h1><p>%s</p>" % (
            report["uuid"], report["uuid"], html.escape(report["job"]["name"]))
    if name == "markdown":
        return "text/markdown; charset=utf-8", "# Job %s\n" % report["uuid"]
    return "text/plain; charset=utf-8", "Job %s · %s\n" % (report["uuid"], report["state"])
