"""The command line: every command a translation, one library call and one print.

    main         the entry point: arguments → exit code
    table        the commands there are; a new one is a row here and a file
    groups       commands loaded when they are asked for, so that `--help` starts quickly
    command      a function → a command: its texts read as numbers, its example, its errors in the words of its options
    options      the options that several commands share
    places       a dataset by path, name, digits of its id, or address
    numbers      numbers, lists and ranges from text, exactly
    output       what is printed, escaped, on any terminal
    progress     steps, steps/s, time left
    failures     an exception → one line and an exit code
    stopping     SIGINT and SIGTERM
    computing    jax made ready, for the commands that compute

Nothing above imports jax; `computing` does when it is called.
"""
