"""The web page of rdna serve as it is sent, without a browser: tests/serve_browser_test.py has one."""
import gzip
import html.parser
import re
import unittest

import serving
from rdna_program import DEMO_MODEL, ROOT

PAGE = ROOT / "src/server/page"


class Addresses(html.parser.HTMLParser):
    """What an HTML file loads, and what of it is a program or a style."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.inline = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "href", "action", "srcset", "data"):
                self.loads.append(value)
            if name.startswith("on") or name == "style":
                self.inline.append((tag, name))
        if tag == "style" or (tag == "script" and "src" not in dict(attributes)):
            self.inline.append((tag, ""))


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.serve_for(cls, DEMO_MODEL, "--key", "secret")

    def get(self, path, **headers):
        return self.server.ask_bytes("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def test_files_are_those_of_the_source(self):
        for file in PAGE.iterdir():
            with self.subTest(file.name):
                path = "/" if file.name == "index.html" else "/page/" + file.name
                status, headers, body = self.get(path)
                self.assertEqual((status, body, headers["Content-Encoding"]), (200, file.read_bytes(), None))
                kind = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}[file.suffix]
                self.assertEqual(headers["Content-Type"].split(";")[0], kind)
                for accept, packed in (("gzip", True), ("br, GZIP;q=0.5", True), ("deflate , gzip", True), ("gzip;q=0.001", True), ("identity", False), ("gzip;q=0", False),
                                       ("gzip; q=0.000, br", False), ("xgzip", False), ("gzipped", False), ("", False)):
                    status, headers, sent = self.get(path, Accept_Encoding=accept)
                    self.assertEqual((status, headers["Content-Encoding"], headers["Vary"]), (200, "gzip" if packed else None, "Accept-Encoding"), accept)
                    self.assertEqual(gzip.decompress(sent) if packed else sent, body)

    def test_a_page_that_is_known_is_not_sent_again(self):
        tags = set()
        for file in PAGE.iterdir():
            path = "/" if file.name == "index.html" else "/page/" + file.name
            tag = self.get(path)[1]["ETag"]
            tags.add(tag)
            for known in (tag, '"x", ' + tag):
                status, headers, body = self.get(path, If_None_Match=known, Accept_Encoding="gzip")
                self.assertEqual((status, body, headers["ETag"], headers["Content-Encoding"]), (304, b"", tag, None))
            self.assertEqual(self.get(path, If_None_Match='"other"')[0], 200)
        self.assertEqual(len(tags), len(list(PAGE.iterdir())))

    def test_nothing_comes_from_outside(self):
        status, headers, body = self.get("/")
        policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
        self.assertEqual(policy["default-src"], "'none'")
        self.assertTrue(set(policy) >= {"base-uri", "form-action", "frame-ancestors"})
        self.assertEqual(policy.pop("img-src"), "'self' data:")  # thumbnails of pictures that messages show
        for name, value in policy.items():  # no host, no scheme, nothing inline
            self.assertIn(value, ("'none'", "'self'") if not name.startswith("require") else ("'script'",), name)
        self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("nosniff", "no-referrer"))
        found = Addresses(body.decode())
        self.assertEqual(found.inline, [])
        self.assertGreater(len(found.loads), 2)
        for path in found.loads:
            self.assertEqual(self.get("/" + path)[0], 200, path)
        for file in PAGE.iterdir():
            text = file.read_text()
            for address in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", text):
                self.assertEqual(address, "http://www.w3.org/2000/svg", file.name)  # a name that nobody fetches
            for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "@import", "srcdoc", "DOMParser"):
                self.assertNotIn(way, text, file.name)

    def test_who_may_have_it(self):
        self.assertEqual(self.get("/")[0], 200)  # the page asks for the key
        self.assertEqual(self.get("/v1/models")[0], 401)
        self.assertEqual(self.server.ask_bytes("HEAD", "/")[::2], (200, b""))
        self.assertEqual(self.server.ask_bytes("POST", "/", b"{}")[0], 405)
        for path in ("/page/", "/page/index.html", "/page/../http.c", "/page/page.j", "/page.js", "/index.html"):
            self.assertEqual(self.get(path)[0], 404, path)
        without = serving.Server(DEMO_MODEL, "--no-page")
        self.addCleanup(without.stop)
        for path in ("/", "/page/page.js"):
            self.assertEqual(without.ask_bytes("GET", path)[0], 404)
        self.assertEqual(without.ask("GET", "/health")[0], 200)

    def test_memory_is_told(self):
        values = {line.split()[0]: float(line.split()[1]) for line in self.server.ask("GET", "/metrics", headers={"x-api-key": "secret"})[2].splitlines() if line[0] != "#"}
        self.assertGreater(values["rdna_memory_total_bytes"], values["rdna_memory_bytes"])
        self.assertGreater(values["rdna_memory_bytes"], 1 << 16)


if __name__ == "__main__":
    unittest.main()
