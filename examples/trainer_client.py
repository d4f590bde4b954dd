#!/usr/bin/env python3
"""A client of `parley trainer` in one file, with nothing but the standard library.

It starts the run, takes groups as they become complete, writes their rows to a file, and
keeps its cursor beside it: killed and run again, it goes on where it was, and no row is
missing or there twice. Where it says "train", train.

    parley trainer examples/rollout.yaml --out rollout.parley
    python3 examples/trainer_client.py --url http://127.0.0.1:18889 --out rows.jsonl
"""

import argparse
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request


class Trainer:
    """Speaks to the server. A server that is away for a while is waited for."""

    def __init__(self, url, patience=60):
        self.url, self.patience = url.rstrip("/"), patience
        self.key = os.environ.get("PARLEY_TRAINER_KEY", "")

    def ask(self, method, path, body=None, **query):
        query = {k: v for k, v in query.items() if v not in (None, "")}
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = "Bearer " + self.key
        data = None if body is None else json.dumps(body).encode()
        end = time.monotonic() + self.patience
        while True:
            try:
                request = urllib.request.Request(url, data, headers, method=method)
                with urllib.request.urlopen(request, timeout=120) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as e:
                if e.code != 503:  # it says what is wrong
                    raise SystemExit(f"{method} {path}: {e.code}: {e.read().decode()}")
            except (OSError, ValueError) as e:  # it is away, or was cut off: ask again
                if time.monotonic() > end:
                    raise SystemExit(f"{method} {path}: {e}")
            time.sleep(1)

    def groups(self, cursor="", **wanted):
        """Yields (groups, cursor) until the run is over."""
        while True:
            page = self.ask("GET", "/v1/groups", cursor=cursor, wait=30, **wanted)
            cursor = page["cursor"]
            yield page["groups"], cursor
            if page["done"]:
                print(page["state"], page.get("reason", ""))
                return


class Store:
    """Rows in a file. The cursor says how much of it counts, so that half a write does not."""

    def __init__(self, path):
        self.path, self.state = path, {"cursor": "", "bytes": 0}
        if os.path.exists(path + ".cursor"):
            with open(path + ".cursor") as f:
                self.state = json.load(f)
        with open(path, "ab") as f:
            f.truncate(self.state["bytes"])

    def add(self, groups, cursor):
        with open(self.path, "ab") as f:
            for group in groups:
                for row in group["rows"]:
                    f.write(json.dumps(row).encode() + b"\n")
            f.flush()
            os.fsync(f.fileno())
            self.state = {"cursor": cursor, "bytes": f.tell()}
        with open(self.path + ".cursor.new", "w") as f:
            json.dump(self.state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(self.path + ".cursor.new", self.path + ".cursor")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--url", default="http://127.0.0.1:18889")
    p.add_argument("--out", default="rows.jsonl")
    p.add_argument("--episodes", type=int, help="groups to play, in the place of the plan's")
    args = p.parse_args()

    trainer, store = Trainer(args.url), Store(args.out)
    trainer.ask("POST", "/v1/start", {} if args.episodes is None else {"episodes": args.episodes})
    for groups, cursor in trainer.groups(store.state["cursor"], trainable="true"):
        for group in groups:
            returns = {(row["episode"], row["agent_id"]): row["return"] for row in group["rows"]}  # an episode may have several rows
            mean = sum(returns.values()) / max(1, len(returns))
            # Train: group["rows"] has messages, response and advantage, and tokens and loss_mask
            # where the server gave them.
            print(f"{group['group_id']}: {len(group['rows'])} rows, mean return {mean:.2f}", group.get("closed", ""))
        store.add(groups, cursor)


if __name__ == "__main__":
    main()
