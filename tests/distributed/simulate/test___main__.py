"""The table and the picture of `python -m rushlight.distributed.simulate`."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from rushlight.distributed.simulate.__main__ import main


def test_the_table_has_a_line_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--ranks 2 8 --bucket-cap-mb 1 25 --cluster gpus --tflops 100 --per-host 4"
    assert main(words.split()) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["ranks", "bucket"]
    assert [line.split()[:2] for line in lines] == [
        ["2", "1"],
        ["2", "25"],
        ["8", "1"],
        ["8", "25"],
    ]


def test_a_slower_network_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    efficiency = []
    for bandwidth in ("100", "10", "1"):
        main(f"--ranks 64 --batch 512 --bandwidth {bandwidth} --latency 50".split())
        efficiency.append(float(capsys.readouterr().out.splitlines()[1].split()[7].rstrip("%")))
    assert efficiency == sorted(efficiency, reverse=True)
    assert efficiency[0] > efficiency[-1] + 5


def test_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--ranks", "8", "--model", "mlp", "--svg", str(tmp_path / "step.svg")])
    tree = ElementTree.parse(tmp_path / "step.svg")
    titles = [title.text for title in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[:3] == ["forward", "backward", "waiting and update"]
    assert all(title and "MB, " in title for title in titles[3:])
    assert len(titles) > 3
