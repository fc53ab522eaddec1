#!/usr/bin/env python3
"""Writes libraries to link with in the place of glibc's, so that programs run with an older glibc.

A stub has the symbols of the compiler's library and no code. Each symbol has the newest of its versions that is not newer than the one
asked for, and symbols that came later are missing, so the linker names every function that compat.c has to replace.

Usage: glibc_stubs.py DIRECTORY 2.28 COMPILER..."""
import pathlib
import re
import subprocess
import sys

LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
# glibc 2.34 moved what is in these into libc.so.6. Programs name them, so that an older glibc loads them as well.
MOVED = ("libpthread.so.0", "libdl.so.2", "librt.so.1")
ROW = re.compile(r"^\s*\d+: [0-9a-f]+\s+(\d+|0x[0-9a-f]+) (\w+)\s+(?:GLOBAL|WEAK|UNIQUE)\s+\w+\s+(\d+|ABS) (\S+?)@@?GLIBC_([0-9.]+)\b")


def output(*arguments: str) -> str:
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.strip()


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def symbols(path: str, newest: tuple[int, ...]) -> dict[str, tuple[str, int, str]]:
    """For each symbol of the library: version, size and type."""
    found: dict[str, tuple[str, int, str]] = {}
    for line in output("readelf", "-W", "--dyn-syms", path).splitlines():
        row = ROW.match(line)
        if not row or row[3] == "ABS":
            continue
        size, kind, _, name, version = row.groups()
        if number(version) <= newest and (name not in found or number(found[name][0]) < number(version)):
            found[name] = (version, int(size, 0), kind)
    return found


def write(compiler: list[str], directory: pathlib.Path, soname: str, found: dict[str, tuple[str, int, str]]) -> None:
    assembly = []
    nodes: dict[str, list[str]] = {}
    for name, (version, size, kind) in sorted(found.items()):
        section = {"TLS": '.section .tbss,"awT",@nobits', "OBJECT": ".data"}.get(kind, ".text")
        of_type = {"TLS": "@tls_object", "OBJECT": "@object"}.get(kind, "@function")
        # Programs copy variables, and the linker takes their size from here.
        assembly += [section, ".balign 32", f".globl {name}", f".type {name}, {of_type}", f".size {name}, {size}", f"{name}:", f".zero {max(size if kind != 'FUNC' else 1, 1)}"]
        nodes.setdefault(version, []).append(name)
    versions = [f"GLIBC_{version} {{ global: {' '.join(name + ';' for name in nodes[version])} }};" for version in sorted(nodes, key=number)]
    source, script = directory / f"{soname}.s", directory / f"{soname}.map"
    source.write_text("\n".join([*assembly, '.section .note.GNU-stack,"",@progbits', ""]))
    script.write_text("\n".join([*versions, ""]))
    subprocess.run([*compiler, "-shared", "-nostdlib", "-Wl,--build-id=none", f"-Wl,-soname,{soname}"]
                   + ([f"-Wl,--version-script={script}"] if versions else []) + ["-o", directory / soname, source], check=True)


def main() -> None:
    directory, newest, compiler = pathlib.Path(sys.argv[1]), number(sys.argv[2]), sys.argv[3:]
    directory.mkdir(parents=True, exist_ok=True)
    loader = LOADERS[output(*compiler, "-dumpmachine").split("-")[0]]
    for soname in ("libc.so.6", "libm.so.6", loader):
        path = output(*compiler, f"-print-file-name={soname}")
        found = symbols(path, newest)
        if len(found) < 3:
            sys.exit(f"glibc_stubs: {path}: expected the symbols of glibc, found {len(found)}")
        write(compiler, directory, soname, found)
    for soname in MOVED:
        write(compiler, directory, soname, {})
    nonshared = output(*compiler, "-print-file-name=libc_nonshared.a")
    here = directory.resolve()
    (directory / "libc.so").write_text(f"GROUP({here}/libc.so.6 {nonshared} {here}/libcompat.a AS_NEEDED({here}/{loader}))\n")
    (directory / "libm.so").write_text(f"GROUP({here}/libm.so.6)\n")


main()
