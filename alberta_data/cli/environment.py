"""`alberta-data generate environment ENV_ID`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from alberta_data.cli import options
from alberta_data.cli.command import build
from alberta_data.cli.generate import Seed
from alberta_data.cli.making import Destination, make
from alberta_data.errors import ArgumentError


def read_env_args(texts: list[str]) -> dict[str, Any]:
    """Return the arguments of `KEY=VALUE` texts; a value that is JSON is what it says, anything else a text.

    Raises:
        ArgumentError: no `=`, or a key twice.
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ArgumentError(f"--env-arg must be KEY=VALUE, got {text!r:.80}")
        if key in found:
            raise ArgumentError(f"--env-arg must give each key once, got {key} twice")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def _environment(
    env_id: Annotated[str, typer.Argument(metavar="ENV_ID", help="such as CartPole-v1", show_default=False)],
    *,
    steps: options.Steps,
    seed: Seed = 0,
    mode: Annotated[
        str, typer.Option("--mode", metavar="reward|next_state|value", help="what a step asks for", show_default=True)
    ] = "reward",
    policy: Annotated[
        str,
        typer.Option(
            "--policy", metavar="random|constant:A|epsilon:E:A", help="how actions are chosen", show_default=True
        ),
    ] = "random",
    env_arg: Annotated[
        list[str] | None,
        typer.Option("--env-arg", metavar="KEY=VALUE", help="an argument of the environment; repeatable"),
    ] = None,
    wrapper: Annotated[
        list[str] | None,
        typer.Option("--wrapper", metavar="NAME", help="one of gymnasium.wrappers, innermost first; repeatable"),
    ] = None,
    flatten: Annotated[
        str, typer.Option("--flatten", metavar="published|one-hot", help="the layout of features", show_default=True)
    ] = "published",
    action_scale: Annotated[
        float | None,
        typer.Option("--action-scale", metavar="X", help="where an action without bounds is drawn between (above 0)"),
        options.Real,
    ] = None,
    gamma: Annotated[
        float,
        typer.Option("--gamma", metavar="X", help="discount of the value mode (0 to 1)", show_default=True),
        options.Real,
    ] = 0.99,
    include_action: Annotated[
        bool,
        typer.Option(
            "--include-action/--no-include-action", help="put the action behind the observation", show_default=True
        ),
    ] = True,
    allow_import: options.AllowImport = None,
    output: options.Output = None,
    data_dir: options.DataDir = None,
    chunk_steps: options.ChunkSteps = None,
    codec: options.Codec = None,
    overwrite: options.Overwrite = False,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """An environment that gymnasium has registered, stepped by a policy.

    What is stored is what the environment gave: observations, actions, rewards, ends of episodes; features and
    targets of any mode are made from them. Prints the path of the dataset to stdout.
    """
    from alberta_data.environments.parameters import EnvironmentStream

    stream = EnvironmentStream(
        env_id, env_args=read_env_args(env_arg or []), wrappers=tuple(wrapper or ()), policy=policy,
        mode=mode,  # type: ignore[arg-type]  # checked there, with the list of modes
        include_action_in_features=include_action, gamma=gamma, flatten=flatten, action_scale=action_scale,
    )  # fmt: skip
    to = Destination(
        steps, seed, output, data_dir, chunk_steps, codec, overwrite=overwrite, force=force, dry_run=dry_run,
        as_json=as_json, quiet=quiet,
    )  # fmt: skip
    return make(stream, to, tuple(allow_import or ()))


environment = build(_environment, ("alberta-data generate environment CartPole-v1 --steps 2000",), name="environment")
