"""Every value and every edit from Python, against the reference (golden/inside)."""
import numpy as np

# tests/golden/README.md says what was written.


def attend_evenly(p):
    tokens = p.shape[-1]
    p[:] = np.tril(np.ones((tokens, tokens))) / np.arange(1, tokens + 1)[:, None]


def set_to(f):
    def edit(x):
        x[:] = f(x)
    return edit


EDITS = {
    "token_embeddings": set_to(lambda x: 0.5 * x),
    "layers.0.attention_output": set_to(lambda x: 0),
    "layers.1.layer_output": set_to(lambda x: x + np.float32(0.1)),
    "layers.1.mlp_output": set_to(lambda x: -x),
    "layers.1.linear_attn.input": set_to(lambda x: 2 * x),
    "layers.1.linear_attn.k_proj.output": set_to(lambda x: -x),
    "layers.1.linear_attn.attention_keys": set_to(lambda x: x[:, ::-1].copy()),
    "layers.1.linear_attn.decays": set_to(lambda x: 0),
    "layers.1.linear_attn.betas": set_to(lambda x: 0.5 * x),
    "layers.1.linear_attn.attention_head_outputs": set_to(lambda x: x + np.float32(0.01)),
    "layers.3.self_attn.attention_queries": set_to(lambda x: 3 * x),
    "layers.3.self_attn.attention_keys": set_to(lambda x: 1.5 * x),
    "layers.3.self_attn.attention_scores": set_to(lambda x: 2 * x),
    "layers.3.self_attn.attention_probabilities": attend_evenly,
    "layers.3.self_attn.attention_head_outputs": set_to(lambda x: x[:, :, ::-1].copy()),
    "layers.1.mlp.router_logits": set_to(lambda x: -x),
    "layers.1.mlp.expert_weights": set_to(lambda x: 0.25 * x),
    "layers.1.mlp.expert_indices": set_to(lambda x: (x + 1) % 16),
    "layers.1.mlp.shared_expert_output": set_to(lambda x: 0),
    "norm": set_to(lambda x: x + np.float32(0.1)),
}


def test_every_value_is_the_references(golden_model, reference):
    names = [o["name"] for o in golden_model.support() if o["name"] in reference.arrays]
    assert set(names) == {n for n in reference.arrays if not n.startswith("edit:")}
    with golden_model.trace(reference.ids) as t:
        for name in names:
            reference.check(name, t.value(name)[0])


def test_logits_after_every_edit_are_the_references(golden_model, reference):
    assert {f"edit:{name}" for name in EDITS} == {n for n in reference.arrays if n.startswith("edit:")}
    for name, edit in EDITS.items():
        with golden_model.trace(reference.ids) as t:
            edit(t.value(name))
        reference.check(f"edit:{name}", t.logits[0])
