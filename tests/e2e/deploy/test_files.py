"""The files of `deploy/` are true: they parse, name what exists, and keep what they promise."""

import configparser
import re
import shlex
import subprocess

import pytest
import yaml

from holdfast.cli.main import COMMANDS
from holdfast.config.settings import SETTINGS
from tests.support.cluster import SETTINGS, rendered
from tests.support.nodes import ROOT
from tests.support.servers.recipes import Nginx

DEPLOY = ROOT / "deploy"
COMPOSE = {"compose.yaml": "postgres", "compose.mysql.yaml": "mysql"}
UNITS = ("holdfast-serve.service", "holdfast-work.service")
VARIABLES = {setting.variable for setting in SETTINGS}


def composed(name):
    return yaml.safe_load((DEPLOY / name).read_text())


@pytest.mark.parametrize("name, database", COMPOSE.items())
def test_a_compose_file_has_the_whole_topology(name, database):
    services = composed(name)["services"]
    assert set(services) == {database, "redis", "migrate", "serve", "work", "nginx"}
    assert services["serve"]["deploy"]["replicas"] == services["work"]["deploy"]["replicas"] == 3
    assert services["nginx"]["ports"] == ["127.0.0.1:8080:8080"]
    assert all("container_name" not in each for each in services.values())  # or it could not be scaled
    for each in services.values():
        for needed in each.get("depends_on", {}):
            assert needed in services
    scheme = {"postgres": "postgresql", "mysql": "mysql"}[database]
    assert services["serve"]["environment"]["HOLDFAST_DATABASE_URL"].startswith(f"{scheme}://holdfast:${{")


@pytest.mark.parametrize("name", COMPOSE)
def test_nodes_of_a_compose_file_are_locked_down_and_hold_no_secret(name):
    """T32, T44: no default password, no root, no writable root file system."""
    text = (DEPLOY / name).read_text()
    for service in ("migrate", "serve", "work"):
        found = composed(name)["services"][service]
        assert found["read_only"] is True
        assert found["cap_drop"] == ["ALL"]
        assert found["security_opt"] == ["no-new-privileges:true"]
    for variable in re.findall(r"\$\{(\w+)", text):
        if variable != "HOLDFAST_APP":
            assert f"${{{variable}:?set it in deploy/.env}}" in text
    asked = set(re.findall(r"\$\{(\w+)", text))
    offered = set(re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(), re.MULTILINE))
    assert asked <= offered


@pytest.mark.parametrize("name", COMPOSE)
def test_a_compose_file_names_settings_and_commands_that_there_are(name):
    services = composed(name)["services"]
    for service in ("migrate", "serve", "work"):
        named = {variable for variable in services[service]["environment"] if variable.startswith("HOLDFAST_")}
        assert named <= VARIABLES
        assert services[service]["command"][0] in COMMANDS
    drains = int(services["work"]["environment"]["HOLDFAST_DRAIN_SECONDS"])
    assert int(services["work"]["stop_grace_period"].removesuffix("s")) > drains


def test_both_compose_files_differ_in_the_database_alone():
    first, second = (composed(name)["services"] for name in COMPOSE)
    for service in ("redis", "serve", "work", "nginx"):
        here, there = dict(first[service]), dict(second[service])
        for each in (here, there):
            each["environment"] = {
                key: value for key, value in each.get("environment", {}).items() if key != "HOLDFAST_DATABASE_URL"
            }
        assert here == there


def test_the_image_runs_as_an_ordinary_user_and_says_how_it_is():
    lines = [line for line in dockerfile() if line]
    stages = [line for line in lines if line.startswith("FROM ")]
    assert len(stages) == 2
    last = lines[lines.index(stages[1]) :]
    assert any(re.fullmatch(r"USER [1-9]\d+:[1-9]\d+", line) for line in last)
    assert any(line.startswith("HEALTHCHECK ") and "/readyz" in line for line in last)
    assert 'ENTRYPOINT ["holdfast"]' in last
    assert 'CMD ["serve"]' in last
    assert not any(re.search(r"(?i)password|secret|_key=", line) for line in lines if line.startswith(("ENV", "ARG")))
    assert any("--require-hashes" in line for line in lines)


def test_the_image_copies_what_there_is_and_is_sent_nothing_else():
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = set()
    for line in dockerfile():
        if line.startswith("COPY ") and "--from" not in line:
            copied |= set(line.split()[1:-1])
    assert copied == let_in
    assert all((ROOT / each).exists() for each in copied)


def dockerfile():
    """Its lines, continued ones as one, comments left out."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_starts_a_command_that_there_is_and_gives_it_time_to_end(name):
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(DEPLOY / "systemd" / name)
    service = unit["Service"]
    program, command, *_ = shlex.split(service["ExecStart"])
    assert program.endswith("/bin/holdfast")
    assert command in COMMANDS
    assert service["KillSignal"] == "SIGTERM"
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) >= 30
    assert service["User"] not in ("root", "")
    assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")
    assert unit["Install"]["WantedBy"] == "multi-user.target"


def test_the_proxy_takes_its_settings(run, tmp_path):
    """As nginx itself reads them; events pass it unbuffered."""
    run.server("nginx")
    program = Nginx().find()
    settings = tmp_path / "nginx.conf"
    settings.write_text(rendered(8080, ["http://127.0.0.1:1", "http://127.0.0.1:2"], tmp_path))
    asked = [str(program.path), "-e", "stderr", "-t", "-c", str(settings)]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    events = re.search(r"location = /v1/events \{(.*?)\}", SETTINGS.read_text(), re.DOTALL)
    assert "proxy_buffering off;" in events[1]
