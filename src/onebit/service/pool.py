"""All workers of a service, and where their deciders are stored: files in a folder, or a database.

If several services share a database, each decider is open in one of them. The others check every `LOOK_SECONDS` whether
it is free, and the first one takes it over.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from onebit.decider.decider import Decider
from onebit.decider.queries import BASE_BYTES, CLASS_BYTES
from onebit.decider.settings import check_database_is_supported, check_same
from onebit.decider.tickets import LogError
from onebit.files import make_folder
from onebit.service.gate import Problem, problem_of
from onebit.service.tokens import check_name
from onebit.service.workers import DeciderWorker, Load, stopping

MOST_DECIDERS = 200  # maximum number of deciders; each has a thread and a file
LOOK_SECONDS = 2.0  # interval at which a service checks for free deciders
_OPENING_SECONDS = 1.0  # how long a stopping service waits for deciders that are being opened
_SUFFIX = ".onebit"
_LOG = logging.getLogger("onebit.serve")

Opener = Callable[..., Decider]  # `Decider.open`, or a function with the same parameters


class Folder:
    """Deciders in files: ``folder/namespace/name.onebit``."""

    is_shared = False  # whether several services can use it

    def __init__(self, folder: Path, opener: Opener = Decider.open) -> None:
        self._folder, self._opener = folder, opener

    def deciders(self) -> dict[str, str | None]:
        """Return all deciders; owners are unknown."""
        return {f"{path.parent.name}/{path.stem}": None for path in sorted(self._folder.glob(f"*/*{_SUFFIX}"))}

    def open(self, title: str, settings: dict[str, Any]) -> Decider:
        """Open a decider."""
        path = self._folder / f"{title}{_SUFFIX}"
        make_folder(path.parent)
        try:
            return self._opener(path, **settings)
        except BaseException:
            with suppress(OSError):  # not empty
                path.parent.rmdir()
            raise


class Database:
    """Deciders in a PostgreSQL database, by the name ``namespace/name``."""

    is_shared = True

    def __init__(self, url: str) -> None:
        check_database_is_supported()
        from onebit.decider.postgres import Database as PostgresDatabase

        self._database = PostgresDatabase(url)

    def deciders(self) -> dict[str, str | None]:
        """Return all deciders with their owners."""
        return self._database.deciders()

    def open(self, title: str, settings: dict[str, Any]) -> Decider:
        """Open a decider."""
        return Decider.open(self._database.url, name=title, **settings)


Store = Folder | Database


class WorkerPool:
    """The workers of all deciders of a store; `memory` is the maximum of all deciders in bytes."""

    def __init__(self, store: Store, warms: bool = False, memory: float = math.inf) -> None:
        self._store, self._warms, self._load = store, warms, Load(memory)
        self._workers: dict[tuple[str, str], DeciderWorker] = {}
        self._creating = threading.Lock()
        self._left_alone: set[str] = set()
        self._has_looked = False
        self._asking, self._asked = asyncio.Lock(), -math.inf
        self._trouble: LogError | None = None
        self._stop = threading.Event()
        self._standby = threading.Thread(target=self._look_repeatedly, name="onebit standby")

    def open_all(self) -> None:
        """Start opening all deciders; with a shared store, keep checking for free ones."""
        if self._store.is_shared:
            self._standby.start()
        else:
            self.look()

    def _look_repeatedly(self) -> None:
        last = ""
        while True:
            trouble = ""
            try:
                self.look()
            except Exception as error:  # any error: the standby thread must go on
                trouble = str(error) or repr(error)
            if trouble != last:  # log changes only
                _LOG.warning("%s", trouble or "the database can be reached again")
            last = trouble
            if self._stop.wait(LOOK_SECONDS):
                return

    def look(self) -> None:
        """Start opening deciders that are new, or were released by another process."""
        found = self._store.deciders()
        with self._creating:
            for title, owner in found.items():
                namespace, _, name = title.partition("/")
                try:
                    key = check_name("namespace", namespace), check_name("name", name)
                except ValueError as error:
                    if title not in self._left_alone:
                        self._left_alone.add(title)
                        _LOG.warning("%s is left alone: %s", title, error)
                    continue
                worker = self._workers.get(key)
                if not self._stop.is_set() and (worker is None or (worker.may_come_free and owner is None)):
                    self._workers[key] = self._new_worker(title, {})
            self._has_looked = True

    def _new_worker(self, title: str, settings: dict[str, Any]) -> DeciderWorker:
        return DeciderWorker(title, lambda: self._store.open(title, settings), self._load, self._warms, bool(settings))

    def get(self, namespace: str, name: str) -> DeciderWorker:
        """Return the worker of a decider, or raise Problem if there is none."""
        worker = self._workers.get((namespace, name))
        if worker is None:
            raise Problem(
                404, f"there is no decider {namespace}/{name}; PUT /v1/{namespace}/{name} makes one", "LogError"
            )
        return worker

    async def find(self, namespace: str, name: str) -> DeciderWorker:
        """Like `get`, but also find deciders just created by another service; raises ValueError for invalid names."""
        worker = self._workers.get((namespace, name))
        if worker is not None:
            return worker
        check_name("namespace", namespace)
        check_name("name", name)
        if self._store.is_shared:
            asked = time.monotonic()
            async with self._asking:  # one search at a time
                if asked >= self._asked:  # else another request has searched meanwhile
                    self._asked, self._trouble = time.monotonic(), None
                    try:
                        await asyncio.to_thread(self.look)
                    except LogError as error:
                        self._trouble = error
                if self._trouble is not None:
                    raise problem_of(self._trouble)
        return self.get(namespace, name)

    def __iter__(self) -> Iterator[tuple[str, str, DeciderWorker]]:
        for (namespace, name), worker in sorted(self._workers.items()):
            yield namespace, name, worker

    @property
    def awaited(self) -> str:
        """Message on what is pending before the service is ready; empty if it is.

        Deciders created by a request do not count: only their own callers wait for them.
        """
        if not self._has_looked:
            return "deciders are being looked for"
        waiting = [worker for worker in list(self._workers.values()) if not worker.ready.is_set() and not worker.is_new]
        n_compiling = sum(worker.opened.is_set() for worker in waiting)
        what = f"{len(waiting) - n_compiling} deciders are being opened, {n_compiling} are being compiled"
        return what if waiting else ""

    def create(self, namespace: str, name: str, settings: dict[str, Any]) -> bool:
        """Create a decider and wait until it is ready; return whether it is new. An existing one must match."""
        is_new = self._created(namespace, name, settings)
        self.get(namespace, name).ready.wait()  # without the lock: may take a minute
        return is_new

    def _created(self, namespace: str, name: str, settings: dict[str, Any]) -> bool:
        before = self._workers.get((namespace, name))
        if before is not None:
            before.opened.wait()  # without the lock: may take long
        with self._creating:
            if self._stop.is_set():
                raise stopping()
            before = self._workers.get((namespace, name))
            if before is not None and before.fault is None:
                decider = before.open_decider()
                classes = decider.classes  # not within try: its errors are no conflict, and name a path
                try:
                    check_same(before.title, decider.settings, settings, classes=classes)
                except LogError as error:
                    raise Problem(409, str(error), "LogError") from error
                return False
            if before is None and len(self._workers) >= MOST_DECIDERS:
                raise Problem(409, f"the service has {MOST_DECIDERS} deciders, and takes no more", "LogError")
            title = f"{namespace}/{name}"
            # Before a file is created; the width of rows is known only after the first record.
            self._load.budget.claim(title, BASE_BYTES + CLASS_BYTES * _n_classes(settings))
            worker = self._new_worker(title, settings)
            worker.opened.wait()
            if worker.fault is not None:
                worker.join()
                raise worker.fault
            self._workers[namespace, name] = worker
            return before is None

    def stop_compiling(self) -> None:
        """Stop waiting for compilation: the service is stopping."""
        self._load.is_stopping = True
        for worker in list(self._workers.values()):
            worker.leave_compiler()

    @property
    def has_left_threads(self) -> bool:
        """Whether abandoned threads are still opening or compiling deciders."""
        return any(worker.is_alive for worker in list(self._workers.values()))

    def close(self) -> None:
        """Finish all queued requests and close all deciders."""
        self._stop.set()
        if self._standby.is_alive():
            self._standby.join()
        with self._creating:  # no more workers are added
            workers = list(self._workers.values())
        for worker in workers:
            worker.stop()
        end = time.monotonic() + _OPENING_SECONDS
        for worker in workers:
            if worker.opened.wait(max(0.0, end - time.monotonic())):
                worker.join()
            else:
                _LOG.warning("is left while it is being opened", extra={"decider": worker.title})


def _n_classes(settings: dict[str, Any]) -> int:
    classes = settings["classes"]
    return classes if isinstance(classes, int) else len(classes)
