#!/usr/bin/env python3
"""Fails on an include that src/LAYERS does not allow, on an allowed include that nothing uses, on layers that could include each
other in a cycle, and on "../" includes. Usage: tests/layering_test.py [repository]
"""
import pathlib
import re
import sys

TEST_FILE = re.compile(r"_test\.cc$|_test_support\.h$|_fixture\.h$|^(fake|mock|test)_\w+\.(h|cc)$")
LINE = re.compile(r"([\w/]+):([^|=]*)(?:\|([^=]*))?= *\d+$")


def read_layers(path):
    """Returns {layer: (layers its files may include, layers only its tests may include)} and the errors of the file."""
    layers, wrong = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = LINE.match(line)
        if not found:
            wrong.append(f"src/LAYERS:{number}: expected 'layer: layers | layers of tests = lines', got '{line}'")
            continue
        name, allowed, tests = found.group(1), found.group(2).split(), (found.group(3) or "").split()
        for other in allowed:
            if other not in layers:
                wrong.append(f"src/LAYERS:{number}: {name} names {other}, which is not defined above it")
        layers[name] = (set(allowed), set(tests))
    return layers, wrong


def layer_of(layers, path):
    """The layer with the longest name that contains the file, or None."""
    parts = path.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in layers:
            return name
    return None


def main():
    source = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent) / "src"
    layers, wrong = read_layers(source / "LAYERS")
    used = set()
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".cc", ".h"):
            continue
        name = path.relative_to(source).as_posix()
        layer = layer_of(layers, name)
        if layer is None:
            wrong.append(f"src/{name}: src/LAYERS has no line for its folder")
            continue
        is_test = bool(TEST_FILE.search(path.name))
        allowed, tests = layers[layer]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r'#include "([^"]+)"', line)
            if not include:
                continue
            target = include.group(1)
            other = layer_of(layers, target)
            if target.startswith("../") or (other is None and not (source / target).exists() and (path.parent / target).exists()):
                wrong.append(f"src/{name}:{number}: write includes relative to src/")
            if other is None or other == layer:
                continue
            if other in allowed and not (is_test and other in tests):
                used.add((layer, other))
            elif is_test and other in tests:
                used.add((layer, other, "tests"))
            else:
                wrong.append(f"src/{name}:{number}: {layer} may not include {other} (src/LAYERS)")
    for layer, (allowed, tests) in layers.items():
        unused = [other for other in sorted(allowed) if (layer, other) not in used]
        unused += [f"{other} (tests)" for other in sorted(tests) if (layer, other, "tests") not in used]
        for other in unused:
            wrong.append(f"src/LAYERS: {layer} does not need {other}")
    for line in wrong:
        print(line)
    if not wrong:
        print(f"layers: every include is allowed by src/LAYERS, {len(layers)} layers")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
