"""Reads what parley export writes with the programs it is written for: logs with inspect_ai, tables
with polars, those without rows too. Arguments: the folder of exports, and logs of Inspect."""

import glob
import os
import sys

import polars
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

folder, logs = sys.argv[1], sys.argv[2:]
for path in logs:
    log = read_eval_log(path)
    samples = log.samples or []
    assert log.version == 2 and log.eval.task and log.eval.model, path
    assert read_eval_log(path, header_only=True).eval.run_id == log.eval.run_id
    summaries = read_eval_log_sample_summaries(path)
    assert [s.id for s in summaries] == [s.id for s in samples], path
    assert log.results is not None and log.results.total_samples >= len(samples), path
    for sample in samples:
        again = read_eval_log_sample(path, id=sample.id, epoch=1)
        assert again.uuid == sample.uuid and len(again.events) == len(sample.events)
        assert sample.scores or sample.error, (path, sample.id)
    calls = sum(1 for s in samples for e in s.events if e.event == "model")
    print(f"inspect_ai: {os.path.basename(path)}: {log.status}, {len(samples)} samples, {calls} calls, {len(log.results.scores)} scores")

for path in sorted(glob.glob(os.path.join(folder, "*", "*.parquet"))):
    table = polars.read_parquet(path)
    names = polars.read_csv(path.removesuffix("parquet") + "csv", infer_schema=False).columns
    lines = path.removesuffix("parquet") + "jsonl"
    read = polars.read_ndjson(lines, schema=table.schema if not len(table) else None, infer_schema_length=None)
    # polars puts the columns of JSON lines in an order of its own.
    assert table.columns == names and sorted(names) == sorted(read.columns) and len(read) == len(table), path
    print(f"polars: {path.removeprefix(folder)}: {len(table)} rows, {len(names)} columns")
