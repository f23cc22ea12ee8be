"""TensorFlow's profiler: what it saves names the device's kernels and the operators that asked for them, and its own tools read it."""

import pathlib

import pytest
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2


@tf.function
def work(x):
    return tf.nn.relu(tf.matmul(x, x, name="first_product"))


def profiled(folder):
    with tf.device("/device:RDNA:0"):
        x = tf.random.normal([65, 65])
        work(x).numpy()
        tf.profiler.experimental.start(str(folder))
        work(x).numpy()
        tf.profiler.experimental.stop()
        work(x).numpy()
    (file,) = pathlib.Path(folder).rglob("*.xplane.pb")
    space = xplane_pb2.XSpace()
    space.ParseFromString(file.read_bytes())
    return file, space


def events(plane):
    """(kernel, {statistic: value}, begin, end) of all lines, in picoseconds since the profile's begin."""
    for line in plane.lines:
        for event in line.events:
            stats = {plane.stat_metadata[s.metadata_id].name: s.str_value or s.uint64_value for s in event.stats}
            begin = line.timestamp_ns * 1000 + event.offset_ps
            yield plane.event_metadata[event.metadata_id].name, stats, begin, begin + event.duration_ps


def test_a_profile(tmp_path):
    for turn in range(2):  # the second knows nothing of the first
        file, space = profiled(tmp_path / str(turn))
        (plane,) = [plane for plane in space.planes if plane.name == "/device:GPU:0"]
        found = sorted(events(plane), key=lambda event: event[2])
        by_operator = {stats["tf_op"]: (name, begin, end) for name, stats, begin, end in found if "tf_op" in stats}
        assert by_operator.keys() == {"first_product:MatMul", "Relu:Relu"}, by_operator
        product, relu = by_operator["first_product:MatMul"], by_operator["Relu:Relu"]
        assert "gemm" in product[0] and "relu" in relu[0]
        assert 0 < product[2] - product[1] < 60e12 and product[2] <= relu[1] + 1e9, (product, relu)
        copies = [stats for name, stats, *_ in found if name == "copy to host"]
        assert copies == [{"bytes_transferred": 65 * 65 * 4}]


def test_tools_read_it(tmp_path):
    try:
        from tensorflow.python.profiler.internal import _pywrap_profiler_plugin as tools
    except ImportError:
        pytest.skip("TensorFlow before 2.20 has its tools for profiles in another module")
    file, _ = profiled(tmp_path)
    trace = tools.xspace_to_tools_data([str(file)], "trace_viewer", {})
    trace = trace[0] if isinstance(trace, tuple) else trace
    assert b"/device:GPU:0" in trace and b"gemm" in trace and b"first_product" in trace
