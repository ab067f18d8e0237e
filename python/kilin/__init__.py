"""Kilin: runs Kimi-Linear models on CPUs; every inner value can be read and written.

    import kilin
    model = kilin.load()                            # the embedded model; or a folder, or a GGUF file
    print(model.generate("The LORD said unto", 20))
    with model.trace("The LORD said unto") as t:    # the body runs interleaved with the forward pass
        h = t.layers[3].layer_output.save()
        t.layers[5].mlp_output[:, -1] *= 0.5
    print(t.logits.shape, h.value)

`model.support()` lists the values that every block has; help(kilin.Model) and help(kilin.Trace) say the rest.
"""
from . import errors  # first: the extension raises them
from .errors import Error, InvalidArgument, NotFound, OutOfOrder, ResourceExhausted, Unavailable
from ._kilin import __version__
from .arrays import Array, Saved
from .generation import Generation
from .model import Model, embedded_model, load
from .prompts import Prompt
from .trace import StepView, Trace

__all__ = ["Array", "Error", "Generation", "InvalidArgument", "Model", "NotFound", "OutOfOrder", "Prompt", "ResourceExhausted",
           "Saved", "StepView", "Trace", "Unavailable", "embedded_model", "errors", "load"]
