"""A language model of words: an LSTM trained through time, the whole module saved, text generated."""

import io
import math

import torch
import torch.nn as nn

torch.manual_seed(1111)
if torch.cuda.is_available():
    torch.cuda.manual_seed(1111)
    device = torch.device("cuda")
else:
    device = torch.device("cpu")

ntokens, bptt, lr, clip = 37, 7, 2.0, 0.25


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.nlayers, self.nhid, self.ntoken = nlayers, nhid, ntoken

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        return nn.functional.log_softmax(self.decoder(output).view(-1, self.ntoken), dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous().to(device)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


train_data = batchify((torch.arange(240) * 7 + torch.arange(240) // 11) % ntokens, 4)
model = RNNModel(ntokens, 24, 24, 2).to(device)
criterion = nn.NLLLoss()
hidden = model.init_hidden(4)
losses = []
for i in range(0, train_data.size(0) - 1, bptt):
    seq_len = min(bptt, len(train_data) - 1 - i)
    data, targets = train_data[i : i + seq_len], train_data[i + 1 : i + 1 + seq_len].view(-1)
    model.zero_grad()
    hidden = repackage_hidden(hidden)
    output, hidden = model(data, hidden)
    loss = criterion(output, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-lr)
    losses.append(loss.item())

file = io.BytesIO()
torch.save(model, file)
file.seek(0)
model = torch.load(file, weights_only=False)
model.rnn.flatten_parameters()
model.eval()
with torch.no_grad():
    word, hidden = torch.tensor([[3]], dtype=torch.long).to(device), model.init_hidden(1)
    for _ in range(4):
        output, hidden = model(word, hidden)
        losses.append(math.exp(output.max().item()))
        word.fill_(output.argmax(1)[0])
where = {p.device for p in model.parameters()}
