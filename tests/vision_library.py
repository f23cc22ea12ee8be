"""Towers and pictures of librdna, for tests."""
import ctypes

import numpy as np


class Picture(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_void_p), ("height", ctypes.c_int32), ("width", ctypes.c_int32)]


class Info(ctypes.Structure):
    _fields_ = [("projector", ctypes.c_char * 32), *((name, ctypes.c_int) for name in (
        "layers", "width", "row", "patch", "most_tokens")), ("weight_bytes", ctypes.c_uint64), ("deepstack", ctypes.c_int)]


class Tower:
    def __init__(self, model, path):
        """|model|: of llm_sessions.py, for its library and device."""
        self.model, self.file, self.handle = model, ctypes.c_void_p(), ctypes.c_void_p()
        model.call("rdna_gguf_open", str(path).encode(), ctypes.byref(self.file))
        try:
            model.call("rdna_vision_open", model.device, self.file, ctypes.byref(self.handle))
        except RuntimeError:
            model.library.rdna_gguf_close(self.file)
            raise
        get_info = model.library.rdna_vision_get_info
        get_info.restype = ctypes.POINTER(Info)
        self.info = get_info(self.handle).contents

    def grid(self, height, width):
        picture = Picture()
        self.model.call("rdna_vision_measure", self.handle, height, width, ctypes.byref(picture))
        return picture.height, picture.width

    def see(self, picture, row):
        """The rows of |picture| (height, width, 3) of bytes, float32; a row has |row| values. Those of all tokens, and then
        those that the language model's first layers add."""
        pixels = np.ascontiguousarray(picture, np.uint8)
        tokens = int(np.prod(self.grid(*pixels.shape[:2])))
        rows = np.full(((1 + self.info.deepstack) * tokens, row), np.nan, np.float32)
        self.model.call("rdna_vision_see", self.handle, pixels.ctypes.data_as(ctypes.c_void_p), *pixels.shape[:2],
                        rows.ctypes.data_as(ctypes.c_void_p))
        return rows

    def check(self):
        """Against the model's file."""
        self.model.call("rdna_vision_check", self.handle, self.model.file)

    def close(self):
        self.model.library.rdna_vision_release(self.handle)
        self.model.library.rdna_gguf_close(self.file)


def show(session, rows, grid):
    """Lets a session of llm_sessions.py read a picture."""
    picture = Picture(rows.ctypes.data_as(ctypes.c_void_p), *grid)
    session.model.call("rdna_llm_session_see", session.handle, ctypes.byref(picture))
