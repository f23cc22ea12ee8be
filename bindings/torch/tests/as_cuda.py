"""Run by test_as_cuda.py as a program that says "cuda": python -m torch_rdna.as_cuda as_cuda.py FOLDER

It knows nothing of rdna. Runs the programs of cuda_scripts/ and the functions check_* below, and writes what came of each
to FOLDER/results.json."""

import copy
import glob
import io
import json
import os
import pickle
import runpy
import subprocess
import sys
import threading
import traceback
import warnings

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, "cuda_scripts", "*.py")))


def check_devices_compare():
    assert torch.device("cuda:0") == torch.device("cuda", 0) == torch.device(0) == torch.device("rdna:0")
    assert torch.device("cuda") != torch.device("cpu") and torch.device("cuda").type == "cuda"
    assert str(torch.device("cuda:0")) == "cuda:0" and repr(torch.device("cuda")) == "device(type='cuda')"
    assert {torch.device("cuda:0"): 1}[torch.ones(1).cuda().device] == 1
    assert pickle.loads(pickle.dumps(torch.device("cuda:0"))) == torch.device("cuda:0")
    for wrong in ("cudax", "cuda:x", "cuda:-2"):
        try:
            torch.device(wrong)
        except RuntimeError:
            continue
        raise AssertionError(wrong)


def check_tensors_move():
    x = torch.arange(6.0).view(2, 3)
    moved = [
        x.cuda(), x.cuda(0), x.cuda("cuda:0"), x.cuda(torch.device("cuda")), x.cuda(non_blocking=True), x.to("cuda"),
        x.to("cuda:0"), x.to(device="cuda", dtype=torch.float64), x.to(torch.ones(1, device="cuda")),
        torch.tensor(x.tolist(), device="cuda"), torch.as_tensor(x, device="cuda:0"), x.cuda().clone(),
        torch.asarray(x.numpy(), device="cuda"), torch.nn.Parameter(x).cuda(),
    ]  # fmt: skip
    for y in moved:
        assert y.is_cuda and y.device.type == "cuda" and y.get_device() == 0 and torch.equal(y.cpu().float(), x)
    y = moved[0]
    assert y.cuda() is y and y.to("cuda") is y and y.to("cuda:0") is y and not x.is_cuda and not y.cpu().is_cuda
    assert y.untyped_storage().is_cuda and x.untyped_storage().cuda().device.type == "cuda"
    assert x.cuda(memory_format=torch.contiguous_format).is_contiguous()


def check_tensors_are_made():
    made = [torch.zeros(2, device="cuda"), torch.empty_like(torch.ones(2), device="cuda"),
            torch.ones(2).new_full((2,), 1, device="cuda"), torch.randn(2, device="cuda", requires_grad=True),
            torch.linspace(0, 1, 3, device=0), torch.sparse_coo_tensor([[0]], [1.0], (2,), device="cuda")]  # fmt: skip
    assert all(x.is_cuda for x in made)
    assert torch.nn.Linear(2, 2, device="cuda").weight.is_cuda
    with torch.device("cuda"):
        assert torch.zeros(1).is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.zeros(1).is_cuda
    finally:
        torch.set_default_device(None)


def check_optimizer_fuses():
    """rdna.amd's optimizer joins layers with their activations here as it does for "rdna"."""
    from rdna.amd import AMDOptimizer

    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).cuda().eval()
    x = torch.randn(2, 3, 8, 8, device="cuda")
    want, optimizer = model(x), AMDOptimizer()
    made = optimizer.optimize(model, example_inputs=x)
    assert type(made[0]).__name__ == "Conv2dActivation", made
    torch.testing.assert_close(made(x), want, rtol=1e-5, atol=1e-5)


def check_typed_tensors():
    x = torch.ones(3)
    for kind in ("torch.cuda.FloatTensor", torch.cuda.FloatTensor):
        y = x.type(kind)
        assert y.is_cuda and y.type() == "torch.cuda.FloatTensor" and isinstance(y, torch.cuda.FloatTensor)
    assert x.type(torch.cuda.HalfTensor).dtype == torch.float16 and x.cuda().type(torch.float64).is_cuda
    assert x.type("torch.DoubleTensor").type() == "torch.DoubleTensor" and not isinstance(x, torch.cuda.FloatTensor)
    assert torch.equal(torch.cuda.LongTensor([1, 2]).cpu(), torch.tensor([1, 2]))
    warnings.simplefilter("ignore")
    torch.set_default_tensor_type("torch.cuda.DoubleTensor")
    try:
        assert torch.zeros(2).type() == "torch.cuda.DoubleTensor"
    finally:
        torch.set_default_device(None)
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.zeros(2).type() == "torch.FloatTensor"


def check_module_of_devices():
    count = torch.cuda.device_count()
    assert torch.cuda.is_available() and count >= 1 and torch.cuda.current_device() == 0
    torch.cuda.set_device("cuda:0")
    with torch.cuda.device("cuda:0"), torch.cuda.device(0), torch.cuda.device_of(torch.ones(1).cuda()):
        torch.cuda.synchronize()
        torch.cuda.synchronize("cuda:0")
    properties = torch.cuda.get_device_properties("cuda")
    assert properties.name == torch.cuda.get_device_name(0) and properties.total_memory > 0
    assert len(torch.cuda.get_device_capability()) == 2 and torch.cuda.get_arch_list()
    assert torch.accelerator.current_accelerator().type == "cuda" and torch.cuda.is_initialized()
    assert torch.cuda._initialized


def check_memory():
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before >= x.nbytes and torch.cuda.max_memory_allocated("cuda:0") >= x.nbytes
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total and torch.cuda.memory_stats()["allocated_bytes.all.current"] >= x.nbytes
    assert torch.cuda.memory.memory_allocated is torch.cuda.memory_allocated and torch.cuda.memory_summary()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()


def check_streams_and_events():
    stream = torch.cuda.Stream()
    assert isinstance(stream, torch.cuda.Stream) and stream.device.type == "cuda"
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        x = torch.ones(100, device="cuda") * 2
    torch.cuda.current_stream().wait_stream(stream)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    y = x + 1
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) >= 0 and y.sum().item() == 300 and end.query()


def check_random_numbers():
    def draw():
        return torch.randn(4, device="cuda").cpu()

    torch.cuda.manual_seed(3)
    first = draw()
    state = torch.cuda.get_rng_state()
    second = draw()
    torch.cuda.set_rng_state(state)
    assert torch.equal(draw(), second) and not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(draw(), first)
    torch.cuda.manual_seed_all(3)
    assert torch.equal(draw(), first)
    with torch.random.fork_rng():
        draw()
    assert torch.equal(draw(), second)
    generator = torch.Generator("cuda").manual_seed(3)
    assert generator.device.type == "cuda"
    assert torch.equal(torch.randn(4, device="cuda", generator=generator).cpu(), first)
    assert torch.equal(torch.randn(4, device="cuda", generator=torch.Generator(device="cuda:0").manual_seed(3)).cpu(), first)


def check_autocast():
    a = torch.ones(4, 4, device="cuda")
    with torch.autocast("cuda"):
        assert (a @ a).dtype == torch.float16 and torch.is_autocast_enabled("cuda")
        assert torch.get_autocast_dtype("cuda") == torch.float16
    with torch.autocast(device_type=a.device.type, dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
    assert not torch.is_autocast_enabled("cuda")

    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(3, device="cuda", requires_grad=True)
    with torch.autocast("cuda"):
        y = Double.apply(x.half())
    y.sum().backward()
    assert y.dtype == torch.float32 and x.grad.tolist() == [2, 2, 2]


def check_scaler_finds_infinities():
    p = torch.nn.Parameter(torch.ones(2, device="cuda"))
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), torch.amp.GradScaler("cuda", init_scale=8.0)
    scaler.scale((p * torch.tensor([1.0, float("inf")], device="cuda")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [1, 1] and scaler.get_scale() == 4 and scaler.is_enabled()


def check_checkpoints():
    saved = {"x": torch.arange(3.0, device="cuda"), "d": torch.device("cuda:0")}
    for zipped in (True, False):
        file = io.BytesIO()
        torch.save(saved, file, _use_new_zipfile_serialization=zipped)
        for where, kind in ((None, "cuda"), ("cuda", "cuda"), ("cuda:0", "cuda"), (torch.device("cuda"), "cuda"),
                            ("cpu", "cpu"), ({"cuda:0": "cpu"}, "cpu"), (lambda storage, location: storage, "cpu"),
                            (lambda storage, location: storage.cuda(0), "cuda")):  # fmt: skip
            file.seek(0)
            back = torch.load(file, map_location=where)["x"]
            assert back.device.type == kind and back.tolist() == [0, 1, 2], (zipped, where, back)
    assert copy.deepcopy(saved["x"]).is_cuda
    with open(os.path.join(sys.argv[1], "rdna.pt"), "rb") as file:  # what was saved where nobody said cuda
        assert torch.load(file)["x"].is_cuda
    torch.save({**saved, "half": saved["x"].half()}, os.path.join(sys.argv[1], "cuda.pt"))


def check_data_parallel():
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 2)
    x = torch.randn(5, 3)
    parallel = torch.nn.DataParallel(copy.deepcopy(net)).cuda()
    parallel(x).sum().backward()
    net(x).sum().backward()
    torch.testing.assert_close(parallel.module.weight.grad.cpu(), net.weight.grad)
    from torch.nn.parallel import comm

    devices = [0, 0, 0]  # one device stands for three: what is split and joined is the same
    parts = comm.scatter(x.cuda(), devices)
    assert [len(p) for p in parts] == [2, 2, 1] and torch.equal(comm.gather(parts, 0, "cpu"), x)
    assert [len(p) for p in comm.scatter(x, devices[:2], chunk_sizes=[1, 4])] == [1, 4]
    assert torch.equal(comm.gather(parts, destination=0).cpu(), x) and comm.gather(parts).is_cuda
    assert torch.equal(comm.reduce_add([x.cuda(), x.cuda()], 0).cpu(), x + x)
    assert all(torch.equal(copy_.cpu(), x) for copies in comm.broadcast_coalesced([x.cuda()], devices) for copy_ in copies)
    assert len(comm.broadcast(x.cuda(), devices)) == 3


def check_threads():
    found = []

    def work():
        x = torch.ones(2, device="cuda", requires_grad=True)
        with torch.autocast("cuda"):
            found.append((x @ x).dtype)
        found.append(x.is_cuda)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [torch.float16, True]


def check_profiler():
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    x = torch.ones(1000, device="cuda")
    with torch.profiler.profile(activities=activities) as profile:
        x * 2
    averages = profile.key_averages()
    assert sum(e.self_device_time_total for e in averages) > 0
    assert "CUDA total" in averages.table(sort_by="cuda_time_total")


def check_recomputation():
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)).cuda()
    x = torch.randn(4, 3, device="cuda", requires_grad=True)
    for reentrant in (True, False):
        torch.cuda.manual_seed(1)
        torch.utils.checkpoint.checkpoint(net, x, use_reentrant=reentrant).sum().backward()
        again, x.grad = x.grad, None
        torch.cuda.manual_seed(1)
        net(x).sum().backward()
        assert torch.equal(again, x.grad)
        x.grad = None


def check_compiled_and_scripted():
    x = torch.randn(4, device="cuda")
    for compiled in (torch.compile(lambda x: (x * 2).relu() + 1), torch.compile(lambda x: (x * 2).relu() + 1, backend="inductor")):
        torch.testing.assert_close(compiled(x), (x * 2).relu() + 1)

    @torch.compile
    def decorated(x):
        return x + torch.ones(4, device="cuda") if x.is_cuda else x

    assert torch.equal(decorated(x), x + 1)
    scripted = torch.jit.script(torch.nn.Linear(4, 2).cuda())
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    assert torch.equal(torch.jit.load(file, map_location="cuda")(x), scripted(x))


def check_distributed():
    import torch.distributed as dist

    def begin(backend, name):
        store = dist.FileStore(os.path.join(sys.argv[1], name), 1)
        dist.init_process_group(backend, store=store, rank=0, world_size=1)
        x = torch.ones(3, device="cuda")
        dist.all_reduce(x)
        assert x.tolist() == [1, 1, 1]

    assert dist.is_nccl_available()
    try:
        begin("nccl", "store")
    except NotImplementedError as error:  # of drivers without collectives; it is our backend that says so
        assert "RCCL serves hip's" in str(error)
        dist.destroy_process_group()
        begin("cpu:gloo,cuda:rdna_gloo", "second")
    assert dist.get_backend(dist.new_group([0])) != "nccl"
    x = torch.ones(5, 3, device="cuda")
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2).cuda(), device_ids=[0])
    ddp(x).sum().backward()
    assert ddp.module.weight.grad.is_cuda
    dist.destroy_process_group()


def check_refused():
    for call in (torch.cuda.cudart, torch.cuda.current_blas_handle, torch.cuda.list_gpu_processes):
        try:
            call()
        except NotImplementedError as error:
            assert "library of CUDA" in str(error)
        else:
            raise AssertionError(call)


def check_memory_of_the_host_is_not_cudas():
    x = torch.ones(2)
    assert not hasattr(x, "__cuda_array_interface__")
    card = torch.rdna.get_device_properties(0)
    assert hasattr(x.cuda(), "__cuda_array_interface__") == (card.driver != "host" and not card.emulated)


def check_programs_that_it_starts():
    program = "import torch; print(torch.ones(1, device='cuda').is_cuda, torch.cuda.device_count())"
    plain = "import torch\nif not hasattr(torch, 'rdna'): import torch_rdna\n" + program
    done = subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True)
    assert done.stdout.split() == ["True", str(torch.cuda.device_count())], done.stderr


def check_command_line():
    from torch_rdna.as_cuda import main

    before = sys.argv
    try:
        main(["-m", "this"])
        assert sys.argv == ["this"], sys.argv
        main([])
    except SystemExit as stopped:
        assert "nothing to run" in str(stopped)
    else:
        raise AssertionError("nothing to run was not said")
    finally:
        sys.argv = before


CHECKS = {name[6:]: value for name, value in dict(globals()).items() if name.startswith("check_")}


def run(name):
    found = runpy.run_path(os.path.join(HERE, "cuda_scripts", f"{name}.py"), run_name="__main__")
    return {"losses": found["losses"], "where": sorted(map(str, found["where"]))}


def attempt(call, *arguments):
    try:
        return {"result": call(*arguments)}
    except BaseException:
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    results = {name: attempt(run, name) for name in PROGRAMS}
    results["fallbacks"] = torch.rdna.fallback_report()
    results.update({name: attempt(check) for name, check in CHECKS.items()})
    with open(os.path.join(sys.argv[1], "results.json"), "w") as file:
        json.dump(results, file)
