"""Which time-zone data are in use: the machine's, in the order in which they are looked up, else the package's."""

from pathlib import Path

import tzdata

from gpuledger.kernel.zone_data import UNKNOWN, version


def zones(folder: Path, release: str | None) -> str:
    (folder / "Europe").mkdir(parents=True)
    (folder / "Europe" / "Berlin").write_bytes(b"TZif")
    if release is not None:
        (folder / "tzdata.zi").write_text(release)
    return str(folder)


def test_the_machines_own_come_first(tmp_path: Path) -> None:
    first = zones(tmp_path / "a", "# version 2026b\nR x\n")
    second = zones(tmp_path / "b", "# version 2020a\n")
    assert version("Europe/Berlin", (str(tmp_path / "none"), first, second)) == "2026b"


def test_a_machine_that_does_not_say_is_not_guessed(tmp_path: Path) -> None:
    assert version("Europe/Berlin", (zones(tmp_path / "a", None),)) == UNKNOWN
    assert version("Europe/Berlin", (zones(tmp_path / "b", "nothing\n"),)) == UNKNOWN


def test_without_the_machines_own_the_package_is_read(tmp_path: Path) -> None:
    assert version("Europe/Berlin", (str(tmp_path),)) == tzdata.IANA_VERSION
    assert version("UTC")
