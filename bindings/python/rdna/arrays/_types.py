"""Types of values: NumPy's own objects."""

import numpy as np

bool, uint8, int8, int16, int32, int64 = (np.dtype(name) for name in ("bool", "uint8", "int8", "int16", "int32", "int64"))
float16, float32, float64 = (np.dtype(name) for name in ("float16", "float32", "float64"))
