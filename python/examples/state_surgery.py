#!/usr/bin/python3
"""What do the states of the KDA layers hold? Takes those of one story, and lets another go on with them.

A prompt is cut behind its first part. There each KDA layer's state, all that it knows of that part, is replaced: by zeros, or
by that of another first part. MLA layers still see the tokens that were read.

    python3 state_surgery.py [MODEL]
"""
import sys

import numpy as np

import kilin


def main(path=None, first="And Jesus answered and said unto", other="Thus saith the LORD God of", then=" the"):
    model = kilin.load(path)
    ids = [model.tokenize(first), model.tokenize(other)]
    length = min(map(len, ids))  # states are of as many tokens
    first_ids, other_ids, then_ids = ids[0][-length:], ids[1][-length:], model.tokenize(then)
    kda = [layer for layer, kind in enumerate(model.config["attention"]) if kind == "kda"]

    def states(prompt):
        with model.trace(prompt) as t:
            return {layer: t.layers[layer].linear_attn.state_after(-1).save() for layer in kda}

    def answer(replace=None):
        """Probabilities after the prompt, whose states of some layers are replaced."""
        with model.trace(first_ids + then_ids, cuts=[length]) as t:
            for layer, state in (replace or {}).items():
                t.layers[layer].linear_attn.set_state_after(length - 1, state)
            return t.step(1).next_token_probs[0].save()

    plain, donors = answer(), states(other_ids)
    best = int(plain.argmax())
    whole = model.next_token_probs(other_ids + then_ids)[0]
    print(f"{model.detokenize(first_ids)!r} +{then!r}, and then {model.detokenize([best])!r}")

    def report(what, probs):
        moved = 0.5 * np.abs(probs - plain).sum()
        near = 0.5 * np.abs(probs - whole).sum()
        print(f"  {what:<28} moves {moved:.3f} of the probability; {near:.3f} from the other story's; "
              f"{model.detokenize([best])!r} {plain[best]:.3f} -> {probs[best]:.3f}, "
              f"first {model.detokenize([int(probs.argmax())])!r}")

    report("nothing replaced", plain)
    for layer in kda:
        report(f"layer {layer}: forgotten", answer({layer: np.zeros_like(donors[layer])}))
        report(f"layer {layer}: of the other story", answer({layer: donors[layer]}))
    report("all: forgotten", answer({layer: 0 * donors[layer] for layer in kda}))
    report("all: of the other story", answer(donors))


if __name__ == "__main__":
    main(*sys.argv[1:])
