"""The exceptions that Kilin raises. Every message names the thing, its value and what was expected."""


class Error(RuntimeError):
    """Anything that the engine refuses or can't do; the base of all below."""


class InvalidArgument(Error, ValueError):
    """An argument that can never be right."""


class NotFound(Error, LookupError):
    """A file, a tensor or a name that is not there."""


class Unavailable(Error, AttributeError):
    """A value that a block of this kind does not have: decays of an MLA block, experts of a dense one."""


class OutOfOrder(Error):
    """A value that the forward pass has left behind. Read values in the order of the pass."""


class ResourceExhausted(Error, MemoryError):
    """A pool or the memory is full."""
