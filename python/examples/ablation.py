#!/usr/bin/python3
"""What the answer loses without a layer, or without the expert that its tokens like best.

    python3 ablation.py [MODEL] [PROMPT]
"""
import sys

import numpy as np

import kilin


def main(path=None, prompt="And the LORD spake unto Moses, saying, Speak unto the children of"):
    model = kilin.load(path)
    plain = model.next_token_probs(prompt)[0]
    answer = int(plain.argmax())
    print(f"{prompt!r}, and then {model.detokenize([answer])!r} with probability {plain[answer]:.3f}\n")

    def report(what, probs):
        now = int(probs.argmax())
        print(f"  {what:<32} {probs[answer]:.3f}  first guess {model.detokenize([now])!r}")

    print("without one layer:")
    for layer in range(model.num_layers):
        report(f"layer {layer}", model.next_token_probs(prompt, lambda t: t.skip_layers(layer, layer))[0])

    # [layers, prompts, experts]: how many of the tokens went to each
    experts = model.config["num_experts"]
    load = model.collect_activations(prompt, "mlp.expert_indices",
                                     position=lambda chosen: np.bincount(np.ravel(chosen), minlength=experts))
    layers = [n for n, kind in enumerate(model.config["feed_forward"]) if kind == "moe"]
    print("\nwithout the busiest expert of a layer (its load is in tokens, by expert):")
    for layer, counts in zip(layers, load[:, 0]):
        busiest = int(counts.argmax())
        print(f"  layer {layer}: load {' '.join(map(str, counts))}")
        for mode in ("reroute", "zero"):
            probs = model.next_token_probs(prompt, lambda t: t.ablate_experts(layer, busiest, mode=mode))[0]
            report(f"expert {busiest}, {mode}", probs)


if __name__ == "__main__":
    main(*sys.argv[1:])
