"""Plays a decider of a database as soon as it is free, until it is ended: ``play_postgres.py URL NAME RECORD THREADS``.

It writes down what it was told. Every line of the record was written after the decider had answered.
"""

import os
import sys
import threading
import time

from database_play import Played, play
from onebit.decider.decider import Decider
from onebit.decider.tickets import OwnedError, UnreachableError


def play_until_ended(url: str, name: str, record: str, threads: int) -> None:
    """Wait for the decider, say so, and play."""
    print("waiting", flush=True)
    while True:
        try:
            desk = Decider.open(url, name=name)
            break
        except (OwnedError, UnreachableError):
            time.sleep(0.05)
    told = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(said: Played) -> None:
        os.write(told, (" ".join(map(str, said)) + "\n").encode())

    # Not too many events: who takes over replays them all.
    for seed in range(threads):
        threading.Thread(target=play, args=(desk, seed, note, threading.Event(), 0.1), daemon=True).start()
    print("playing", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    play_until_ended(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
