"""Where webhooks may be sent, and where not."""

import pytest

from gpuledger.notify.addresses import place_of, refusal

WHO = "me:word"  # apart from the address, so that no tracked file holds a password in one
OUT = place_of("https://hooks.example.org/x?y=1")
HERE = place_of("http://127.0.0.1:8000/x")


def test_a_place_is_read_from_a_url() -> None:
    assert (OUT.host, OUT.port, OUT.target, OUT.authority) == (
        "hooks.example.org",
        443,
        "/x?y=1",
        "hooks.example.org",
    )
    assert OUT.at("192.0.2.1") == "https://192.0.2.1:443/x?y=1"
    assert OUT.at("2001:db8::1") == "https://[2001:db8::1]:443/x?y=1"
    assert place_of("https://[2001:db8::1]:8443").authority == "[2001:db8::1]:8443"
    assert place_of("https://example.org").target == "/"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/", "file:///etc/passwd", "gopher://127.0.0.1:25/", "//example.org/", "example.org", "https://",
        "http://example.org/", "http://10.0.0.1/", "http://localhost.example.org/", "http://127.0.0.2/",
        f"https://{WHO}@example.org/", "https://me@example.org/", "https://example.org/#x", "https://example.org:99999/",
        "https://example.org/\r\nX: y", "https://exämple.org/", "https://example.org/a b",
    ],
)  # fmt: skip
def test_what_is_no_place_for_a_webhook_is_refused(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are tested below
        place_of(url)


def test_a_refusal_does_not_repeat_the_url() -> None:
    with pytest.raises(ValueError, match="https") as refused:
        place_of("http://example.org/very-secret")
    assert "very-secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])
def test_the_open_internet_may_be_told(address: str) -> None:
    assert refusal(address, OUT, is_private_allowed=False) is None


@pytest.mark.parametrize("address", ["10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1"])
def test_a_private_network_may_be_told_where_the_file_says_so(address: str) -> None:
    assert "private: true" in str(refusal(address, OUT, is_private_allowed=False))
    assert refusal(address, OUT, is_private_allowed=True) is None


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "0.0.0.0",
        "::", "127.0.0.1", "127.9.9.9", "::1", "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1",
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "nonsense", "",
    ],
)  # fmt: skip
def test_this_machine_its_cloud_and_no_receivers_are_told_whatever_the_file_says(address: str) -> None:
    assert refusal(address, OUT, is_private_allowed=True)


def test_plain_http_stays_on_this_machine() -> None:
    assert refusal("127.0.0.1", HERE, is_private_allowed=False) is None
    assert refusal("93.184.215.14", place_of("http://localhost/x"), is_private_allowed=True)
