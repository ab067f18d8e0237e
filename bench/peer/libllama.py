"""llama.cpp's library by ctypes, as far as the programs beside this file need it.

    npm pack @node-llama-cpp/linux-x64 && tar xzf node-llama-cpp-linux-x64-*.tgz     # brings it, in package/bins/linux-x64
"""

import ctypes
import pathlib


class Opaque(ctypes.Structure):
    """A parameter struct whose fields are not needed: the library fills in its defaults, and takes it back by value. It is
    larger than the library's own, so that everything that the library copies is there."""

    _fields_ = [("bytes", ctypes.c_char * 1024)]


class ContextParams(ctypes.Structure):
    """llama_context_params: its first fields, which have not moved for years, and room for the rest."""

    _fields_ = [
        ("n_ctx", ctypes.c_uint32),
        ("n_batch", ctypes.c_uint32),
        ("n_ubatch", ctypes.c_uint32),
        ("n_seq_max", ctypes.c_uint32),
        ("rest", ctypes.c_char * 1008),
    ]


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


LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


@LogCallback
def say_nothing(_level, _text, _data):
    pass


def newest(folder: pathlib.Path, pattern: str) -> pathlib.Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise SystemExit(f"{folder}: there is no {pattern}; expected the folder that holds llama.cpp's libraries")
    return found[-1]


def load_library(folder: pathlib.Path) -> ctypes.CDLL:
    ctypes.CDLL(newest(folder, "libggml-base*.so*"), mode=ctypes.RTLD_GLOBAL)
    ggml = ctypes.CDLL(newest(folder, "libggml.*so*"), mode=ctypes.RTLD_GLOBAL)
    llama = ctypes.CDLL(newest(folder, "libllama.*so*"), mode=ctypes.RTLD_GLOBAL)
    llama.llama_log_set(say_nothing, None)
    ggml.ggml_backend_load_all_from_path(str(folder).encode())
    llama.llama_model_default_params.restype = Opaque
    llama.llama_context_default_params.restype = ContextParams
    llama.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Opaque]
    llama.llama_init_from_model.argtypes = [ctypes.c_void_p, ContextParams]
    for name in ("llama_model_load_from_file", "llama_init_from_model", "llama_model_get_vocab", "llama_get_memory"):
        getattr(llama, name).restype = ctypes.c_void_p
    llama.llama_decode.argtypes = [ctypes.c_void_p, Batch]
    llama.llama_get_logits_ith.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    llama.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
    for name in ("llama_model_get_vocab", "llama_vocab_n_tokens", "llama_get_memory", "llama_free", "llama_model_free"):
        getattr(llama, name).argtypes = [ctypes.c_void_p]
    llama.llama_set_n_threads.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]
    llama.llama_memory_clear.argtypes = [ctypes.c_void_p, ctypes.c_bool]
    llama.llama_backend_init()
    return llama


def load_model(llama: ctypes.CDLL, file: str) -> int:
    model = llama.llama_model_load_from_file(file.encode(), llama.llama_model_default_params())
    if not model:
        raise SystemExit(f"{file}: llama.cpp does not load it")
    return model


def make_context(llama: ctypes.CDLL, model: int, params: ContextParams) -> int:
    context = llama.llama_init_from_model(model, params)
    if not context:
        raise SystemExit("llama.cpp makes no context for this model")
    return context


def batch_of(tokens, positions, sequences, wants_logits) -> Batch:
    """One token each: its id, position, sequence, and whether its logits are wanted."""
    n = len(tokens)
    own = [(ctypes.c_int32 * 1)(sequence) for sequence in sequences]
    pointers = [ctypes.cast(one, ctypes.POINTER(ctypes.c_int32)) for one in own]
    return Batch(
        n,
        (ctypes.c_int32 * n)(*tokens),
        None,
        (ctypes.c_int32 * n)(*positions),
        (ctypes.c_int32 * n)(*[1] * n),
        (ctypes.POINTER(ctypes.c_int32) * n)(*pointers),
        (ctypes.c_int8 * n)(*wants_logits),
    )


def decode(llama: ctypes.CDLL, context: int, batch: Batch) -> None:
    status = llama.llama_decode(context, batch)
    if status != 0:
        raise SystemExit(f"llama_decode says {status}")
