"""What can go wrong, and the exit code the command line gives it.

    AlbertaDataError                70  (a bug of ours, unless a subclass says otherwise)
     ├── DifferenceFound             1  a comparison found a difference
     ├── ArgumentError (ValueError)  2  an argument is out of range, unknown, or contradicts another
     │    └── DestinationError       2  the destination is taken, foreign, or in use
     ├── IncompleteDatasetError      3  the dataset is not finished
     ├── DamagedDatasetError         4  bytes are not what the dataset says they are
     ├── RefusedError                5  unsafe, or a format that is not known here
     ├── StorageError (OSError)      6  disk or network
     ├── NonFiniteError              7  a learner left the finite numbers
     └── UnavailableError            8  cannot be done here: a missing extra, not reproducible

Every message is one line: the rule, the value, the way out.
"""

from __future__ import annotations


class AlbertaDataError(Exception):
    """Base of every error this package raises on purpose; whatever value it shows, its message is one line."""

    exit_code = 70

    def __init__(self, *args: object):
        super().__init__(*(arg.replace("\n", "\\n") if isinstance(arg, str) else arg for arg in args))


class DifferenceFound(AlbertaDataError):
    """A comparison (`reproduce`, `diff`, `learn --check`) found a difference."""

    exit_code = 1


class ArgumentError(AlbertaDataError, ValueError):
    """An argument is out of its range, unknown, or contradicts another one."""

    exit_code = 2


class DestinationError(ArgumentError):
    """The destination is taken by something else, or in use by another writer."""


class IncompleteDatasetError(AlbertaDataError):
    """The dataset was begun and not finished."""

    exit_code = 3


class DamagedDatasetError(AlbertaDataError):
    """Bytes differ from what the dataset's root says they are.

    Args:
        message: one line that names the array and the chunk, what was expected and what was found.
        array: name of the array, where one is concerned.
        chunk: key of the chunk or path of the file below the dataset, where one is concerned.
    """

    exit_code = 4

    def __init__(self, message: str, *, array: str | None = None, chunk: str | None = None):
        super().__init__(message)
        self.array = array
        self.chunk = chunk


class RefusedError(AlbertaDataError):
    """The data asks for something unsafe, or is of a format that is not known here."""

    exit_code = 5


class StorageError(AlbertaDataError, OSError):
    """The disk or the network failed; what was written so far can be resumed."""

    exit_code = 6


class NonFiniteError(AlbertaDataError):
    """A learner's state left the finite numbers.

    Args:
        message: one line that names the learner and the step.
        step: index of the first step after which the state was not finite.
    """

    exit_code = 7

    def __init__(self, message: str, *, step: int):
        super().__init__(message)
        self.step = step


class UnavailableError(AlbertaDataError):
    """Cannot be done here: an extra is missing, or the data is not reproducible."""

    exit_code = 8
