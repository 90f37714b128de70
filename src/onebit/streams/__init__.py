"""Where rounds come from."""

from onebit.streams.adaptive import AdaptiveStream, LearnerView
from onebit.streams.paper import paper_strong, paper_weak
from onebit.streams.wedges import wedges

__all__ = ["AdaptiveStream", "LearnerView", "paper_strong", "paper_weak", "wedges"]
