"""How a client proves who it is, and knows whom it talks to: TLS and SASL, as the Kafka client takes them.

Secrets stand in files, never in a variable that a process list or a crash report shows, and are read anew for each
connection: a password that was changed is found without a restart.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuledger.kernel.errors import Refused

LOGIN = "GPULEDGER_KAFKA_SASL_MECHANISM, GPULEDGER_KAFKA_SASL_USERNAME and the password in its file"


@dataclass(frozen=True, slots=True)
class Security:
    """What a connection needs besides an address.

    Args:
        protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        mechanism: ``PLAIN``, ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``, with SASL.
        username: Who logs in, with SASL.
        password_file: Holds the password, with SASL.
        ca_file: Certificates that sign the brokers'; those of the system unless given.
        cert_file: The client's own certificate, where brokers ask for one.
        key_file: Its key.
        key_password_file: Holds the password of the key, where it has one.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    key_password_file: Path | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the Kafka client.

        Raises:
            Refused: When a file cannot be read, or holds something else.
        """
        arguments: dict[str, Any] = {"security_protocol": self.protocol}
        if self.protocol.endswith("SSL"):
            arguments["ssl_context"] = self._context()
        if self.protocol.startswith("SASL_"):
            arguments |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": _secret("SASL_PASSWORD_FILE", self.password_file),
            }
        return arguments

    def __str__(self) -> str:
        """Return what a broker must do, for whoever looks for the cause of a connection that fails.

        A wrong password often shows as a connection that the broker closed: the client drops the answer before that.
        """
        asked = [f"speaks {self.protocol} (GPULEDGER_KAFKA_SECURITY_PROTOCOL)"]
        if self.protocol.endswith("SSL"):
            asked.append("has a certificate for that name, signed by one of GPULEDGER_KAFKA_CA_FILE")
        if self.protocol.startswith("SASL_"):
            asked.append(f"{LOGIN} are right there")
        return ", that ".join(asked)

    def _context(self) -> ssl.SSLContext:
        """Return TLS 1.2 or later that checks the broker's certificate and that its name is the one connected to."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise _unusable("CA_FILE", self.ca_file, error) from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.cert_file is not None:
            # Without a password OpenSSL would ask for one at the terminal.
            password = (
                "" if self.key_password_file is None else _secret("KEY_PASSWORD_FILE", self.key_password_file)
            )
            try:
                context.load_cert_chain(self.cert_file, self.key_file, password)
            except OSError as error:
                raise _unusable("CERT_FILE", self.cert_file, error) from error
        return context


def _secret(variable: str, path: Path | None) -> str:
    """Return the first line of a file, without its end.

    Raises:
        Refused: When it cannot be read or is empty; the message never quotes it.
    """
    try:
        text = "" if path is None else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(variable, path, error) from error
    secret = text.split("\n", 1)[0].removesuffix("\r")
    if not secret:
        raise Refused(
            f"GPULEDGER_KAFKA_{variable}: {path} holds no password",
            hint="write it into the first line of the file",
        )
    return secret


def _unusable(variable: str, path: Path | None, error: Exception) -> Refused:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return Refused(
        f"GPULEDGER_KAFKA_{variable}: {path} cannot be used: {reason}",
        hint="check that it is there, is readable, and is PEM text where a certificate or key is wanted",
    )
