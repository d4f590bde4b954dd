#!/usr/bin/env python3
"""An environment server in one file, with nothing but the standard library.

It serves one environment, "count": the agent is to say the next number, again and again.
To serve one of your own, replace the class Count; the rest is the v1 protocol that
docs/how-to/train.md describes.

    python3 examples/env_count.py --port 36663
"""

import argparse
import json
import random
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Count:
    """One session: count upwards from a number that the seed draws."""

    def __init__(self, target=5):
        if not isinstance(target, int) or not 1 <= target <= 1000:
            raise ValueError("target: want 1 to 1000")
        self.target = target
        self.reset(0)

    def reset(self, seed):
        self.now = random.Random(seed).randrange(100)
        self.said = 0
        self.messages = [
            {"role": "system", "content": "Count: answer each number with the next one, and nothing else."},
            {"role": "user", "content": str(self.now)},
        ]
        return {"observation": {}, "info": {}}

    def get_task_prompt(self):
        return self.messages

    def step(self, action):
        numbers = re.findall(r"\d+", action)
        right = bool(numbers) and numbers[-1].isascii() and int(numbers[-1][:9]) == self.now + 1
        self.now += 1
        self.said += 1
        self.messages = self.messages + [
            {"role": "assistant", "content": action},
            {"role": "user", "content": str(self.now)},
        ]
        return {
            "observation": {},
            "reward": 1.0 if right else 0.0,
            "terminated": self.said >= self.target,
            "truncated": False,
            "info": {"now": self.now},
        }


ENVIRONMENTS = {"count": Count}


class Session:
    """An environment, the lock that its requests take turns by, and its last step."""

    def __init__(self, env):
        self.env = env
        self.lock = threading.Lock()
        self.key = None
        self.answer = None


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status


class Server(ThreadingHTTPServer):
    """All sessions, by environment and id."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, address):
        super().__init__(address, Requests)
        self.sessions = {}
        self.lock = threading.Lock()

    def find(self, name, ident):
        with self.lock:
            session = self.sessions.get((name, ident))
        if session is None:
            raise Refused(404, "there is no such session: reset makes it")
        return session

    def reset(self, name, ident, body):
        if name not in ENVIRONMENTS:
            raise Refused(400, f"there is no environment {name}")
        params = body.get("env_param") or {}
        if isinstance(params, str):
            params = json.loads(params)
        try:
            env = ENVIRONMENTS[name](**params)
        except (TypeError, ValueError) as wrong:
            raise Refused(400, str(wrong)) from wrong
        seed = body.get("seed")
        session = Session(env)
        answer = env.reset(123 if seed is None else seed)
        with self.lock:
            self.sessions[(name, ident)] = session
        return answer

    def step(self, session, body, key):
        with session.lock:
            # The same step sent again is answered again, and not taken again.
            if key and key == session.key:
                return session.answer
            if not isinstance(body.get("action"), str):
                raise Refused(400, "action: want a text")
            session.answer = session.env.step(body["action"])
            session.key = key
            return session.answer

    def close(self, name, ident):
        with self.lock:
            if self.sessions.pop((name, ident), None) is None:
                raise Refused(404, "there is no such session")
        return {"status": "ok", "envname": name, "id": ident}


class Requests(BaseHTTPRequestHandler):
    """The v1 protocol."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.handle_one(self.get)

    def do_POST(self):
        self.handle_one(self.post)

    def do_DELETE(self):
        self.handle_one(lambda parts, _: self.server.close(*parts))

    def get(self, parts, _):
        if parts == ["envs"]:
            with self.server.lock:
                return {"envs": [{"envname": e, "id": i, "state": "ready"} for e, i in self.server.sessions]}
        name, ident, verb = parts
        session = self.server.find(name, ident)
        with session.lock:
            if verb == "get_task_prompt":
                return session.env.get_task_prompt()
        raise Refused(404, f"there is no {verb}")

    def post(self, parts, body):
        name, ident, verb = parts
        if verb == "reset":
            return self.server.reset(name, ident, body)
        if verb == "step":
            return self.server.step(self.server.find(name, ident), body, self.headers.get("Idempotency-Key"))
        if verb == "close":
            return self.server.close(name, ident)
        raise Refused(404, f"there is no {verb}")

    def handle_one(self, answer):
        try:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            body = json.loads(text) if text else {}
            status, out = 200, answer(self.path.strip("/").split("/"), body)
        except Refused as refused:
            status, out = refused.status, {"detail": str(refused)}
        except (ValueError, TypeError, AttributeError) as wrong:
            status, out = 400, {"detail": f"the request is not one: {wrong}"}
        data = json.dumps(out).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Says nothing: a line for each step would be too many."""


def main():
    flags = argparse.ArgumentParser(description="Serves the environment count.")
    flags.add_argument("--host", default="127.0.0.1")
    flags.add_argument("--port", type=int, default=36663, help="0: any that is free")
    chosen = flags.parse_args()
    server = Server((chosen.host, chosen.port))
    print(f"http://{server.server_address[0]}:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
