"""The checks of AppArmor profiles and the SELinux policy module: they are compiled, and name the files of the packages."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib

from common import Missing, ROOT, run, same

SERVICES = ("ceems_api_server", "ceems_exporter", "ceems_lb", "redfish_proxy")


def check_apparmor() -> str:
    if not shutil.which("apparmor_parser"):
        raise Missing("apparmor_parser is not installed (scripts/setup deploy)")
    profiles = sorted((ROOT / "packaging/apparmor").iterdir())
    same(tuple(path.name for path in profiles), SERVICES, "profiles")
    for path in profiles:
        run("apparmor_parser", "--skip-kernel-load", "--skip-cache", "--quiet", path)
        assert f"profile {path.name} /usr/bin/{path.name} " in path.read_text(), path.name
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(profiles[0].read_text().replace("capability setuid,", "capability setuidd,"))
        file.flush()
        assert subprocess.run(["apparmor_parser", "--skip-kernel-load", "--skip-cache", file.name], capture_output=True, check=False).returncode != 0, "a misspelt capability is accepted"
    return f"{len(profiles)} profiles are compiled; they were not loaded, as no kernel with AppArmor is here"


def check_selinux() -> str:
    makefile = pathlib.Path("/usr/share/selinux/devel/Makefile")
    if not makefile.exists() or not shutil.which("checkmodule"):
        raise Missing("selinux-policy-dev and checkpolicy are not installed (scripts/setup deploy)")
    with tempfile.TemporaryDirectory() as directory:
        for path in (ROOT / "packaging/selinux").iterdir():
            shutil.copy(path, directory)
        text = run("make", "-f", makefile, "ceems.pp", cwd=directory)
        size = (pathlib.Path(directory) / "ceems.pp").stat().st_size
        assert size > 10000, f"{size} bytes: {text}"
        contexts = (pathlib.Path(directory) / "ceems.fc").read_text()
    with (ROOT / "packaging/packages.toml").open("rb") as file:
        packages = tomllib.load(file)
    for package in packages.values():
        for service in package.get("services", []):
            assert f"/usr/bin/{service} " in contexts, f"{service} has no context"
        for path in package.get("config", {}):
            folder = re.match(r"(/etc/[^/]+)/", package["config"][path])[1]
            assert f"{folder}(/.*)?" in contexts, f"{folder} has no context"
    return f"the module is compiled ({size} bytes); it was not loaded, as no kernel with SELinux is here"


CHECKS = {"apparmor": check_apparmor, "selinux": check_selinux}
