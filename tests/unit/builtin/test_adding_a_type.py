"""The guide to adding a type works unchanged."""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.builtin import register
from holdfast.cli.loader import load_app, parse_slots
from holdfast.config import Settings
from holdfast.model.outcome import Failed, Succeeded
from holdfast.worker.handlers.registry import Handler, Registry
from holdfast.worker.handlers.signature import Arguments
from holdfast.worker.running.runner import Runner

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "adding-a-type.md"


@pytest.fixture
def app(tmp_path, monkeypatch):
    """Import the example file of the guide."""
    (code,) = re.findall(r"```python\n# (shop_jobs\.py)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (tmp_path / code[0]).write_text(code[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield load_app("shop_jobs:app")
    sys.modules.pop("shop_jobs")


async def test_the_example_of_the_guide_registers_a_type(app, engine, bench):
    registry = app.registry
    assert register.register_builtin(registry, Settings(), engine.deliveries) == ["webhook"]
    assert registry.types() == ["sms", "webhook"]
    assert parse_slots("", registry) == {"default": 10, "messages": 10}
    runner = Runner(registry, engine.attempts, threads=ThreadPoolExecutor(1))

    async def run(payload):
        job = await bench.claim("sms", payload)
        task = runner.call(job)
        return job, await runner.run(job, task, runner.context(job, task, None))

    job, outcome = await run({"to": "+491701234567", "text": "hi"})
    assert isinstance(outcome, Succeeded)
    assert json.loads(outcome.result) == {"receipt": f"{job.id}:send/2"}
    for payload in ({"to": "0170", "text": "hi"}, {"to": "+49170"}):
        _, outcome = await run(payload)
        assert isinstance(outcome, Failed)
        assert not outcome.retryable


def test_a_type_of_the_application_replaces_a_built_in_type(engine):
    async def own() -> str:
        return "mine"

    registry = Registry()
    registry.add(Handler("webhook", own, "async", Arguments(own, "webhook")))
    settings = Settings(smtp_url="smtps://mail.example", smtp_from="jobs@example.com", demo=True)
    added = register.register_builtin(registry, settings, engine.deliveries)
    assert "webhook" not in added
    assert {"email", "demo"} <= set(added)
    assert registry.get("webhook").function is own


def test_a_worker_registers_only_configured_types(engine):
    assert register.register_builtin(Registry(), Settings(), engine.deliveries) == ["webhook"]
