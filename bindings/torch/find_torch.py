"""Prints the folder of the torch that belongs to this interpreter, or nothing.

pip builds packages in an environment of its own, in which torch cannot be imported but whose prefix is still that of
the environment into which the package goes: torch is looked for there by its place.
"""

import importlib.util
import os
import sysconfig

folders = [os.path.join(sysconfig.get_path(name), "torch") for name in ("platlib", "purelib")]
found = next((f for f in folders if os.path.exists(os.path.join(f, "version.py"))), None)
if not found:
    spec = importlib.util.find_spec("torch")
    if spec and spec.origin:
        found = os.path.dirname(spec.origin)
print(found or "")
