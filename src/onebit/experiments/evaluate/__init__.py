"""What would another learner have done? A log of rounds, replayed by others."""

from onebit.experiments.evaluate.estimates import AnswerRates, Estimate, Estimates, Known, answer_rates
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
    "answer_rates",
    "evaluate",
    "logged_rounds",
    "play_with_floor",
    "read_log",
    "replay",
]
