#!/bin/bash
# Makes build/venv-torch-libraries: the environment of torch-venv.sh and the libraries that look for a device themselves.
# Prints its interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/venv.sh
venv=build/venv-torch-libraries
torch=$(packaging/torch-venv.sh)
above() { # PyTorch and transformers are read from their own environment, which is not copied for the 30 MB beside it
  "$torch" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
}
make_venv "$venv" "accelerate==1.15.0 lightning==2.6.6" above
