"""Traces beside others: nested, in threads, interrupted, by the hundred."""
import gc
import signal
import threading

import numpy as np
import pytest


def test_a_trace_may_run_inside_another_and_in_threads(model, text):
    expected = model.logits(text)
    with model.trace(text) as t:
        t.layers[2].layer_output
        np.testing.assert_array_equal(model.logits(text), expected)
    np.testing.assert_array_equal(t.logits, expected)
    found = []

    def work():
        for _ in range(3):
            with model.trace(text) as mine:
                mine.layers[1].layer_output
            found.append(np.array_equal(mine.logits, expected))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 9


def test_two_traces_of_one_model_run_interleaved(model, text):
    with model.trace(text) as a, model.trace("And it came to pass") as b:
        for layer in range(6):
            a.layers[layer].layer_output
            b.layers[layer].layer_output
    np.testing.assert_array_equal(b.logits, model.logits("And it came to pass"))
    np.testing.assert_array_equal(a.logits, model.logits(text))


@pytest.mark.parametrize("work", [
    lambda model, ids: model.trace(ids, max_new_tokens=500_000).step(499_999).input_ids,
    lambda model, ids: model.generate(ids, 500_000, edit=lambda t: None),
], ids=["trace", "edits"])
def test_an_interrupt_ends_what_takes_long(model, text, work):
    class Interrupt(Exception):
        pass

    def interrupt(*_):
        raise Interrupt
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Interrupt):
            work(model, model.tokenize(text))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert model.generate(text, 2).ids


def test_two_hundred_traces_leak_nothing(model):
    def count():
        gc.collect()
        with open("/proc/self/status") as status:
            threads = next(int(line.split()[1]) for line in status if line.startswith("Threads"))
        with open("/proc/self/statm") as statm:
            return threads, int(statm.read().split()[1]) * 4096

    def trace(n):
        try:
            with model.trace([[1, 2, 3], [4, 5, 6][: 3 - n % 2]]) as t:
                x = t.layers[0].layer_output
                t.layers[3].self_attn.attention_scores
                if n % 4 == 1:
                    raise KeyError
                if n % 4 == 2:
                    t.stop()
            if n % 4 == 3:
                t.logits
            return x
        except KeyError:
            return None

    for n in range(20):
        trace(n)
    threads, resident = count()
    for n in range(200):
        trace(n)
    now = count()
    assert now[0] == threads and now[1] <= resident + (8 << 20)
