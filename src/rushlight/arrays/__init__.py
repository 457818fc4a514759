"""Raw arrays: NumPy's, CuPy's, or arrays being traced. Knows nothing of gradients.

`vocabulary` is the closed list of functions that ops are written in; `kinds` is how a kind of
array answers to them; `host` and `cuda` own what is particular to a device.
"""
