"""Arrays by their names in files: safetensors (github.com/huggingface/safetensors), which PyTorch's world reads and writes too.

    u64 length of the header | header: JSON, {"name": {"dtype", "shape", "data_offsets": [begin, end]}, …} | data
                                                                      offsets count from here ^
"""

import json
import math
import os
import secrets
import stat
import struct

import numpy as np

from . import _core
from ._array import bits_of, from_bits, from_numpy, need

_MOST_HEADER = 100 << 20  # the format's own limit
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
          "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?"}
_NAMES = {_core.BF16 if name == "BF16" else np.dtype(dtype): name for name, dtype in _TYPES.items()}


def save(path, arrays, metadata=None):
    """Writes a dict of arrays, ours or NumPy's, by their names, with texts by names as |metadata|. The file is there when it is whole; one that was
    there is replaced."""
    arrays = {name: need("save", x) for name, x in arrays.items()}
    types = {name: x.dtype for name, x in arrays.items()}
    values = {name: bits_of(x).numpy() if x.dtype is _core.BF16 else x.numpy() for name, x in arrays.items()}
    header, at = {"__metadata__": dict(metadata)} if metadata else {}, 0
    for text in (*values, *(metadata or ()), *(metadata or {}).values()):
        if not isinstance(text, str):
            raise TypeError(f"save: names and metadata are texts, not {type(text).__name__}")
    for name in sorted(values, key=lambda name: (-values[name].itemsize, name)):  # so that values are aligned
        x = values[name]
        if types[name] not in _NAMES or name == "__metadata__":
            raise TypeError(f"save: safetensors has no {types[name]}; save its parts" if name != "__metadata__" else f"save: {name!r} is no name of an array")
        header[name] = {"dtype": _NAMES[types[name]], "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"save: a name or text of the metadata has a character that files cannot hold: {error}") from None
    text += b" " * (-len(text) % 8)
    if len(text) > _MOST_HEADER:
        raise ValueError(f"save: a header of {len(text)} bytes, of which the format allows {_MOST_HEADER}")
    def write(file):
        file.write(struct.pack("<Q", len(text)) + text)
        for name in header:
            if name != "__metadata__":
                file.write(np.ascontiguousarray(values[name]).data)
    _replace(os.path.realpath(os.fsdecode(path)), write)


def _replace(path, write):
    """A file that write(file) fills, in the place of |path|, whole or not at all, with the permissions of the one that was there."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = None
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f"{name[:100]}.{secrets.token_hex(8)}.part")  # a name that nobody else has
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        with open(handle, "wb") as file:
            if mode is not None:
                os.fchmod(handle, mode)
            write(file)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _once(pairs):
    """A JSON object, of which no name may be there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _number(text):
    raise ValueError(f"{text} is no whole number")


def _header_of(file, path):
    """The header, and where the data begins and how many bytes that has."""
    size = os.fstat(file.fileno()).st_size
    head = file.read(8)
    length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
    if length > min(size - 8, _MOST_HEADER):
        raise ValueError(f"load: {path} is no safetensors file, or not whole: of {size} bytes its header would have {length}")
    try:
        header = json.loads(file.read(length).decode(), object_pairs_hook=_once, parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"load: {path} is no safetensors file: its header is no JSON that can be read: {error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"load: {path} is no safetensors file: its header is no object of JSON")
    return header, 8 + length, size - 8 - length


def _check_entry(name, entry, room):
    """The type, shape, begin and end of an array."""
    def refuse(why):
        raise ValueError(f"array {name[:200]!r}: {why}")
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
        refuse("it has no dtype")
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    for what, numbers in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(numbers, list) or any(type(n) is not int or not 0 <= n < 2**63 for n in numbers):
            refuse(f"its {what} is no list of whole numbers")
    if len(offsets) != 2 or not offsets[0] <= offsets[1] <= room:
        refuse(f"its data, {offsets}, is not within the {room} bytes that there are")
    if len(shape) > _core.MAX_RANK:
        refuse(f"it has {len(shape)} dimensions; arrays have {_core.MAX_RANK} at most")
    if entry["dtype"] in _TYPES:
        wanted = np.dtype(_TYPES[entry["dtype"]]).itemsize
        most = math.prod(n for n in shape if n) * wanted
        for n in shape:
            wanted *= n
        if wanted != offsets[1] - offsets[0]:
            refuse(f"{entry['dtype']} {shape} has {wanted} bytes, its data {offsets[1] - offsets[0]}")
        if most >= 2**63:
            refuse(f"{shape} is larger than an array can be")
    return entry["dtype"], tuple(shape), *offsets


def _entries(header, room, path):
    """name: (type, shape, begin, end); no byte belongs to two or to none."""
    try:
        found = {name: _check_entry(name, entry, room) for name, entry in header.items() if name != "__metadata__"}
        at = 0
        for name, (_, _, begin, end) in sorted(found.items(), key=lambda item: item[1][2:]):
            if begin != at:
                raise ValueError(f"array {name[:200]!r} begins at byte {begin} of the data, and what is before it ends at {at}")
            at = end
        if at != room:
            raise ValueError(f"there are {room} bytes of data, and arrays have {at}")
    except ValueError as error:
        raise ValueError(f"load: {path}: {error}") from None
    return found


def load(path, names=None, device=None):
    """The arrays of a file by their names, of all or of |names|."""
    with open(path, "rb") as file:
        header, start, room = _header_of(file, path)
        entries = _entries(header, room, path)
        missing = sorted(set(names or ()) - entries.keys())
        if missing:
            raise KeyError(f"load: {path} has no {', '.join(missing)}")
        return {name: _read(file, path, start, name, entries[name], device) for name in (entries if names is None else names)}


def _read(file, path, start, name, entry, device):
    dtype, shape, begin, end = entry
    if dtype not in _TYPES:
        raise TypeError(f"load: {path}: array {name[:200]!r} is {dtype[:32]}, which arrays do not hold; there are {', '.join(_TYPES)}")
    values = np.empty(shape, _TYPES[dtype])
    file.seek(start + begin)
    if file.readinto(values.reshape(-1).view("u1").data) != end - begin:
        raise ValueError(f"load: {path} has become shorter while it was read")
    if dtype == "BOOL":
        values = values.view("u1") != 0
    made = from_numpy(values, device)
    return from_bits(made, _core.BF16) if dtype == "BF16" else made


def load_metadata(path):
    """The texts of a file beside its arrays, by their names."""
    with open(path, "rb") as file:
        header, _, room = _header_of(file, path)
    _entries(header, room, path)
    found = header.get("__metadata__", {})
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise ValueError(f"load: {path}: its metadata are not texts by names")
    return found
