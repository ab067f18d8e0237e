#!/usr/bin/python3
"""Prints llama.cpp's logits for one prompt: whether it loads a file that Kilin wrote, and what it predicts.

    bench/peer/llama_logits.py --lib package/bins/linux-x64 model.gguf ids.npy logits.npy

ids.npy holds int32 token ids, one sequence; logits.npy gets [tokens, vocabulary] fp32. Needs NumPy, and the library that
libllama.py says where to get.
"""

import argparse
import ctypes
import pathlib

import numpy as np

import libllama


def logits_of(llama: ctypes.CDLL, model_file: str, ids: np.ndarray) -> np.ndarray:
    model = libllama.load_model(llama, model_file)
    context = libllama.make_context(llama, model, llama.llama_context_default_params())
    n = len(ids)
    libllama.decode(llama, context, libllama.batch_of(ids.tolist(), range(n), [0] * n, [1] * n))
    vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    return np.stack([np.ctypeslib.as_array(llama.llama_get_logits_ith(context, i), (vocabulary,)).copy() for i in range(n)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=pathlib.Path, required=True, help="folder with libllama and libggml")
    parser.add_argument("model")
    parser.add_argument("ids")
    parser.add_argument("out")
    arguments = parser.parse_args()
    ids = np.load(arguments.ids).astype(np.int32).reshape(-1)
    logits = logits_of(libllama.load_library(arguments.lib), arguments.model, ids)
    np.save(arguments.out, logits)
    print(f"{arguments.out}: {logits.shape}")


if __name__ == "__main__":
    main()
