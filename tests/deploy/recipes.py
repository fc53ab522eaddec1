"""The checks of the recipes for EasyBuild and Spack, by which users of a cluster get cacct without the machine's packages."""
import os
import pathlib
import re
import shutil
import tempfile

from common import BUILD, Missing, ROOT, run, same

VERSION = (ROOT / "VERSION").read_text().strip()
EASYCONFIG = ROOT / f"packaging/easybuild/ceems-{VERSION}.eb"
LMOD = pathlib.Path("/usr/share/lmod/lmod/libexec/lmod")
NOBODY = 65534


def tarball() -> pathlib.Path:
    folder = pathlib.Path(os.environ.get("CEEMS_PACKAGES") or ROOT / "build/packages/out")
    found = list(folder.glob(f"ceems-{VERSION}-linux-x86_64.tar.gz"))
    if not found:
        raise Missing(f"no tarball of {VERSION} in {folder}: run 'make packages'")
    return found[0]


def check_easybuild() -> str:
    """EasyBuild installs the recipe of this version, and the module that it makes gives both programs. It must not be run by root."""
    libraries = next((BUILD / "venv/lib").glob("python3*/site-packages/easybuild"), None)
    if libraries is None or not LMOD.exists() or not os.access("/usr/bin/python3", os.X_OK):
        raise Missing("EasyBuild (tests/deploy/tools) or lmod (scripts/setup deploy) is not installed")
    with tempfile.TemporaryDirectory(prefix="ceems-easybuild-") as directory:
        work = pathlib.Path(directory)
        shutil.copytree(libraries.parent, work / "python", ignore=shutil.ignore_patterns("__pycache__", "ansible*"))
        for path in (tarball(), EASYCONFIG):
            shutil.copy(path, work)
        (work / "prefix/tmp").mkdir(parents=True)
        run("chown", "-R", NOBODY, work)
        environment = {"HOME": str(work / "prefix"), "PATH": f"{LMOD.parent}:/usr/bin:/bin", "LMOD_CMD": str(LMOD), "PYTHONPATH": str(work / "python"), "LC_ALL": "C.UTF-8"}
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        run(*as_nobody, "/usr/bin/python3", "-m", "easybuild.main", "--modules-tool=Lmod", "--disable-rpath", f"--prefix={work}/prefix", f"--sourcepath={work}",
            f"--tmpdir={work}/prefix/tmp", work / EASYCONFIG.name, cwd=work / "prefix", env=environment, timeout=300)
        told = run(*as_nobody, "bash", "-c", 'eval "$("$LMOD_CMD" bash use "$1")"; eval "$("$LMOD_CMD" bash load ceems)"; command -v cacct; cacct --version; ceems_tool --version',
                   "bash", f"{work}/prefix/modules/all", env=environment)
        assert told.startswith(f"{work}/prefix/software/ceems/{VERSION}/bin/cacct\ncacct, version ") and "\nceems_tool, version " in told, told
        same(sorted(path.name for path in (work / f"prefix/software/ceems/{VERSION}/share/man/man8").iterdir()), ["cacct.8.gz", "ceems_tool.8.gz"], "man pages")
    return f"ceems/{VERSION} is installed by EasyBuild and loaded by Lmod"


def check_spack() -> str:
    """Spack installs the recipe of this version."""
    recipe = (ROOT / "packaging/spack/packages/ceems/package.py").read_text()
    same(re.findall(r'^    version\("([^"]+)"\)', recipe, re.M), [VERSION], "versions of the recipe")
    compile(recipe, "package.py", "exec")
    spack = shutil.which("spack")
    if not spack:
        raise Missing("spack is not installed, and is in no registry of packages; the recipe has the right version")
    with tempfile.TemporaryDirectory(prefix="ceems-spack-") as directory:
        shutil.copy(tarball(), directory)
        environment = {**os.environ, "SPACK_USER_CONFIG_PATH": directory, "SPACK_USER_CACHE_PATH": directory}
        run(spack, "repo", "add", ROOT / "packaging/spack", env=environment)
        run(spack, "install", "--no-checksum", "--fresh", f"ceems@{VERSION}", cwd=directory, env=environment)
        place = run(spack, "location", "-i", f"ceems@{VERSION}", env=environment).strip()
        assert f"cacct, version {VERSION}" in run(f"{place}/bin/cacct", "--version")
    return f"ceems@{VERSION} is installed"


CHECKS = {"easybuild": check_easybuild, "spack": check_spack}
