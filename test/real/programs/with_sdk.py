"""The vendors' own SDKs: chat, a stream, responses, a schema; messages and a stream of them."""

import os

import anthropic
import openai
from pydantic import BaseModel

MODEL, ASK = os.environ["MODEL"], [{"role": "user", "content": "Once upon a time"}]


class Answer(BaseModel):
    good: bool


client = openai.OpenAI()
r = client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=24)
assert r.choices and r.usage.completion_tokens > 0, r
chunks = list(client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=24, stream=True))
assert chunks[-1].choices[0].finish_reason, chunks[-1]
if os.environ.get("SCHEMA"):
    r = client.chat.completions.parse(model=MODEL, messages=ASK, max_tokens=200, response_format=Answer)
    assert isinstance(r.choices[0].message.parsed, Answer), r
if os.environ.get("RESPONSES"):
    r = client.responses.create(model=MODEL, input="Once upon a time", max_output_tokens=24)
    assert r.usage.output_tokens > 0, r

client = anthropic.Anthropic()
r = client.messages.create(model=MODEL, max_tokens=24, messages=ASK)
assert r.usage.output_tokens > 0, r
with client.messages.stream(model=MODEL, max_tokens=24, messages=ASK) as s:
    assert s.get_final_message().usage.output_tokens > 0
