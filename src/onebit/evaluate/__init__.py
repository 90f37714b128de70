"""What would another learner have done? A log of rounds, replayed by others."""

from onebit.evaluate.answer_rates import AnswerRates, answer_rates
from onebit.evaluate.estimates import Estimate, Estimates, Known, Weights
from onebit.evaluate.evaluation import Evaluation, evaluate
from onebit.evaluate.floor import play_with_floor
from onebit.evaluate.log_file import LogColumns, read_log
from onebit.evaluate.logged_rounds import LoggedRounds, logged_rounds
from onebit.evaluate.replay import Candidate, replay

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
