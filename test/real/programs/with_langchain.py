"""LangChain on both formats, whole and streamed."""

import os

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

MODEL = os.environ["MODEL"]
for model in (
    ChatOpenAI(model=MODEL, max_tokens=24),
    ChatAnthropic(model=MODEL, max_tokens=24, base_url=os.environ["ANTHROPIC_BASE_URL"]),
):
    r = model.invoke("Once upon a time")
    assert r.usage_metadata["output_tokens"] > 0, r
    assert list(model.stream("Once upon a time"))
