"""Folding of the engine's frames in tracebacks."""

from holdfast.policy.tracebacks import fold_engine_frames

ENGINE = """  File "/venv/lib/python3.12/site-packages/holdfast/worker/running/runner.py", line 130, in run
    result = await call.handler.function(**arguments)
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"""
THREAD = """  File "/usr/lib/python3.12/concurrent/futures/thread.py", line 58, in run
    result = self.fn(*self.args, **self.kwargs)"""
HANDLER = """  File "/home/ada/holdfast/jobs.py", line 7, in send
    raise ValueError("bad address")"""
HEAD, ERROR = "Traceback (most recent call last):", "ValueError: bad address"


def lines(*parts):
    return "\n".join(parts) + "\n"


def test_the_frames_of_the_engine_become_one_line():
    text = lines(HEAD, ENGINE, THREAD, ENGINE, HANDLER, ERROR)
    assert fold_engine_frames(text) == lines(HEAD, "  … 3 frames of holdfast", HANDLER, ERROR)


def test_the_frame_that_raised_is_kept_even_if_it_is_of_the_engine():
    text = lines(HEAD, ENGINE, HANDLER, ENGINE, ENGINE, ERROR)
    assert fold_engine_frames(text) == lines(
        HEAD, "  … 1 frame of holdfast", HANDLER, "  … 1 frame of holdfast", ENGINE, ERROR
    )


def test_frames_of_threads_without_the_engine_are_kept():
    text = lines(HEAD, HANDLER, THREAD, HANDLER, ERROR)
    assert fold_engine_frames(text) == text


def test_each_exception_of_a_chain_is_folded():
    cause = "The above exception was the direct cause of the following exception:"
    text = lines(HEAD, HANDLER, ERROR, "", cause, "", HEAD, ENGINE, HANDLER, "KeyError: 1")
    assert fold_engine_frames(text) == lines(
        HEAD, HANDLER, ERROR, "", cause, "", HEAD, "  … 1 frame of holdfast", HANDLER, "KeyError: 1"
    )


def test_a_text_that_is_no_traceback_is_unchanged():
    assert fold_engine_frames("") == ""
    assert fold_engine_frames("killed by signal 9") == "killed by signal 9"
