"""Trains a model with TRL on the secret game while it is played: learn.py PARLEY FOLDER.

The model is a small transformer of random weights with a tokenizer of bytes, both of Hugging Face. It answers over HTTP as vLLM does, parley
trainer plays the game against it, and TRL's GRPOTrainer trains it on the rows that examples/trl_rollout.py fetches.
"""

import json
import math
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import datasets
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import trl_rollout

GROUP, STEPS = 8, 3
PLAN = f"""
kind: secrets
episodes: {2 * STEPS}
providers: {{lab: {{dialect: openai, base_url: "URL/v1", stream: never, capabilities: [{{match: "lab/*", token_ids: true}}]}}}}
agents:
  policy: {{model: lab/tiny, max_tokens: 12, temperature: 1, trainable: true}}
  rival: {{model: sim/small}}
lineup: {{first: policy, second: rival}}
params: {{messages: 1}}  # a prompt has a remark that later ones leave out, so each message is a part of its own
train: {{reward: points, group: {GROUP}}}
"""
TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def tiny():
    """A model, and a tokenizer whose tokens are bytes."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    special = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    vocabulary = {c: n for n, c in enumerate([*sorted(pre_tokenizers.ByteLevel.alphabet()), *special])}
    words = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    words = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|end|>", pad_token="<|end|>", additional_special_tokens=special[1:])
    words.chat_template = TEMPLATE
    end = vocabulary["<|end|>"]
    shape = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        max_position_embeddings=8192, bos_token_id=end, eos_token_id=end, pad_token_id=end,
    )
    return LlamaForCausalLM(shape), words


class Server(ThreadingHTTPServer):
    """Answers chat completions with the model, as it is at the moment, and remembers what it said to which prompt."""

    daemon_threads = True

    def __init__(self, model, words):
        super().__init__(("127.0.0.1", 0), Answer)
        self.model, self.words, self.lock, self.said = model, words, threading.Lock(), {}
        letters = torch.tensor([words.decode([n]).isascii() and words.decode([n]).isalpha() for n in range(len(words))])
        letters[words.eos_token_id] = True
        self.letters = torch.where(letters, 0.0, -math.inf)  # so that the game changes nothing when it repeats an answer in a prompt
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @torch.inference_mode()
    def sample(self, prompt, limit):
        ids, logprobs, past, fed = [], [], None, torch.tensor([prompt])
        while len(ids) < limit and (not ids or ids[-1] != self.words.eos_token_id):
            out = self.model(input_ids=fed, past_key_values=past, use_cache=True)
            odds = torch.log_softmax(out.logits[0, -1].float() + self.letters, -1)
            fed, past = torch.multinomial(odds.exp(), 1)[None], out.past_key_values
            ids.append(fed.item())
            logprobs.append(odds[ids[-1]].item())
        return ids, logprobs


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_):
        pass

    def do_POST(self):
        body, words = json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self.server.words
        prompt = words.encode(words.apply_chat_template(body["messages"], add_generation_prompt=True, tokenize=False), add_special_tokens=False)
        with self.server.lock:
            ids, logprobs = self.server.sample(prompt, body.get("max_completion_tokens") or body["max_tokens"])
            self.server.said.setdefault((tuple(prompt), tuple(ids)), 0)
            self.server.said[tuple(prompt), tuple(ids)] += 1
        ended = ids[-1] == words.eos_token_id
        answer = {
            "id": "1", "object": "chat.completion", "model": body["model"], "prompt_token_ids": prompt,
            "choices": [{
                "index": 0, "finish_reason": "stop" if ended else "length", "token_ids": ids,
                "message": {"role": "assistant", "content": words.decode(ids, skip_special_tokens=True)},
                "logprobs": {"content": [{"token": words.decode([n]), "logprob": p, "top_logprobs": []} for n, p in zip(ids, logprobs)]},
            }],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": len(prompt) + len(ids)},
        }
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Watched(GRPOTrainer):
    """GRPOTrainer, which keeps what it computes losses of."""

    def __init__(self, *args, **keys):
        super().__init__(*args, **keys)
        self.batches = []

    def _compute_loss(self, model, inputs):
        self.batches.append({k: v.detach().clone() for k, v in inputs.items() if isinstance(v, torch.Tensor)})
        return super()._compute_loss(model, inputs)


def main():
    parley, folder = sys.argv[1], Path(sys.argv[2])
    model, words = tiny()
    server = Server(model, words)
    plan = folder / "secrets.yaml"
    plan.write_text(PLAN.replace("URL", f"http://127.0.0.1:{server.server_address[1]}"))
    playing = subprocess.Popen([parley, "trainer", str(plan), "--addr", "127.0.0.1:0", "--max-ahead", "2", "--out", str(folder / "secrets.parley")], stdout=subprocess.PIPE, text=True)
    try:
        rollouts = trl_rollout.Rollouts(playing.stdout.readline().removeprefix("listening on ").strip())
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        trainer = Watched(
            model, reward_funcs=trl_rollout.reward, rollout_func=rollouts.take, processing_class=words,
            train_dataset=datasets.Dataset.from_dict({"prompt": ["play"] * 2 * STEPS}),
            args=GRPOConfig(
                output_dir=str(folder / "trl"), num_generations=GROUP, per_device_train_batch_size=2 * GROUP, max_steps=STEPS, learning_rate=1e-3, use_cpu=True,
                bf16=False, gradient_checkpointing=False, report_to=[], save_strategy="no", logging_steps=1, disable_tqdm=True,
            ),
        )
        trainer.train()
    finally:
        playing.kill()
        playing.wait()
    check(trainer, server, before)


def check(trainer, server, before):
    losses = [entry[name] for entry in trainer.state.log_history for name in ("loss", "grad_norm") if name in entry]
    assert len(losses) == 2 * STEPS and all(map(math.isfinite, losses)), trainer.state.log_history
    changed = [name for name, p in trainer.model.named_parameters() if not torch.equal(p.detach().cpu(), before[name])]
    assert len(changed) == len(before), f"{len(changed)} of {len(before)} parameters changed"
    sequences = tokens = 0
    for batch in trainer.batches:
        trained = batch["completion_mask"] * batch["tool_mask"]
        for prompt, there, completion, mask in zip(batch["prompt_ids"], batch["prompt_mask"], batch["completion_ids"], trained):
            ids, at = [*prompt[there.bool()].tolist(), *completion.tolist()], int(there.sum())
            mask = [0] * at + mask.tolist()
            while 1 in mask[at:]:  # each run of trained tokens is an answer of the model to what stands before it
                start = mask.index(1, at)
                at = start + (mask[start:] + [0]).index(0)
                key = (tuple(ids[:start]), tuple(ids[start:at]))
                assert server.said.get(key, 0) > 0, f"not said, or trained twice: {server.words.decode(ids[start:at])!r}"
                server.said[key] -= 1
                tokens += at - start
            sequences += 1
    assert sequences == 2 * STEPS * GROUP and not any(server.said.values()), f"{sequences} sequences; not trained: {sum(server.said.values())}"
    print(f"trainers: learn: GRPOTrainer took {STEPS} steps on {tokens} tokens of {sequences} secret games; losses {[round(x, 4) for x in losses[::2]]}")


main()
