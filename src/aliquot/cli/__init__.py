"""The face on the command line: it parses, calls ``node``, and prints.

What lives here: ``main`` (the entry point), ``program`` (the click group that loads a
command's file only when that command is called), ``border`` (where every failure ends),
``commands`` (one file a command), ``completions`` (what a shell is offered), ``views`` (what
each noun looks like) and ``output`` (lists, documents, errors and streams). What may be
imported: ``node``, ``ask`` (the grammar of SPEC), ``placement`` (its words for a refusal),
``model``, click, msgspec and yaml, the last two only inside the functions that need them,
because every import is paid by every call. What never: another stage (but for the names of
what ``node`` gives, while types are checked), a decision about GPUs, a file of the book, SQL,
rich outside an optional picture.

stdout is data, stderr is talk. Nothing is imported here: ``aliquot --version`` passes
through this package in less time than it takes to import click.
"""
