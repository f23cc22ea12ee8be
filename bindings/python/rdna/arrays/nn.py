"""Networks: layers and losses as functions, under the names of PyTorch's functional interface, and as modules that keep their parameters.

    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 3))
    step = nn.value_and_grad(model, lambda x, t: nn.cross_entropy(model(x), t))
    adam = optim.Adam(lr=1e-2)
    value, slopes = step(x, t)
    adam.update(model, slopes)
"""

from ._functional import (  # noqa: F401
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, batch_norm, bce_loss,
    bce_with_logits_loss, conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, cross_entropy, dropout, elu, embedding,
    global_avg_pool2d, group_norm, hardsigmoid, hardswish, huber_loss, instance_norm, kl_div_loss, l1_loss, layer_norm, leaky_relu,
    log_softmax, max_pool1d, max_pool2d, max_pool3d, mish, mse_loss, nll_loss, rms_norm, scaled_dot_product_attention, smooth_l1_loss, softmax,
    softplus)
from ._modules import (  # noqa: F401
    ELU, GELU, AdaptiveAvgPool2d, AvgPool2d, BatchNorm1d, BatchNorm2d, BCELoss, BCEWithLogitsLoss, Conv1d, Conv2d, Conv3d, ConvTranspose2d,
    CrossAttention, CrossEntropyLoss, Dropout, Dropout2d, Embedding, Flatten, GlobalAvgPool2d, GroupNorm, KLDivLoss, L1Loss, LayerNorm,
    LeakyReLU, Linear, LogSoftmax, MaxPool2d, Module, MSELoss, MultiheadAttention, NLLLoss, ReLU, RMSNorm, SelfAttention, Sequential, Sigmoid,
    SiLU, SmoothL1Loss, Softmax, Tanh, manual_seed, value_and_grad)
from ._recurrent import GRU, LSTM, RNN  # noqa: F401
