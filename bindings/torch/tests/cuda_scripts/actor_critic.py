"""Reinforcement learning: actions sampled from a distribution on the device, returns, values, an environment on the host."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
torch.manual_seed(543)
rng = np.random.default_rng(3)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(4, 32)
        self.action, self.value = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, x):
        x = F.relu(self.affine(x))
        return F.softmax(self.action(x), dim=-1), self.value(x)


model = Policy().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
losses = []
for episode in range(3):
    saved, rewards = [], []
    state = rng.standard_normal(4).astype(np.float32)
    for t in range(8):
        probs, value = model(torch.from_numpy(state).float().to(device))
        m = Categorical(probs)
        action = torch.as_tensor(t % 2, device=device)  # what is drawn differs between devices
        assert m.sample().item() in (0, 1)
        saved.append((m.log_prob(action), value))
        state = np.tanh(state + rng.standard_normal(4) * 0.1 + action.cpu().numpy()).astype(np.float32)
        rewards.append(float(state.sum()))
    returns, R = [], 0.0
    for r in rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    policy, values = [], []
    for (log_prob, value), R in zip(saved, returns):
        policy.append(-log_prob * (R - value.item()))
        values.append(F.smooth_l1_loss(value, torch.tensor([R]).to(device)))
    optimizer.zero_grad()
    loss = torch.stack(policy).sum() + torch.stack(values).sum()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
where = {p.device for p in model.parameters()}
