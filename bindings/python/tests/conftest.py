import os

os.environ.setdefault("RDNA_DRIVER", "host")
