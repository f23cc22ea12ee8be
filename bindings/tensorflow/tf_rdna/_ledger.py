"""Where TensorFlow puts operators, as it says itself: what soft placement moves to the processor is seen nowhere else."""

import collections
import contextlib

from ._placing import asks_for

PARTS_OF_FUNCTIONS = ("_Arg", "_Retval", "_DeviceArg", "_DeviceRetval", "_Send", "_Recv", "_HostSend", "_HostRecv", "NoOp")


class Placement:
    """|device|, |processor|: {operator: how often} of those on RDNA and on the CPU; |moved|: those of the latter that nobody asked
    to be there."""

    def __init__(self):
        self.device, self.processor, self.moved = collections.Counter(), collections.Counter(), collections.Counter()

    def _count(self, operator, place, asked):
        on_device = "device:RDNA:" in place
        (self.device if on_device else self.processor)[operator] += 1
        if not on_device and not asked:
            self.moved[operator] += 1

    def _look_at(self, graphs):
        """A function's operators, by the graph that was asked for and those that each device got."""
        wanted = {node.name: node.device for node in graphs.pre_optimization_graph.node if node.op not in PARTS_OF_FUNCTIONS}
        if len(wanted) == 1:  # an operator by itself, which was looked at when it ran
            return
        for part in graphs.partition_graphs:
            for node in part.node:
                if node.op not in PARTS_OF_FUNCTIONS:
                    self._count(node.op, node.device, "CPU:" in wanted.get(node.name, ""))


@contextlib.contextmanager
def placement(refuse=False):
    """`with tf_rdna.placement() as seen:` counts in seen.device, seen.processor and seen.moved what TensorFlow runs on the device, on
    the processor, and there without having been asked to: each operator by itself as often as it runs, those of a function once,
    when it is first called meanwhile. With |refuse| what has been moved is a RuntimeError at the end. TensorFlow runs operators more
    slowly meanwhile. What it moves within a scope of the device it refuses itself after tf.config.set_soft_device_placement(False)."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import op_callbacks

    seen = Placement()

    def look(operator, inputs, attributes, outputs, op_name=None, graph=None):
        if graph is None and outputs and not operator.startswith("__"):  # a function, whose operators are counted
            seen._count(operator, outputs[0].device, asks_for("CPU"))

    context.ensure_initialized()
    op_callbacks.add_op_callback(look)
    context.enable_run_metadata()
    try:
        yield seen
    finally:
        graphs = context.export_run_metadata().function_graphs
        context.disable_run_metadata()
        op_callbacks.remove_op_callback(look)
        for each in graphs:
            seen._look_at(each)
    if refuse and seen.moved:
        raise RuntimeError(f"TensorFlow has moved operators to the processor, which have no kernel for the device: {dict(seen.moved)}")
