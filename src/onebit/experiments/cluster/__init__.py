"""Plays the games of an arena on the workers of a Dask cluster.

`dask_cluster` is the executor, in the process that writes the store. `host` runs in every Dask worker, and starts a
`game_process` for each of its threads, which plays as a local worker does. `environment` checks that code and libraries
are the same everywhere, `luggage` packs what is sent with a batch. Nothing here is imported unless a cluster is used.
"""
