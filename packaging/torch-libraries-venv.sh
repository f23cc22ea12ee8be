#!/bin/bash
# Makes build/venv-torch-libraries: the environment of torch-venv.sh and the libraries that are tried on rdna each night.
# Prints its interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/venv.sh
venv=build/venv-torch-libraries
torch=$(packaging/torch-venv.sh)
above() { # PyTorch and transformers are read from their own environment, which is not copied for the 30 MB beside it
  "$torch" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
}
# torch is named so that none of these brings another.
make_venv "$venv" "torch==2.13.0 accelerate==1.15.0 lightning==2.6.6 peft==0.21.2 trl==1.16.0 diffusers==0.42.1 sentence-transformers==6.2.0 torch-geometric==2.8.1 torchao==0.18.0 gpytorch==1.15.2 captum==0.9.0 e3nn==0.6.0 bitsandbytes==0.50.2 einops==0.8.2 liger-kernel==0.8.5 entmax==1.3 kornia==0.9.0 normflows==1.7.3 opacus==1.6.0 pyro-ppl==1.9.2 pytorch-metric-learning==2.9.0 torchdiffeq==0.2.5 torchmetrics==1.9.0 zuko==1.6.0 x-transformers==2.31.10 torchsde==0.2.6 tensordict==0.15.3 monai==1.6.1" above
