"""The files of the web page as bytes in C, by src/server/page.h: embed_page.py OUT.c FILES… The same files always give the
same bytes."""
import gzip
import hashlib
import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def array(name, data):
    numbers = [",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(numbers) + "};\n"


def main(out, *files):
    arrays, rows = [], []
    for i, file in enumerate(map(pathlib.Path, sorted(files))):
        data = file.read_bytes()
        etag = 'W/\\"' + hashlib.sha256(data).hexdigest()[:20] + '\\"'  # weak: packed and plain bytes share it
        path = "/" if file.name == "index.html" else "/page/" + file.name
        arrays += [array(f"bytes_{i}", data), array(f"gzip_{i}", gzip.compress(data, 9, mtime=0))]
        rows.append(f'    {{"{path}", "{TYPES[file.suffix]}", "{etag}", bytes_{i}, gzip_{i}, sizeof bytes_{i}, sizeof gzip_{i}}},\n')
    text = '#include "server/page.h"\n\n' + "".join(arrays) + "\nconst page_file page_files[] = {\n" + "".join(rows) + "};\n"
    pathlib.Path(out).write_text(text + "const size_t page_file_count = sizeof page_files / sizeof *page_files;\n")


main(*sys.argv[1:])
