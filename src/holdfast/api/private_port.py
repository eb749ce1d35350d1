"""API of the private port: health and metrics, without a key."""

from holdfast.api.app import Api
from holdfast.api.routes.health import PRIVATE_ROUTES
from holdfast.api.routing import Routes


def private_api(api: Api) -> Api:
    """Return an API of the same node that has only the routes of the private port."""
    return Api(api.service._replace(routes=Routes(PRIVATE_ROUTES)))
