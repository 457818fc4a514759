"""The compiled heart: storage, tensor base, node, op, recording, backward pass.

Imports only `dtypes`, `errors`, `size` and `arrays`, and each file only those it is above; a
level of a transform (`transforms.stack.Level`) and whoever watches ops (`observer`) are called
through what is stated there. Nothing here knows which ops there are.
"""
