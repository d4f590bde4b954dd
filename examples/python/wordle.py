"""An environment in Python: guess a word of five letters. The plan wordle.yaml plays it."""

import random
import re
from collections.abc import Mapping
from typing import Annotated, Any

import parley

WORDS = "apple brick chair dance eagle flame grape house knife lemon mouse night ocean piano queen river stone table voice water".split()


class Wordle(parley.Env):
    """Guess a word of five letters from hints."""

    guesses: Annotated[int, "How many guesses there are: 1 to 20."] = 6
    system = "Guess the word of five letters. Answer with one word. Hints: + right place, ? wrong place, - not in the word."

    def check(self) -> None:
        if not 1 <= self.guesses <= 20:
            raise parley.Invalid("guesses", "want 1 to 20")

    def reset(self, seed: int) -> str:
        self.word = random.Random(seed).choice(WORDS)
        self.left = self.guesses
        return "Your first guess?"

    def step(self, action: str) -> parley.Step:
        guess = (re.findall(r"\b[a-z]{5}\b", action.lower()) or [""])[-1]
        self.left -= 1
        if guess == self.word:
            return parley.Step(reward=1, done=True, info={"word": self.word})
        if self.left == 0:
            return parley.Step(done=True, info={"word": self.word})
        hint = "".join("+" if a == b else "?" if a in self.word else "-" for a, b in zip(guess, self.word))
        return parley.Step(f"{guess or 'That is no word of five letters.'} {hint} {self.left} left. Your guess?")

    @classmethod
    def stand_in(cls, model: str, request: Mapping[str, Any], seed: int) -> str | None:
        """Guess for the simulated provider, any word of the list."""
        return WORDS[parley.Rand(seed, 0).int_n(len(WORDS))] if "five letters" in str(request["messages"][0]) else None
