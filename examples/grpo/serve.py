"""Serves a model of model.py over OpenAI's chat completions, with token ids, log probabilities and weight updates.

    python examples/grpo/serve.py base.pt --port 8300

POST /update_weights {"path": "FILE", "version": N} loads other weights between two batches. With "abort": true it first cuts
off the answers in progress, which end with what they have and the finish reason "abort". POST /v1/completions continues such
an answer: it takes a prompt as token ids. Answers say which version wrote them. "past": {"5": "FILE"} of an update names earlier
weights, which the model tiny@v5 then has; tiny@v0 is always there.
"""

import argparse
import json
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

import model as lm


class Asked:
    def __init__(self, prompt, limit, temperature, past=None):
        self.prompt, self.limit, self.temperature, self.past = prompt, limit, temperature, past
        self.ids, self.logprobs, self.version, self.finish, self.done = [], [], 0, "abort", threading.Event()


class Engine(threading.Thread):
    """Answers what has been asked, together: whatever waits becomes the next batch."""

    def __init__(self, path, device, batch):
        super().__init__(daemon=True)
        self.device, self.batch = lm.device(device), batch
        self.model, self.tokenizer = lm.load(path, self.device)
        self.version, self.answered = 0, 0
        self.past = {0: lm.load(path, self.device)[0]}
        self.waiting, self.weights, self.cut = queue.Queue(), threading.Lock(), threading.Event()

    def update(self, path, version, abort=False, past=()):
        earlier = {int(v): self.past.get(int(v)) or lm.load(file, self.device)[0] for v, file in dict(past).items()}
        kept = torch.load(path, map_location=self.device, weights_only=True)
        if abort:
            self.cut.set()
        with self.weights:
            self.cut.clear()
            self.model.load_state_dict(kept["weights"])
            self.version, self.past = version, {**earlier, 0: self.past[0]}

    def run(self):
        while True:
            asked = [self.waiting.get()]
            until = time.monotonic() + 0.002
            while len(asked) < self.batch:
                try:
                    asked.append(self.waiting.get(timeout=max(0, until - time.monotonic())))
                except queue.Empty:
                    break
            with self.weights, torch.inference_mode():
                for past in {a.past for a in asked}:
                    self.answer([a for a in asked if a.past == past], past)
            for a in asked:
                a.done.set()

    def answer(self, asked, version):
        model = self.model if version is None else self.past.get(version)
        if model is None:
            return  # it is not kept any more: the answers are empty, and aborted
        ids, there = lm.padded([a.prompt for a in asked], self.tokenizer.end, self.device)
        warm = torch.tensor([[max(a.temperature, 1e-4)] for a in asked], device=self.device)
        past, open_, context = None, set(range(len(asked))), self.model.shape["context"]
        for a in asked:
            a.version = self.version if version is None else version
        while open_ and not self.cut.is_set():
            logits, past = model(ids, there, past)
            odds = torch.log_softmax(logits[:, -1].float() / warm, -1)
            drawn = torch.multinomial(odds.exp(), 1)
            chosen = odds.gather(1, drawn)
            for n, (token, logprob) in enumerate(zip(drawn[:, 0].tolist(), chosen[:, 0].tolist())):
                if n in open_:
                    asked[n].ids.append(token)
                    asked[n].logprobs.append(logprob)
                    ended, full = token == self.tokenizer.end, len(asked[n].ids) >= asked[n].limit or there.shape[1] + 1 >= context
                    if ended or full:
                        asked[n].finish = "stop" if ended else "length"
                        open_.discard(n)
            ids, there = drawn, torch.cat([there, torch.ones_like(drawn)], 1)
        self.answered += len(asked)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: Engine

    def log_message(self, *_):
        pass

    def reply(self, code, value):
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        try:
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:  # who asked is gone
            self.close_connection = True

    def do_GET(self):
        if self.path == "/health":
            return self.reply(200, {"version": self.engine.version, "answered": self.engine.answered})
        if self.path == "/v1/models":
            return self.reply(200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        self.reply(404, {"error": {"message": "there is no " + self.path}})

    def do_POST(self):
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            if self.path == "/update_weights":
                self.engine.update(body["path"], body["version"], body.get("abort", False), body.get("past", {}))
                return self.reply(200, {"version": self.engine.version})
            if self.path == "/v1/completions":
                prompt = [int(n) for n in body["prompt"]]
            elif self.path == "/v1/chat/completions":
                prompt = self.engine.tokenizer.prompt(body["messages"])
            else:
                return self.reply(404, {"error": {"message": "there is no " + self.path}})
            limit = body.get("max_completion_tokens") or body.get("max_tokens") or 16
            temperature = body.get("temperature", 1.0)
            _, _, past = body.get("model", "tiny").partition("@v")
            past = int(past) if past else None
            if past is not None and past not in self.engine.past:
                return self.reply(404, {"error": {"message": f"there is no version {past}"}})
        except (ValueError, KeyError, TypeError, OSError, RuntimeError) as e:
            return self.reply(400, {"error": {"message": f"{type(e).__name__}: {e}"}})
        if len(prompt) + 1 >= self.engine.model.shape["context"]:
            return self.reply(400, {"error": {"message": "the prompt exceeds the context length", "code": "context_length_exceeded"}})
        asked = Asked(prompt, limit, temperature, past)
        self.engine.waiting.put(asked)
        asked.done.wait()
        self.reply(200, self.answer(body, asked))

    def answer(self, body, asked):
        words = self.engine.tokenizer
        text = words.decode(asked.ids)
        choice = {"index": 0, "finish_reason": asked.finish, "message": {"role": "assistant", "content": text}}
        if "prompt" in body:
            choice = {"index": 0, "finish_reason": asked.finish, "text": (" " if text else "") + text}
        if body.get("return_token_ids"):
            choice["token_ids"] = asked.ids
        if "prompt" in body and body.get("logprobs"):
            choice["logprobs"] = {"tokens": [words.words[n] for n in asked.ids], "token_logprobs": asked.logprobs}
        elif body.get("logprobs"):
            choice["logprobs"] = {"content": [{"token": words.words[n], "logprob": p, "top_logprobs": []} for n, p in zip(asked.ids, asked.logprobs)]}
        return {
            "id": f"tiny-{id(asked)}", "object": "chat.completion", "created": int(time.time()), "model": body.get("model", "tiny"),
            "choices": [choice], "weight_version": str(asked.version),
            **({"prompt_token_ids": asked.prompt} if body.get("return_token_ids") else {}),
            "usage": {"prompt_tokens": len(asked.prompt), "completion_tokens": len(asked.ids), "total_tokens": len(asked.prompt) + len(asked.ids)},
        }


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("weights")
    p.add_argument("--port", type=int, default=8300)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--device")
    args = p.parse_args()
    Handler.engine = Engine(args.weights, args.device, args.batch)
    Handler.engine.start()
    server = Server(("127.0.0.1", args.port), Handler)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
