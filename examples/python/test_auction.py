"""The tests that every world should pass: run them with pytest."""

import parley.testing
from auction import Auction


def test_auction():
    parley.testing.exercise(Auction)
    parley.testing.exercise(Auction, bidders=5, rounds=2)
