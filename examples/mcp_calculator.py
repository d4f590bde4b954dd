"""A server of tools for rollouts, over MCP's streamable HTTP, with nothing but Python's standard library.

    python3 examples/mcp_calculator.py --port 8931
    parley run examples/rollout-mcp.yaml

Any MCP server works as well. This one has one tool, and keeps nothing between calls.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOL = {
    "name": "calculate",
    "description": "Multiplies or adds two whole numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "left": {"type": "integer", "minimum": -1000, "maximum": 1000},
            "operator": {"type": "string", "enum": ["+", "-", "*"]},
            "right": {"type": "integer", "minimum": -1000, "maximum": 1000},
        },
        "required": ["left", "operator", "right"],
        "additionalProperties": False,
    },
}


def calculate(left, operator, right):
    return {"+": left + right, "-": left - right, "*": left * right}[operator]


def answer(method, params):
    """Returns the result of a request, or None for a notification."""
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "calculator", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        try:
            text, failed = str(calculate(**params["arguments"])), False
        except (KeyError, TypeError) as e:  # a model wrote the arguments
            text, failed = "wrong arguments: %s" % e, True
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        result = answer(message.get("method"), message.get("params") or {})
        if "id" not in message:
            return self.reply(202, b"")
        body = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            body["error"] = {"code": -32601, "message": "no such method"}
        else:
            body["result"] = result
        self.reply(200, json.dumps(body).encode())

    def do_GET(self):
        self.reply(405, b"")  # it sends nothing by itself

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8931)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    server.daemon_threads = True
    print("listening on http://127.0.0.1:%d/mcp" % server.server_address[1], flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
