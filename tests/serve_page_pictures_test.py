"""Pictures in the web page of rdna serve, in Chromium: packaging/setup.sh packaging/browser-packages.txt installs it, and without it this is skipped."""
import base64
import json
import unittest

import transformers_python  # first: this goes on in a Python that has transformers

import browser
import rdna_program  # makes tools/ importable
import serving
import vision_files
from vision_files import encoded, picture

# A file with these bytes, chosen, or pasted into the field.
FILE = "new File([Uint8Array.from(atob('%s'), (c) => c.charCodeAt(0))], 'p.png', { type: '%s' })"
PASTE = """(() => { const data = new DataTransfer(); data.items.add(%s);
  document.getElementById('text').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, cancelable: true })); })()"""
CHOOSE = """(() => { const data = new DataTransfer(); data.items.add(%s); const input = document.getElementById('picture');
  input.files = data.files; input.dispatchEvent(new Event('change')); })()"""
THUMBNAILS = "document.querySelectorAll('#pictures img').length"


def file_of(data, kind="image/png"):
    return FILE % (base64.b64encode(data).decode(), kind)


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        cls.model, cls.tower = vision_files.write_files(cls.folder)
        cls.server = serving.serve_for(cls, cls.model, "--mmproj", cls.tower, "--name", "seer", "--kv", "f32")

    def open(self, server=None, model="seer"):
        tab = browser.Browser()
        self.addCleanup(tab.close)
        tab.open((server or self.server).url + "/")
        tab.wait(f"document.getElementById('model').value === '{model}'")
        tab.evaluate("localStorage.setItem('rdna.settings', JSON.stringify({ temperature: 0, max_tokens: 8 }))")
        tab.open((server or self.server).url + "/")
        tab.wait(f"document.getElementById('model').value === '{model}'")
        return tab

    def answer(self, tab, messages):
        tab.wait(f"!document.body.classList.contains('busy') && document.querySelectorAll('.message').length === {messages}", 60)
        return tab.evaluate("[...document.querySelectorAll('.message .body')].map((node) => node.textContent)")[-1]

    def test_shown_and_kept(self):
        tab, data = self.open(), encoded(picture(31))
        self.assertFalse(tab.evaluate("document.getElementById('attach').hidden"))
        for i, how in enumerate((PASTE, CHOOSE), 1):
            tab.evaluate(how % file_of(data))
            tab.wait(f"{THUMBNAILS} === {i}")
        tab.evaluate("document.querySelector('#pictures button').click()")
        tab.wait(f"{THUMBNAILS} === 1")
        tab.evaluate("document.getElementById('text').focus()")
        tab.type("What is it?")
        tab.press("Enter")
        got = self.answer(tab, 2)
        self.assertEqual(tab.evaluate(THUMBNAILS), 0)
        self.assertEqual(tab.evaluate("document.querySelectorAll('.message.user .pictures img').length"), 1)
        kept = json.loads(tab.evaluate("Object.entries(localStorage).find(([name]) => name.startsWith('rdna.chat.'))[1]"))
        url = kept["messages"][0]["pictures"][0]
        want = self.server.post("/v1/chat/completions", temperature=0, max_tokens=8, messages=[{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What is it?"}]}])
        self.assertEqual(got.strip(), want["choices"][0]["message"]["content"].strip())
        tab.open(self.server.url + "/")  # it is there again, and goes on
        tab.wait("document.querySelectorAll('.message.user .pictures img').length === 1")
        self.assertEqual([p for p in tab.problems if "favicon" not in str(p)], [])
        self.assertTrue(all(address.startswith((self.server.url, "data:")) for address in tab.requests), tab.requests)

    def test_large_ones_are_made_small(self):
        tab = self.open()
        tab.evaluate(PASTE % file_of(encoded(picture(32, 30, 2600))))
        tab.wait(f"{THUMBNAILS} === 1")
        tab.wait("document.querySelector('#pictures img').naturalWidth > 0")
        self.assertEqual(tab.evaluate("[document.querySelector('#pictures img').naturalWidth, document.querySelector('#pictures img').naturalHeight]"),
                         [1280, 15])

    def test_what_is_none(self):
        tab = self.open()
        tab.evaluate(PASTE % file_of(b"no picture"))
        tab.wait("document.getElementById('state').textContent.includes('is no picture')")
        self.assertEqual(tab.evaluate(THUMBNAILS), 0)
        blind = serving.serve_for(self, self.model, "--name", "blind")
        tab = self.open(blind, "blind")
        self.assertTrue(tab.evaluate("document.getElementById('attach').hidden"))
        tab.evaluate(PASTE % file_of(encoded(picture(33))))
        tab.wait("document.getElementById('state').textContent.includes('takes no pictures')")


if __name__ == "__main__":
    if not browser.PROGRAM:
        print("skipped: there is no Chromium here; packaging/setup.sh packaging/browser-packages.txt installs one")
        raise SystemExit(77)
    unittest.main()
