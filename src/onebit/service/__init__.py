"""Deciders over HTTP, for several applications: ``onebit serve``.

`app`: routes. `server`: start and stop. `connections`, `protocol`, `limits`: limits on connections and requests.
`gate`: middleware for authentication and headers. `workers`: a thread for each decider. `compiling`: compilation in
advance. `stores`: files or database. `bodies`: parsing of requests. `tokens`: authentication. `problems`: errors.
`metrics`, `journal`, `audit`: Prometheus metrics, log, audit log. `desk_page`, `watching`, `tickets`: web pages, whose
files are in ``page/``.
"""
