"""What came and went since that was last asked. Pure."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Traffic(Generic[T]):
    """Values by name as they come and go; who comes and goes between two questions is told to nobody."""

    def __init__(self) -> None:
        self._gone: list[T] = []
        self._come: dict[str, T] = {}

    def come(self, name: str, value: T) -> None:
        """Note that a value is there from now on."""
        self._come[name] = value

    def go(self, name: str, value: T) -> None:
        """Note that a value is there no more."""
        if self._come.pop(name, None) is None:
            self._gone.append(value)

    def told(self) -> tuple[tuple[T, ...], tuple[T, ...]]:
        """Return what is there no more, and what is there by now, and forget both."""
        found = tuple(self._gone), tuple(self._come.values())
        self._gone.clear()
        self._come.clear()
        return found
