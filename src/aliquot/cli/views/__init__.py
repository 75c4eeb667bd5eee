"""What each noun looks like: its list's columns, its document, its lines for people.

What lives here: one file a noun, pure functions from nouns of ``model`` to rows, lines and
documents. What may be imported: ``aliquot.cli.output`` and ``model``; types of ``node`` for
checking only. What never: a machine, a stream, a clock: ``now`` comes in as an argument.
"""
