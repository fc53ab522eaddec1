#!/usr/bin/env python3
"""Stands in for SLURM's commands in the demo: demo_slurm.py sacct|sacctmgr JOBS_FILE ARGUMENT... prints the jobs of the file as they are
now, or who belongs to which account."""

import calendar
import json
import sys
import time

FIELDS = ("jobidraw jobid partition qos account group gid user uid submit start end elapsed elapsedraw exitcode state alloctres nodelist jobname workdir "
          "timelimitraw reqmem reqcpus reqtres nnodes eligible")


def option(arguments, name):
    for i, argument in enumerate(arguments):
        if argument == name and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith(name + "="):
            return argument[len(name) + 1:]
    return None


def moment(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S+0000", time.gmtime(seconds))


def clock(seconds):
    days, rest = divmod(int(seconds), 86400)
    text = "%02d:%02d:%02d" % (rest // 3600, rest % 3600 // 60, rest % 60)
    return "%d-%s" % (days, text) if days else text


def row(job, now):
    done = job["end"] <= now
    state = job["state"] if done else "RUNNING"
    seconds = (job["end"] if done else now) - job["start"]
    tres = "billing=%d,cpu=%d,mem=%dG,node=%d" % (job["cpus"], job["cpus"], job["gib"], len(job["nodes"])) + (",gres/gpu=%d" % job["gpus"] if job["gpus"] else "")
    return {
        "jobidraw": job["id"], "jobid": job["shown"], "partition": job["partition"], "qos": "normal", "account": job["account"], "group": "demo", "gid": "1000",
        "user": job["user"], "uid": "1000", "submit": stamp(job["submit"]), "start": stamp(job["start"]), "end": stamp(job["end"]) if done else "Unknown",
        "elapsed": clock(seconds), "elapsedraw": str(int(seconds)), "exitcode": "1:0" if state == "FAILED" else "0:0", "state": state, "alloctres": tres,
        "nodelist": ",".join(job["nodes"]), "jobname": job["name"], "workdir": "/home/" + job["user"], "timelimitraw": str(job["limit"]), "reqmem": "%dG" % job["gib"],
        "reqcpus": str(job["cpus"]), "reqtres": tres, "nnodes": str(len(job["nodes"])), "eligible": stamp(job["submit"]),
    }


def main():
    program, path, *arguments = sys.argv[1:]
    if "--helpformat" in arguments or "--help" in arguments:
        print(FIELDS)
        return
    with open(path) as f:
        known = json.load(f)
    if program == "sacctmgr":
        for project, users in known["projects"].items():
            for user in users:
                print("%s|%s" % (project, user))
        return
    fields = option(arguments, "--format").split(",")
    delimiter = option(arguments, "--delimiter") or "|"
    chosen = option(arguments, "--jobs")
    now = time.time()
    for job in known["jobs"]:
        if job["start"] > now:
            continue
        if chosen is not None:
            wanted = job["id"] in chosen.split(",")
        else:
            wanted = job["start"] <= moment(option(arguments, "--endtime")) and job["end"] >= moment(option(arguments, "--starttime"))
        if wanted:
            values = row(job, now)
            print(delimiter.join(values.get(field.strip(), "") for field in fields))


if __name__ == "__main__":
    main()
