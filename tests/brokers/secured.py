"""Apache Kafka with TLS and logins, and the certificates for it: made for one test, worth nothing anywhere else."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID
from infra.kafka.nodes import ApacheKafka
from infra.kafka.processes import free_port

USER, PASSWORD = "ada", "only-for-this-test"
KEY_PASSWORD = "only-for-this-key"
PROTOCOLS = "LOGIN:SASL_PLAINTEXT,LOGINTLS:SASL_SSL,MUTUAL:SSL"
DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """Signs certificates; ``path`` holds its own."""

    path: Path
    key: ec.EllipticCurvePrivateKey
    name: x509.Name

    @classmethod
    def create(cls, path: Path) -> "Authority":
        """Make an authority of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, path.stem)])
        authority = cls(path, key, name)
        certificate = authority._certificate(name, key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        path.write_bytes(certificate.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return authority

    def issue(self, name: str, folder: Path, password: str | None = None) -> tuple[Path, Path]:
        """Write a key and its certificate for 127.0.0.1; return certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))])
        certificate = self._certificate(subject, key).add_extension(here, critical=False)
        cert_file, key_file = folder / f"{name}.crt", folder / f"{name}.key"
        cert_file.write_bytes(certificate.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM))
        secret: KeySerializationEncryption = NoEncryption()
        if password is not None:
            secret = BestAvailableEncryption(password.encode())
        key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret))
        return cert_file, key_file

    def _certificate(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        today = dt.datetime.now(dt.UTC)  # noqa: TID251 - TLS asks the real clock
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(today - DAY)
            .not_valid_after(today + DAY)
        )


class SecuredKafka(ApacheKafka):
    """Apache Kafka that also listens with a login, with a login over TLS, and with certificates on both sides."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True)
        self.authority = Authority.create(folder / "authority.pem")
        self._ports = {"LOGIN": free_port(), "LOGINTLS": free_port(), "MUTUAL": free_port()}
        scram = f"[name={USER},password={PASSWORD}]"
        self._format_options = [
            part for kind in ("256", "512") for part in ("--add-scram", f"SCRAM-SHA-{kind}={scram}")
        ]

    def at(self, listener: str) -> str:
        """Return the address of a listener: LOGIN, LOGINTLS or MUTUAL."""
        return f"127.0.0.1:{self._ports[listener]}"

    def _further_settings(self, controller_port: int) -> str:
        cert_file, key_file = self.authority.issue("broker", self.folder)
        chain = self.folder / "broker.pem"
        chain.write_bytes(key_file.read_bytes() + cert_file.read_bytes())
        every = "".join(f",{name}://{self.at(name)}" for name in self._ports)
        plain = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            f' username="broker" password="unused" user_{USER}="{PASSWORD}";'
        )
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        own = self.port
        lines = [
            f"listeners=BROKER://127.0.0.1:{own}{every},CONTROLLER://127.0.0.1:{controller_port}",
            f"advertised.listeners=BROKER://127.0.0.1:{own}{every}",
            f"listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,{PROTOCOLS}",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={chain}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.authority.path}",
            "listener.name.mutual.ssl.client.auth=required",
        ]
        for name in ("login", "logintls"):
            prefix = f"listener.name.{name}"
            lines.append(f"{prefix}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512")
            lines.append(f"{prefix}.plain.sasl.jaas.config={plain}")
            lines += [f"{prefix}.scram-sha-{kind}.sasl.jaas.config={scram}" for kind in ("256", "512")]
        return "\n".join(["", *lines, ""])
