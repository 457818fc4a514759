"""Resizing, grids, patches and shuffles: results, two orders of gradients, and errors."""

from __future__ import annotations

from typing import Any

from tests.ops.calls import answers, errors


def _resized() -> str:
    calls = []
    for mode, shape, aligns in (
        ("nearest", "2, 2, 5", (None,)), ("nearest", "1, 2, 5, 4", (None,)),
        ("nearest", "1, 2, 3, 4, 2", (None,)), ("nearest-exact", "1, 2, 5, 4", (None,)),
        ("linear", "2, 2, 5", (False, True)), ("bilinear", "1, 2, 5, 4", (False, True)),
        ("bicubic", "1, 2, 5, 4", (False, True)), ("trilinear", "1, 2, 3, 4, 2", (False, True)),
        ("area", "1, 2, 5, 4", (None,)), ("area", "1, 2, 5", (None,)),
    ):  # fmt: skip
        for size in ("size=7", "size=2", "size=1", "scale_factor=1.7", "scale_factor=0.6",
                     "scale_factor=1.3, recompute_scale_factor=True"):  # fmt: skip
            calls += [
                f"F.interpolate(x({shape}), mode={mode!r}, align_corners={align}, {size})"
                for align in aligns
            ]
    for mode in ("bilinear", "bicubic"):
        calls += [
            f"F.interpolate(x(1, 2, 9, 8), {size}, mode={mode!r}, antialias=True)"
            for size in ("(3, 5)", "(12, 4)", "None, 0.4")
        ]
    return "\n".join(calls)


def _sampled() -> str:
    calls = []
    for mode in ("bilinear", "nearest", "bicubic"):
        for edge in ("zeros", "border", "reflection"):
            for align in (False, True):
                how = f"{mode!r}, {edge!r}, {align}"
                calls.append(f"F.grid_sample(x(2, 2, 4, 5), x(2, 3, 3, 2), {how})")
                if mode != "bicubic":
                    calls.append(f"F.grid_sample(x(1, 2, 3, 4, 3), x(1, 2, 2, 2, 3), {how})")
    return "\n".join(calls)


CALLS = f"""
{_resized()}
{_sampled()}
F.interpolate(i(1, 3, 6, 6).abs().to(torch.uint8) * 11, 9, mode="bilinear")
F.interpolate(i(1, 3, 6, 6).abs().to(torch.uint8) * 11, 4, mode="nearest")
F.interpolate(i(1, 3, 9, 9).abs().to(torch.uint8) * 11, 4, mode="bilinear", antialias=True)
F.upsample(x(1, 2, 3, 3), 5) | F.upsample_nearest(x(1, 2, 3, 3), scale_factor=2)
F.upsample_bilinear(x(1, 2, 3, 3), 5)
torch.grid_sampler(x(2, 2, 4, 5), x(2, 3, 3, 2), 0, 0, True)
torch.grid_sampler_2d(x(2, 2, 4, 5), x(2, 3, 3, 2), 1, 1, False)
F.affine_grid(x(2, 2, 3), (2, 1, 3, 4), align_corners=True)
F.affine_grid(x(2, 2, 3), (2, 1, 3, 1), align_corners=False)
F.affine_grid(x(1, 3, 4), (1, 1, 2, 3, 2), align_corners=False)
torch.affine_grid_generator(x(2, 2, 3), (2, 1, 3, 4), False)
F.unfold(x(2, 3, 4, 5), 2) | F.unfold(x(3, 4, 5), (2, 3), 1, 1, 2)
F.unfold(x(1, 2, 6, 6), 2, 2, (1, 0), (2, 1))
F.unfold(z(1, 2, 4, 4), 2) | F.fold(x(2, 12, 12), (4, 5), 2) | F.fold(x(8, 4), (4, 4), 2, stride=2)
F.fold(x(1, 4, 12), (6, 6), 2, 2, (1, 0), (2, 1)) | F.fold(x(1, 4, 25), (4, 4), 2, padding=1)
F.pixel_shuffle(x(2, 8, 3, 2), 2) | F.pixel_shuffle(x(9, 2, 2), 3)
F.pixel_unshuffle(x(2, 2, 6, 4), 2)
F.channel_shuffle(x(2, 6, 3), 3) | torch.channel_shuffle(x(1, 6, 2, 2), 2)
torch.pixel_shuffle(i(1, 4, 2, 2), 2)
F.local_response_norm(x(2, 5, 4), 3, 0.5, 0.7, 1.2) | F.local_response_norm(x(2, 5, 4, 3), 2, 0.5)
F.local_response_norm(x(1, 4, 2, 2, 2), 3, 0.5)
torch.func.vmap(lambda a: F.interpolate(a, 5, mode="linear"))(x(3, 2, 2, 4))
torch.func.vmap(lambda a: F.unfold(a, 2))(x(3, 2, 2, 3, 3))
torch.func.jvp(lambda a: F.interpolate(a, 3, mode="bicubic"), (x(1, 2, 5, 5),), (x(1, 2, 5, 5),))
"""

ERRORS = """
F.interpolate(x(1, 1, 6, 6)) | F.interpolate(x(1, 1, 6, 6), 3, scale_factor=2)
F.interpolate(x(1, 1, 6, 6), 3, mode="foo")
F.interpolate(x(1, 1, 6, 6), 3, mode="linear") | F.interpolate(x(1, 1, 6), 3, mode="bilinear")
F.interpolate(x(1, 1, 6, 6), (3, 3, 3))
F.interpolate(x(1, 1, 6, 6), scale_factor=(1, 2, 3))
F.interpolate(x(1, 1, 6, 6), 3, align_corners=True)
F.interpolate(x(1, 1, 6), 3, mode="linear", antialias=True)
F.interpolate(x(1, 1, 6, 6), 3, recompute_scale_factor=True)
F.interpolate(x(6, 6), 3) | F.interpolate(x(1, 1, 6, 6), 0) | F.interpolate(i(1, 1, 6, 6), 3)
F.interpolate(x(2, 0, 4, 4), 3)
F.grid_sample(x(1, 1, 4, 4), x(1, 2, 2, 2), mode="foo")
F.grid_sample(x(1, 1, 4, 4), x(1, 2, 2, 2), padding_mode="foo")
F.grid_sample(x(1, 1, 4, 4, 4), x(1, 2, 2, 2, 3), mode="bicubic")
F.grid_sample(x(1, 1, 4, 4), x(1, 2, 2, 3))
F.grid_sample(x(2, 1, 4, 4), x(1, 2, 2, 2)) | F.grid_sample(x(1, 1, 0, 4), x(1, 2, 2, 2))
F.grid_sample(x(1, 1, 4, 4), x(1, 2, 2, 2, dtype="float32"))
F.affine_grid(x(2, 2, 3), (2, 3, 4)) | F.affine_grid(x(2, 2, 3), (2, 3, 0, 5))
F.affine_grid(x(2, 3, 3), (2, 3, 4, 5))
F.affine_grid(i(2, 2, 3), (2, 3, 4, 5)) | F.affine_grid(x(3, 2, 3), (2, 3, 4, 5))
F.unfold(x(6, 6), 2) | F.unfold(x(1, 6, 6), (2, 2, 2)) | F.unfold(x(1, 6, 6), 9)
F.unfold(x(1, 6, 6), 2, padding=-1)
F.unfold(x(1, 6, 6), 2, stride=0) | F.unfold(x(1, 6, 6), 0) | F.unfold(i(1, 6, 6), 2)
F.fold(x(2, 15, 25), (6, 6), 2)
F.fold(x(2, 16, 24), (6, 6), 2) | F.fold(x(2, 2, 16, 25), (6, 6), 2)
F.fold(x(2, 16, 25), (6, 6, 6), 2)
F.pixel_shuffle(x(1, 4, 2, 2), 3) | F.pixel_unshuffle(x(1, 4, 6, 6), 4)
F.pixel_shuffle(x(6, 6), 2) | F.pixel_shuffle(x(4, 2, 2), 0)
F.channel_shuffle(x(1, 4, 2), 3) | F.channel_shuffle(x(6, 6), 2) | F.channel_shuffle(x(1, 4, 2), 0)
F.local_response_norm(x(2, 2), 2) | F.local_response_norm(x(1, 2, 2, 2), 0)
F.interpolate(z(1, 1, 4), 2) | F.interpolate(z(1, 2, 4, 4), 2, mode="nearest-exact")
F.interpolate(i(1, 2, 4, 4), 2, mode="bicubic") | F.interpolate(z(1, 2, 4, 4), 2, mode="bilinear")
F.interpolate(z(1, 2, 4, 4), 2, mode="bilinear", antialias=True)
F.interpolate(i(1, 2, 4).byte(), 2, mode="linear")
F.grid_sample(z(1, 1, 4, 4), z(1, 2, 2, 2)) | F.grid_sample(z(1, 1, 4, 4, 4), z(1, 2, 2, 2, 3))
"""


def results(torch: Any) -> Any:
    return {"answers": answers(torch, CALLS), "errors": errors(torch, ERRORS)}
