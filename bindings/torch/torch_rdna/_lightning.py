"""lightning: the accelerator "rdna", which "auto" and "gpu" take, its strategy for one device and its mixed precision."""

import importlib

import torch

from ._libraries import takes


def _accelerator(base, registry):
    class RDNAAccelerator(base):
        def setup_device(self, device):
            torch.rdna.set_device(device)

        def teardown(self):
            torch.rdna.empty_cache()

        def get_device_stats(self, device):
            return torch.rdna.memory_stats(device)

        @staticmethod
        def parse_devices(devices):
            if isinstance(devices, str):
                devices = [int(i) for i in devices.split(",") if i.strip()] if "," in devices else int(devices)
            if isinstance(devices, int):
                devices = range(torch.rdna.device_count() if devices == -1 else devices)
            return list(devices)

        @staticmethod
        def get_parallel_devices(devices):
            return [torch.device("rdna", i) for i in devices]

        @staticmethod
        def auto_device_count():
            return torch.rdna.device_count()

        @staticmethod
        def is_available():
            return torch.rdna.is_available()

        @staticmethod
        def name():
            return "rdna"

    registry.register("rdna", RDNAAccelerator, description="AMD GPUs through librdna")
    return RDNAAccelerator


def _connect(connector, kind, module):
    """Teaches |connector|, which chooses accelerator, strategy and precision, the accelerator of class |kind|."""
    auto, gpu = connector._choose_auto_accelerator, connector._choose_gpu_accelerator_backend
    strategy, precision = connector._choose_strategy, connector._check_and_init_precision

    def _choose_auto_accelerator():
        found = auto()
        return "rdna" if found == "cpu" and takes("cpu") else found

    def _choose_gpu_accelerator_backend():
        try:
            return gpu()
        except Exception:  # lightning's exception for having found no GPU differs between Trainer and Fabric
            if takes("cpu"):
                return "rdna"
            raise

    def _choose_strategy(self):
        chosen = strategy(self)
        if isinstance(self.accelerator, kind) and isinstance(chosen, module.SingleDeviceStrategy):
            return module.SingleDeviceStrategy(device=self._parallel_devices[0])
        return chosen

    def _check_and_init_precision(self):
        if not isinstance(self.accelerator, kind):
            return precision(self)
        # The precision's device is "cuda" for every accelerator that has no name there.
        mixed = module.MixedPrecision
        module.MixedPrecision = lambda precision, device: mixed(precision, "rdna")
        try:
            return precision(self)
        finally:
            module.MixedPrecision = mixed

    connector._choose_auto_accelerator = staticmethod(_choose_auto_accelerator)
    connector._choose_gpu_accelerator_backend = staticmethod(_choose_gpu_accelerator_backend)
    connector._choose_strategy = _choose_strategy
    connector._check_and_init_precision = _check_and_init_precision


def lightning_fabric_connector(module):
    accelerators = importlib.import_module("lightning.fabric.accelerators")
    kind = _accelerator(accelerators.Accelerator, accelerators.ACCELERATOR_REGISTRY)
    _connect(module._Connector, kind, module)


def lightning_pytorch_trainer_connectors_accelerator_connector(module):
    accelerators = importlib.import_module("lightning.pytorch.accelerators")
    kind = _accelerator(accelerators.Accelerator, accelerators.AcceleratorRegistry)
    _connect(module._AcceleratorConnector, kind, module)
