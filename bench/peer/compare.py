#!/usr/bin/python3
"""Compares Kilin with llama.cpp on the same GGUF file: both measure the same work in turn, so that the machine's drift affects
both.

    bench/peer/compare.py --lib package/bins/linux-x64 model.gguf --prompt 512,2048 --depth 0 --batch 8 --rounds 3

Each round runs both programs once; the first one changes from round to round. Prints medians over the rounds, the smallest and
the largest values, and Kilin's median over llama.cpp's.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
KILIN = FOLDER.parents[1] / "build/release/bin/kilin"


def run(command: list) -> dict:
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{command[0]} failed:\n{result.stderr}")
    return json.loads(result.stdout)


def figures(report: dict) -> dict:
    """The measured figures, by names common to both programs."""
    found = {"load, s": report["load_s"], "peak memory, GB": report["memory"]["peak_bytes"] / 1e9}
    for row in report["prompt"]:
        found[f"prompt {row['prompt_tokens']}, tokens/s"] = row["tokens_per_s"]["median"]
    for row in report["generation"]:
        found[f"generation at {row['depth_tokens']}, tokens/s"] = row["tokens_per_s"]["median"]
    for row in report["batch"]:
        found[f"{row['sequences']} sequences, tokens/s"] = row["tokens_per_s"]["median"]
    return found


def table(ours: dict, theirs: dict) -> str:
    def digits(value):
        return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"

    def cell(values):
        return f"{digits(statistics.median(values))} ({digits(min(values))} to {digits(max(values))})"

    lines = [f"{'':<28} {'kilin':>26} {'llama.cpp':>26} {'ratio':>7}"]
    for name in ours:
        ratio = statistics.median(ours[name]) / statistics.median(theirs[name])
        lines.append(f"{name:<28} {cell(ours[name]):>26} {cell(theirs[name]):>26} {ratio:>7.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=pathlib.Path, required=True, help="folder with libllama and libggml")
    parser.add_argument("--kilin", type=pathlib.Path, default=KILIN, help="the program (default: the release build's)")
    parser.add_argument("model")
    parser.add_argument("--prompt", default="512", help="as kilin bench has it (default: 512)")
    parser.add_argument("--depth", default="0", help="as kilin bench has it (default: 0)")
    parser.add_argument("--batch", default="none", help="as kilin bench has it (default: none)")
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=1, help="of each row in a round (default: 1)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print every round's figures instead")
    args = parser.parse_args()
    work = [args.model, "--prompt", args.prompt, "--depth", args.depth, "--batch", args.batch, "--generate", args.generate,
            "--repeat", args.repeat, "--threads", args.threads]
    programs = {
        "kilin": [args.kilin, "bench", *work, "--json"],
        "llama.cpp": [sys.executable, "-B", FOLDER / "llama_speed.py", "--lib", args.lib, *work],
    }
    rounds = {name: [] for name in programs}
    for number in range(args.rounds):
        for name in sorted(programs, reverse=number % 2 == 1):
            rounds[name].append(figures(run(programs[name])))
            print(f"round {number + 1} of {args.rounds}: {name}", file=sys.stderr)
    if args.json:
        print(json.dumps(rounds))
        return
    by_name = {name: {key: [one[key] for one in found] for key in found[0]} for name, found in rounds.items()}
    print(table(by_name["kilin"], by_name["llama.cpp"]))


if __name__ == "__main__":
    main()
