"""Answers of the API."""

import msgspec

from ropeway.gateway.http.replies import reply


def test_an_answer_is_json_that_nobody_keeps():
    answer = reply({"error": "café"}, status=404)
    assert answer.status == 404
    assert msgspec.json.decode(answer.body) == {"error": "café"}
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
