"""What tests of several folders need."""

from __future__ import annotations

from typing import Any

import pytest


def raises(error: type[Exception], text: str, fn: Any, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(error) as caught:
        fn(*args, **kwargs)
    assert str(caught.value).startswith(text), str(caught.value)
