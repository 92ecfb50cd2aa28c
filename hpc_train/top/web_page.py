"""`top --web`: the same runs as a page for a browser of this machine. Nothing can be changed there.

Other people's processes reach 127.0.0.1 as well, and so does any page that a browser has open: by a
name that its owner points here (DNS rebinding). So the token is asked for, and the name in Host.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from hpc_train.errors import HpcTrainError
from hpc_train.report.templates import html_template
from hpc_train.runs.history_text import STATE_COLORS, clock, printable
from hpc_train.runs.log_tail import last_lines
from hpc_train.top.run_watcher import RunWatcher
from hpc_train.top.watched_run import HEADER, LOG_LINES, RunsSnapshot, chosen, full_text, log_files

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
REFRESH_S = 5
MOST_ROWS = 200
HEADERS = {
    # Its own script alone, nothing from elsewhere, in nobody's frame; forms go nowhere but here.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
    " script-src 'nonce-{nonce}'; connect-src 'self'; form-action 'self'; frame-ancestors 'none';"
    " base-uri 'none'",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def serve(runs_dir: Path | None, port: int, tell: Callable[[str], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        port: 0 takes any free one.
        tell: Is given the address, with the token, once.

    Raises:
        HpcTrainError: when the port is taken.
        NoSuchRunError: when `runs_dir` is no folder.
    """
    watch = RunWatcher(runs_dir)
    token = secrets.token_urlsafe(24)
    try:
        asyncio.run(_serve(watch, token, port, tell))
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise HpcTrainError(
            f"--port {port}: {error.strerror}", "leave --port out, and any free one is taken"
        ) from error


async def _serve(watch: RunWatcher, token: str, port: int, tell: Callable[[str], None]) -> None:
    runner = web.AppRunner(application(watch, token), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, ADDRESS, port)
    await site.start()
    watch.start()
    number = runner.addresses[0][1]
    tell(f"http://{ADDRESS}:{number}/?token={token}")
    await asyncio.Event().wait()


def application(watch: RunWatcher, token: str) -> web.Application:
    """The page, for who has the token and names this machine."""
    application = web.Application(middlewares=[_guard(token)])
    template = html_template(Path(__file__).with_name("web_page.html.j2"), printable=printable)

    async def page(request: web.Request) -> web.Response:
        nonce = secrets.token_urlsafe(16)
        contents = _contents(watch.newest or RunsSnapshot(), request.query)
        text = template.render(**contents, token=token, nonce=nonce)
        headers = {name: value.replace("{nonce}", nonce) for name, value in HEADERS.items()}
        return web.Response(text=text, content_type="text/html", headers=headers)

    application.router.add_get("/", page)
    return application


def _guard(token: str) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
        host = request.headers.get("Host", "").rpartition(":")[0] or request.host
        given = request.query.get("token", "")
        if host not in NAMES or not hmac.compare_digest(given.encode(), token.encode()):
            raise web.HTTPForbidden(text="403: open the address that hpc-train top --web printed\n")
        answer: web.StreamResponse = await handler(request)
        return answer

    return guard


def _contents(snapshot: RunsSnapshot, query: Any) -> dict[str, Any]:
    """What the template needs: a table of runs, or one of them."""
    run = query.get("run", "")
    row = next((row for row in snapshot.rows if row.status.run_dir == run), None)
    words = query.get("words", "")
    rows = chosen(snapshot, words)
    logs = log_files(row) if row else []
    log = next((it for it in logs if it.name == query.get("log")), logs[0] if logs else None)
    return {
        "summary": snapshot.summary,
        "notes": snapshot.notes,
        "words": words,
        "header": HEADER,
        "rows": rows[:MOST_ROWS],
        "found": len(rows),
        "run": row,
        "history": full_text(row, time.time()) if row else [],
        "logs": logs,
        "log": log,
        "lines": last_lines(log, LOG_LINES) if log else [],
        "colors": {state.value: color for state, color in STATE_COLORS.items()},
        "refresh_s": REFRESH_S,
        "made": clock(time.time()),
    }
