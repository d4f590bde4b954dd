"""LiteLLM on both formats."""

import os

import litellm

MODEL, ASK = os.environ["MODEL"], [{"role": "user", "content": "Once upon a time"}]
r = litellm.completion("openai/" + MODEL, messages=ASK, max_tokens=24, api_base=os.environ["OPENAI_BASE_URL"], api_key="none")
assert r.usage.completion_tokens > 0, r
r = litellm.completion("anthropic/" + MODEL, messages=ASK, max_tokens=24, api_base=os.environ["ANTHROPIC_BASE_URL"], api_key="none")
assert r.usage.completion_tokens > 0, r
