"""Packages with the names, files and scripts of those of CEEMS 0.10.2, with small shell programs in the place of its binaries."""
import pathlib
import subprocess

UNIT = """[Unit]
Description=Stand-in of {name}
[Service]
User=ceems
ExecStart=/usr/local/bin/{name} ${variable}_OPTIONS
[Install]
WantedBy=multi-user.target
"""
# Conffiles of each, with mode and owner; the unit is one, too.
CONFIG = {"ceems_exporter": ["/etc/ceems_exporter/web-config.yml", "/etc/ceems_exporter/redfish-config.yml"],
          "ceems_api_server": ["/etc/ceems_api_server/config.yml", "/etc/ceems_api_server/web-config.yml"],
          "cacct": ["/etc/ceems/config.yml"]}
BEFORE = """#!/bin/sh
set -e
getent group ceems >/dev/null || groupadd -r ceems
getent passwd ceems >/dev/null || useradd -r -M -d / -g ceems ceems
if [ {name} = ceems_api_server ]; then mkdir -p /var/lib/ceems; chown -R ceems:root /var/lib/ceems; chmod 0700 /var/lib/ceems; fi
"""
AFTER = """#!/bin/sh
if [ {name} = cacct ]; then chown ceems:ceems /usr/local/bin/cacct; chmod g+s /usr/local/bin/cacct; exit 0; fi
systemctl daemon-reload || :
systemctl unmask {name}.service || :
systemctl preset {name}.service || :
systemctl enable {name}.service || :
systemctl restart {name}.service || :
"""
GONE = """#!/bin/sh
if [ "$1" = remove ] && [ {name} != cacct ]; then systemctl stop {name}.service || :; systemctl disable {name}.service || :; fi
exit 0
"""


def build(name: str, directory: pathlib.Path) -> pathlib.Path:
    root = directory / name
    files = {f"/usr/local/bin/{name}": (f"#!/bin/sh\necho 'CEEMS 0.10.2 {name}'\n", 0o755)}
    conffiles = list(CONFIG[name])
    for path in conffiles:
        files[path] = ("# as shipped\n", 0o660)
    if name != "cacct":
        unit = f"/usr/lib/systemd/system/{name}.service"
        files[unit] = (UNIT.format(name=name, variable=name.upper()), 0o640)
        conffiles.append(unit)
    for path, (text, mode) in files.items():
        file = root / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
    control = root / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(f"Package: {name}\nVersion: 0.10.2\nArchitecture: amd64\nMaintainer: test <test@localhost>\nDescription: stand-in\n")
    (control / "conffiles").write_text("".join(path + "\n" for path in conffiles))
    for script, text in {"preinst": BEFORE, "postinst": AFTER, "postrm": GONE}.items():
        (control / script).write_text(text.format(name=name))
        (control / script).chmod(0o755)
    package = directory / f"{name}-0.10.2-linux-amd64.deb"
    subprocess.run(["dpkg-deb", "--nocheck", "--root-owner-group", "-Zgzip", "--build", root, package], check=True, stdout=subprocess.DEVNULL)
    return package


def build_rpm(name: str, directory: pathlib.Path) -> pathlib.Path:
    """The same as .rpm; only the service's redfish-config.yml and unit are noreplace, as in CEEMS 0.10.2."""
    root = directory / "root"
    build(name, directory / "deb")
    subprocess.run(["dpkg-deb", "-x", directory / "deb" / f"{name}-0.10.2-linux-amd64.deb", root], check=True)
    files = [f"/usr/local/bin/{name}", f"%config(noreplace) /usr/lib/systemd/system/{name}.service"]
    files += [("%config " if path.endswith("/web-config.yml") else "%config(noreplace) ") + path for path in CONFIG[name]]
    scripts = {"%pre": BEFORE, "%post": AFTER, "%postun": GONE.replace('"$1" = remove', '"$1" = 0')}
    text = f"Name: {name}\nVersion: 0.10.2\nRelease: 1\nSummary: stand-in\nLicense: none\nAutoReqProv: no\n%description\nstand-in\n"
    text += "".join(f"{section}\n{script.format(name=name).split(chr(10), 1)[1]}\n" for section, script in scripts.items())
    spec = directory / f"{name}.spec"
    spec.write_text(text + "%files\n" + "\n".join(files) + "\n")
    subprocess.run(["rpmbuild", "-bb", "--quiet", "--nodeps", "--noclean", "--target", "x86_64", "--buildroot", root, "--define", f"_topdir {directory}/rpm",
                    "--define", f"_rpmdir {directory}", "--define", "_rpmfilename %{NAME}.rpm", "--define", "__os_install_post %{nil}", "--define", "debug_package %{nil}", spec],
                   check=True, capture_output=True)
    return directory / f"{name}.rpm"
