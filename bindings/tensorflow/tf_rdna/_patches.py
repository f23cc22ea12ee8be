"""Changes in modules of TensorFlow and Keras as they are imported, so that this package imports neither."""

import importlib.util
import sys


class _Finder:
    """Finds no module itself: it changes those of |patches|, name: function, behind what finds them."""

    def __init__(self, patches):
        self.patches = patches

    def find_spec(self, name, path=None, target=None):
        patch = self.patches.pop(name, None)
        if patch is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            patch(module)

        spec.loader.exec_module = exec_module
        return spec


def apply(patches):
    """Each function of |patches| with its module, at once where that is imported already."""
    later = {}
    for name, patch in patches.items():
        if name in sys.modules:
            patch(sys.modules[name])
        else:
            later[name] = patch
    if later:
        sys.meta_path.insert(0, _Finder(later))
