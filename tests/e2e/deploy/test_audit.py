"""`./dev audit` reports vulnerable packages, and does not report packages as safe that it could not look up."""

import importlib.util
import json
import sys

import pytest

from tests.support.nodes import ROOT

_spec = importlib.util.spec_from_file_location("tools_audit", ROOT / "tools" / "audit.py")
audit = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(audit)

SAFE = {"name": "click", "version": "8.1", "vulns": []}
VULNERABLE = {"name": "yarl", "version": "1.0", "vulns": [{"id": "PYSEC-1"}, {"id": "GHSA-2"}]}
UNKNOWN = {"name": "rich", "skip_reason": "Dependency not found on PyPI"}


@pytest.fixture
def audited(monkeypatch, capsys):
    """Return a function that runs the audit with these packages from pip-audit."""

    def run(packages, *arguments, error=""):
        monkeypatch.setattr(sys, "argv", ["audit.py", *arguments])
        monkeypatch.setattr(audit.venv, "create", lambda *_, **__: None)
        found = "" if packages is None else json.dumps({"dependencies": packages})
        monkeypatch.setattr(audit, "_run", lambda *command: (found, error) if "pip_audit" in command else ("", ""))
        return audit.main(), capsys.readouterr().out

    return run


def test_a_vulnerable_package_fails_the_audit(audited):
    code, text = audited([SAFE, VULNERABLE])
    assert code == 1
    assert "yarl 1.0: PYSEC-1, GHSA-2" in text


def test_packages_that_were_not_looked_up_are_not_called_safe(audited):
    assert audited([SAFE, UNKNOWN])[1].startswith(
        "audit: requirements/run.txt: 1 packages without known vulnerabilities, 1 not checked"
    )


@pytest.mark.parametrize("packages", [[UNKNOWN, UNKNOWN], None])
def test_an_audit_without_advisories_is_skipped_unless_it_is_required(audited, packages):
    code, text = audited(packages, error="no route to host")
    assert code == 0
    assert "audit: skipped" in text
    assert audited(packages, "--required")[0] == 1
