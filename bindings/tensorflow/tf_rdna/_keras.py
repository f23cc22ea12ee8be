"""Keras asks XLA to compile every model, which has no compiler for this device and ends fit and predict with an error."""

import importlib.util
import sys


def _patch(module):
    module.model_supports_jit = lambda model: False


class _Finder:
    """Patches Keras' trainer as it is imported, so that this package imports neither Keras nor TensorFlow."""

    name = "keras.src.trainers.trainer"

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _patch(module)

        spec.loader.exec_module = exec_module
        return spec


def without_xla():
    module = sys.modules.get(_Finder.name)
    if module is not None:
        _patch(module)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
