# The image of today, with the program of an earlier version: tests/formats/earlier.
ARG BASE
FROM $BASE
COPY earlier /earlier
ENV PYTHONPATH=/earlier
