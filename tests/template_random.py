"""Random templates from a grammar. Most render; what would make jinja2's own answer vary (addresses of objects, generators
that are printed, numbers without end) is not in it. Nor are names of variables set: jinja2 hides a variable from macros and
loops above the place where its name is set, which nobody can mean."""

NAMES = ["s", "e", "u", "n", "z", "m", "f", "t", "w", "nil", "l", "el", "names", "mix", "d", "nested", "rows", "nope", "a", "b", "c", "quotes"]
TEXT_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "list", "reverse|join", "first", "last", "string", "tojson", "wordcount",
                "replace('l', 'LL')", "indent(2)", "center(9)", "truncate(6, true, '~')", "escape", "int", "float(1.5)", "default('dd')", "d('x', true)",
                "join('-')", "unique|list", "sort|list", "batch(2)|list"]
LIST_FILTERS = ["length", "list", "first", "last", "join(',')", "reverse|list", "sort|list", "unique|list", "map('string')|list", "select|list",
                "reject|list", "tojson", "min", "max", "sum", "batch(2, 0)|list", "slice(2)|list", "map('upper')|join", "select('string')|list", "string",
                "reject('none')|list", "select('in', l)|list", "map(attribute='name')|list", "selectattr('name')|list", "default([])", "tojson(indent=1)"]
NUMBER_FILTERS = ["abs", "round", "round(1)", "int", "float", "string", "tojson", "default(3)", "round(0, 'ceil')", "string|length"]
METHODS = ["upper()", "lower()", "strip()", "split()", "split('l')", "title()", "startswith('H')", "endswith('d')", "find('o')", "count('l')",
           "replace('o', '')", "rsplit(' ', 1)", "splitlines()", "isdigit()", "removeprefix('He')", "rpartition('l')", "lstrip('H')", "swapcase()", "zfill(14)",
           "get('b')", "items()|list", "keys()|list", "values()|list", "index('l')", "rstrip()", "isupper()", "ljust(12, '.')"]
TESTS = ["defined", "undefined", "none", "string", "mapping", "number", "integer", "float", "boolean", "true", "false", "sequence", "iterable",
         "odd", "even", "divisibleby 3", "divisibleby(2)", "eq 7", "ne('x')", "lt 5", "ge(2)", "in l", "in [1, none, 'a']", "lower", "upper", "callable"]
TEXTS = ["'abc'", '"it\'s"', "'é🙂'", "''", "'a\\nb'", "' x '", "'12'", "'-3.5'", "'l'"]
NUMBERS = ["0", "1", "2", "3", "-1", "10", "7", "0.5", "2.5", "-1.25", "1e3", "1.0"]


class Maker:
    def __init__(self, random):
        self.random = random
        self.choose = random.choice

    def pick(self, makers):
        """One of the weighted (weight, function) pairs' results."""
        return self.random.choices([make for _, make in makers], [weight for weight, _ in makers])[0]()

    def literal(self, depth):
        e = self.expression
        return self.pick([(3, lambda: self.choose(TEXTS)), (4, lambda: self.choose(NUMBERS)), (1, lambda: self.choose(["true", "false", "none", "None", "True"])),
                          (1, lambda: "[" + ", ".join(e(depth - 1) for _ in range(self.random.randrange(4))) + "]"),
                          (1, lambda: "(" + "".join(e(depth - 1) + ", " for _ in range(self.random.randrange(3))) + ")"),
                          (1, lambda: "{" + ", ".join(f"{self.choose(TEXTS + NUMBERS)}: {e(depth - 1)}" for _ in range(self.random.randrange(3))) + "}")])

    def slice(self, depth):
        bound = lambda: self.choose(["", "", "0", "1", "2", "-1", "-2", "5", "n", "none"])
        step = self.choose(["", "", ":", ":1", ":2", ":-1", ":-2"])
        return f"{self.choose(['s', 'u', 'l', 'mix', 'names', 'rows'])}[{bound()}:{bound()}{step}]"

    def place(self):
        return self.choose(["l[0]", "l[-1]", "l[5]", "s[0]", "u[3]", "d['a']", "d.b", "d.x", "nested.x.y[1].z", "nested['x']", "nested.q.r", "rows[0].name",
                            "rows[1]['boss']", "rows[-1].age", "mix[5][0]", "mix[6].k", "names[1]", "loop.index", "loop.last", "loop.first"])

    def filtered(self, depth):
        kind = self.random.randrange(3)
        if kind == 0:
            return f"{self.choose(['s', 'u', 'names[0]', 'quotes', self.atom(depth - 1)])}|{self.choose(TEXT_FILTERS)}"
        if kind == 1:
            return f"{self.choose(['l', 'names', 'mix', 'rows', 'el', 'd', self.atom(depth - 1)])}|{self.choose(LIST_FILTERS)}"
        return f"{self.choose(['n', 'f', 'm', 'z', self.atom(depth - 1)])}|{self.choose(NUMBER_FILTERS)}"

    def atom(self, depth):
        if depth <= 0:
            return self.choose(NAMES + TEXTS + NUMBERS)
        return self.pick([(4, lambda: self.choose(NAMES)), (4, lambda: self.literal(depth)), (2, self.place), (2, lambda: self.slice(depth)),
                          (3, lambda: "(" + self.expression(depth - 1) + ")"),
                          (1, lambda: self.choose(["s", "u", "d", "'Hello'", "nested"]) + "." + self.choose(METHODS)),
                          (1, lambda: f"range({self.choose(['3', '1, 4', '5, 0, -2', 'n'])})|list")])

    def expression(self, depth):
        if depth <= 0:
            return self.atom(0)
        e, a = lambda: self.expression(depth - 1), lambda: self.atom(depth - 1)
        number = lambda: self.choose(["n", "m", "f", "z"] + NUMBERS + ["(" + a() + ")"])
        return self.pick([
            (6, a), (5, lambda: self.filtered(depth)),
            (4, lambda: f"{number()} {self.choose(['+', '-', '*', '/', '//', '%', '+', '-', '*'])} {number()}"),
            (1, lambda: f"{self.choose(['n', 'f', '2', '2.0', '-2'])} ** {self.choose(['2', '3', '0', '-1', 'm'])}"),
            (3, lambda: f"{a()} ~ {a()}"), (2, lambda: f"{a()} + {a()}"), (1, lambda: f"{a()} * {self.choose(['2', 'n', '0', '-1'])}"),
            (3, lambda: f"{a()} {self.choose(['==', '!=', '<', '<=', '>', '>='])} {a()}"), (1, lambda: f"{a()} {self.choose(['<', '=='])} {a()} {self.choose(['<', '!='])} {a()}"),
            (2, lambda: f"{a()} {self.choose(['in', 'not in'])} {self.choose(['l', 's', 'd', 'mix', 'names', '[1, 2]', 'u'])}"),
            (2, lambda: f"{e()} {self.choose(['and', 'or'])} {e()}"), (1, lambda: f"not {e()}"), (1, lambda: f"-{number()}"),
            (3, lambda: f"{a()} is {self.choose(['', '', 'not '])}{self.choose(TESTS)}"),
            (2, lambda: f"{a()} if {a()} else {a()}"), (1, lambda: f"({a()} if {a()})"), (1, lambda: f"{a()}|default({a()})")])

    def text(self):
        return self.choose(["x", " ", "\n", "a b\n", "  \n  ", "{ }", "ü", "\t", "\n\n", "<|end|>", "", ""])

    def tag(self, inside):
        return "{%" + self.choose(["", "", "-", "+"]) + " " + inside + " " + self.choose(["", "", "-", "+"]) + "%}"

    def output(self, depth):
        return "{{" + self.choose([" ", " ", "- "]) + self.expression(depth) + self.choose([" ", " ", " -"]) + "}}"

    def body(self, depth, loop=False):
        return "".join(self.text() + self.statement(depth - 1, loop) for _ in range(self.random.randrange(1, 4))) + self.text()

    def statement(self, depth, loop=False):
        if depth <= 0:
            return self.output(2)
        t, e, body = self.tag, self.expression, lambda inside=loop: self.body(depth, inside)
        return self.pick([
            (6, lambda: self.output(3)), (1, lambda: "{#" + self.choose(["", "-", "+"]) + " note " + self.choose(["", "-", "+"]) + "#}"),
            (3, lambda: t(f"if {e(2)}") + body() + (t(f"elif {e(2)}") + body() if self.random.random() < 0.4 else "") +
             (t("else") + body() if self.random.random() < 0.5 else "") + t("endif")),
            (3, lambda: t(f"for a in {self.choose(['l', 'names', 'rows', 'mix', 's', 'd', 'el', 'nope', 'range(4)', self.slice(1)])}" +
                          self.choose(["", "", " if a", " if a is not none"])) + body(True) + (t("else") + body() if self.random.random() < 0.3 else "") + t("endfor")),
            (1, lambda: t("for a, b in d.items()") + body(True) + t("endfor")),
            (3, lambda: t(f"set {self.choose('abc')} = {e(3)}")), (1, lambda: t("set b") + body(False) + t("endset") + "{{ b }}"),
            (1, lambda: t("set ns = namespace(a=0)") + t("for b in l") + t(f"set ns.a = ns.a ~ {e(1)}") + t("endfor") + "{{ ns.a }}"),
            (1, lambda: t(f"macro g(a, b={e(1)})") + body(False) + t("endmacro") + "{{ g(" + e(1) + ") }}"),
            (1, lambda: t(f"with a = {e(2)}") + body() + t("endwith")), (1, lambda: t("filter upper") + body(False) + t("endfilter")),
            (1, lambda: t("macro h(a)") + "[{{ caller() }}{{ a }}]" + t("endmacro") + t(f"call h({e(1)})") + body(False) + t("endcall")),
            (1 if loop else 0, lambda: t(f"if {e(1)}") + t(self.choose(["break", "continue"])) + t("endif"))])

    def template(self):
        return self.body(self.choose([2, 2, 3]))
