"""The compiled heart: storage, tensor base, node, op, recording, backward pass.

Imports only `dtypes`, `errors`, `size` and `arrays`. Everything above reaches the op table
through slots that the table fills, so nothing here knows which ops there are.
"""
