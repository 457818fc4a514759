"""What is seen of a graph in the DOT language, for Graphviz and what else reads it."""

from __future__ import annotations

from rushlight.viz.drawing import COLOURS, texts_of
from rushlight.viz.visible import View


def dot(view: View, title: str) -> str:
    """A `digraph`, the forward direction downwards."""
    lines = [
        f"digraph {quoted(title)} {{",
        '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11];',
    ]
    for key, shown in view.shown.items():
        kind, texts, tip = texts_of(shown, view.reads.get(key, ()))
        fill, border, ink = COLOURS[kind]
        label = quoted("\n".join(words for words, _, _ in texts))
        lines.append(
            f'  {quoted(key)} [label={label}, tooltip={quoted(tip)}, fillcolor="{fill}", '
            f'color="{border}", fontcolor="{ink}"];'
        )
    lines += [f"  {quoted(a)} -> {quoted(b)};" for a, b in view.joined]
    return "\n".join([*lines, "}", ""])


def quoted(text: str) -> str:
    """A string of DOT."""
    inside = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inside}"'
