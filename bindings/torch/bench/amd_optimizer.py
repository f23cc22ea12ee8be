#!/usr/bin/env python3
"""AMDOptimizer("aggressive") beside the unoptimized model on the same device and PyTorch's own CUDA, on one NVIDIA GPU.

    python bindings/torch/bench/amd_optimizer.py [--tiny] [--only REGEX]

torchvision's ResNet-50 and ViT-B/16 and transformers' BERT-base with random weights; inference in f32 and in fp16 (the
optimizer is given the f32 model and `default_precision="fp16"`; the other two have the model in fp16), training steps in f32 and
under autocast to bf16. The optimized and the unoptimized model take turns in one process, as hosts' speed varies; CUDA has a process
of its own, since PyTorch's autograd knows one accelerator at a time.
plain/rdna and cuda/rdna: the other's time over the optimized model's, so that more is better. off: how far the optimized
model's inference of two samples is from the CPU's in float64, relative to its norm. Below a line is what the optimizer did."""
import argparse
import copy
import json
import re
import statistics
import sys

import torch

import sides

SIDES = ("rdna", "cuda")  # the optimized model and the same unoptimized, PyTorch's CUDA
TURNS = 5
CASES = [(name, mode, dtype) for name in ("ResNet-50", "BERT-base", "ViT-B/16")
         for mode, dtype in (("inference", "fp32"), ("inference", "fp16"), ("training", "fp32"), ("training", "bf16"))]
TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def made(name, tiny):
    """A model and its inputs on the CPU, f32, the same in every process."""
    torch.manual_seed(0)
    if name == "BERT-base":
        import transformers
        size = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128) if tiny else {}
        model = transformers.BertModel(transformers.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0, **size))
        words = torch.randint(0, 30000, (2, 8) if tiny else (16, 128))
        return model, (words, torch.ones_like(words))
    import torchvision
    images = torch.randn(2 if tiny else 32, 3, 224, 224)
    if name == "ViT-B/16":
        size = dict(image_size=224, patch_size=32, num_layers=1, num_heads=2, hidden_dim=32, mlp_dim=64)
        model = torchvision.models.VisionTransformer(**size) if tiny else torchvision.models.vit_b_16()
        torch.nn.init.normal_(model.heads.head.weight, std=0.02)  # torchvision's are 0
        return model, (images,)
    model = torchvision.models.resnet18() if tiny else torchvision.models.resnet50()
    for module in model.modules():  # statistics as after training, so that folding them shows
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
    return model, (images,)


def value(output):
    return output if torch.is_tensor(output) else output.last_hidden_state


def optimized(model, dtype, inputs, training):
    from rdna.amd import AMDConfig, AMDOptimizer
    optimizer = AMDOptimizer(AMDConfig(default_precision=dtype))
    model = optimizer.optimize(model, level="aggressive", training=training, example_inputs=None if training else inputs)
    result = optimizer.result
    return model, {"did": ", ".join(result.optimizations_applied), "warnings": result.warnings,
                   "launches": [result.launches_before, result.launches_after], "graphs": graphs()}


def graphs():
    report = torch.rdna.compile_report()
    return {"recorded": report["recorded"], **report["not_recorded"]}


def in_turns(device, steps, count):
    """Milliseconds of each of |steps|, the median of its turns."""
    for step in steps:
        sides.measure(device, step, 1, 5)
    turns = [[sides.measure(device, step, count, 0)[0] for step in steps] for _ in range(TURNS)]
    return [statistics.median(times) for times in zip(*turns)]


def inference(side, name, dtype, tiny):
    device, more, steps = "cuda" if side == "cuda" else "rdna", {}, []
    model, inputs = made(name, tiny)

    def step(model, inputs):
        return lambda: value(model(*inputs)).flatten()[0]
    with torch.no_grad():
        if side == "rdna":
            exact = value(model.double().eval()(*(x[:2].double() if x.is_floating_point() else x[:2] for x in inputs)))
            model = model.float()
        model, inputs = model.eval().to(device), tuple(x.to(device) for x in inputs)
        plain = copy.deepcopy(model)
        if side == "rdna":
            model, more = optimized(model, dtype, inputs, False)
            got = value(model(*inputs))[:2].double().cpu()
            more["off"] = ((got - exact).norm() / exact.norm()).item()
            steps.append(step(model, inputs))
        plain = plain.to(TYPES[dtype])
        steps.append(step(plain, tuple(x.to(TYPES[dtype]) if x.is_floating_point() else x for x in inputs)))
        times = in_turns(device, steps, 1 if tiny else 10)
    return {"ms": times[0], "plain": times[-1], **more}


def training(side, name, dtype, tiny):
    device, more = "cuda" if side == "cuda" else "rdna", {}
    model, inputs = made(name, tiny)
    model, inputs = model.train().to(device), tuple(x.to(device) for x in inputs)

    def step_of(model, by_itself):
        descent = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

        def step():
            descent.zero_grad()
            with torch.autocast(device, TYPES[dtype] if dtype != "fp32" else torch.bfloat16, enabled=dtype != "fp32" and not by_itself):
                loss = value(model(*inputs)).float().square().mean()
            loss.backward()
            descent.step()
            return loss.detach()
        return step
    steps = [step_of(copy.deepcopy(model), False)]
    if side == "rdna":
        model, more = optimized(model, dtype, inputs, True)
        steps.insert(0, step_of(model, True))
    times = in_turns(device, steps, 1 if tiny else 6)
    return {"ms": times[0], "plain": times[-1], **more}


def one(options):
    sides.begin("cuda" if options.one == "cuda" else "rdna")
    for name, mode, dtype in cases(options):
        try:
            result = (inference if mode == "inference" else training)(options.one, name, dtype, options.tiny)
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps({**result, "fallbacks": sides.fallbacks("cuda" if options.one == "cuda" else "rdna")}), flush=True)


def cases(options):
    return [case for case in CASES if re.search(options.only, " ".join(case))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="sizes at which only the script itself is tried")
    parser.add_argument("--only", default="", help="a regular expression over 'model mode type'")
    parser.add_argument("--sides", default=",".join(SIDES), help="rdna, cuda, or both")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options)
        return 0
    passed = ["--only", options.only, *["--tiny"] * options.tiny]
    results = {}
    for side in options.sides.split(","):
        results[side] = []
        for case, result in zip(cases(options), sides.lines(__file__, "--one", side, *passed)):
            results[side].append(result)
            print(f"{side:6}{' '.join(case):30}" + sides.shown(result.get("ms"), 11, 3) + f"  {result.get('error', '')}", flush=True)
    print(f"{'':10}{'':10}{'':5}" + "".join(f"{side + ' ms':>11}" for side in ("rdna", "plain", "cuda")) + f"{'plain/rdna':>12}{'cuda/rdna':>11}{'off':>10}")
    failed = False
    for number, case in enumerate(cases(options)):
        line = {side: result[number] if number < len(result) else {"error": "no line"} for side, result in results.items()}
        times = {"rdna": line.get("rdna", {}).get("ms"), "plain": line.get("rdna", {}).get("plain"), "cuda": line.get("cuda", {}).get("ms")}
        ratios = [times[side] / times["rdna"] if times.get(side) and times.get("rdna") else None for side in ("plain", "cuda")]
        rdna = line.get("rdna", {})
        print(f"{case[0]:10}{case[1]:10}{case[2]:5}" + "".join(sides.shown(ms, 11, 3) for ms in times.values())
              + sides.shown(ratios[0], 12) + sides.shown(ratios[1], 11)
              + (f"{rdna['off']:10.1e}" if "off" in rdna else f"{'-':>10}"))
        for side, one_line in line.items():
            for key in ("error", "did", "launches", "graphs", "warnings", "fallbacks"):
                if one_line.get(key):
                    print(f"    {side} {key}: {one_line[key]}")
        failed |= any("error" in one_line for one_line in line.values())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
