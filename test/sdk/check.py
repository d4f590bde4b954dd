"""Uses the OpenAI and Anthropic SDKs as a program does that knows nothing of a gateway: the
SDKs read where to go from their own environment variables. Prints what it was answered."""

import asyncio
import json
import os

import anthropic
import openai
from pydantic import BaseModel

MODE = os.environ["MODE"]  # all, openai or anthropic: which SDK is to be used, and how much of it
ASK = [{"role": "user", "content": "Say something."}]


def show(name, *values):
    assert all(v not in (None, "", [], 0) for v in values), (name, values)
    print(name, json.dumps(values))


class Place(BaseModel):
    city: str
    people: int


FUNCTION = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
    },
}
TOOL = {"name": "look", "input_schema": FUNCTION["function"]["parameters"]}


def chat(client):
    r = client.chat.completions.create(model="m", messages=ASK)
    show("chat", r.choices[0].message.content, r.usage.completion_tokens, r.choices[0].finish_reason)
    words = []
    for chunk in client.chat.completions.create(model="m", messages=ASK, stream=True):
        words.append(chunk.choices[0].delta.content or "")
    show("chat stream", "".join(words))
    with client.chat.completions.stream(model="m", messages=ASK, stream_options={"include_usage": True}) as s:
        final = s.get_final_completion()
    show("chat helper", final.choices[0].message.content, final.usage.completion_tokens)
    r = client.chat.completions.create(model="m", messages=ASK, tools=[FUNCTION], tool_choice="required")
    call = r.choices[0].message.tool_calls[0]
    show("chat tool", call.function.name, call.function.arguments)
    turns = ASK + [r.choices[0].message]
    turns += [{"role": "tool", "tool_call_id": c.id, "content": "A cat."} for c in r.choices[0].message.tool_calls]
    r = client.chat.completions.create(model="m", messages=turns, tools=[FUNCTION], tool_choice="none")
    show("chat after tool", r.choices[0].message.content)
    r = client.chat.completions.parse(model="m", messages=ASK, response_format=Place)
    show("chat schema", r.choices[0].message.parsed.city)


def rest(client):
    r = client.responses.create(model="m", input="Say something.")
    show("responses", r.output_text, r.usage.output_tokens)
    kinds = [e.type for e in client.responses.create(model="m", input="Say something.", stream=True)]
    show("responses stream", kinds[0], kinds[-1])
    show("embeddings", len(client.embeddings.create(model="m", input=["a", "b"]).data))
    show("models", [m.id for m in client.models.list()])
    try:
        client.chat.completions.create(model="m", messages=[])
        raise AssertionError("an empty conversation was answered")
    except openai.BadRequestError as e:
        show("refused", e.status_code)


async def many():
    client = openai.AsyncOpenAI()
    ask = lambda i: client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"Question {i}."}])
    answers = await asyncio.gather(*[ask(i) for i in range(50)])
    show("many at once", [a.choices[0].message.content for a in answers])


def messages(client):
    r = client.messages.create(model="m", max_tokens=200, messages=ASK)
    show("messages", r.content[0].text, r.usage.output_tokens, r.stop_reason)
    with client.messages.stream(model="m", max_tokens=200, messages=ASK) as s:
        words = "".join(s.text_stream)
        final = s.get_final_message()
    show("messages stream", words, final.usage.output_tokens, final.stop_reason)
    r = client.messages.create(model="m", max_tokens=200, messages=ASK, tools=[TOOL], tool_choice={"type": "any"})
    calls = [b for b in r.content if b.type == "tool_use"]
    show("messages tool", calls[0].name, calls[0].input)
    turns = ASK + [
        {"role": "assistant", "content": r.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": c.id, "content": "A cat."} for c in calls]},
    ]
    r = client.messages.create(model="m", max_tokens=200, messages=turns, tools=[TOOL], tool_choice={"type": "none"})
    show("messages after tool", r.content[0].text)


if MODE in ("all", "openai"):
    chat(openai.OpenAI())
    asyncio.run(many())
if MODE == "all":
    rest(openai.OpenAI())
if MODE in ("all", "anthropic"):
    messages(anthropic.Anthropic())
if MODE == "all":
    show("count", anthropic.Anthropic().messages.count_tokens(model="m", messages=ASK).input_tokens)
