"""A node answers, in process and behind a socket."""


async def test_a_node_responds_in_process(served) -> None:
    client = await served.client(None)

    assert (await client.get("/healthz")).json() == {"status": "ok"}
    assert (await client.get("/v1/jobs")).status_code == 401


async def test_a_node_responds_on_a_socket(live) -> None:
    client = await live.client()

    assert (await client.get("/v1/jobs")).json() == {"items": [], "next_cursor": None}
