"""Scorers in Python. They add scores to a run that was played: parley score run.parley --with polite.py:Length"""

import parley

VERDICT = {"type": "object", "properties": {"polite": {"type": "boolean"}}, "required": ["polite"], "additionalProperties": False}


class Length(parley.Scorer):
    """How many words each seat wrote in an answer, on average."""

    def score(self, episode: parley.Played) -> dict[str, dict[str, float]]:
        words = {seat: [len(text.split()) for text in episode.said(seat)] for seat in sorted(episode.lineup)}
        return {"words": {seat: sum(n) / len(n) for seat, n in words.items() if n}}


class Politeness(parley.Scorer):
    """A judge: is each seat polite? The model is asked, recorded and paid for as any other."""

    judges = {"judge": "sim/large"}  # a real one: openai/gpt-5-mini
    question: str = "Is the following polite?"

    def measures(self) -> list[parley.Measure]:
        return [parley.Measure("polite", low=0, high=1)]

    async def score(self, episode: parley.Played, t: parley.Table) -> dict[str, dict[str, int]]:
        seats = [seat for seat in sorted(episode.lineup) if episode.said(seat)]
        texts = ["\n".join(episode.said(seat)) for seat in seats]
        verdicts = await t.ask(*(t.call("judge", f"{self.question}\n\n{text}", label="judge", schema=VERDICT) for text in texts))
        return {"polite": {seat: int(v.json["polite"]) for seat, v in zip(seats, verdicts) if v.ok}}
