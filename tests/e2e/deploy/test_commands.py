"""The commands of the Compose files, the image and the systemd units run, with the settings written beside them."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from urllib.request import urlopen

import click
import pytest
import yaml

from holdfast.cli.main import cli
from tests.support.eventually import awaited
from tests.support.nodes import ROOT

DEPLOY = ROOT / "deploy"
SECRETS = {
    "HOLDFAST_ADMIN_KEY": "b7c1f0d94e2a4c6f8d3b5a7091e2c4d6",
    "HOLDFAST_JWT_SECRET": "5e8a1c3f7092b4d6f3a9c2e17b5d4860",
    "HOLDFAST_APP": "",
}
"""Values of `deploy/.env` and `/etc/holdfast/holdfast.env`."""


def substitute(text):
    """Replace `${NAME:-default}` and `${NAME:?message}`, as Compose does."""
    return re.sub(r"\$\{(\w+)(?::([-?])([^}]*))?\}", lambda found: SECRETS.get(found[1], "generated"), text)


def deployments():
    """Return what each file runs: a name, the arguments of `holdfast`, and the variables set beside them."""
    found = {}
    for name in ("compose.yaml", "compose.mysql.yaml"):
        for service, definition in yaml.safe_load((DEPLOY / name).read_text())["services"].items():
            if definition.get("image") == "holdfast:latest":
                variables = {key: substitute(value) for key, value in definition["environment"].items()}
                found[f"{name}:{service}"] = ([substitute(word) for word in definition["command"]], variables)
    image = (DEPLOY / "Dockerfile").read_text()
    entry, arguments = (
        json.loads(re.search(rf"^{word} (\[.*\])$", image, re.MULTILINE)[1]) for word in ("ENTRYPOINT", "CMD")
    )
    assert entry == ["holdfast"]
    found["Dockerfile"] = (arguments, SECRETS)
    for unit in sorted((DEPLOY / "systemd").glob("*.service")):
        for line in re.findall(r"^ExecStart(?:Pre|Post)?=(.*)$", unit.read_text(), re.MULTILINE):
            program, *words = shlex.split(line)  # systemd passes an empty ${NAME} as an empty argument, like this
            assert program.endswith("/bin/holdfast")
            found[unit.name] = ([substitute(word) for word in words], SECRETS)
    return found


@pytest.fixture
def start(tmp_path):
    """Start a command of a deployment on a SQLite file and a free port; it is killed at the end."""
    started = []

    def run(arguments, variables):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        own = {
            "HOLDFAST_DATABASE_URL": f"sqlite:///{tmp_path / 'jobs.db'}",
            "HOLDFAST_REDIS_URL": "",
            "HOLDFAST_HOST": "127.0.0.1",
            "HOLDFAST_PORT": str(port),
            "HOLDFAST_WORKER_POOL_SIZE": "1",
            "PYTHONPATH": str(ROOT / "src"),
        }
        log = tmp_path / f"{len(started)}.log"
        with log.open("wb") as output:
            command = [sys.executable, "-m", "holdfast", *arguments]
            environment = inherited | variables | own
            process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output)
        started.append(process)
        return process, port, log

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.parametrize("name", deployments())
def test_a_command_of_a_deployment_starts_and_stops(name, start):
    """Each runs against a migrated database; nodes become ready and end with code 0 on SIGTERM."""
    arguments, variables = deployments()[name]
    migration, _, log = start(["migrate"] if arguments[0] != "migrate" else arguments, variables)
    assert migration.wait(60) == 0, log.read_text()
    if arguments[0] == "migrate":
        assert "applied " in log.read_text()
        return
    node, port, log = start(arguments, variables)

    assert awaited(lambda: is_ready(arguments[0], port, log) or node.poll() is not None)

    assert node.poll() is None, log.read_text()
    if arguments[0] == "serve":
        assert check_health(port) == 0
    node.send_signal(signal.SIGTERM)
    assert node.wait(60) == 0, log.read_text()


def is_ready(command, port, log):
    """Tell if a service node answers, or a worker node has announced its processes."""
    if command == "work":
        return "worker process" in log.read_text()
    try:
        return urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2).status == 200
    except OSError:
        return False


def check_health(port):
    """Run the image's health check; return its exit code."""
    image = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    program, *words = json.loads(re.search(r"^HEALTHCHECK .*?CMD (\[.*\])$", image, re.MULTILINE)[1])
    assert program == "python"
    environment = os.environ | {"HOLDFAST_PORT": str(port)}
    return subprocess.run([sys.executable, *words], env=environment, timeout=60, check=False).returncode


PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "reference" not in path.parts),
    *sorted(path for path in DEPLOY.rglob("*") if path.is_file()),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_named_in_a_page_exist(page):
    """Inline code such as `holdfast jobs show` names a command of the CLI, and options that it has."""
    wrong = [found for found in re.findall(r"`(holdfast [a-z][^`\n]*)`", page.read_text()) if problem_of(found)]

    assert wrong == []


def problem_of(line):
    """Tell what is wrong with the command or an option of a line, or return None."""
    command, context = cli, click.Context(cli)
    words = iter(line.split()[1:])
    for word in words:
        options = {name: option for option in command.get_params(context) for name in option.opts}
        if word == "…":
            return None
        if word.startswith("--"):
            name, _, value = word.partition("=")
            if name not in options:
                return f"no option {name}"
            if not value and not options[name].is_flag:
                next(words, None)
        elif isinstance(command, click.Group):
            if (found := command.get_command(context, word)) is None:
                return f"no command {word}"
            command = found
    return None
