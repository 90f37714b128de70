"""Errors of a decider's event log."""


class LogError(ValueError):
    """The log cannot be used; the message gives the cause and the remedy."""


class LostEventsError(LogError):
    """Acknowledged events are missing from the log; the message gives their number and the remedy."""


class LogWriteError(OSError):
    """An event could not be written and has no effect; the message gives the remedy."""


class LogUnsureError(LogWriteError):
    """The connection to the database broke during a write, whose outcome is unknown: retry."""


class UnreachableError(LogError):
    """The database of a log cannot be reached; the next call tries again."""


class OwnedError(LogError):
    """Another process has the decider open; the message names it.

    Parameters
    ----------
    message : str
        The error message.
    owner : str
        Description of the owning process.
    epoch : int
        The owner's epoch in a database; 0 for files.
    """

    def __init__(self, message: str, owner: str = "another process", epoch: int = 0) -> None:
        super().__init__(message)
        self.owner, self.epoch = owner, epoch
