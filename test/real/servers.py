"""The model servers that are started, each on a port of its own."""

import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent
CONTEXT = 2048


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server in a process. It keeps its port when it is killed and started again."""

    patience = 60  # seconds until it answers
    responses = True  # whether SDKs can use its responses; some send a stream that nobody asked for
    lacks = {"no_tools": True}  # capabilities of a plan; no model here has tools

    def __init__(self, args):
        self.args, self.port, self.process = args, free_port(), None
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.log = pathlib.Path(args.work) / f"{self.name}.log"

    def start(self):
        env = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, env=env)

    def wait(self):
        """Waits until the server answers."""
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).close()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"real: {self.name} does not answer:\n" + self.log.read_text(errors="replace")[-2000:])

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class LlamaCpp(Server):
    name, title, model = "llamacpp", "llama.cpp", "stories"

    def command(self):
        return [f"{self.args.dir}/llamacpp/bin/python", str(HERE / "llamacpp.py"), self.args.weights, str(self.port), "8192"]  # or what the weights allow


class Tiny(Server):
    """A server for the model of random weights, which is made first."""

    patience = 600

    def __init__(self, args):
        super().__init__(args)
        self.python = f"{args.dir}/transformers/bin/python"
        self.folder = pathlib.Path(args.work) / "tiny"
        if not self.folder.exists():
            subprocess.run([self.python, str(HERE / "tiny.py"), str(self.folder), str(CONTEXT)], check=True, stderr=subprocess.DEVNULL)


class Transformers(Tiny):
    name, title, responses = "transformers", "transformers serve", False
    lacks = {"use_max_tokens": True, "no_schema": True, "no_tools": True, "no_logprobs": True}

    @property
    def model(self):
        return str(self.folder)

    def command(self):
        return [f"{self.args.dir}/transformers/bin/transformers", "serve", str(self.folder), "--device", "cpu", "--host", "127.0.0.1", "--port", str(self.port)]


class VLLM(Tiny):
    name, title, model = "vllm", "vLLM", "tiny"

    def command(self):
        return [self.python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port),
                "--served-model-name", self.model, "--enforce-eager", "--max-model-len", str(CONTEXT), "--max-num-seqs", "8"]


ALL = {s.name: s for s in (LlamaCpp, Transformers, VLLM)}
