"""What all checks of tests/deploy need."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/deploy"


class Missing(Exception):
    """A check that cannot run here, with the reason."""


def run(*arguments, **options) -> str:
    """The output of a command; a failure shows what it printed."""
    done = subprocess.run([str(argument) for argument in arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, arguments))[:300]}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def same(got, expected, what: str) -> None:
    if got != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {got!r}")


def program(name: str) -> pathlib.Path:
    """A program of this repository."""
    for directory in (os.environ.get("CEEMS_BIN_DIR"), ROOT / "build/package/bin", ROOT / "build/release/bin", ROOT / "build/dev/bin"):
        if directory and (pathlib.Path(directory) / name).exists():
            return pathlib.Path(directory) / name
    raise Missing(f"{name} is not built")
