# Pushes a message with a delay, receives it when it is due, and acknowledges it. Standard library only.
import json
import os
import time
import urllib.error
import urllib.request

URL = os.environ.get("REDELAYED_SERVICE", "http://127.0.0.1:8080")
KEY = os.environ["REDELAYED_KEY"]
TOPIC = os.environ.get("REDELAYED_TOPIC", "orders")


class Problem(Exception):
    """What the service refused; `code` stays the same between versions."""

    def __init__(self, status, code, detail):
        super().__init__(f"{status} {code}: {detail}")
        self.status, self.code = status, code


def call(path, body, timeout=30, key=KEY):
    request = urllib.request.Request(
        URL + path,
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            problem = json.load(error)
        raise Problem(error.code, problem.get("code"), problem.get("detail")) from None


started = time.monotonic()
pushed = call(f"/v1/topics/{TOPIC}/messages", {"id": "close:7", "delay": 500, "body": {"order": 7}})
assert pushed["outcome"] == "added", pushed

# under the same id a push can be repeated: what is there stays
assert call(f"/v1/topics/{TOPIC}/messages", {"id": "close:7", "delay": 500})["outcome"] == "kept"

# waits for up to 20 s; the limit of the request is longer than the wait
messages = call(f"/v1/topics/{TOPIC}/receive", {"wait": 20_000}, timeout=30)["messages"]
assert time.monotonic() - started > 0.49, "it came before it was due"
[message] = messages
assert message["id"] == "close:7" and message["body"] == {"order": 7} and message["attempt"] == 1, message

assert call("/v1/leases/acknowledge", {"leases": [message["lease"]]})["results"] == ["ok"]
assert call("/v1/leases/acknowledge", {"leases": [message["lease"]]})["results"] == ["lost"]

try:
    call(f"/v1/topics/{TOPIC}/messages", {}, key="no key")
    raise AssertionError("a wrong key was taken")
except Problem as problem:
    assert (problem.status, problem.code) == (401, "unauthorized"), problem

print("pushed, received after its delay, acknowledged")
