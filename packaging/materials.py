"""What the programs of the packages are made of: names, versions and licences, as SPDX, as CycloneDX and as Debian's copyright file."""
import hashlib
import json
import pathlib
import re
import subprocess
import time

# Debian packages whose headers or archives are in the programs. Those with a source in build/portable/sources are compiled from it.
# name -> (Debian package with the licence, SPDX expression)
LIBRARIES = {
    "boost": ("libboost1.81-dev", "BSL-1.0"),
    "openssl": ("libssl-dev", "Apache-2.0"),
    "curl": ("libcurl4-openssl-dev", "curl"),
    "nghttp2": ("libnghttp2-dev", "MIT"),
    "pugixml": ("libpugixml-dev", "MIT"),
    "simdjson": ("libsimdjson-dev", "Apache-2.0"),
    "yaml-cpp": ("libyaml-cpp-dev", "MIT"),
    "libxlsxwriter": ("libxlsxwriter-dev", "BSD-2-Clause"),
    "fmtlib": ("libfmt-dev", "MIT"),
    "spdlog": ("libspdlog-dev", "MIT"),
    "sqlite3": ("libsqlite3-dev", "blessing"),
    "re2": ("libre2-dev", "BSD-3-Clause"),
    "libcap2": ("libcap-dev", "BSD-3-Clause"),
    "zlib": ("zlib1g-dev", "Zlib"),
    "zstd": ("libzstd-dev", "BSD-3-Clause"),
    "howardhinnant-date": ("libhowardhinnant-date-dev", "MIT"),
    "protozero": ("libprotozero-dev", "BSD-2-Clause"),
    "gcc-12": ("libstdc++-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    "glibc": ("libc6-dev", "LGPL-2.1-or-later"),  # its start code, which has an exception for linking
}
BUNDLED = ("svelte", "uplot")  # in the web page; the rest of package-lock.json is for building it


def find(root: pathlib.Path, portable: pathlib.Path, sysroot: pathlib.Path) -> list[dict]:
    found = []
    sources = {}
    for path in (portable / "sources").glob("*.dsc"):
        text = path.read_text(errors="replace")
        sources[re.search(r"^Source: (.*)$", text, re.M)[1]] = re.search(r"^Version: (.*)$", text, re.M)[1]
    for name, (package, licence) in LIBRARIES.items():
        version = subprocess.run(["dpkg-query", f"--admindir={sysroot}/var/lib/dpkg", "-W", "-f", "${source:Version}", package], check=True, capture_output=True, text=True).stdout
        found.append({"name": name, "version": sources.get(name, version), "licence": licence, "kind": "deb", "package": package})
    lock = json.loads((root / "web/package-lock.json").read_text())
    for name in BUNDLED:
        entry = lock["packages"][f"node_modules/{name}"]
        found.append({"name": name, "version": entry["version"], "licence": entry.get("license", "MIT"), "kind": "npm", "package": name})
    found.append({"name": "emission-factors", "version": "Ember, Energy Institute, Our World in Data", "licence": "CC-BY-4.0", "kind": "data", "package": ""})
    return found


def purl(part: dict) -> str | None:
    if part["kind"] == "deb":
        return f"pkg:deb/debian/{part['name']}@{part['version'].replace(':', '%3A').replace('+', '%2B')}?arch=source&distro=debian-12"
    return f"pkg:npm/{part['name']}@{part['version']}" if part["kind"] == "npm" else None


def copyright_text(parts: list[dict] | None, sysroot: pathlib.Path) -> str:
    text = ("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: CEEMS in C++\n\nFiles: *\n"
            "Copyright: 2026 the authors of CEEMS in C++\nLicense: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n")
    if parts is None:
        return text
    text += "\nComment: The programs contain the following. The full texts follow below.\n"
    text += "".join(f" {part['name']} {part['version']}: {part['licence']}\n" for part in parts)
    for part in parts:
        if part["kind"] != "deb":
            continue
        licence = (sysroot / "usr/share/doc" / part["package"] / "copyright").read_text(errors="replace")
        text += f"\nComment: {part['name']}\n" + "".join(f" {line}\n" if line.strip() else " .\n" for line in licence.rstrip().splitlines())
    return text


def write(parts: list[dict], out: pathlib.Path, version: str, epoch: int) -> None:
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    files = [{"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()} for path in sorted(out.iterdir()) if path.is_file()]
    identity = hashlib.sha256(json.dumps([parts, files, version], sort_keys=True).encode()).hexdigest()

    def spdx_id(name: str) -> str:
        return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)

    packages = [{"SPDXID": "SPDXRef-ceems", "name": "ceems", "versionInfo": version, "downloadLocation": "NOASSERTION", "licenseConcluded": "Apache-2.0",
                 "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "filesAnalyzed": False}]
    for part in parts:
        entry = {"SPDXID": spdx_id(part["name"]), "name": part["name"], "versionInfo": part["version"], "downloadLocation": "NOASSERTION",
                 "licenseConcluded": part["licence"], "licenseDeclared": part["licence"], "copyrightText": "NOASSERTION", "filesAnalyzed": False}
        if purl(part):
            entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl(part)}]
        packages.append(entry)
    spdx = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"ceems-{version}",
            "documentNamespace": f"urn:ceems:{identity}", "creationInfo": {"created": created, "creators": ["Tool: packaging/build"]}, "packages": packages,
            "files": [{"SPDXID": spdx_id(file["name"]), "fileName": f"./{file['name']}", "checksums": [{"algorithm": "SHA256", "checksumValue": file["sha256"]}],
                       "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"} for file in files],
            "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-ceems"}]
            + [{"spdxElementId": "SPDXRef-ceems", "relationshipType": "CONTAINS", "relatedSpdxElement": spdx_id(part["name"])} for part in parts]}
    components = []
    for part in parts:
        component = {"type": "data" if part["kind"] == "data" else "library", "bom-ref": part["name"], "name": part["name"], "version": part["version"],
                     "licenses": [{"expression": part["licence"]}]}
        if purl(part):
            component["purl"] = purl(part)
        components.append(component)
    cyclonedx = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{identity[:8]}-{identity[8:12]}-4{identity[13:16]}-8{identity[17:20]}-{identity[20:32]}",
                 "version": 1, "metadata": {"timestamp": created, "component": {"type": "application", "bom-ref": "ceems", "name": "ceems", "version": version}},
                 "components": components, "dependencies": [{"ref": "ceems", "dependsOn": [part["name"] for part in parts]}]}
    (out / f"ceems-{version}.spdx.json").write_text(json.dumps(spdx, indent=1, sort_keys=True) + "\n")
    (out / f"ceems-{version}.cdx.json").write_text(json.dumps(cyclonedx, indent=1, sort_keys=True) + "\n")
