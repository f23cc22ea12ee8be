"""What `import torch` calls to load the plugin (entry point torch.backends). It never breaks that import."""


def load():
    try:
        import torch_rdna  # noqa: F401
    except Exception as error:
        import warnings

        warnings.warn(f"torch.device('rdna') is not there: {error}", RuntimeWarning, stacklevel=2)
