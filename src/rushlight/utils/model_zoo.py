"""The old name of `torch.hub.load_state_dict_from_url`."""

from rushlight.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
__dir__ = __all__.copy
