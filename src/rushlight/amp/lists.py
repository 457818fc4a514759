"""Which functions autocast casts, and how, on each device: as PyTorch 2.13 does.

"lower": to autocast's dtype; "float32": to that; "widest": to the widest of the arguments';
"first": to that of the first. Of
functions that PyTorch composes of others (`einsum`) the entry says what comes of it."""

from __future__ import annotations

from typing import Final

_PRODUCTS: Final = """
    matmul mm bmm baddbmm addmm addbmm linear prelu conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d scaled_dot_product_attention linalg.vecdot linalg.matmul
    linalg.multi_dot einsum tensordot chain_matmul inner lstm rnn_tanh rnn_relu
"""
_LOSSES: Final = """
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
    multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss
"""

LISTS: Final[dict[str, dict[str, list[str]]]] = {
    "cpu": {
        "lower": _PRODUCTS.split(),
        "float32": (
            _LOSSES
            + """
    cross_entropy ctc_loss gaussian_nll_loss adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d
    max_pool3d max_unpool2d max_unpool3d fractional_max_pool2d fractional_max_pool3d grid_sample
    cdist cholesky cholesky_inverse cholesky_solve geqrf inverse lu_solve nanquantile quantile orgqr
    ormqr pinverse polar prod qr stft svd trace triangular_solve view_as_complex
    fft.fft fft.fft2 fft.fftn fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.irfft fft.irfft2
    fft.irfftn fft.rfft fft.rfft2 fft.rfftn
    linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh linalg.eigvals
    linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex linalg.lstsq
    linalg.matrix_rank linalg.qr linalg.solve linalg.svd linalg.svdvals linalg.tensorinv
    linalg.tensorsolve linalg.pinv
"""
        ).split(),
        "widest": "cat concat concatenate stack index_copy".split(),
        "first": ["gru"],
    },
    "cuda": {
        "lower": (_PRODUCTS + " addmv addr mv").split(),
        "float32": (
            _LOSSES
            + """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus
    layer_norm group_norm rms_norm norm renorm logsumexp cosine_similarity cdist dist pdist prod sum
    cumprod cumsum softmax log_softmax softmin cross_entropy linalg.vector_norm linalg.matrix_norm
    interpolate
"""
        ).split(),
        "widest": """
    addcdiv addcmul atan2 bilinear cross dot vdot grid_sample index_put scatter_add
""".split(),
    },
}
