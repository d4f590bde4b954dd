"""LlamaIndex on both formats, whole and streamed."""

import os

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

MODEL = os.environ["MODEL"]
llm = OpenAILike(model=MODEL, api_base=os.environ["OPENAI_BASE_URL"], api_key="none", is_chat_model=True, max_tokens=24)
ask = [ChatMessage(role="user", content="Once upon a time")]
assert llm.chat(ask).message.content is not None
assert list(llm.stream_chat(ask))
