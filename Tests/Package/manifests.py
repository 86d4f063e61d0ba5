#!/usr/bin/env python3
"""Judges the files of docs/deploy without an engine that runs them: python3 -B Tests/Package/manifests.py

Each manifest has the fields that its kind needs, and no field that its kind has not. What one names, another has: labels, ports, secrets,
volumes, paths of probes in docs/openapi.yaml, variables in the hub's own list. Prints each mistake, and exits with 1 if there is one.
"""

import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs" / "deploy"
# Fields by their place: "?" may be missing, "*" stands for any name, "[]" for each element, None for any value.
LABELS = {"*": str}
META = {"name": str, "labels?": LABELS, "namespace?": str}
PROBE = {
    "httpGet": {"path": str, "port": (str, int)}, "periodSeconds?": int, "timeoutSeconds?": int, "failureThreshold?": int,
    "initialDelaySeconds?": int}
CONTAINER = {
    "name": str, "image": str, "args?": [str], "command?": [str], "envFrom?": [{"secretRef": {"name": str}}],
    "ports?": [{"name": str, "containerPort": int, "protocol?": str}], "startupProbe?": PROBE, "livenessProbe?": PROBE,
    "readinessProbe?": PROBE, "lifecycle?": {"preStop?": {"exec": {"command": [str]}}},
    "securityContext?": {
        "allowPrivilegeEscalation?": bool, "readOnlyRootFilesystem?": bool, "capabilities?": {"drop?": [str], "add?": [str]}},
    "resources?": {"requests?": {"*": str}, "limits?": {"*": str}},
    "volumeMounts?": [{"name": str, "mountPath": str, "readOnly?": bool}]}
POD = {
    "enableServiceLinks?": bool, "automountServiceAccountToken?": bool, "terminationGracePeriodSeconds?": int,
    "securityContext?": {
        "runAsNonRoot?": bool, "runAsUser?": int, "runAsGroup?": int, "fsGroup?": int, "seccompProfile?": {"type": str}},
    "topologySpreadConstraints?": [
        {"maxSkew": int, "topologyKey": str, "whenUnsatisfiable": str, "labelSelector": {"matchLabels": LABELS}}],
    "containers": [CONTAINER], "volumes?": [{"name": str, "emptyDir?": {}, "configMap?": {"name": str}}]}
KINDS = {
    ("apps/v1", "Deployment"): {"spec": {
        "replicas?": int, "selector": {"matchLabels": LABELS}, "minReadySeconds?": int,
        "strategy?": {"type": str, "rollingUpdate?": {"maxUnavailable?": (int, str), "maxSurge?": (int, str)}},
        "template": {"metadata": {"labels": LABELS}, "spec": POD}}},
    ("v1", "Service"): {"spec": {"selector": LABELS, "ports": [{"name": str, "port": int, "targetPort?": (str, int)}]}},
    ("v1", "ConfigMap"): {"data": {"*": str}},
    ("v1", "Secret"): {"type?": str, "stringData": {"*": str}},
    ("policy/v1", "PodDisruptionBudget"): {
        "spec": {"maxUnavailable?": (int, str), "minAvailable?": (int, str), "selector": {"matchLabels": LABELS}}},
    ("monitoring.coreos.com/v1", "ServiceMonitor"): {"spec": {
        "selector": {"matchLabels": LABELS},
        "endpoints": [{
            "port": str, "path?": str, "interval?": str,
            "authorization?": {"type?": str, "credentials": {"name": str, "key": str}}}]}},
}
NODE = {
    "build?": {"context": str, "dockerfile?": str}, "image?": str, "command?": [str], "restart?": str, "stop_grace_period?": str,
    "read_only?": bool, "tmpfs?": [str], "cap_drop?": [str], "security_opt?": [str], "ulimits?": {"*": int},
    "depends_on?": {"*": {"condition": str}}, "environment?": {"*": str}, "ports?": [str], "volumes?": [str],
    "healthcheck?": {"test": [str], "interval?": str, "retries?": int}}
COMPOSE = {"x-node?": None, "services": {"*": NODE}, "volumes?": {"*": None}}


class Judge:
    def __init__(self):
        self.mistakes = []
        self.count = 0

    def expect(self, holds, text):
        self.count += 1
        if not holds:
            self.mistakes.append(text)

    def shape(self, value, wanted, place):
        """Whether a value has the fields of a shape, and no other."""
        if wanted is None:
            return
        if isinstance(wanted, (type, tuple)):
            good = isinstance(value, wanted) and (wanted is not int or not isinstance(value, bool))
            return self.expect(good, f"{place}: {value!r} is of another type")
        if isinstance(wanted, list):
            self.expect(isinstance(value, list) and value, f"{place}: needs a list")
            for number, element in enumerate(value if isinstance(value, list) else []):
                self.shape(element, wanted[0], f"{place}[{number}]")
            return
        self.expect(isinstance(value, dict), f"{place}: needs fields")
        value = value if isinstance(value, dict) else {}
        if "*" in wanted:
            for name, element in value.items():
                self.shape(element, wanted["*"], f"{place}.{name}")
            return
        names = {name.rstrip("?"): (name.endswith("?"), shape) for name, shape in wanted.items()}
        for name in value:
            self.expect(name in names, f"{place}: there is no field {name}")
        for name, (is_optional, shape) in names.items():
            if name in value:
                self.shape(value[name], shape, f"{place}.{name}")
            else:
                self.expect(is_optional, f"{place}: {name} is missing")


def variables():
    text = (ROOT / "Sources/HubConfiguration/EnvironmentName.swift").read_text()
    return set(re.findall(r'case \w+ = "(\w+)"', text))


def kubernetes(judge):
    found = {}
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            kind = (document["apiVersion"], document["kind"])
            place = f"{path.name}: {document['kind']}"
            judge.expect(kind in KINDS, f"{place}: no such kind in {document['apiVersion']}")
            judge.shape(document, {"apiVersion": str, "kind": str, "metadata": META, **KINDS.get(kind, {})}, place)
            found[document["kind"]] = document
    pod = found["Deployment"]["spec"]["template"]
    labels, container = pod["metadata"]["labels"], pod["spec"]["containers"][0]
    for kind, selector in (
        ("Deployment", found["Deployment"]["spec"]["selector"]["matchLabels"]), ("Service", found["Service"]["spec"]["selector"]),
        ("PodDisruptionBudget", found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]),
    ):
        judge.expect(selector.items() <= labels.items(), f"{kind} selects no pod")
    judge.expect(
        found["ServiceMonitor"]["spec"]["selector"]["matchLabels"].items() <= found["Service"]["metadata"]["labels"].items(),
        "the monitor selects no service")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    services = {port["name"]: port["targetPort"] for port in found["Service"]["spec"]["ports"]}
    routes = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())["paths"]
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = container[name]["httpGet"]
        judge.expect(probe["port"] in ports and probe["path"] in routes, f"{name} asks for what is not there")
    judge.expect(all(target in ports for target in services.values()), "the service's port is none of the pod's")
    endpoint = found["ServiceMonitor"]["spec"]["endpoints"][0]
    judge.expect(endpoint["port"] in services and endpoint["path"] in routes, "the monitor reads what is not there")
    secret = found["Secret"]
    token = endpoint["authorization"]["credentials"]
    is_there = token["name"] == secret["metadata"]["name"] and token["key"] in secret["stringData"]
    judge.expect(is_there, "the monitor's token is in no secret")
    judge.expect(container["envFrom"][0]["secretRef"]["name"] == secret["metadata"]["name"], "the pod's environment is in no secret")
    judge.expect(set(secret["stringData"]) <= variables(), "the secret sets a variable that the hub does not know")
    # A service called tandem would set TANDEM_PORT in every pod, as an address.
    judge.expect(pod["spec"].get("enableServiceLinks") is False, "service links would set TANDEM_PORT")
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    judge.expect(all(mount["name"] in volumes for mount in container["volumeMounts"]), "a mount has no volume")
    maps = [volume["configMap"]["name"] for volume in pod["spec"]["volumes"] if "configMap" in volume]
    judge.expect(maps == [found["ConfigMap"]["metadata"]["name"]], "the channels' map is another one")
    grace = pod["spec"]["terminationGracePeriodSeconds"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    judge.expect(grace >= pause + 10 + 5, "the grace ends before the clients are closed")
    for text in found["ConfigMap"]["data"].values():
        yaml.safe_load(text)


def compose(judge):
    page = yaml.safe_load((DEPLOY / "docker/compose.yaml").read_text())
    judge.shape(page, COMPOSE, "compose.yaml")
    services = page["services"]
    for name, service in services.items():
        for other, need in service.get("depends_on", {}).items():
            judge.expect(other in services, f"{name} needs {other}, which is not there")
            has_check = "healthcheck" in services.get(other, {}) or "build" in services.get(other, {})
            judge.expect(need["condition"] != "service_healthy" or has_check, f"{other} has no health to wait for")
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            there = (DEPLOY / "docker" / source).exists() if source.startswith(".") else source in page["volumes"]
            judge.expect(there, f"{name}: there is no {source}")
        if "build" in service:
            judge.expect(set(service["environment"]) <= variables(), f"{name} sets a variable that the hub does not know")
            built = DEPLOY / "docker" / service["build"]["context"] / service["build"]["dockerfile"]
            judge.expect(built.resolve() == DEPLOY / "docker/Dockerfile", f"{name} is built from another file")
    nodes = {name for name, service in services.items() if "build" in service}
    servers = re.findall(r"^\s+server (\w+) (\w+):6001$", (DEPLOY / "docker/haproxy.cfg").read_text(), re.M)
    judge.expect({host for _, host in servers} == nodes, "the balancer's servers are not the nodes")


def image(judge):
    text = (DEPLOY / "docker/Dockerfile").read_text().replace("\\\n", " ")
    steps = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    for word, _ in steps:
        judge.expect(word in known, f"Dockerfile: there is no instruction {word}")
    values = dict(steps)
    pod = yaml.safe_load((DEPLOY / "kubernetes/deployment.yaml").read_text())["spec"]["template"]["spec"]
    user = f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
    judge.expect(values["USER"] == user, "the image's account is not the deployment's")
    judge.expect("health" in values["HEALTHCHECK"] and "tandem.yaml" in text, "the image keeps secrets, or has no health check")
    command = yaml.safe_load(values["CMD"])
    judge.expect(command == pod["containers"][0]["args"], "the image's command is not the deployment's")
    for script in re.findall(r"docs/[\w./-]+\.sh", text):
        judge.expect((ROOT / script).exists(), f"Dockerfile: there is no {script}")


def main():
    judge = Judge()
    for part in (kubernetes, compose, image):
        part(judge)
    for mistake in judge.mistakes:
        print(mistake)
    print(f"{judge.count} points of docs/deploy checked, {len(judge.mistakes)} wrong")
    return 1 if judge.mistakes else 0


sys.exit(main())
