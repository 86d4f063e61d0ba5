#!/usr/bin/env python3
"""Writes a bill of materials in SPDX 2.3: sbom.py PACKAGE.deb PROGRAM COMMIT EPOCH > tandem.spdx.json

Listed are the packages of Package.resolved, transitive ones as well, at their exact revisions; Swift's runtime; and the Debian packages of
the libraries that the program loads, those that these load included, at the versions of the machine that built it.
"""

import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
LICENSES = {
    "grdb.swift": "MIT", "hdrhistogram-swift": "Apache-2.0", "swift-argument-parser": "Apache-2.0", "swift-log": "Apache-2.0",
    "swift-mustache": "Apache-2.0", "swift-numerics": "Apache-2.0", "yams": "MIT"}
# Only the load tester's, which no package has.
NOT_LINKED = {"hdrhistogram-swift", "swift-numerics"}


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def package(name, version, location, license_, purl=None, kind="LIBRARY"):
    entry = {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}"), "name": name, "versionInfo": version,
        "downloadLocation": location, "filesAnalyzed": False, "licenseConcluded": license_, "licenseDeclared": license_,
        "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION" if kind == "PRODUCT" else "LIBRARY"}
    if purl:
        entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return entry


def swift_packages():
    for pin in json.loads((ROOT / "Package.resolved").read_text())["pins"]:
        state, url = pin["state"], pin["location"]
        yield pin["identity"], package(
            pin["identity"], state["version"], f"git+{url}@{state['revision']}", LICENSES.get(pin["identity"], "NOASSERTION"),
            f"pkg:swift/{url.removeprefix('https://').removesuffix('.git')}@{state['version']}")


def debian_packages(program):
    """Each Debian package of a library that the dynamic loader takes, with its version."""
    paths = set(re.findall(r"=> (/\S+)", output("ldd", program)))
    names = set()
    for path in paths | {"/usr/lib/x86_64-linux-gnu/libwebsockets-evlib_uv.so"}:
        real = pathlib.Path(path).resolve()
        for spelling in (str(real), str(real).removeprefix("/usr"), path):
            found = subprocess.run(["dpkg", "-S", spelling], capture_output=True, text=True)
            if found.returncode == 0:
                names.add(found.stdout.split(": ")[0].split(":")[0])
                break
    for name in sorted(names):
        version = output("dpkg-query", "-W", "-f", "${Version}", name).strip()
        yield package(
            name, version, f"http://deb.debian.org/debian ({name} {version})".split(" ")[0], "NOASSERTION",
            f"pkg:deb/debian/{name}@{version}?distro=bookworm", kind="DEBIAN")


def main():
    deb, program, commit, epoch = sys.argv[1:]
    version = output("dpkg-deb", "-f", deb, "Version").strip()
    digest = hashlib.sha256(pathlib.Path(deb).read_bytes()).hexdigest()
    product = package("tandem", version, "NOASSERTION", "Apache-2.0", f"pkg:deb/tandem@{version}", kind="PRODUCT")
    product["packageFileName"] = pathlib.Path(deb).name
    product["checksums"] = [{"algorithm": "SHA256", "checksumValue": digest}]
    swift = re.search(r"swift-(\S+)-RELEASE", output("swift", "--version"))[1]
    runtime = package(
        "swift-runtime", swift, f"git+https://github.com/swiftlang/swift@swift-{swift}-RELEASE",
        "Apache-2.0 WITH Swift-exception", f"pkg:github/swiftlang/swift@swift-{swift}-RELEASE")
    packages, edges = [product, runtime], [("STATIC_LINK", runtime)]
    for identity, entry in swift_packages():
        packages.append(entry)
        edges.append(("TEST_TOOL_OF" if identity in NOT_LINKED else "STATIC_LINK", entry))
    for entry in debian_packages(program):
        packages.append(entry)
        edges.append(("DYNAMIC_LINK", entry))
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": product["SPDXID"]}]
    for kind, entry in edges:
        ends = (entry["SPDXID"], product["SPDXID"]) if kind == "TEST_TOOL_OF" else (product["SPDXID"], entry["SPDXID"])
        relations.append({"spdxElementId": ends[0], "relationshipType": kind, "relatedSpdxElement": ends[1]})
    created = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    json.dump({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"tandem {version}",
        "documentNamespace": f"https://tandem.invalid/spdx/{version}-{commit}",
        "creationInfo": {"created": created, "creators": ["Organization: Tandem", "Tool: sbom.py"]},
        "packages": packages, "relationships": relations,
    }, sys.stdout, indent=1)
    print()


main()
