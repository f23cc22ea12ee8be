"""Imported by tests that compare with diffusers."""
from other_python import go_on_with

go_on_with(("diffusers", "torch"), "torch-venv.sh", "RDNA_TEST_TORCH", "the reference needs PyTorch and diffusers")
