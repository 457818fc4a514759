"""The signatures that PyTorch 2.13 lists where a call fits none of them.

Written by tools/make_signatures.py. A line: the names of functions that have the same signatures
(`.name`: the method, where it is not what `forms.method_forms` says), then the signatures. A `...`
stands for `forms.FACTORY`. Read when a call has failed, by `ops.forms`.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import Final

# Functions that PyTorch has written in Python: what they are not given is told in Python's words.
IN_PYTHON: Final = frozenset(
    """
    .is_shared .istft .reinforce .resize .resize_as .share_memory_ .storage .storage_type
    .to_sparse_coo .unflatten F.alpha_dropout F.batch_norm F.binary_cross_entropy
    F.binary_cross_entropy_with_logits F.celu F.cosine_embedding_loss F.cross_entropy F.dropout
    F.dropout1d F.dropout2d F.dropout3d F.elu F.embedding F.feature_alpha_dropout
    F.gaussian_nll_loss F.glu F.gumbel_softmax F.hardsigmoid F.hardswish F.hardtanh
    F.hinge_embedding_loss F.huber_loss F.kl_div F.l1_loss F.layer_norm F.leaky_relu F.log_softmax
    F.margin_ranking_loss F.mish F.mse_loss F.nll_loss F.normalize F.pad F.poisson_nll_loss F.relu
    F.relu6 F.rrelu F.selu F.sigmoid F.silu F.smooth_l1_loss F.soft_margin_loss F.softmax
    F.softmin F.softsign F.tanh F.tanhshrink F.threshold F.triplet_margin_loss atleast_1d
    atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist
    chain_matmul eig einsum from_dlpack lstsq lu matrix_rank meshgrid norm solve split stft symeig
    tensordot unique unique_consecutive
    """.split()
)

LISTED: Final = """
.addmm .addmm_
 (Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1)
.baddbmm .baddbmm_
 (Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1)
.bernoulli_
 (Tensor p, *, torch.Generator generator = None)
 (float p = 0.5, *, torch.Generator generator = None)
.bmm .mm
.copy_
 (Tensor other, bool non_blocking = False)
.cuda
 (torch.device device = None, bool non_blocking = False, *, torch.memory_format memory_format = None)
.new
 (*, torch.device device = None)
 (torch.Storage storage)
 (Tensor other)
 (tuple of ints size, *, torch.device device = None)
 (object data, *, torch.device device = None)
.nonzero
 ()
 (*, bool as_tuple)
.random_
 (*, torch.Generator generator = None)
 (int from, int to, *, torch.Generator generator = None)
 (int to, *, torch.Generator generator = None)
.set_
 ()
 (torch.Storage source)
 (torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None)
 (Tensor source)
 (Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None)
.to
 (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
.to_sparse
 (*, torch.layout layout = None, tuple of ints blocksize = None, int dense_dim = None)
 (int sparse_dim)
.type
 (object dtype = None, bool non_blocking = False, *, torch.memory_format memory_format = None)
.view
 (torch.dtype dtype)
 (tuple of ints size)
add sub
 (Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)
addbmm
 (Tensor input, Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
addcdiv addcmul
 (Tensor input, Tensor tensor1, Tensor tensor2, *, Number value = 1, Tensor out = None)
addmm
 (Tensor input, Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
 (Tensor input, Tensor mat1, Tensor mat2, torch.dtype out_dtype, *, Number beta = 1, Number alpha = 1, Tensor out = None)
addmv
 (Tensor input, Tensor mat, Tensor vec, *, Number beta = 1, Number alpha = 1, Tensor out = None)
addmv_
 (Tensor input, Tensor mat, Tensor vec, *, Number beta = 1, Number alpha = 1)
addr
 (Tensor input, Tensor vec1, Tensor vec2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
all any
 (Tensor input, *, Tensor out = None)
 (Tensor input, tuple of ints dim = None, bool keepdim = False, *, Tensor out = None)
 (Tensor input, int dim, bool keepdim = False, *, Tensor out = None)
arange
 (Number end, *, Tensor out = None, ...)
 (Number start, Number end, *, ...)
 (Number start, Number end, Number step = 1, *, Tensor out = None, ...)
argsort
 (Tensor input, *, bool stable, int dim = -1, bool descending = False, Tensor out = None)
 (Tensor input, int dim = -1, bool descending = False)
baddbmm
 (Tensor input, Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
 (Tensor input, Tensor batch1, Tensor batch2, torch.dtype out_dtype, *, Number beta = 1, Number alpha = 1, Tensor out = None)
bernoulli
 (Tensor input, *, torch.Generator generator = None, Tensor out = None)
 (Tensor input, float p, *, torch.Generator generator = None)
bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor remainder
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other)
 (Tensor input, Number other, *, Tensor out = None)
bmm mm
 (Tensor input, Tensor mat2, *, Tensor out = None)
 (Tensor input, Tensor mat2, torch.dtype out_dtype, *, Tensor out = None)
bucketize
 (Tensor input, Tensor boundaries, *, bool out_int32 = False, bool right = False, Tensor out = None)
 (Number self, Tensor boundaries, *, bool out_int32 = False, bool right = False)
clamp clip
 (Tensor input, Tensor min = None, Tensor max = None, *, Tensor out = None)
 (Tensor input, Number min = None, Number max = None, *, Tensor out = None)
clamp_ clip_
 (Tensor input, Tensor min = None, Tensor max = None)
 (Tensor input, Number min = None, Number max = None)
clamp_max
 (Tensor input, Tensor max, *, Tensor out = None)
 (Tensor input, Number max, *, Tensor out = None)
clamp_max_
 (Tensor input, Tensor max)
 (Tensor input, Number max)
clamp_min
 (Tensor input, Tensor min, *, Tensor out = None)
 (Tensor input, Number min, *, Tensor out = None)
clamp_min_
 (Tensor input, Tensor min)
 (Tensor input, Number min)
copysign eq fmod ge greater greater_equal gt le less less_equal lt ne not_equal
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
count_nonzero
 (Tensor input, int dim = None)
 (Tensor input, tuple of ints dim)
div
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Tensor other, *, str rounding_mode, Tensor out = None)
 (Tensor input, Number other, *, str rounding_mode)
divide
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Tensor other, *, str rounding_mode, Tensor out = None)
 (Tensor input, Number other)
 (Tensor input, Number other, *, str rounding_mode)
dsplit hsplit vsplit
 (Tensor input, int sections)
 (Tensor input, tuple of ints indices)
eye
 (int n, *, Tensor out = None, ...)
 (int n, int m, *, Tensor out = None, ...)
fill fill_
 (Tensor input, Tensor value)
 (Tensor input, Number value)
float_power pow
 (Tensor input, Tensor exponent, *, Tensor out = None)
 (Number self, Tensor exponent, *, Tensor out = None)
 (Tensor input, Number exponent, *, Tensor out = None)
floor_divide multiply true_divide
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other)
index_fill
 (Tensor input, int dim, Tensor index, Tensor value)
 (Tensor input, int dim, Tensor index, Number value)
isin
 (Tensor elements, Tensor test_elements, *, bool assume_unique = False, bool invert = False, Tensor out = None)
 (Number element, Tensor test_elements, *, bool assume_unique = False, bool invert = False, Tensor out = None)
 (Tensor elements, Number test_element, *, bool assume_unique = False, bool invert = False, Tensor out = None)
lerp
 (Tensor input, Tensor end, Tensor weight, *, Tensor out = None)
 (Tensor input, Tensor end, Number weight, *, Tensor out = None)
linalg_cond
 (Tensor input, Number p = None, *, Tensor out = None)
 (Tensor input, str p, *, Tensor out = None)
linalg_matrix_norm
 (Tensor input, Number ord, tuple of ints dim = {-2,-1}, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
 (Tensor input, str ord = "fro", tuple of ints dim = {-2,-1}, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
linalg_matrix_rank
 (Tensor input, *, Tensor atol = None, Tensor rtol = None, bool hermitian = False, Tensor out = None)
 (Tensor input, *, float atol = None, float rtol = None, bool hermitian = False, Tensor out = None)
 (Tensor input, Tensor tol, bool hermitian = False, *, Tensor out = None)
 (Tensor input, float tol, bool hermitian = False, *, Tensor out = None)
linalg_norm
 (Tensor input, Number ord = None, tuple of ints dim = None, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
 (Tensor input, str ord, tuple of ints dim = None, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
linalg_pinv
 (Tensor input, *, Tensor atol = None, Tensor rtol = None, bool hermitian = False, Tensor out = None)
 (Tensor input, *, float atol = None, float rtol = None, bool hermitian = False, Tensor out = None)
 (Tensor input, Tensor rcond, bool hermitian = False, *, Tensor out = None)
 (Tensor input, float rcond, bool hermitian = False, *, Tensor out = None)
linspace
 (Tensor start, Tensor end, int steps, *, Tensor out = None, ...)
 (Number start, Tensor end, int steps, *, Tensor out = None, ...)
 (Tensor start, Number end, int steps, *, Tensor out = None, ...)
 (Number start, Number end, int steps, *, Tensor out = None, ...)
logspace
 (Tensor start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, ...)
 (Number start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, ...)
 (Tensor start, Number end, int steps, float base = 10.0, *, Tensor out = None, ...)
 (Number start, Number end, int steps, float base = 10.0, *, Tensor out = None, ...)
masked_fill
 (Tensor input, Tensor mask, Tensor value)
 (Tensor input, Tensor mask, Number value)
max min
 (Tensor input, *, Tensor out = None)
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)
mean
 (Tensor input, *, torch.dtype dtype = None, Tensor out = None)
 (Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
median nanmedian
 (Tensor input)
 (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)
moveaxis movedim
 (Tensor input, int source, int destination)
 (Tensor input, tuple of ints source, tuple of ints destination)
nanquantile quantile
 (Tensor input, Tensor q, int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None)
 (Tensor input, float q, int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None)
narrow
 (Tensor input, int dim, Tensor start, int length)
 (Tensor input, int dim, int start, int length)
normal
 (Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)
 (Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None)
 (float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)
 (float mean, float std, tuple of ints size, *, torch.Generator generator = None, Tensor out = None, ...)
nuclear_norm
 (Tensor input, tuple of ints dim, bool keepdim = False, *, Tensor out = None)
 (Tensor input, bool keepdim = False, *, Tensor out = None)
prod
 (Tensor input, *, torch.dtype dtype = None)
 (Tensor input, int dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
rand randn
 (tuple of ints size, *, torch.Generator generator, Tensor out = None, ...)
 (tuple of ints size, *, Tensor out = None, ...)
rand_like randn_like
 (Tensor input, *, torch.Generator generator, torch.memory_format memory_format = None, ...)
 (Tensor input, *, torch.memory_format memory_format = None, ...)
randint
 (int high, tuple of ints size, *, torch.Generator generator, Tensor out = None, ...)
 (int high, tuple of ints size, *, Tensor out = None, ...)
 (int low, int high, tuple of ints size, *, torch.Generator generator, Tensor out = None, ...)
 (int low, int high, tuple of ints size, *, Tensor out = None, ...)
randint_like
 (Tensor input, int low, int high, *, torch.Generator generator, torch.memory_format memory_format = None, ...)
 (Tensor input, int low, int high, *, torch.memory_format memory_format = None, ...)
 (Tensor input, Tensor high, *, torch.Generator generator, torch.memory_format memory_format = None, ...)
 (Tensor input, Tensor high, *, torch.memory_format memory_format = None, ...)
 (Tensor input, int high, *, torch.Generator generator, torch.memory_format memory_format = None, ...)
 (Tensor input, int high, *, torch.memory_format memory_format = None, ...)
randperm
 (int n, *, torch.Generator generator, Tensor out = None, ...)
 (int n, *, Tensor out = None, ...)
repeat_interleave
 (Tensor input, Tensor repeats, int dim = None, *, int output_size = None)
 (Tensor repeats, *, int output_size = None)
 (Tensor input, int repeats, int dim = None, *, int output_size = None)
result_type
 (Tensor tensor, Tensor other)
 (Number scalar, Tensor tensor)
 (Tensor tensor, Number other)
 (Number scalar1, Number scalar2)
round
 (Tensor input, *, Tensor out = None)
 (Tensor input, *, int decimals, Tensor out = None)
round_
 (Tensor input)
 (Tensor input, *, int decimals)
rsub
 (Tensor input, Tensor other, *, Number alpha = 1)
 (Tensor input, Number other, Number alpha = 1)
scatter
 (Tensor input, int dim, Tensor index, Tensor src, *, Tensor out = None)
 (Tensor input, int dim, Tensor index, Tensor src, *, str reduce, Tensor out = None)
 (Tensor input, int dim, Tensor index, Number value, *, Tensor out = None)
 (Tensor input, int dim, Tensor index, Number value, *, str reduce, Tensor out = None)
searchsorted
 (Tensor sorted_sequence, Tensor input, *, bool out_int32 = False, bool right = False, str side = None, Tensor sorter = None, Tensor out = None)
 (Tensor sorted_sequence, Number self, *, bool out_int32 = False, bool right = False, str side = None, Tensor sorter = None, Tensor out = None)
sort
 (Tensor input, *, bool stable, int dim = -1, bool descending = False, tuple of Tensors out = None)
 (Tensor input, int dim = -1, bool descending = False, *, tuple of Tensors out = None)
squeeze
 (Tensor input)
 (Tensor input, int dim)
 (Tensor input, tuple of ints dim)
sspaddmm
 (Tensor input, Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
std var
 (Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None)
 (Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None)
 (Tensor input, bool unbiased = True)
std_mean var_mean
 (Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False)
 (Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False)
 (Tensor input, bool unbiased = True)
subtract
 (Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)
 (Tensor input, Number other, Number alpha = 1)
sum
 (Tensor input, *, torch.dtype dtype = None)
 (Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
tensor_split
 (Tensor input, tuple of ints indices, int dim = 0)
 (Tensor input, Tensor tensor_indices_or_sections, int dim = 0)
 (Tensor input, int sections, int dim = 0)
where
 (Tensor condition)
 (Tensor condition, Tensor input, Tensor other, *, Tensor out = None)
 (Tensor condition, Number self, Tensor other)
 (Tensor condition, Tensor input, Number other)
 (Tensor condition, Number self, Number other)
xlogy special_xlog1py special_xlogy special_zeta
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
xlogy_
 (Tensor input, Tensor other)
 (Tensor input, Number other)
"""
