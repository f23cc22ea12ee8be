"""Low-rank adapters in PEFT's folders, for a network in Hugging Face's order of rows, against that network in float64."""
import json
import unittest

import numpy as np

import rdna_program  # first: it makes tools/ importable
import hf_folder
import llm_sessions
import serving


class Peft(unittest.TestCase):
    MODULES = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]

    @classmethod
    def setUpClass(cls):
        cls.rng, cls.folder = np.random.default_rng(4), serving.folder_for(cls)
        cls.model = hf_folder.llama(cls.rng)
        cls.model.write(cls.folder / "base")
        rdna_program.output("convert", cls.folder / "base", cls.folder / "base.gguf")

    def write(self, name, kind="F32", rank=4, config=None, more=None):
        """A folder; the changes of its modules without their scale."""
        folder, tensors, changes = self.folder / name, {}, {}
        folder.mkdir()
        for module in [f"model.layers.{i}.{m}" for i in range(2) for m in self.MODULES] + ["lm_head"]:
            rows, columns = self.model.tensors[module + ".weight"].shape
            a, b = (hf_folder.rounded(kind, self.rng.normal(0, 0.3, shape)) for shape in ((rank, columns), (rows, rank)))
            tensors[f"base_model.model.{module}.lora_A.weight"], tensors[f"base_model.model.{module}.lora_B.weight"] = (kind, a), (kind, b)
            changes[module] = b @ a
        settings = {"peft_type": "LORA", "r": rank, "lora_alpha": 2, "bias": "none", "target_modules": ["q_proj"], **(config or {})}
        (folder / "adapter_config.json").write_text(json.dumps(settings))
        (folder / "adapter_model.safetensors").write_bytes(hf_folder.safetensors({**tensors, **(more or {})}))
        return folder, changes

    def logits(self, folder, tokens, scale=1.0):
        model = llm_sessions.Model(self.folder / "base.gguf")
        session = llm_sessions.Session(model, self.model.vocab_size, 64, 32)
        try:
            session.adapt(folder, scale)
            return session.read(tokens)
        finally:
            session.close()
            model.close()

    def check(self, folder, changes, factor_of, scale=1.0):
        tokens = self.rng.integers(0, self.model.vocab_size, 20)
        before = dict(self.model.tensors)
        try:
            for module, change in changes.items():
                self.model.tensors[module + ".weight"] = before[module + ".weight"] + scale * factor_of(module) * change
            want = hf_folder.llama_logits(self.model, tokens)
        finally:
            self.model.tensors = before
        self.assertGreater(np.abs(want - hf_folder.llama_logits(self.model, tokens)).max(), 0.1)
        np.testing.assert_allclose(self.logits(folder, tokens.tolist(), scale), want, atol=3e-5 * np.abs(want).max())

    def test_scales(self):
        self.check(*self.write("plain"), lambda module: 2 / 4)
        self.check(*self.write("bf16", "BF16"), lambda module: 2 / 4, -0.5)
        self.check(*self.write("half", "F16", 3, {"use_rslora": True, "lora_alpha": 1.5}), lambda module: 1.5 / 3**0.5)
        patterns = {"k_proj": 1, "layers.1.mlp.up_proj": 4}
        self.check(*self.write("patterns", config={"alpha_pattern": patterns}), lambda module: next((v for k, v in patterns.items() if module.endswith("." + k)), 2) / 4)

    def test_what_is_refused(self):
        matrix = ("F32", np.zeros((4, 4)))
        for i, (config, more, mention) in enumerate((
                ({"peft_type": "IA3"}, None, "IA3"), ({"use_dora": True}, None, "use_dora"), ({"bias": "all"}, None, "bias"), ({"modules_to_save": ["lm_head"]}, None, "modules_to_save"),
                ({"alpha_pattern": {"q.*": 1}}, None, "alpha_pattern"), ({"lora_alpha": "x"}, None, "lora_alpha"),
                (None, {"base_model.model.model.embed_tokens.lora_embedding_A": matrix}, "lora_embedding_A"), (None, {"base_model.model.model.layers.0.mlp.gate.lora_A.weight": matrix}, "mlp.gate"),
                (None, {"base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight": matrix, "base_model.model.model.layers.9.self_attn.q_proj.lora_B.weight": ("F32", np.zeros((64, 4)))}, "blk.9.attn_q"))):
            folder, _ = self.write(f"refused-{i}", config=config, more=more)
            with self.assertRaisesRegex(RuntimeError, mention):
                self.logits(folder, [1])


if __name__ == "__main__":
    unittest.main()
