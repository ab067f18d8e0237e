#!/usr/bin/python3
"""How fast llama.cpp reads prompts and generates from a GGUF file: the same work that `kilin bench` measures.

    bench/peer/llama_speed.py --lib package/bins/linux-x64 model.gguf --prompt 512 --depth 0 --batch 8

Prints one JSON object. Ids are random; tokens that are generated are not sampled, but drawn beforehand, so that all of the time
is the library's. Depths are read as a prompt. libllama.py says where to get the library.
"""

import argparse
import json
import pathlib
import random
import resource
import statistics
import time

import libllama

WARM_UP_PROMPT = 32
BATCH_PROMPT = 16  # of each sequence of a batch, as in kilin bench


class Speed:
    def __init__(self, lib: pathlib.Path, file: str, threads: int, seed: int):
        self.llama = libllama.load_library(lib)
        self.threads, self.random, self.context = threads, random.Random(seed), None
        start = time.monotonic()
        self.model = libllama.load_model(self.llama, file)
        self.load_s = time.monotonic() - start
        self.vocabulary = self.llama.llama_vocab_n_tokens(self.llama.llama_model_get_vocab(self.model))

    def make_room(self, tokens: int, sequences: int) -> None:
        """A fresh context for that many sequences of that many tokens."""
        if self.context is not None:
            self.llama.llama_free(self.context)
        params = self.llama.llama_context_default_params()
        if params.n_batch != 2048 or params.n_ubatch != 512:
            raise SystemExit(f"llama_context_params has another layout: n_batch {params.n_batch}, n_ubatch {params.n_ubatch}")
        self.n_batch = params.n_batch
        params.n_ctx, params.n_seq_max = sequences * max(tokens, 256), sequences
        self.context = libllama.make_context(self.llama, self.model, params)
        self.llama.llama_set_n_threads(self.context, self.threads, self.threads)

    def clear(self) -> None:
        self.llama.llama_memory_clear(self.llama.llama_get_memory(self.context), True)

    def ids(self, n: int) -> list:
        return [self.random.randrange(self.vocabulary) for _ in range(n)]

    def read(self, tokens: int, sequence: int = 0) -> None:
        """A prompt, with the logits of its last token."""
        for begin in range(0, tokens, self.n_batch):
            n = min(self.n_batch, tokens - begin)
            wants = [0] * (n - 1) + [int(begin + n == tokens)]
            libllama.decode(self.llama, self.context,
                            libllama.batch_of(self.ids(n), range(begin, begin + n), [sequence] * n, wants))
        self.llama.llama_get_logits_ith(self.context, -1)  # waits for what is still running

    def seconds_of_prompt(self, tokens: int) -> float:
        self.clear()
        start = time.monotonic()
        self.read(tokens)
        return time.monotonic() - start

    def seconds_of_generation(self, depth: int, sequences: int, tokens: int) -> float:
        self.clear()
        for sequence in range(sequences):
            if depth > 0:
                self.read(depth, sequence)
        order = list(range(sequences))
        batches = [libllama.batch_of(self.ids(sequences), [depth + i] * sequences, order, [1] * sequences)
                   for i in range(tokens)]
        start = time.monotonic()
        for batch in batches:
            libllama.decode(self.llama, self.context, batch)
            self.llama.llama_get_logits_ith(self.context, -1)
        return time.monotonic() - start


def spread(rates: list) -> dict:
    return {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}


def counts(text: str) -> list:
    return [] if text == "none" else [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=pathlib.Path, required=True, help="folder with libllama and libggml")
    parser.add_argument("model")
    parser.add_argument("--prompt", type=counts, default=[512], help="prompts to read, tokens (default: 512)")
    parser.add_argument("--depth", type=counts, default=[0], help="tokens before those that are generated (default: 0)")
    parser.add_argument("--batch", type=counts, default=[], help="sequences at once (default: none)")
    parser.add_argument("--generate", type=int, default=32, help="tokens to generate, of each sequence (default: 32)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    speed = Speed(args.lib, args.model, args.threads, args.seed)
    speed.make_room(WARM_UP_PROMPT, 1)
    speed.seconds_of_prompt(WARM_UP_PROMPT)

    def prompt(tokens):
        speed.make_room(tokens, 1)
        return spread([tokens / speed.seconds_of_prompt(tokens) for _ in range(args.repeat)])

    def generation(depth, sequences):
        speed.make_room(depth + args.generate, sequences)
        seconds = [speed.seconds_of_generation(depth, sequences, args.generate) for _ in range(args.repeat)]
        return {"depth_tokens": depth, "sequences": sequences,
                "tokens_per_s": spread([sequences * args.generate / s for s in seconds])}

    report = {
        "model": args.model,
        "threads": args.threads,
        "load_s": speed.load_s,
        "prompt": [{"prompt_tokens": n, "tokens_per_s": prompt(n)} for n in args.prompt],
        "generation": [generation(depth, 1) for depth in args.depth],
        "batch": [generation(BATCH_PROMPT, n) for n in args.batch],
        "memory": {"peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024},
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
