"""Makes a tiny GGUF file of random weights with a vocabulary of characters, and of bytes for the others, for llama.cpp. It only writes characters:
bytes at random are no UTF-8, and neither libraries nor servers agree what text or how many tokens that is.

usage: weights.py FILE CONTEXT
"""

import sys

import gguf
import numpy

EMBED, HEADS, LAYERS, FEED = 64, 4, 2, 128


def main():
    path, context = sys.argv[1], int(sys.argv[2])
    draw = numpy.random.default_rng(1)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    silent = [0, 1, *range(3, len(tokens))]
    characters = [chr(c) for c in range(ord(" "), 127)]
    tokens += [c.replace(" ", "\u2581") for c in characters]
    types += [gguf.TokenType.NORMAL] * len(characters)

    w = gguf.GGUFWriter(path, "llama")
    w.add_context_length(context)
    w.add_embedding_length(EMBED)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(FEED)
    w.add_head_count(HEADS)
    w.add_head_count_kv(HEADS)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(EMBED // HEADS)
    w.add_vocab_size(len(tokens))
    w.add_tokenizer_model("llama")
    w.add_token_list(tokens)
    w.add_token_scores([0.0] * len(tokens))
    w.add_token_types(types)
    w.add_unk_token_id(0)
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)

    def random(name, *shape, constant=None):
        values = (draw.standard_normal(shape) * 0.1).astype(numpy.float32)
        if constant is not None:  # every state has one in its first number
            values[..., 0] = constant
        w.add_tensor(name + ".weight", values)

    random("token_embd", len(tokens), EMBED, constant=4)
    random("output", len(tokens), EMBED, constant=[-100 if n in silent else 0 for n in range(len(tokens))])
    w.add_tensor("output_norm.weight", numpy.ones(EMBED, numpy.float32))
    for i in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            w.add_tensor(f"blk.{i}.{norm}.weight", numpy.ones(EMBED, numpy.float32))
        for square in ("attn_q", "attn_k", "attn_v", "attn_output"):
            random(f"blk.{i}.{square}", EMBED, EMBED)
        random(f"blk.{i}.ffn_gate", FEED, EMBED)
        random(f"blk.{i}.ffn_up", FEED, EMBED)
        random(f"blk.{i}.ffn_down", EMBED, FEED)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    main()
