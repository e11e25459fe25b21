#!/usr/bin/env python3
"""Makes the small model of the exactness tests: random weights, real kernels, and prints its path.

usage: make_tiny_model.py MODEL.gguf [--seed N] [--out FILE]
A llama of 3 layers with head size 64 and grouped heads, Q4_0 products (repacked by ggml where the CPU has a kernel for it) and
Q8_0 embedding and output, as in the default model prepared by the product. The vocabulary is the head of MODEL's (SmolLM2): its
special tokens, the 256 bytes and the tokens of its first merges; the head of a BPE merge list is a BPE merge list, so any text
is tokenised. Decodes thousands of tokens a second. Seed 1 is the default; another seed gives a model of equal shape and unequal weights.

The file is kept in .deps/tiny under a hash over this script, the seed and MODEL's vocabulary, and made once.
"""

import argparse
import hashlib
import os
import pathlib
import sys

import gguf
import numpy as np

N_LAYER = 3
N_EMBD = 256
N_HEAD = 4
N_HEAD_KV = 2
HEAD_SIZE = 64
N_FF = 512
N_VOCAB_MAX = 4096
N_CTX = 131072  # the freeze bench fills 100,000 cells
ROPE_BASE = 100000.0

# Standard deviations, chosen so that the next token hangs on the whole context and no choice is certain: attention scores
# spread by about 3 (a few cells get most of the weight, wherever they are), each block adds as much as it finds, and logits
# spread by about 3 (some dozens of likely tokens).
SCORE_SPREAD = 3.0
BLOCK_GAIN = 1.5
LOGIT_SPREAD = 3.0


def vocabulary(reader):
    """(tokens, types, merges): MODEL's special and byte tokens and those of its first merges, ids packed in MODEL's order."""
    def strings(key):
        field = reader.fields[key]
        return [bytes(field.parts[i]).decode("utf-8") for i in field.data]

    tokens = strings("tokenizer.ggml.tokens")
    types_field = reader.fields["tokenizer.ggml.token_type"]
    types = [int(types_field.parts[i][0]) for i in types_field.data]
    merges = strings("tokenizer.ggml.merges")

    made_by_merge = {merge.replace(" ", "", 1) for merge in merges}
    kept = {t for t, kind in zip(tokens, types) if kind != gguf.TokenType.NORMAL or t not in made_by_merge}
    kept_merges = []
    for merge in merges:
        result = merge.replace(" ", "", 1)
        if len(kept) == N_VOCAB_MAX and result not in kept:
            break
        kept.add(result)
        kept_merges.append(merge)
    ids = [i for i, token in enumerate(tokens) if token in kept]
    return [tokens[i] for i in ids], [types[i] for i in ids], kept_merges, ids


def weights(seed, n_vocab):
    """name -> (array [out, in], type). Seeded per tensor, so that one tensor's shape does not move another's numbers."""
    def normal(name, shape, spread):
        key = int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "little")
        return np.random.default_rng(key).normal(0.0, spread, shape).astype(np.float32)

    unit = 1.0 / np.sqrt(N_EMBD)  # keeps a normalised row's spread at 1
    q4, q8 = gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q8_0
    f32 = gguf.GGMLQuantizationType.F32
    ones = np.ones(N_EMBD, dtype=np.float32)
    made = {"token_embd.weight": (normal("embd", (n_vocab, N_EMBD), 1.0), q8),
            "output_norm.weight": (ones, f32),
            "output.weight": (normal("output", (n_vocab, N_EMBD), LOGIT_SPREAD * unit), q8)}
    shapes = {"attn_q": ((N_HEAD * HEAD_SIZE, N_EMBD), np.sqrt(SCORE_SPREAD) * unit),
              "attn_k": ((N_HEAD_KV * HEAD_SIZE, N_EMBD), np.sqrt(SCORE_SPREAD) * unit),
              "attn_v": ((N_HEAD_KV * HEAD_SIZE, N_EMBD), unit),
              "attn_output": ((N_EMBD, N_HEAD * HEAD_SIZE), BLOCK_GAIN / np.sqrt(N_HEAD * HEAD_SIZE)),
              "ffn_gate": ((N_FF, N_EMBD), unit),
              "ffn_up": ((N_FF, N_EMBD), unit),
              "ffn_down": ((N_EMBD, N_FF), BLOCK_GAIN / np.sqrt(N_FF))}
    for layer in range(N_LAYER):
        for name, (shape, spread) in shapes.items():
            made[f"blk.{layer}.{name}.weight"] = (normal(f"{layer} {name}", shape, spread), q4)
        made[f"blk.{layer}.attn_norm.weight"] = (ones, f32)
        made[f"blk.{layer}.ffn_norm.weight"] = (ones, f32)
    return made


def copy_token_ids(reader, writer, old_ids):
    """Carries over the ids of special tokens (begin, end, padding, …) and what else the tokenizer needs."""
    new_id = {old: new for new, old in enumerate(old_ids)}
    for key, field in reader.fields.items():
        if key.startswith("tokenizer.ggml.") and key.endswith("_token_id"):
            old = int(field.parts[field.data[0]][0])
            if old in new_id:
                writer.add_uint32(key, new_id[old])
        elif key.startswith("tokenizer.ggml.add_"):
            writer.add_bool(key, bool(field.parts[field.data[0]][0]))
        elif key in ("tokenizer.ggml.pre", "tokenizer.chat_template"):
            writer.add_string(key, bytes(field.parts[field.data[0]]).decode("utf-8"))


def write(reader, seed, out):
    tokens, types, merges, old_ids = vocabulary(reader)
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_name(f"tiny-{seed}")
    writer.add_block_count(N_LAYER)
    writer.add_context_length(N_CTX)
    writer.add_embedding_length(N_EMBD)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.add_rope_dimension_count(HEAD_SIZE)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    copy_token_ids(reader, writer, old_ids)
    for name, (array, kind) in weights(seed, len(tokens)).items():
        data = array if kind == gguf.GGMLQuantizationType.F32 else gguf.quants.quantize(array, kind)
        writer.add_tensor(name, data, raw_dtype=None if kind == gguf.GGMLQuantizationType.F32 else kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def cached_path(model, seed):
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    digest = hashlib.sha256(pathlib.Path(__file__).read_bytes())
    with open(model, "rb") as file:
        digest.update(file.read(4 << 20))  # header and vocabulary stand at the front
    digest.update(str(seed).encode())
    return root / ".deps" / "tiny" / f"llama-{digest.hexdigest()[:12]}.gguf"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a SmolLM2 GGUF, for its vocabulary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    out = arguments.out or cached_path(arguments.model, arguments.seed)
    if not out.exists() or arguments.out:
        out.parent.mkdir(parents=True, exist_ok=True)
        half_made = out.with_suffix(f".{os.getpid()}.part")
        write(gguf.GGUFReader(arguments.model), arguments.seed, half_made)
        half_made.replace(out)
    print(out)


if __name__ == "__main__":
    sys.exit(main())
