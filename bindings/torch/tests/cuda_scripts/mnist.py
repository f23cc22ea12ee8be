"""A classifier of small images: loaders with workers and pinned memory, Adadelta, a schedule, a checkpoint."""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.fc1 = nn.Linear(16 * 25, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(x), dim=1)


parser = argparse.ArgumentParser()
parser.add_argument("--no-cuda", action="store_true", default=False)
args, _ = parser.parse_known_args()
use_cuda = not args.no_cuda and torch.cuda.is_available()

torch.manual_seed(1)
device = torch.device("cuda" if use_cuda else "cpu")
train_kwargs = {"batch_size": 16}
if use_cuda:
    train_kwargs.update({"num_workers": 1, "pin_memory": True})

target = torch.arange(64) % 10
images = torch.randn(64, 1, 14, 14) * 0.3 + F.one_hot(target, 14)[:, None, None] * 1.0
loader = DataLoader(TensorDataset(images, target), **train_kwargs)

model = Net().to(device)
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
losses = []
for epoch in range(2):
    model.train()
    for batch, labels in loader:
        batch, labels = batch.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(batch), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "mnist_cnn.pt")
    torch.save(model.state_dict(), path)
    again = Net().to(device)
    again.load_state_dict(torch.load(path, map_location=device))
again.eval()
correct = 0
with torch.no_grad():
    for batch, labels in loader:
        output = again(batch.to(device))
        losses.append(F.nll_loss(output, labels.to(device), reduction="sum").item())
        pred = output.argmax(dim=1, keepdim=True)
        correct += pred.eq(labels.to(device).view_as(pred)).sum().item()
where = {p.device for p in model.parameters()}
