"""The same figures, second by second and in plain Python; shares no code with the pipelines."""

import datetime as dt
import itertools
from collections import defaultdict
from fractions import Fraction
from zoneinfo import ZoneInfo

from tests.integration.pipelines.rows import Facts, Host, Wait, at

WORSE = ("healthy", "reserved", "maintenance", "draining", "unhealthy")


class Oracle:
    """Walks ``[from_s, to_s)`` one second at a time, never past ``now_s``."""

    def __init__(self, facts: Facts, from_s: int, to_s: int, now_s: int) -> None:
        self.facts = facts
        self.usage: dict[tuple[int, str, str], int] = defaultdict(int)  # by 15 minutes
        self.capacity: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.entitled: dict[tuple[int, str], Fraction] = defaultdict(Fraction)  # by hour
        self.waiting: dict[tuple[int, str], int] = defaultdict(int)
        self.since_s = min((h.from_s for h in facts.hosts), default=None)
        # Nothing changes between two edges, so one second stands for all of them.
        edges = self._edges(from_s, min(to_s, now_s))
        for start, end in itertools.pairwise(edges):
            self._count(start, end - start)

    def _edges(self, from_s: int, to_s: int) -> list[int]:
        f = self.facts
        instants = {from_s, to_s, *range(from_s, to_s, 900)}
        for item in (*f.segments, *f.waits, *f.hosts):
            instants |= {item.from_s, to_s if item.to_s is None else item.to_s}
        instants |= {share.from_s for share in f.shares}
        return sorted(second for second in instants if from_s <= second <= to_s)

    def _count(self, second: int, seconds: int) -> None:
        bucket, hour = second - second % 900, second - second % 3600
        held: dict[str, int] = defaultdict(int)
        for s in self.facts.segments:
            if s.from_s <= second and (s.to_s is None or second < s.to_s):
                self.usage[bucket, s.account, s.klass] += s.gpus_milli * seconds
                for index, host in enumerate(s.hosts):
                    whole, odd = divmod(s.gpus_milli, len(s.hosts))
                    held[host] += whole + (index < odd)
        healthy = sum(self._count_host(h, part, second, seconds) for h, part in self._spread(held, second))
        for account, part in self._parts(second).items():
            self.entitled[hour, account] += part * healthy * seconds
        for w in self.facts.waits:
            running = w.from_s <= second and (w.to_s is None or second < w.to_s)
            if running and w.minimum_runtime_s > 0 and self._could_fit(w):
                self.waiting[hour, w.account] += w.gpus_milli * seconds

    def _spread(self, held: dict[str, int], second: int) -> list[tuple[Host, int]]:
        """Return the parts of each host with what runs hold of them: the good ones first, too much of the worst."""
        found = []
        present = [h for h in self.facts.hosts if h.from_s <= second and (h.to_s is None or second < h.to_s)]
        for name in {h.name for h in present}:
            own = sorted((h for h in present if h.name == name), key=lambda h: WORSE.index(h.state))
            left = held[name]
            for h in own:
                part = left if h is own[-1] else min(left, h.gpus * 1000)
                found.append((h, part))
                left -= part
        return found

    def _count_host(self, h: Host, held: int, second: int, seconds: int) -> int:
        milli, capacity = h.gpus * 1000, self.capacity[second - second % 900]
        capacity["installed"] += milli * seconds
        if h.state == "healthy":
            return milli
        if h.state == "reserved":
            capacity["reserved"] += (milli - held) * seconds
            return milli
        if h.state == "unhealthy":
            capacity["unhealthy"] += (milli - held) * seconds
            capacity["unhealthy_occupied"] += held * seconds
            return 0
        capacity["maintenance"] += (milli - held) * seconds
        return held

    def _could_fit(self, wait: Wait) -> bool:
        """Say whether the cluster ever had so many GPUs of the model at once; where it had none, nobody knows."""
        hosts = [
            h
            for h in self.facts.hosts
            if wait.gpu_model is None or h.gpu_model.casefold() == wait.gpu_model.casefold()
        ]
        levels = [
            sum(h.gpus * 1000 for h in hosts if h.from_s <= s and (h.to_s is None or s < h.to_s))
            for s in (h.from_s for h in hosts)
        ]
        return not self.facts.hosts or wait.gpus_milli <= max(levels, default=0)

    def _share(self, node: str, second: int) -> int:
        set_before = [s for s in self.facts.shares if s.account == node and s.from_s <= second]
        return max(set_before, key=lambda s: s.from_s).share if set_before else 1

    def _parts(self, second: int) -> dict[str, Fraction]:
        accounts = [a for a in self.facts.accounts if a.split("/")[0] == self.facts.cluster]
        nodes = {"/".join(a.split("/")[: n + 1]) for a in accounts for n in range(a.count("/") + 1)}
        parts = {}
        for leaf in nodes:
            if any(node.startswith(leaf + "/") for node in nodes):
                continue
            part = Fraction(1)
            for depth in range(1, leaf.count("/") + 1):
                prefix = "/".join(leaf.split("/")[: depth + 1])
                parent = prefix.rpartition("/")[0]
                siblings = [n for n in nodes if n.rpartition("/")[0] == parent]
                whole = sum(self._share(n, second) for n in siblings)
                part = part * self._share(prefix, second) / whole if whole else Fraction(0)
            if self._share(self.facts.cluster, second) == 0:
                part = Fraction(0)
            parts[leaf] = part
        return parts

    def usage_hours(self) -> dict[tuple[int, str, str], int]:
        hours: dict[tuple[int, str, str], int] = defaultdict(int)
        for (bucket, account, klass), amount in self.usage.items():
            hours[bucket - bucket % 3600, account, klass] += amount
        return hours

    def day_of(self, second: int) -> dt.date:
        moment = at(second)
        assert moment is not None
        return moment.astimezone(ZoneInfo(self.facts.timezone or "UTC")).date()
