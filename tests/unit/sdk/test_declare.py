"""Declaration of job types: decorated functions, and declarations that are rejected."""

import pickle
from datetime import timedelta

import pytest

import holdfast
from holdfast import CONTEXT, Cancel, Context, Discard, Holdfast, Invalid, Misconfigured, Retry, Snooze, SyncContext
from holdfast.model.job import RetryRule
from holdfast.model.time import seconds


def test_a_decorated_function_is_still_a_function(nowhere):
    @nowhere.job
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    assert double(21) == 42
    assert (double.__name__, double.__doc__, double.name) == ("double", "Twice as much.", "double")


async def test_a_decorated_coroutine_is_still_a_coroutine(nowhere):
    @nowhere.job
    async def double(n: int, *, ctx: Context = CONTEXT) -> int:
        return 2 * n

    assert await double(21) == 42


def test_a_direct_call_without_a_context_raises_a_clear_error(nowhere):
    @nowhere.job
    def work(*, ctx: SyncContext = CONTEXT) -> int:
        return ctx.attempt

    with pytest.raises(AttributeError, match="only a worker passes a context"):
        work()


def test_the_decorator_passes_its_options_to_the_handler(nowhere):
    @nowhere.job(
        name="mail.welcome",
        queue="mail",
        retry=Retry(max_attempts=7, base="2s", cap="1m", jitter=0),
        timeout="1m30s",
        priority=5,
        cost=3,
    )
    async def welcome(user_id: int):
        pass

    handler = nowhere.registry.get("mail.welcome")
    assert handler is welcome.handler
    assert (handler.queue, handler.max_attempts, handler.priority, handler.cost) == ("mail", 7, 5, 3)
    assert handler.timeout == seconds(90)
    assert handler.retry == RetryRule(base=seconds(2), cap=seconds(60), jitter=0)
    assert (nowhere.registry.types(), nowhere.registry.queues()) == (["mail.welcome"], ["mail"])


def test_the_kind_of_a_function_decides_where_it_runs(nowhere):
    async def coroutine():
        pass

    def function():
        pass

    assert nowhere.job(coroutine).handler.isolation == "async"
    assert nowhere.job(function).handler.isolation == "thread"
    assert nowhere.job(name="c", isolation="process")(coroutine).handler.isolation == "process"
    assert nowhere.job(name="f", isolation="process")(function).handler.isolation == "process"
    with pytest.raises(Misconfigured, match="runs on the event loop"):
        nowhere.job(name="x", isolation="thread")(coroutine)
    with pytest.raises(Misconfigured, match="runs in a thread"):
        nowhere.job(name="x", isolation="async")(function)
    with pytest.raises(Misconfigured, match="isolation is 'moon'"):
        nowhere.job(name="x", isolation="moon")(function)


def test_a_duplicate_name_is_rejected_with_both_locations(nowhere):
    @nowhere.job
    def send():
        pass

    first = send

    with pytest.raises(Misconfigured) as refused:

        @nowhere.job(name="send")
        def send_again():
            pass

    said = str(refused.value)
    assert "test_declare" in said
    assert "send_again" in said
    assert f":{first.handler.function.__code__.co_firstlineno})" in said
    assert nowhere.registry.get("send") is first.handler


def test_two_applications_share_no_names():
    for app in (Holdfast(), Holdfast()):

        @app.job
        def send():
            pass


@pytest.mark.parametrize(
    "options, said",
    [
        ({"name": "not a name"}, "type is 'not a name'"),
        ({"name": ""}, "type is ''"),
        ({"queue": "-"}, "queue is '-'"),
        ({"priority": 5_000}, "priority is 5000"),
        ({"priority": True}, "priority is True"),
        ({"cost": 0}, "cost is 0"),
        ({"timeout": 0}, "timeout must be more than 0"),
        ({"timeout": "soon"}, "'soon' is not a duration"),
        ({"timeout": -1}, "-1 is not a duration"),
        ({"retry": Retry(max_attempts=0)}, "max_attempts is 0"),
    ],
)
def test_invalid_options_are_rejected_with_their_location(nowhere, options, said):
    with pytest.raises(Misconfigured, match=said) as refused:

        @nowhere.job(**options)
        def work():
            pass

    assert "test_declare.py:" in str(refused.value)
    assert nowhere.registry.types() == []


def positional_only(a, /): ...
def many(*args): ...
def named(**kwargs): ...
def method(self, a): ...
def generator():
    yield 1


async def asyncgenerator():
    yield 1


def foreign(connection: pytest.Session): ...
def foreign_inside(connections: list[pytest.Session]): ...
def mixed(which: list[int] | set[int]): ...
def two_contexts(a: SyncContext, b: SyncContext): ...
def wrong_context(ctx: Context): ...
async def wrong_async_context(ctx: SyncContext): ...
def not_annotated(ctx=CONTEXT): ...


@pytest.mark.parametrize(
    "function, said",
    [
        (positional_only, "positional-only"),
        (many, r"\*args cannot be checked"),
        (named, r"\*\*kwargs cannot be checked"),
        (method, "a method cannot be a job"),
        (generator, "is a generator"),
        (asyncgenerator, "is a generator"),
        (foreign, "'connection' is a Session, which JSON cannot represent"),
        (foreign_inside, "'connections' is a Session, which JSON cannot represent"),
        (mixed, "'which' cannot be read from JSON"),
        (two_contexts, "both 'a' and 'b' are annotated as the context"),
        (wrong_context, "a plain function takes a SyncContext, not a Context"),
        (wrong_async_context, "an async function takes a Context, not a SyncContext"),
        (not_annotated, "annotate 'ctx' as Context or SyncContext"),
        (len, "decorate a function"),
        (pytest.Session, "decorate a function"),
    ],
)
def test_a_function_that_cannot_be_a_job_is_rejected(nowhere, function, said):
    with pytest.raises(Misconfigured, match=said):
        nowhere.job(function)
    assert nowhere.registry.types() == []


def test_a_job_type_cannot_be_decorated_again(nowhere):
    with pytest.raises(Misconfigured, match="declared twice"):

        @nowhere.job(name="other")
        @nowhere.job
        def send():
            pass


def later_is_here(when: "Later") -> "Later": ...
def never_is_here(when: "Never"): ...  # noqa: F821


def test_an_annotation_may_be_a_forward_reference(nowhere):
    missing = globals().pop("Later")
    work = nowhere.job(later_is_here)
    globals()["Later"] = missing
    assert work.handler.arguments.check((3,), {}) == {"when": 3}


def test_an_unresolvable_annotation_is_reported_on_first_use(nowhere):
    nowhere.job(never_is_here)
    with pytest.raises(Misconfigured, match="the annotation of 'when' names 'Never'"):
        nowhere.registry.resolve()


Later = int


def test_settings_are_loaded_on_first_use(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    app = Holdfast()
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://u:secret@db/shop")
    assert app.url == "postgresql://u:secret@db/shop"
    assert "secret" not in repr(app)
    assert Holdfast("sqlite:///x.db").url == "sqlite:///x.db"
    assert Holdfast("sqlite:///x.db", settings=holdfast.Settings(max_attempts=9)).settings.max_attempts == 9
    assert Holdfast(settings=holdfast.Settings(database_url="sqlite:///y.db")).url == "sqlite:///y.db"


def test_retry_is_both_a_rule_and_an_exception():
    assert Retry().rule() is None
    assert Retry(max_attempts=3).rule() is None
    assert Retry(delays=["1m", 300, timedelta(minutes=15)], jitter=0).rule() == RetryRule(
        jitter=0, delays=(seconds(60), seconds(300), seconds(900))
    )
    assert Retry(base="10m").rule() == RetryRule(base=seconds(600), cap=seconds(600))
    with pytest.raises(Retry) as raised:
        raise Retry("SMTP 421", in_="30s")
    assert (raised.value.in_, str(raised.value)) == (seconds(30), "SMTP 421")


@pytest.mark.parametrize(
    "asked",
    [
        {"in_": "30s", "max_attempts": 3},
        {"in_": "30s", "base": 1},
        {"in_": -1},
        {"base": "x"},
        {"base": 2, "cap": 1},
        {"jitter": 2},
        {"delays": "1m"},
        {"delays": ["1m"], "base": 1},
        {"delays": [None]},
    ],
)
def test_an_invalid_retry_rule_is_rejected(asked):
    with pytest.raises(Invalid) as refused:
        Retry(**asked)
    assert refused.value.pointer.startswith("/retry")


@pytest.mark.parametrize("raised", [Retry("x", in_=3), Snooze("5m"), Cancel("why"), Discard("why"), Cancel()])
def test_control_exceptions_can_be_pickled(raised):
    copy = pickle.loads(pickle.dumps(raised))
    assert (type(copy), str(copy), vars(copy)) == (type(raised), str(raised), vars(raised))


def test_all_public_names_exist_and_are_documented():
    assert set(holdfast.__all__) <= set(dir(holdfast))
    for name in holdfast.__all__:
        assert getattr(holdfast, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = holdfast.Nonsense
