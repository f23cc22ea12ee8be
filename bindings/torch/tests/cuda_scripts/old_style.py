"""As programs were written for the first releases: typed tensors of CUDA, Variable, DataParallel, .data, use_cuda."""

import torch
import torch.nn as nn
from torch.autograd import Variable

torch.manual_seed(0)
use_cuda = torch.cuda.is_available()
FloatTensor = torch.cuda.FloatTensor if use_cuda else torch.FloatTensor
LongTensor = torch.cuda.LongTensor if use_cuda else torch.LongTensor

model = nn.Sequential(nn.Embedding(11, 6), nn.Flatten(), nn.Linear(24, 9), nn.Tanh(), nn.Linear(9, 3))
criterion = nn.CrossEntropyLoss()
if use_cuda:
    model = nn.DataParallel(model).cuda()
    criterion = criterion.cuda()
weight = Variable(torch.ones(3).type(FloatTensor), requires_grad=True)
if use_cuda:
    assert weight.is_cuda and isinstance(weight.data, torch.cuda.FloatTensor) and weight.type() == "torch.cuda.FloatTensor"
    assert weight.get_device() == 0 and weight.data.cpu().type() == "torch.FloatTensor"
optimizer = torch.optim.RMSprop(list(model.parameters()) + [weight], lr=0.01)
losses = []
for step in range(5):
    words, labels = torch.randint(11, (5, 4)), LongTensor([0, 1, 2, 1, 0])
    if use_cuda:
        words = words.cuda()
    output = model(Variable(words)) * weight
    loss = criterion(output, Variable(labels))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.data.item())
    hits = (output.data.max(1)[1] == labels).cpu().sum()
    mask = FloatTensor(5).fill_(1).mul_(float(hits))
    losses.append(mask.sum().item())
where = {p.device for p in model.parameters()}
