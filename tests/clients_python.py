"""Imported by tests that ask rdna serve through the interfaces' official clients."""
from other_python import go_on_with

go_on_with(("openai", "anthropic", "ollama", "langchain_openai", "langchain_anthropic", "langchain_ollama", "jsonschema"), "client-venv.sh", "RDNA_TEST_CLIENTS", "the interfaces' clients are needed")
