"""Steps of a trace: of generation, and of prompts that are cut; what layers remember between them."""
import numpy as np
import pytest

import kilin


def test_steps_of_generation_are_read_and_written(model, text):
    with model.trace(text, max_new_tokens=4) as t:
        assert t.steps == 4
        first = t.next_token_probs.argmax()
        assert t.step(1).input_ids[0, 0] == first
        assert t.step(2).layers[3].self_attn.attention_scores.shape[2:] == (1, len(model.tokenize(text)) + 2)
        t.step(3).layers[5].layer_output[:] = 0
    assert len(t.output_ids[0]) == 4 and t.output_ids[0][:3] == model.generate(text, 3).ids
    with pytest.raises(ValueError, match="step 4 is not run"):
        t.step(4)


def test_an_edit_of_a_step_is_that_of_a_prefill_at_that_position(model, text):
    prompt = model.tokenize(text)
    for name in ["layers.1.layer_output", "layers.1.linear_attn.decays", "layers.1.mlp.expert_weights"]:
        with model.trace([prompt, prompt[:2]], max_new_tokens=4) as t:
            t.step(2).value(name)[0] *= 0.5
            rows = [t.step(n).logits.save()[0, -1] for n in (2, 3)]
        ids = prompt + t.output_ids[0][:3]
        with model.trace(ids) as whole:
            whole.value(name)[0, len(prompt) + 1] *= 0.5
        expected = whole.logits[0, -2:]
        np.testing.assert_allclose(rows, expected, atol=1e-5 * np.abs(expected).max())
        assert t.output_ids[1] == model.generate(prompt[:2], 4).ids  # the other prompt's is untouched


def test_states_between_tokens(model):
    ids = list(range(40, 52))
    with model.trace(ids) as t:
        here = t.layers[1].linear_attn.state_after(4).save()
        end = t.layers[4].linear_attn.state_after(-1).save()
    with model.trace(ids, cuts=[5]) as t:
        assert t.layers[1].linear_attn.state_input is None
        assert t.layers[1].linear_attn.state_input is None  # nothing was written
        cut = t.layers[1].linear_attn.state_after(4).save()
        t.layers[1].linear_attn.set_state_after(4, cut * 0)
        with pytest.raises(ValueError, match=r"cuts=\[8\]"):
            t.layers[1].linear_attn.set_state_after(7, 0)
        assert not t.step(1).layers[1].linear_attn.state_input.any()
    assert t.logits.shape[1] == 7
    np.testing.assert_allclose(here, cut, atol=1e-5 * np.abs(cut).max())
    assert end.shape == here.shape == (1, 4, 64, 64)
    assert not np.allclose(t.logits[0, -1], model.logits(ids)[0, -1])


@pytest.mark.parametrize("prompts", [[list(range(40, 50))], [list(range(40, 50)), [3, 4]]])
def test_a_fresh_prompt_begins_with_the_state_that_is_set(model, prompts):
    plain = model.logits(prompts)
    state = np.linspace(-1, 1, 4 * 64 * 64, dtype=np.float32).reshape(4, 64, 64)
    with model.trace(prompts) as t:
        attn = t.layers[1].linear_attn
        q, k, v, decays, betas = (t.value(f"layers.1.linear_attn.{name}").save() for name in (
            "attention_queries", "attention_keys", "attention_values", "decays", "betas"))
        assert attn.state_input is None
        attn.state_input = state
        np.testing.assert_array_equal(attn.state_input, np.broadcast_to(state, (len(prompts), 4, 64, 64)))
        end = attn.state_output.save()
    assert not np.array_equal(t.logits[0, -1], plain[0, -1])
    for n, prompt in enumerate(prompts):  # the recurrence by hand, in double
        expected = state.astype(np.float64)
        for i in range(q.shape[1] - len(prompt), q.shape[1]):
            key = k[n, i] / np.sqrt((k[n, i].astype(np.float64)**2).sum(-1, keepdims=True) + 1e-6)
            expected *= np.exp(decays[n, i].astype(np.float64))[..., None]
            error = v[n, i] - np.einsum("hkv,hk->hv", expected, key)
            expected += np.einsum("hk,hv->hkv", key, betas[n, i][:, None] * error)
        np.testing.assert_allclose(end[n], expected, atol=1e-5 * np.abs(expected).max())
    with model.trace(prompts) as t:
        t.layers[1].linear_attn.state_input = 0
    np.testing.assert_array_equal(t.logits, plain)


def test_after_the_block_each_step_gives_its_own_logits_or_none(model, text):
    with model.trace(text, cuts=[2]) as t:
        first = t.logits.save()
    assert first.shape[1] == 2 and t.index == 1
    np.testing.assert_array_equal(t.step(1).logits, t.logits)
    with pytest.raises(kilin.OutOfOrder, match="logits is out of order: the trace has ended"):
        t.step(0).logits
