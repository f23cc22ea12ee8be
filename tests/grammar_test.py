"""Grammars and JSON schemas as masks of tokens: random ones, walked at random. What is written must be what the schema
allows, and what the schema allows can be written, whatever tokens it is cut into. `grammar_test.py --count 1000` for more.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

import rdna_program

WALK = os.environ.get("RDNA_GRAMMAR_WALK", str(rdna_program.ROOT / "build/release/bin/grammar_walk"))
COUNT = 100
if "--count" in sys.argv:
    at = sys.argv.index("--count")
    COUNT = int(sys.argv[at + 1])
    del sys.argv[at : at + 2]


def ask(vocabulary, questions):
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    result = subprocess.run([WALK, str(vocabulary)], input=lines.encode(), capture_output=True, timeout=600)
    assert result.returncode == 0, result.stderr.decode()
    answers = [json.loads(line) for line in result.stdout.decode().split("\n")[:-1]]
    assert len(answers) == len(questions), (len(answers), len(questions))
    return answers


# ---- JSON Schema, by its specification ----

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def equal(a, b):
    return type(a) is type(b) and a == b or (is_type(a, "number") and is_type(b, "number") and a == b)


def valid(value, schema, root):
    """Whether |schema|, of those that random_schema makes, allows |value|."""
    if schema is True:
        return True
    if "$ref" in schema:
        return valid(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    types = schema.get("type")
    if types is not None and not any(is_type(value, name) for name in ([types] if isinstance(types, str) else types)):
        return False
    if "const" in schema and not equal(value, schema["const"]):
        return False
    if "enum" in schema and not any(equal(value, each) for each in schema["enum"]):
        return False
    if "anyOf" in schema and not any(valid(value, each, root) for each in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(valid(value, each, root) for each in schema["oneOf"]) != 1:
        return False
    if not all(valid(value, each, root) for each in schema.get("allOf", [])):
        return False
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1e9):
            return False
        if "pattern" in schema and not re.search(schema["pattern"], value, re.ASCII):
            return False
        return "format" not in schema or bool(re.fullmatch(FORMATS[schema["format"]][0], value))
    if is_type(value, "number"):
        return (schema.get("minimum", -1e99) <= value <= schema.get("maximum", 1e99)
                and schema.get("exclusiveMinimum", -1e99) < value < schema.get("exclusiveMaximum", 1e99))
    if isinstance(value, list):
        prefix = schema.get("prefixItems", [])
        return (schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1e9)
                and all(valid(each, part, root) for each, part in zip(value, prefix))
                and (schema.get("items") is not False or len(value) <= len(prefix))
                and all(valid(each, schema.get("items", True), root) for each in value[len(prefix):]))
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        return (all(name in value for name in schema.get("required", []))
                and all(valid(each, properties[name], root) if name in properties
                        else more is not False and valid(each, more, root) for name, each in value.items()))
    return True


FORMATS = {
    "date": (r"\d{4}-\d\d-\d\d", ["2024-02-29", "1999-12-31", "2023-04-30"]),
    "time": (r"\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", ["23:59:59Z", "00:00:00.25+05:30"]),
    "date-time": (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", ["2000-02-29T12:30:00Z"]),
    "uuid": (r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", ["0123abcd-0123-4567-89AB-0123456789ef"]),
    "email": (r"[^@ ]+@[^@ ]+\.[^@ ]+", ["a.b@example.org"]),
    "ipv4": (r"(\d{1,3}\.){3}\d{1,3}", ["192.168.0.255", "8.8.8.8"]),
    "hostname": (r"[a-zA-Z0-9.-]+", ["a", "example.org"]),
    "uri": (r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+", ["https://example.org:8080/a/b%20c?d=e&f#g"]),
}
PATTERNS = {
    r"^[a-z]{2,5}$": ["ab", "zzzzz"],
    r"^\d{3}-\d{4}$": ["555-1234"],
    r"^(red|green|blue)( light)?$": ["red", "blue light"],
    r"[A-Z]\w+": ["x Abc", "Zz"],
    r"^#[0-9a-fA-F]{6}": ["#00ffAA", "#123456 and more"],
    r'^"[^"\\]*"$': ['"quoted"', '""'],
    r"^\S+\s\S+$": ["ab cd", "a\tb"],
    r"^.{1,4}$": ["\u6f22\u5b57", "a", "\\\"\\\""],
    r"(?:ab)*c$|^x": ["xyz", "zzababc"],
    r"^a{3,}\.b?$": ["aaa.", "aaaaa.b"],
    r"^[^a-z]{40,60}$": ["A" * 40, "0" * 60],
}
WORDS = ["name", "city", "x", "na", "names", "\u00fcber", "a\"b", "tab\there", "count", "", "]", "-", "\\"]


class Maker:
    """Random schemas, and random values that they allow."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.root = {}

    def schema(self):
        self.root = self.part(0)
        if self.random.random() < 0.3:
            tree = {"type": "object", "properties": {"value": self.part(2), "next": {"$ref": "#/$defs/tree"},
                                                     "list": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
                    "required": ["value"], "additionalProperties": False}
            self.root = {"type": "object", "properties": {"of": self.root, "tree": {"$ref": "#/$defs/tree"}},
                         "required": ["of"], "$defs": {"tree": tree}}
        return self.root

    def part(self, depth):
        r = self.random
        kinds = ["string", "length", "pattern", "format", "integer", "range", "real", "number", "boolean", "enum", "const", "null", "types"]
        if depth < 3:
            kinds += ["object", "array", "tuple"] * 3 + ["any", "one", "all", "map", "nullable"]
        kind = "object" if depth == 0 else r.choice(kinds)
        deeper = depth + 1
        if kind == "string":
            return {"type": "string", "description": "words"}
        if kind == "length":
            least = r.choice([0, 0, 1, 3, 40])
            part = {"type": "string", "minLength": least, "maxLength": least + r.choice([0, 1, 5, 70])}
            del part[r.choice(["minLength", "maxLength", "type"])]
            return part
        if kind == "pattern":
            return {"type": "string", "pattern": r.choice(list(PATTERNS))}
        if kind == "format":
            return {"type": "string", "format": r.choice(list(FORMATS))}
        if kind == "range":
            low = r.choice([0, 1, -5, -1000, 37, 10**9])
            limits = {r.choice(["minimum", "exclusiveMinimum"]): low,
                      r.choice(["maximum", "exclusiveMaximum"]): low + r.choice([2, 9, 100, 12345])}
            if r.random() < 0.3:
                del limits[r.choice(list(limits))]
            return {"type": "integer", **limits}
        if kind == "real":
            low = r.choice([0, -1, -20, 5])
            return {"type": "number", r.choice(["minimum", "exclusiveMinimum"]): low,
                    r.choice(["maximum", "exclusiveMaximum"]): low + r.choice([1, 2, 100])}
        if kind in ("integer", "number", "boolean", "null"):
            return {"type": kind}
        if kind == "enum":
            return {"enum": r.sample([*WORDS, 1, 2.5, None, True, [1, "a"], {"k": "v"}], r.randint(1, 5))}
        if kind == "const":
            return {"const": r.choice([*WORDS, 0, False, {"a": [1]}])}
        if kind == "types":
            return {"type": r.sample(["string", "integer", "boolean", "null"], r.randint(1, 3))}
        if kind == "object":
            names = r.sample(WORDS, r.randint(0, 5))
            part = {"type": "object", "properties": {name: self.part(deeper) for name in names},
                    "required": [name for name in names if r.random() < 0.5]}
            if r.random() < 0.4:
                part["additionalProperties"] = r.choice([False, True, {"type": "integer"}])
            return part
        if kind == "map":
            return {"type": "object", "additionalProperties": self.part(deeper)}
        if kind == "array":
            least = r.choice([0, 0, 1, 3])
            part = {"type": "array", "items": self.part(deeper), "minItems": least, "maxItems": least + r.choice([0, 1, 4, 50])}
            if r.random() < 0.4:
                del part[r.choice(["minItems", "maxItems"])]
            return part
        if kind == "tuple":
            part = {"type": "array", "prefixItems": [self.part(deeper) for _ in range(r.randint(1, 3))],
                    "items": r.choice([False, {"type": "null"}])}
            if r.random() < 0.5:
                part["minItems"] = r.randint(0, len(part["prefixItems"]))
            return part
        if kind == "any":
            return {"anyOf": [self.part(deeper) for _ in range(r.randint(1, 3))]}
        if kind == "nullable":
            return {"anyOf": [self.part(deeper), {"type": "null"}]}
        if kind == "one":
            return {"oneOf": [{"type": "object", "properties": {"kind": {"const": tag}, "v": self.part(deeper)},
                               "required": ["kind", "v"]} for tag in ("a", "b")] + [{"type": "boolean"}]}
        return {"allOf": [{"type": "object", "properties": {"p": self.part(deeper)}, "required": ["p"]},
                          {"type": "object", "properties": {"q": self.part(deeper), "p": True}}]}

    def text(self, least, most):
        characters = "abc XYZ09_-.,:{}[]'\u00e9\u6f22\U0001f642\"\\/\n\t"
        return "".join(self.random.choice(characters) for _ in range(self.random.randint(least, most)))

    def value(self, schema, depth=0):
        """A value that |schema| allows, its properties in order."""
        r = self.random
        if schema is True:
            return r.choice([1, "any", [None], {"k": 1.5}])
        if "$ref" in schema:
            return self.value(self.root["$defs"][schema["$ref"].removeprefix("#/$defs/")], depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return r.choice(schema["enum"])
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self.value(r.choice(schema[keyword]), depth + 1)
        if "allOf" in schema:
            return {name: each for part in schema["allOf"] for name, each in self.value(part, depth + 1).items()
                    if name != "p" or part is schema["allOf"][0]}
        kind = schema.get("type", "string")
        kind = r.choice(kind) if isinstance(kind, list) else kind
        if kind == "string":
            if "pattern" in schema:
                return r.choice(PATTERNS[schema["pattern"]])
            if "format" in schema:
                return r.choice(FORMATS[schema["format"]][1])
            least = schema.get("minLength", 0)
            return self.text(least, schema.get("maxLength", least + 12))
        if kind in ("integer", "number"):
            return self.number(schema, kind)
        if kind in ("boolean", "null"):
            return r.choice([True, False]) if kind == "boolean" else None
        if kind == "array":
            prefix, items = schema.get("prefixItems", []), schema.get("items", True)
            least = schema.get("minItems", 0)
            most = min(schema.get("maxItems", 1e9), len(prefix) if items is False else 1e9, least + 4 if depth < 6 else least)
            count = r.randint(least, int(max(least, most)))
            return [self.value(prefix[i] if i < len(prefix) else items, depth + 1) for i in range(count)]
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", False)
        out = {name: self.value(each, depth + 1) for name, each in properties.items()
               if name in schema.get("required", []) or r.random() < (0.5 if depth < 6 else 0)}
        if more is not False and r.random() < 0.7:
            for name in ("nam", "namesake", "other", "\u00fcb", "zz"):
                out[name] = self.value(more, depth + 1)
        return out

    def number(self, schema, kind):
        least, most = schema.get("minimum", -10**6), schema.get("maximum", 10**6)
        if "exclusiveMinimum" in schema:
            least = schema["exclusiveMinimum"] + (1 if kind == "integer" else 0.25)
        if "exclusiveMaximum" in schema:
            most = schema["exclusiveMaximum"] - (1 if kind == "integer" else 0.25)
        least, most = min(least, most) if "maximum" in schema or "exclusiveMaximum" in schema else least, max(least, most)
        if kind == "integer":
            return self.random.choice([least, most, self.random.randint(least, most)])
        return self.random.choice([least, most, round(self.random.uniform(least, most), 3)])


class Schemas(unittest.TestCase):
    def walk(self, vocabulary, seeds, walks):
        makers = [Maker(seed) for seed in seeds]
        questions = []
        for maker in makers:
            schema = maker.schema()
            values = [maker.value(schema) for _ in range(4)]
            for value in values:
                self.assertTrue(valid(value, schema, schema), f"the test's own value {value} of {schema}")
            escaped = '"pattern"' not in json.dumps(schema)
            texts = [json.dumps(values[0], ensure_ascii=escaped), json.dumps(values[1], ensure_ascii=False, separators=(",", ":")),
                     json.dumps(values[2], indent=2, ensure_ascii=False), json.dumps(values[3], indent="\t", ensure_ascii=escaped)]
            texts = [text.replace("\\u00fc", "\u00fc") for text in texts]  # names, and what patterns match, have no such escapes
            questions.append({"schema": schema, "walks": walks, "seed": maker.random.randint(0, 1 << 30), "texts": texts})
        ended = total = 0
        for question, answer in zip(questions, ask(vocabulary, questions)):
            schema = question["schema"]
            self.assertNotIn("error", answer, f"{answer.get('error')}\n{json.dumps(schema)}")
            for text in answer["walks"]:
                total += 1
                if text is None:
                    continue
                ended += 1
                try:
                    value = json.loads(text)
                except ValueError as error:
                    self.fail(f"{error}: {text!r}\n{json.dumps(schema)}")
                self.assertTrue(valid(value, schema, schema), f"{text}\n{json.dumps(schema)}")
            for text, (taken, may_end) in zip(question["texts"], answer["taken"]):
                size = len(text.encode())
                self.assertEqual((taken, may_end), (size, True), f"{text.encode()[:taken]!r} of {text}\n{json.dumps(schema)}")
        self.assertGreater(ended, 0.9 * total)

    def test_random_schemas(self):
        self.walk(rdna_program.DEMO_MODEL, range(COUNT), 6)

    def test_a_vocabulary_of_150_000(self):
        self.walk("made", range(1000, 1000 + COUNT // 4), 3)

    def test_any_object(self):
        answer = ask(rdna_program.DEMO_MODEL, [{"walks": 20, "seed": 1, "texts": ['{"a": [1, -2.5e3, "\\u00e9", {}], "b": null}', "[]"]}])[0]
        for text in filter(None, answer["walks"]):
            self.assertIsInstance(json.loads(text), dict)
        self.assertEqual(answer["taken"], [[43, True], [0, False]])

    def test_what_a_schema_forbids(self):
        rows = [
            ({"type": "integer", "minimum": 3, "maximum": 120}, "2", "3", "99", "120", "121", "03"),
            ({"type": "number", "exclusiveMinimum": -2, "maximum": 1}, "-2", "-2.0", "-1.99", "0", "1", "1.0", "1.01"),
            ({"type": "string", "maxLength": 2}, '""', '"\\u00e9a"', '"\\ud83d\\ude42b"', '"abc"'),
            ({"type": "string", "format": "date"}, '"2023-02-29"', '"2024-02-29"', '"1900-02-29"', '"2023-04-31"', '"2023-13-01"'),
            ({"type": "object", "properties": {"ab": {"type": "null"}}, "additionalProperties": {"type": "boolean"}},
             '{"ab": null}', '{"ab": true}', '{"a": true}', '{"abc": true, "": false}', '{"\\u0061b": true}'),
            ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "required": ["b"]},
             "{}", '{"b": null}', '{"a": null, "b": null}', '{"a": null}', '{"a": null,}', '{, "b": null}'),
            ({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3}, "[true]", "[true,false]", "[true,true,true,true]"),
            ({"type": "string", "pattern": r"^[\x41-\x5A]\u00e9\x2f$"}, '"A\u00e9/"', '"Z\u00e9/"', '"@\u00e9/"', '"[\u00e9/"', '"A\u00ea/"', '"A\u00e9o"'),
            ({"type": "string", "pattern": "^a|b$"}, '"az"', '"zb"', '"za"', '"a"'),
            ({"allOf": [{"type": "integer", "minimum": 2}, {"maximum": 4}]}, "1", "2", "4", "5"),
        ]
        for (schema, *texts), answer in zip(rows, ask("made", [{"schema": row[0], "texts": list(row[1:]), "seed": 3} for row in rows])):
            for text, (taken, may_end) in zip(texts, answer["taken"]):
                whole = taken == len(text.encode()) and may_end
                try:
                    wanted = valid(json.loads(text), schema, schema) and not (text.startswith('{"\\u'))
                    if schema.get("format") == "date":
                        wanted = wanted and text in ('"2024-02-29"',)
                except ValueError:
                    wanted = False
                self.assertEqual(whole, wanted, f"{text} of {schema}")

    def test_refusals(self):
        rows = [
            ({"not": {}}, "#: the keyword not"),
            ({"properties": {"a": {"items": {"uniqueItems": True}}}}, "#/properties/a/items: the keyword uniqueItems"),
            ({"type": "array", "items": {"type": "string", "format": "idn-email"}}, "#/items: the format idn-email"),
            ({"type": "string", "pattern": "(?=a)"}, "looking ahead"),
            ({"type": "string", "pattern": "(a)\\1"}, "\\1"),
            ({"type": "string", "pattern": "a**"}, "repetition of a repetition"),
            ({"type": "string", "pattern": "[a"}, "without an end"),
            ({"type": "string", "pattern": "a", "maxLength": 3}, "only one"),
            ({"$ref": "https://example.org/schema"}, "not found in the schema itself"),
            ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "leads to itself"),
            ({"type": "float"}, "type is to be one of"),
            ({"enum": []}, "no value"),
            ({"type": "integer", "minimum": 3, "maximum": 2}, "no number"),
            ({"type": "integer", "multipleOf": 5}, "multipleOf"),
            ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
            ({"type": "object", "required": ["x"]}, "x is required"),
            ({"type": "string", "minLength": -1}, "minLength"),
            ({"type": "string", "minLength": 2, "maxLength": 1}, "longer"),
            ({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "never ends"),
            ({"allOf": [{"type": "string"}, {"type": "null"}]}, "no type"),
            (17, "a schema is to be"),
        ]
        for (schema, sentence), answer in zip(rows, ask("made", [{"schema": row[0], "walks": 1} for row in rows])):
            self.assertIn(sentence, answer.get("error", "it was not refused"), schema)

    def test_cost(self):
        """Against 5 % of a step of 3 ms; generous, as machines are busy."""
        tool = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "units": {"enum": ["metric", "imperial"]},
                "notes": {"type": "array", "items": {"type": "string"}}, "from": {"type": "string", "format": "date"}}, "required": ["city", "days", "notes"]}
        answer = ask("made", [{"schema": tool, "walks": 20, "seed": 1}])[0]
        mean = answer["seconds"] / answer["masks"]
        print(f"{answer['masks']} masks of 150,000 tokens: mean {1e6 * mean:.0f} us, slowest {1e6 * answer['slowest']:.0f} us, compiled in {1e6 * answer['compiled']:.0f} us")
        self.assertLess(mean, 1e-3)


class Run(unittest.TestCase):
    """rdna run with a file that says what may be written."""

    def written(self, option, text, *more):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return rdna_program.run("run", rdna_program.DEMO_MODEL, "And God said", option, file.name, "--no-echo", "--device", "host", *more)

    def test_schema(self):
        schema = {"type": "object", "properties": {"who": {"enum": ["God", "Moses"]}, "said": {"type": "string", "maxLength": 30}, "verse": {"type": "integer", "minimum": 1, "maximum": 40}},
                  "required": ["who", "said", "verse"]}
        for seed in range(3):
            said = json.loads(self.written("--json-schema", json.dumps(schema), "--json", "--max-tokens", 900, "--seed", seed).stdout)
            self.assertEqual(said["stop"], "end")
            self.assertTrue(valid(json.loads(said["text"]), schema, schema), said["text"])

    def test_grammar(self):
        said = self.written("--grammar", 'root ::= " Let there be " ("light" | "night") "."', "--greedy")
        self.assertIn(said.stdout.decode().strip("\n"), (" Let there be light.", " Let there be night."))

    def test_refusals(self):
        for option, text, sentence in (("--grammar", "root ::= (", "a group has no end"), ("--json-schema", "{", "not JSON"), ("--json-schema", '{"not": {}}', "the keyword not")):
            refused = self.written(option, text)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(sentence, refused.stderr.decode())
        self.assertIn("exclude each other", self.written("--grammar", "", "--json-schema", "x").stderr.decode())


# ---- GBNF, against a recognizer over sets of places ----


class Grammar:
    """A random grammar whose rules call later ones, or earlier ones behind a letter."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.rules = []
        self.count = self.random.randint(1, 4)
        for number in range(self.count):
            self.rules.append(self.expression(number, 0, True))

    def expression(self, number, depth, first):
        r = self.random
        kinds = ["text", "class"] * (2 if depth < 3 else 1) + ["sequence", "choice", "repeat", "rule"] * (depth < 3)
        kind = r.choice(kinds)
        if kind == "text":
            return ("text", "".join(r.choice("ab\u00e9") for _ in range(r.randint(0 if not first else 1, 3))))
        if kind == "class":
            return ("class", r.choice(["ab", "a", "c\u00e9", "bc"]), r.random() < 0.2)
        if kind == "rule":
            later = list(range(number + 1, self.count))
            if r.random() < 0.4:
                return ("sequence", [("text", "c"), ("choice", [("rule", r.randrange(self.count)), ("text", "a")])])
            return ("rule", r.choice(later)) if later else ("text", "b")
        if kind == "repeat":
            least = r.choice([0, 0, 1, 2, 3])
            return ("repeat", self.expression(number, depth + 1, first), least, r.choice([None, least, least + 2, least + 9]))
        return (kind, [self.expression(number, depth + 1, first) for _ in range(r.randint(1, 3))])

    def text(self, e):
        kind = e[0]
        if kind == "text":
            return json.dumps(e[1], ensure_ascii=False)
        if kind == "class":
            return "[" + "^" * e[2] + e[1] + "]"
        if kind == "rule":
            return "root" if e[1] == 0 else f"rule-{e[1]}"
        if kind == "repeat":
            marks = {(0, None): "*", (1, None): "+", (0, 1): "?"}
            count = marks.get((e[2], e[3])) or f"{{{e[2]}{'' if e[2] == e[3] else ',' if e[3] is None else f',{e[3]}'}}}"
            return f"({self.text(e[1])}){count}"
        return "(" + (" " if kind == "sequence" else " | ").join(map(self.text, e[1])) + ")"

    def whole(self):
        return "".join(f"{self.text(('rule', i))} ::= {self.text(rule)}\n" for i, rule in enumerate(self.rules))

    def ends(self, e, text, at, busy):
        """Where |e| can end that begins at |at|."""
        kind = e[0]
        if kind == "text":
            return {at + len(e[1])} if text.startswith(e[1], at) else set()
        if kind == "class":
            return {at + 1} if at < len(text) and (text[at] in e[1]) != e[2] else set()
        if kind == "rule":
            if (e[1], at) in busy:
                return set()
            return self.ends(self.rules[e[1]], text, at, busy | {(e[1], at)})
        if kind == "choice":
            return set().union(*(self.ends(each, text, at, busy) for each in e[1]))
        if kind == "sequence":
            places = {at}
            for each in e[1]:
                places = set().union(*(self.ends(each, text, place, busy) for place in places))
            return places
        found, places = {at} if e[2] == 0 else set(), {at}
        for n in range(1, (e[3] if e[3] is not None else e[2] + len(text) + 1) + 1):
            places = set().union(*(self.ends(e[1], text, place, busy) for place in places))
            found |= places if n >= e[2] else set()
            if not places:
                break
        return found


class Grammars(unittest.TestCase):
    def test_random_grammars(self):
        grammars = [Grammar(seed) for seed in range(4 * COUNT)]
        texts = ["".join(random.Random(7 * i).choice("abbcca\u00e9") for i in [i + n for n in range(i % 9)]) for i in range(60)]
        questions = [{"grammar": g.whole(), "texts": texts, "walks": 8, "seed": i} for i, g in enumerate(grammars)]
        compared = taken_whole = 0
        for grammar, question, answer in zip(grammars, questions, ask(rdna_program.DEMO_MODEL, questions)):
            if "error" in answer:
                self.assertRegex(answer["error"], "begins with itself|may be empty|never ends")
                continue
            for text in filter(lambda walked: walked is not None, answer["walks"]):
                self.assertIn(len(text), grammar.ends(("rule", 0), text, 0, frozenset()), f"{text!r}\n{question['grammar']}")
            for text, (taken, may_end) in [pair for pair in zip(texts, answer["taken"]) if pair[1]]:
                wanted = len(text) in grammar.ends(("rule", 0), text, 0, frozenset())
                self.assertEqual(taken == len(text.encode()) and may_end, wanted, f"{text!r}\n{question['grammar']}")
                compared += 1
                taken_whole += wanted
        self.assertGreater(compared, 100 * COUNT)
        self.assertGreater(taken_whole, compared // 100)


if __name__ == "__main__":
    unittest.main()
