"""The checks of images, Compose and Quadlet files. Images are built by buildah from a root file system of Debian 12 that debootstrap makes,
so that no registry is needed, and run as a container runs them: their own root, read-only, no capabilities, the user nobody."""
import configparser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

from common import BUILD, Missing, ROOT, program, run, same

CONTAINERS = ROOT / "packaging/containers"
MOST_MB = 40
MOST_DEMO_MB = 120  # packed: Prometheus and its tool alone are half of it
# What each is asked once it runs: its port, and its page.
SERVERS = {"ceems-exporter": (9010, "/metrics"), "ceems-redfish-proxy": (5000, "/health"), "ceems-k8s-admission-controller": (9000, "/health"),
           "ceems-api-server": (9020, "/health"), "ceems-lb": (9030, "/-/healthy")}


def buildah(work: pathlib.Path) -> list[str]:
    return ["buildah", "--storage-driver", "vfs", "--root", str(work / "store"), "--runroot", str(work / "run")]


def base_image(engine: list[str]) -> None:
    """Debian 12 as localhost/debian, from the root file system of tests/packages."""
    sys.path.insert(0, str(ROOT / "tests/packages"))
    import roots
    try:
        archive = roots.base("bookworm")
    except roots.Missing as missing:
        raise Missing(str(missing)) from missing
    container = run(*engine, "from", "scratch").strip()
    run(*engine, "add", container, archive, "/")
    run(*engine, "commit", "--rm", container, "localhost/debian")


def check_images() -> str:
    """Builds all images of the packages, and runs those of the servers."""
    for tool in ("buildah", "debootstrap", "unshare"):
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed (scripts/setup deploy)")
    if os.geteuid() != 0:
        raise Missing("needs root")
    packages = pathlib.Path(os.environ.get("CEEMS_PACKAGES") or ROOT / "build/packages/out")
    if not list(packages.glob("ceems-exporter_*.deb")):
        raise Missing(f"no packages in {packages}: run 'make packages'")
    sizes = []
    with tempfile.TemporaryDirectory(prefix="ceems-images-") as directory:
        work = pathlib.Path(directory)
        engine = buildah(work)
        try:
            base_image(engine)
            wrapper = work / "buildah"
            wrapper.write_text("#!/bin/sh\ncommand=$1\nshift\nexec " + " ".join(engine) + ' "$command" --isolation chroot --network host "$@"\n')
            wrapper.chmod(0o755)
            run(CONTAINERS / "build", "--packages", packages, "--base", "localhost/debian", "--tag", "test", env={**os.environ, "CONTAINER_ENGINE": str(wrapper)})
            for image in re.findall(r"^FROM scratch AS (\S+)", (CONTAINERS / "Containerfile").read_text(), re.M):
                sizes.append(f"{image} {examine(engine, image, work):.0f} MB")
        finally:
            # Files of images may not belong to the user who removes the folder.
            subprocess.run([*engine, "rm", "--all"], capture_output=True, check=False)
            subprocess.run([*engine, "rmi", "--all", "--force"], capture_output=True, check=False)
    return ", ".join(sizes)


def examine(engine: list[str], image: str, work: pathlib.Path) -> float:
    """The size of an image, which is checked like its settings, content and behaviour."""
    container = run(*engine, "from", f"localhost/ceems/{image}:test").strip()
    root = pathlib.Path(run(*engine, "mount", container).strip())
    settings = json.loads(run(*engine, "inspect", "--type", "image", f"localhost/ceems/{image}:test"))["OCIv1"]["config"]
    same(settings["User"], "65534:65534", f"{image}: user")
    for name in ("sh", "bash", "dash", "apt-get", "dpkg", "perl", "busybox"):
        assert not list(root.glob(f"**/bin/{name}")), f"{image}: has {name}"
    odd = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o6002]
    assert not odd, f"{image}: set-ID or writable by all: {odd}"
    assert list((root / "var/lib/dpkg/status.d").iterdir()), f"{image}: scanners find no packages"
    size = sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir()) / 1e6
    assert size <= MOST_MB, f"{image}: {size:.1f} MB"
    entry = settings["Entrypoint"][0]
    same(f"{entry.rsplit('/', 1)[-1]}, version" in contained(root, entry, "--version"), True, f"{image}: --version")
    if image in SERVERS:
        serve(root, work, image, entry, settings["Cmd"])
    run(*engine, "umount", container)
    run(*engine, "rm", container)
    return size


# Becomes nobody in the root file system of an image, without groups and capabilities, and runs a program there.
AS_NOBODY = """import json, os, sys
os.chroot(sys.argv[1])
os.chdir("/var/lib/ceems" if os.path.isdir("/var/lib/ceems") else "/")
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
os.execve(sys.argv[2], sys.argv[2:], json.loads(os.environ.get("CONTAINER_ENV", "{}")))"""


def contained(root: pathlib.Path, *arguments: str) -> str:
    """What a program of the image prints."""
    return run("unshare", "--mount", "--pid", "--fork", "--net", "python3", "-c", AS_NOBODY, root, *arguments)


def serve(root: pathlib.Path, work: pathlib.Path, image: str, entry: str, command: list[str]) -> None:
    """Starts it as its CMD says, asks it by --health from inside, and by HTTP; nothing may listen but loopback of the container."""
    port, page = SERVERS[image]
    name = entry.rsplit("/", 1)[-1]
    flags = [flag for flag in command if not flag.startswith("--web.config.file")] if image == "ceems-exporter" else list(command)
    for folder in ("proc", "sys"):
        (root / folder).mkdir(exist_ok=True)
    script = f'''set -e; ip link set lo up; mount --make-rprivate /; mount --rbind {root} {root}; mount -t proc proc {root}/proc; mount -t sysfs sys {root}/sys
mount -o remount,bind,ro {root}
[ {name} != ceems_api_server ] || {{ mount -t tmpfs -o mode=700,uid=65534,gid=65534 data {root}/var/lib/ceems; }}
as_nobody() {{ python3 -c "$AS_NOBODY" {root} "$@"; }}
as_nobody {entry} {' '.join(flags)} >{work}/{name}.log 2>&1 &
for i in $(seq 300); do if as_nobody {entry} --health --web.listen-address=127.0.0.1:{port} 2>/dev/null; then break; fi; sleep 0.1; done
as_nobody {entry} --health --web.listen-address=127.0.0.1:{port}
! as_nobody {entry} --health --web.listen-address=127.0.0.1:1 2>/dev/null
curl -s -o /dev/null -w 'STATUS %{{http_code}}\\n' http://127.0.0.1:{port}{page}
cat /proc/net/tcp /proc/net/tcp6
'''
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--net", "--kill-child", "bash", "-c", script], env={**os.environ, "AS_NOBODY": AS_NOBODY}, capture_output=True, text=True, timeout=300, check=False)
    log = (work / f"{name}.log").read_text() if (work / f"{name}.log").exists() else ""
    if image == "ceems-lb":  # without backends it does not start, and says so
        assert "backend" in log, f"{image}: {log[-800:]}"
        return
    assert done.returncode == 0 and "STATUS 200" in done.stdout, f"{image}: status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-800:]}\n{log[-1500:]}"
    listening = re.findall(r"^\s*\d+: ([0-9A-F]+):[0-9A-F]{4} \S+ 0A ", done.stdout, re.M)
    assert listening and set(listening) == {"0100007F"}, f"{image}: listens on {listening}"


def check_demo() -> str:
    """Builds ceems-demo of the programs in build/bin and starts it: the page is there, on loopback only."""
    if not shutil.which("buildah") or os.geteuid() != 0:
        raise Missing("needs buildah (scripts/setup deploy) and root")
    with tempfile.TemporaryDirectory(prefix="ceems-demo-") as directory:
        work = pathlib.Path(directory)
        engine = buildah(work)
        try:
            wrapper = work / "buildah"
            wrapper.write_text("#!/bin/sh\ncommand=$1\nshift\nexec " + " ".join(engine) + ' "$command" --isolation chroot "$@"\n')
            wrapper.chmod(0o755)
            run(CONTAINERS / "demo", "--tag", "test", env={**os.environ, "CONTAINER_ENGINE": str(wrapper)})
            container = run(*engine, "from", "localhost/ceems/ceems-demo:test").strip()
            root = pathlib.Path(run(*engine, "mount", container).strip())
            settings = json.loads(run(*engine, "inspect", "--type", "image", "localhost/ceems/ceems-demo:test"))["OCIv1"]["config"]
            same(settings["User"], "65534:65534", "ceems-demo: user")
            archive = work / "archive.gz"
            run("tar", "-C", root, "-czf", archive, ".")
            size = archive.stat().st_size / 1e6
            assert size <= MOST_DEMO_MB, f"ceems-demo: {size:.0f} MB"
            seconds = show_demo(root, settings)
        finally:
            subprocess.run([*engine, "rm", "--all"], capture_output=True, check=False)
            subprocess.run([*engine, "rmi", "--all", "--force"], capture_output=True, check=False)
    return f"{size:.0f} MB packed, the page after {seconds} s"


def show_demo(root: pathlib.Path, settings: dict) -> str:
    """Starts it as a container does, and returns the seconds until its page is there."""
    script = f'''set -e; ip link set lo up; mount --make-rprivate /; mount --rbind {root} {root}; mkdir -p {root}/dev
mount -t proc proc {root}/proc; mount --rbind /sys {root}/sys; mount --rbind /dev {root}/dev
mount -t tmpfs -o mode=1777 tmp {root}/tmp; mount -t tmpfs -o mode=777 state {root}/var/lib/ceems-demo
python3 -c "$AS_NOBODY" {root} {" ".join(settings["Entrypoint"])} >{root}/tmp/out 2>&1 & launcher=$!
for i in $(seq 600); do if curl -s http://127.0.0.1:9020/ui/ | grep -q 'id="app"'; then echo "SECONDS $SECONDS"; break; fi; sleep 0.1; done
for i in $(seq 300); do if grep -q password {root}/tmp/out; then break; fi; sleep 0.1; done
cat {root}/tmp/out /proc/net/tcp /proc/net/tcp6
kill $launcher; wait $launcher && echo ENDED
'''
    environment = dict(pair.split("=", 1) for pair in settings["Env"])
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--net", "--kill-child", "bash", "-c", script],
                          env={**os.environ, "AS_NOBODY": AS_NOBODY, "CONTAINER_ENV": json.dumps(environment)}, capture_output=True, text=True, timeout=300, check=False)
    assert re.search(r"demo-user, password \S{10}", done.stdout) and "ENDED" in done.stdout, f"ceems-demo: {done.stdout[-2000:]}{done.stderr[-800:]}"
    listening = re.findall(r"^\s*\d+: ([0-9A-F]+):[0-9A-F]{4} \S+ 0A ", done.stdout, re.M)
    assert len(listening) >= 3 and set(listening) == {"0100007F"}, f"ceems-demo: listens on {listening}"
    return re.search(r"SECONDS (\d+)", done.stdout)[1]


def check_compose() -> str:
    """What ./prepare writes, read by each program itself; nothing is open; a second run changes nothing."""
    tool = program("ceems_tool")
    with tempfile.TemporaryDirectory() as directory:
        folder = prepared(pathlib.Path(directory), tool)
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        run("./prepare", "--cluster", "beta", cwd=folder, env={**os.environ, "CEEMS_TOOL": str(tool)})
        same({path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}, before, "files after a second run")
        assert subprocess.run(["./prepare", "--cluster", "a b"], cwd=folder, capture_output=True, check=False).returncode == 2, "a cluster with a blank is accepted"
        services = yaml.safe_load((folder / "compose.yml").read_text())["services"]
        read = 0
        for name in services:
            for path in sorted((folder / "site" / name).glob("*.yml")):
                if name != "prometheus":
                    run(tool, "check", "config", path)
                elif shutil.which("promtool"):
                    # The rules of the repository are mounted there.
                    path.write_text(path.read_text().replace("/etc/ceems-rules", str(ROOT / "packaging/prometheus")))
                    run("promtool", "check", *(["web-config"] if path.stem == "web-config" else ["config"]), path)
                read += 1
        same(read, 9, "files of configuration")
        passwords = [path.read_text().strip() for path in (folder / "site/passwords").iterdir()]
        assert len(set(passwords)) == len(passwords) == 7 and min(map(len, passwords)) >= 20, f"{len(passwords)} passwords"
        modes = {oct(path.stat().st_mode & 0o077) for path in folder.joinpath("site").rglob("*") if path.is_file()}
        same(modes, {"0o0"}, "what others may do with the files")
        addresses = dict(line.split("=", 1) for line in (folder / ".env").read_text().splitlines() if line.split("=")[0].endswith(("_LISTEN", "_ADDRESS")))
        for name, address in addresses.items():
            assert address.split(":")[0] == "127.0.0.1", f"{name} is {address}"
        mounted = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", []) if volume.startswith(".")]
        for path in mounted:
            assert (folder / path).exists(), f"{path} is mounted and missing"
        for path in (ROOT / "packaging/grafana/provisioning").rglob("*.yaml"):
            for variable in re.findall(r"\$\{?(CEEMS_\w+)", path.read_text()):
                assert f"{variable}=" in (folder / "site/grafana/environment").read_text(), f"{path.name}: {variable} has no value"
    return f"{len(services)} services, {read} files read by their programs, {len(mounted)} mounts"


def prepared(directory: pathlib.Path, tool: pathlib.Path) -> pathlib.Path:
    """A copy of the folder of the Compose file after ./prepare."""
    folder = directory / "packaging/containers/compose"
    shutil.copytree(CONTAINERS / "compose", folder)
    shutil.copy(ROOT / "VERSION", directory)
    for name in ("grafana", "prometheus"):
        shutil.copytree(ROOT / "packaging" / name, directory / "packaging" / name, ignore=shutil.ignore_patterns("__pycache__"))
    run("./prepare", "--cluster", "alpha", cwd=folder, env={**os.environ, "CEEMS_TOOL": str(tool)})
    return folder


def check_compose_schema() -> str:
    """The Compose file as docker-compose reads it, by its schema; all on loopback, none with privileges."""
    tool = program("ceems_tool")
    if not shutil.which("docker-compose"):
        raise Missing("docker-compose is not installed (scripts/setup deploy)")
    with tempfile.TemporaryDirectory() as directory:
        folder = prepared(pathlib.Path(directory), tool)
        services = yaml.safe_load(run("docker-compose", "config", cwd=folder))["services"]
        for name, service in services.items():
            assert service["read_only"] and service["cap_drop"] == ["ALL"] and "no-new-privileges:true" in service["security_opt"], name
            assert "ports" not in service, f"{name} publishes ports"
            for argument in service.get("command") or []:
                assert "listen-address" not in argument or "=127.0.0.1:" in argument, f"{name}: {argument}"
        text = (folder / "compose.yml").read_text()
        for right, wrong in (("    command:", "    comand:"), ("  restart:", "  restrat:"), ("      interval: 30s", "      interval: [30s]")):
            (folder / "compose.yml").write_text(text.replace(right, wrong, 1))
            done = subprocess.run(["docker-compose", "config"], cwd=folder, capture_output=True, check=False)
            assert done.returncode != 0, f"{wrong.strip()} is accepted"
    return f"{len(services)} services, all on loopback; misspelt keys are refused"


def check_quadlet() -> str:
    """Units that name our images, drop what they do not need and listen on loopback."""
    names = []
    for path in sorted((CONTAINERS / "quadlet").glob("*.container")):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str
        unit.read(path)
        container = unit["Container"]
        same((container["DropCapability"], container["ReadOnly"], container["NoNewPrivileges"]), ("all", "true", "true"), path.name)
        assert container["Image"].startswith(f"localhost/ceems/{path.stem}:"), path.name
        assert container["Image"].endswith(":" + (ROOT / "VERSION").read_text().strip()), f"{path.name}: {container['Image']}"
        assert re.findall(r"listen-address=(\S+?):", container["Exec"]) == ["127.0.0.1"], path.name
        for volume in re.findall(r"^Volume=(\S+?\.volume):", path.read_text(), re.M):
            assert (path.parent / volume).exists(), f"{path.name}: {volume} is missing"
        names.append(path.stem)
    same(len(names), 4, "units of containers")
    return ", ".join(names)


def check_quadlet_units() -> str:
    """The services that podman's generator makes, which systemd takes without a complaint; a misspelt key is refused."""
    generator = next((path for path in (pathlib.Path("/usr/libexec/podman/quadlet"), BUILD / "bin/quadlet") if path.exists()), None)
    if not generator:
        raise Missing("podman's generator cannot be had (tests/deploy/tools)")
    if not shutil.which("systemd-analyze"):
        raise Missing("systemd-analyze is not installed (Debian package systemd)")
    with tempfile.TemporaryDirectory() as directory:
        source, made = pathlib.Path(directory) / "source", pathlib.Path(directory) / "made"
        shutil.copytree(CONTAINERS / "quadlet", source)
        made.mkdir()

        def generate(*options: str) -> subprocess.CompletedProcess:
            return subprocess.run([generator, "-no-kmsg-log", *options, made], env={**os.environ, "QUADLET_UNIT_DIRS": str(source)}, capture_output=True, text=True, check=False)

        done = generate()
        same((done.returncode, done.stderr), (0, ""), "the generator")
        services = sorted(path.name for path in made.glob("*.service"))
        same(services, sorted([f"{path.stem}.service" for path in source.glob("*.container")] + [f"{path.stem}-volume.service" for path in source.glob("*.volume")]), "services")
        same(sorted(path.name for path in made.glob("multi-user.target.wants/*")), sorted(f"{path.stem}.service" for path in source.glob("*.container")), "services that start at boot")
        for path in made.glob("*.service"):
            text = path.read_text()
            if not path.stem.endswith("-volume"):
                start = re.search(r"^ExecStart=(.*)$", text, re.M)[1]
                for option in ("--read-only", "--cap-drop all", "--security-opt=no-new-privileges", "--sdnotify=container", "--network host"):
                    assert option in start, f"{path.name}: no {option} in {start}"
            path.write_text(text.replace("/usr/bin/podman", "/bin/true"))  # podman need not be installed
        said = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *made.glob("*.service")], capture_output=True, text=True, check=False)
        same((said.returncode, said.stdout + said.stderr), (0, ""), "systemd-analyze verify")
        broken = source / "ceems-lb.container"
        broken.write_text(broken.read_text().replace("ReadOnly=", "ReadOnlly="))
        done = generate("-dryrun")
        assert done.returncode != 0 and "ReadOnlly" in done.stdout + done.stderr, "a misspelt key is accepted"
    return f"{len(services)} services"


CHECKS = {"images": check_images, "demo": check_demo, "compose": check_compose, "compose-schema": check_compose_schema, "quadlet": check_quadlet, "quadlet-units": check_quadlet_units}
