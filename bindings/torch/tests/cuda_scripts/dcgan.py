"""Two networks against each other: transposed convolutions, batch norm, two optimizers, labels made on the device."""

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.nn.parallel
import torch.optim as optim

cudnn.benchmark = True
torch.manual_seed(999)
ngpu, nz, ngf, ndf, nc = int(torch.cuda.device_count()), 10, 8, 8, 3
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Net(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.main = nn.Sequential(*layers)

    def forward(self, input):
        if input.is_cuda and ngpu >= 1:
            return nn.parallel.data_parallel(self.main, input, range(ngpu))
        return self.main(input)


netG = Net(
    nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
    nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False), nn.Tanh(),
)  # fmt: skip
netD = Net(
    nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
)  # fmt: skip
netG.apply(weights_init)
netD.apply(weights_init)
netG, netD = netG.to(device), netD.to(device)
if torch.cuda.is_available():
    torch.cuda.synchronize()

criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=0.0002, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=0.0002, betas=(0.5, 0.999))
losses = []
for step in range(3):
    real = torch.rand(6, nc, 16, 16).to(device)
    noise = torch.randn(6, nz, 1, 1).to(device)
    netD.zero_grad()
    label = torch.full((6,), 1.0, dtype=real.dtype, device=device)
    errD_real = criterion(netD(real).view(-1), label)
    errD_real.backward()
    fake = netG(noise)
    label.fill_(0)
    errD_fake = criterion(netD(fake.detach()).view(-1), label)
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    label.fill_(1)
    errG = criterion(netD(fake).view(-1), label)
    errG.backward()
    optimizerG.step()
    losses += [errD_real.item() + errD_fake.item(), errG.item()]
where = {fake.device, *(p.device for p in netG.parameters())}
