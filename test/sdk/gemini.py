"""Uses Google's SDK as a program does that asks Gemini: the SDK reads where to go from its own environment variables.
Prints what it was answered. MODE says how much is asked: all, what a gateway serves, or what it translates."""

import json
import os
import sys
import time

from google import genai
from google.genai import types
from pydantic import BaseModel

MODEL = "small"
client = genai.Client()


def show(name, *values):
    assert all(v not in (None, "", [], 0) for v in values), (name, values)
    print(name, json.dumps(values, default=str))


def ask(contents="Say something.", **config):
    return client.models.generate_content(model=MODEL, contents=contents, config=types.GenerateContentConfig(**config))


def ended(batch):
    while not batch.done:
        time.sleep(0.05)
        batch = client.batches.get(name=batch.name)
    return batch


class Place(BaseModel):
    city: str
    people: int


LOOK = types.FunctionDeclaration(
    name="look",
    parameters_json_schema={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)

r = ask(system_instruction="Be brief.", temperature=0.5)
show("answer", r.text, r.usage_metadata.total_token_count)
show("stream", "".join(c.text or "" for c in client.models.generate_content_stream(model=MODEL, contents="Say something.")))
show("schema", ask(response_mime_type="application/json", response_schema=Place).parsed.city)
must = types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY"))
r = ask(tools=[types.Tool(function_declarations=[LOOK])], tool_config=must)
calls = r.function_calls
show("tool", calls[0].name, calls[0].args["at"])
turns = [types.UserContent("Say something."), r.candidates[0].content]
turns.append(types.UserContent([types.Part.from_function_response(name=c.name, response={"result": "A cat."}) for c in calls]))
show("after tool", ask(turns).text)
chat = client.chats.create(model=MODEL)
show("chat", chat.send_message("One.").text, chat.send_message("Two.").text)
if os.environ["MODE"] == "translated":
    sys.exit()

show("count", client.models.count_tokens(model=MODEL, contents="Say something.").total_tokens)
try:
    ask(temperature=9)
    raise AssertionError("a wrong temperature was accepted")
except genai.errors.ClientError as e:
    show("refused", e.code)
if os.environ["MODE"] == "gateway":
    sys.exit()

vectors = client.models.embed_content(model=MODEL, contents=["a", "b"], config={"output_dimensionality": 8}).embeddings
show("embeddings", [len(v.values) for v in vectors])
show("models", [m.name for m in client.models.list()], client.models.get(model=MODEL).name)

requests = [types.InlinedRequest(contents=f"Question {i}.", metadata={"key": f"k{i}"}) for i in range(3)]
batch = ended(client.batches.create(model=MODEL, src=requests, config={"display_name": "inline"}))
answers = batch.dest.inlined_responses
assert [a.metadata["key"] for a in answers] == ["k0", "k1", "k2"], answers
assert [a.response.text for a in answers] == [ask(f"Question {i}.").text for i in range(3)], answers
show("inline batch", batch.state.name, len(answers))
client.batches.delete(name=batch.name)
assert not list(client.batches.list())
