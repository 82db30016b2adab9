# As client.py, with the client that openapi-python-client has generated as the package `delay_service`.
import os
import time

from delay_service import AuthenticatedClient
from delay_service.api.consume import acknowledge, receive_messages
from delay_service.api.messages import push_message
from delay_service.models import AcknowledgeInput, MessageInput, Outcome, ProblemOutput, ReceiveInput

URL = os.environ.get("REDELAYED_SERVICE", "http://127.0.0.1:8080")
TOPIC = os.environ.get("REDELAYED_TOPIC", "orders")
client = AuthenticatedClient(base_url=URL, token=os.environ["REDELAYED_KEY"], timeout=30)

started = time.monotonic()
message = MessageInput(id="close:7", delay=500, body={"order": 7})
pushed = push_message.sync(TOPIC, client=client, body=message)
assert pushed.outcome == Outcome.ADDED, pushed
again = push_message.sync(TOPIC, client=client, body=message)
assert again.outcome == Outcome.KEPT, again

received = receive_messages.sync(TOPIC, client=client, body=ReceiveInput(wait=20_000))
assert time.monotonic() - started > 0.49, "it came before it was due"
[message] = received.messages
assert message.id == "close:7" and message.body == {"order": 7} and message.attempt == 1, message

leases = AcknowledgeInput(leases=[message.lease])
for expected in ("ok", "lost"):
    assert acknowledge.sync(client=client, body=leases).results == [expected]

stranger = AuthenticatedClient(base_url=URL, token="no key")
problem = push_message.sync(TOPIC, client=stranger, body=MessageInput())
assert isinstance(problem, ProblemOutput) and problem.code == "unauthorized", problem

print("pushed, received after its delay, acknowledged")
