"""The wheel of `pip install .`, in a fresh environment beside TensorFlow and outside of this tree: `import tensorflow` finds the
device with no variable of the environment set for it, and Keras trains, which is not told more, on the host and, by the kernels of the wheel itself, on an
emulated card. TensorFlow is that of another environment, so that it is not fetched again.

tensorflow_wheel.py PYTHON BUILD      PYTHON has TensorFlow; the kernels of BUILD are taken, which has finished
tensorflow_wheel.py PYTHON WHEEL.whl  a wheel that is built already
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "gfx1100"
CODE = """
import keras, numpy as np, tensorflow as tf
tf.config.set_soft_device_placement(False)
print("devices", [d.device_type for d in tf.config.list_physical_devices()])
with open("/proc/self/maps") as maps:
    ours = sorted({line.split()[-1] for line in maps if "rdna" in line.split()[-1] and ".so" in line.split()[-1]})
print("files", *ours)
a, b = np.random.default_rng(0).standard_normal((2, 7, 7)).astype(np.float32)
with tf.device("/device:RDNA:0"):
    product = tf.matmul(a, b)
    model = keras.Sequential([keras.Input((7,)), keras.layers.Dense(5, activation="relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    losses = model.fit(a, b[:, :1], epochs=4, batch_size=7, verbose=0).history["loss"]
assert product.device.endswith("RDNA:0"), product.device
np.testing.assert_allclose(product, a.astype(np.float64) @ b, atol=1e-5)
assert losses[-1] < losses[0], losses
"""


def make(python, folder, build):
    """A wheel of this tree without PyTorch's plugin, whose kernels another build has compiled."""
    define = [f"-Ccmake.define.RDNA_KERNELS_FROM={build}", "-Ccmake.define.RDNA_TORCH=OFF", f"-Cbuild-dir={ROOT / 'build/wheel'}"]
    subprocess.run([python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", *define, "-w", folder, ROOT], check=True)
    (made,) = folder.glob("rdna-*.whl")
    return made


def run(python, folder, **settings):
    """In a folder of its own, with nothing of this tree in the environment."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("RDNA_", "TF_", "LD_LIBRARY", "PYTHON"))}
    done = subprocess.run([python, "-c", CODE], env={**plain, **settings, "TF_CPP_MIN_LOG_LEVEL": "2"}, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"with {settings}: {done.returncode}\n{done.stdout}{done.stderr[-3000:]}")
    return dict(line.partition(" ")[::2] for line in done.stdout.splitlines())


def main():
    with_tensorflow, given = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        environment = folder / "venv"
        subprocess.run([with_tensorflow, "-m", "venv", environment], check=True)
        python = environment / "bin/python"
        wheel = given if given.suffix == ".whl" else make(python, folder, given)
        held = zipfile.ZipFile(wheel).namelist()
        for wanted in ("tensorflow-plugins/librdna_tensorflow.so", "tf_rdna/__init__.py", "tf_rdna.pth", "tf_rdna_autoload.py", "rdna/lib/librdna.so.0", f"rdna/lib/rdna/kernels/{TARGET}.rdnapack"):
            assert wanted in held, f"{wheel.name} has no {wanted}"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", wheel], check=True)
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        own, other = [subprocess.run([p, "-c", ask], check=True, capture_output=True, text=True).stdout.strip() for p in (python, with_tensorflow)]
        (pathlib.Path(own) / "tensorflow.pth").write_text(other + "\n")
        for settings in ({"RDNA_DRIVER": "host"}, {"RDNA_EMULATE": TARGET}):
            said = run(python, folder, **settings)
            assert "'RDNA'" in said["devices"], said
            files = said["files"].split()
            assert {"librdna_tensorflow.so", "librdna.so.0"} <= {os.path.basename(f) for f in files}, files
            assert all(f.startswith(str(environment.resolve())) for f in files), files
            print(settings, said["devices"], *(os.path.relpath(f, environment.resolve()) for f in files))


if __name__ == "__main__":
    main()
