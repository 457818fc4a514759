"""`torch.hub` loads from folders and files, and fetches no repositories."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import rushlight as torch


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text("def model(n, *, bias=1): return n + bias\n")
    assert torch.hub.load(str(tmp_path), "model", 2, bias=3, source="local") == 5
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        torch.hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(FileNotFoundError):
        torch.hub.load(str(tmp_path / "none"), "model", source="local")


def test_repositories_are_not_fetched() -> None:
    with pytest.raises(RuntimeError, match="rushlight does not fetch 'pytorch/vision' from GitHub"):
        torch.hub.load("pytorch/vision", "resnet18")
    with pytest.raises(ValueError, match='Unknown source: "x". Allowed values'):
        torch.hub.load("a", "b", source="x")


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert torch.hub.get_dir() == str(tmp_path / "home" / "hub")
    source = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(2)}, source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    url = source.as_uri()
    torch.hub.download_url_to_file(url, str(tmp_path / "copy.pt"), digest[:8], progress=False)
    assert (tmp_path / "copy.pt").read_bytes() == source.read_bytes()
    with pytest.raises(RuntimeError, match='invalid hash value \\(expected "0000", got'):
        torch.hub.download_url_to_file(url, str(tmp_path / "bad.pt"), "0000", progress=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.pt", "weights.pt"]
    loaded = torch.hub.load_state_dict_from_url(url, progress=False, weights_only=True)
    assert loaded["w"].tolist() == [1, 1]
    source.unlink()  # it is kept
    assert torch.utils.model_zoo.load_url(url, weights_only=True)["w"].tolist() == [1, 1]


def test_names_that_libraries_import() -> None:
    from rushlight.utils import model_zoo

    match = torch.hub.HASH_REGEX.search("resnet18-f37072fd.pth")
    assert match is not None and match.group(1) == "f37072fd"
    assert torch.hub._get_torch_home() + "/hub" == torch.hub.get_dir()
    bar = model_zoo.tqdm([1, 2], disable=True)
    assert list(bar) == [1, 2]
    with torch.hub._Silent(total=3) as silent:
        silent.update(2)
        assert silent.n == 2
