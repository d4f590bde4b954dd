"""Serves a GGUF file with llama.cpp's own HTTP server, from the prebuilt package xllamacpp.

usage: llamacpp.py MODEL.gguf PORT CONTEXT

CONTEXT is the number of tokens for each of four slots. Prints "listening on URL" and serves until it is killed.
"""

import sys
import threading

import xllamacpp

SLOTS = 4


def main():
    model, port, context = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    p = xllamacpp.CommonParams()
    p.model.path = model
    p.model_alias = {"stories"}
    p.hostnames = ["127.0.0.1"]
    p.port = port
    p.n_parallel = SLOTS
    p.n_ctx = SLOTS * context
    p.kv_unified = False
    p.n_predict = 4096
    p.cpuparams.n_threads = 1
    p.cpuparams_batch.n_threads = 1
    p.use_jinja = True
    p.endpoint_metrics = True
    p.warmup = False
    server = xllamacpp.Server(p)
    print("listening on " + server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
