"""Imported by tests that compare with transformers."""
from other_python import go_on_with

go_on_with(("transformers",), "torch-venv.sh", "RDNA_TEST_TORCH", "the reference needs PyTorch and transformers")
