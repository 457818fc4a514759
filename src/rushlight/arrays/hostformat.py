"""What printing needs from raw arrays: the elements to be shown, as plain Python numbers.

Nothing here knows how a number is written.
"""

from typing import Any

import numpy as np


def edges(array: Any, count: int) -> tuple[Any, list[int | None]]:
    """The first and last `count` elements along every axis, and where along each the gap is.

    The array may be a view of any strides, or live on another device: only the elements kept
    are copied, so the cost does not grow with the size of the array. An axis of at most twice
    `count` elements is kept whole, and has no gap.

    >>> from rushlight.arrays.hostformat import edges
    >>> import numpy as np
    >>> edges(np.arange(20).reshape(2, 10), 2)
    (array([[ 0,  1,  8,  9],
           [10, 11, 18, 19]]), [None, 2])
    """
    index: list[list[int]] = []
    gaps: list[int | None] = []
    for size in array.shape:
        every = range(size)
        if size > 2 * count:
            first = every[:count]
            index.append([*first, *every[-count:]])
            gaps.append(len(first))
        else:
            index.append([*every])
            gaps.append(None)
    return array[np.ix_(*index)], gaps


def python_numbers(array: Any) -> list[Any]:
    """The elements in row-major order, as Python numbers: float64 holds every real dtype exactly.

    >>> from rushlight.arrays.hostformat import python_numbers
    >>> import numpy as np
    >>> python_numbers(np.array([[1, 2], [3, 4]], dtype=np.float16))
    [1.0, 2.0, 3.0, 4.0]
    """
    if not isinstance(array, np.ndarray):
        array = array.get()  # from the device, now that only what is shown is left
    found: list[Any] = array.ravel().tolist()
    return found
