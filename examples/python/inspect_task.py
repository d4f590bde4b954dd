"""A task of inspect_ai, to run through the gateway: pip install inspect_ai openai.

    parley sim --addr 127.0.0.1:8080
    parley gateway --upstream openai=http://127.0.0.1:8080/v1 --out inspect.parley
    OPENAI_API_KEY=none OPENAI_BASE_URL=http://127.0.0.1:8090/v1/sessions/riddles inspect eval inspect_task.py --model openai/any
"""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def riddles():
    return Task(dataset=[Sample(input="What has keys but no locks?", target="piano")], solver=[generate()], scorer=includes())
