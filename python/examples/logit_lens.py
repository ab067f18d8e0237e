#!/usr/bin/python3
"""What the model would say after each of its layers, and where it makes up its mind.

    python3 logit_lens.py [MODEL] [PROMPT]
"""
import sys

import kilin


def main(path=None, prompt="And God said, Let there be"):
    model = kilin.load(path)
    probs = model.logit_lens(prompt)[0]  # [layers, vocab]
    answer = probs[-1].argmax()
    print(f"{prompt!r}, and then {model.detokenize([answer])!r}. After each layer:\n")
    print(f"{'layer':>5}  {'block':<10}  {'answer':>6}  {'rank':>5}  first guesses")
    for layer, row in enumerate(probs):
        guesses = "  ".join(f"{model.detokenize([i])!r} {row[i]:.2f}" for i in row.argsort()[::-1][:3])
        kind = f"{model.config['attention'][layer]}, {model.config['feed_forward'][layer]}"
        print(f"{layer:>5}  {kind:<10}  {row[answer]:>6.3f}  {(row > row[answer]).sum() + 1:>5}  {guesses}")


if __name__ == "__main__":
    main(*sys.argv[1:])
