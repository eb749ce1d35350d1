"""The TypeScript package: its own tests, its example, and the conformance kit. Skipped without Node."""

import shutil

import pytest

from tests.support.toolchains import ROOT, build_typescript, run

EXAMPLE = ROOT / "examples" / "typescript"

pytestmark = pytest.mark.timeout(600)


@pytest.mark.slow
def test_the_typescript_package_passes_its_tests(toolchain):
    package = toolchain(build_typescript)
    tests = [str(path) for path in sorted((package / "build" / "test").glob("*.test.js"))]
    assert tests
    run("node", "--test", *tests, folder=package)


@pytest.mark.slow
@pytest.mark.databases("sqlite")
def test_the_typescript_example_runs(toolchain, tmp_path, example):
    package = toolchain(build_typescript)
    copy = tmp_path / "example"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (copy / "node_modules").mkdir()
    for name in ("@types", "undici-types"):
        (copy / "node_modules" / name).symlink_to(package / "node_modules" / name)
    (copy / "node_modules" / "@holdfast").mkdir()
    (copy / "node_modules" / "@holdfast" / "client").symlink_to(package)
    run(str(package / "node_modules" / ".bin" / "tsc"), folder=copy)
    submitted, exit_code, log = example(["node", str(copy / "dist" / "worker.js")])
    assert "sent " in submitted.stdout, submitted.stderr + log
    assert exit_code == 0, log
    assert "welcome sent" in log


@pytest.mark.slow
def test_the_typescript_worker_follows_the_protocol(toolchain, check_protocol):
    check_protocol(["node", str(toolchain(build_typescript) / "build" / "conformance" / "worker.js")])
