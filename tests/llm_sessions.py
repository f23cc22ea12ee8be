"""Sessions of language models through librdna, for tests that the program's commands do not reach."""
import ctypes
import pathlib

import numpy as np

import rdna_program  # first: it makes tools/ importable
from rdna_ctypes import Options
from vision_library import Picture

LIBRARY = pathlib.Path(rdna_program.PROGRAM).parent.parent / "lib/librdna.so"


class SessionOptions(Options):
    _fields_ = [("context", ctypes.c_int), ("kv_dtype", ctypes.c_int), ("batch", ctypes.c_int), ("exact", ctypes.c_int)]


AUTO = -1
class CacheOptions(Options):
    _fields_ = [("positions", ctypes.c_int64), ("context", ctypes.c_int), ("sequences", ctypes.c_int),
                ("batch", ctypes.c_int), ("logits", ctypes.c_int), ("page", ctypes.c_int), ("states", ctypes.c_int),
                ("kv_dtype", ctypes.c_int), ("exact", ctypes.c_int), ("lanes", ctypes.c_int),
                ("gives", ctypes.c_int), ("checkpoints", ctypes.c_int), ("reserved", ctypes.c_int)]


class Part(ctypes.Structure):
    _fields_ = [("sequence", ctypes.c_void_p), ("tokens", ctypes.POINTER(ctypes.c_int32)), ("count", ctypes.c_int32),
                ("logits", ctypes.c_int32), ("picture", ctypes.POINTER(Picture)), ("first", ctypes.c_int32),
                ("reserved", ctypes.c_int32)]

    @classmethod
    def of(cls, sequence, read, wanted):
        """|read|: tokens, or a whole Picture."""
        if isinstance(read, Picture):
            return cls(sequence, None, read.height * read.width, wanted, ctypes.pointer(read))
        return cls(sequence, (ctypes.c_int32 * len(read))(*read), len(read), wanted)


class AdapterUse(ctypes.Structure):
    _fields_ = [("adapter", ctypes.c_void_p), ("scale", ctypes.c_float)]


MEMORY = ["weights", "caches", "activations", "workspace", "peak", "reserved", "mapped", "free", "total"]


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in MEMORY]


class Plan(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in (
        "context", "batch", "model_context", "layers", "host_layers", "host_experts", "fits")] + [
        ("budget", ctypes.c_uint64), ("device", Memory), ("host", Memory), ("staging", ctypes.c_uint64), ("sentence", ctypes.c_char * 384)]


class PlanOptions(Options):
    _fields_ = [("session", ctypes.POINTER(SessionOptions)), ("budget", ctypes.c_uint64),
                ("most_context", ctypes.c_int64), ("host_layers", ctypes.c_int), ("host_experts", ctypes.c_int)]


class OpenOptions(Options):
    _fields_ = [("host_layers", ctypes.c_int), ("host_experts", ctypes.c_int), ("progress", ctypes.c_void_p),
                ("progress_data", ctypes.c_void_p)]


class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "allocated", "requested", "reserved", "peak_allocated", "peak_requested", "peak_reserved", "blocks", "peak_blocks",
        "alloc_count", "free_count", "alloc_bytes", "free_bytes", "segment_count", "peak_segment_count", "driver_allocs",
        "driver_frees", "retries", "ooms")] + [("fragmentation", ctypes.c_double)]


class Model:
    def __init__(self, path, device="host", opened=True):
        self.library = ctypes.CDLL(str(LIBRARY))
        self.library.rdna_last_error.restype = ctypes.c_char_p
        self.file, self.device, self.llm = (ctypes.c_void_p() for _ in range(3))
        self.call("rdna_gguf_open", str(path).encode(), ctypes.byref(self.file))
        self.call("rdna_device_open", device.encode(), ctypes.byref(self.device))
        if opened:
            self.open()

    def open(self, host_layers=0, host_experts=0):
        options = OpenOptions(host_layers, host_experts, None, None)
        self.call("rdna_llm_open_with", self.device, self.file, ctypes.byref(options), ctypes.byref(self.llm))

    def plan(self, session, budget=0, host_layers=0, host_experts=0, most_context=0):
        options, plan = PlanOptions(ctypes.pointer(session), budget, most_context, host_layers, host_experts), Plan()
        self.call("rdna_llm_make_plan", self.device, self.file, ctypes.byref(options), ctypes.byref(plan))
        return plan

    def stats(self, device=None):
        """Of the model's device, or of another that is open."""
        stats, of = Stats(), ctypes.c_void_p(self.device.value)
        if device:
            self.call("rdna_device_open", device.encode(), ctypes.byref(of))
        self.library.rdna_memory_get_stats(of, ctypes.byref(stats))
        if device:
            self.library.rdna_device_release(of)
        return stats

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments) != 0:
            raise RuntimeError(self.library.rdna_last_error().decode())

    def close(self):
        self.library.rdna_llm_release(self.llm)
        self.library.rdna_device_release(self.device)
        self.library.rdna_gguf_close(self.file)


class Session:
    """A cache of f32, unless there are |options|."""

    def __init__(self, model, vocabulary, context, batch, options=None):
        self.model, self.vocabulary, self.handle = model, vocabulary, ctypes.c_void_p()
        options = options or SessionOptions(context, 0, batch, 1)
        model.call("rdna_llm_session_create", model.llm, ctypes.byref(options), ctypes.byref(self.handle))

    def adapt(self, path, scale):
        """Gives the session the low-rank adapter at |path|."""
        adapter = ctypes.c_void_p()
        self.model.call("rdna_llm_adapter_open", self.model.llm, str(path).encode(), ctypes.byref(adapter))
        try:
            self.model.call("rdna_llm_session_adapt", self.handle, ctypes.byref(AdapterUse(adapter, scale)), 1)
        finally:
            self.model.library.rdna_llm_adapter_release(adapter)  # the session keeps it

    def read(self, tokens):
        """The logits after each of |tokens|."""
        logits = np.full((len(tokens), self.vocabulary), np.nan, np.float32)
        ids = (ctypes.c_int32 * len(tokens))(*tokens)
        self.model.call("rdna_llm_session_eval_all", self.handle, ids, len(tokens),
                        logits.ctypes.data_as(ctypes.c_void_p))
        return logits.astype(np.float64)

    def prompt(self, tokens):
        """The logits after the last of |tokens|, which are read in passes as long as the session has."""
        logits = np.full(self.vocabulary, np.nan, np.float32)
        self.model.call("rdna_llm_session_eval", self.handle, (ctypes.c_int32 * len(tokens))(*tokens), len(tokens),
                        logits.ctypes.data_as(ctypes.c_void_p))
        return logits.astype(np.float64)

    def step(self, token):
        """The logits after one more token."""
        return self.prompt([token])

    def rewind(self, position):
        self.model.call("rdna_llm_session_rewind", self.handle, position)

    def close(self):
        self.model.library.rdna_llm_session_release(self.handle)


class Cache:
    """Of f32, for sequences that share steps."""

    def __init__(self, model, vocabulary, **options):
        self.model, self.vocabulary, self.handle = model, vocabulary, ctypes.c_void_p()
        options = CacheOptions(**{"kv_dtype": 0, "exact": 1, **options})
        model.call("rdna_llm_cache_create", model.llm, ctypes.byref(options), ctypes.byref(self.handle))

    def sequence(self):
        handle = ctypes.c_void_p()
        self.model.call("rdna_llm_sequence_create", self.handle, ctypes.byref(handle))
        return handle

    def fork(self, sequence, position):
        handle = ctypes.c_void_p()
        self.model.call("rdna_llm_sequence_fork", sequence, position, ctypes.byref(handle))
        return handle

    def position(self, sequence):
        return self.model.library.rdna_llm_sequence_position(sequence)

    def reach(self, sequence, position):
        return self.model.library.rdna_llm_sequence_reach(sequence, position)

    def truncate(self, sequence, position):
        self.model.call("rdna_llm_sequence_truncate", sequence, position)

    def checkpoint(self, sequence):
        self.model.call("rdna_llm_sequence_checkpoint", sequence)

    def release(self, sequence):
        self.model.library.rdna_llm_sequence_release(sequence)

    def step(self, parts):
        """|parts| are (sequence, tokens or a picture, how many logits); gives the logits of each, in float64."""
        rows = (Part * len(parts))(*(Part.of(*part) for part in parts))
        logits = ctypes.POINTER(ctypes.c_float)()
        self.model.call("rdna_llm_step", self.handle, rows, len(parts), ctypes.byref(logits))
        total = sum(wanted for _, _, wanted in parts)
        if total == 0:
            return [np.empty((0, self.vocabulary)) for _ in parts]
        values = np.ctypeslib.as_array(logits, (total, self.vocabulary)).astype(np.float64)
        return np.split(values, np.cumsum([wanted for _, _, wanted in parts])[:-1])

    def close(self):
        self.model.library.rdna_llm_cache_release(self.handle)
