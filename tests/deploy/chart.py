"""The checks of the Helm chart: it renders for each set of values, its objects have the published schemas, nothing is open, and values that
it does not know are refused."""
import base64
import functools
import os
import pathlib
import re
import subprocess
import tempfile

import yaml

from common import BUILD, Missing, ROOT, program, run, same

CHART = ROOT / "packaging/helm/ceems"
HELM = BUILD / "bin/helm"
# The oldest that the chart takes, then the oldest and the newest whose schemas are published in kubernetes-validate.
VERSIONS = ("1.21.0", "1.25.0", "1.37.0")
OPERATOR = "monitoring.coreos.com/v1"
NEWER = ("monitoring.coreos.com", "cert-manager.io")  # kinds of others: no published schema here


@functools.cache
def render(values: str = "", version: str = VERSIONS[-1], *more: str) -> tuple:
    """The objects that `helm template` makes with a file of packaging/helm/ceems/ci."""
    if not HELM.exists():
        raise Missing("helm could not be built (tests/deploy/tools)")
    files = ["--values", str(CHART / "ci" / values)] if values else []
    text = run(HELM, "template", "t", CHART, "--namespace", "ceems", "--kube-version", version, "--api-versions", OPERATOR, *files, *more)
    return tuple(document for document in yaml.safe_load_all(text) if document)


def scenarios() -> list[str]:
    return ["", *sorted(path.name for path in (CHART / "ci").glob("*.yaml"))]


def pods(objects) -> list[tuple[str, dict]]:
    return [(thing["metadata"]["name"], thing["spec"]["template"]["spec"]) for thing in objects if thing["kind"] in ("Deployment", "DaemonSet", "StatefulSet")]


def secrets(objects) -> dict[str, dict]:
    return {thing["metadata"]["name"]: thing.get("stringData") or {key: base64.b64decode(value).decode() for key, value in thing["data"].items()} for thing in objects if thing["kind"] == "Secret"}


def check_helm() -> str:
    """helm lint and template, for each scenario."""
    counts = []
    for scenario in scenarios():
        files = ["--values", str(CHART / "ci" / scenario)] if scenario else []
        render(scenario)
        run(HELM, "lint", "--strict", "--kube-version", VERSIONS[-1], CHART, *files)
        for version in VERSIONS:
            counts.append(len(render(scenario, version)))
    with tempfile.TemporaryDirectory() as directory:
        run(HELM, "package", CHART, "--destination", directory)
        listed = run("tar", "-tzf", next(pathlib.Path(directory).glob("*.tgz")))
        for name in ("ceems/files/ceems.rules.yml", "ceems/files/ceems-alerts.yml", "ceems/values.schema.json"):
            assert name in listed.splitlines(), f"the package lacks {name}"
        assert "/ci/" not in listed, "the package has the scenarios"
    return f"{len(scenarios())} scenarios, {min(counts)} to {max(counts)} objects"


def check_schemas() -> str:
    """Each object against the published schema of its kind."""
    try:
        import kubernetes_validate
    except ImportError as error:
        raise Missing("kubernetes-validate is not installed (tests/deploy/tools)") from error
    others, count = set(), 0
    manifests = tuple(yaml.safe_load_all((ROOT / "packaging/kubernetes/admission-controller.yml").read_text()))
    # Reading the schemas takes most of the time: each scenario with the newest, the defaults with the oldest.
    for version, names in ((VERSIONS[1], [""]), (VERSIONS[2], scenarios())):
        short = version.rsplit(".", 1)[0]
        for thing in sum((render(scenario, version) for scenario in names), ()) + manifests:
            if thing["apiVersion"].split("/")[0] in NEWER:
                others.add(thing["kind"])
                continue
            kubernetes_validate.validate(thing, short, strict=True)
            count += 1
    broken = dict(next(thing for thing in manifests if thing["kind"] == "Deployment"))
    broken["spec"] = {**broken["spec"], "replica": 2}
    try:
        kubernetes_validate.validate(broken, VERSIONS[-1].rsplit(".", 1)[0], strict=True)
    except kubernetes_validate.ValidationError:
        return f"{count} objects are valid; without published schemas: {', '.join(sorted(others))}"
    raise AssertionError("an object with a misspelt key is taken for valid")


def check_closed() -> str:
    """Defaults and scenarios: no port of a node, no program without a password, no privileges that are not needed."""
    for scenario in scenarios():
        objects = render(scenario)
        known = secrets(objects)
        for thing in objects:
            if thing["kind"] == "Service":
                same(thing["spec"].get("type", "ClusterIP"), "ClusterIP", f"{scenario}: type of {thing['metadata']['name']}")
            if thing["kind"] not in ("Secret",):
                for name, secret in known.items():
                    for key, value in secret.items():
                        assert key not in ("password", "token", "tls.key") or value not in yaml.safe_dump(thing), f"{scenario}: {name}/{key} is in {thing['kind']} {thing['metadata']['name']}"
        covered = [thing["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for thing in objects if thing["kind"] == "NetworkPolicy"]
        for name, spec in pods(objects):
            component = name.removeprefix("t-ceems-")
            assert component in covered, f"{scenario}: {name} has no NetworkPolicy"
            assert not spec.get("hostNetwork") and not spec.get("hostPID") and not spec.get("hostIPC"), f"{scenario}: {name} is in a namespace of the host"
            container = spec["containers"][0]
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"], f"{scenario}: {name} can write its root"
            if component == "exporter":
                assert security.get("privileged") or security["capabilities"]["drop"] == ["ALL"], f"{scenario}: {name} keeps capabilities"
                same(bool(security.get("privileged")), "ipmi" in scenario, f"{scenario}: whether {name} is privileged")
            else:
                assert spec["securityContext"]["runAsNonRoot"] and security["capabilities"]["drop"] == ["ALL"] and not security["allowPrivilegeEscalation"], f"{scenario}: {name} has privileges"
            assert all("hostPort" not in port for port in container["ports"]), f"{scenario}: {name} has a port of the host"
            if component != "admission":
                web = yaml.safe_load(known[f"{name}-web"]["web-config.yml"])
                assert web.get("basic_auth_users") or web["tls_server_config"]["client_auth_type"].startswith("Require"), f"{scenario}: {name} is open"
    passwords = [value["password"] for value in secrets(render()).values() if "password" in value]
    assert len(passwords) == 4 and len(set(passwords)) == 4 and min(map(len, passwords)) >= 32, f"{len(passwords)} passwords"
    return "no open port, no privilege too many, a password of its own for each program"


def check_values() -> str:
    """Values of the charts of CEEMS have their effect; what the chart does not know is refused with its name."""
    objects = render("reference.yaml")
    exporter = next(spec for name, spec in pods(objects) if name == "t-ceems-exporter")["containers"][0]
    for argument in ("--collector.redfish", "--collector.rapl", "--collector.slurm.gres-config-file=/etc/slurm/gres.conf", "--log.level=debug"):
        assert argument in exporter["args"], f"{argument} is missing: {exporter['args']}"
    assert {"name": "A_VARIABLE", "value": "1"} in exporter["env"], exporter["env"]
    found = secrets(objects)
    redfish = yaml.safe_load(found["t-ceems-exporter-redfish"]["redfish-config.yml"])["redfish_collector"]
    same((redfish["node_chassis"], redfish["external_url"]), (["Chassis_1"], "http://t-ceems-redfish-proxy.ceems.svc:5000"), "the Redfish collector")
    api = yaml.safe_load(found["t-ceems-api-server-config"]["config.yml"])
    same([cluster["id"] for cluster in api["clusters"]], ["slurm-1", "kube-7"], "clusters")
    same(yaml.safe_load(found["t-ceems-lb-web"]["web-config.yml"])["basic_auth_users"], {"ceems": "$2y$10$" + "x" * 53}, "users of the load balancer")
    assert "t-ceems-lb-auth" not in found, "a password is made beside those of the site"
    assert any(thing["kind"] == "StatefulSet" for thing in objects), "persistence.type: sts"
    refused = 0
    for setting, name in (("ceemsLB.kubeRBACProxy.enabled=true", "kubeRBACProxy"), ("ceemsExporter.servce.port=1", "servce"), ("ceemsLB.service.type=Open", "type"),
                          ("ceemsAPIServer.replicas=2", "replicas"), ("ceemsLB.replicas=many", "replicas")):
        done = subprocess.run([HELM, "template", "t", CHART, "--kube-version", VERSIONS[-1], "--set", setting], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and name in done.stderr, f"--set {setting}: status {done.returncode}, {done.stderr[-300:]}"
        refused += 1
    return f"values of CEEMS have their effect, {refused} mistakes are refused"


def check_configs() -> str:
    """The files in the rendered secrets, read by the programs themselves."""
    tool = program("ceems_tool")
    count = 0
    with tempfile.TemporaryDirectory() as directory:
        for scenario in scenarios():
            for name, secret in secrets(render(scenario)).items():
                for key, text in secret.items():
                    if key.endswith(".yml"):
                        path = pathlib.Path(directory) / f"{count}-{name}-{key}"
                        path.write_text(re.sub(r"/etc/[a-z_]+/(web|certs)/", directory + "/", text))
                        run(tool, "check", "config", path)
                        count += 1
    return f"{count} files are read without a complaint"


def check_apiserver() -> str:
    """A real kube-apiserver takes all objects: as a dry run, then for good, then once more without a change."""
    import sys
    sys.path.insert(0, str(ROOT / "tests/k8s"))
    from cluster import Cluster, Refused
    from harness import scratch
    cache = pathlib.Path(os.environ.get("CEEMS_K8S_CACHE", ROOT / "build/k8s"))
    if not (cache / "complete").exists():
        raise Missing(f"no kube-apiserver in {cache}: run tests/k8s/build {cache}")
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"scope": "Namespaced", "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
    with scratch("ceems-deploy-") as directory, Cluster(str(cache / "bin"), directory) as cluster:
        for group, kinds in (("monitoring.coreos.com", ("ServiceMonitor", "PrometheusRule")), ("cert-manager.io", ("Issuer", "Certificate"))):
            for kind in kinds:
                plural = kind.lower() + "s"
                spec = {**definition["spec"], "group": group, "names": {"kind": kind, "plural": plural, "singular": kind.lower()}}
                cluster.kubectl("apply", "-f", "-", given={**definition, "metadata": {"name": f"{plural}.{group}"}, "spec": spec})
                cluster.kubectl("wait", "--for=condition=Established", f"crd/{plural}.{group}", "--timeout=60s")
        count = 0
        for index, scenario in enumerate(scenarios()):
            namespace = f"ceems-{index}"
            cluster.namespace(namespace)
            # policy/v1 is of 1.21; this server is the newest that can be built here, 1.20.
            text = yaml.safe_dump_all(render(scenario)).replace("apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n").replace("namespace: ceems\n", f"namespace: {namespace}\n")
            cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=text)
            cluster.kubectl("apply", "-f", "-", given=text)
            again = cluster.kubectl("apply", "-f", "-", given=text)
            # What a selector matches is what the pods have: the controllers make them without a complaint.
            changed = [line for line in again.splitlines() if not line.endswith(" unchanged") and "PodDisruptionBudget" not in line]
            assert not [line for line in changed if line.endswith(" created")], changed
            count += len(again.splitlines())
            cluster.kubectl("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "--all")
        base = cluster.kubectl("kustomize", str(ROOT / "packaging/kubernetes")).replace("apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n")
        cluster.kubectl("apply", "-f", "-", given="apiVersion: v1\nkind: Namespace\nmetadata: {name: ceems}\n")
        cluster.kubectl("apply", "-f", "-", given=base)
        try:
            cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=base.replace("protocol: TCP", "protocol: TSP"))
            raise AssertionError("an object with a wrong value is accepted")
        except Refused:
            pass
    return f"{count} objects applied to kube-apiserver 1.20, and the Kustomize base"


CHECKS = {"helm": check_helm, "schemas": check_schemas, "closed": check_closed, "values": check_values, "configs": check_configs, "apiserver": check_apiserver}
