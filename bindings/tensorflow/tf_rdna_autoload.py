"""Python imports this when it starts, by tf_rdna.pth: whoever imports TensorFlow gets tf_rdna too, so that Keras compiles for the
device although nobody has imported tf_rdna by name. It costs nothing else."""

import sys


class _BesideTensorflow:
    """Finds nothing itself."""

    def find_spec(self, name, path=None, target=None):
        if name == "tensorflow":
            sys.meta_path.remove(self)
            import tf_rdna  # noqa: F401  it imports neither TensorFlow nor Keras


sys.meta_path.insert(0, _BesideTensorflow())
