#!/usr/bin/python3
"""Two prompts that end in different answers: which layer's stream at which token carries the difference?

Both run in one pass, side by side; one token's stream of the first is put into the second, layer by layer. A figure of 1 means
that the patch gives the second prompt all of the first one's preference, 0 that it changes nothing.

    python3 activation_patching.py [MODEL] [CLEAN CORRUPTED]
"""
import sys

import kilin


def main(path=None, clean="And the king of Israel said", corrupted="And the king of Egypt said"):
    model = kilin.load(path)
    prompts = [model.tokenize(clean), model.tokenize(corrupted)]
    if len(prompts[0]) != len(prompts[1]):
        raise SystemExit(f"the prompts have {len(prompts[0])} and {len(prompts[1])} tokens; expected as many")
    logits, probs = model.logits(prompts)[:, -1], model.next_token_probs(prompts)
    gap = probs[0] - probs[1]
    up, down = int(gap.argmax()), int(gap.argmin())

    def preference(row):
        return row[up] - row[down]
    span = preference(logits[0]) - preference(logits[1])
    print(f"{clean!r} prefers {model.detokenize([up])!r}, {corrupted!r} prefers {model.detokenize([down])!r}")
    print(f"difference of the two logits: {preference(logits[0]):+.2f} and {preference(logits[1]):+.2f}\n")
    print("layer  " + "".join(f"{model.detokenize([i]).strip()[:8]:>9}" for i in prompts[1]))
    for layer in range(model.num_layers):
        line = f"{layer:>5}  "
        for token in range(len(prompts[0])):
            with model.trace(prompts) as t:
                stream = t.layers[layer].layer_output
                stream[1, token] = stream[0, token]
            line += f"{(preference(t.logits[1, -1]) - preference(logits[1])) / span:>9.2f}"
        print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
