"""Rows of what real models played, checked by a tokenizer that nobody here wrote.

Ids stands before llama.cpp and adds token ids to its answers, as vLLM reports them: those of an answer are with llama.cpp's log probabilities,
those of a prompt come from its own template and tokenizer. It remembers what was sampled. Vocabulary reads the same GGUF file with the tokenizers
of Hugging Face, and rows() compares.

These models are too small for an answer of a wanted form. Ids narrows the schema of such an answer to short ones that the world accepts, with the
legal orders of a prompt of Diplomacy: the server samples each token of them as of any other answer.
"""

import collections
import json
import re
import shutil
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UNIT = r"[AF] [A-Z]{3}(?:/[A-Z]{2})?"


def longer(path, to, context):
    """Copies a GGUF file, with a longer context: prompts of some worlds are too long for the model, which does not matter here."""
    import gguf

    shutil.copy(path, to)
    field = gguf.GGUFReader(to, "r+").fields["llama.context_length"]
    field.parts[field.data[0]][0] = context
    return str(to)


def legal(prompt):
    """Legal orders in a prompt of Diplomacy."""
    orders, unit = [], ""
    for line in prompt.splitlines():
        if m := re.match(rf"({UNIT})(, |: can retreat)", line):
            unit = m[1]
            orders.append(unit + (" H" if m[2] == ", " else " D"))
        elif line.startswith(" moves: "):
            orders += [f"{unit} - {to}" for to in re.findall(r"(?:: |, )([A-Z]{3}(?:/[A-Z]{2})?)", line)]
        elif line.startswith("You "):
            orders += re.findall(rf"{UNIT} [BD]\b", line)
    return orders


def narrow(schema, orders=()):
    """A schema of short answers that obey the given one too."""
    kind = schema.get("type")
    if kind == "object":
        return schema | {"properties": {k: narrow(v, orders if k == "orders" else ()) for k, v in schema["properties"].items()}}
    if kind == "array":
        return schema | {"minItems": 1, "maxItems": min(3, schema.get("maxItems", 3)), "items": {"enum": orders} if orders else narrow(schema["items"])}
    if kind == "string" and "enum" not in schema:
        return schema | {"minLength": 8, "maxLength": 24}
    if kind == "boolean":
        return {"enum": [True]}  # whether something is known, without which it has no value
    if kind == "number":
        return {"enum": [schema["minimum"], schema["maximum"]]}  # llama.cpp knows no limits of numbers
    return schema


class Ids(ThreadingHTTPServer):
    request_queue_size, daemon_threads = 128, True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Answer)
        self.upstream, self.url = upstream.removesuffix("/v1"), f"http://127.0.0.1:{self.server_port}/v1"
        self.sampled = []  # (ids of the prompt, ids of the answer, their log probabilities)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def ask(self, path, body):
        request = urllib.request.Request(self.upstream + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    def complete(self, body):
        template = self.ask("/apply-template", {"messages": body["messages"]})["prompt"]
        prompt = self.ask("/tokenize", {"content": template, "add_special": True, "parse_special": True})["tokens"]
        if form := body.get("response_format", {}).get("json_schema"):
            form["schema"] = narrow(form["schema"], legal(body["messages"][-1]["content"]))
        answer = self.ask("/v1/chat/completions", {k: v for k, v in body.items() if k != "return_token_ids"} | {"logprobs": True})
        choice = answer["choices"][0]
        ids, logprobs = zip(*((t["id"], t["logprob"]) for t in choice["logprobs"]["content"]))
        used = answer["usage"]
        if (len(prompt), len(ids)) != (used["prompt_tokens"], used["completion_tokens"]):
            raise ValueError(f"{len(prompt)} and {len(ids)} token ids, and the server counts {used}")
        self.sampled.append((tuple(prompt), ids, logprobs))
        choice["token_ids"], answer["prompt_token_ids"] = ids, prompt
        return answer


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Ids

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            status, answer = 200, self.server.complete(body)
        except urllib.error.HTTPError as e:
            status, answer = e.code, json.loads(e.read())
        except (ValueError, KeyError) as e:
            status, answer = 500, {"error": {"message": f"{type(e).__name__}: {e}"}}
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Vocabulary:
    """The tokenizer of a GGUF file with pieces of SentencePiece, as one of Hugging Face."""

    def __init__(self, path):
        import gguf
        import tokenizers
        from tokenizers import decoders, models, normalizers

        fields = gguf.GGUFReader(path).fields
        pieces, scores, kinds = (fields["tokenizer.ggml." + name].contents() for name in ("tokens", "scores", "token_type"))
        vocabulary = {piece: n for n, piece in enumerate(pieces)}
        merges = []  # where SentencePiece has scores, BPE has an order of pairs
        for piece, score, kind in zip(pieces, scores, kinds):
            pairs = [(piece[:i], piece[i:]) for i in range(1, len(piece))] if kind == gguf.TokenType.NORMAL else []
            pairs = [p for p in pairs if p[0] in vocabulary and p[1] in vocabulary]
            merges += sorted(((-score, -vocabulary[a], -vocabulary[b], a, b) for a, b in pairs))
        self.hf = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[(a, b) for *_, a, b in sorted(merges, key=lambda m: m[0])], unk_token="<unk>", byte_fallback=True))
        self.hf.normalizer = normalizers.Replace(" ", "\u2581")
        self.hf.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
        self.hf.add_special_tokens([pieces[n] for n, kind in enumerate(kinds) if kind == gguf.TokenType.CONTROL])

    def text(self, ids):
        return self.hf.decode(list(ids), skip_special_tokens=True)

    def ids(self, text):
        return self.hf.encode(text, add_special_tokens=False).ids


def readable(text):
    """A text whose bytes are no UTF-8 has signs for them, and libraries differ in how many."""
    return re.sub("\ufffd+", "\ufffd", text)


def rows(path, sampled, rewards, vocabulary, want):
    """Compares the rows of `parley trajectories` with what was sampled, and with the reward of each episode and seat. Returns how many tokens are
    trained in how many answers."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    answers = collections.defaultdict(list)  # by part, as the run file has them
    for r in lines:
        answers[r["episode"], r["agent_id"], r["part"]].append(r["response"])
    left = collections.Counter(sampled)
    tokens = trained = 0
    for r in lines:
        if not r["is_trainable"]:
            continue
        ids, mask, starts, said = r["tokens"], r["loss_mask"], r["answer_starts"], answers[r["episode"], r["agent_id"], r["part"]]
        want(len(ids) == len(mask) == len(r["logprobs"]) and len(starts) == len(said), "lengths:", len(ids), len(mask), len(starts), len(said))
        reward = rewards[r["episode"], r["agent_id"]]
        want(r["return"] == reward, "a return of", r["return"], "and a score of", reward)
        masked = 0
        for start, text in zip(starts, said):
            end = start
            while end < len(mask) and mask[end] and (end == start or end not in starts):
                end += 1
            key = (tuple(ids[:start]), tuple(ids[start:end]), tuple(r["logprobs"][start:end]))
            want(left[key] > 0, "these tokens were not sampled there, or are trained twice:", ids[start:end])
            left[key] -= 1
            decoded = vocabulary.text(key[1])
            bare = re.fullmatch(r"\s*(?:```json\s*)?(.*?)(?:\s*```)?\s*", decoded, re.S)[1]  # what llama.cpp leaves of JSON
            want(readable(text) in (readable(decoded), readable(bare)), "decoded:", decoded, "answered:", text)
            if "\ufffd" not in decoded:
                want(vocabulary.text(vocabulary.ids(decoded)) == decoded, "encoded and decoded:", decoded)
            prompt = ids[(0 if start == starts[0] else masked) : start]
            if start == starts[0]:  # llama.cpp tokenized it, and begins with special tokens
                again = vocabulary.ids(vocabulary.text(prompt))
                want(prompt[-len(again) :] == again and len(prompt) - len(again) <= 1, "the prompt has other tokens:", prompt[:9], again[:9], len(prompt), len(again))
            masked = end
            tokens, trained = tokens + end - start, trained + 1
        want(sum(mask) == sum(m for m in mask if m == 1), "a mask has other numbers than 0 and 1")
    want(tokens == sum(sum(r["loss_mask"]) for r in lines if r["is_trainable"]) > 0, "tokens are trained that no answer has")
    return f"{tokens} tokens of {trained} answers"
