"""The commands there are, in the order of the help: name → where it is, and what it does in one line."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A command: `module:attribute`, and its line in the help (the first of its docstring)."""

    place: str
    summary: str


COMMANDS: dict[str, Row] = {
    "streams": Row("streams:streams", "The streams there are; of one, its parameters, formula and paper."),
    "generate": Row("generate:generate", "Generate a stream or an environment into a frozen dataset."),
    "learn": Row("learn:learn", "Replay a dataset into learners, in one pass, and leave a run."),
    "show": Row("show:show", "A dataset: what it holds, what it follows from, what it was made with."),
    "list": Row("listing:list_", "The datasets of a folder, the unfinished ones with the command that goes on."),
    "verify": Row("verify:verify", "Check every byte of a dataset against its id."),
    "reproduce": Row(
        "reproduce:reproduce", "Make a dataset again from its spec and compare bit by bit, or make a recipe's."
    ),
    "diff": Row("diff:diff", "In what two datasets differ: spec, what they were made with, content."),
    "extend": Row("extend:extend", "A longer dataset that begins with this one, which stays."),
    "pack": Row("share:pack", "A dataset in one file, a zip, read in place or unpacked; its id stays."),
    "unpack": Row(
        "share:unpack", "A packed dataset made a folder again, every byte checked, nothing written outside that folder."
    ),
    "fetch": Row(
        "share:fetch", "Bring a dataset from elsewhere; the same command goes on with one that was interrupted."
    ),
    "push": Row("share:push", "Send a dataset elsewhere; what is there already is not sent again."),
    "recipe": Row("share:recipe", "The few lines that make a dataset again: spec, id, what it was made with."),
    "annotate": Row("describe:annotate", "Title, licence, citation and so on of a dataset; its id stays."),
    "card": Row("describe:card", "The dataset card, Markdown for a hub's README, or its Croissant description."),
    "export": Row(
        "exchange:export", "A dataset, or some steps of it, in another form: Parquet, npz, CSV, ARFF for MOA, Minari."
    ),
    "freeze": Row(
        "exchange:freeze",
        "A stream that was recorded, made a dataset with the same guarantees: under an id, verifiable.",
    ),
    "delete": Row("delete:delete", "Remove a dataset, finished or not; nothing that is not ours ever."),
    "env": Row("env:env", "Versions and settings that can change a bit."),
}
