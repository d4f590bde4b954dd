"""Uses the OpenAI and Anthropic SDKs as a program does that knows nothing of a gateway: the
SDKs read where to go from their own environment variables. Prints what it was answered."""

import asyncio
import json
import os
import time

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


LOOK = {"type": "function", "name": "look", "strict": False, "parameters": TOOL["input_schema"]}
PATCH = {"type": "custom", "name": "patch", "description": "Edits a file."}


def responses(client):
    r = client.responses.create(model="m", input="Say something.")
    show("responses", r.output_text, r.usage.output_tokens)
    events = list(client.responses.create(model="m", input="Say something.", stream=True))
    kinds = [e.type for e in events]
    show("responses stream", kinds[0], kinds[-1], events[-1].response.output_text)
    assert [e.sequence_number for e in events] == list(range(len(events))), kinds
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == events[-1].response.output_text
    # A program's loop: the whole input each time, with everything that came back.
    for tool, kind, output in ((LOOK, "function_call", "function_call_output"), (PATCH, "custom_tool_call", "custom_tool_call_output")):
        turns = [{"role": "developer", "content": "Be brief."}, *ASK]
        with client.responses.stream(model="m", input=turns, tools=[tool], tool_choice="required", include=["reasoning.encrypted_content"], store=False) as s:
            for event in s:
                pass
            final = s.get_final_response()
        calls = [o for o in final.output if o.type == kind]
        show("responses " + kind, calls[0].name, calls[0].arguments if tool is LOOK else calls[0].input)
        turns += final.output
        turns += [{"type": output, "call_id": c.call_id, "output": "A cat."} for c in calls]
        r = client.responses.create(model="m", input=turns, tools=[tool], tool_choice="none", store=False)
        show("responses after " + kind, r.output_text)
    r = client.responses.parse(model="m", input=ASK, text_format=Place)
    show("responses schema", r.output_parsed.city)


def rest(client):
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


def batches(client, other):
    line = {"custom_id": "one", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": ASK}}
    file = client.files.create(file=("in.jsonl", json.dumps(line).encode()), purpose="batch")
    b = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    while b.status != "completed":
        time.sleep(0.02)
        b = client.batches.retrieve(b.id)
    answer = json.loads(client.files.content(b.output_file_id).text)
    show("batch", answer["custom_id"], answer["response"]["body"]["choices"][0]["message"]["content"])
    b = other.messages.batches.create(requests=[{"custom_id": "one", "params": {"model": "m", "max_tokens": 50, "messages": ASK}}])
    while b.processing_status != "ended":
        time.sleep(0.02)
        b = other.messages.batches.retrieve(b.id)
    show("message batch", [(r.custom_id, r.result.message.content[0].text) for r in other.messages.batches.results(b.id)])


if MODE in ("all", "openai"):
    chat(openai.OpenAI())
    asyncio.run(many())
    responses(openai.OpenAI())
if MODE == "all":
    rest(openai.OpenAI())
    batches(openai.OpenAI(), anthropic.Anthropic())
if MODE in ("all", "anthropic"):
    messages(anthropic.Anthropic())
if MODE in ("all", "anthropic"):
    show("count", anthropic.Anthropic().messages.count_tokens(model="m", messages=ASK).input_tokens)
