"""PydanticAI on both formats."""

import os

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.settings import ModelSettings

MODEL = os.environ["MODEL"]
for model in (OpenAIChatModel(MODEL), AnthropicModel(MODEL)):
    r = Agent(model, model_settings=ModelSettings(max_tokens=24)).run_sync("Once upon a time")
    assert r.output, r
