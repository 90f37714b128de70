"""Plays a decider until it is killed: ``kill_decider.py LOG RECORD THREADS DURABILITY``.

It writes down what it was told. Every line of the record was written after the decider had answered.
"""

import os
import sys
import threading

import numpy as np

import onebit
from onebit.decider.decider import Decider


def main(path: str, record: str, threads: int, durability: str) -> None:
    """Play until somebody ends it."""
    desk = Decider.open(path, classes=["a", "b", "c"], learner=onebit.BanditPerceptron(), durability=durability)
    told = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def work(seed: int, rounds: int) -> None:
        generator = np.random.default_rng([seed, os.getpid()])
        for _ in range(rounds):
            x = generator.normal(size=3)
            ticket = desk.guess(x)
            os.write(told, f"guess {ticket.id} {ticket.label}\n".encode())
            if generator.random() < 0.8:  # some are never answered
                correct = ticket.label == "abc"[int(np.argmax(x))]
                desk.tell(ticket.id, bool(correct))
                os.write(told, f"tell {ticket.id} {correct}\n".encode())

    work(threads, 10)  # what is compiled is compiled now
    for seed in range(threads):
        threading.Thread(target=work, args=(seed, sys.maxsize), daemon=True).start()
    print("playing", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
