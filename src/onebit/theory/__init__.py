"""The paper's theory, runnable: margins, bounds, constructions, reductions."""

from onebit import bounds
from onebit.bounds import TransformedMargin, sharper_margin, transformed_margin
from onebit.theory.certificates import Certificate, Separator, verify_certificate, verify_separator
from onebit.theory.multivariate import FeatureMap, MultivariatePolynomial
from onebit.theory.polynomials import ChebyshevConstruction, Halfspaces, RationalConstruction
from onebit.theory.separability import Margin, Progress, margin
from onebit.theory.weak_labeling import SetSplitting, WeakLabeling
from onebit.theory.weak_to_strong import Looseness, StrongSeparators, measure_looseness

__all__ = [
    "Certificate",
    "ChebyshevConstruction",
    "FeatureMap",
    "Halfspaces",
    "Looseness",
    "Margin",
    "MultivariatePolynomial",
    "Progress",
    "RationalConstruction",
    "Separator",
    "SetSplitting",
    "StrongSeparators",
    "TransformedMargin",
    "WeakLabeling",
    "bounds",
    "margin",
    "measure_looseness",
    "sharper_margin",
    "transformed_margin",
    "verify_certificate",
    "verify_separator",
]
