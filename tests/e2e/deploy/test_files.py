"""The files in `deploy/` parse, name existing settings and commands, and are secure."""

import configparser
import os
import re
import shlex
import shutil
import subprocess

import pytest
import yaml

from holdfast.cli.main import COMMANDS
from holdfast.config.definitions import SETTINGS
from tests.support.cluster import NGINX_CONF, render_settings
from tests.support.nodes import ROOT
from tests.support.servers.recipes import Nginx

DEPLOY = ROOT / "deploy"
COMPOSE = {"compose.yaml": "postgres", "compose.mysql.yaml": "mysql"}
UNITS = ("holdfast-serve.service", "holdfast-work.service")
VARIABLES = {setting.variable for setting in SETTINGS}


def load_compose(name):
    return yaml.safe_load((DEPLOY / name).read_text())


@pytest.mark.parametrize("name, database", COMPOSE.items())
def test_a_compose_file_has_all_services(name, database):
    services = load_compose(name)["services"]
    assert set(services) == {database, "redis", "migrate", "serve", "worker", "nginx"}
    assert services["serve"]["deploy"]["replicas"] == services["worker"]["deploy"]["replicas"] == 3
    assert services["nginx"]["ports"] == ["127.0.0.1:8080:8080"]
    assert all("container_name" not in each for each in services.values())  # a fixed name would prevent scaling
    for each in services.values():
        for needed in each.get("depends_on", {}):
            assert needed in services
    scheme = {"postgres": "postgresql", "mysql": "mysql"}[database]
    assert services["serve"]["environment"]["HOLDFAST_DATABASE_URL"].startswith(f"{scheme}://holdfast:${{")


@pytest.mark.parametrize("name", COMPOSE)
def test_nodes_of_a_compose_file_are_hardened_and_contain_no_secret(name):
    """T32, T44: no default password, no root, no writable root file system."""
    text = (DEPLOY / name).read_text()
    for service in ("migrate", "serve", "worker"):
        found = load_compose(name)["services"][service]
        assert found["read_only"] is True
        assert found["cap_drop"] == ["ALL"]
        assert found["security_opt"] == ["no-new-privileges:true"]
    for variable in re.findall(r"\$\{(\w+)", text):
        if variable != "HOLDFAST_APP":
            assert f"${{{variable}:?set it in deploy/.env}}" in text
    used = set(re.findall(r"\$\{(\w+)", text))
    documented = set(re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(), re.MULTILINE))
    assert used <= documented


@pytest.mark.parametrize("name", COMPOSE)
def test_every_container_of_a_compose_file_has_few_rights_and_bounded_memory(name):
    """T44: the database, Redis and nginx too."""
    for service, found in load_compose(name)["services"].items():
        assert found["cap_drop"] == ["ALL"], service
        assert found["security_opt"] == ["no-new-privileges:true"], service
        assert re.fullmatch(r"\d+[mg]", found["mem_limit"]), service
        assert found["pids_limit"] > 0, service
        assert found["image"] == "holdfast:latest" or found["user"] not in ("root", "0"), service
        assert "cap_add" not in found
        assert "privileged" not in found


@pytest.mark.parametrize("name", COMPOSE)
def test_no_command_of_a_compose_file_has_a_password_among_its_arguments(name):
    """T44: every user of a machine can list processes; a shell reads the variable instead."""
    for service, found in load_compose(name)["services"].items():
        for words in (found.get("command", []), found.get("healthcheck", {}).get("test", [])):
            assert not re.search(r"\$\{\w*PASSWORD", " ".join(words)), service
            assert not re.search(r"(?:-a|--password=?|--requirepass) *\"?\$", " ".join(words)), service


@pytest.mark.parametrize("name", [*COMPOSE, "Dockerfile"])
def test_an_image_has_an_exact_version(name):
    """T44: `pin-images` adds the digest."""
    text = (DEPLOY / name).read_text()
    images = re.findall(r"^(?: +image: |FROM )(\S+)", text, re.MULTILINE)
    assert images
    for image in images:
        assert image == "holdfast:latest" or re.fullmatch(r"[a-z]+:\d+\.\d+(\.\d+)?(-slim)?(@sha256:\w{64})?", image)


def test_pin_images_adds_the_digest_to_every_image_and_renews_it(tmp_path):
    folder, bin_ = tmp_path / "deploy", tmp_path / "bin"
    shutil.copytree(DEPLOY, folder)
    bin_.mkdir()
    for digit in ("a", "b"):  # the second run replaces the digests of the first
        docker = bin_ / "docker"
        docker.write_text(f"#!/bin/sh\necho sha256:{digit * 64}\n")
        docker.chmod(0o755)
        environment = os.environ | {"PATH": f"{bin_}:{os.environ['PATH']}"}
        subprocess.run([folder / "pin-images"], env=environment, check=True, capture_output=True)
        for name in (*COMPOSE, "Dockerfile"):
            text = (folder / name).read_text()
            for image in re.findall(r"^(?: +image: |FROM )(\S+)", text, re.MULTILINE):
                assert image == "holdfast:latest" or image.endswith(f"@sha256:{digit * 64}"), image
            assert text.replace(f"@sha256:{digit * 64}", "") == (DEPLOY / name).read_text()


def test_the_redis_of_a_compose_file_reads_its_password_from_a_private_file(tmp_path):
    """T44: checked by its own command, with `cat` in place of the server."""
    shell, option, script = load_compose("compose.yaml")["services"]["redis"]["command"]
    script = script.replace("$$", "$").replace("/tmp/", f"{tmp_path}/").replace("exec redis-server", "exec cat")
    done = subprocess.run(
        [shell, option, script.partition(" --save")[0]],
        env={"PATH": os.environ["PATH"], "REDIS_PASSWORD": "s3cret"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "requirepass s3cret\n"
    assert (tmp_path / "redis.conf").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", COMPOSE)
def test_a_compose_file_uses_existing_settings_and_commands(name):
    services = load_compose(name)["services"]
    for service in ("migrate", "serve", "worker"):
        named = {variable for variable in services[service]["environment"] if variable.startswith("HOLDFAST_")}
        assert named <= VARIABLES
        assert services[service]["command"][0] in COMMANDS
    drains = int(services["worker"]["environment"]["HOLDFAST_DRAIN_SECONDS"])
    assert int(services["worker"]["stop_grace_period"].removesuffix("s")) > drains


def test_both_compose_files_differ_only_in_the_database():
    first, second = (load_compose(name)["services"] for name in COMPOSE)
    for service in ("redis", "serve", "worker", "nginx"):
        left, right = dict(first[service]), dict(second[service])
        for each in (left, right):
            each["environment"] = {
                key: value for key, value in each.get("environment", {}).items() if key != "HOLDFAST_DATABASE_URL"
            }
        assert left == right


def test_the_image_runs_without_root_and_has_a_health_check():
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


def test_the_build_context_contains_exactly_what_the_image_copies():
    included = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = set()
    for line in dockerfile():
        if line.startswith("COPY ") and "--from" not in line:
            copied |= set(line.split()[1:-1])
    assert copied == included
    assert all((ROOT / each).exists() for each in copied)


def dockerfile():
    """Return the lines of the Dockerfile, with continuations joined and without comments."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("name", UNITS)
def test_a_systemd_unit_runs_an_existing_command_with_time_to_stop(name):
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
    assert service["SystemCallArchitectures"] == "native"
    assert (
        "SystemCallFilter=@system-service\nSystemCallFilter=~@privileged\n" in (DEPLOY / "systemd" / name).read_text()
    )
    assert set(service["RestrictAddressFamilies"].split()) == {"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"}
    assert unit["Install"]["WantedBy"] == "multi-user.target"


def test_nginx_accepts_its_settings(run, tmp_path):
    """Checked by nginx itself; event streams are not buffered."""
    run.server("nginx")
    program = Nginx().find()
    settings = tmp_path / "nginx.conf"
    settings.write_text(render_settings(8080, ["http://127.0.0.1:1", "http://127.0.0.1:2"], tmp_path))
    command = [str(program.path), "-e", "stderr", "-t", "-c", str(settings)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    events = re.search(r"location = /v1/events \{(.*?)\}", NGINX_CONF.read_text(), re.DOTALL)
    assert "proxy_buffering off;" in events[1]


def test_nginx_bounds_each_client_and_passes_its_address_on():
    """F35, T18: one address cannot use up the connections, and a chain of proxies keeps the client's address."""
    text = NGINX_CONF.read_text()
    for directive in ("limit_conn holdfast_connections", "limit_req zone=holdfast_requests", "limit_req_status 429;"):
        assert directive in text
    assert "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;" in text
