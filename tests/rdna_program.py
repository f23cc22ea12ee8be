"""Running the rdna program from tests. RDNA_PROGRAM is its path; RDNA_TEST_DEVICE the device, "host" by default."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
PROGRAM = os.environ.get("RDNA_PROGRAM", str(ROOT / "build/release/bin/rdna"))
DEVICE = os.environ.get("RDNA_TEST_DEVICE", "host")
DEMO_MODEL = ROOT / "examples/demo-model/rdna-demo-q8_0.gguf"
# Models and vocabularies that are compared with another engine's results; they are not part of the repository.
SHARED_DATA = pathlib.Path(os.environ.get("RDNA_SHARED_DATA", ROOT.parent / "shared/data"))


def run(*arguments, stdin=b"", environment=None, timeout=300):
    """The finished process, with stdout and stderr as bytes. A death by signal is never what a test wants."""
    result = subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, timeout=timeout,
                            env={**os.environ, **(environment or {})})
    assert result.returncode >= 0, f"rdna {arguments} died by signal {-result.returncode}: {result.stderr.decode()}"
    return result


def output(*arguments, **options):
    result = run(*arguments, **options)
    assert result.returncode == 0, f"rdna {arguments}: exit status {result.returncode}, {result.stderr.decode()}"
    return result.stdout
