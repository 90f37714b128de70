"""Many machines: the games of an arena on the workers of a Dask cluster.

`dask_cluster` is the executor, in the process that writes the store. `host` is in every Dask worker, and starts a
`game_process` for each of its threads, which plays as a local worker does. `environment` says what must be the same
everywhere, `luggage` what travels with a batch. Nothing here is imported unless a cluster is asked for.
"""
