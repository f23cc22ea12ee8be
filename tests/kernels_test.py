"""`rdna kernels --where`: the files and lines that it names hold what it says, for every kernel."""
import json
import re
import unittest

from rdna_program import ROOT, output, run


def made_by(before, line, name, names):
    """Whether a line, or it and the one before, such as "RDNA_KERNEL(256) name##_waves_##suffix(struct args a)" can make kernel |name| of
    |names|: of a pasted name the pieces with an underscore at an end are written out, the others are parameters; a name
    that is not pasted is the kernel's or a parameter, and then no kernel's."""
    for pasted in re.findall(r"([\w#]+)\)?\((?:struct|const void)\b", line):
        pieces = [re.escape(piece) if piece.strip("_") != piece else r"\w*" for piece in pasted.split("##")]
        if pasted == name or (re.fullmatch("".join(pieces), name) and pasted not in names):
            return re.search(r"RDNA_(HOST_)?KERNEL", before + line) is not None
    return False


class Where(unittest.TestCase):
    def test_every_place_holds_what_is_claimed(self):
        sources, wrong = {}, []
        kernels = json.loads(output("kernels", "--where", "all", "--json"))
        names = {kernel["kernel"] for kernel in kernels}
        for kernel in kernels:
            name, maker = kernel["kernel"], kernel["case_maker"]
            for what in ("device", "twin", "cases"):
                place = kernel[what]
                lines = sources.setdefault(place["file"], (ROOT / place["file"]).read_text().splitlines())
                before, line = lines[place["line"] - 2:place["line"]]
                holds = f"RDNA_CASE_MAKER({maker})" in line if what == "cases" else made_by(before, line, name, names)
                if not holds:
                    wrong.append(f"{name}: {what}: {place['file']}:{place['line']}: {line.strip()}")
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_a_kernel_by_name_and_by_a_part(self):
        one = json.loads(output("kernels", "--where", "softmax_held_f16", "--json"))
        self.assertEqual([kernel["kernel"] for kernel in one], ["softmax_held_f16"])
        self.assertEqual({route["name"] for route in one[0]["routes"]}, {"waves", "held"})
        some = json.loads(output("kernels", "--where", "softmax_held", "--json"))
        self.assertEqual({kernel["kernel"] for kernel in some}, {f"softmax_held_{t}" for t in ("f32", "f16", "bf16")})
        self.assertIn(b"src/math/softmax/softmax.hip:", output("kernels", "--where", "softmax_held_f16"))
        result = run("kernels", "--where", "no_such_kernel")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"'no_such_kernel'", result.stderr)

    def test_the_document_is_what_the_tables_say(self):
        made, committed = output("kernels", "--markdown").decode(), (ROOT / "docs/kernels.md").read_text()
        self.assertEqual(made.splitlines(), committed.splitlines(), "rdna kernels --markdown > docs/kernels.md")


if __name__ == "__main__":
    unittest.main()
