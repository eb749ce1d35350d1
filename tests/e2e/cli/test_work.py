"""`holdfast work` loads the modules of an application, and loads them again when they change."""

import signal
import subprocess
import sys

import pytest

from holdfast import Holdfast
from holdfast.cli.reload import changed_files, take_snapshot
from holdfast.cli.source_files import python_files
from tests.support.eventually import awaited

START = "from holdfast.cli.main import main; main()"

PACKAGE = {
    "shop/__init__.py": "",
    "shop/app.py": "from holdfast import Holdfast\napp = Holdfast()\n\n@app.job\ndef pay() -> None: ...\n",
    "shop/mail.py": "from shop.app import app\n\n@app.job\ndef mail(to: str) -> str:\n    return to\n",
    "shop/report.py": "import shop.app\n\n@shop.app.app.job(queue='reports')\ndef report() -> None: ...\n",
    "shop/other.py": "from holdfast import Holdfast\napp = Holdfast()\n\n@app.job\ndef other() -> None: ...\n",
    "shop/broken.py": "from shop.app import app\n@app.job\ndef broken(:\n",
    "shop/text.py": "from shop.app import app\nTEXT = '@app.job'\n",
    "shop/.venv/pyvenv.cfg": "",
    "shop/.venv/lib.py": "from shop.app import app\n@app.job\ndef hidden() -> None: ...\n",
}


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def work(tmp_path, environment):
    """Start `work` in the folder of the test; stop it after the test."""
    started = []

    def start(*arguments, **variables):
        log = (tmp_path / "log.txt").open("w+")
        process = subprocess.Popen(
            [sys.executable, "-c", START, "work", *arguments, "--processes", "1"],
            cwd=tmp_path, env=environment | variables, stdout=log, stderr=log,
        )  # fmt: skip
        started.append((process, log))

        def logged(text):
            def check():
                lines = (tmp_path / "log.txt").read_text()
                assert process.poll() is None or text in lines, lines
                return text in lines

            return awaited(check)

        process.logged = logged
        return process

    yield start
    for process, log in started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)
        log.close()


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Holdfast(f"sqlite:///{tmp_path}/holdfast.db") as app:
        app.migrate()
        yield app


def submit(holdfast, *arguments):
    return holdfast("submit", *arguments, "--wait")


def test_work_names_a_module_that_declares_jobs_but_is_not_imported(work, database, tmp_path):
    write(tmp_path, PACKAGE)
    process = work("shop.app:app")
    process.logged("loaded shop.app:app with the job types pay")
    process.logged(
        "shop.mail, shop.report declare jobs but are not imported, so they cannot run: "
        "import them in shop.app, or add --include shop.mail --include shop.report"
    )


def test_included_modules_are_imported_and_their_jobs_run(work, database, holdfast, tmp_path):
    write(tmp_path, PACKAGE)
    process = work("shop.app:app", "--include", "shop.mail", "--include", "shop.report")
    process.logged("loaded shop.app:app with the job types mail, pay, report")
    done = submit(holdfast, "mail", '{"to": "ada"}')
    assert done.code == 0, done.err
    assert "declare" not in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["shop.app:app", "--include", "shop.nothing"], "no module 'shop.nothing', neither installed nor in"),
        (["--include", "shop.mail"], "--include shop.mail needs an application"),
        (["shop.app:app", "--include", "shop.broken"], "shop.broken cannot be imported: SyntaxError"),
        (["bare.app:app"], "bare.app:app has no jobs: bare.mail declares jobs but is not imported"),
    ],
)
def test_work_says_which_module_cannot_be_used(database, holdfast, tmp_path, arguments, complaint):
    bare = "from holdfast import Holdfast\napp = Holdfast()\n"
    mail = PACKAGE["shop/mail.py"].replace("shop", "bare")
    write(tmp_path, PACKAGE | {"bare/app.py": bare, "bare/mail.py": mail})
    done = holdfast("work", *arguments)
    assert done.code == 2
    assert complaint in done.err


def test_reload_runs_the_changed_code_and_survives_code_that_cannot_be_imported(work, database, holdfast, tmp_path):
    code = "from holdfast import Holdfast, Retry\napp = Holdfast()\n\n@app.job(retry=Retry(max_attempts=1))\n"
    write(tmp_path, {"shop.py": code + "def pay(n: int) -> int:\n    return n / 0\n"})
    process = work("shop:app", "--reload")
    process.logged("loaded shop:app")
    assert submit(holdfast, "pay", '{"n": 1}').code != 0
    process.logged("ZeroDivisionError")

    write(tmp_path, {"shop.py": code + "def pay(n: int -> int:\n"})
    process.logged("shop.py changed: loading the application again")
    process.logged("SyntaxError")
    process.logged("waiting for a change")

    write(tmp_path, {"shop.py": code + "def pay(n: int) -> str:\n    return 'fixed'\n"})
    done = submit(holdfast, "pay", '{"n": 1}')
    assert "fixed" in done.out, done.err


def test_a_job_without_a_timeout_gets_the_default_of_the_worker(work, database, holdfast, tmp_path):
    """The timeout of the job and that of the decorator come first."""
    code = """
import asyncio
from holdfast import Holdfast, Retry
app = Holdfast()

@app.job(retry=Retry(max_attempts=1))
async def hang() -> None:
    await asyncio.Event().wait()

@app.job(retry=Retry(max_attempts=1), timeout="60s")
async def nap() -> str:
    await asyncio.sleep(0.5)
    return "rested"
"""
    write(tmp_path, {"shop.py": code})
    work("shop:app", HOLDFAST_JOB_TIMEOUT_SECONDS="0.3").logged("loaded shop:app")
    assert submit(holdfast, "hang").code != 0
    assert "rested" in submit(holdfast, "nap").out


def test_a_change_is_a_file_that_was_added_changed_or_deleted(tmp_path):
    write(tmp_path, PACKAGE)
    before = take_snapshot(tmp_path)
    assert {path.name for path in before} == {path.name for path in python_files(tmp_path)}
    assert tmp_path / "shop/.venv/lib.py" not in before
    (tmp_path / "shop/text.py").unlink()
    write(tmp_path, {"shop/new.py": "", "shop/mail.py": "changed = True", "shop/notes.txt": ""})
    changed = changed_files(before, take_snapshot(tmp_path))
    assert [path.name for path in changed] == ["mail.py", "new.py", "text.py"]
