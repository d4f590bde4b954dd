"""A small negotiation for loop.py --games: two players share nine coins, or lose them."""

import re
from typing import Annotated

import parley

RULES = "Nine coins are shared if both agree, and lost if not. You need {}: fewer are worth nothing to you. Answer with the coins that you want, as offer 5, or with accept."


class Haggle(parley.World):
    """Two players share nine coins, or lose them."""

    version = 1
    turns: Annotated[int, "How many messages there are at most: 2 to 20."] = 4

    def seats(self) -> list[str]:
        if not 2 <= self.turns <= 20:
            raise parley.Invalid("turns", "want 2 to 20")
        return ["first", "second"]

    def measures(self) -> list[parley.Measure]:
        return [parley.Measure("points", self.seats(), low=0, high=1), parley.Measure("agreed", low=0, high=1)]

    async def play(self, t: parley.Table) -> parley.Outcome:
        need = {seat: t.rand.randint(1, 4) for seat in self.seats()}
        talks = {seat: t.talk(seat, system=RULES.format(need[seat])) for seat in need}
        said, wants, shares = "You begin.", 0, None
        for turn in range(self.turns):
            seat, other = self.seats()[turn % 2], self.seats()[1 - turn % 2]
            reply = await talks[seat].say(f"{said} {self.turns - turn - 1} messages are left after yours.", label="move")
            move = reply.text if reply.ok else ""
            if "accept" in move and wants:
                shares = {other: wants, seat: 9 - wants}
                break
            offer = re.search(r"offer ([1-8])\b", move)
            wants = int(offer[1]) if offer else 0
            said = f"The other player wants {wants} and leaves you {9 - wants}." if wants else "The other player said nothing that counts."
        worth = {seat: shares[seat] / 9 if shares and shares[seat] >= need[seat] else 0.0 for seat in need}
        return parley.Outcome({"points": worth, "agreed": 1 if shares else 0}, data=shares)

    @classmethod
    def stand_in(cls, model, request, seed):
        """Ask for anything, and accept now and then: from such conversations a model learns to speak, and not to play well."""
        last = str(request["messages"][-1]["content"])
        leaves, rand = re.search(r"leaves you (\d)", last), parley.Rand(seed, 0)
        if leaves and rand.int_n(3) == 0:
            return "accept"
        return f"offer {rand.int_n(8) + 1}" if "messages are left" in last else None
