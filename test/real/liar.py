"""A scripted server that ignores every parameter of a chat completion: its answers have LENGTH tokens
and are never JSON. It counts what it was asked and what it answered."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LENGTH = 1000


class Liar(ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.url, self.bodies = f"http://127.0.0.1:{self.server_port}/v1", []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send(404, {"detail": "Not Found"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            self.send(404, {"detail": "Not Found"})
            return
        self.server.bodies.append(body)
        message = {"role": "assistant", "content": "well " * LENGTH}
        self.send(200, {"object": "chat.completion", "model": "liar", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                        "usage": {"prompt_tokens": 10, "completion_tokens": LENGTH, "total_tokens": 10 + LENGTH}})
