"""Libraries of PyTorch's operators alone, which take tensors where they are: values and gradients beside the CPU's, and
nothing falls back. Each night: $(packaging/torch-libraries-venv.sh) -m pytest bindings/torch/tests/pure_libraries.py
"""

import copy

import captum.attr
import entmax
import kornia
import normflows
import opacus
import pyro.distributions
import pytest
import torch
import torchdiffeq
import torchmetrics
import zuko
from e3nn import nn as equivariant
from e3nn import o3
from einops.layers.torch import EinMix, Rearrange, Reduce
from opacus.layers import DPLSTM
from pytorch_metric_learning import losses, miners
from torch import nn

pytestmark = pytest.mark.usefixtures("nothing_falls_back")


def random(*shape):
    return torch.randn(shape)


def both(f, tolerance=2e-5):
    """f(put) gives tensors, where put(x) is x, a tensor or a module, on the device: the same of both devices."""
    results = []
    for device in ("cpu", "rdna"):
        torch.manual_seed(0)
        results.append([t.detach().cpu() for t in f(lambda x, device=device: copy.deepcopy(x).to(device)) if t is not None])
    assert len(results[0]) == len(results[1]) > 0
    for theirs, ours in zip(*results):
        assert ours.dtype == theirs.dtype and theirs.isfinite().all()
        size = max(theirs.abs().max().item() if theirs.numel() else 0, 1e-3)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance * size)


def gradients(module, loss):
    loss.backward()
    return [loss, *(p.grad for p in module.parameters())]


def test_einops():
    layers = (Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4), EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=16))
    model, x = nn.Sequential(*layers, Reduce("b t c -> b c", "max")), random(2, 3, 16, 16)
    both(lambda put: gradients(m := put(model), m(put(x)).square().mean()))


def test_captum():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10)).eval()
    x = random(2, 3, 16, 16)

    def attributions(put):
        m = put(model)
        for kind in (captum.attr.IntegratedGradients, captum.attr.Saliency, captum.attr.DeepLift, captum.attr.GuidedBackprop):
            yield kind(m).attribute(put(x), target=1)
        yield captum.attr.Occlusion(m).attribute(put(x), sliding_window_shapes=(3, 4, 4), strides=(3, 4, 4), target=1)
        yield captum.attr.LayerGradCam(m, m[0]).attribute(put(x), target=2)

    both(attributions)


def test_e3nn():
    irreps = o3.Irreps("4x0e+3x1o+2x2e")
    gate = equivariant.Gate("4x0e", [torch.tanh], "5x0e", [torch.sigmoid], "3x1o+2x2e")
    product, linear = o3.FullyConnectedTensorProduct(irreps, "1x0e+1x1o", irreps), o3.Linear(irreps, gate.irreps_in)
    x, places = irreps.randn(6, -1), random(6, 3)

    def values(put):
        p = put(product)
        y = put(gate)(put(linear)(p(put(x), o3.spherical_harmonics("0e+1o", put(places), True))))
        return [y, *gradients(p, y.square().sum())]

    both(values)


def test_torchmetrics():
    scores, classes, a, b = random(50, 5).softmax(-1), torch.randint(0, 5, (50,)), random(60), random(60)
    pictures = torch.rand(2, 3, 64, 64), torch.rand(2, 3, 64, 64)
    kinds = [(getattr(torchmetrics, name)("multiclass", num_classes=5), scores, classes)
             for name in ("Accuracy", "F1Score", "AUROC", "AveragePrecision", "ConfusionMatrix", "CalibrationError", "CohenKappa")]
    kinds += [(getattr(torchmetrics, name)(), a, b) for name in ("PearsonCorrCoef", "SpearmanCorrCoef", "R2Score", "KendallRankCorrCoef")]
    kinds += [(torchmetrics.image.StructuralSimilarityIndexMeasure(), *pictures), (torchmetrics.audio.SignalDistortionRatio(), random(2, 800), random(2, 800))]

    def values(put):
        for metric, x, y in kinds:
            m = put(metric)
            m.update(put(x), put(y))
            yield m.compute().float()

    both(values, 1e-4)


def test_kornia():
    x, points = torch.rand(2, 3, 32, 32), torch.rand(2, 1, 8, 2)

    def values(put):
        t = put(x).requires_grad_()
        yield from (kornia.color.rgb_to_lab(t), kornia.color.rgb_to_hsv(t), kornia.filters.sobel(t), kornia.filters.median_blur(t, (3, 3)))
        yield kornia.geometry.rotate(t, put(torch.tensor([30.0, 10.0])))
        yield kornia.geometry.homography.find_homography_dlt(put(points[0]), put(points[1]), put(torch.ones(1, 8)))
        loss = kornia.losses.ssim_loss(t, put(x.flip(-1)), 5) + kornia.losses.total_variation(t).sum()
        loss.backward()
        yield from (loss, t.grad)

    both(values, 1e-4)


def test_opacus():
    """Gradients of each sample."""
    lstm, x = DPLSTM(6, 8, batch_first=True), random(3, 5, 6)
    words, ids = nn.Sequential(nn.Embedding(9, 8), nn.LayerNorm(8), nn.Linear(8, 2)), torch.randint(0, 9, (3, 5))

    def values(put):
        for model, data in ((lstm, x), (words, ids)):
            m = opacus.GradSampleModule(put(model))
            y = m(put(data))
            (y[0] if isinstance(y, tuple) else y).square().sum().backward()
            yield from (p.grad_sample for p in m.parameters())

    both(values)


def test_entmax():
    x = random(4, 9)

    def values(put):
        for f in (entmax.entmax15, entmax.sparsemax, lambda t, dim: entmax.entmax_bisect(t, 1.3, dim)):
            t = put(x).requires_grad_()
            y = f(t, dim=-1)
            y.square().sum().backward()
            yield from (y, t.grad)

    both(values)


def test_torchdiffeq():
    field, start, times = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)), random(5, 2), torch.linspace(0, 1, 5)

    class Field(nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, t, y):
            return self.f(y)

    def values(put):
        f = Field(put(field))
        yield from (torchdiffeq.odeint(f, put(start), put(times), method=m) for m in ("dopri5", "rk4", "bosh3", "explicit_adams"))
        yield from gradients(f, torchdiffeq.odeint_adjoint(f, put(start), put(times)).square().sum())

    both(values, 1e-4)


def test_metric_learning():
    e, y = random(16, 8), torch.randint(0, 4, (16,))
    kinds = [losses.TripletMarginLoss(), losses.ContrastiveLoss(), losses.ArcFaceLoss(4, 8), losses.ProxyAnchorLoss(4, 8),
             losses.MultiSimilarityLoss(), losses.NTXentLoss(), losses.SupConLoss(), losses.CircleLoss(), losses.FastAPLoss(), losses.NPairsLoss()]

    def values(put):
        for kind in kinds:
            t = put(e).requires_grad_()
            loss = put(kind)(t, put(y))
            loss.backward()
            yield from (loss, t.grad)
        yield losses.TripletMarginLoss()(put(e), put(y), miners.MultiSimilarityMiner()(put(e), put(y)))

    both(values)


def test_flows():
    spline = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2), [
        normflows.flows.AffineCouplingBlock(normflows.nets.MLP([1, 16, 2], init_zeros=False)), normflows.flows.Permute(2, mode="swap"),
        normflows.flows.CoupledRationalQuadraticSpline(2, 1, 16), normflows.flows.LULinearPermute(2)])
    autoregressive, x, context = zuko.flows.NSF(3, 2, transforms=2, hidden_features=(16, 16)), random(8, 3) / 2, random(8, 2)
    both(lambda put: gradients(m := put(spline), m.forward_kld(put(x[:, :2]))), 1e-4)
    both(lambda put: gradients(m := put(autoregressive), -m(put(context)).log_prob(put(x)).mean()), 1e-4)


def test_distributions():
    d = pyro.distributions
    rates, two, three = torch.tensor([0.5, 2.0]), torch.tensor([1.0, 3.0]), torch.tensor([0.2, 0.3, 0.5])

    def values(put):
        a, b, p = put(rates), put(two), put(three)
        pairs = [(d.Gamma(a, b), b), (d.Beta(a, b), a / 4), (d.Dirichlet(p * 4), p), (d.StudentT(b), a), (d.VonMises(a, b), a),
                 (d.MultivariateNormal(a, put(torch.eye(2)) + 0.1), b), (d.NegativeBinomial(b, a / 4), b), (d.Poisson(b), b),
                 (d.OneHotCategorical(p), put(torch.tensor([0.0, 1.0, 0.0]))), (d.Binomial(7, a / 4), b), (d.BetaBinomial(a, b, 7), b),
                 (d.Weibull(a, b), a), (d.InverseGamma(a, b), b), (d.LKJCholesky(2, put(torch.tensor(1.5))), put(torch.tensor([[1.0, 0.0], [0.6, 0.8]])))]
        yield from (q.log_prob(v) for q, v in pairs)

    both(values)


def test_x_transformers():
    """Kinds of attention, positions and residuals, with gradients, and greedy generation."""
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    kinds = [{"rotary_pos_emb": True, "attn_qk_norm": True, "ff_glu": True, "use_rmsnorm": True, "attn_num_mem_kv": 2}, {"rel_pos_bias": True},
             {"dynamic_pos_bias": True}, {"attn_pre_talking_heads": True}, {"attn_sparse_topk": 3}, {"macaron": True}, {"gate_residual": True},
             {"shift_tokens": 1}, {"attn_on_attn": True}, {"attn_kv_heads": 1}, {"residual_attn": True}, {"rotary_xpos": True}, {"attn_flash": True},
             {"use_scalenorm": True, "attn_gate_values": True}]
    words = torch.randint(0, 50, (2, 17))
    for kind in kinds:
        net = AutoregressiveWrapper(TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, **kind)))
        both(lambda put: gradients(m := put(net), m(put(words))))
    both(lambda put: [put(net).generate(put(words[:, :4]), 6, temperature=0.0).float()])


def test_torchsde():
    """What draws nothing, by a diffusion of zeros; with noise that all is finite."""
    import torchsde

    class Equation(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self, size):
            super().__init__()
            self.drift, self.size = nn.Linear(3, 3), size

        def f(self, t, y):
            return torch.tanh(self.drift(y))

        def g(self, t, y):
            return self.size * torch.sigmoid(y)

    still, noisy, start = Equation(0.0), Equation(0.3), torch.full((4, 3), 0.1)

    def values(put):
        m, times = put(still), put(torch.linspace(0, 1, 5))
        yield from gradients(m, torchsde.sdeint(m, put(start), times, method="euler", dt=0.1).square().mean())
        yield torchsde.sdeint_adjoint(m, put(start), times, method="euler", dt=0.1)
        for method in ("euler", "milstein", "srk"):
            yield torchsde.sdeint(put(noisy), put(start), times, method=method, dt=0.25).isfinite().float()

    both(values)


def test_tensordict():
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule, TensorDictSequential

    net, a, c = nn.ModuleList([nn.Linear(3, 5), nn.Linear(5, 2)]), random(4, 3), random(4, 2)

    def values(put):
        m = put(net)
        data = TensorDict({"a": put(a), "b": {"c": put(c)}}, [4])
        chain = TensorDictSequential(TensorDictModule(m[0], in_keys=["a"], out_keys=["h"]), TensorDictModule(m[1], in_keys=["h"], out_keys=["o"]))
        yield from gradients(m, chain(data)["o"].square().sum())
        yield from (torch.stack([data, data])["b", "c"], torch.cat([data, data])["a"], data[put(torch.tensor([1, 3]))]["a"], (data.exclude("h", "o") + 1)["a"])
        yield data.apply(lambda t: t * 2)["a"]

    both(values)


def test_monai():
    from monai.inferers import sliding_window_inference
    from monai.losses import DiceCELoss, LocalNormalizedCrossCorrelationLoss
    from monai.networks.nets import UNETR, UNet

    net, volumes = UNet(2, 1, 3, (4, 8, 16), (2, 2), num_res_units=1), UNETR(1, 2, (32, 32, 32), hidden_size=24, mlp_dim=32, num_heads=2, feature_size=4).eval()
    x, y, classes, volume = random(2, 1, 32, 32), random(2, 1, 32, 32), torch.randint(0, 3, (2, 1, 32, 32)), random(1, 1, 32, 32, 32)

    def values(put):
        m = put(net)
        yield from gradients(m, DiceCELoss(to_onehot_y=True, softmax=True)(m(put(x)), put(classes)))
        yield LocalNormalizedCrossCorrelationLoss(spatial_dims=2)(put(x), put(y))
        with torch.no_grad():
            yield put(volumes)(put(volume))
            yield sliding_window_inference(put(random(1, 1, 48, 48)), (32, 32), 2, m.eval())

    both(values, 1e-4)
