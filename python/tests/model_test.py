"""Answers and the well-known experiments."""
import json
import threading

import numpy as np
import pytest
from conftest import ROOT

import kilin


def test_tokens_go_there_and_back(model, text):
    ids = model.tokenize(text)
    assert model.detokenize(ids) == text and all(isinstance(i, int) for i in ids)


def test_answers_whole_and_in_pieces_are_one(model, text):
    whole = model.generate(text, 24)
    assert "".join(model.stream(text, 24)) == whole.text == str(whole) and whole.text
    assert len(whole.ids) <= 24 and whole.finish_reason in ("stop", "length")
    both = model.generate([text, text + " in"], 8)
    assert both[0].ids == whole.ids[:8]
    assert model.generate(text, 24, temperature=1.0, seed=3).ids == model.generate(text, 24, temperature=1.0, seed=3).ids
    word = whole.text.split()[2]
    assert model.generate(text, 24, stop=[word]).text == whole.text[: whole.text.index(word)]
    assert model.generate(text, 24, stop=word) == model.generate(text, 24, stop=[word])  # and not its letters


def test_answers_side_by_side_are_those_alone(model, text):
    several = kilin.load(threads=2, max_sequences=3)
    prompts = [text, "And", "In the beginning God", "Then said Jesus"]
    assert several.generate(prompts, 12) == [model.generate(prompt, 12) for prompt in prompts]


def test_an_answer_that_is_left_half_done_is_no_hindrance(model, text):
    pieces = model.stream(text, 30)
    next(pieces)
    del pieces
    assert model.generate(text, 4).ids


def test_edits_by_step(model, text):
    plain = model.generate(text, 10)
    seen = []
    same = model.generate(text, 10, edit=lambda t: seen.append(t.index))
    assert same.ids == plain.ids and seen == list(range(len(plain.ids)))[:10]

    def silence(t):
        if t.index == 3:
            t.layers[5].layer_output[:] *= -1
    other = model.generate([text, text], 10, edit=silence)
    assert other[0].ids == other[1].ids
    assert other[0].ids[:3] == plain.ids[:3] and other[0].ids != plain.ids
    assert "".join(model.stream(text, 10, edit=silence)) == other[0].text


def test_answers_with_edits_end_as_those_without(model, text):
    prompts = [text, "And it came to pass", "Jesus wept."]
    whole = model.generate(prompts, 40)
    letters = [answer.text[5:8] for answer in whole]  # across the borders of tokens
    for stop in ([], letters[:1], letters, "\n", ["zebra"]):
        plain = model.generate(prompts, 40, stop=stop)
        assert model.generate(prompts, 40, stop=stop, edit=lambda t: None) == plain
        for prompt, answer in zip(prompts, plain):
            pieces = list(model.stream(prompt, 40, stop=stop, edit=lambda t: None))
            assert pieces == list(model.stream(prompt, 40, stop=stop)) and "".join(pieces) == answer.text
    assert {answer.finish_reason for answer in model.generate(prompts, 40, stop=letters)} == {"stop"}
    steps = []
    model.generate(text, 40, stop=letters[0], edit=lambda t: steps.append(t.index))
    assert len(steps) < 10  # nothing runs on behind it


def test_an_edit_can_end_an_answer(model, text):
    for last in range(3):
        def edit(t):
            if t.index == last:
                t.stop()
        answer = model.generate(text, 10, edit=edit)
        assert answer.finish_reason == "cancelled" and answer.ids == model.generate(text, 10).ids[:last]
        assert "".join(model.stream(text, 10, edit=edit)) == answer.text == model.detokenize(answer.ids)
    with pytest.raises(kilin.OutOfOrder, match="the pass has ended"):
        model.logits(text, lambda t: t.stop())


def test_answers_of_threads_do_not_mix(text):
    model = kilin.load(threads=2, max_sequences=2)
    prompts = [text, "And it came to pass", "In the beginning God", "Then said Jesus"]
    expected = ["".join(model.stream(prompt, 24)) for prompt in prompts]
    found = {}

    def work(prompt):
        found[prompt] = ["".join(model.stream(prompt, 24)) for _ in range(3)]
    threads = [threading.Thread(target=work, args=[prompt]) for prompt in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {prompt: [answer] * 3 for prompt, answer in zip(prompts, expected)}


def test_numbers_and_texts_are_looked_at_where_they_come_in(model, text):
    for call, message in [
        (lambda: model.generate(text, -1), "max_new_tokens is -1; expected a whole number from 1 on"),
        (lambda: model.generate(text, 0, edit=lambda t: None), "max_new_tokens is 0"),
        (lambda: model.trace(text, max_new_tokens=1.5), "max_new_tokens is 1.5"),
        (lambda: model.trace(text, cuts=[-1]), "a cut is -1"),
        (lambda: model.generate(text, 2, temperature="hot"), "temperature is 'hot'; expected a number"),
        (lambda: model.generate(text, 2, top_k=-1), "top_k is -1"),
        (lambda: model.generate(text, 2, stop=[5]), "stop is 5; expected a text"),
        (lambda: model.tokenize(5), "the text is 5"),
        (lambda: model.tokenize("\ud800"), "surrogates not allowed"),
        (lambda: model.detokenize([2**40]), "token id 1099511627776 is outside"),
        (lambda: model.trace(None), "a prompt is None"),
        (lambda: model.trace({3: 4}), "a prompt is {3: 4}"),
        (lambda: kilin.load(threads=-1), "threads is -1"),
        (lambda: model.logit_lens(text, layers=[]), "layers is empty"),
        (lambda: model.logit_lens(text, layers="a"), "there is no layer 'a'; expected -6 to 5"),
        (lambda: model.patchscope([text, text], text), "source is a batch of 2 prompts"),
        (lambda: kilin.Prompt.from_strings(model, text, {"none": ""}), "target 'none' is"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert model.logits(np.array([[5, 6], [7, 8]])).shape == (2, 2, model.vocab_size)


def test_logits_with_edits_are_those_of_a_trace(model, text):
    def edit(t):
        t.layers[2].layer_output *= 0.5
    with model.trace(text) as t:
        edit(t)
    np.testing.assert_array_equal(model.logits(text, edit), t.logits)
    probs = model.next_token_probs([text, "And"])
    assert probs.shape == (2, model.vocab_size)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-5)


def test_the_last_layers_projection_is_the_models(model, text):
    with model.trace(text) as t:
        stream = t.layers[5].layer_output.save()
    np.testing.assert_array_equal(model.project_on_vocab(stream), t.logits)
    with pytest.raises(ValueError, match="expected"):
        model.project_on_vocab(np.zeros((2, 3)))


def test_logit_lens_ends_in_the_models_probabilities(model, text):
    prompts = [text, "And it came to pass"]
    probs = model.logit_lens(prompts)
    assert probs.shape == (2, 6, model.vocab_size)
    np.testing.assert_allclose(probs[:, -1], model.next_token_probs(prompts), atol=5e-6)  # two forms of softmax
    np.testing.assert_array_equal(model.logit_lens(text, layers=[-2, 1])[0], probs[0, [4, 1]])
    # The shorter prompt's own first token, and no padding.
    first = model.logit_lens([text, "And"], position=0)
    for n, prompt in enumerate([text, "And"]):
        np.testing.assert_allclose(first[n], model.logit_lens(prompt, position=0)[0], atol=1e-6)


def test_skipped_layers_are_as_if_they_were_not_there(model, text):
    with model.trace(text) as t:
        t.skip_layers(1, 4)
        after = t.layers[5].layer_input.save()
    with model.trace(text) as t:
        np.testing.assert_array_equal(t.layers[1].layer_input, after)
    with model.trace(text) as t:
        t.skip_layers(1, -2)
        np.testing.assert_array_equal(t.layers[5].layer_input, after)
    for first, last, message in [(3, 2, "can't be skipped"), (3, 9, "there is no layer 9")]:
        with pytest.raises(ValueError, match=message), model.trace(text) as t:
            t.skip_layers(first, last)


def test_steering_adds_to_the_stream(model, text):
    vector = np.full(model.hidden_size, 0.25, np.float32)
    with model.trace(text) as t:
        before = t.layers[2].layer_output.save()
        t.steer(2, vector, factor=2, position=-1)
        after = t.layers[3].layer_input.save()
    np.testing.assert_array_equal(after[:, :-1], before[:, :-1])
    np.testing.assert_array_equal(after[:, -1], before[:, -1] + np.float32(0.5))
    with model.trace(text) as t:
        t.steer([-1, 0], 0.0)  # in the order of the pass, whatever the order of the list
    with pytest.raises(ValueError, match="there is no layer 6; expected -6 to 5"), model.trace(text) as t:
        t.steer([0, 6], 0.0)


def test_ablated_experts_give_nothing(model, text):
    with model.trace(text) as t:
        plain = t.layers[1].mlp.expert_indices.save()
        weights = t.layers[1].mlp.expert_weights.save()
    gone = [plain.flat[0], plain.flat[-1]]
    with model.trace(text) as t:
        t.ablate_experts(1, gone)
        indices = t.layers[1].mlp.expert_indices.save()
        assert not t.layers[1].mlp.expert_weights[np.isin(indices, gone)].any()
    assert not np.array_equal(indices, plain)
    with model.trace(text) as t:
        t.ablate_experts(range(1, 3), gone, mode="zero")
    with model.trace(text) as t:
        t.ablate_experts([1], gone, mode="zero")
        np.testing.assert_array_equal(t.layers[1].mlp.expert_weights, np.where(np.isin(plain, gone), 0, weights))
    with pytest.raises(ValueError, match="mode"), model.trace(text) as t:
        t.ablate_experts(1, 0, mode="drop")
    for experts in (-1, model.config["num_experts"]):
        with pytest.raises(ValueError, match=f"there is no expert {experts}"), model.trace(text) as t:
            t.ablate_experts(1, experts, mode="zero")


def test_patchscope_of_a_prompt_into_itself_changes_nothing(model, text):
    probs = model.patchscope(text, text)
    assert probs.shape == (6, model.vocab_size)
    for row in probs:
        np.testing.assert_array_equal(row, model.next_token_probs(text)[0])
    other = model.patchscope("And it came to pass", text, layers=[1], target_layers=[2])
    assert not np.array_equal(other[0], probs[0])


def test_activations_of_many_prompts(model, text, capfd):
    prompts = [text, "And", "In the beginning", text + " again"]
    found = model.collect_activations(prompts, batch_size=3)
    assert found.shape == (6, 4, model.hidden_size)
    for n, prompt in enumerate(prompts):
        with model.trace(prompt) as t:
            np.testing.assert_array_equal(t.layers[4].layer_output[0, -1], found[4, n])
    both = model.collect_activations(prompts, ["mlp.router_logits", "layer_output"], position=lambda rows: rows.mean(axis=0))
    assert both["mlp.router_logits"].shape[:2] == (5, 4)  # layer 0 has no router
    assert capfd.readouterr().err == ""  # no terminal, no bar
    model.collect_activations(prompts, show_progress=True, layers=[0])
    assert "1/1" in capfd.readouterr().err
    with pytest.raises(kilin.Unavailable):
        model.collect_activations(prompts, "mlp.router_logits", layers=[0])


def test_values_that_have_no_row_for_each_token_are_collected_whole(model, text):
    prompts = [text, "And"]
    for value in ("self_attn.attention_scores", "linear_attn.state_output"):
        with pytest.raises(ValueError, match=f"{value} is .*, not a row for each token"):
            model.collect_activations(prompts, value)
    mean = model.collect_activations(prompts, "self_attn.attention_probabilities", position=lambda p: p[:, -1].max(axis=-1))
    states = model.collect_activations(prompts, "linear_attn.state_output", position=lambda state: state)
    for n, prompt in enumerate(prompts):
        with model.trace(prompt) as t:
            np.testing.assert_array_equal(states[3, n], t.layers[4].linear_attn.state_output[0])
        with model.trace(prompt) as t:
            largest = t.layers[3].self_attn.attention_probabilities[0, :, -1].max(axis=-1)
            np.testing.assert_array_equal(mean[0, n], largest)
    with pytest.raises(ValueError, match="a fresh prompt has none"):
        model.collect_activations(prompts, "linear_attn.state_input", position=lambda state: state)


def test_targets_sum_the_probabilities_of_their_tokens(model, text):
    prompt = kilin.Prompt.from_strings(model, text, {"moses": ["Moses"], "other": "people"})
    assert prompt.has_no_collisions() and len(prompt.targets["moses"]) == 2
    probs = model.next_token_probs(text)[0]
    found = model.target_probabilities([prompt, prompt])
    np.testing.assert_allclose(found["other"], [probs[prompt.targets["other"]].sum()] * 2, rtol=1e-6)


def test_support_lists_what_every_block_has(model):
    offered = {o["name"]: o for o in model.support()}
    assert offered["layers.0.linear_attn.decays"]["shape"] == "[S, num_heads, head_dim]"
    assert not offered["next_token_probs"]["writable"] and offered["layers.3.self_attn.attention_scores"]["staged"]
    assert "layers.0.self_attn.attention_scores" not in offered


def test_a_quantised_model_is_traced_too(text):
    model = kilin.load(quantize="q4_0", threads=2)  # the embedded one
    with model.trace(text) as t:
        assert t.layers[1].mlp.expert_outputs.shape[-1] == model.hidden_size
        t.layers[2].layer_output[:, -1] = 0
    assert t.logits.shape[0] == 1


def short_model(folder, length, **options):
    """The embedded model, made for so many positions."""
    for file in (ROOT / "models/tiny").iterdir():
        if file.name != "config.json":
            (folder / file.name).symlink_to(file)
    config = json.loads((ROOT / "models/tiny/config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_max_length": length}))
    return kilin.load(folder, threads=2, **options)


@pytest.mark.parametrize("options", [{}, {"context_tokens": 63}])
def test_answers_with_edits_end_where_the_context_does(tmp_path, options):
    short = short_model(tmp_path, 64, **options)
    length = options.get("context_tokens", 64)
    prompts = [list(range(5, 5 + n)) for n in (length, length - 1, length - 3, 20)]
    for batch in [[prompt] for prompt in prompts] + [prompts]:
        plain = [short.generate(prompt, 12) for prompt in batch]
        assert short.generate(batch, 12, edit=lambda t: None) == plain
        assert [len(answer.ids) for answer in plain] == [min(12, length - len(prompt) + 1) for prompt in batch]
    assert "".join(short.stream(prompts[1], 12, edit=lambda t: None)) == short.generate(prompts[1], 12).text
    with short.trace(prompts[2], max_new_tokens=4) as t:
        pass
    assert t.output_ids[0] == short.generate(prompts[2], 4).ids
    with pytest.raises(ValueError, match="more than the model's 64"):
        short.trace([[5], list(range(60))], max_new_tokens=6)


def test_every_seed_of_64_bits_is_one(model, text):
    answers = [model.generate(text, 8, temperature=2.0, seed=seed).ids for seed in (0, 2**63, np.uint64(2**64 - 1))]
    assert len({tuple(ids) for ids in answers}) == 3
    for seed in (-1, 2**64, 0.5):
        with pytest.raises(ValueError, match="seed is .*; expected a whole number from 0 to 18446744073709551615"):
            model.generate(text, 1, seed=seed)
