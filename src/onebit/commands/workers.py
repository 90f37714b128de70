"""Where a command's games are played: on this machine, or on a cluster."""

from contextlib import AbstractContextManager, nullcontext

from rich.console import Console

from onebit.experiments.run import Executor, check_jobs
from onebit.reporting.console import say_note


def executor_for(dask: str | None, jobs: int | None, console: Console) -> AbstractContextManager[Executor | None]:
    """Return where to play, None for this machine, in a context that connects and disconnects; errors name the options.

    Parameters
    ----------
    dask : str, optional
        What the user gave as ``--dask``: the address of a scheduler, or its file.
    jobs : int, optional
        What the user gave as ``--jobs``.
    console : Console
        Where the cluster's news are shown.
    """
    check_jobs(jobs, "--jobs")
    if dask is None:
        return nullcontext(None)
    if jobs is not None:
        raise ValueError(
            f"--jobs {jobs} is for this machine, and --dask {dask} for others, whose workers bring their own number of "
            "threads; give one of the two"
        )
    # Nobody else waits for it.
    from onebit.experiments.dask_cluster import DaskCluster

    return DaskCluster(dask, lambda text: say_note(console, text))
