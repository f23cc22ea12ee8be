"""rdna/_types.py: that it is what tools/python_types.py makes of the headers of today, and that the compiler lays structs out as ctypes does."""
import ctypes
import pathlib
import subprocess
import sys
import tempfile
import unittest

from arrays_tools import ROOT, ra  # makes tools/ and the package importable

import python_types

from rdna import _types
from rdna.arrays import _core

STRUCTS = {name: getattr(_types, name) for name in _types.STRUCTS}


class Types(unittest.TestCase):
    def test_file_is_of_today(self):
        done = subprocess.run([sys.executable, str(ROOT / "tools/python_types.py"), "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_a_change_is_found(self):
        self.assertEqual(python_types.text(), python_types.OUT.read_text())
        reader = python_types.Reader()
        reader.text = "RDNA_API const char *rdna_some_name(int number, const rdna_tensor *x, rdna_scalar p, void (*done)(void *), const int64_t sizes[3]);\n" \
                      "RDNA_CHECKED rdna_status rdna_other(void);"
        self.assertEqual(reader.functions(), {"rdna_some_name": ("c_char_p", ["c_int", "c_void_p", "rdna_scalar", "c_void_p", "c_void_p"]), "rdna_other": ("c_int", [])})
        reader.bodies["rdna_odd"] = "float p, q; int64_t shape[2][RDNA_MAX_RANK]; const char *name; unsigned int bits; rdna_status (*run)(void *data); rdna_scalar s;"
        reader.struct("rdna_odd")
        self.assertEqual(reader.structs["rdna_odd"], [("p", "c_float"), ("q", "c_float"), ("shape", "c_int64 * 8 * 2"), ("name", "c_char_p"), ("bits", "c_uint"),
                                                      ("run", "c_void_p"), ("s", "rdna_scalar")])

    def test_compiler_agrees(self):
        """Sizes and places of all fields, by a program in C."""
        self.assertGreater(len(STRUCTS), 50)
        headers = sorted(p.relative_to(ROOT / "include") for p in (ROOT / "include/rdna").rglob("*.h"))
        lines = [f'#include "{h}"' for h in headers] + ["#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
        for name, struct in STRUCTS.items():
            lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
            lines += [f'  printf("{name}.{field} %zu\\n", offsetof({name}, {field}));' for field, *_ in struct._fields_]
        with tempfile.TemporaryDirectory() as folder:
            source, program = pathlib.Path(folder) / "places.c", pathlib.Path(folder) / "places"
            source.write_text("\n".join(lines + ["  return 0;", "}"]))
            subprocess.run(["cc", "-I", str(ROOT / "include"), "-o", str(program), str(source)], check=True)
            said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
        ours = [f"{name} {ctypes.sizeof(struct)}" if field is None else f"{name}.{field} {getattr(struct, field).offset}"
                for name, struct in STRUCTS.items() for field in (None, *(f for f, *_ in struct._fields_))]
        self.assertEqual(said.splitlines(), ours)

    def test_functions_are_there(self):
        for name in _types.FUNCTIONS:
            function = getattr(_core.library, name)
            self.assertEqual((function.restype, list(function.argtypes)), _types.function(name))
        self.assertEqual(_types.function("rdna_array_map"), (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, _types.rdna_scalar, _types.rdna_scalar, ctypes.c_void_p]))
        with self.assertRaisesRegex(AttributeError, "no struct 'rdna_nothing'"):
            _types.rdna_nothing
        with self.assertRaises(AttributeError):
            _core.library.rdna_no_such_thing
        self.assertEqual(_core.library.rdna_status_name(1), b"INVALID_ARGUMENT")
        self.assertEqual(ra.asarray([1.0]).shape, (1,))


if __name__ == "__main__":
    unittest.main()
