#!/usr/bin/env python3
"""Stands in for sacct and sacctmgr: prints the jobs of $CEEMS_FAKE_JOBS (a JSON list) that overlap the requested window, with the
requested fields. $CEEMS_FAKE_MODE: ok, garbage, half (stops in the middle, exit 1), hang, binary, silent (exit 1).

If $CEEMS_FAKE_LIMIT_FILE names a file, a window that ends after the time in it waits until the file has a later one.
If $CEEMS_FAKE_LOG names a file, it gets a line when a call of sacct begins and one when it ends, with $CEEMS_FAKE_CALLER."""

import contextlib
import datetime
import json
import os
import sys
import time


def option(name):
    arguments = sys.argv[1:]
    for i, a in enumerate(arguments):
        if a == name:
            return arguments[i + 1]
        if a.startswith(name + "="):
            return a.split("=", 1)[1]
    return None


def moment(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def stamp(seconds):
    if not seconds:
        return "Unknown"
    return datetime.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%dT%H:%M:%S%z")


def elapsed(seconds):
    days, rest = divmod(int(seconds), 86400)
    text = "%02d:%02d:%02d" % (rest // 3600, rest % 3600 // 60, rest % 60)
    return "%d-%s" % (days, text) if days else text


def read_limit(path):
    with contextlib.suppress(ValueError), open(path) as f:  # it is being written
        return float(f.read())
    return 0.0


def wait_for_limit(end):
    path = os.environ.get("CEEMS_FAKE_LIMIT_FILE")
    while path and os.path.exists(path) and read_limit(path) < end:
        time.sleep(0.02)


def log(what):
    path = os.environ.get("CEEMS_FAKE_LOG")
    if path:
        with open(path, "a") as f:  # one short write, which is not mixed with others
            f.write("%s %d %s %.6f\n" % (os.environ["CEEMS_FAKE_CALLER"], os.getpid(), what, time.time()))


def main():
    with open(os.environ["CEEMS_FAKE_MODE_FILE"]) as f:
        mode = f.read().strip()
    with open(os.environ["CEEMS_FAKE_JOBS"]) as f:
        jobs = json.load(f)
    if mode == "hang":
        time.sleep(600)
    if mode == "silent":
        sys.stderr.write("sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection\n")
        sys.exit(1)
    if os.path.basename(sys.argv[0]) == "sacctmgr":
        for pair in sorted({(j["account"], j["user"]) for j in jobs}):
            print("|".join(pair))
        return
    if mode == "garbage":
        sys.stdout.write("Segmentation fault? <html>|||\n||||\nnot a job at all\n" * 50)
        return
    if mode == "binary":
        sys.stdout.buffer.write(bytes(range(256)) * 400)
        return
    fields = [f.strip().lower() for f in option("--format").split(",")]
    start, end = moment(option("--starttime")), moment(option("--endtime"))
    log("begins")
    wait_for_limit(end)
    now = time.time()
    lines = []
    for job in jobs:
        done = job["end"] and job["end"] <= now
        if job["start"] > min(end, now) or (job["end"] and job["end"] < start):
            continue
        seconds = (job["end"] if done else now) - job["start"]
        row = {"jobidraw": job["id"], "jobid": job["id"], "partition": "debug", "qos": "normal", "account": job["account"],
               "group": "users", "gid": "100", "user": job["user"], "uid": "1000", "submit": stamp(job["start"] - 1),
               "start": stamp(job["start"]), "end": stamp(job["end"] if done else 0), "elapsed": elapsed(seconds),
               "elapsedraw": str(int(seconds)), "exitcode": "0:0", "state": "COMPLETED" if done else "RUNNING",
               "alloctres": "billing=%d,cpu=%d,mem=1G,node=1" % (job["cpus"], job["cpus"]) + (
                   ",gres/gpu=%d" % job["gpus"] if "gpus" in job else ""),
               "nodelist": "n1",
               "jobname": job["name"], "workdir": "/home/" + job["user"]}
        lines.append("|".join(str(row.get(f, "")) for f in fields))
    text = "".join(line + "\n" for line in lines)
    if mode == "half":
        sys.stdout.write(text[:len(text) // 2])
        sys.stdout.flush()
        sys.exit(1)
    log("ends")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
