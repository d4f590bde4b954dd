"""Trains a model of model.py on conversations that Parley exported: it learns to speak, and to play a little.

    parley run examples/grpo/bots.yaml --out bots.parley
    parley trajectories bots.parley --shape trl-sft --out bots.jsonl
    python examples/grpo/pretrain.py bots.jsonl --out base.pt
"""

import argparse
import json
import random

import torch
from torch.nn import functional as F

import model as lm


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("conversations", help="JSON lines with prompt and completion")
    p.add_argument("--out", default="base.pt")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--width", type=int, default=64)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--rate", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--device")
    args = p.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = lm.device(args.device)
    with open(args.conversations) as f:
        talks = [(talk["prompt"], talk["completion"]) for talk in map(json.loads, f)]
    words = lm.Tokenizer.of(lm.text_of(m) for prompt, completion in talks for m in prompt + completion)
    rows = []
    for prompt, completion in talks:
        ids, mask = [], []
        for n, m in enumerate(prompt + completion):
            part = words.message(m["role"], lm.text_of(m))
            ids += part
            mask += [0] + [1] * (len(part) - 1) if n >= len(prompt) and m["role"] == "assistant" else [0] * len(part)
        rows.append((ids, mask))
    model = lm.Model(len(words.words), args.width, args.layers).to(device)
    rows = [(ids, mask) for ids, mask in rows if len(ids) < model.shape["context"]]
    best = torch.optim.AdamW(model.parameters(), args.rate)
    print(f"{len(rows)} conversations, {len(words.words)} words, {sum(p.numel() for p in model.parameters()):,} weights, on {device}", flush=True)
    for epoch in range(args.epochs):
        random.shuffle(rows)
        total, count = 0.0, 0
        for at in range(0, len(rows), args.batch):
            some = rows[at:at + args.batch]
            ids, there = lm.padded([ids for ids, _ in some], words.end, device, left=False)
            mask, _ = lm.padded([mask for _, mask in some], 0, device, left=False)
            logits, _ = model(ids[:, :-1], there[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none").view_as(ids[:, 1:])
            wanted = mask[:, 1:].float()
            loss = (loss * wanted).sum() / wanted.sum()
            best.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            best.step()
            total, count = total + loss.item(), count + 1
        print(f"epoch {epoch + 1}: loss {total / count:.3f}", flush=True)
    lm.save(args.out, model, words)


if __name__ == "__main__":
    main()
