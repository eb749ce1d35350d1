"""The Python code of the documentation passes a strict type check."""

import os
import subprocess
import sys

import pytest

from tests.support.docs_runner import CHECKOUT, blocks, file_name, pages

REFUSED_ARGUMENTS = {"python.md", "tutorial.md"}
"""Pages whose blocks pass a wrong argument on purpose, to show the error."""

SETTINGS = """[mypy]
strict = True
disable_error_code = import-untyped
allow_untyped_decorators = True

[mypy-blocks.*]
check_untyped_defs = False
disallow_untyped_defs = False
disallow_untyped_calls = False
"""
"""Files that a reader saves are checked strictly; short blocks may be without annotations. Django has no types."""


@pytest.mark.slow
def test_files_and_blocks_of_the_pages_pass_the_type_checker(tmp_path):
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "__init__.py").touch()
    saved: dict[str, str] = {}
    for page in pages():
        if page.name in REFUSED_ARGUMENTS or page.parent.name in ("reference", "adr", "contributing"):
            continue
        unnamed = []
        for block in blocks(page):
            if block.language != "python":
                continue
            if name := file_name(block.text):
                assert saved.setdefault(name, page.name) == page.name, f"{name} is saved by two pages"
                (tmp_path / name).write_text(block.text)
            else:
                unnamed.append(block.text)
        if unnamed:
            module = f"{page.parent.name}_{page.stem}".replace("-", "_").lower()
            (tmp_path / "blocks" / f"{module}.py").write_text("\n\n".join(unnamed))
    assert {"shop.py", "shop_jobs.py"} <= set(saved)
    path = os.pathsep.join([str(CHECKOUT / "src"), str(tmp_path)])
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(CHECKOUT / ".mypy_cache" / "docs"), *saved, "blocks"],
        cwd=tmp_path, env=os.environ | {"MYPYPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
