"""The install scripts of a package, for dpkg and rpm, around the functions of scripts/service.sh."""
import pathlib

FUNCTIONS = (pathlib.Path(__file__).resolve().parent / "scripts" / "service.sh").read_text()


def own(tree) -> list[str]:
    """Configuration is readable by the group of the services alone. Owners that an administrator has set are kept."""
    return [f'if [ "$(stat -c %U:%G {path})" = root:root ]; then chgrp ceems {path}; chmod 0640 {path}; fi' for path in tree.config if "logrotate" not in path]


def deb(tree, ports: dict[str, str]) -> dict[str, str]:
    before, after, remove, gone = [], [], [], []
    fresh = '[ "$1" = install ]'
    for service in tree.services:
        before.append(f"if {fresh}; then ceems_remember {service}; fi")
        after += [f'ceems_default {service} "{ports[service]}"', f'ceems_settle {service} "$kind"']
        remove.append(f'if [ "$1" = remove ]; then ceems_stop {service}; fi')
        gone.append(f'if [ "$1" = purge ]; then rm -f /etc/default/{service} /etc/systemd/system/{service}.service.d/as-ceems-0.10.conf; rmdir /etc/systemd/system/{service}.service.d 2>/dev/null || :; fi')
    if tree.services:
        gone.append("if [ -d /run/systemd/system ]; then systemctl daemon-reload || :; fi")
    if tree.name == "ceems-common":
        after = ["ceems_user"]
    if tree.name == "ceems-api-server":
        gone.append('''if [ "$1" = purge ] && [ -d /var/lib/ceems ]; then
  answer=keep
  if [ -t 0 ]; then
    printf 'Remove the database in /var/lib/ceems, too? [y/N] '
    read -r answer || :
  fi
  case "$answer" in
    y | Y | yes) rm -rf /var/lib/ceems ;;
    *) echo "ceems-api-server: the database in /var/lib/ceems is kept; remove it by hand if nobody needs it" ;;
  esac
fi''')
    if tree.name == "ceems-exporter":
        gone.append('if [ "$1" = purge ]; then rm -rf /var/lib/ceems_exporter; fi')
    for program in tree.setgid:
        after.append(f"if ! dpkg-statoverride --list {program} >/dev/null; then chgrp ceems {program}; chmod 2755 {program}; fi")
    if tree.services or tree.setgid:
        after = own(tree) + after
    head = "#!/bin/sh\nset -e\n"
    kind = 'if [ -n "${2:-}" ]; then kind=upgrade; else kind=new; fi\n'
    made = {}
    if before:
        made["preinst"] = head + FUNCTIONS + "\n".join(before) + "\n"
    if after:
        made["postinst"] = head + FUNCTIONS + 'if [ "$1" = configure ]; then\n' + kind + "\n".join(after) + "\nfi\n"
    if remove:
        made["prerm"] = head + FUNCTIONS + "\n".join(remove) + "\n"
    if gone:
        made["postrm"] = head + "\n".join(gone) + "\n"
    return made


def rpm(tree, ports: dict[str, str]) -> dict[str, str]:
    made = {}
    if tree.name == "ceems-common":
        made["%post"] = FUNCTIONS + "ceems_user"
    if tree.services:
        # What %pre finds is used by %posttrans, because rpm runs the last scripts of the replaced package after our %post.
        pre = [f'if [ "$1" = 1 ]; then mkdir -p "$ceems_state"; echo new >"$ceems_state/{service}.kind"; ceems_remember {service}; fi' for service in tree.services]
        last = []
        for service in tree.services:
            last += [f'ceems_default {service} "{ports[service]}"', f'if [ -e "$ceems_state/{service}.kind" ]; then kind=new; else kind=upgrade; fi',
                     f'rm -f "$ceems_state/{service}.kind"', f"ceems_settle {service} $kind"]
        made["%pre"] = FUNCTIONS + "\n".join(pre)
        made["%posttrans"] = FUNCTIONS + "\n".join(last)
        made["%preun"] = FUNCTIONS + "\n".join(f'if [ "$1" = 0 ]; then ceems_stop {service}; fi' for service in tree.services)
        made["%postun"] = "if [ -d /run/systemd/system ]; then systemctl daemon-reload || :; fi"
    return made
