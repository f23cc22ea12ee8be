"""Chat templates against jinja2, set up as Hugging Face's transformers sets it up: what both render must be the same
text, and what one refuses the other must refuse."""
import copy
import datetime
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

try:
    import jinja2.ext
    import jinja2.sandbox
except ImportError:  # perhaps Debian's python has it, when another one comes first
    if sys.executable != "/usr/bin/python3" and subprocess.run(["/usr/bin/python3", "-c", "import jinja2"], capture_output=True).returncode == 0:
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: there is no jinja2 (Debian: python3-jinja2)")
    sys.exit(77)

import template_cases
import template_families
import template_random
from rdna_program import run


class Generation(jinja2.ext.Extension):
    """{% generation %}, which marks a model's own words and prints them as they are."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("words"), [], [], body).set_lineno(line)

    def words(self, caller):
        return caller()


def environment():
    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.TemplateError(message)

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda format: datetime.datetime.now().strftime(format)
    return made


ENVIRONMENT = environment()
compiled = functools.lru_cache(maxsize=16)(ENVIRONMENT.from_string)


def expected(template, variables):
    """jinja2's text, or None and its reason."""
    try:
        return compiled(template).render(**copy.deepcopy(variables)), None  # the filter indent appends to lists
    except Exception as error:  # any kind is a refusal
        return None, f"{type(error).__name__}: {error}"


class Templates(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.template, self.variables = os.path.join(folder.name, "x.jinja"), os.path.join(folder.name, "x.json")

    def got(self, template, variables):
        """Our text, or None and the reason."""
        with open(self.template, "w", newline="") as file:
            file.write(template)
        with open(self.variables, "w") as file:
            json.dump(variables, file)
        result = run("template", self.template, "--json", self.variables)
        if result.returncode:
            self.assertEqual((result.returncode, result.stdout), (1, b""))
            self.assertRegex(result.stderr.decode(), r"^rdna: [^\n]{15,}\n$" if "\n" not in template else "^rdna: .{15}")
            return None, result.stderr.decode()
        return result.stdout.decode(), None

    def same(self, template, variables, refused=None):
        """Both render the same text, or both refuse; |refused| says which it must be, where that is known."""
        want, why = expected(template, variables)
        got, reason = self.got(template, variables)
        if reason and "64 bits" in reason and want is not None:
            return "too large"  # Python's integers have no end
        self.assertEqual(got, want, f"\n{template[:1000]}\njinja2: {why}\nrdna:   {reason}")
        if refused is not None:
            self.assertEqual(got is None, refused, f"{template}: {why}")
        return "refused" if got is None else "rendered"


class Small(Templates):
    def test_expressions(self):
        for expression in template_cases.EXPRESSIONS:
            with self.subTest(expression):
                self.same("{{ " + expression + " }}", template_cases.VARIABLES)

    def test_refused_expressions(self):
        for expression in template_cases.REFUSED:
            with self.subTest(expression):
                self.same("{{ " + expression + " }}", template_cases.VARIABLES, refused=True)

    def test_statements(self):
        for template in template_cases.STATEMENTS:
            with self.subTest(template):
                self.same(template, template_cases.VARIABLES)


class Families(Templates):
    def test_conversations(self):
        for name, template in template_families.TEMPLATES.items():
            outcomes = []
            for number, variables in enumerate(template_families.conversations()):
                with self.subTest(name, conversation=number):
                    outcomes.append(self.same(template, variables))
            self.assertGreater(outcomes.count("rendered"), len(outcomes) // 3, name)


class Random(Templates):
    def test_templates_from_a_grammar(self):
        seed = int(os.environ.get("RDNA_TEST_SEED", 1))
        outcomes = []
        for i in range(int(os.environ.get("RDNA_TEST_COUNT", 400))):
            maker = template_random.Maker(random.Random(f"{seed} {i}"))
            with self.subTest(seed=seed, number=i):
                outcomes.append(self.same(maker.template(), template_cases.VARIABLES))
        self.assertGreater(outcomes.count("rendered"), 2 * len(outcomes) // 5)
        self.assertLess(outcomes.count("too large"), len(outcomes) // 50)


if __name__ == "__main__":
    unittest.main()
