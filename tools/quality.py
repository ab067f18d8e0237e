#!/usr/bin/python3
"""Measures what quantisation costs: the tables of docs/quantisation.md.

    tools/quality.py [--kilin build/release/bin/kilin] [--model models/tiny] [--text models/tiny/eval.txt]

Every form of the model is held against the model's own logits in fp32 arithmetic: perplexity, KL divergence (mean and 99th
percentile, nats) and how often the most probable token is the same.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TYPES = ["q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0"]


class Bench:
    def __init__(self, kilin, model, text, folder):
        self.kilin, self.model, self.text, self.folder = kilin, model, text, folder
        self.base = folder / "base.npy"

    def run(self, *arguments):
        command = [self.kilin, *map(str, arguments), "--json"]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    def measure(self, model, *arguments):
        return self.run("perplexity", model, "--file", self.text, *arguments)

    def against_base(self, model, *arguments):
        return self.measure(model, "--kl-base", self.base, *arguments)

    def quantized(self, kind, rounding):
        file = self.folder / f"{kind}-{rounding}.gguf"
        return file, self.run("quantize", self.model, file, "--type", kind, "--rounding", rounding)


def cells(result):
    kl = result["kl"]
    return f"{result['perplexity']:.4f} | {kl['mean']:.5f} | {kl['p99']:.4f} | {100 * kl['top1_agreement']:.2f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kilin", default=ROOT / "build/release/bin/kilin")
    parser.add_argument("--model", default=ROOT / "models/tiny")
    parser.add_argument("--text", default=ROOT / "models/tiny/eval.txt")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.kilin, arguments.model, arguments.text, pathlib.Path(folder))
        own = bench.measure(bench.model, "--activations", "f32", "--save-logits", bench.base)
        print(f"Its own: perplexity {own['perplexity']:.4f} over {own['predictions']} predictions, window {own['window']}.\n")

        print("| weights | rounding | bits a weight | perplexity | KL mean | KL p99 | same first |")
        print("|---|---|---|---|---|---|---|")
        files = {}
        for kind in TYPES:
            for rounding in ("searched", "nearest"):
                file, written = bench.quantized(kind, rounding)
                if rounding == "searched":
                    files[kind] = file
                result = bench.against_base(file, "--activations", "f32", "--kv-type", "f32")
                print(f"| {kind} | {rounding} | {written['bits_per_weight']:.2f} | {cells(result)} |", flush=True)

        print("\n| weights | activations | latents | perplexity | KL mean | KL p99 | same first | KL added |")
        print("|---|---|---|---|---|---|---|---|")
        forms = [(bench.model, "bf16 (source)", [("f32", "f32"), ("f32", "bf16"), ("f32", "q8"), ("bf16", "bf16")])]
        forms += [(files[kind], kind, [("f32", "f32"), ("int8", "f32"), ("int8", "bf16"), ("int8", "q8")]) for kind in TYPES]
        for model, name, settings in forms:
            first = None
            for activations, latents in settings:
                result = bench.against_base(model, "--activations", activations, "--kv-type", latents)
                first = result["kl"]["mean"] if first is None else first
                added = result["kl"]["mean"] - first
                print(f"| {name} | {activations} | {latents} | {cells(result)} | {added:+.5f} |", flush=True)


if __name__ == "__main__":
    main()
