#!/usr/bin/python3
"""Where the heads of the MLA layers look, and how long the KDA layers remember.

    python3 attention_patterns.py [MODEL] [PROMPT]
"""
import sys

import numpy as np

import kilin


def main(path=None, prompt="In the beginning God created the heaven and the earth"):
    model = kilin.load(path)
    tokens = [model.detokenize([i]) for i in model.tokenize(prompt)]
    with model.trace(prompt) as t:
        for layer, kind in enumerate(model.config["attention"]):
            if kind == "mla":
                p = t.layers[layer].self_attn.attention_probabilities[0]  # [heads, tokens, tokens]
                print(f"layer {layer}, MLA: what {tokens[-1]!r} looks at")
                for head, row in enumerate(p[:, -1]):
                    best = row.argsort()[::-1][:3]
                    bits = -(row[row > 0] * np.log2(row[row > 0])).sum()
                    print(f"  head {head}: " + ", ".join(f"{tokens[i]!r} {row[i]:.2f}" for i in best) + f"  ({bits:.1f} bits)")
            else:
                decays = t.layers[layer].linear_attn.decays[0]  # [tokens, heads, channels], log of what is kept a token
                half_lives = np.log(0.5) / np.minimum(decays.mean(axis=0), -1e-6)
                short, middle, long = np.quantile(half_lives, [0.1, 0.5, 0.9])
                print(f"layer {layer}, KDA: half-lives of its channels: {short:.1f} tokens (a tenth is below), "
                      f"{middle:.1f} (half), {long:.1f} (nine tenths)")


if __name__ == "__main__":
    main(*sys.argv[1:])
