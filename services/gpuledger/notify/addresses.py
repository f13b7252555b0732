"""Where webhooks may be sent: no address that would let a file of recipients reach into this machine or its cloud.

Pure: the name is resolved elsewhere, and connected to is an address that was judged here.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
_PORTS = {"https": 443, "http": 80}
_METADATA = frozenset(
    map(ipaddress.ip_address, ("168.63.129.16", "100.100.100.200", "fd00:ec2::254", "192.0.0.192"))
)
"""Where clouds tell a machine its own secrets, besides the link-local addresses that most of them use."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a URL leads.

    Args:
        is_secure: Whether it is spoken to with TLS.
        host: Its name, or an address.
        port: Its port.
        target: Path and query.
    """

    is_secure: bool
    host: str
    port: int
    target: str

    @property
    def is_loopback(self) -> bool:
        """Whether it is said to be this machine."""
        return self.host in LOOPBACK_NAMES

    @property
    def authority(self) -> str:
        """Host and port as the ``Host`` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.is_secure else "http"] else f"{host}:{self.port}"

    def at(self, address: str) -> str:
        """Return the URL that leads there by an address in place of the name."""
        host = f"[{address}]" if ":" in address else address
        return f"{'https' if self.is_secure else 'http'}://{host}:{self.port}{self.target}"


def place_of(url: str) -> Place:
    """Return where a URL leads.

    Raises:
        ValueError: When a webhook may not be sent there, whatever its name resolves to. The URL is not repeated:
            its path often is a secret.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("holds characters that no URL has")
    parts = urlsplit(url)
    host = parts.hostname
    if parts.scheme not in _PORTS or not host:
        raise ValueError("must begin with https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a login; the signature says who sends")
    if parts.fragment:
        raise ValueError("holds a fragment, which nobody would be sent")
    if parts.scheme == "http" and host not in LOOPBACK_NAMES:
        raise ValueError("must begin with https://; http is for this machine alone")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Place(parts.scheme == "https", host, parts.port or _PORTS[parts.scheme], target)


def refusal(address: str, place: Place, *, is_private_allowed: bool) -> str | None:
    """Return why no webhook may go to an address that a name resolved to; None where it may.

    Args:
        address: The address, as a resolver gives it.
        place: Where the URL leads.
        is_private_allowed: Whether the file says that the receiver is inside the organisation's own network.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"{address!r} is no address"
    ip = _meant(ip)
    if place.is_loopback and ip.is_loopback:
        return None
    if not place.is_secure:
        return f"{place.host} is not this machine but {ip}, and http is for this machine alone"
    if ip in _METADATA or ip.is_unspecified or ip.is_multicast or ip.is_link_local or ip.is_reserved:
        return f"{ip} is no address of a receiver"
    if ip.is_global or (is_private_allowed and not ip.is_loopback):
        return None
    return f"{ip} is inside a private network; 'private: true' beside the url allows that"


def _meant(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the IPv4 address that an IPv6 one only wraps."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip
