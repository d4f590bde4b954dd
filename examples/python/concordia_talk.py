"""Entities of Concordia at a table: pip install gdm-concordia greenlet. Their model is two methods that wait for the table."""

import json

import numpy
from concordia.associative_memory import basic_associative_memory
from concordia.language_model import language_model
from concordia.prefabs.entity import minimal
from concordia.typing import entity as entity_lib
from concordia.utils import concurrency

import parley
import parley.blocking

# An entity's components run one after the other: the table belongs to the thread of the world.
concurrency.run_tasks = lambda tasks, **_: {name: task() for name, task in tasks.items()}


class TableModel(language_model.LanguageModel):
    """Asks a seat. A call that fails is silence."""

    def __init__(self, t, seat):
        self.t, self.seat = t, seat

    def sample_text(self, prompt, *, max_tokens=256, **_):
        return parley.blocking.wait(self.t.one(self.seat, prompt, label="text", max_tokens=max_tokens)).text

    def sample_choice(self, prompt, responses, **_):
        schema = {"type": "object", "properties": {"choice": {"enum": list(responses)}}, "required": ["choice"], "additionalProperties": False}
        reply = parley.blocking.wait(self.t.one(self.seat, f"{prompt}\nChoose one of {json.dumps(responses)}.", label="choice", schema=schema))
        chosen = reply.json["choice"] if reply.ok else responses[0]
        return responses.index(chosen), chosen, {}


class Talk(parley.World):
    """Two entities talk."""

    durable = "episode"  # Concordia draws from global chance and reads the clock
    rounds: int = 2

    def seats(self):
        return ["alice", "bob"]

    async def play(self, t):
        return await parley.blocking.run(self.simulate, t)

    def simulate(self, t):
        entities = []
        for seat in self.seats():
            memory = basic_associative_memory.AssociativeMemoryBank(sentence_embedder=lambda text: numpy.ones(3))
            prefab = minimal.Entity(params={"name": seat.capitalize(), "goal": "Find out what the other one likes."})
            entities.append(prefab.build(model=TableModel(t, seat), memory_bank=memory))
        said = []
        for _ in range(self.rounds):
            for speaker in entities:
                said.append(speaker.act(entity_lib.free_action_spec(call_to_action="What does {name} say?")))
                t.note("said", said[-1])
                for other in entities:
                    other.observe(said[-1])
        return parley.Outcome(data=said)
