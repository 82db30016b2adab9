"""Checks of `npm run test:schema` that schemathesis does not have."""

import schemathesis

# What the service refuses although the description cannot say it: a text that it did not answer itself, a number that a double
# does not hold, JSON with too much in it, a reserved name, a key that came with another message.
BEYOND_THE_SCHEMA = {
    "invalid-cursor",
    "invalid-lease",
    "invalid-topic",
    "unsafe-number",
    "repeated-key",
    "forbidden-key",
    "json-too-deep",
    "json-too-many-values",
    "idempotency-mismatch",
}


@schemathesis.check
def refused_for_a_reason(ctx, response, case):
    """Data that the description allows are refused for a reason that it cannot have, and for no other one."""
    if response.status_code in (400, 422) and case.meta is not None and case.meta.generation.mode.is_positive:
        code = response.json().get("code")
        assert code in BEYOND_THE_SCHEMA, f"{code}: the description allows what the operation refuses"


@schemathesis.check
def problems_have_a_code(ctx, response, case):
    """Each refusal is a problem document with a code and the id of the request."""
    if response.status_code >= 400:
        problem = response.json()
        assert problem.get("code") and problem.get("status") == response.status_code, "it is no problem document"
        assert problem.get("requestId") == response.headers["x-request-id"][0], "it has not the id of the request"
