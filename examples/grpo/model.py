"""A small transformer and its tokenizer, made from scratch: one token for each word, and PyTorch for the rest."""

import math
import os
import re

import torch
from torch import nn
from torch.nn import functional as F

WORDS = re.compile(r"[A-Za-z]+|[0-9]|[^\sA-Za-z0-9]")
ROLES = {"system": "<system>", "user": "<user>", "assistant": "<assistant>"}
END, UNKNOWN = "<end>", "<unknown>"


class Tokenizer:
    """Words as tokens. A text with words that were not in the training data has the token <unknown>."""

    def __init__(self, words):
        self.words = list(words)
        self.ids = {word: n for n, word in enumerate(self.words)}
        self.end, self.unknown = self.ids[END], self.ids[UNKNOWN]

    @classmethod
    def of(cls, texts):
        seen = sorted({word for text in texts for word in WORDS.findall(text)})
        return cls([END, UNKNOWN, *ROLES.values(), *seen])

    def encode(self, text):
        return [self.ids.get(word, self.unknown) for word in WORDS.findall(text)]

    def message(self, role, text):
        return [self.ids[ROLES[role]], *self.encode(text), self.end]

    def prompt(self, messages):
        """The tokens of a conversation, up to where the assistant speaks next."""
        ids = [n for m in messages for n in self.message(m["role"], text_of(m))]
        return [*ids, self.ids[ROLES["assistant"]]]

    def decode(self, ids):
        return " ".join(self.words[n] for n in ids if n != self.end)


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return content


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask, past):
        rows, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(seen.transpose(1, 2).reshape(rows, length, width))
        return x + self.mlp(self.after(x)), (k, v)


class Model(nn.Module):
    """A decoder. It can be called with the keys and values of earlier tokens."""

    def __init__(self, vocabulary, width=128, layers=4, heads=4, context=1024):
        super().__init__()
        self.shape = {"vocabulary": vocabulary, "width": width, "layers": layers, "heads": heads, "context": context}
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 if p.shape[0] == vocabulary else 1 / math.sqrt(2 * p.shape[1] * layers))

    def forward(self, ids, there, past=None):
        """Logits for ids (rows of tokens, filled up on the left). there says, for all tokens so far, which are real."""
        length, total = ids.shape[1], there.shape[1]
        places = (there.cumsum(1) - 1).clamp(min=0)[:, total - length:]
        causal = torch.ones(length, total, dtype=torch.bool, device=ids.device).tril(total - length)
        mask = (causal & there[:, None, :].bool())[:, None]
        mask = mask | (~there[:, None, total - length:, None].bool() & causal[None, None])  # a place that is not real looks anywhere
        x = self.tokens(ids) + self.places(places)
        kept = []
        for n, block in enumerate(self.blocks):
            x, pair = block(x, mask, None if past is None else past[n])
            kept.append(pair)
        return self.head(self.last(x)), kept


def save(path, model, tokenizer, **more):
    """Writes a model, and what else belongs to it, in one step: a process that is killed leaves the file as it was or as it is now."""
    torch.save({"shape": model.shape, "words": tokenizer.words, "weights": model.state_dict(), **more}, path + ".new")
    os.replace(path + ".new", path)


def load(path, device):
    kept = torch.load(path, map_location=device, weights_only=True)
    model = Model(**kept["shape"]).to(device)
    model.load_state_dict(kept["weights"])
    return model, Tokenizer(kept["words"])


def padded(rows, fill, device, left=True):
    """Rows of tokens as a rectangle, and which of its places are real."""
    length = max(map(len, rows))
    ids, there = [], []
    for row in rows:
        gap = length - len(row)
        ids.append([fill] * gap + row if left else row + [fill] * gap)
        there.append([0] * gap + [1] * len(row) if left else [1] * len(row) + [0] * gap)
    return torch.tensor(ids, device=device), torch.tensor(there, device=device)


def device(name=None):
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
