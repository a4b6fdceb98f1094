"""Word count, from topic to topic: for each word, how often it came so far.

$ ropeway topic create counts --queues 1
$ ropeway produce lines 'to be or not to be'
$ ropeway streams run examples/word_count.py --checkpoint ./word-count --once
$ ropeway consume counts --exit-at-end
to: 1
be: 1
or: 1
not: 1
to: 2
be: 2

Without --once it runs on. Words of several tasks come in any order.
"""

import re

from ropeway.streams import StreamBuilder

# %% Words of lines: a source without a deserializer gives text.
builder = StreamBuilder("wordCount")
words = (
    builder.source("lines")
    .flat_map(lambda line: re.split(r"\W+", line.lower()))
    .filter(bool)
)

# %% One count for each word, told whenever it changes.
words.key_by(lambda word: word).count().sink(
    "counts", lambda word, count: f"{word}: {count}".encode()
)
