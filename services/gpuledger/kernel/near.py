"""What somebody may have meant who wrote a name that is not known."""

from collections.abc import Collection


def did_you_mean(
    name: str, known: Collection[str], otherwise: str, *, most: int = 1, likeness: float = 0.6
) -> str:
    """Return the question whether a known name is meant, the likest first; something else where none is like it.

    Args:
        name: What was written.
        known: The names that there are.
        otherwise: What to say where none is like it.
        most: How many names are asked for at most.
        likeness: How much of a name has to be as in the one that is suggested, from 0 to 1.
    """
    import difflib  # wanted by few commands, and by those that fail

    near = difflib.get_close_matches(name, known, n=most, cutoff=likeness)
    return f"did you mean {', '.join(near)}?" if near else otherwise
