"""`alberta-data env`."""

from __future__ import annotations

from alberta_data.cli import output
from alberta_data.cli.command import command
from alberta_data.cli.options import Json


@command("alberta-data env", "alberta-data env --json")
def env(as_json: Json = False) -> None:
    """Versions and settings that can change a bit.

    They are what a dataset made here and now would say in `made_with`. Two datasets of one spec that differ were
    made with something that differs here; `reproduce` and `diff` say what.
    """
    from alberta_data import xla

    xla.pin(cache=False)
    made_with = xla.made_with()
    if as_json:
        output.put_json(made_with)
        return
    for line in output.table([(name, str(value)) for name, value in made_with.items()]):
        output.put(line)
