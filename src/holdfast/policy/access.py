"""Who may do what."""

from holdfast.errors import Forbidden
from holdfast.model.access import Caller, Scope


def permit(caller: Caller, scope: Scope) -> None:
    """Raise `Forbidden` unless the caller holds this scope."""
    if scope not in caller.scopes and not caller.is_admin:
        held = ", ".join(sorted(caller.scopes)) or "none"
        raise Forbidden(f"this needs the scope {scope.value!r}; the key or token has: {held}")


def seen_tenant(caller: Caller, asked: str | None) -> str | None:
    """Whose things a caller sees who asks for those of `asked`; None is everybody's, for administrators only."""
    if caller.is_admin:
        return asked
    if asked is not None and asked != caller.tenant:
        raise Forbidden(f"this key or token belongs to the tenant {caller.tenant!r}: leave `tenant` out")
    return caller.tenant


def acting_tenant(caller: Caller, asked: str | None) -> str:
    """For whom a caller acts: their own tenant, or the one an administrator names."""
    return seen_tenant(caller, asked) or caller.tenant
