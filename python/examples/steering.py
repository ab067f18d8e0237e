#!/usr/bin/python3
"""Steers answers by a direction: the mean stream of some texts minus that of others.

    python3 steering.py [MODEL] [PROMPT]
"""
import sys

import kilin

TOWARDS = ["the wrath of God and the sword and blood", "they were slain with the sword in battle",
           "war and death and great fury"]
AWAY = ["the peace of God and mercy and love", "they rejoiced with gladness in the house", "grace and life and great joy"]


def main(path=None, prompt="And it came to pass in those days, that", tokens=24):
    model = kilin.load(path)
    layer = model.num_layers // 2

    def mean(texts):
        return model.collect_activations(texts, layers=[layer], position=lambda rows: rows.mean(axis=0))[0].mean(axis=0)
    direction = mean(TOWARDS) - mean(AWAY)
    print(f"a direction after layer {layer}, from {len(TOWARDS)} texts of war and {len(AWAY)} of peace\n")
    for factor in (-3, -1.5, 0, 1.5, 3):
        answer = model.generate(prompt, int(tokens), edit=lambda t: t.steer(layer, direction, factor))
        print(f"{factor:+.1f}: {prompt}{answer}")


if __name__ == "__main__":
    main(*sys.argv[1:])
