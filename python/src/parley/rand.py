"""The chance of a strand: Go's math/rand/v2 with its PCG source, number for number."""

from __future__ import annotations

import random as _random
from collections.abc import MutableSequence, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_MASK128 = (1 << 128) - 1
_MUL = 2549297995355413924 << 64 | 4865540595714422341
_INC = 6364136223846793005 << 64 | 1442695040888963407
_CHEAP = 0xDA942042E4DD58B5


class Rand:
    """A source of chance. It is the same on every play of a strand."""

    __slots__ = ("_state",)

    def __init__(self, seed1: int, seed2: int) -> None:
        self._state = (seed1 & _MASK) << 64 | (seed2 & _MASK)

    def uint64(self) -> int:
        """Return a number from 0 to 2**64-1."""
        state = self._state = (self._state * _MUL + _INC) & _MASK128
        hi, lo = state >> 64, state & _MASK
        hi ^= hi >> 32
        hi = hi * _CHEAP & _MASK
        hi ^= hi >> 48
        return hi * (lo | 1) & _MASK

    def int_n(self, n: int) -> int:
        """Return a whole number from 0 to n-1, as Go's IntN."""
        if not 0 < n <= 1 << 63:
            raise ValueError(f"int_n({n}): want 1 to 2**63")
        if n & (n - 1) == 0:
            return self.uint64() & (n - 1)
        product = self.uint64() * n
        if product & _MASK < n:
            least = (1 << 64) % n
            while product & _MASK < least:
                product = self.uint64() * n
        return product >> 64

    def randint(self, low: int, high: int) -> int:
        """Return a whole number from low to high, both included."""
        if high < low:
            raise ValueError(f"randint({low}, {high}): the second must not be less than the first")
        return low + self.int_n(high - low + 1)

    def random(self) -> float:
        """Return a number from 0 to 1, without 1, as Go's Float64."""
        return (self.uint64() & ((1 << 53) - 1)) / (1 << 53)

    def uniform(self, low: float, high: float) -> float:
        """Return a number between low and high."""
        return low + (high - low) * self.random()

    def choice(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        if not items:
            raise ValueError("choice: there are no items")
        return items[self.int_n(len(items))]

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Put the items in another order, as Go's Shuffle."""
        for i in range(len(items) - 1, 0, -1):
            j = self.int_n(i + 1)
            items[i], items[j] = items[j], items[i]

    def perm(self, n: int) -> list[int]:
        """Return the numbers 0 to n-1 in a random order, as Go's Perm."""
        numbers = list(range(n))
        self.shuffle(numbers)
        return numbers

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """Return k different items."""
        if not 0 <= k <= len(items):
            raise ValueError(f"sample: {k} of {len(items)} items")
        return [items[i] for i in self.perm(len(items))[:k]]

    def python(self) -> _random.Random:
        """Return a generator of Python's module random, seeded from this one: for gauss, choices and so on."""
        return _random.Random(self.uint64())
