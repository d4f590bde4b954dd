"""A world in Python: sealed-bid auctions. The plan auction.yaml plays it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import parley

QUESTION = "Something is for sale that is worth {} to you. The highest bid wins and pays the second highest. Your bid?"


@dataclass
class Bid:
    bid: Annotated[int, {"minimum": 0, "maximum": 100}]


class Auction(parley.World):
    """Sealed bids: the highest wins and pays the second highest."""

    version = 1
    bidders: Annotated[int, "How many seats bid: 2 to 20."] = 2
    rounds: Annotated[int, "How many things are sold, one after the other: 1 to 100."] = 4

    def seats(self) -> list[str]:
        if not 2 <= self.bidders <= 20:
            raise parley.Invalid("bidders", "want 2 to 20")
        if not 1 <= self.rounds <= 100:
            raise parley.Invalid("rounds", "want 1 to 100")
        return [f"bidder{i + 1}" for i in range(self.bidders)]

    def measures(self) -> list[parley.Measure]:
        return [parley.Measure("profit", self.seats(), rivals=True, low=-99 * self.rounds, high=100 * self.rounds)]

    async def play(self, t: parley.Table) -> parley.Outcome:
        profit = {seat: 0 for seat in self.seats()}
        for number in range(self.rounds):
            worth = {seat: t.rand.randint(1, 100) for seat in profit}
            replies = await t.ask(*(t.call(seat, QUESTION.format(worth[seat]), label="bid", schema=Bid) for seat in profit))
            bids = [(reply.value.bid, seat) for seat, reply in zip(profit, replies) if reply.value]
            bids.sort(key=lambda bid: -bid[0])
            if bids and bids[0][0] > 0:
                best, winner = bids[0]
                price = bids[1][0] if len(bids) > 1 else 0
                profit[winner] += worth[winner] - price
                t.note("sold", {"round": number + 1, "bid": best, "price": price}, seat=winner)
        return parley.Outcome({"profit": profit})

    @classmethod
    def stand_in(cls, model: str, request: Mapping[str, Any], seed: int) -> str | None:
        """Bid for the simulated provider. The model large bids the true worth; any other is off by up to 20."""
        found = re.search(r"worth (\d+) to you", str(request["messages"][-1]["content"]))
        if found is None:
            return None
        off = 0 if model == "large" else parley.Rand(seed, 0).int_n(41) - 20
        return '{"bid":%d}' % min(max(int(found[1]) + off, 0), 100)
