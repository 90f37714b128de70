"""Streams: the paper's data, synthetic data, adversaries, files, and changes to any of them."""

from onebit.streams import adversaries
from onebit.streams.changes import with_drift, with_imbalance, with_label_noise, with_several_right
from onebit.streams.data_set import AdaptiveStream, DataSet, LearnerView, describe
from onebit.streams.files import bundled, read_table
from onebit.streams.paper import paper_strong, paper_weak, wedges
from onebit.streams.preprocess import preprocess
from onebit.streams.synthetic import several_right, syn_non_sep, syn_sep, weak_margin

__all__ = [
    "AdaptiveStream",
    "DataSet",
    "LearnerView",
    "adversaries",
    "bundled",
    "describe",
    "paper_strong",
    "paper_weak",
    "preprocess",
    "read_table",
    "several_right",
    "syn_non_sep",
    "syn_sep",
    "weak_margin",
    "wedges",
    "with_drift",
    "with_imbalance",
    "with_label_noise",
    "with_several_right",
]
