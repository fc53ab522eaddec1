"""Hook of OpenPBS that notes in the comment of a new job what such jobs took, as `cacct check --brief` says it. Off until an
administrator imports it (docs/check.md, "At submission"). Whatever fails or takes longer than 0.3 s here, the job is queued."""

import pwd
import subprocess

import pbs

CACCT = "/usr/bin/cacct"
SETPRIV = "/usr/bin/setpriv"
LIMIT = 0.3  # seconds for which qsub may wait
RESOURCES = ("select", "place", "nodes", "ncpus", "ngpus", "mem", "walltime")


def words(job):
    """The job as options of qsub. Hooks of the server do not see its script."""
    found = []
    for option, value in (("-N", job.Job_Name), ("-q", job.queue), ("-P", job.project), ("-A", job.Account_Name)):
        if value:
            found += [option, str(value)]
    for name in RESOURCES:
        value = job.Resource_List[name]
        if value is not None:
            found += ["-l", "%s=%s" % (name, value)]
    return found


def line(event):
    """Runs as the user who submits, without a shell, an environment or the rights of the server."""
    user = pwd.getpwnam(event.requestor)
    if user.pw_uid == 0:
        return ""
    command = [SETPRIV, "--reuid=%d" % user.pw_uid, "--regid=%d" % user.pw_gid, "--clear-groups", "--",
               CACCT, "check", "--brief", "--timeout", "280", "--form", "pbs", "--"] + words(event.job)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT, env={}, cwd="/")
    return done.stdout.decode("utf-8", "replace").strip()


event = pbs.event()
try:
    text = line(event)
    if text:
        event.job.comment = text
except Exception:  # pylint: disable=broad-except
    pass  # the job matters more than the line
event.accept()
