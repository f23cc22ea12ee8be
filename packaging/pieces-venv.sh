#!/bin/bash
# Makes build/venv-pieces: Python with the libraries of SentencePiece's vocabularies. Prints its interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/venv.sh
make_venv build/venv-pieces "numpy sentencepiece==0.2.3 tokenizers==0.23.3"
