"""Expressions and statements for template_test.py: each is rendered by `rdna template` and by jinja2 with VARIABLES."""

VARIABLES = {
    "s": "Hello World", "e": "", "u": "Grüße, Ωμέγα 漢字 🙂é", "lines": "one\n  two\r\nthree\n", "ws": " \t x y \n ",
    "n": 7, "z": 0, "m": -3, "f": 2.5, "g": 1e16, "h": 0.1, "t": True, "w": False, "nil": None,
    "l": [3, 1, 2], "el": [], "names": ["beta", "Alpha", "gamma", "alpha"], "mix": [1, "a", None, 2.5, True, [1], {"k": "v"}],
    "d": {"b": 1, "a": 2, "C": 3}, "ed": {}, "nested": {"x": {"y": [10, {"z": "deep"}]}, "items": 5, "get": "got"},
    "rows": [{"name": "ann", "age": 31, "team": "red"}, {"name": "Bob", "age": 25, "team": "blue", "boss": True},
             {"name": "cid", "age": 31, "team": "Red", "boss": False}, {"name": "dee", "age": None, "team": "blue"}],
    "quotes": "it's \"so\" \\ \n\t\x01\x7f", "html": "<a href='x'>&\"</a>", "json": {"b": [1, 2.0, "é<>&'\""], "a": None, "c": {}},
}

# ---- expressions: each stands between {{ and }} ----
EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
7 / 2
8 / 2
7 // 2
-7 // 2
7 // -2
-7 % 3
7 % -3
-7.5 // 2
-7.5 % 2
7.5 % -2
6.0 // 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
0.1 + 0.2
1e16
1e15
123456789012345680.0
1.0
1.5e-7
0.0001
0.00001
100.0 * 3
1_000 + 0x1f + 0b101 + 0o17
1.5e3
1e2
0
00
n - 10
+m
-f
- -3
not t
not w
not not l
not l is none
t and w or n
t or z
z or e or "x"
z and n
nil or el
1 == 1.0
true == 1
"1" == 1
l == [3, 1, 2]
(1, 2) == [1, 2]
d == {"a": 2, "b": 1, "C": 3}
none == none
nope == nada
nope == none
1 < 2 < 3
1 < 2 > 5
1 < 3 < 2
1 < 3 > 2
3 > 2 >= 2 != 1
"a" < "b"
"B" < "a"
"é" > "z"
[1, 2] < [1, 3]
[1] < [1, 0]
(1, "b") > (1, "a")
1 in l
4 not in l
"ell" in s
"" in s
"b" in d
"x" not in d
1 in (1,)
1 in nope
not 1 in l
not (1 in l)
"a" ~ 1 ~ none ~ 2.0 ~ true ~ nope
"a" ~ 1 + 2
1 + 2 ~ "a"
"a" "b" 'c'
"x" if t
"x" if w
"x" if w else "y"
"x" if w else "y" if w else "z"
("x" if w) is defined
1 if 2 if 0 else 3 else 4
s[0]
s[-1]
s[100] is defined
s[1:4]
s[::-1]
s[::2]
s[-3:]
s[:-3]
s[5:1]
s[8:2:-2]
s[none:3]
u[3]
u[-2]
u[4:9]
u[::-1]
l[0]
l[-1]
l[3] is undefined
l[1:]
l[::-1]
l[:2]
mix[1:6:2]
(1, 2, 3)[1]
(1, 2, 3)[1:]
range(10)[2:8:3]
range(10)[2]
range(5)[::-1] | list
l.0
l.1
nested.x.y.1.z
nested["x"]["y"][1]["z"]
nested.x.nope
nested.x.nope is defined
nested["items"]
nested.get("get")
nested["get"]
nested.items() | list
d.keys() | list
d.values() | list
d.items()
d.keys()
d.values()
d.get("b")
d.get("zz")
d.get("zz", 5)
d.copy()
d["keys"] is callable
d.b
d["b"]
none.x is defined
n.x is defined
s.nope is defined
[1, 2] + [3]
(1,) + (2, 3)
[1] * 3
3 * [0]
"ab" * 3
0 * "ab"
-1 * "ab"
[]
()
{}
(1,)
(1, 2)
1, 2
[1, [2, [3]], (4,), {"a": {"b": none}}]
{"a": 1, 2: "b", none: 3, 1.5: 4, true: 5}
{1: "a", 1.0: "b", true: "c"}
{(1, 2): 3}
{"a": 1}[nope] is defined
["it's", 'say "x"', 'it\'s "both"', "back\\slash", "tab\t", "nl\n", "é", "\x00", "\u200b", "\u00a0", "😀"]
quotes
[quotes]
[u]
[nope]
mix
d
nested
[1.0, -0.0, 1e300, 1e-300, 3.14159, 1e22, 1/3, 2/3]
true
True
false
none
None
[true, false, none]
s | upper
s | lower
u | upper
u | lower
s | capitalize
u | capitalize
"hello world-foo (bar) [baz] don't" | title
u | title
"hello world-foo don't 3rd" .title()
ws | trim
"xxaxx" | trim("x")
5 | trim
none | upper
nope | upper
nope | length
s | length
u | length
l | length
d | length
nested | count
s | first
s | last
l | first
l | last
el | first is defined
el | last is defined
d | first
d | last
d.values() | first
l | sort
l | sort(reverse=true)
names | sort
names | sort(case_sensitive=true)
names | sort(true, true)
rows | sort(attribute="name") | map(attribute="name") | join(",")
rows | sort(attribute="team,name") | map(attribute="name") | join(",")
rows | map(attribute="name") | list
rows | map(attribute="boss") | list
rows | map(attribute="boss", default="no") | list
rows | map(attribute="x.y", default="no") | list
names | map("upper") | list
names | map("replace", "a", "4") | join(" ")
[" a ", "b "] | map("trim") | list
["1", "x"] | map("int", default=9) | list
[[1, 2], [3]] | map("length") | list
[[1, 2], [3]] | map("first") | list
[[1, 2], [3, 4]] | map(attribute=1) | list
[[1, 2], [3, 4]] | map(attribute="0") | list
mix | select | list
mix | reject | list
mix | select("string") | list
mix | select("none") | list
l | select("gt", 1) | list
l | select(">=", 2) | list
l | reject("odd") | list
l | select("in", [1, 2]) | list
l | select("divisibleby", 3) | list
l | select("equalto", 3) | first
rows | selectattr("boss") | map(attribute="name") | list
rows | selectattr("boss", "defined") | map(attribute="name") | list
rows | rejectattr("boss") | map(attribute="name") | list
rows | selectattr("team", "equalto", "blue") | map(attribute="name") | list
rows | selectattr("age", "none") | list | length
rows | rejectattr("age", "none") | sum(attribute="age")
rows | groupby("team")
rows | groupby("team") | map(attribute="grouper") | list
rows | groupby("team", case_sensitive=true) | map("first") | list
rows | groupby("boss", default="?") | length
(rows | groupby("team") | first).list | length
names | unique | list
names | unique(case_sensitive=true) | list
rows | unique(attribute="team") | map(attribute="name") | list
[1, 1.0, true, "1", 2] | unique | list
l | min
l | max
names | min
names | max(case_sensitive=true)
rows | max(attribute="name")
el | max is defined
l | sum
[1.5, 2] | sum
[[1], [2]] | sum(start=[])
el | sum
l | sum(start=10)
l | join
l | join("-")
l | join(", ", attribute="x")
rows | join("/", attribute="name")
mix | join("|")
"abc" | join(",")
d | join(",")
l | list
s | list
d | list
u | list
range(3)
range(2, 5)
range(5, 2, -1)
range(0, 10, 3) | list
range(5, 2) | list
range(3) | length
2 in range(3)
range(3) == range(0, 3)
range(3) == [0, 1, 2]
l | reverse | list
s | reverse
u | reverse
d | reverse | list
l | reverse | join
"abc" | batch(2) | list
[1, 2, 3, 4, 5] | batch(2) | list
[1, 2, 3, 4, 5] | batch(2, 0) | list
[1, 2, 3, 4, 5] | slice(2) | list
[1, 2, 3, 4, 5] | slice(3, "x") | list
d | dictsort
d | dictsort(true)
d | dictsort(by="value")
d | dictsort(reverse=true)
d | dictsort(false, "value", true)
d | items | list
nope | items | list
nope | default("x")
0 | map("upper") | list
none | select | list
false | rejectattr("a") | list
nope | d("x")
nope | default
nil | default("x")
nil | default("x", true)
e | default("x", boolean=true)
nested.nope | default(n)
"42" | int
" 42 " | int
"-42" | int
"42.9" | int
"x" | int
"x" | int(5)
"x" | int(default="none")
"1f" | int(base=16)
"0x1f" | int(base=16)
"0b11" | int(0, 2)
"1_000" | int
"1e3" | int
42.9 | int
-42.9 | int
true | int
none | int
l | int
none | int(7)
"3.5" | float
"x" | float
"x" | float(1.5)
"inf" | float
"nan" | float
" 1e-3 " | float
3 | float
none | float
2.5 | string
none | string
l | string
-5 | abs
-5.5 | abs
m | abs
42.55 | round
42.55 | round(1)
42.45 | round(1)
0.5 | round
1.5 | round
2.5 | round
-2.5 | round
2.675 | round(2)
42 | round
42 | round(-1)
45 | round(-1)
55 | round(-1)
1234.5 | round(-2)
42.1 | round(0, "ceil")
42.9 | round(method="floor")
42.55 | round(1, "floor")
-42.55 | round(1, "ceil")
42.55 | round | int
s | replace("o", "0")
s | replace("l", "L", 2)
s | replace("l", "L", count=1)
s | replace("", "-")
e | replace("", "-")
123 | replace(2, 5)
u | replace("ü", "ue")
lines | indent
lines | indent(2)
lines | indent(2, true)
lines | indent(2, first=true, blank=true)
"a\n\nb" | indent("> ")
"a\n\nb" | indent(width=3, blank=true)
"" | indent(2, true)
json | tojson
json | tojson(indent=2)
json | tojson(indent=0)
json | tojson(indent="\t")
json | tojson(ensure_ascii=true)
json | tojson(sort_keys=true)
json | tojson(separators=(",", ":"))
json | tojson(indent=2, separators=(",", ": "), sort_keys=true)
u | tojson
u | tojson(ensure_ascii=True)
quotes | tojson
"</script>" | tojson
none | tojson
true | tojson
1.0 | tojson
1e100 | tojson
[1, [], {}, [[]]] | tojson(indent=1)
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
(1, 2) | tojson
"" | tojson
rows | tojson
html | escape
html | e
html | safe
html | safe ~ html
html ~ 1 ~ html | safe ~ none
html + "x" | safe
"<b>" | safe + html
"<b>" | safe + html + "<i>"
html | e | e
html | safe | e
html | e ~ "&"
html | safe is escaped
html is escaped
(html | safe) == html
[html | safe]
html | safe | tojson
[html | safe, html] | join("<")
"<" | safe + nope | string
s | wordcount
u | wordcount
"a/b c?d=é&f~g.h-i_j" | urlencode
s | center(20)
s | truncate(5)
"the quick brown fox jumps" | truncate(15)
"the quick brown fox jumps" | truncate(15, true)
"the quick brown fox jumps" | truncate(15, false, "…", 0)
"the quick brown fox" | truncate(16)
"%s is %d" | format("x", 5)
"%s" | format(none)
"%05.2f|%5d|%-5d|%+d|%x|%X|%o|%e|%g|%%" | format(3.14159, 42, 42, 42, 255, 255, 8, 12345.678, 0.0001)
"%(a)s-%(b)05d" | format(a="x", b=7)
"%r %s" | format("x", "y")
"%5s|%-5s|%.2s|" | format("abc", "abc", "abc")
"%s and %s" % ("a", "b")
"%s" % "a"
"%d%%" % 50
"%s" % l
"%.3f" % 2.5
"%i" % 3.9
"{} {}".format("a", 1)
"{1} {0}".format("a", "b")
"{x}-{y}".format(x=1, y=l)
"{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{:x}".format("a", "b", "c", 42, 3.14159, 1234567, 255)
"{:*^9}|{:+d}|{:e}|{:8.3f}|{:08.3f}".format("mid", 5, 1234.5, 2.5, -2.5)
"{{}} {}".format(none)
s.upper()
s.lower()
s.title()
s.swapcase()
"hello WORLD".capitalize()
s.strip("Hd")
ws.strip()
ws.lstrip()
ws.rstrip()
"\x1c a\x1f".strip()
"xyxabcyx".strip("xy")
"\u00a0x\u3000".strip() ~ "|"
s.split()
s.split("o")
s.split("o", 1)
s.split(maxsplit=0)
" a  b c ".split()
" a  b c ".split(" ")
" a  b c ".split(none, 1)
" a  b c ".rsplit(none, 1)
"a,b,c".rsplit(",", 1)
"a,b,c".rsplit(",")
"a".split(",")
"".split()
"".split(",")
u.split(" ")
lines.splitlines()
lines.splitlines(true)
"a\x0bb\u2028c".splitlines()
"a-b-c".partition("-")
"a-b-c".rpartition("-")
"abc".partition("-")
"abc".rpartition("-")
s.startswith("He")
s.startswith(("x", "H"))
s.startswith("World", 6)
s.endswith("ld")
s.endswith("Hello", 0, 5)
s.find("o")
s.find("o", 5)
s.find("zz")
s.rfind("o")
s.index("W")
u.find("漢")
u.rfind("é")
u.index("🙂")
s.count("l")
s.count("")
"aaaa".count("aa")
u.count("é")
s.replace("l", "1").replace("o", "0")
s.replace("l", "", 1)
", ".join(["a", "b"])
"".join(names)
"-".join("abc")
"12".isdigit()
"".isdigit()
"1a".isdigit()
"ab".isalpha()
"é漢".isalpha()
"a1".isalnum()
" \t".isspace()
"AB1".isupper()
"Ab".isupper()
"ab1".islower()
s.removeprefix("Hello ")
s.removeprefix("x")
s.removesuffix("ld")
"7".zfill(3)
"-7".zfill(4)
"ab".center(7, "*")
"ab".center(6)
"abc".center(6)
"ab".ljust(5, ".")
"ab".rjust(5) ~ "|"
"ß".lower()
l.index(2)
l.count(1)
(1, 2, 1).count(1)
l.copy()
n is defined
nope is defined
nope is undefined
nope is not defined
n is number
f is number
t is number
s is number
n is integer
t is integer
f is integer
f is float
t is boolean
n is boolean
t is true
n is true
w is false
s is string
n is string
nil is none
n is none
nope is none
d is mapping
l is mapping
l is sequence
s is sequence
d is sequence
n is sequence
nope is sequence
d.items() is sequence
range(2) is sequence
l is iterable
s is iterable
n is iterable
nope is iterable
nil is iterable
d.items() is iterable
n is odd
n is even
6 is even
-3 is odd
2.0 is even
n is divisibleby 7
n is divisibleby(2)
n is eq 7
n is eq(7.0)
n is equalto 8
n is ne 8
n is lt 8
n is le 7
n is gt 7
n is ge 7
n is lessthan 8
n is greaterthan(8)
"ab" is lower
"AB" is upper
"aB" is lower
"12" is upper
1 is in l
5 is not in l
"b" is in d
n is sameas n
none is sameas none
true is sameas true
1 is sameas true
range is callable
n is callable
s.upper is callable
"upper" is filter
"nope" is filter
"odd" is test
s is escaped
n is not odd
not n is odd
n is odd and n is number
n is defined or nope
n is defined if t else 0
l is sequence and l is not string and l is not mapping
dict(a=1, b=2)
dict([("a", 1), ("b", 2)])
dict(d, z=9)
dict()
namespace(a=1).a
namespace(a=1).b is defined
namespace({"a": 5}).a
l | map("string") | join("+") | length
-5 | abs + 1
-n | abs
2 | string ~ 3
"a" ~ l | join
(1, 2) | join(",")
"x".join(["a"] * 3) | upper
[x for x in l]
n if n > 5 else 0
rows[0].name | upper ~ rows[-1]["name"]
(rows | first).name
(rows | selectattr("name", "eq", "Bob") | first).age
rows | map(attribute="age") | select("number") | sort | join("<")
d | tojson | length
"\n\t\\\'\"\x41\u00e9\U0001F600\101\q"
'a' 'b' "c\
d"
"日本語"[1]
"e\u0301"[1] == "\u0301"
"a\tb" | length
joiner("|")()
(s | attr("upper"))()
d | attr("b") is defined
n.real is defined or true
l[true]
"abc"[true]
l["x"] is defined
d[1] is defined
d[[]] is defined
1 if nope else 2
nope ~ "x"
[nope] | join("x")
nope | list
nope | join
nope | sum
nope | tojson
nope | string | length
nope | trim
nope | first is defined
nope == ""
not nope
nope and 1
nope or 1
[] is sequence
"" is string
0 == w
0 is sameas false
"" == false
l|length>2
l | length > 2 and s | length == 11
loop is defined
self is defined or true
"a" in ["a", "b"] and "c" not in ["a", "b"]
"A" | lower == "a"
1.0 == 1 and 1 is integer and 1.0 is float
1e308 * 10
-1e308 * 10
7 % 2.5
1 / 3
22 / 7.0
10 // 3.0
2 ** 0.5
2 ** 62
4 ** 0.5
0 ** 0
true + true
true * "ab"
- true
5 - 3 - 1
20 / 2 / 5
2 * 3 % 4
1 + 1 == 2 and 2 + 2 == 4
"%s" % (1,)
"%s %s" % (l, d)
names | map("length") | sum
names | map("first") | join
{"a": 1, "b": [1, 2]}.items() | list
{"a": 1}.a
{"a": {"b": 2}}.a.b
["a", "b"][0]
("a", "b")[-1]
[1, 2, 3][-2:]
"abc" "def"[1]
s | upper | lower | title
(s | upper)[0]
(s ~ "!") | upper
{"x": 1} | tojson ~ "!"
{"k": "v"}["k"] ~ {"k": "v"}.k
"a" < "b" < "c"
""".strip("\n").split("\n")

# ---- expressions that both must refuse ----
REFUSED = r"""
1 / 0
1 // 0
1 % 0
1.0 % 0
"a" + 1
1 + "a"
l + 1
none + 1
nope + 1
nope.x
nope[0]
nope()
nope < 1
n()
s.nope()
1 < "a"
none < none
l < 1
"a" - "b"
d + d
[1] + (2,)
1 in 5
1 in none
1 in s
5 | length
none | length
5 | list
5 | first
l | nope
l is nope
l.append(1)
d.update({"a": 1})
d.pop("a")
l | sort(nope=1)
mix | sort
s.index("zz")
l.index(9)
s.split("")
raise_exception("no")
"%d" | format("x")
"%s %s" | format("x")
"%s" | format("x", "y")
"{}".format()
"{" .format(1)
{[]: 1}
{{}: 1}
[[1]] | unique | list
s | int(1, 2, 3)
s | replace("a")
range()
range(1, 2, 0)
range(100001)
range | tojson
namespace(a=1) | tojson
[nope] | tojson
nope | int
nope | abs
s | abs
s | round
"a" | sum
l[0:1:0]
l["a":]
dict(1)
n | items | list
n | dictsort
-s
+none
s * s
f * "a"
2 ** "a"
{(1, 2): 3} | tojson
s[:"x"]
"abc".startswith(1)
", ".join([1, 2])
""".strip("\n").split("\n")

# ---- whole templates ----
STATEMENTS = [
    "plain text\n", "a\n\n", "\n", "", "a\r\nb\rc\n", "{", "{ {", "a { b } c", "}}", "%}", "{#c#}x", "a{# x\ny #}\nb",
    "{{ s }}\n{{ s }}\n", "{{- s -}}  x", "x  {{- s -}}  y", "x \n {{- s }}\n", "{{ s -}}\n  y",
    "  {% if t %}\n  yes\n  {% endif %}\n  end\n", "  {%- if t %}\n  yes\n  {%- endif %}\n  end\n",
    "a {% if t -%}\n  yes  {%- endif -%}  end", "  {%+ if t %}\n  yes\n  {%+ endif +%}\n  end\n",
    "  {# c #}\n  x", "  {#- c -#}\n  x", "  {#+ c +#}\n  x", "{#-#}x", "a {#- - #} b", "x{% if t %}y{% endif %}z\n\n",
    "\t {% set a = 1 %}\t\n{{ a }}", "\u00a0 {%- if t %}x{% endif %}", "\u00a0\n\u3000{% if t %}x{% endif %}",
    "{% if t %}  \n  {% endif %}|", "a\n  {{ s }}\n  b", "{%if t%}x{%endif%}", "{% if t %}\n\nx{% endif %}",
    "{% raw %}{{ x }} {% if %} {# #}{% endraw %}|", "{%- raw -%}  a  {%- endraw -%}  b", "  {% raw %}\n a\n  {% endraw %}\n b",
    "{% raw %}{% endraw %}", "{%+ raw %} x {%+ endraw +%}\n", "{% raw %}{%- endraw %}x",
    "{% if nope %}a{% elif n > 5 %}b{% else %}c{% endif %}", "{% if z %}a{% elif w %}b{% else %}c{% endif %}",
    "{% if t: %}a{% endif %}", "{% if t %}{% if w %}a{% else %}b{% endif %}{% endif %}",
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in el %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in l %}{{ x }}{% else %}none{% endfor %}", "{% for x in nope %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d | items %}{{ k }}{{ v }}{% endfor %}",
    "{% for (a, b) in [(1, 2), (3, 4)] %}{{ a }}{{ b }} {% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for c in 'añb' %}[{{ c }}]{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for x in range(3) %}{{ loop.index }}{{ loop.index0 }}{% endfor %}",
    "{% for x in l %}{{ loop.first }} {{ loop.last }} {{ loop.length }} {{ loop.revindex }} {{ loop.revindex0 }}\n{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in [1, 1, 2, 2] %}{{ loop.changed(x) }}{% endfor %}",
    "{% for x in range(10) if x is odd %}{{ x }}:{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}",
    "{% for x in range(10) if x is odd %}{{ x }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}",
    "{% for x in l if x > 5 %}{{ x }}{% else %}none{% endfor %}",
    "{% for r in rows if r.boss is defined and r.boss %}{{ r.name }}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ x }}{{ y }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in l %}{% set outer = loop %}{% for y in l %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in l %}{% continue %}{% else %}none{% endfor %}", "{% for x in l %}{% if loop.last %}{% break %}{% endif %}{% else %}none{% endfor %}",
    "{% set ns = namespace(f=[]) %}{% macro m(x) %}{% macro f() %}{{ x }}{% endmacro %}{% set ns.f = ns.f + [f] %}{% endmacro %}{{ m(1) }}{{ m(2) }}{% for g in ns.f %}{{ g() }}{% endfor %}",
    "{% for x in range(9) %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}!",
    "{% for x in range(9) %}{% if x is even %}{% continue %}{% endif %}{{ x }}{% endfor %}!",
    "{% for x in l %}{% for y in l %}{% if y == 2 %}{% break %}{% endif %}{{ y }}{% endfor %};{% endfor %}",
    "{% for x in l %}{% set i = x %}{% endfor %}{{ i is defined }}", "{% set i = 0 %}{% for x in l %}{% set i = i + x %}{{ i }}{% endfor %}{{ i }}",
    "{% set ns = namespace(i=0) %}{% for x in l %}{% set ns.i = ns.i + x %}{% endfor %}{{ ns.i }}",
    "{% set ns = namespace(done=false) %}{% for x in range(9) if not ns.done %}{{ x }}{% if x == 3 %}{% set ns.done = true %}{% endif %}{% endfor %}",
    "{% set ns = namespace(d={}) %}{% set ns.d = dict(ns.d, a=1) %}{{ ns.d }}{{ ns['d'] }}",
    "{% set a = 1 %}{% if t %}{% set a = 2 %}{% endif %}{{ a }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set (a, b) = (1, 2) %}{{ b }}{{ a }}",
    "{% set a = 1, 2 %}{{ a }}", "{% set a = l %}{{ a[0] }}", "{% set x %}hello {{ n }}{% endset %}{{ x }}{{ x | length }}",
    "{% set x | upper %}hello {{ s }}{% endset %}{{ x }}", "{% set x | replace('a', 'b') | upper %}banana{% endset %}{{ x }}",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y is defined }}", "{% set s = s ~ '!' %}{{ s }}", "{% set loop = 5 %}{{ loop }}",
    "{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }}|{{ f(1, 3) }}|{{ f(1, c='y') }}|{{ f(b=1, a=2) }}|{{ f() }}",
    "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}", "{% macro f(x) %}[{{ x | upper }}]{% endmacro %}{{ f('a') ~ f('b') | length }}",
    "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}", "{% macro f(a) %}{{ a }}{{ varargs | length }}{% endmacro %}{{ f(1, 2, 3) }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% macro f() %}{{ s }}{{ later }}{% endmacro %}{% set later = 1 %}{{ f() }}", "{% set a = 1 %}{% macro f() %}{{ a }}{% endmacro %}{% set a = 2 %}{{ f() }}",
    "{% macro f() %}{% set q = 1 %}{{ q }}{% endmacro %}{{ f() }}{{ q is defined }}", "{% for x in l %}{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% endfor %}",
    "{% macro f() %}  a  {% endmacro %}[{{ f() }}][{{ f() | trim }}]", "{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% macro f(x) %}<{{ x }}>{{ caller() }}</{{ x }}>{% endmacro %}{% call f('b') %}in {{ n }}{% endcall %}",
    "{% macro f(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(i) f(l) %}[{{ i }}]{% endcall %}",
    "{% macro f() %}{% if caller %}{{ caller() }}{% else %}no{% endif %}{% endmacro %}{{ f() }}{% call f() %}yes{% endcall %}",
    "{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(**{'a': 3, 'b': 4}) }}{{ f(1, *[2]) }}",
    "{% macro f(t) %}{{ t }}{% for p in t.props %}{{ f(p) }}{% endfor %}{% endmacro %}{{ f({'props': [{'props': []}]}) }}",
    "{% filter upper %}abc {{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}banana{% endfilter %}",
    "{% filter indent(2) %}a\nb{% endfilter %}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}",
    "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% generation %}x{{ n }}{% endgeneration %}y",
    "{%- generation -%}  x  {%- endgeneration -%}  y", "{% generation %}\nx\n{% endgeneration %}\ny", "{% generation %}{% set g = 5 %}{{ g }}{% endgeneration %}{{ g }}",
    "{% print s, n %}", "{% print s %}", "{{ 1 }}{{ 2 }}\n{{ 3 }}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {'a': 1} }}", "{{ {'a': {}}}}",
    "{{ '}}' }}{{ '{%' }}{{ \"#}\" }}", "{{ '%}' }}", "{% if '%}' == '%}' %}x{% endif %}", "{{ s }}{# {{ nope.x }} #}{{ n }}",
    "{% set x = [] %}{% set x = x + [1] %}{{ x }}", "{% set m = messages | default([]) %}{{ m }}", "{{ raise_exception is callable }}",
    "{% if rows[0]['name'] == 'ann' and rows | length > 2 %}ok{% endif %}", "{% for r in rows[1:] %}{{ r.name }}{{ loop.index0 % 2 == 0 }}{% endfor %}",
    "{% for r in rows[::-1] %}{{ r.name }}{% endfor %}", "{% for r in rows %}{% if loop.index0 == rows | length - 1 %}last {{ r.name }}{% endif %}{% endfor %}",
    "{% set j = joiner(', ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% for g in rows | groupby('team') %}{{ g.grouper }}:{{ g.list | map(attribute='name') | join('+') }};{% endfor %}",
    "{% for team, members in rows | groupby('team') %}{{ team }}{{ members | length }}{% endfor %}", "{% set x = rows | map(attribute='name') %}{{ x | list }}{{ x | list }}",
    "{% set x = l | select %}{% for y in x %}{{ y }}{% endfor %}{% for y in x %}{{ y }}{% endfor %}", "{% if l | select('gt', 9) %}true{% endif %}",
    "{% set x = l | reverse %}{{ x | first }}{{ x | list }}", "{% if (l | reject | list) | length == 0 %}empty{% endif %}", "{{ n }}\n\n\n", "{% set f = s.upper %}{{ f() }}",
    "{% set t = {'a': s.upper} %}{{ t.a() }}", "{{ strftime_now('%Y') | length }}", "{{ strftime_now('%d %b %Y') == strftime_now('%d %b %Y') }}", "{%- set x -%}  a  {%- endset -%}[{{ x }}]",
    "{% for x in l -%}\n  {{ x }}\n{%- endfor %}", "{% for x in l %}\n{{ x }}\n{% endfor %}\n", "{% for x in l +%}\n{{ x }}\n{% endfor +%}\n", "x {% for y in l %} {{ y }} {% endfor %} z",
    "{% set a = 'x' if t else 'y' %}{{ a }}", "{% set a = nope if w %}{{ a is defined }}", "{% if not (messages is defined and messages) %}none{% endif %}",
    "{% for x in (l if t else []) %}{{ x }}{% endfor %}", "{% for x in l | sort if x > 1 %}{{ x }}{% endfor %}", "{{ loop }}{{ caller }}", "{{ 'a' ~ '\n' }}|",
    "{% for x in [] recursive_not %}{% endfor %}", "{% if x = 1 %}{% endif %}", "{% endif %}", "{% if t %}", "{% for x in l %}", "{{ }}", "{{ 1 2 }}", "{{ 'a }}", "{{ (1 }}", "{{ 1) }}",
    "{% %}", "{% nope %}", "{% set 1 = 2 %}", "{% set none = 2 %}", "{% for 1 in l %}{% endfor %}", "{% else %}", "{{ x.  }}", "{{ [1, }}", "{{ a.b.1c }}", "{{ 012 }}", "{% break %}", "{# x",
    "{% raw %}x", "{{ 1 if }}", "{% macro f(a=1, b) %}{% endmacro %}", "{{ f(a=1, 2) }}", "{{ f(a=1, a=2) }}", "{% call 5 %}{% endcall %}", "{{ ! }}", "{{ a ? b }}", "{{ $ }}", "{{ a & b }}", "{% set a.b = 1 %}",
    "{% set s.b = 1 %}", "{% set d.b = 1 %}", "{% set a, b = 1 %}", "{% set a, b = 1, 2, 3 %}", "{% for a, b in l %}{% endfor %}", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", "{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}", "{% macro f() %}{% endmacro %}{% call f() %}{% endcall %}", "{% include 'x' %}", "{% import 'x' as y %}",
    "{{ 1 is odd is even }}", "{{ l[1, }}", "{% for x in 5 %}{% endfor %}", "{% for x in l if %}{% endfor %}", "{{ raise_exception('Roles must alternate') }}", "{{ not }}", "{{ 1 + }}", "{{ * 1 }}",
]
