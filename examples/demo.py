"""What `make demo` runs: tensors, gradients, and the graph that connects them.

rushlight run examples/demo.py
"""

import torch


def show_graph(node, depth=0):
    """Print a node, the line that made it, and the nodes of its inputs under it."""
    if node is None:  # an input that wants no gradient, such as the 2 in `x + 2`
        return
    name = "  " * depth + type(node).__name__
    # The graph ends in nodes that add to a leaf's gradient; nothing made the leaf.
    leaf = isinstance(getattr(node, "variable", None), torch.Tensor)
    print(f"{name:<24}{'into x.grad' if leaf else node.where}")
    for parent, _ in node.next_functions:
        show_graph(parent, depth + 1)


print("A tensor that asks for gradients:")
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
print(x)

print("\nWhatever is computed from it remembers how:")
y = x * x + 2
loss = y.mean()
print(y)
print(loss)

print("\nThe graph behind the loss, each node with the line that made it:")
show_graph(loss.grad_fn)

print("\nA backward pass walks that graph; d loss / d x is x / 2:")
loss.backward()
print(x.grad)

print("\nA gradient can be differentiated again: the third derivative of s ** 4 at 2 is 24 * 2.")
s = torch.tensor(2.0, requires_grad=True)
value = s**4
for order in (1, 2, 3):
    (value,) = torch.autograd.grad(value, s, create_graph=True)
    print(f"order {order}: {value}")
