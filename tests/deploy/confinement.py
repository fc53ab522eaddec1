"""The checks of what confines the services. AppArmor profiles and the SELinux policy module are compiled, and name the files of the
packages; units are as closed as the documentation says."""
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


def check_exposure() -> str:
    """Each unit alone is at most 2.0, and docs/security-model.md has the numbers of systemd 252 for all drop-ins."""
    if not shutil.which("systemd-analyze"):
        raise Missing("systemd-analyze is not installed (Debian package systemd)")
    rows = [line for line in run(ROOT / "scripts/exposure").splitlines() if line.startswith("| `")]
    same(tuple(re.search(r"`([^`]+)`", row)[1] for row in rows), ("ceems-export@", *SERVICES), "units")
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert float(cells[1]) <= 2.0, row
        assert not cells[2] or max(map(float, re.findall(r"([0-9.]+) `", cells[2]))) > float(cells[1]), f"no drop-in makes a difference: {row}"
    page = (ROOT / "docs/security-model.md").read_text()
    if not run("systemd-analyze", "--version").startswith("systemd 252 "):
        names = [path.name for path in (ROOT / "packaging/systemd").glob("*.d/*.conf")]
        assert all(f"`{name}`" in page for name in names), "a drop-in is missing in docs/security-model.md"
        return "each unit alone is at most 2.0; another systemd than that of the table"
    for row in rows:
        assert row in page.splitlines(), f"docs/security-model.md lacks this row, run scripts/exposure --write: {row}"
    return f"{len(rows)} units as in docs/security-model.md"


CHECKS = {"exposure": check_exposure, "apparmor": check_apparmor, "selinux": check_selinux}
