"""Callers of a test's own making: each client says who it is, and is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model.access import Caller, Scope

if TYPE_CHECKING:
    from tests.e2e.api.conftest import Served


class Believing:
    """An authenticator: the bearer is `tenant`, who may do all but administrate, or `admin`."""

    async def caller(self, request):
        name = request.header("authorization").removeprefix("Bearer ")
        if name == "admin":
            return Caller("default", frozenset(Scope), "key:admin")
        return Caller(name, frozenset(Scope) - {Scope.ADMIN}, f"key:{name}")

    async def is_still_valid(self, caller):
        return True

    async def token(self, caller, lifetime):
        return None


async def person(served: Served, name: str):
    """A client of this tenant, or of the administrator."""
    served.api.service = served.api.service._replace(auth=Believing())
    return await served.client(name)
