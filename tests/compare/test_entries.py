import pytest

from onebit.arena.specs import build
from onebit.compare.entries import default_entries, parse_entry
from onebit.kernels import Gaussian, Polynomial, Rational
from onebit.learners import BanditPerceptron, Banditron, MulticlassPerceptron, all_learners


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BanditPerceptron", BanditPerceptron()),
        ("Banditron:exploration=0.02", Banditron(0.02)),
        ("BanditPerceptron:kernel=Rational,normalize=true", BanditPerceptron(Rational(normalize=True))),
        ("BanditPerceptron:kernel=Polynomial,kernel.degree=3", BanditPerceptron(Polynomial(3))),
        ("MulticlassPerceptron:kernel=Gaussian,width=0.5", MulticlassPerceptron(Gaussian(0.5))),
        ("BanditPerceptron:ties=first,kernel=none", BanditPerceptron(ties="first")),
    ],
)
def test_text_names_a_learner(text: str, expected: object) -> None:
    entry = parse_entry(text)
    assert repr(build(entry.spec)) == repr(expected)
    assert entry.title == text
    assert entry.hears_label == isinstance(expected, MulticlassPerceptron)
    assert ("told the label" in entry.shown) == entry.hears_label


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Perceptron", ["no learner 'Perceptron'", "Banditron", "MulticlassPerceptron"]),
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
        parse_entry(text)
    for word in words:
        assert word in str(caught.value)


def test_every_learner_can_be_named_and_the_defaults_play() -> None:
    for cls in all_learners():
        assert parse_entry(cls.__name__).spec.name == cls.__name__
    entries = [parse_entry(text) for text in default_entries()]
    assert any(entry.hears_label for entry in entries)
    assert not entries[0].hears_label
