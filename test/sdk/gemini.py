"""Uses Google's SDK as a program does that asks Gemini: the SDK reads where to go from its own environment variables.
Prints what it was answered."""

import json

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
show("count", client.models.count_tokens(model=MODEL, contents="Say something.").total_tokens)
try:
    ask([types.UserContent([types.Part.from_function_response(name="look", response={"result": "A cat."})])])
    raise AssertionError("the result of a tool that was not called was accepted")
except genai.errors.ClientError as e:
    show("refused", e.code)
