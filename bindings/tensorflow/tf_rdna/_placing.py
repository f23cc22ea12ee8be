"""Where an operator that is made now is asked to be."""


def asks_for(kind):
    """Whether it is asked to be on a device of |kind|, "RDNA" or "CPU", by the innermost scope that names a device: of a graph's
    own, else the one that eager execution is in. Without a scope no kind is."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    scopes = [context.context().device_name or ""]
    if not context.executing_eagerly():
        scopes = [str(scope.display_name) for scope in ops.get_default_graph()._device_function_stack.peek_objs()] + scopes
    innermost = next((scope for scope in scopes if ":" in scope), "")
    return f"{kind}:" in innermost.rpartition("/")[2]
