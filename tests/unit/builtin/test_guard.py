"""Address guard: the edges of every range, and addresses embedded in others."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.builtin.webhooks.address_guard import _DENIED, AddressGuard, GuardRules, check_address
from holdfast.errors import Invalid

PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
    "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15", "168.63.129.17", "2606:4700::1111", "2a00::1",
    "2001:200::1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
]  # fmt: skip

HOSTILE = [
    "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.100.100.200", "100.127.255.255",
    "127.0.0.1", "127.255.255.255", "168.63.129.16", "169.254.0.0", "169.254.169.254", "169.254.170.2",
    "169.254.255.255", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.0.0", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1",
    "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1",
    "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
    "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1", "2002:7f00:1::", "2002:a00:1::1", "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:0:7f00:1::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
    "3fff::1", "100::1", "5f00::1", "4000::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "fe80::1%eth0",
    "febf::1", "fec0::1", "ff02::1", "ff0e::1", "::1%lo", "2a00::5efe:127.0.0.1", "2a00::200:5efe:169.254.169.254",
    "fe80::5efe:10.0.0.1", "not an address", "",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address):
    """T12."""
    assert check_address(address, ()) == (False, None)


@pytest.mark.parametrize("address", HOSTILE)
def test_every_other_address_is_denied(address):
    """T12."""
    assert check_address(address, ())[1] is not None


_DENIED_V4 = [network for network in map(ip_network, (each for each, _ in _DENIED)) if network.version == 4]
inside = st.sampled_from(_DENIED_V4).flatmap(
    lambda network: st.integers(int(network[0]), int(network[-1])).map(IPv4Address)
)
EMBEDDINGS = {
    "compatible": lambda n: n,
    "mapped": lambda n: 0xFFFF << 32 | n,
    "translated": lambda n: 0xFFFF << 48 | n,
    "NAT64": lambda n: 0x64FF9B << 96 | n,
    "NAT64 of one's own": lambda n: 0x64FF9B0001 << 80 | n,
    "6to4": lambda n: 0x2002 << 112 | n << 80,
    "Teredo": lambda n: 0x20010000 << 96 | 0x08080808 << 64 | (~n & 0xFFFF_FFFF),
    "Teredo's server": lambda n: 0x20010000 << 96 | n << 64,
    "ISATAP": lambda n: 0x2A00 << 112 | 0x5EFE << 32 | n,
    "ISATAP, said to be public": lambda n: 0x2A00 << 112 | 0x2005EFE << 32 | n,
}


@given(inside, st.sampled_from(sorted(EMBEDDINGS)))
def test_a_denied_address_is_denied_when_embedded_in_another(address, how):
    """T12: in every standard embedding."""
    assert check_address(str(address), ())[1] is not None
    assert check_address(str(IPv6Address(EMBEDDINGS[how](int(address)))), ())[1] is not None, how


@given(st.integers(0, (1 << 128) - 1).map(IPv6Address))
def test_unassigned_networks_are_denied(address):
    """T12."""
    known = ("2000::/3", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
    if not any(address in ip_network(each) for each in known):
        assert check_address(str(address), ())[1] is not None


@pytest.mark.parametrize(
    "address, allowed",
    [("10.1.2.3", "10.1.0.0/16"), ("::ffff:10.1.2.3", "10.1.0.0/16"), ("::1", "::1/128"), ("fd12::1", "fd12::/16")],
)
def test_addresses_that_the_settings_allow_are_allowed(address, allowed):
    assert check_address(address, (ip_network(allowed),)) == (True, None)
    assert check_address(address, (ip_network("10.2.0.0/16"),))[1] is not None


def guard(*allowed, ports=(80, 443), plain_http=False):
    return AddressGuard(GuardRules.of(allowed, ports, plain_http=plain_http))


@pytest.mark.parametrize(
    "url, address, rules, reached",
    [
        ("https://example.com/", "8.8.8.8", {}, True),
        ("http://example.com/", "8.8.8.8", {}, False),
        ("http://example.com/", "8.8.8.8", {"plain_http": True}, True),
        ("https://example.com:8443/", "8.8.8.8", {}, False),
        ("https://example.com:8443/", "8.8.8.8", {"ports": (443, 8443)}, True),
        ("https://example.com:22/", "8.8.8.8", {"plain_http": True}, False),
    ],
)
def test_public_hosts_require_tls_and_standard_ports(url, address, rules, reached):
    """T11."""
    made = guard(**rules)
    assert (made.refusal(made.parse(url), address) is None) is reached


@pytest.mark.parametrize(
    "url, address, reached",
    [
        ("http://hooks.internal:9000/", "10.1.2.3", True),
        ("http://HOOKS.internal.:9000/", "10.1.2.3", True),
        ("http://evil.example/", "10.1.2.3", False),
        ("http://hooks.internal.evil.example/", "10.1.2.3", False),
        ("http://queue.internal:8080/", "10.1.2.3", True),
        ("http://queue.internal:8081/", "10.1.2.3", False),
        ("http://any.example:9000/", "10.9.0.1", True),
    ],
)
def test_settings_allow_hosts_by_name_and_port_and_networks_by_address(url, address, reached):
    made = guard("hooks.internal", "queue.internal:8080", "10.9.0.0/16")
    assert (made.refusal(made.parse(url), address) is None) is reached


@pytest.mark.parametrize(
    "url",
    [
        "", "example.com", "//example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1:70/_x",
        "unix:///run/x.sock", "http://", "http:///x", "http://user@example.com/", "http://user:pw@example.com/",
        "http://example.com@127.0.0.1/", "http://127.0.0.1\\@example.com/", "http://exa mple.com/",
        "http://example.com\r\nHost: evil/", "http://example.com/\x00", "http://example.com:99999/", "http://[::1/",
        "http://127。0。0。1/", "http://①②⑦.0.0.1/", "https://" + "a" * 5_000, "http://example.com:0/",
    ],
)  # fmt: skip
def test_an_ambiguous_url_is_rejected(url):
    """T11: one parser decides where a request goes."""
    with pytest.raises(Invalid) as caught:
        guard().parse(url)
    assert caught.value.pointer == "/payload/url"
