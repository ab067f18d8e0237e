#!/usr/bin/python3
"""Logits of llama.cpp for one prompt: does it load a file that Kilin wrote, and what does it say?

    npm pack @node-llama-cpp/linux-x64 && tar xzf node-llama-cpp-linux-x64-*.tgz     # brings libllama
    bench/peer/llama_logits.py --lib package/bins/linux-x64 model.gguf ids.npy logits.npy

ids.npy holds int32 token ids, one sequence; logits.npy gets [tokens, vocabulary] fp32. Needs NumPy.
"""

import argparse
import ctypes
import pathlib

import numpy as np


class Opaque(ctypes.Structure):
    """A parameter struct whose fields are not needed: the library fills in its defaults, and takes it back by value. It is larger
    than the library's own, so that whatever it copies is there."""

    _fields_ = [("bytes", ctypes.c_char * 1024)]


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


def newest(folder: pathlib.Path, pattern: str) -> pathlib.Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise SystemExit(f"{folder}: there is no {pattern}; expected the folder that holds llama.cpp's libraries")
    return found[-1]


def load_library(folder: pathlib.Path) -> ctypes.CDLL:
    ctypes.CDLL(newest(folder, "libggml-base*.so*"), mode=ctypes.RTLD_GLOBAL)
    ggml = ctypes.CDLL(newest(folder, "libggml.*so*"), mode=ctypes.RTLD_GLOBAL)
    llama = ctypes.CDLL(newest(folder, "libllama.*so*"), mode=ctypes.RTLD_GLOBAL)
    ggml.ggml_backend_load_all_from_path(str(folder).encode())
    for name in ("llama_model_default_params", "llama_context_default_params"):
        getattr(llama, name).restype = Opaque
    llama.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Opaque]
    llama.llama_init_from_model.argtypes = [ctypes.c_void_p, Opaque]
    llama.llama_decode.argtypes = [ctypes.c_void_p, Batch]
    llama.llama_get_logits_ith.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    llama.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
    llama.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
    llama.llama_vocab_n_tokens.argtypes = [ctypes.c_void_p]
    for name in ("llama_model_load_from_file", "llama_init_from_model", "llama_model_get_vocab"):
        getattr(llama, name).restype = ctypes.c_void_p
    llama.llama_backend_init()
    return llama


def logits_of(llama: ctypes.CDLL, model_file: str, ids: np.ndarray) -> np.ndarray:
    model = llama.llama_model_load_from_file(model_file.encode(), llama.llama_model_default_params())
    if not model:
        raise SystemExit(f"{model_file}: llama.cpp does not load it")
    context = llama.llama_init_from_model(model, llama.llama_context_default_params())
    if not context:
        raise SystemExit(f"{model_file}: llama.cpp makes no context for it")
    n = len(ids)
    sequence = (ctypes.c_int32 * 1)(0)
    batch = Batch(
        n,
        (ctypes.c_int32 * n)(*ids.tolist()),
        None,
        (ctypes.c_int32 * n)(*range(n)),
        (ctypes.c_int32 * n)(*[1] * n),
        (ctypes.POINTER(ctypes.c_int32) * n)(*[ctypes.cast(sequence, ctypes.POINTER(ctypes.c_int32))] * n),
        (ctypes.c_int8 * n)(*[1] * n),
    )
    status = llama.llama_decode(context, batch)
    if status != 0:
        raise SystemExit(f"{model_file}: llama_decode says {status}")
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
    logits = logits_of(load_library(arguments.lib), arguments.model, ids)
    np.save(arguments.out, logits)
    print(f"{arguments.out}: {logits.shape}")


if __name__ == "__main__":
    main()
