"""How the command line speaks: lists, documents, errors, and the streams they go to.

What lives here: one declaration of columns a list (``columns``), what each kind of value
looks like to people and to programs (``kinds``), the choice of rows (``conditions``,
``choices``), the forms (``tables``, ``documents``), errors (``failures``) and the two
streams (``streams``). What may be imported: ``model``, the standard library, and inside
functions click, msgspec and yaml. What never: ``node`` or a stage: everything shown here
is a value that somebody else has fetched, so that all of it is tested without a machine.
"""
