"""Sets of whole numbers, such as "1-3,7"."""


class Intervals:
    """A set of whole numbers, kept as intervals that neither overlap nor touch."""

    def __init__(self, pairs=()):
        self._pairs = []
        for first, last in pairs:
            self.add(first, last)

    @classmethod
    def parse(cls, text):
        """Read a set such as "1-3,7"; spaces do not count."""
        found = cls()
        for part in text.replace(" ", "").split(","):
            if not part:
                continue
            first, dash, last = part.partition("-")
            if not first.isdigit() or (dash and not last.isdigit()):
                raise ValueError(f"not a range: {part}")
            found.add(int(first), int(last) if dash else int(first))
        return found

    def add(self, first, last=None):
        """Put all numbers from `first` to `last` in."""
        last = first if last is None else last
        if last < first:
            raise ValueError(f"{last} comes before {first}")
        kept = []
        for low, high in self._pairs:
            if high + 1 < first or low > last + 1:
                kept.append((low, high))
            else:
                first, last = min(first, low), max(last, high)
        kept.append((first, last))
        self._pairs = sorted(kept)

    def remove(self, first, last=None):
        """Take all numbers from `first` to `last` out."""
        last = first if last is None else last
        kept = []
        for low, high in self._pairs:
            if low < first:
                kept.append((low, min(high, first - 1)))
            if high > last:
                kept.append((max(low, last + 1), high))
        self._pairs = [pair for pair in kept if pair[0] <= pair[1]]

    def gaps(self):
        """The intervals between the first and the last number that are not in the set."""
        return [(left[1] + 1, right[0] - 1) for left, right in zip(self._pairs, self._pairs[1:])]

    def __contains__(self, number):
        return any(low <= number <= high for low, high in self._pairs)

    def __iter__(self):
        for low, high in self._pairs:
            yield from range(low, high + 1)

    def __len__(self):
        return sum(high - low + 1 for low, high in self._pairs)

    def __eq__(self, other):
        return isinstance(other, Intervals) and self._pairs == other._pairs

    def __str__(self):
        return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in self._pairs)

    def __repr__(self):
        return f"Intervals.parse({str(self)!r})"
