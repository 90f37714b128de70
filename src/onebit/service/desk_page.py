"""The web pages for watching deciders and giving feedback, and their JSON endpoints."""

from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response

from onebit.service import bodies
from onebit.service.routes import add_route, json_response
from onebit.service.tickets import MOST_LISTED, one_ticket, open_tickets
from onebit.service.tokens import ANYBODY, ROLES, Caller
from onebit.service.watching import Watching, columns_call
from onebit.service.web import PAGE_PARTS, Problem

if TYPE_CHECKING:
    from onebit.service.app import Service

PAGE = Path(__file__).parent / "page"
_UP = b"{up}"  # placeholder in pages for the relative path to the service's root, which a proxy may move
_LISTED = 10
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def add_desk_page(app: FastAPI, service: "Service") -> None:
    """Add the routes of the pages and their endpoints."""
    watching = Watching()

    files = {"page": files_of(PAGE), "parts": files_of(PAGE_PARTS)}
    page, kind = files["page"].pop("index.html")

    async def listing(_request: Request) -> Response:
        return Response(page.replace(_UP, b"./"), media_type=kind)

    async def one_decider(_request: Request) -> Response:
        return Response(page.replace(_UP, b"../../"), media_type=kind)

    async def part(request: Request) -> Response:
        return file(request.scope["path"].split("/")[1], request.path_params["path"])

    def file(where: str, path: str) -> Response:
        if path not in files[where]:
            raise Problem(404, f"there is no file {path!r:.80}")
        content, kind = files[where][path]
        return Response(content, media_type=kind)

    async def me(request: Request) -> Response:
        caller: Caller = request.scope["state"]["caller"]
        return json_response(
            {
                "name": caller.name,
                "roles": [role for role in ROLES if caller.has_role(role)],
                "namespaces": sorted(caller.namespaces),
                "has_token": caller is not ANYBODY,
            }
        )

    async def overview(request: Request) -> Response:
        caller = service.allow(request, "read")
        service.charge(request, caller, 1)
        seen = [worker for namespace, _, worker in service.workers if caller.sees(namespace)]
        return json_response({"deciders": await watching.overview(seen)})

    async def frame(request: Request) -> Response:
        worker, caller = await service.worker(request, "read")
        service.charge(request, caller, 1)
        return Response(await watching.frame(worker), media_type="application/json")

    async def waiting(request: Request) -> Response:
        worker, caller = await service.worker(request, "read")
        older_than = request.query_params.get("older_than")
        limit = bodies.page_size(request.query_params.get("limit"), "limit", _LISTED, MOST_LISTED)
        service.charge(request, caller, 1)
        return json_response(await worker.read(lambda decider: open_tickets(decider, older_than, limit)))

    async def ticket(request: Request) -> Response:
        worker, caller = await service.worker(request, "read")
        name = request.query_params.get("id", "")
        service.charge(request, caller, 1)
        return json_response(await worker.read(lambda decider: one_ticket(decider, name)))

    async def columns(request: Request) -> Response:
        worker, caller = await service.worker(request, "read")
        service.charge(request, caller, 1)
        return json_response(await worker.read(columns_call))

    one = "/v1/{namespace}/{name}"
    add_route(app, "GET", "/", listing, "The desk: deciders, and how they fare, for people.")
    add_route(app, "GET", "/desk/{namespace}/{name}", one_decider, "The desk of one decider.")
    add_route(app, "GET", "/v1/me", me, "Whose token it is, and what it may do.")
    add_route(app, "GET", "/v1/overview", overview, "The deciders that you may see, with numbers. Role: read.")
    add_route(app, "GET", f"{one}/desk", frame, "Status, report, course of mistakes, weights of kernels. Role: read.")
    add_route(app, "GET", f"{one}/open", waiting, "Open tickets, newest first: ?older_than=, ?limit=. Role: read.")
    add_route(app, "GET", f"{one}/ticket", ticket, "All about a ticket: ?id= is its id, or its key. Role: read.")
    add_route(app, "GET", f"{one}/columns", columns, "What each column of the records became. Role: read.")
    for where in files:
        add_route(app, "GET", f"/{where}/{{path:path}}", part, "Files of the desk.")


def files_of(folder: Path) -> dict[str, tuple[bytes, str]]:
    """Return content and media type of all files of a folder by path; only these are served."""
    return {
        path.relative_to(folder).as_posix(): (
            path.read_bytes(),
            f"{_TYPES.get(path.suffix, 'text/plain')}; charset=utf-8",
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
