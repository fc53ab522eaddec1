#!/usr/bin/env python3
"""Stands in for bjobs and bacct of IBM Spectrum LSF and qstat of OpenPBS, in the formats of their documentation. Prints the jobs of
$CEEMS_FAKE_JOBS, a JSON list of {"id", "user", "project", "host", "slots", "start", "end"} with times in seconds since the epoch, in the
time zone of $TZ."""

import json
import os
import sys
import time

RULE = "-" * 78


def stamp(seconds, weekday):
    return time.strftime(("%a " if weekday else "") + "%b %e %H:%M:%S %Y", time.localtime(seconds))


def bjobs(jobs, now):
    records = []
    for job in jobs:
        if job["start"] <= now and not (job["end"] and job["end"] <= now):
            number, _, index = job["id"].rstrip("]").partition("[")
            records.append({"JOBID": number, "JOBINDEX": index or "0", "USER": job["user"], "USER_GROUP": "staff", "QUEUE": "normal",
                            "JOB_NAME": "job", "PROJ_NAME": job["project"], "STAT": "RUN",
                            "ALLOC_SLOT": ":".join([job["host"]] * job["slots"]), "NALLOC_SLOT": str(job["slots"]),
                            "SUBMIT_TIME": stamp(job["start"] - 1, False), "START_TIME": stamp(job["start"], False), "FINISH_TIME": "",
                            "RUN_TIME": "1 second(s)", "EFFECTIVE_RESREQ": "", "GPU_NUM": "", "GPU_ALLOC": "", "MEM": "1 Gbytes",
                            "MEMLIMIT": "2 G", "MEM_EFFICIENCY": "", "RUNTIMELIMIT": "60.0", "EXEC_CWD": "/home/" + job["user"]})
    if not records:
        sys.stderr.write("No unfinished job found\n")
        sys.exit(255)
    print(json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}, indent=2))


def bacct(jobs, now):
    arguments = sys.argv[1:]
    begin, end = 0, now + 1
    if "-C" in arguments:
        begin, end = (time.mktime(time.strptime(text, "%Y/%m/%d/%H:%M")) for text in arguments[arguments.index("-C") + 1].split(","))
    print("\nAccounting information about jobs that are: \n  - submitted by all users.\n" + RULE + "\n")
    for job in jobs:
        if job["end"] and begin <= job["end"] <= min(end, now):
            print("Job <%s>, User <%s>, Project <%s>, Status <DONE>, Queue <normal>, Command <x>, Share group charged </%s>" % (
                job["id"], job["user"], job["project"], job["user"]))
            print("%s: Submitted from host <l>, CWD <$HOME>;" % stamp(job["start"] - 1, True))
            hosts = " ".join(["<%s>" % job["host"]] * job["slots"])
            print("%s: Dispatched %d Task(s) on Host(s) %s, Allocated %d Slot(s) on Host(s) %s, Effective RES_REQ <x>;" % (
                stamp(job["start"], True), job["slots"], hosts, job["slots"], hosts))
            print("%s: Completed <done>.\n\nAccounting information about this job:\n%s\n" % (stamp(job["end"], True), RULE))
    print("SUMMARY:      ( time unit: second ) ")


def qstat(jobs, now):
    shown = {}
    for job in jobs:
        if job["start"] <= now:
            over = job["end"] and job["end"] <= now
            shown[job["id"]] = {"Job_Name": "job", "Job_Owner": job["user"] + "@login", "job_state": "F" if over else "R",
                                "queue": "workq", "ctime": stamp(job["start"] - 1, True), "mtime": stamp(now, True),
                                "stime": stamp(job["start"], True), "exec_host": "%s/0*%d" % (job["host"], job["slots"]),
                                "exec_vnode": "(%s:ncpus=%d:mem=2gb)" % (job["host"], job["slots"]), "euser": job["user"],
                                "egroup": "staff", "project": job["project"]}
            if over:
                shown[job["id"]].update(Exit_status=0, obittime=stamp(job["end"], True))
    print(json.dumps({"timestamp": int(now), "pbs_version": "23.06.06", "pbs_server": "srv", "Jobs": shown}, indent=4))


def main():
    with open(os.environ["CEEMS_FAKE_JOBS"]) as f:
        jobs = json.load(f)
    {"bjobs": bjobs, "bacct": bacct, "qstat": qstat}[os.path.basename(sys.argv[0])](jobs, int(time.time()))


if __name__ == "__main__":
    main()
