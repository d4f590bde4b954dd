"""Prints the rows of an exported file as JSON lines, as a reader that is not ours sees them.

usage: read.py pyarrow|duckdb|polars|csv FILE
"""
import datetime
import json
import math
import sys


def plain(value):
    """A value as the JSON lines of parley export have it."""
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
    return value


def read(how, path):
    if how == "pyarrow":
        import pyarrow.parquet
        table = pyarrow.parquet.read_table(path)
        table.validate(full=True)
        return table.column_names, (list(row.values()) for row in table.to_pylist())
    if how == "duckdb":
        import duckdb
        db = duckdb.connect()
        db.execute("SET TimeZone = 'UTC'")
        names, times = [], []
        for name, kind, *_ in db.execute("DESCRIBE SELECT * FROM read_parquet(?)", [path]).fetchall():
            names.append(name)
            if kind == "TIMESTAMP WITH TIME ZONE":  # which would be fetched with a module more
                times.append(f"strftime(\"{name}\" AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') AS \"{name}\"")
        replaced = f"REPLACE ({', '.join(times)})" if times else ""
        return names, db.execute(f"SELECT * {replaced} FROM read_parquet(?)", [path]).fetchall()
    if how == "polars":
        import polars
        frame = polars.read_parquet(path)
        return frame.columns, frame.rows()
    if how == "csv":
        import csv
        csv.field_size_limit(1 << 30)
        with open(path, newline="", encoding="utf-8") as f:
            rows = list(csv.reader(f))
        return rows[0], rows[1:]
    raise SystemExit("no reader " + how)


names, rows = read(sys.argv[1], sys.argv[2])
print(json.dumps(names))
for row in rows:
    print(json.dumps([plain(v) for v in row]))
