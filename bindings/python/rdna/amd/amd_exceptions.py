"""What rdna.amd raises. Each error says what was asked, what was found and what to do, and keeps the parts as attributes."""

import inspect
import warnings


def _built(kind, attributes, text):
    error = kind.__new__(kind, text)
    error.__dict__.update(attributes)
    return error


class AMDBackendError(Exception):
    """The base of all errors of rdna.amd. |details|: what belongs to it, a dict or a text."""

    def __init__(self, message, details=None):
        self.message = str(message)
        self.details = details
        super().__init__(self.message)

    def __str__(self):
        if not self.details:
            return self.message
        said = self.details
        if isinstance(said, dict):
            said = ", ".join(f"{name}={value}" for name, value in said.items())
        return f"{self.message} ({said})"

    def __reduce__(self):
        # By its attributes: the constructors of the kinds below take other arguments than Exception remembers.
        return _built, (type(self), self.__dict__, self.message)


class ROCmNotAvailableError(AMDBackendError):
    """There is no device, where one was necessary."""

    def __init__(self, message="ROCm runtime not available", details=None):
        super().__init__(message, details)


class HIPCompilationError(AMDBackendError):
    """A kernel's source did not compile: |error_message| is the compiler's text."""

    def __init__(self, kernel_name, error_message):
        self.kernel_name, self.error_message = kernel_name, error_message
        super().__init__(f"kernel {kernel_name!r} did not compile: {error_message}")


class ROCmMemoryError(AMDBackendError):
    """|operation| would take |required_mb| MiB of device memory, of which |available_mb| MiB may be taken."""

    def __init__(self, operation, required_mb, available_mb):
        self.operation, self.required_mb, self.available_mb = operation, required_mb, available_mb
        super().__init__(
            f"{operation} takes {required_mb:.2f} MB of device memory, of which {available_mb:.2f} MB are available: "
            "free tensors, take smaller batches or raise max_memory_fraction"
        )


class MIOpenError(AMDBackendError):
    """A convolution or another operator of MIOpen's kind failed."""

    def __init__(self, operation, error_message):
        self.operation, self.error_message = operation, error_message
        super().__init__(f"MIOpen: {operation} failed: {error_message}")


class ROCBLASError(AMDBackendError):
    """A matrix product failed."""

    def __init__(self, operation, error_message):
        self.operation, self.error_message = operation, error_message
        super().__init__(f"rocBLAS: {operation} failed: {error_message}")


class AMDDeviceError(AMDBackendError):
    """|operation| on the device of number |device_id| failed, or there is no such device."""

    def __init__(self, device_id, operation, error_message):
        self.device_id, self.operation, self.error_message = device_id, operation, error_message
        super().__init__(f"device {device_id}: {operation} failed: {error_message}")


class AMDConfigurationError(AMDBackendError):
    """The configuration's |parameter| cannot be |value|."""

    def __init__(self, parameter, value, reason):
        self.parameter, self.value, self.reason = parameter, value, reason
        super().__init__(f"{parameter}={value!r}: {reason}")


class MatrixCoreError(AMDBackendError):
    """|operation| needs matrix units that |architecture| lacks."""

    def __init__(self, operation, architecture, error_message):
        self.operation, self.architecture, self.error_message = operation, architecture, error_message
        super().__init__(f"matrix cores of {architecture}: {operation} failed: {error_message}")


class AMDOptimizationError(AMDBackendError):
    """A model could not be optimized at |level|; it is as it was."""

    def __init__(self, level, error_message):
        self.level, self.error_message = level, error_message
        super().__init__(f"optimization level {level!r}: {error_message}")


class HIPKernelError(AMDBackendError):
    """A kernel did not launch or failed as it ran: |error_code| is HIP's number."""

    def __init__(self, kernel_name, error_code, error_message):
        self.kernel_name, self.error_code, self.error_message = kernel_name, error_code, error_message
        super().__init__(f"kernel {kernel_name!r} failed with {error_code}: {error_message}")


def raise_or_warn(error_class, message, strict_mode=False, **fields):
    """Raises an error of |error_class| that says |message|, or warns with it where |strict_mode| is off.

    Of |fields| those that the class's constructor names become the error's attributes, the others its details."""
    if not (isinstance(error_class, type) and issubclass(error_class, AMDBackendError)):
        raise TypeError(f"expected a class of rdna.amd's errors, got {error_class!r}")
    named = inspect.signature(error_class.__init__).parameters.keys() - {"self", "message", "details"}
    attributes = dict.fromkeys(named)
    details = fields.pop("details", None)
    attributes.update((name, fields.pop(name)) for name in named & fields.keys())
    if fields:
        details = {**(details if isinstance(details, dict) else {"details": details} if details else {}), **fields}
    error = _built(error_class, {**attributes, "message": str(message), "details": details}, str(message))
    if strict_mode:
        raise error
    warnings.warn(str(error), stacklevel=2)
