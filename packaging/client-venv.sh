#!/bin/bash
# Makes build/venv-clients: Python with the official clients of the interfaces that rdna serve has. Prints its
# interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/venv.sh
make_venv build/venv-clients "numpy openai==3.54.0 anthropic==2.12.0 ollama==0.6.3 langchain-openai==1.7.4 langchain-anthropic==1.7.10 langchain-ollama==1.1.0 jsonschema==4.26.0 webuiapi==0.9.17"
