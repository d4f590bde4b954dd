"""Reads trajectories that parley export wrote with the models of Harbor itself: files of JSON, one trajectory a line."""

import importlib
import importlib.util
import json
import pathlib
import sys
import types

# Harbor's own package imports all of Harbor, which needs more than its models do.
root = pathlib.Path(importlib.util.find_spec("harbor").submodule_search_locations[0])
for name, folder in (("harbor", root), ("harbor.models", root / "models")):
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package
Trajectory = importlib.import_module("harbor.models.trajectories").Trajectory

read = steps = results = answers = 0
for argument in sys.argv[1:]:
    path = pathlib.Path(argument)
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        for line in file.read_text().splitlines():
            t = Trajectory.model_validate_json(line)
            assert t.schema_version == "ATIF-v1.8", file
            assert t.final_metrics.total_steps == len(t.steps), file
            dumped = json.loads(line)
            assert len(dumped["steps"]) == len(t.steps), file
            read += 1
            steps += len(t.steps)
            answers += sum(s.source == "agent" and not s.is_copied_context for s in t.steps)
            results += sum(len(s.observation.results) for s in t.steps if s.observation)
assert read and answers, sys.argv
print(f"harbor: read {read} trajectories with {steps} steps, {answers} answers, {results} results of tools")
