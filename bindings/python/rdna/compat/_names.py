"""What install() of the modules here has in common: packages that are made while a process runs."""

import importlib.machinery
import importlib.util
import sys
import types


def module(name, package, maker, **names):
    made = types.ModuleType(name, f"Made by {maker}.install().")
    made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=package)
    if package:
        made.__path__ = []
    vars(made).update(names)
    return made


def _installed(name):
    """Where a package |name| that install() did not make lies, or None."""
    there = sys.modules.get(name)
    if there is not None:
        return None if getattr(there, "_of_rdna", False) else getattr(there, "__file__", None) or repr(there)
    spec = importlib.util.find_spec(name)
    return None if spec is None else spec.origin or str(list(spec.submodule_search_locations or []))


def begin(name, replace, instead):
    """Whether the package is to be made: not if it is there already. ImportError where another of that name is installed, unless |replace|."""
    there = _installed(name)
    if there is not None and not replace:
        raise ImportError(f"a package {name} is installed at {there}: install(replace=True) takes its name in this process, and {instead} needs no install()")
    if getattr(sys.modules.get(name), "_of_rdna", False):
        return False
    for other in [other for other in sys.modules if other.split(".")[0] == name]:
        del sys.modules[other]
    return True
