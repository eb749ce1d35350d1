"""The Go package: its own tests, its example, and the conformance kit. Skipped without Go."""

import pytest

from tests.support.toolchains import GO_CLIENT, ROOT, build_go, require_go, run

EXAMPLE = ROOT / "examples" / "go"

pytestmark = pytest.mark.timeout(600)


@pytest.mark.slow
def test_the_go_package_is_formatted_and_passes_its_tests(toolchain):
    toolchain(require_go)
    assert run("gofmt", "-l", str(GO_CLIENT), str(EXAMPLE)) == ""
    for folder in (GO_CLIENT, EXAMPLE):
        run("go", "vet", "./...", folder=folder)
    run("go", "test", "-count=1", "./...", folder=GO_CLIENT)


@pytest.mark.slow
@pytest.mark.databases("sqlite")
def test_the_go_example_runs(toolchain, tmp_path, example):
    program = toolchain(build_go, ".", EXAMPLE, tmp_path / "example")
    submitted, exit_code, log = example([str(program)])
    assert "sent " in submitted.stdout, submitted.stderr + log
    assert exit_code == 0, log
    assert "welcome sent" in log


@pytest.mark.slow
def test_the_go_worker_follows_the_protocol(toolchain, tmp_path, check_protocol):
    check_protocol([str(toolchain(build_go, "./conformance", GO_CLIENT, tmp_path / "worker"))])
