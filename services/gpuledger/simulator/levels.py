"""Something that changes from instant to instant, and its exact integral over a window."""


class Level:
    """An amount that stands until it is moved, integrated from the beginning of a window on.

    Args:
        from_s: When the window begins; earlier moves change the amount and no integral.
        amount: What it is at first.
    """

    __slots__ = ("_area", "_since_s", "amount")

    def __init__(self, from_s: int, amount: int = 0) -> None:
        self.amount = amount
        self._since_s = from_s
        self._area = 0

    def move(self, at_s: int, change: int) -> None:
        """Change the amount from an instant on; instants come in order."""
        if at_s > self._since_s:
            self._area += self.amount * (at_s - self._since_s)
            self._since_s = at_s
        self.amount += change

    def area(self, to_s: int) -> int:
        """Return the integral since the window began, up to an instant that is not before the last move."""
        if to_s > self._since_s:
            self._area += self.amount * (to_s - self._since_s)
            self._since_s = to_s
        return self._area

    def take(self, to_s: int) -> int:
        """Return the integral up to an instant and begin anew there."""
        area = self.area(to_s)
        self._area = 0
        return area


__all__ = ["Level"]
