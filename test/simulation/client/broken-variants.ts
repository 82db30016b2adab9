import { begin, drop, replace, type Fault } from '../plant.js'

/** Faults that could be put into the connections, the offers, the waits and the worker; the simulation has to find each. */
export const BROKEN_CLIENTS: readonly Fault[] = [
  {
    what: 'the silence of a server that owes replies has no limit (no commandTimeout)',
    firstSeed: 18,
    changes: [
      drop('SingleTopology', 'dropWhenStuck($$arguments)'),
      replace('SingleTopology', 'socketTimeout: $limit', 'socketTimeout: undefined'),
    ],
  },
  {
    what: 'opening a connection has no time limit',
    firstSeed: 21,
    changes: [replace('Opening.restart', 'setTimeout($giveUp, $limit)', 'setTimeout($giveUp, 3_600_000)')],
  },
  {
    what: 'a repetition is overtaken by its first attempt (a broken connection is not ended at the server)',
    firstSeed: 357,
    changes: [replace('Predecessors.end', 'this.#brokenAt($server)', '[]')],
  },
  {
    what: 'an offer whose outcome is unknown is sent again under another id',
    changes: [
      replace(
        'Offers.#onError',
        '$attempt.unknown = $error',
        '($attempt.unknown = $error, $attempt.id = this.#newId(), $attempt.entry = encodeEntry($attempt.id, $attempt.payload))',
      ),
    ],
  },
  {
    what: 'an offer is repeated when it may have been delivered',
    firstSeed: 14,
    changes: [
      replace('Offers.#limit', '$startedAt + $due.delayMs', '$startedAt + $due.delayMs + 3_600_000'),
      // either check alone is nearly enough
      replace('Offers.#onError', '$remaining <= 0', 'false'),
    ],
  },
  {
    what: 'an element that comes for a take that was aborted is dropped',
    firstSeed: 154,
    changes: [replace('Waiters.serve', '[...$wanting, ...$ended]', '[...$wanting]')],
  },
  {
    what: 'a take that ends is not unblocked at the server',
    firstSeed: 15,
    changes: [drop('BlockingConnection.#interrupt', 'void this.#unblock($call)')],
  },
  {
    what: 'no transfer when the subscription is acknowledged',
    firstSeed: 35,
    changes: [drop('Subscriber.#subscribe', '$listener.onSubscribed()')],
  },
  {
    what: 'no sweep',
    firstSeed: 19,
    changes: [drop('Sweeper.#tick', 'this.#sweep($member)')],
  },
  {
    what: 'a half-open subscriber is not noticed (no ping)',
    firstSeed: 1879,
    changes: [begin('keepPinging', 'return')],
  },
  {
    what: 'a failed transfer or poll is not tried again',
    firstSeed: 103,
    changes: [replace('backOff', 'now + backoffDelay($$how)', 'Infinity')],
  },
  {
    what: 'a message is acknowledged before its handler ends',
    changes: [
      replace('Dispatcher.fill', '$assignment.handle($$how)', '(void $assignment.handle($$how), { is: "completed" })'),
    ],
  },
  {
    what: 'the worker extends nothing (no heartbeat)',
    changes: [begin('Heartbeat.#beat', 'return')],
  },
  {
    what: 'a shutdown does not end the waiting takes',
    changes: [drop('BlockingConnection.close', 'this.#waiters.endAll($error)')],
  },
  {
    what: 'a repeated add does not say that it is one',
    firstSeed: 69,
    changes: [replace('AddSender', 'isRepeated ? $ago : FIRST_ADD', 'FIRST_ADD')],
  },
  {
    what: 'a connection whose reply is overdue is not given up',
    firstSeed: 50,
    changes: [drop('dropWhenOverdue', '$link.drop($$arguments)')],
  },
  {
    what: 'a connection that was lost is not opened again',
    changes: [replace('ReconnectingConnection.#run', 'await this.#serve($redis)', 'await this.#serve($redis); return')],
  },
]
