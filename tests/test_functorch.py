"""`functorch`: modules as functions, ensembles, derivatives."""

from __future__ import annotations

import pytest

import rushlight as torch


class TestFunctorch:
    def test_a_module_with_buffers(self) -> None:
        from rushlight import functorch

        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
        with pytest.warns(FutureWarning, match="`functorch.make_functional_with_buffers` is dep"):
            f, params, buffers = functorch.make_functional_with_buffers(net)
        assert f.param_names == ("0.weight", "0.bias", "1.weight", "1.bias")
        assert f.buffer_names == ("1.running_mean", "1.running_var", "1.num_batches_tracked")
        assert all(p.requires_grad for p in params) and params[0] is not net[0].weight
        x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
        y = f(params, buffers, x)
        assert torch.equal(y, net(x))
        zeros = [torch.zeros_like(p) for p in params]
        assert f(zeros, buffers, x).tolist() == [[0.0] * 3] * 2
        with (
            pytest.warns(FutureWarning, match="Please use `torch.func.functional_call` instead"),
            pytest.raises(RuntimeError, match="`model` has buffers"),
        ):
            functorch.make_functional(net)

    def test_parameters_that_are_one_stay_one(self) -> None:
        from rushlight import functorch

        net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2))
        net[1].weight = net[0].weight
        with pytest.warns(FutureWarning):
            f, params = functorch.make_functional(net, disable_autograd_tracking=True)
        assert len(params) == 2 and not any(p.requires_grad for p in params)
        eye = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        assert f((eye, torch.zeros(2)), torch.tensor([[3.0, 4.0]])).tolist() == [[3.0, 4.0]]

    def test_an_ensemble(self) -> None:
        from rushlight import functorch

        models = [torch.nn.Linear(2, 1) for _ in range(3)]
        with pytest.warns(FutureWarning, match="`torch.func.stack_module_state` instead"):
            f, params, buffers = functorch.combine_state_for_ensemble(models)
        assert [p.shape for p in params] == [(3, 1, 2), (3, 1)] and buffers == ()
        assert not any(p.requires_grad for p in params)
        x = torch.ones(4, 2)
        with pytest.warns(FutureWarning, match="`torch.vmap` instead"):
            y = functorch.vmap(f, in_dims=(0, 0, None))(params, buffers, x)
        want = torch.stack([m(x) for m in models])
        assert torch.allclose(y, want)
        with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="at least one model"):
            functorch.combine_state_for_ensemble([])

    def test_derivatives(self) -> None:
        from rushlight import functorch

        x = torch.tensor(2.0)
        for name, want in (("grad", 12.0), ("jacrev", 12.0), ("jacfwd", 12.0), ("hessian", 12.0)):
            with pytest.warns(FutureWarning, match=f"Please use `torch.func.{name}` instead"):
                f = getattr(functorch, name)(lambda x: x**3)
            assert f(x).item() == want
