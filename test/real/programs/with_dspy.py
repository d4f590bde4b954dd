"""DSPy, through its own client."""

import os

import dspy

lm = dspy.LM("openai/" + os.environ["MODEL"], api_base=os.environ["OPENAI_BASE_URL"], api_key="none", max_tokens=24, cache=False)
assert lm("Once upon a time")
