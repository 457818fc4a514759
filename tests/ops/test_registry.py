"""What the table refuses to hold."""

from __future__ import annotations

from typing import Any

import pytest

from rushlight.ops.registry import function, functions, methods, namespaces


def test_two_files_may_not_export_one_name() -> None:
    def exp(input: Any) -> Any:
        return input

    def softmax(input: Any) -> Any:
        return input

    before = functions["exp"], methods["exp"], namespaces["nn.functional"]["softmax"]
    for export in (function(), function(free=False), function(method=False), function(bare=True)):
        with pytest.raises(ValueError, match="both export 'exp'"):
            export(exp)
    with pytest.raises(ValueError, match="both export 'softmax'"):
        function(method=False, free=False, namespace="nn.functional")(softmax)
    assert before == (functions["exp"], methods["exp"], namespaces["nn.functional"]["softmax"])
