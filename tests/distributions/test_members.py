"""What classes of distributions say in short: aliases, and docstrings that follow from the base."""

import rushlight as torch
from rushlight.distributions.members import alias, inherit_docs
from rushlight.serialization.names import ours, theirs


def test_a_method_without_words_has_those_of_the_base():
    base, normal = torch.distributions.Distribution, torch.distributions.Normal
    assert normal.rsample is not base.rsample and normal.rsample.__doc__ == base.rsample.__doc__


def test_a_summary_is_followed_by_the_arguments_of_the_base():
    base, normal = torch.distributions.Distribution, torch.distributions.Normal
    summary, _, arguments = normal.log_prob.__doc__.partition("Args:")
    assert summary.strip() == "The logarithm of the density at `value`."
    assert arguments == base.log_prob.__doc__.partition("Args:")[2]


def test_what_explains_its_arguments_keeps_its_words():
    text = torch.distributions.CorrCholeskyTransform.log_abs_det_jacobian.__doc__
    assert text.count("Args:") == 1 and "intermediates: not used." in text


def test_classes_of_users_are_left_alone():
    class Mine(torch.distributions.Normal):
        def rsample(self, sample_shape=()):
            return super().rsample(sample_shape)

    assert Mine.rsample.__doc__ is None


def test_methods_that_override_nothing_are_left_alone():
    class Alone:
        def say(self):
            return 1

    Alone.__module__ = "rushlight.somewhere"
    inherit_docs(Alone)
    assert Alone.say.__doc__ is None


def test_an_alias_reads_through_attributes():
    class Holder:
        size = alias("inner.size", "How large it is.")

    holder = Holder()
    holder.inner = torch.ones(2, 3)
    assert holder.size() == (2, 3) and Holder.size.__doc__ == "How large it is."


def test_saved_transforms_have_the_names_of_pytorch():
    D = torch.distributions
    for made in (D.ExpTransform(), D.ComposeTransform([]), D.SoftmaxTransform(), D.Transform()):
        module, name = theirs(type(made).__module__, type(made).__qualname__)
        assert module == "torch.distributions.transforms"
        assert ours(module, name) is type(made)
