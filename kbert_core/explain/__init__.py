"""What injected knowledge does to one prediction, measured by running variants of it.

A :class:`Case` is a text as it was read and the :class:`Target` of its
prediction that is explained; every explanation runs variants of the case and
returns a typed result with ``to_frame()``, ``as_dict()`` and ``figure()``.
What takes long has a ``stream_…`` that yields results as they grow. See
docs/explain.md for what each number means.
"""
