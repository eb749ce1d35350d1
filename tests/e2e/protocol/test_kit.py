"""The conformance kit passes for the workers of this repository, and names the rule that a broken worker breaks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.broken_worker import BUGS
from tests.support.long import LONG

ROOT = Path(__file__).resolve().parents[3]
BROKEN = ROOT / "tests" / "support" / "broken_worker.py"
EXAMPLES = ROOT / "examples"
PATIENT = ("--lease", "6", "--timeout", "60")
"""Lease and waits with which a correct worker passes on a busy machine."""

REST = (
    "success,failure,retry,snooze,steps",
    "large,types,timeout,renew,drain-request",
    "drain,kill,freeze,restart",
    "outage,throttle,lost-settle,lost-claim",
)
"""The other scenarios, which run with HOLDFAST_LONG_TESTS=1."""
long_only = pytest.mark.skipif(not LONG, reason="runs with HOLDFAST_LONG_TESTS=1")


@pytest.fixture
def check(holdfast):
    """Run the kit; return its exit code and the result of each scenario."""

    def run(command, *options, only, **variables):
        ended = holdfast("protocol", "check", "--json", "--only", only, *options, "--", *command, **variables)
        assert ended.out, ended.err
        return ended.code, {item["scenario"]: item for item in json.loads(ended.out)["scenarios"]}

    return run


def passes(result):
    code, scenarios = result
    assert [item for item in scenarios.values() if not item["passed"]] == []
    return code == 0


@pytest.mark.parametrize(
    "only",
    [
        "success,failure,retry,snooze,steps,large,types",
        "cancel,drain,lost-settle",
        pytest.param("timeout,renew,drain-request,throttle,lost-claim", marks=long_only),
        pytest.param("kill,freeze,outage,restart", marks=long_only),
    ],
)
def test_the_worker_in_plain_python_conforms(check, only):
    assert passes(check([sys.executable, EXAMPLES / "python-http" / "conformance.py"], *PATIENT, only=only))


@pytest.mark.parametrize("only", ["cancel", *(pytest.param(each, marks=long_only) for each in REST)])
def test_holdfast_work_over_http_conforms(check, only):
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "work",
        "conformance:app",
        "--queues",
        "protocol:4",
        "--processes",
        "1",
    ]
    path = os.pathsep.join([str(EXAMPLES / "python"), os.environ.get("PYTHONPATH", "")])
    assert passes(check(command, *PATIENT, only=only, PYTHONPATH=path))


@pytest.mark.parametrize("only", ["steps,cancel", *(pytest.param(each, marks=long_only) for each in REST)])
def test_the_java_worker_conforms(check, tmp_path, only):
    if shutil.which("javac") is None:
        pytest.skip("no javac: install a JDK, version 17 or newer, to test examples/java")
    subprocess.run(["javac", "-d", tmp_path, "Conformance.java"], cwd=EXAMPLES / "java", check=True)
    assert passes(check(["java", "-cp", tmp_path, "Conformance"], *PATIENT, only=only))


@pytest.mark.parametrize(
    "bug, scenario, rule, lease",
    [
        ("no-renewal", "renew", "renew", 1),
        ("settles-twice", "success", "settle-once", 6),
        ("ignores-cancel", "cancel", "stop-job", 2),
        ("reuses-a-fence", "retry", "fence", 6),
        ("drops-jobs-at-drain", "drain", "drain-release", 6),
    ],
)
def test_a_broken_worker_breaks_the_rule(check, bug, scenario, rule, lease):
    assert set(BUGS) >= {bug}
    options = ("--lease", lease, "--timeout", "10" if scenario != "cancel" else "5")
    code, scenarios = check([sys.executable, BROKEN, bug], *options, only=scenario)

    assert (code, scenarios[scenario]["passed"], scenarios[scenario]["rule"]) == (1, False, rule), scenarios


def test_every_planted_bug_has_its_test():
    text = Path(__file__).read_text()
    assert [bug for bug in BUGS if f'"{bug}", ' not in text] == []


def test_a_worker_that_exits_at_once_is_named_with_its_last_words(check):
    code, scenarios = check([sys.executable, "-c", "raise SystemExit('no such library')"], only="success")

    assert (code, scenarios["success"]["rule"]) == (1, "start")
    assert scenarios["success"]["detail"].endswith("no such library")


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (("--only", "sucess", "--", "worker"), "--only: no such scenario: 'sucess'; the scenarios are success, "),
        ((), "give the command that starts your worker: holdfast protocol check -- COMMAND"),
        (("--", "no-such-worker"), "cannot start 'no-such-worker': "),
    ],
)
def test_a_wrong_command_line_says_what_to_do(holdfast, arguments, complaint):
    ended = holdfast("protocol", "check", *arguments)

    assert ended.code == 2
    assert complaint in ended.err


def test_the_list_names_all_scenarios_and_rules(holdfast):
    ended = holdfast("protocol", "check", "--list")

    assert ended.code == 0
    for name in ("success", "freeze", "throttle", "settle-once", "drain-release"):
        assert f"{name} " in ended.out


def test_the_protocol_page_names_every_rule_and_scenario():
    from holdfast.protocol_check.rules import RULES
    from holdfast.protocol_check.scenarios import SCENARIOS

    page = " ".join((ROOT / "docs" / "reference" / "worker-protocol.md").read_text().split())
    assert [rule.id for rule in RULES if f"| `{rule.id}` | {rule.text} |" not in page] == []
    assert [each.id for each in SCENARIOS if f"| `{each.id}` | {each.summary} |" not in page] == []
