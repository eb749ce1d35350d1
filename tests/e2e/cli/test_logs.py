"""Logs have one line per record, as text or as JSON."""

import io
import json
import logging

import pytest

from holdfast.telemetry import logs


@pytest.fixture
def set_up_logs():
    """Return a function that sets up logging in a format and returns the stream it writes to."""
    log = logging.getLogger("holdfast")
    before = (log.handlers[:], log.propagate, log.level)
    stream = io.StringIO()

    def set_up(log_format):
        logs.set_up(log_format, stream=stream)
        return stream

    yield set_up
    log.handlers[:], log.propagate = before[:2]
    log.setLevel(before[2])


def test_text_has_time_level_and_message_in_one_line(set_up_logs):
    stream = set_up_logs("text")
    logging.getLogger("holdfast").warning("reclaimed\n%d jobs", 3)
    at, level, message = stream.getvalue().split(" ", 2)
    assert at.endswith("Z")
    assert (level, message) == ("WARNING", "reclaimed\\n3 jobs\n")


def test_json_includes_the_extra_fields_of_a_record(set_up_logs):
    stream = set_up_logs("json")
    logging.getLogger("holdfast.worker").warning("it failed", extra={"loop": "reap", "failures": 2, "what": object})
    (line,) = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert entry.pop("at").endswith("Z")
    assert entry == {
        "level": "warning",
        "logger": "holdfast.worker",
        "message": "it failed",
        "loop": "reap",
        "failures": 2,
        "what": "<class 'object'>",
    }


def test_json_includes_the_traceback_of_an_exception(set_up_logs):
    stream = set_up_logs("json")
    try:
        raise KeyError("bug")  # noqa: TRY301
    except KeyError:
        logging.getLogger("holdfast").exception("odd")
    (line,) = stream.getvalue().splitlines()
    assert "KeyError: 'bug'" in json.loads(line)["traceback"]


def test_setting_up_again_replaces_the_first_handler(set_up_logs):
    stream = set_up_logs("text")
    set_up_logs("json")
    logging.getLogger("holdfast").info("once")
    assert stream.getvalue().count("once") == 1


def test_importing_does_not_set_up_logging(holdfast):
    start = "import holdfast.compose, logging; print(logging.getLogger('holdfast').handlers, logging.root.handlers)"
    assert holdfast(start=start).out == "[] []\n"


def test_commands_write_logs_in_the_configured_format(holdfast):
    start = (
        "import logging, holdfast.cli.commands.migrate as m\n"
        "async def up(settings): logging.getLogger('holdfast').warning('hello'); return []\n"
        "m._up = up\n"
        "from holdfast.cli.main import main; main(['migrate'])"
    )
    assert json.loads(holdfast(start=start, HOLDFAST_LOG_FORMAT="json").err)["message"] == "hello"
    assert holdfast(start=start).err.endswith(" WARNING hello\n")
