"""Mixed precision with a scaler: gradients unscaled and clipped, accumulation, batches fetched on a stream of their own."""

import torch
from torch.cuda.amp import GradScaler, autocast

torch.manual_seed(5)
use_amp = torch.cuda.is_available()
device = "cuda:0" if use_amp else "cpu"
if use_amp:
    torch.cuda.set_device(0)
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.is_bf16_supported() and torch.cuda.get_device_properties(0).total_memory > 0


class Prefetcher:
    """The next batch is on its way while the current one is computed."""

    def __init__(self, batches):
        self.batches = iter(batches)
        self.stream = torch.cuda.Stream() if use_amp else None
        self.preload()

    def preload(self):
        self.next = next(self.batches, None)
        if self.next is not None and use_amp:
            with torch.cuda.stream(self.stream):
                self.next = tuple(t.pin_memory().cuda(non_blocking=True) for t in self.next)

    def __iter__(self):
        while self.next is not None:
            if use_amp:
                torch.cuda.current_stream().wait_stream(self.stream)
                for t in self.next:
                    t.record_stream(torch.cuda.current_stream())
            batch = self.next
            self.preload()
            yield batch


model = torch.nn.Sequential(
    torch.nn.Linear(33, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 7)
).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = GradScaler(enabled=use_amp, init_scale=2.0**10)
data = [(torch.randn(8, 33), torch.randint(7, (8,))) for _ in range(8)]
losses = []
if use_amp:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
for i, (x, y) in enumerate(Prefetcher(data)):
    with autocast(enabled=use_amp):
        output = model(x)
        assert not use_amp or output.dtype == torch.float16
        loss = torch.nn.functional.cross_entropy(output, y) / 2
    scaler.scale(loss).backward()
    losses.append(loss.item())
    if i % 2 == 1:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
if use_amp:
    end.record()
    torch.cuda.synchronize()
    assert begin.elapsed_time(end) >= 0 and torch.cuda.max_memory_allocated() > 0 and scaler.get_scale() == 2.0**10
    torch.cuda.empty_cache()
where = {torch.device(device)}
