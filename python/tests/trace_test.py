"""How a trace behaves: order, memory, errors, batches, steps."""
import gc

import numpy as np
import pytest

import kilin


def test_the_body_runs_interleaved_and_logits_follow(model, text):
    plain = model.logits(text)
    with model.trace(text) as t:
        h = t.layers[3].layer_output.save()
        t.layers[5].mlp_output[:, -1] += 1
    assert t.logits.shape == plain.shape == (1, len(model.tokenize(text)), model.vocab_size)
    assert h.value.shape == (1, plain.shape[1], model.hidden_size) and h.value.dtype == np.float32
    np.testing.assert_array_equal(t.logits[:, :-1], plain[:, :-1])
    assert not np.array_equal(t.logits[:, -1], plain[:, -1])


def test_looking_changes_no_byte(model, text):
    with model.trace(text) as t:
        t.layers[0].linear_attn.k_proj.output
        t.layers[4].mlp.expert_weights
    np.testing.assert_array_equal(t.logits, model.logits(text))
    np.testing.assert_allclose(t.next_token_probs.sum(), 1, rtol=1e-5)


def test_both_names_reach_one_value(model, text):
    with model.trace(text) as t:
        ours = t.layers[0].linear_attn.f_b_proj.output
        assert np.shares_memory(ours, t.model.layers[0].self_attn.f_b_proj.output)
        router = t.layers[1].mlp.router_logits
        assert np.shares_memory(router, t.model.layers[1].block_sparse_moe.gate.output)
        assert np.shares_memory(t.model.norm.output, t.norm)
        assert "q_proj" in dir(t.layers[-1].self_attn) and "layer_output" in dir(t.layers[0])


def test_arrays_look_into_the_models_memory_without_a_copy(model, text):
    with model.trace([text, text]) as t:
        x = t.layers[2].layer_output
        assert isinstance(x, kilin.Array) and x.dtype == np.float32 and x.shape[0] == 2
        again = t.layers[2].layer_output
        assert x.__array_interface__["data"] == again.__array_interface__["data"]
        x[:] = 0
        assert not again.any()
        assert not t.layers[3].layer_input.any()


def test_dlpack_goes_there_and_back_without_a_copy(model, text):
    with model.trace(text) as t:
        x = t.layers[2].layer_output
        y = np.from_dlpack(x)
        assert np.shares_memory(x, y) and y.__array_interface__["data"][0] == x.__array_interface__["data"][0]


def test_arrays_that_are_held_keep_what_they_showed(model, text):
    with model.trace(text) as t:
        x = t.layers[0].layer_output
        last, turned, saved = x[:, -1], x[0, ::-1, 3:7], x.save()
        product = x * 2
        everything = [t.layers[n].layer_output for n in range(1, 6)]
        np.testing.assert_array_equal(x, saved)
        assert np.shares_memory(x, last)  # views of one another stay so
        np.testing.assert_array_equal(last, saved[:, -1])
        np.testing.assert_array_equal(turned, saved[0, ::-1, 3:7])
        x[:] = 0
        assert not last.any() and not turned.any()
        np.testing.assert_array_equal(product, saved.value * 2)
        assert product.save() is product and type(product.value) is np.ndarray and type(product.max()) is np.float32
    logits = t.logits
    held = everything[-1].copy()
    del t
    gc.collect()
    np.testing.assert_array_equal(everything[-1], held)
    np.testing.assert_array_equal(logits, model.logits(text))


def test_assignment_and_operators_write(model, text):
    vector = np.linspace(-1, 1, model.hidden_size, dtype=np.float32)
    with model.trace(text) as t:
        t.layers[2].layer_output += vector
        a = t.layers[3].layer_input.save()
    with model.trace(text) as t:
        t.layers[2].layer_output = t.layers[2].layer_output + vector
        b = t.layers[3].layer_input.save()
    np.testing.assert_array_equal(a, b)
    with model.trace(text) as t:
        t.input_ids = model.tokenize(text)[::-1]
    np.testing.assert_array_equal(t.logits, model.logits(model.tokenize(text)[::-1]))
    with model.trace(text) as t, pytest.raises(ValueError, match="layers.0.linear_attn.states can't be written"):
        t.layers[0].linear_attn.states = 0


def test_what_is_no_value_is_not_written(model, text):
    plain = model.logits(text)
    with model.trace(text) as t:
        for ids, message in [(1.5, "input_ids can't be 1.5; expected whole numbers"), (2**40, "can't be 1099511627776"),
                             (np.nan, "can't be nan")]:
            with pytest.raises(ValueError, match=message):
                t.input_ids = ids
        for value, message in [(None, "layers.2.layer_output can't be None"), ("1", "can't be '1'"), (1j, "expected numbers"),
                               (np.zeros(3), r"an array of \[3\]; expected \[1, \d+, 256\]")]:
            with pytest.raises(ValueError, match=message):
                t.layers[2].layer_output = value
        for name in ("index", "steps", "mask"):
            with pytest.raises(AttributeError, match=f"{name} can't be set"):
                setattr(t, name, 1)
    for name in ("logits", "layers.3.layer_output"):
        with pytest.raises(kilin.OutOfOrder, match=f"{name} can't be written: the trace has ended"):
            t._assign(name, 0, 0)
    with pytest.raises(kilin.OutOfOrder):
        t.logits = 0
    np.testing.assert_array_equal(t.logits, plain)


def test_layers_are_counted_from_either_end_and_sliced(model, text):
    with model.trace(text) as t:
        outputs = [layer.layer_output.save() for layer in t.layers[-3:]]
    with model.trace(text) as t:
        np.testing.assert_array_equal(t.layers[np.int64(3)].layer_output, outputs[0])
        for layer in (1.5, "1", None):
            with pytest.raises(TypeError):
                t.layers[layer]


def test_the_checkpoints_modules_are_listed_like_the_standard_ones(model, text):
    with model.trace(text) as t:
        assert {"layers", "model", "logits", "steer"} <= set(dir(t)) and "layers" in dir(t.model)
        assert set(dir(t.layers[0].linear_attn)) == set(dir(t.model.layers[0].self_attn))
        assert dir(t.model.layers[1].block_sparse_moe) == dir(t.layers[1].mlp)
        assert dir(t.layers[3].self_attn.q_proj) == ["output"]


def test_unavailable_values_are_said_at_once(model, text):
    with model.trace(text) as t:
        with pytest.raises(kilin.Unavailable, match=r"layers\[0\].self_attn.attention_scores is not available: block 0 is"):
            t.layers[0].self_attn.attention_scores
        with pytest.raises(kilin.Unavailable, match="block 3 is an MLA block"):
            t.layers[3].linear_attn.decays
        with pytest.raises(kilin.Unavailable, match="block 0 is a dense block"):
            t.layers[0].mlp.router_logits
        assert not hasattr(t.layers[0].mlp, "expert_weights")
        with pytest.raises(AttributeError, match="names no value; near it are"):
            t.layers[0].layer_outputs
        with pytest.raises(IndexError, match="there is no layer 6"):
            t.layers[6]
        assert t.token_embeddings.any()  # nothing has run


def test_order_is_that_of_the_pass(model, text):
    with model.trace(text) as t:
        x = t.layers[3].layer_output
        with pytest.raises(kilin.OutOfOrder, match="layers.1.layer_output is out of order: the pass has come to layers.3"):
            t.layers[1].layer_output
        x *= 0  # the pass stands there still
        assert not t.layers[4].layer_input.any()
    with pytest.raises(kilin.OutOfOrder, match="the trace has ended"):
        t.layers[5].layer_output
    assert t.next_token_probs.shape == (1, model.vocab_size)
    with pytest.raises(kilin.OutOfOrder, match="read it before next_token_probs"):
        t.logits


def test_an_exception_leaves_the_model_usable(model, text):
    before = model.logits(text)
    with pytest.raises(KeyError), model.trace(text) as t:
        t.layers[2].layer_output[:] = 0
        raise KeyError("mine")
    with pytest.raises(ValueError, match="expert_indices"), model.trace(text) as t:
        t.layers[1].mlp.expert_indices[0, 0, 0] = 99
        t.layers[2].layer_output
    np.testing.assert_array_equal(model.logits(text), before)
    with pytest.raises(kilin.OutOfOrder):
        t.logits


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_end_nothing_but_the_pass(model, text, number):
    before = model.logits(text)
    for offered in model.support():
        layer = offered["name"].split(".")[1] if offered["name"].startswith("layers") else "3"
        if not offered["writable"] or layer not in "13" or offered["name"].endswith(("input_ids", "indices", "state_input")):
            continue
        with model.trace(text) as t:
            t.value(offered["name"])[:] = number
            assert t.next_token_probs.shape == (1, model.vocab_size)
    np.testing.assert_array_equal(model.logits(text), before)


def test_stop_ends_the_pass(model, text):
    with model.trace(text) as t:
        x = t.layers[0].layer_output.save()
        t.stop()
        raise AssertionError("not reached")
    assert x.any()
    with pytest.raises(kilin.OutOfOrder):
        t.logits


def test_bad_input_is_a_value_error(model):
    for prompt, message in [([], "prompt 0 is empty"), ([5, model.vocab_size], "outside of the vocabulary"),
                            ([1, -1], "token id -1 is outside"), ([2**32 + 5], "token id 4294967301 is outside"),
                            (np.array([2**31], np.uint64), "outside"), ([2**70], "expected a text or a list of token ids"),
                            ([1.5, 2.0], "expected a text or a list of token ids"), ([[1], []], "prompt 1 is empty")]:
        with pytest.raises(ValueError, match=message):
            model.trace(prompt)
    with pytest.raises(ValueError, match="temperature"):
        model.trace([1], temperature=-1)
    with pytest.raises(TypeError, match="there is no option 'temprature'; expected temperature"):
        model.trace([1], temprature=1)
    with pytest.raises(kilin.NotFound):
        kilin.load("/nowhere/at/all")
    with pytest.raises(ValueError, match="q9"):
        kilin.load(quantize="q9")


@pytest.mark.parametrize("name", ["layers.2.layer_output", "layers.1.linear_attn.states", "layers.1.mlp.expert_indices",
                                  "layers.3.self_attn.attention_keys", "layers.3.self_attn.attention_probabilities", "logits",
                                  "layers.3.self_attn.attention_head_outputs", "layers.1.linear_attn.state_output"])
def test_a_ragged_batch_is_padded_on_the_left(model, name):
    prompts = [[5, 6, 7, 8, 9], [10, 11], [12, 13, 14]]
    with model.trace(prompts) as t:
        whole = t.value(name).save()
    np.testing.assert_array_equal(t.mask.sum(axis=1), [5, 2, 3])
    assert not t.mask[1, 0] and t.mask[1, -1]
    for n, prompt in enumerate(prompts):
        with model.trace(prompt) as t:
            alone = t.value(name).save()[0]
        place = tuple(slice(big - small, None) for big, small in zip(whole.shape[1:], alone.shape))
        np.testing.assert_array_equal(whole[n][place], alone)


@pytest.mark.parametrize("prompts", [[[5, 6, 7, 8]], [[5, 6, 7], [8, 9, 10]], [[5, 6, 7], [8]]])
def test_writing_back_what_was_read_changes_no_byte(model, prompts):
    for offered in model.support():
        name = offered["name"]
        if not offered["writable"] or name.startswith(("layers.2", "layers.4", "layers.5")) or name.endswith("state_input"):
            continue
        with model.trace(prompts) as t:
            t.value(name)
        plain = t.logits
        with model.trace(prompts) as t:
            values = t.value(name)
            copy = np.array(values)
            values[:] = 0
            values[:] = copy
        np.testing.assert_array_equal(t.logits, plain, err_msg=name)


def test_scores_of_padding_are_masked(model):
    with model.trace([[5, 6, 7], [8]]) as t:
        scores = t.layers[3].self_attn.attention_scores
        assert np.isneginf(scores[1, :, :2]).all() and np.isneginf(scores[1, :, -1, :2]).all()


@pytest.mark.parametrize("prompts", [[[5, 6, 7], [8, 9, 10]], [[5, 6, 7], [8, 9]]])
def test_an_edit_of_one_prompt_changes_its_answer_alone(model, prompts):
    plain = model.logits(prompts)
    for name in ["layers.1.layer_output", "layers.3.self_attn.attention_head_outputs", "layers.2.linear_attn.decays"]:
        with model.trace(prompts) as t:
            t.value(name)[1, -1] *= 0.5
        np.testing.assert_array_equal(t.logits[0], plain[0])
        assert not np.array_equal(t.logits[1, -1], plain[1, -1])
