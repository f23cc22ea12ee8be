"""What programs of PyTorch alone and of transformers do that no network of architectures.py does: training by other means than
steps of losses, models that are functions, tensors of other kinds, generation. Values and gradients are the CPU's, and
nothing falls back. Each night: $(packaging/torch-venv.sh) -m pytest bindings/torch/tests/workloads.py
"""

import copy
import random
import warnings

import pytest
import torch
import transformers
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, linearize, stack_module_state, vjp, vmap
from torch.nn import functional as F
from torch.utils import checkpoint

pytestmark = pytest.mark.usefixtures("nothing_falls_back")
warnings.filterwarnings("ignore", message="The PyTorch API of")


class Put:
    """A tensor or a module of its own on the device."""

    def __init__(self, device):
        self.device = torch.device(device)
        self.backend = "rdna" if device == "rdna" else "eager"

    def __call__(self, x):
        return copy.deepcopy(x).to(self.device)


def both(f, tolerance=2e-5):
    """f(put) gives tensors: the same of both devices, to |tolerance| of each one's largest value; what is smaller than 1e-3 is
    compared with that."""
    results = []
    for device in ("cpu", "rdna"):
        torch.manual_seed(0)
        random.seed(0)
        results.append([t.detach().cpu() for t in f(Put(device)) if t is not None])
    assert len(results[0]) == len(results[1]) > 0
    for theirs, ours in zip(*results):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if theirs.is_floating_point() or theirs.is_complex():
            assert theirs.isfinite().all()
            size = max(theirs.abs().max().item() if theirs.numel() else 0, 1e-3)
            torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance * size)
        else:
            assert torch.equal(ours, theirs)


def gradients(module, loss):
    loss.backward()
    return [loss, *(p.grad for p in module.parameters())]


def perceptron(*widths):
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


def test_averaged_weights_and_schedules():
    from torch.optim import lr_scheduler, swa_utils

    def run(put):
        net = put(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)))
        optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True)
        mean, moving = swa_utils.AveragedModel(net), swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
        rates = lr_scheduler.SequentialLR(optimizer, [lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2),
                                                      lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3)], [2])
        last, batches = swa_utils.SWALR(optimizer, 0.05), [put(torch.randn(16, 6)) for _ in range(6)]
        for step, x in enumerate(batches):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            (rates if step < 4 else last).step()
            mean.update_parameters(net)
            moving.update_parameters(net)
        swa_utils.update_bn(batches, mean)
        return [*mean.state_dict().values(), *moving.state_dict().values()]

    both(run)


def test_what_is_kept_for_gradients_elsewhere():
    """In host memory, pinned or not, computed again, chosen operator by operator, and in 16 bits."""
    kept = checkpoint.CheckpointPolicy

    def policy(context, op, *args, **kwargs):
        return kept.MUST_SAVE if op == torch.ops.aten.addmm.default else kept.PREFER_RECOMPUTE

    def run(put):
        net, x = put(perceptron(6, 8, 8, 2)), put(torch.randn(4, 6)).requires_grad_()
        ways = [torch.autograd.graph.save_on_cpu(pin_memory=pinned and put.device.type != "cpu") for pinned in (False, True)]
        ways.append(torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()))
        for way in ways:
            net.zero_grad()
            with way:
                loss = net(x).square().sum()
            yield from gradients(net, loss)
        again = [lambda r=r: checkpoint.checkpoint_sequential(net, 2, x, use_reentrant=r) for r in (True, False)]
        again.append(lambda: checkpoint.checkpoint(
            net, x, use_reentrant=False, context_fn=lambda: checkpoint.create_selective_checkpoint_contexts(policy)))
        for compute in again:
            net.zero_grad()
            yield from gradients(net, compute().square().sum())

    both(run)


def test_models_as_functions():
    """Ensembles, gradients of each sample, Jacobians, the neural tangent kernel."""

    def run(put):
        nets, x, y = [put(perceptron(4, 6, 2)) for _ in range(3)], put(torch.randn(5, 4)), put(torch.randint(2, (5,)))
        parameters, buffers = stack_module_state(nets)
        yield vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(parameters, buffers)
        own = {name: p.detach() for name, p in nets[0].named_parameters()}
        loss = lambda p, x, y: F.cross_entropy(functional_call(nets[0], p, (x[None],)), y[None])  # noqa: E731
        yield from vmap(grad(loss), (None, 0, 0))(own, x, y).values()
        f = lambda x: functional_call(nets[0], own, (x,))  # noqa: E731
        yield from (vmap(jacrev(f))(x), vmap(jacfwd(f))(x), vmap(hessian(lambda t: f(t).sum()))(x))
        value, pull = vjp(f, x)
        value_again, push = linearize(f, x)
        yield from (value, *pull(torch.ones_like(value)), value_again, push(x))
        kernel = vmap(jacrev(lambda p, x: functional_call(nets[0], p, (x[None],))[0]), (None, 0))(own, x)
        yield sum(torch.einsum("na,mb->nm", t.flatten(1), t.flatten(1)) for t in kernel.values())
        attention, rows = put(nn.MultiheadAttention(4, 2, batch_first=True)), put(torch.randn(3, 2, 5, 4))
        yield vmap(lambda x: attention(x, x, x, need_weights=False)[0])(rows)

    both(run)


def test_gradients_of_gradients():
    """A critic's penalty, learning to learn, and a differential equation of third order."""

    def run(put):
        critic = put(nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.InstanceNorm2d(4, affine=True), nn.ELU(), nn.ConvTranspose2d(4, 3, 4, 2, 1, bias=False),
                                   nn.GroupNorm(3, 3), nn.Softplus(), nn.AvgPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear")))
        x = put(torch.randn(2, 3, 8, 8)).requires_grad_()
        slope, = torch.autograd.grad(critic(x).square().sum(), x, create_graph=True)
        yield from gradients(critic, (slope.flatten(1).norm(2, 1) - 1).square().mean())

        learner, data, wanted, total = put(perceptron(3, 8, 1)), put(torch.randn(2, 6, 3)), put(torch.randn(2, 6, 1)), 0
        for task in range(2):
            fast = dict(learner.named_parameters())
            for _ in range(2):
                loss = F.mse_loss(functional_call(learner, fast, (data[task],)), wanted[task])
                steps = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
                fast = {name: p - 0.1 * step for (name, p), step in zip(fast.items(), steps)}
            total = total + F.mse_loss(functional_call(learner, fast, (data[task],)), wanted[task])
        yield from gradients(learner, total)

        field, places = put(perceptron(2, 12, 12, 1)), put(torch.randn(9, 2)).requires_grad_()
        u = field(places)[:, 0]
        first = torch.autograd.grad(u.sum(), places, create_graph=True)[0]
        second = torch.autograd.grad(first[:, 0].sum(), places, create_graph=True)[0][:, 0]
        third = torch.autograd.grad(second.sum(), places, create_graph=True)[0][:, 0]
        yield from gradients(field, (first[:, 1] + u * first[:, 0] - 0.01 * second + 0.001 * third).square().mean())

    both(run, 2e-4)


def test_parametrizations_and_pruning():
    from torch.nn.utils import parametrizations as p, prune

    def run(put):
        kinds = [p.spectral_norm, p.weight_norm, *(lambda m, way=way: p.orthogonal(m, orthogonal_map=way) for way in ("matrix_exp", "cayley", "householder"))]
        for kind in kinds:
            layer = put(kind(nn.Linear(5, 5)))
            yield from (*gradients(layer, layer(put(torch.randn(3, 5))).square().sum()), layer.weight)
        layer = put(nn.Linear(6, 4))
        prune.l1_unstructured(layer, "weight", 0.3)
        prune.ln_structured(layer, "weight", 0.5, 2, 0)
        prune.remove(layer, "weight")
        yield layer.weight

    both(run, 1e-4)


def test_jagged_and_masked_tensors():
    from torch.masked import masked_tensor

    def run(put):
        rows = [put(torch.randn(n, 8)) for n in (3, 5, 2)]
        jagged = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
        linear, norm = put(nn.Linear(8, 8)), put(nn.LayerNorm(8))
        y = norm(F.gelu(linear(jagged)))
        heads = y.unflatten(-1, [2, 4]).transpose(1, 2)
        out = F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(-2)
        yield from (out.values(), out.to_padded_tensor(0.0), y.sum(dim=1), (y * y).mean(-1).values(), torch.softmax(y, -1).values())
        out.values().square().sum().backward()
        yield from (linear.weight.grad, linear.bias.grad, *y.unbind(), torch.cat([y, y], -1).values())
        words = torch.nested.nested_tensor([put(torch.tensor([1, 2, 3])), put(torch.tensor([4]))], layout=torch.jagged)
        yield put(nn.Embedding(10, 4))(words).values()
        x, mask = put(torch.randn(4, 5)), put(torch.randn(4, 5) > 0)
        for name in ("sum", "mean", "amax", "softmax", "log_softmax", "var", "cumsum", "cumprod"):
            yield getattr(torch.masked, name)(x, -1, mask=mask).nan_to_num(0, 0, 0)
        part = masked_tensor(x, mask)
        yield from ((part * part).sum(-1).to_tensor(0), part.mean().to_tensor(0), (part + 1).to_tensor(0))

    both(run)


def test_operators_of_ones_own_and_control_flow():
    """Registered operators, eager, compiled and mapped; branches and loops in compiled graphs."""
    from torch._higher_order_ops import while_loop
    from torch._higher_order_ops.scan import scan

    @torch.library.custom_op("rdna_tests::cube", mutates_args=())
    def cube(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * x * x * factor

    cube.register_fake(lambda x, factor: torch.empty_like(x))
    cube.register_vmap(lambda info, dims, x, factor: (cube(x, factor), dims[0]))

    def keep(ctx, inputs, output):  # by these names
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    cube.register_autograd(lambda ctx, g: (g * 3 * ctx.saved_tensors[0] ** 2 * ctx.factor, None), setup_context=keep)

    def run(put):
        torch._dynamo.reset()
        x = put(torch.randn(6, 3)).requires_grad_()
        y = cube(x, 2.0)
        y.sum().backward()
        yield from (y, x.grad)
        x = x.detach()
        yield vmap(lambda t: cube(t, 2.0))(x)
        compiled = lambda f: torch.compile(f, backend=put.backend)(x)  # noqa: E731
        yield compiled(lambda x: cube(x, 2.0).sin() + 1)
        yield compiled(lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)))
        yield from compiled(lambda x: scan(lambda carry, row: (carry * 0.9 + row, carry.sin()), x[0] * 0, x))
        count = torch.zeros((), dtype=torch.int64, device=x.device)
        yield from compiled(lambda x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 1.5 + 1), (count, x)))

    both(run)


def test_volumes():
    """A segmentation network of three dimensions."""

    def block(inputs, outputs):
        return nn.Sequential(nn.Conv3d(inputs, outputs, 3, padding=1), nn.InstanceNorm3d(outputs, affine=True), nn.PReLU(outputs),
                             nn.Conv3d(outputs, outputs, 3, padding=1, groups=2), nn.GroupNorm(2, outputs), nn.LeakyReLU())

    parts = nn.ModuleList([block(1, 4), block(4, 8), nn.ConvTranspose3d(8, 4, 2, stride=2), block(8, 4), nn.Conv3d(4, 3, 1)])
    volume, classes = torch.randn(2, 1, 8, 8, 6), torch.randint(3, (2, 8, 8, 6))

    def run(put):
        first, below, up, last, out = net = put(parts)
        a = first(put(volume))
        logits = out(last(torch.cat([a, up(below(F.max_pool3d(a, 2)))], 1)))
        shares, wanted = logits.softmax(1), F.one_hot(put(classes), 3).movedim(-1, 1)
        dice = 1 - (2 * (shares * wanted).sum((2, 3, 4)) + 1) / (shares.sum((2, 3, 4)) + wanted.sum((2, 3, 4)) + 1)
        yield from gradients(net, F.cross_entropy(logits, put(classes), ignore_index=0) + dice.mean())

    both(run, 1e-3)


def test_filters_and_fields():
    """A Kalman filter's likelihood, a conditional random field, optimal transport, splats of Gaussians."""

    def run(put):
        step = put(torch.eye(4) + 0.1 * torch.randn(4, 4)).requires_grad_()
        look, x, spread, total = put(torch.randn(2, 4)), put(torch.zeros(3, 4)), put(torch.eye(4)).expand(3, 4, 4), 0
        one, two = put(torch.eye(4)), put(torch.eye(2))
        for seen in put(torch.randn(6, 3, 2)):
            x, spread = x @ step.T, step @ spread @ step.T + 0.1 * one
            of_seen = look @ spread @ look.T + 0.5 * two
            gain, off = torch.linalg.solve(of_seen, look @ spread).mT, seen - x @ look.T
            x, spread = x + (gain @ off[..., None])[..., 0], (one - gain @ look) @ spread
            total = total + torch.distributions.MultivariateNormal(put(torch.zeros(2)), of_seen).log_prob(off).sum()
        total.backward()
        yield from (total, step.grad, x, spread)

        moves, scores, tags = put(torch.randn(5, 5)).requires_grad_(), put(torch.randn(3, 7, 5)), put(torch.randint(5, (3, 7)))
        alpha = scores[:, 0]
        for t in range(1, 7):
            alpha = torch.logsumexp(alpha[:, :, None] + moves + scores[:, t][:, None], 1)
        path = scores.gather(2, tags[..., None])[..., 0].sum(1) + moves[tags[:, :-1], tags[:, 1:]].sum(1)
        (torch.logsumexp(alpha, 1) - path).mean().backward()
        yield moves.grad

        a, b = put(torch.randn(7, 3)).requires_grad_(), put(torch.randn(9, 3))
        cost, f, g = torch.cdist(a, b) ** 2, put(torch.zeros(7)), put(torch.zeros(9))
        for _ in range(10):
            f = -0.5 * torch.logsumexp((g - cost) / 0.5, 1)
            g = -0.5 * torch.logsumexp((f[:, None] - cost) / 0.5, 0)
        (torch.exp((f[:, None] + g - cost) / 0.5) * cost).sum().backward()
        yield a.grad

        middle, size, strength = (put(torch.randn(20, n)).requires_grad_() for n in (3, 2, 1))
        pixels = torch.cartesian_prod(*[torch.linspace(-1, 1, 6, device=put.device)] * 2)
        far = ((pixels[:, None] - middle[None, :, :2]) / size.exp()).square().sum(-1)
        opaque = (strength[:, 0].sigmoid() * torch.exp(-0.5 * far)).clamp(max=0.99)[:, middle[:, 2].argsort()]
        left = torch.cumprod(torch.cat([torch.ones_like(opaque[:, :1]), 1 - opaque], 1), 1)[:, :-1]
        ((opaque * left) @ middle).square().mean().backward()
        yield from (middle.grad, size.grad, strength.grad)

    both(run, 1e-4)


def test_agents():
    """Advantages, a clipped objective, a squashed policy, a slowly following network, a distribution that is projected."""
    d = torch.distributions

    def run(put):
        policy, value, states = put(perceptron(4, 16, 3)), put(nn.Linear(4, 1)), put(torch.randn(12, 4))
        actions, rewards, worth = put(torch.randint(3, (12,))), put(torch.randn(12)), value(states)[:, 0]
        ahead, sum_of = torch.zeros_like(rewards), 0
        for t in reversed(range(11)):
            sum_of = rewards[t] + 0.99 * worth[t + 1].detach() - worth[t].detach() + 0.94 * sum_of
            ahead[t] = sum_of
        chosen = d.Categorical(logits=policy(states))
        ratio = (chosen.log_prob(actions) - chosen.log_prob(actions).detach() - 0.1).exp()
        loss = -torch.min(ratio * ahead, ratio.clamp(0.8, 1.2) * ahead).mean() + F.smooth_l1_loss(worth, ahead) - 0.01 * chosen.entropy().mean()
        yield from gradients(nn.ModuleList([policy, value]), loss)
        actor = put(nn.Linear(4, 4))
        mean, width = actor(states).chunk(2, -1)
        squashed = d.TransformedDistribution(d.Normal(mean, width.clamp(-5, 2).exp()), [d.TanhTransform(cache_size=1)])
        yield from gradients(actor, -d.Independent(squashed, 1).log_prob(torch.tanh(mean + 0.3)).mean())
        follower = copy.deepcopy(actor)
        with torch.no_grad():
            for p, q in zip(follower.parameters(), actor.parameters()):
                p.lerp_(q + 1, 0.005)
        yield from follower.parameters()
        atoms, shares = torch.linspace(-1, 1, 11, device=put.device), put(torch.randn(12, 11).softmax(-1))
        place = ((rewards[:, None] + 0.9 * atoms).clamp(-1, 1) + 1) / 0.2
        low, high, found = place.floor().long().clamp(0, 10), place.ceil().long().clamp(0, 10), torch.zeros(12, 11, device=put.device)
        found.scatter_add_(1, low, shares * (high - place + (low == high)))
        yield found.scatter_add_(1, high, shares * (place - low))

    both(run)


def llama(**fields):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=None, **fields)
    return transformers.LlamaForCausalLM(config).eval()


GENERATION = {
    "greedy": {}, "static": {"cache_implementation": "static"}, "beams": {"num_beams": 3, "num_return_sequences": 2, "length_penalty": 0.5},
    "no repetition": {"no_repeat_ngram_size": 2, "repetition_penalty": 1.2}, "the best alone": {"do_sample": True, "top_k": 1},
    "cut": {"do_sample": True, "temperature": 1e-4, "top_p": 0.9, "min_p": 0.01, "typical_p": 0.9}, "guided": {"guidance_scale": 1.5},
    "biased": {"sequence_bias": [[[7], 2.0]], "bad_words_ids": [[5]]}, "by lookup": {"prompt_lookup_num_tokens": 3},
}


@pytest.mark.parametrize("kind", [*GENERATION, "assisted"])
def test_generation(kind):
    """Tokens are the CPU's."""
    texts = torch.tensor([[5, 6, 7, 8, 9], [0, 0, 3, 4, 5]])[:1 if kind in ("assisted", "by lookup") else 2]

    def run(put):
        more = {"assistant_model": put(llama())} if kind == "assisted" else GENERATION[kind]
        return [put(llama()).generate(put(texts), attention_mask=put((texts != 0).long()), max_new_tokens=8, pad_token_id=0, **{"do_sample": False, **more})]

    both(run)


def test_pictures_in_texts():
    vision = transformers.CLIPVisionConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8)
    config = transformers.LlavaConfig(vision_config=vision, text_config=llama().config, image_token_id=98, vision_feature_layer=-1)
    model, words, picture = transformers.LlavaForConditionalGeneration(config).eval(), torch.tensor([[1, 98, 98, 98, 98, 5, 6]]), torch.randn(1, 3, 16, 16)

    def run(put):
        net, given = put(model), {"input_ids": put(words), "pixel_values": put(picture)}
        return [net(**given).logits, net.generate(**given, max_new_tokens=4, do_sample=False)]

    both(run)
