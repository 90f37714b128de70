"""What would another learner have done? A log of rounds, replayed by others."""

from onebit.experiments.evaluate.answer_rates import AnswerRates, answer_rates
from onebit.experiments.evaluate.estimates import Estimate, Estimates, Known, Weights
from onebit.experiments.evaluate.log import LogColumns, LoggedRounds, logged_rounds, play_with_floor, read_log
from onebit.experiments.evaluate.replay import Candidate, Evaluation, evaluate, replay

__all__ = [
    "AnswerRates",
    "Candidate",
    "Estimate",
    "Estimates",
    "Evaluation",
    "Known",
    "LogColumns",
    "LoggedRounds",
    "Weights",
    "answer_rates",
    "evaluate",
    "logged_rounds",
    "play_with_floor",
    "read_log",
    "replay",
]
