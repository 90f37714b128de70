"""Deciders over HTTP, for several applications: ``onebit serve``.

`app`: the routes, and who may call them. `openapi`: their documentation. `gate`: checks of every request, and errors;
the playground has it too. `workers`, `pool`: a thread for each decider. `tokens`: authentication. `server`,
`connections`: the process, and limits on connections. `metrics`, `audit`: Prometheus metrics, audit log. `pages`: data
of the web pages, whose files are in ``page/``.
"""
