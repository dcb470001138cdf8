"""Fetching ten million steps, verified and synced, against `curl --parallel` of the same files to the same disk.

Both from one nginx on loopback: `python -m benchmarks.fetch_against_curl`. The second row gives curl the sync as well.
"""

from __future__ import annotations

import contextlib
import getpass
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measuring import COLUMNS, COMMAND, Bench, Row, Time, power

GOAL = "fetch"
STEPS = 10_000_000
AT_ONCE = 8
_CONFIGURATION = """
user {user};
pid {folder}/nginx.pid; error_log {folder}/error.log; daemon off; worker_processes 1;
events {{ worker_connections 256; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    server {{ listen 127.0.0.1:{port}; root {site}; }}
}}
"""


@contextlib.contextmanager
def nginx(folder: Path, site: Path) -> Iterator[str]:
    """Yield the address of a folder that nginx serves."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    configuration = folder / "nginx.conf"
    configuration.write_text(_CONFIGURATION.format(folder=folder, port=port, site=site, user=getpass.getuser()))
    server = subprocess.Popen(["nginx", "-c", str(configuration)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def rows(bench: Bench) -> Iterator[Row]:
    """Yield a row for curl alone and one for curl and a sync."""
    if shutil.which("nginx") is None or shutil.which("curl") is None:
        return
    steps = bench.count(STEPS, 2_000)
    dataset, served = bench.dataset("abrupt", steps), bench.folder / "served"
    served.mkdir()
    with nginx(served, dataset.parent) as url:
        fetched, copied, plan = served / "f.zarr", served / "c", served / "curl.txt"
        files = sorted(str(path.relative_to(dataset)) for path in dataset.rglob("*") if path.is_file())
        plan.write_text("".join(f'url = "{url}/{dataset.name}/{file}"\noutput = "{copied}/{file}"\n' for file in files))
        curl = ["curl", "-sS", "--parallel", "--parallel-max", str(AT_ONCE), "--create-dirs", "-K", str(plan)]
        fetch = [*COMMAND, "fetch", f"{url}/{dataset.name}", "-o", str(fetched), "-q"]

        def cleared(command: list[str], *, synced: bool = False) -> Callable[[], Time]:
            def run() -> Time:
                for left in (fetched, copied):
                    shutil.rmtree(left, ignore_errors=True)
                subprocess.run(["sync", "-f", str(served)], check=True)
                first = bench.process(command)
                after = bench.process(["sync", "-f", str(served)]) if synced else Time(0, 0)
                return Time(first.wall + after.wall, first.cpu + after.cpu, first.peak)

            return run

        for other, synced in (("", False), (" and `sync`", True)):
            ours, theirs = bench.in_turn(cleared(fetch), cleared(curl, synced=synced))
            yield Row(
                GOAL,
                f"`fetch` of {power(steps)} steps, verified and synced, whole process",
                f"`curl --parallel`{other} of the same files, one nginx on loopback",
                ours.wall,
                theirs.wall,
                0.7,
                faster=True,
                cpu=(ours.cpu, theirs.cpu),
            )
    shutil.rmtree(served)


def main() -> int:
    """Print both rows."""
    print(f"| {' | '.join(COLUMNS)} |")
    with tempfile.TemporaryDirectory(prefix="alberta-data-bench-") as folder:
        for row in rows(Bench(Path(folder), tiny="--tiny" in sys.argv)):
            print(f"| {' | '.join(row.cells())} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
