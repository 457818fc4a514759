"""Distributions of vectors and matrices that are normal, or made of normal ones."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from rushlight.distributions import constraints
from rushlight.distributions.distribution import EMPTY, Distribution, Expands, ExponentialFamily
from rushlight.distributions.members import alias
from rushlight.distributions.names import ops
from rushlight.distributions.positive import Beta, Chi2
from rushlight.distributions.utils import _standard_normal, lazy_property
from rushlight.size import Size

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]


def _batch_mv(bmat: Any, bvec: Any) -> Any:
    """Matrices times vectors."""
    return ops.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Any, bx: Any) -> Any:  # PyTorch's name
    """The squared lengths of `inv(bL) @ bx`, where `bL` is lower triangular: squared Mahalanobis
    distances for a covariance `bL @ bL.mT`."""
    n = bx.shape[-1]
    if bL.ndim == 2 or bL.shape[:-2].numel() == 1:
        # one matrix for all: the vectors are columns of one right side
        columns = bx.reshape(-1, n).mT
        solved = ops.linalg.solve_triangular(bL.reshape(n, n), columns, upper=False)
        batch = ops.broadcast_shapes(bL.shape[:-2], bx.shape[:-1])
        return solved.pow(2).sum(0).reshape(batch)
    solved = ops.linalg.solve_triangular(bL, bx.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def _precision_to_scale_tril(P: Any) -> Any:  # PyTorch's name
    """The Cholesky factor of the inverse of `P`, without inverting it: that of `P` with rows and
    columns in the opposite order is the transposed inverse, in that order."""
    flipped = ops.linalg.cholesky(ops.flip(P, (-2, -1)))
    upper = ops.transpose(ops.flip(flipped, (-2, -1)), -2, -1)
    identity = ops.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return ops.linalg.solve_triangular(upper, identity, upper=False)


def _half_log_det(tril: Any) -> Any:
    """log det of a triangular matrix: half of that of the covariance."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


_ONE_OF = "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."


class _OfMatrix(Expands):
    """Distributions given a covariance matrix, its inverse, or its Cholesky factor; each follows
    from `_unbroadcasted_scale_tril`."""

    _unbroadcasted_scale_tril: Any
    _batch_shape: Any
    _event_shape: Any

    def _take_factor(self, name: str, given: Any) -> None:
        """Factor the matrix that was given."""
        self._unbroadcasted_scale_tril = (
            given if name == "scale_tril"
            else ops.linalg.cholesky(given) if name == "covariance_matrix"
            else _precision_to_scale_tril(given)
        )  # fmt: skip

    def _matrix_shape(self) -> Any:
        return self._batch_shape + self._unbroadcasted_scale_tril.shape[-2:]

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance matrix."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        return ops.matmul(factor, factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance matrix."""
        return ops.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril


class MultivariateNormal(_OfMatrix):
    """MultivariateNormal(loc, covariance_matrix=None, precision_matrix=None, scale_tril=None,
    validate_args=None)

    The normal distribution of vectors, with mean `loc` and a covariance matrix, its inverse, or its
    lower Cholesky factor, which is the quickest.

    >>> d = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    >>> d.log_prob(torch.zeros(2)), d.entropy()
    (tensor(-1.8379), tensor(2.8379))
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {
            "covariance_matrix": covariance_matrix, "scale_tril": scale_tril,
            "precision_matrix": precision_matrix,
        }  # fmt: skip
        given = [name for name, value in matrices.items() if value is not None]
        if len(given) != 1:
            raise ValueError(_ONE_OF)
        name, matrix = given[0], matrices[given[0]]
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{what} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = ops.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = matrix.expand((*batch_shape, -1, -1))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._take_factor(name, matrix)

    mean = alias("loc", "The location.")
    mode = alias("loc", "The location.")

    @property
    def variance(self) -> Any:
        """The variance of each component."""
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - _half_log_det(factor)

    def entropy(self) -> Any:
        """The entropy."""
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        found = constant + _half_log_det(self._unbroadcasted_scale_tril)
        return found.expand(self._batch_shape) if self._batch_shape else found


def _batch_capacitance_tril(W: Any, D: Any) -> Any:  # PyTorch's names
    """The Cholesky factor of I + W.T inv(D) W."""
    weighted = W.mT / D.unsqueeze(-2)
    inner = ops.matmul(weighted, W).contiguous()
    identity = ops.eye(W.shape[-1], dtype=W.dtype, device=W.device)
    return ops.linalg.cholesky(inner + identity)


def _batch_lowrank_logdet(W: Any, D: Any, capacitance_tril: Any) -> Any:  # likewise
    """log det (W W.T + D), by the matrix determinant lemma."""
    return 2 * _half_log_det(capacitance_tril) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(  # likewise
    W: Any,
    D: Any,
    x: Any,
    capacitance_tril: Any,
) -> Any:
    """x.T inv(W W.T + D) x, by the Woodbury identity."""
    projected = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Expands):
    """LowRankMultivariateNormal(loc, cov_factor, cov_diag, validate_args=None)

    The normal distribution of vectors with covariance `cov_factor @ cov_factor.T + diag(cov_diag)`,
    which is cheap where the factor has few columns.

    >>> d = torch.distributions.LowRankMultivariateNormal(
    ...     torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2))
    >>> d.covariance_matrix, d.variance
    (tensor([[2., 0.],
            [0., 1.]]), tensor([2., 1.]))
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, "
                "with optional leading batch dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = ops.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril

    mean = alias("loc", "The location.")
    mode = alias("loc", "The location.")

    def _matrix_shape(self) -> Any:
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def variance(self) -> Any:
        """The variance of each component."""
        found = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return found.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance matrix."""
        # that of a matrix with diagonal 1 + something, which is better conditioned
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = ops.matmul(scaled, scaled.mT).contiguous()
        identity = ops.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        return (root * ops.linalg.cholesky(inner + identity)).expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance matrix."""
        factor = self._unbroadcasted_cov_factor
        found = ops.matmul(factor, factor.mT) + ops.diag_embed(self._unbroadcasted_cov_diag)
        return found.expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance matrix, by the Woodbury identity."""
        weighted = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        half = ops.linalg.solve_triangular(self._capacitance_tril, weighted, upper=False)
        diagonal = ops.diag_embed(self._unbroadcasted_cov_diag.reciprocal())
        return (diagonal - ops.matmul(half.mT, half)).expand(self._matrix_shape())

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        short = shape[:-1] + self.cov_factor.shape[-1:]
        of_factor = _standard_normal(short, self.loc.dtype, self.loc.device)
        of_diagonal = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return (
            self.loc
            + _batch_mv(self._unbroadcasted_cov_factor, of_factor)
            + self._unbroadcasted_cov_diag.sqrt() * of_diagonal
        )

    def _log_det(self) -> Any:
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc,
            self._capacitance_tril,
        )  # fmt: skip
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + distance)

    def entropy(self) -> Any:
        """The entropy."""
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        found = 0.5 * (constant + self._log_det())
        return found.expand(self._batch_shape) if self._batch_shape else found


def _mvdigamma(x: Any, p: int) -> Any:
    """The derivative of the logarithm of the multivariate gamma function."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    steps = ops.arange(p, dtype=x.dtype, device=x.device).div(2)
    return ops.digamma(x.unsqueeze(-1) - steps.expand((*x.shape, -1))).sum(-1)


def _clamp_above_eps(x: Any) -> Any:
    return x.clamp(min=ops.finfo(x.dtype).eps)


class Wishart(_OfMatrix, ExponentialFamily):
    """Wishart(df, covariance_matrix=None, precision_matrix=None, scale_tril=None,
    validate_args=None)

    The distribution of the sum of outer products of `df` normal vectors; of positive definite
    matrices. `df` need not be whole, but must be larger than their size less 1.

    >>> d = torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2))
    >>> d.mean, d.log_prob(torch.eye(2))
    (tensor([[3., 0.],
            [0., 3.]]), tensor(-3.5310))
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _inside = ("_dist_chi2",)

    @property
    def arg_constraints(self) -> Any:
        """`df` is larger than the size less 1."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        matrices = {
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }  # fmt: skip
        given = [name for name, value in matrices.items() if value is not None]
        if len(given) != 1:
            raise AssertionError(_ONE_OF)
        name, matrix = given[0], matrices[given[0]]
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, "
                "with optional leading batch dimensions"
            )
        if isinstance(df, (int, float)):
            df = ops.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = ops.broadcast_shapes(matrix.shape[:-2], df.shape)
        event_shape = matrix.shape[-2:]
        self.df = df.expand(batch_shape)
        self.__dict__[name] = matrix.expand((*batch_shape, -1, -1))
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._batch_dims = [-(x + 1) for x in range(len(self._batch_shape))]
        self._take_factor(name, matrix)
        steps = ops.arange(event_shape[-1], dtype=df.dtype, device=df.device)
        self._dist_chi2: Any = Chi2(self.df.unsqueeze(-1) - steps.expand((*batch_shape, -1)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        size = self.event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(batch_shape + size)
        new.df = self.df.expand(batch_shape)
        new._batch_dims = [-(x + 1) for x in range(len(batch_shape))]
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(batch_shape + size)
        new._dist_chi2 = self._dist_chi2.expand(batch_shape + size[-1:])
        Distribution.__init__(new, batch_shape, size, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Any:
        """df times the covariance matrix."""
        return self.df.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        """Where the density is highest, for df above the size plus 1."""
        factor = (self.df - self.covariance_matrix.shape[-1] - 1).view((*self._batch_shape, 1, 1))
        return ops.where(factor <= 0, math.nan, factor) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        """The variance of each element."""
        cov = self.covariance_matrix
        diagonal = cov.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view((*self._batch_shape, 1, 1)) * (cov.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape: Any = EMPTY) -> Any:
        """By Bartlett's decomposition: a triangle of chi and normal variables."""
        p = self._event_shape[-1]
        noise = _clamp_above_eps(self._dist_chi2.rsample(sample_shape).sqrt()).diag_embed()
        rows, columns = ops.tril_indices(p, p, offset=-1)
        noise[..., rows, columns] = ops.randn(
            (*sample_shape, *self._batch_shape, p * (p - 1) // 2),
            dtype=noise.dtype, device=noise.device,
        )  # fmt: skip
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = EMPTY, max_try_correction: int | None = None) -> Any:
        """Draws that can be differentiated with respect to the parameters. Those that rounding made
        singular are drawn again.

        Args:
            sample_shape: how many draws, as a shape.
            max_try_correction: how often they are drawn; 3 times if None.
        """
        tries = 3 if max_try_correction is None else max_try_correction
        sample_shape = Size(sample_shape)
        drawn = self._bartlett_sampling(sample_shape)
        if tries < 1 or sample_shape.numel() == 0:
            return drawn
        # PyTorch takes every valid draw for a singular one, and draws it again, once. One seed
        # gives its numbers only if the first draw is thrown away here too.
        drawn = self._bartlett_sampling(Size((sample_shape.numel(),)))
        singular = self._singular(drawn)
        for _ in range(tries - 1):
            if not singular.any():
                break
            fresh = self._bartlett_sampling(singular[singular].shape)
            drawn = drawn.index_put((singular.clone(),), fresh)
            singular[singular.clone()] = self._singular(fresh)
        return drawn.reshape(self._extended_shape(sample_shape))

    def _singular(self, drawn: Any) -> Any:
        """Which draws hold a matrix that is not positive definite."""
        found = self.support.check(drawn.detach()).logical_not()
        return found.reshape(found.shape[0], -1).any(1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        trace = ops.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return (
            -nu * (p * math.log(2) / 2 + _half_log_det(factor))
            - ops.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * ops.linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Any:
        """The entropy."""
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
            + ops.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - p - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-ops.linalg.slogdet(-2 * x).logabsdet + math.log(2) * p) + ops.mvlgamma(
            half, p=p
        )


class LKJCholesky(Expands):
    """LKJCholesky(dim, concentration=1.0, validate_args=None)

    The distribution of Cholesky factors of correlation matrices of size `dim`. With
    `concentration` 1 all correlation matrices are equally likely; above, those near the identity
    are likelier.

    >>> d = torch.distributions.LKJCholesky(2, 1.0)
    >>> d.log_prob(torch.eye(2))
    tensor(-0.6931)
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        self.concentration = ops.as_tensor(concentration)
        batch_shape = self.concentration.size()
        # Row i of the factor has a squared length, less its diagonal, that is beta distributed.
        marginal = self.concentration + 0.5 * (dim - 2)
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        offset = ops.cat([ops.zeros((1,), **like), ops.arange(dim - 1, **like)])
        self._beta: Any = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(batch_shape, Size((dim, dim)), validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new.dim = self.dim
        new._beta = self._beta.expand((*batch_shape, self.dim))

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape + event_shape`, by the onion method: each row
        is a direction on the sphere times a length.

        Args:
            sample_shape: how many draws, as a shape.
        """
        length = self._beta.sample(sample_shape).unsqueeze(-1)
        direction = ops.randn(
            self._extended_shape(sample_shape), dtype=length.dtype, device=length.device
        ).tril(-1)
        direction = direction / direction.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # the first row has nothing before its diagonal
        w = ops.sqrt(length) * direction
        eps = ops.finfo(w.dtype).tiny
        return w + ops.diag_embed(ops.clamp(1 - ops.sum(w**2, dim=-1), min=eps).sqrt())

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        a, less = self.concentration, self.dim - 1
        order = ops.arange(2, self.dim + 1, device=a.device)
        order = 2 * (a - 1).unsqueeze(-1) + self.dim - order
        density = ops.sum(order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log(), dim=-1)
        alpha = a + 0.5 * less
        norm = ops.mvlgamma(alpha - 0.5, less) - ops.lgamma(alpha) * less
        return density - (0.5 * less * math.log(math.pi) + norm)
