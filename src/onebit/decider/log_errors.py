"""What can be wrong with the log of a decider."""


class LogError(ValueError):
    """The file cannot be used as a log; the message says why, and what to do."""


class LostEventsError(LogError):
    """Events that were acknowledged are not in the log; the message says how many, and what to do."""


class LogWriteError(OSError):
    """Something could not be written, and did not happen; the message says what to do."""


class LogUnsureError(LogWriteError):
    """The connection to the database broke, and nobody knows whether something was written: ask again."""


class UnreachableError(LogError):
    """The database of a log cannot be reached; it is tried again with the next call."""


class OwnedError(LogError):
    """Another process has the decider open; the message says which.

    Parameters
    ----------
    message : str
        What is said.
    owner : str
        Who has it.
    epoch : int
        The how many-th owner that is, where they are counted.
    """

    def __init__(self, message: str, owner: str = "another process", epoch: int = 0) -> None:
        super().__init__(message)
        self.owner, self.epoch = owner, epoch
