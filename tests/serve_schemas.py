#!/usr/bin/env python3
"""Asks one rdna serve for replies under random JSON schemas, eight at a time: tests/serve_schemas.py [COUNT]. Each reply that
ended must parse, and be valid as the jsonschema package sees it; one that had no room to end must say so."""
import clients_python  # goes on in another interpreter where the clients are not here
import collections
import concurrent.futures
import json
import sys
import tempfile

import jsonschema

import grammar_test
import serving


def main(count):
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(serving.write_model(folder), "--slots", 8, "--context", 1024)

        # The demo model would write strings and lists until its room ends: what closes them is made likelier,
        # but for every fourth schema.
        closing = [json.loads(server.ask("POST", "/tokenize", {"content": text})[2])["tokens"][-1] for text in ('"', "]", "}")]

        def ask(seed):
            schema = grammar_test.Maker(seed).schema()
            jsonschema.Draft202012Validator.check_schema(schema)
            form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
            status, _, text = server.ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "What?"}], "max_tokens": 900,
                                                                       "response_format": form, "seed": seed, "temperature": 1,
                                                                       "logit_bias": {str(token): 20 for token in closing if seed % 4}}, timeout=600)
            assert status == 200, (schema, text)
            choice = json.loads(text)["choices"][0]
            if choice["finish_reason"] == "stop":
                try:
                    jsonschema.Draft202012Validator(schema).validate(json.loads(choice["message"]["content"]))
                except Exception as error:
                    raise AssertionError(f"seed {seed}: {schema}: {choice['message']['content']}") from error
            return choice["finish_reason"]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            ends = collections.Counter(pool.map(ask, range(count)))
        server.stop()
    assert set(ends) <= {"stop", "length"} and ends["stop"] > count // 2, ends
    print(f"{count} schemas: {ends['stop']} replies ended, parse and are valid; {ends['length']} had no room to end")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
