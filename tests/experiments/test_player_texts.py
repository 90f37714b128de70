import math
from typing import Any

import pytest

from onebit.experiments.entries import parse_kernel, parse_player
from onebit.experiments.players import build
from onebit.kernels import Custom, Gaussian, Kernel, Multinomial, Polynomial, Rational
from onebit.learners import BanditPerceptron, Banditron, BanditSVM, MulticlassPerceptron, all_learners


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BanditPerceptron", BanditPerceptron()),
        ("Banditron:exploration=0.02", Banditron(0.02)),
        ("BanditPerceptron:kernel=Rational,normalize=true", BanditPerceptron(Rational(normalize=True))),
        ("BanditPerceptron:kernel=Polynomial,kernel.degree=3", BanditPerceptron(Polynomial(3))),
        ("MulticlassPerceptron:kernel=Gaussian,width=0.5", MulticlassPerceptron(Gaussian(0.5))),
        ("BanditPerceptron:ties=first,kernel=none", BanditPerceptron(ties="first")),
        ("BanditPerceptron:kernel=gaussian:0.5,normalize=true", BanditPerceptron(Gaussian(0.5, normalize=True))),
        ("BanditPerceptron:kernel=Gaussian:width=0.5", BanditPerceptron(Gaussian(0.5))),
        ("BanditSVM:C=inf,kernel=auto", BanditSVM(C=math.inf)),
        ("BanditSVM:C=inf,kernel=None", BanditSVM(None, C=math.inf)),
    ],
)
def test_text_names_a_learner(text: str, expected: object) -> None:
    player = parse_player(text)
    assert repr(build(player.spec)) == repr(expected)
    assert player.full_information == isinstance(expected, MulticlassPerceptron)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Perceptron", ["no learner 'Perceptron'", "Banditron", "MulticlassPerceptron", "mypackage.mine:"]),
        ("nowhere.mine:Learner", ["learner nowhere.mine:Learner", "no module 'nowhere'", "start in the folder"]),
        ("fractions:Nothing:a=1", ["fractions:Nothing", "has no 'Nothing'"]),
        ("fractions:Fraction", ["must be a subclass of onebit.Learner"]),
        ("Banditron:kernel=auto", ["Banditron:kernel=auto", "kernel must be None"]),
        ("Banditron:kernel=fractions:nothing", ["kernel fractions:nothing", "has no 'nothing'"]),
        ("BanditSVM:C=nan", ["C"]),
        ("Learner", ["no learner 'Learner'"]),
        ("Banditron:rate=0.1", ["Banditron has no setting 'rate'", "exploration, kernel"]),
        ("Banditron:seed=1", ["no setting 'seed'"]),
        ("Banditron:exploration", ["setting=value", "'exploration'"]),
        ("Banditron:exploration=7", ["Banditron:exploration=7", "exploration must be"]),
        ("Banditron:kernel=RBF", ["no kernel 'RBF'", "Gaussian", "Rational"]),
        ("Banditron:kernel=Custom", ["no kernel 'Custom'"]),
        ("Banditron:kernel=Gaussian,kernel.degree=2", ["Gaussian of Banditron", "no setting 'degree'", "width"]),
        ("Banditron:kernel=Gaussian,width=-2", ["width"]),
        ("BanditPerceptron:ties=best", ["ties must be one of"]),
    ],
)
def test_errors_say_what_there_is(text: str, words: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_player(text)
    for word in words:
        assert word in str(caught.value)


def test_every_learner_can_be_named() -> None:
    for cls in all_learners():
        assert parse_player(cls.__name__).spec.name == cls.__name__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rational", Rational()),
        ("Rational", Rational()),
        ("gaussian:0.5", Gaussian(0.5)),
        ("Gaussian:width=0.5,normalize=true", Gaussian(0.5, normalize=True)),
        ("polynomial:3", Polynomial(3)),
        ("multinomial:4,normalize=true", Multinomial(4, normalize=True)),
        ("onebit.kernels:Rational:normalize=true", Rational(normalize=True)),
    ],
)
def test_kernels(text: str, expected: Kernel) -> None:
    assert parse_kernel(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("magic", ["no kernel 'magic'", "Rational", "rational", "mypackage.kernels:Mine"]),
        ("kernel", ["no kernel 'kernel'"]),
        ("custom", ["no kernel 'custom'"]),
        ("gaussian:-1", ["gaussian:-1", "width"]),
        ("gaussian:wide", ["gaussian:wide", "width"]),
        ("gaussian:degree=2", ["degree"]),
        ("math:pi", ["math:pi", "must be a function(X, Y)", "dataclass"]),
        ("collections:OrderedDict", ["OrderedDict", "must be a function(X, Y)", "dataclass"]),
        ("polynomial:degree=2,degree=3", ["degree", "twice"]),
        ("math:hypot:width=3", ["math:hypot", "no settings", "width"]),
    ],
)
def test_bad_kernels_say_what_there_is(text: str, words: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_kernel(text)
    for word in words:
        assert word in str(caught.value)


def test_a_function_is_a_kernel_by_import_path() -> None:
    """A function that returns the matrix of values is a kernel; NumPy's own will do to show it."""
    player = parse_player("BanditPerceptron:kernel=sklearn.metrics.pairwise:rbf_kernel")
    from sklearn.metrics.pairwise import rbf_kernel

    kernel: Any = build(player.spec).get_params()["kernel"]
    assert kernel is rbf_kernel
    assert "sklearn.metrics.pairwise" in player.code()
    custom = BanditPerceptron(Custom(rbf_kernel, normalize=True))
    from onebit.experiments.players import describe

    assert repr(build(describe(custom))) == repr(custom)
