"""Inspect: a task with one sample, and its log."""

import os
import tempfile

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate

with tempfile.TemporaryDirectory() as folder:
    [log] = eval(
        Task(dataset=[Sample(input="Once upon a time")], solver=generate()), model="openai/" + os.environ["MODEL"],
        max_tokens=24, log_dir=folder, display="none",
    )
    assert log.status == "success", log.error
