"""Makes a model of random weights with a tokenizer of bytes and a chat template, for servers that read
the files of transformers.

usage: tiny.py FOLDER CONTEXT
"""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + (m['content'] or '') + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def main():
    folder, context = sys.argv[1], int(sys.argv[2])
    torch.manual_seed(1)
    special = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"]
    vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for s in special:
        vocab[s] = len(vocab)
    tok = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tok, eos_token="<|end|>", pad_token="<|end|>",
        additional_special_tokens=special[1:], model_max_length=context,
    )
    fast.chat_template = TEMPLATE
    config = LlamaConfig(
        vocab_size=len(vocab), hidden_size=128, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=context,
        bos_token_id=vocab["<|end|>"], eos_token_id=vocab["<|end|>"], pad_token_id=vocab["<|end|>"],
    )
    model = LlamaForCausalLM(config)
    # An answer has no end but its limit: whoever ignores the limit shows.
    model.generation_config = GenerationConfig(eos_token_id=vocab["<|end|>"], pad_token_id=vocab["<|end|>"], do_sample=True)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)


if __name__ == "__main__":
    main()
