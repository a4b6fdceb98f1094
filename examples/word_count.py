"""Word count, from topic to topic: for each word, how often it came so far.

$ ropeway topic create lines && ropeway topic create counts
$ ropeway produce lines 'to be or not to be'
$ ropeway streams run examples/word_count.py --checkpoint ./word-count
$ ropeway consume counts
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
