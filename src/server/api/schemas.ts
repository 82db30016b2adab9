import { Type, type TSchema } from 'typebox'
import { ENDPOINT_ID } from '../topics/endpoint-id.js'
import { TOPIC_NAME, TOPIC_PATTERN } from '../topics/topic-name.js'

const closed = { additionalProperties: false } as const
const DAY_MS = 86_400_000
/** Some 27,000 years; sums of it and a time stay exact. */
const MAX_MS = 10_000_000 * DAY_MS

const UUID = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'

const Ms = (description: string, minimum = 0) =>
  Type.Integer({ minimum, maximum: MAX_MS, description: `${description}, in milliseconds` })
const Time = (description: string) => Type.Integer({ description: `${description}, epoch milliseconds` })
export const Flag = Type.Optional(Type.Union([Type.Boolean(), Type.Literal('')]))
const OrNull = <T extends TSchema>(schema: T, more: { description?: string } = {}) =>
  Type.Union([schema, Type.Null()], more)

const Cursor = Type.Optional(
  Type.String({
    maxLength: 1_334,
    pattern: '^[A-Za-z0-9_-]+$', // without a long repetition, which some languages refuse
    description: 'Of the answer before: goes on behind it',
  }),
)

export const TopicParams = Type.Object({ topic: Type.String({ pattern: TOPIC_NAME }) })
export const MessageParams = Type.Object({
  topic: Type.String({ pattern: TOPIC_NAME }),
  id: Type.String({ minLength: 1, maxLength: 576 }),
})

const settings = {
  shards: Type.Integer({
    minimum: 1,
    maximum: 256,
    description: 'Over how many queues the messages are spread; it stays',
  }),
  visibilityTimeout: Ms('How long a consumer has a message', 1),
  deliveryLimit: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description: 'After so many deliveries a message is a dead letter',
  }),
  timeToLive: OrNull(Ms('Messages that no consumer handled so long after they were due are removed', 1)),
  delay: Ms('Of messages that say nothing of their own'),
  maxSize: OrNull(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'How many messages there can be, of each shard',
    }),
  ),
  deadLetters: Type.Boolean({ description: 'Whether messages that fail too often are kept' }),
  retryDelays: Type.Array(Ms('Before the next delivery'), {
    minItems: 1,
    maxItems: 100,
    description:
      'How long a message waits that was given back without a delay, after its first, second … delivery; the last one repeats',
  }),
  endpoint: OrNull(
    Type.String({ pattern: ENDPOINT_ID, description: 'The endpoint that gets the messages as webhooks' }),
  ),
  events: Type.Boolean({ description: 'Whether what happens is kept for /v1/events' }),
}

export const TopicInput = Type.Partial(Type.Object(settings, closed))

export const Counts = Type.Object({
  total: Type.Integer(),
  visible: Type.Integer(),
  delayed: Type.Integer(),
  inFlight: Type.Integer(),
  dead: Type.Integer(),
  oldestMs: Type.Number({ description: 'For how long the first visible message has been waiting' }),
})

const Side = Type.Enum(['receive', 'push'])
export const TopicOutput = Type.Object({
  name: Type.String(),
  createdAt: Time('When it was made'),
  settings: Type.Object(settings),
  counts: Type.Optional(Counts),
  paused: Type.Optional(Type.Array(Side, { description: 'What is paused; where counts are asked for' })),
})

export const TopicsQuery = Type.Object({
  cursor: Cursor,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'Default 100' })),
  search: Type.Optional(Type.String({ maxLength: 128, description: 'A part of the name, in upper or lower case' })),
  counts: Type.Optional(Type.Literal('1', { description: 'With the counts of each; at most 200 topics' })),
  sort: Type.Optional(
    Type.Enum(['name', 'total', 'visible', 'delayed', 'dead', 'oldest'], {
      description: 'Default name; by others the most come first, as the last round over all topics has counted',
    }),
  ),
})
export const TopicPage = Type.Object({
  topics: Type.Array(TopicOutput),
  cursor: Type.Optional(Type.String()),
  complete: Type.Optional(
    Type.Boolean({ description: 'Of a sort by counts; false: the first round over all topics has not ended' }),
  ),
})

const Headers = Type.Record(Type.String({ minLength: 1, maxLength: 256 }), Type.String({ maxLength: 8_192 }), {
  maxProperties: 100,
})

const content = {
  body: Type.Optional(Type.Unknown({ description: 'Any JSON value' })),
  bodyBase64: Type.Optional(Type.String({ description: 'Bytes, in the place of a JSON value' })),
}

export const DueAt = Type.Union(
  [Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 }), Type.String({ format: 'date-time', maxLength: 40 })],
  { description: 'In the place of a delay: epoch milliseconds, or a time of ISO 8601' },
)

const when = {
  delay: Type.Optional(Ms('It is due so long after it was accepted')),
  dueAt: Type.Optional(DueAt),
  priority: Type.Optional(Type.Integer({ minimum: 0, maximum: 9, description: '9 is the highest' })),
}

/** In the place of what the topic says. */
const own = {
  retryDelays: Type.Array(Ms('Before the next delivery'), {
    // generated clients send an empty list for what was not set
    maxItems: 100,
    description: 'As of a topic, for this message; empty: those of its topic',
  }),
  endpoint: Type.String({
    pattern: ENDPOINT_ID,
    description: 'Where its webhook goes, in the place of the endpoint of its topic, which has to have one',
  }),
}

export const MessageInput = Type.Object(
  {
    id: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'Default: a UUID of version 7' })),
    bizKey: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
    ...when,
    timeToLive: Type.Optional(Ms('It is removed when no consumer handled it so long after it was due', 1)),
    deliveryLimit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    retryDelays: Type.Optional(own.retryDelays),
    endpoint: Type.Optional(own.endpoint),
    ...content,
    headers: Type.Optional(Headers),
    existing: Type.Optional(
      Type.Enum(['keep', 'replace', 'postpone'], { description: 'What happens when the id is there' }),
    ),
  },
  closed,
)

export const MessageChange = Type.Object({ ...when, body: content.body }, { ...closed, minProperties: 1 })

export const Outcome = Type.Enum(['added', 'replaced', 'postponed', 'kept', 'journalled'])

export const PushedOutput = Type.Object({
  id: Type.String(),
  outcome: Outcome,
  dueAt: Type.Optional(Time('When it is due; not of a message that was kept')),
})

export const PushHeaders = Type.Object({
  'idempotency-key': Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
})

export const FanOutInput = Type.Object(
  {
    topics: Type.Optional(
      Type.Array(Type.String({ pattern: TOPIC_NAME }), {
        minItems: 1,
        maxItems: 1_000,
        description: 'The topics, which are made like those of a single push',
      }),
    ),
    pattern: Type.Optional(
      Type.String({
        pattern: TOPIC_PATTERN,
        description: 'In the place of topics: all topics of the key whose names fit; * stands for any characters',
      }),
    ),
    ...MessageInput.properties,
  },
  // one of the two, said by what it is not: generators of clients take a oneOf or anyOf for types of their own
  {
    ...closed,
    allOf: [
      { not: { required: ['topics', 'pattern'] } },
      { not: { properties: { topics: { not: {} }, pattern: { not: {} } } } },
    ],
  },
)

export const ProblemOutput = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.String({ description: 'Stays the same; for programs' }),
    detail: Type.Optional(Type.String()),
    requestId: Type.Optional(Type.String()),
    errors: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
  },
  { description: 'RFC 9457' },
)

export const FanOutResult = Type.Object({
  topic: Type.String(),
  outcome: Type.Optional(Outcome),
  dueAt: Type.Optional(Time('When it is due in this topic')),
  problem: Type.Optional(ProblemOutput),
})

export const FanOutOutput = Type.Object({
  id: Type.String(),
  results: Type.Array(FanOutResult, { description: 'Of each topic: outcome, or problem' }),
  failed: Type.Integer({ description: 'How many topics have refused it' }),
})

/** For the description only: each message is checked by itself. The array alone is taken too; no generator of clients makes a type of both. */
export const BatchInput = Type.Object({ messages: Type.Array(MessageInput, { minItems: 1 }) }, closed)

export const BatchResult = Type.Object({
  id: Type.Optional(Type.String()),
  outcome: Type.Optional(Outcome),
  dueAt: Type.Optional(Time('When it is due; not of a message that was kept')),
  problem: Type.Optional(ProblemOutput),
})

export const BatchOutput = Type.Object({
  results: Type.Array(BatchResult, {
    description: 'Of each message in order: as for a single push, or { problem }',
  }),
  failed: Type.Integer({ description: 'How many were not accepted' }),
})

const shown = {
  ...content,
  bizKey: Type.Optional(Type.String()),
  retryDelays: Type.Optional(own.retryDelays),
  endpoint: Type.Optional(own.endpoint),
  headers: Type.Record(Type.String(), Type.String()),
}

export const Failure = Type.Object({ attempt: Type.Integer(), at: Time('When'), reason: Type.String() })

export const MessageOutput = Type.Object({
  id: Type.String(),
  state: Type.String({
    description:
      'visible, delayed, inFlight or dead; of the journal also accepted, handled, removed, expired, moved, refused',
  }),
  dueAt: Time('When it is, was, or will be again visible'),
  priority: Type.Integer(),
  attempts: Type.Integer({ description: 'How often it was delivered' }),
  expiresAt: OrNull(Type.Number()),
  failures: Type.Array(Failure),
  ...shown,
  bodyHidden: Type.Optional(Type.Literal(true, { description: 'The key may not see the body and the headers' })),
  bodyCut: Type.Optional(
    Type.Object(
      { bytes: Type.Integer() },
      { description: 'The body has more bytes than maxBody; bodyBase64 has the first of them, bodyText those of JSON' },
    ),
  ),
  bodyText: Type.Optional(Type.String()),
  flow: Type.Optional(
    Type.Array(
      Type.Object({
        change: Type.String(),
        at: Type.Number(),
        attempt: OrNull(Type.Integer()),
        error: OrNull(Type.String()),
      }),
      { description: 'What happened to it, where the service has a journal' },
    ),
  ),
})

export const MessagePage = Type.Object({
  messages: Type.Array(MessageOutput, { description: 'Fewer than limit where they have more than 8 MiB together' }),
  cursor: Type.Optional(Type.String({ description: 'There can be more' })),
})

export const PageQuery = Type.Object({
  cursor: Cursor,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'Default 100' })),
})

export const BodyQuery = Type.Object({
  maxBody: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 16_777_216, description: 'At most so many bytes of each body; default all' }),
  ),
})
export const DeadLettersQuery = Type.Object({ ...PageQuery.properties, ...BodyQuery.properties })

export const MessagesQuery = Type.Object({
  ...PageQuery.properties,
  ...BodyQuery.properties,
  state: Type.Optional(Type.Enum(['visible', 'delayed', 'inFlight'])),
  bizKey: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: 'Needs a journal; finds also messages that are over' }),
  ),
})

/** The fields of the other delay service whose words the legacy routes have. */
export const LegacyPush = Type.Object(
  {
    topic: Type.String({ pattern: TOPIC_NAME }),
    id: MessageInput.properties.id,
    bizKey: MessageInput.properties.bizKey,
    delay: when.delay,
    priority: when.priority,
    ttl: Type.Optional(Ms('It is removed when no consumer handled it so long after it was due', 1)),
    body: content.body,
  },
  closed,
)
const LegacyTopic = Type.Optional(Type.String({ pattern: TOPIC_NAME, description: 'Default: all topics of the key' }))
export const LegacyDelete = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 576 }),
  topic: LegacyTopic,
  force: Flag,
})
export const LegacyDeleted = Type.Object({
  id: Type.String(),
  topics: Type.Array(Type.String(), { description: 'Where it was' }),
  inFlight: Type.Optional(Type.Array(Type.String(), { description: 'Where a consumer has it, so that it stays' })),
})
export const LegacyRestore = Type.Object({
  topic: LegacyTopic,
  expire: Flag,
})
export const LegacyRestored = Type.Object({
  checked: Type.Integer({
    description: 'Messages that the journal knows as open, or expired where these were asked for',
  }),
  restored: Type.Integer({ description: 'Of them, those that Redis lacked' }),
  refused: Type.Integer({ description: 'Of them, those whose rows make no message' }),
})
export const LegacyGet = Type.Object({
  wait: Type.Optional(Ms('How long to wait; default 30,000')),
  ack: Type.Optional(Type.Enum(['auto'], { description: 'The message is acknowledged before it is answered' })),
})
export const LegacyMessage = Type.Object({
  id: Type.String(),
  topic: Type.String(),
  attempt: Type.Integer(),
  priority: Type.Integer(),
  dueAt: Time('When it was due'),
  ...shown,
})

export const ReceiveInput = Type.Object(
  {
    max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 500,
        description: 'At most so many, and fewer where they have more than about 16 MiB together; default 1',
      }),
    ),
    wait: Type.Optional(Ms('How long to wait for the first one; default 0')),
    visibilityTimeout: Type.Optional(Ms('How long this consumer has them; default: the topic says', 1)),
  },
  closed,
)

export const ReceivedMessage = Type.Object({
  id: Type.String(),
  lease: Type.String({ description: 'To acknowledge it with' }),
  attempt: Type.Integer({ description: 'The number of this delivery, from 1' }),
  priority: Type.Integer(),
  dueAt: Time('When it was due'),
  leasedUntil: Time('Until then no other consumer gets it'),
  ...shown,
})
export const ReceiveOutput = Type.Object({ messages: Type.Array(ReceivedMessage) })

const Leases = Type.Array(Type.String({ minLength: 1, maxLength: 1_200 }), { minItems: 1, maxItems: 1_000 })

export const AcknowledgeInput = Type.Object({ leases: Leases }, closed)
export const ExtendInput = Type.Object({ leases: Leases, visibilityTimeout: Type.Optional(Ms('From now', 1)) }, closed)
export const NegativeInput = Type.Object(
  {
    leases: Leases,
    delay: Type.Optional(Ms('It is visible again after so long; default: the retryDelays of the topic')),
    reject: Type.Optional(Type.Boolean({ description: 'It becomes a dead letter at once' })),
    countAttempt: Type.Optional(Type.Boolean({ description: 'False: this delivery is no attempt' })),
    error: Type.Optional(Type.String({ maxLength: 2_000, description: 'Why; kept with the message' })),
  },
  closed,
)
export const LeaseOutput = Type.Object({
  results: Type.Array(Type.Enum(['ok', 'lost']), {
    description: 'Of each lease in order; lost: it was not yours any more, and nothing was changed',
  }),
})

export const PauseInput = Type.Object(
  { what: Type.Optional(Type.Enum(['push', 'receive'], { description: 'Default receive' })) },
  closed,
)
export const PurgeInput = Type.Object(
  {
    what: Type.Optional(Type.Enum(['messages', 'dead-letters'], { description: 'Default messages' })),
    ids: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 576 }), {
        minItems: 1,
        maxItems: 500,
        description: 'Only these; default all',
      }),
    ),
  },
  closed,
)
export const PurgeOutput = Type.Object({
  purged: Type.Integer({ description: 'About how many there were; of some ids how many are gone' }),
})
export const RedriveInput = Type.Object(
  {
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'The oldest so many; default 100' })),
    ids: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 576 }), { minItems: 1, maxItems: 500 })),
  },
  closed,
)
export const RedriveOutput = Type.Object({ redriven: Type.Integer() })

export const EndpointParams = Type.Object({ endpoint: Type.String({ pattern: ENDPOINT_ID }) })

const endpoint = {
  url: Type.String({
    minLength: 1,
    maxLength: 2_048,
    pattern: "^https?://[A-Za-z0-9._~:/?#[\\]@!$&'()*+,;=%-]+$",
    description: 'http or https, to a host of the internet; other characters than those of RFC 3986 are encoded',
  }),
  description: Type.String({ maxLength: 500 }),
  perSecond: Type.Number({
    minimum: 0,
    maximum: 100_000,
    description: 'The most webhooks a second, of all instances together; 0: no limit',
  }),
  concurrency: Type.Integer({ minimum: 1, maximum: 1_000, description: 'The most webhooks at once, of each instance' }),
  timeout: Type.Integer({
    minimum: 100,
    maximum: 120_000,
    description: 'How long an answer may take, in milliseconds',
  }),
}
const Secret = Type.String({ minLength: 1, maxLength: 200, description: 'whsec_… or whsk_…; default: a new one' })

export const EndpointInput = Type.Object(
  {
    url: endpoint.url,
    description: Type.Optional(endpoint.description),
    perSecond: Type.Optional(endpoint.perSecond),
    concurrency: Type.Optional(endpoint.concurrency),
    timeout: Type.Optional(endpoint.timeout),
    secret: Type.Optional(Secret),
    scheme: Type.Optional(
      Type.Enum(['v1', 'v1a'], { description: 'Of a new secret: HMAC-SHA256 (default) or Ed25519' }),
    ),
    topics: Type.Optional(
      Type.Array(Type.String({ pattern: TOPIC_NAME }), {
        maxItems: 100,
        description: 'Topics that get it, in the place of the endpoint that they have; they have to be there',
      }),
    ),
  },
  closed,
)
export const EndpointChange = Type.Object(
  {
    url: Type.Optional(endpoint.url),
    description: Type.Optional(endpoint.description),
    perSecond: Type.Optional(endpoint.perSecond),
    concurrency: Type.Optional(endpoint.concurrency),
    timeout: Type.Optional(endpoint.timeout),
    enabled: Type.Optional(Type.Boolean()),
  },
  { ...closed, minProperties: 1 },
)
export const EndpointOutput = Type.Object({
  id: Type.String(),
  ...endpoint,
  enabled: Type.Boolean(),
  disabled: OrNull(
    Type.Object({
      reason: Type.Enum(['operator', 'gone', 'failing'], {
        description: 'gone: it answered 410; failing: nothing was delivered for five days',
      }),
      at: Time('When'),
    }),
  ),
  createdAt: Time('When it was made'),
  topics: Type.Optional(Type.Array(Type.String(), { description: 'The topics that have it' })),
  gate: Type.Optional(
    Type.Object(
      {
        state: Type.Enum(['closed', 'open', 'half-open'], {
          description: 'Of its breaker; closed: webhooks flow; half-open: one tries again',
        }),
        until: Type.Optional(Time('Until when it is open')),
        pausedUntil: Type.Optional(Time('Until when the endpoint asked for a pause')),
        tried: Type.Integer({ description: 'Of the last minute' }),
        failed: Type.Integer(),
      },
      { description: 'Where endpoints are shown' },
    ),
  ),
  last: Type.Optional(
    OrNull(
      Type.Object({
        at: Time('When it was answered'),
        outcome: Type.Enum(['delivered', 'failed', 'gone']),
        status: OrNull(Type.Integer()),
        error: OrNull(Type.String()),
      }),
      { description: 'The last webhook, where endpoints are shown' },
    ),
  ),
})
export const SecretOutput = Type.Object({
  secret: Type.String({ description: 'To sign with; of v1a the receiver gets publicKey instead' }),
  publicKey: Type.Optional(Type.String()),
  previousUntil: Type.Optional(Time('Until then the secret of before signs too')),
})
export const EndpointMade = Type.Object({ ...EndpointOutput.properties, ...SecretOutput.properties })
export const EndpointPage = Type.Object({ endpoints: Type.Array(EndpointOutput), cursor: Type.Optional(Type.String()) })
export const RotateInput = Type.Object(
  {
    secret: Type.Optional(Secret),
    scheme: Type.Optional(Type.Enum(['v1', 'v1a'])),
    keepPrevious: Type.Optional(Ms('For how long the secret of before signs too; default a day')),
  },
  closed,
)
const sent = {
  status: OrNull(Type.Integer({ description: 'Of the answer; null: there was none' })),
  error: OrNull(Type.String({ description: 'Why there was no answer' })),
  tookMs: Type.Number(),
  answer: Type.String({ description: 'The first 4 KiB' }),
}
export const TestOutput = Type.Object(sent)
export const RecoverOutput = Type.Object({
  redriven: Type.Integer({ description: 'Dead letters that were moved back' }),
})
export const Delivery = Type.Object({
  id: Type.String({ description: 'Of the message' }),
  topic: Type.String(),
  attempt: Type.Integer(),
  at: Time('When it was answered'),
  outcome: Type.Enum(['delivered', 'failed', 'gone']),
  ...sent,
  answerHidden: Type.Optional(Type.Literal(true, { description: 'The key may not see the answer' })),
})
export const DeliveryPage = Type.Object({
  deliveries: Type.Array(Delivery),
  cursor: Type.Optional(Type.String()),
})

export const DeliveriesQuery = Type.Object({
  cursor: Cursor,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'Default 100' })),
  endpoint: Type.Optional(Type.String({ pattern: ENDPOINT_ID, description: 'Only of this one' })),
})
export const DeliveryOfAll = Type.Object({ endpoint: Type.String(), ...Delivery.properties })
export const DeliveriesPage = Type.Object({
  deliveries: Type.Array(DeliveryOfAll),
  cursor: Type.Optional(Type.String()),
})
export const AuditPage = Type.Object({
  entries: Type.Array(
    Type.Object({
      at: Time('When'),
      key: Type.String({ description: 'The id of the API key; service: an endpoint was disabled by itself' }),
      method: Type.String(),
      path: Type.String(),
      status: Type.Integer({ description: '5xx: it may have been done' }),
      requestId: Type.String(),
    }),
  ),
  cursor: Type.Optional(Type.String()),
})

const States = Type.Object({
  total: Type.Integer(),
  visible: Type.Integer(),
  delayed: Type.Integer(),
  inFlight: Type.Integer(),
  dead: Type.Integer(),
})
const Rate = {
  pushed: Type.Number(),
  delivered: Type.Number(),
  acknowledged: Type.Number(),
  failed: Type.Number(),
}
export const InstancesOutput = Type.Object({
  instances: Type.Array(
    Type.Object({
      id: Type.String(),
      host: Type.String(),
      pid: Type.Integer(),
      version: Type.String(),
      startedAt: Time('When it began'),
      seenAt: Time('When it said for the last time that it runs'),
      memory: Type.Number({ description: 'Bytes' }),
      url: OrNull(Type.String({ description: 'Where it listens' })),
      connections: Type.Integer({ description: 'Of clients' }),
      waiting: Type.Integer({ description: 'Receives that wait for messages' }),
      eventLoopMs: Type.Number({ description: 'How late its timers were, 99 % of them, in the last seconds' }),
    }),
  ),
})
export const OverviewOutput = Type.Object({
  at: Time('When, by the clock of Redis'),
  topics: Type.Integer(),
  counts: States,
  oldestDue: OrNull(Type.Object({ topic: Type.String(), dueAt: Time('When it was due'), overdueMs: Type.Number() })),
  redis: Type.Object(
    {
      state: Type.String(),
      version: OrNull(Type.String()),
      usedMemory: OrNull(Type.Number()),
      maxMemory: OrNull(Type.Number()),
    },
    { description: 'Of all masters together; null for a key of some topics' },
  ),
  journal: OrNull(
    Type.Object({
      mode: Type.String(),
      kind: Type.String(),
      lagMs: OrNull(Type.Number({ description: 'Since when SQL has changes before it; null: not known' })),
      pending: OrNull(Type.Integer({ description: 'Changes of the messages that SQL does not have yet' })),
    }),
  ),
  instances: Type.Integer(),
  rates: Type.Object({ ...Rate, dead: Type.Number() }, { description: 'A second, of this instance' }),
  lateness: OrNull(Type.Object({ p50: Type.Number(), p99: Type.Number() }), {
    description:
      'Milliseconds, of this instance since the first request of the last five minutes; null: nothing was handed out',
  }),
  series: Type.Array(Type.Object({ at: Time('When'), ...Rate }), { description: 'The last 15 minutes' }),
  busiest: Type.Array(
    Type.Object({ topic: Type.String(), counts: States, oldestMs: Type.Number(), paused: Type.Array(Side) }),
  ),
  problems: Type.Array(
    Type.Object({
      severity: Type.Enum(['error', 'warning']),
      code: Type.String(),
      text: Type.String(),
      topic: Type.Optional(Type.String()),
      endpoint: Type.Optional(Type.String()),
    }),
    { description: 'What an operator should look at' },
  ),
  complete: Type.Boolean({ description: 'False: the first round over all topics has not ended' }),
})
const Epoch = Type.Optional(Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 }))
export const AgendaQuery = Type.Object({
  topic: Type.Optional(Type.String({ pattern: TOPIC_NAME })),
  from: Epoch,
  to: Epoch,
  buckets: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: 'Default 60' })),
})
const span = { from: Time('From then on'), to: Time('Before then') }
export const AgendaOutput = Type.Object({
  at: Time('When, by the clock of Redis'),
  ...span,
  bucketMs: Type.Integer(),
  buckets: Type.Array(Type.Object({ ...span, count: Type.Integer() })),
  overdue: Type.Integer({ description: 'Due before now, and with no consumer' }),
  later: Type.Integer({ description: 'Due after the last bucket' }),
  exact: Type.Boolean({ description: 'False: there are more topics or shards than one request counts' }),
})
export const FlowOutput = Type.Object({
  flow: Type.Array(
    Type.Object({
      at: Time('When'),
      change: Type.String(),
      attempt: OrNull(Type.Integer()),
      by: Type.String({ description: 'The client of Redis' }),
      error: OrNull(Type.String()),
    }),
  ),
  source: Type.Enum(['journal', 'none']),
})

export const SignInInput = Type.Object({ key: Type.String({ minLength: 1, maxLength: 200 }) }, closed)
export const SessionOutput = Type.Object({
  key: Type.String({ description: 'The id of the key' }),
  scopes: Type.Array(Type.Enum(['push', 'consume', 'admin', 'read'])),
  topics: OrNull(Type.Array(Type.String(), { description: 'Names, or beginnings and *; null: all' })),
  hidePayloads: Type.Boolean({ description: 'Whether messages come without their bodies and headers' }),
  journal: Type.Boolean({ description: 'Whether the service has a journal' }),
  readOnly: Type.Boolean({ description: 'Whether it was started with --read-only' }),
  version: Type.String(),
})

export const RestoreParams = Type.Object({ restore: Type.String({ pattern: UUID }) })
export const RestoreInput = Type.Object(
  {
    topic: Type.Optional(Type.String({ pattern: TOPIC_NAME, description: 'Default: all topics of the key' })),
    id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 576, description: 'Of one message; default: all that are not final' }),
    ),
    expired: Type.Optional(
      Type.Boolean({ description: 'Also messages that expired; they expire no more. Default false' }),
    ),
    dryRun: Type.Optional(
      Type.Boolean({ description: 'Says what would be put back, and changes nothing. Default false' }),
    ),
  },
  closed,
)
export const RestoreOutput = Type.Object({
  id: Type.String({ description: 'Of the restore' }),
  state: Type.Enum(['running', 'done', 'failed', 'interrupted'], {
    description: 'interrupted: its instance ended; the same request again goes on',
  }),
  topic: OrNull(Type.String({ description: 'null: all topics of the key' })),
  messageId: OrNull(Type.String({ description: 'null: all messages' })),
  expired: Type.Boolean(),
  dryRun: Type.Boolean(),
  key: Type.String({ description: 'The id of the API key' }),
  startedAt: Time('When it began'),
  updatedAt: Time('When these counts were taken'),
  topics: Type.Integer({ description: 'How many topics are looked at' }),
  topicsDone: Type.Integer(),
  total: OrNull(Type.Integer({ description: 'About so many messages are to be checked; null: not counted yet' })),
  checked: Type.Integer({
    description: 'Messages that the journal knows as open, or expired where these were asked for',
  }),
  restored: Type.Integer({ description: 'Of them, those that Redis lacked' }),
  refused: Type.Integer({ description: 'Of them, those whose rows make no message' }),
  perSecond: Type.Integer({ description: 'Messages checked a second' }),
  msLeft: OrNull(Type.Integer({ description: 'Until the end at this rate; null: not known, or it has ended' })),
  problem: OrNull(ProblemOutput),
})
export const RestoreList = Type.Object({ restores: Type.Array(RestoreOutput) })

const deadLetterFilter = {
  topic: Type.Optional(Type.String({ pattern: TOPIC_NAME, description: 'Default: all topics of the key' })),
  endpoint: Type.Optional(
    Type.String({ pattern: ENDPOINT_ID, description: 'Only of topics whose messages go to this endpoint' }),
  ),
  since: Type.Optional(
    Type.Integer({ minimum: 0, maximum: MAX_MS, description: 'They died then or later, epoch milliseconds' }),
  ),
  until: Type.Optional(
    Type.Integer({ minimum: 0, maximum: MAX_MS, description: 'They died then or before, epoch milliseconds' }),
  ),
  reason: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_000, description: 'A part of the last reason; capitals do not matter' }),
  ),
}
export const DeadLetterSearch = Type.Object({ ...deadLetterFilter, ...PageQuery.properties })
export const DeadLetterList = Type.Object({
  deadLetters: Type.Array(
    Type.Object({
      topic: Type.String(),
      id: Type.String(),
      diedAt: Time('When it became a dead letter'),
      attempts: Type.Integer({ description: 'How often it was delivered' }),
      reason: OrNull(Type.String({ description: 'Why the last delivery failed' })),
      endpoint: OrNull(Type.String({ description: 'Of the topic, at present' })),
    }),
  ),
  matched: OrNull(Type.Integer({ description: 'How many match; null: not counted' })),
  cursor: Type.Optional(Type.String({ description: 'There can be more; also where this page is empty' })),
})
export const BulkInput = Type.Object(
  {
    ...deadLetterFilter,
    dryRun: Type.Optional(Type.Boolean({ description: 'Counts those that match, and changes nothing. Default false' })),
    cursor: Cursor,
  },
  closed,
)
export const BulkOutput = Type.Object({
  matched: Type.Integer({ description: 'Dead letters of this part that match' }),
  done: Type.Integer({ description: 'Those of them that were moved back or deleted' }),
  cursor: Type.Optional(Type.String({ description: 'There can be more: repeat the request with it' })),
})

const ListedMessage = Type.Object({
  topic: Type.String(),
  id: Type.String(),
  state: Type.String(),
  dueAt: Time('When it is, was, or will be again visible; of a dead letter, when it died'),
  attempts: Type.Optional(Type.Integer({ description: 'How often it was delivered' })),
  priority: Type.Optional(Type.Integer()),
})
export const MessageSearchQuery = Type.Object({
  topic: Type.Optional(Type.String({ pattern: TOPIC_NAME, description: 'Default: all topics of the key' })),
  id: Type.Optional(Type.String({ minLength: 1, maxLength: 576 })),
  bizKey: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: 'Needs a journal; finds also messages that are over' }),
  ),
  state: Type.Optional(Type.Enum(['visible', 'delayed', 'inFlight', 'dead'])),
  dueFrom: Epoch,
  dueTo: Epoch,
  ...PageQuery.properties,
})
export const MessagesFound = Type.Object({
  messages: Type.Array(ListedMessage),
  cursor: Type.Optional(Type.String()),
  source: Type.Enum(['redis', 'journal'], { description: 'Where they were looked for' }),
  complete: Type.Boolean({ description: 'False: there is more than one request reads, and some can be missing' }),
})
export const AgendaMessagesQuery = Type.Object({
  topic: Type.Optional(Type.String({ pattern: TOPIC_NAME, description: 'Default: all topics of the key' })),
  from: Epoch,
  to: Epoch,
  ...PageQuery.properties,
})
export const AgendaMessages = Type.Object({
  messages: Type.Array(ListedMessage),
  cursor: Type.Optional(Type.String()),
  complete: Type.Boolean({ description: 'False: there are more topics than one request reads' }),
})
export const DoctorOutput = Type.Object({
  at: Time('When it was examined'),
  findings: Type.Array(
    Type.Object({
      severity: Type.String({ description: 'error, warning or info' }),
      code: Type.String(),
      message: Type.String(),
      advice: OrNull(Type.String({ description: 'How to repair it' })),
      queue: OrNull(Type.String()),
    }),
  ),
})
