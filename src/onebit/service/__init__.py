"""Deciders over HTTP, for several applications: ``onebit serve``.

`app`: the routes. `gate`: checks of every request, and errors; for the playground too.
`workers`: a thread for each decider. `tokens`: authentication. `server`: connections and the process. `metrics`,
`audit`: Prometheus metrics, audit log. `pages`: data of the web pages, whose files are in ``page/``.
"""
