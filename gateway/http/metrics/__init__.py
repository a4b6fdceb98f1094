"""What Prometheus reads: counts and states of this node, in its text format.

Primitives: `catalog` names every family with its kind and what it says; `text.Page`
takes samples of them; `page.render` has all parts of a node write theirs.
"""
