import { Type, type TSchema } from 'typebox'
import { MOST_COUNTED, MOST_RATE_MS } from '../topics/bounds.js'
import { ENDPOINT_ID } from '../topics/endpoint-id.js'
import { TOPIC_NAME, TOPIC_PATTERN } from '../topics/topic-name.js'
import { MAX_VISIBILITY_MS } from '../topics/visibility.js'

const closed = { additionalProperties: false } as const
const DAY_MS = 86_400_000
/** Some 27,000 years; adding it to a time stays exact. */
const MAX_MS = 10_000_000 * DAY_MS

const UUID = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'

const Ms = (description: string, minimum = 0, maximum = MAX_MS) =>
  Type.Integer({ minimum, maximum, description: `${description}, in milliseconds` })
const Time = (description: string) => Type.Integer({ description: `${description}, epoch milliseconds` })
export const Flag = Type.Optional(Type.Union([Type.Boolean(), Type.Literal('')]))
const OrNull = <T extends TSchema>(schema: T, more: { description?: string } = {}) =>
  Type.Union([schema, Type.Null()], more)

const Epoch = Type.Optional(Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 }))
const BizKey = Type.Optional(Type.String({ minLength: 1, maxLength: 512 }))

const Cursor = Type.Optional(
  Type.String({
    maxLength: 1_334,
    pattern: '^[A-Za-z0-9_-]+$', // without a long repetition, which some languages refuse
    description: 'The cursor of the previous page',
  }),
)

export const TopicParams = Type.Object({ topic: Type.String({ pattern: TOPIC_NAME }) })
export const MessageParams = Type.Object({
  topic: Type.String({ pattern: TOPIC_NAME }),
  id: Type.String({ minLength: 1, maxLength: 576 }),
})

const Counted = (description: string) => Type.Integer({ minimum: 1, maximum: MOST_COUNTED, description })
const RateLimit = (description: string) =>
  OrNull(
    Type.Object(
      {
        max: Counted('The most deliveries'),
        perMs: Type.Integer({
          minimum: 1,
          maximum: MOST_RATE_MS,
          description: 'Any period of this length, in milliseconds',
        }),
      },
      closed,
    ),
    { description },
  )

const settings = {
  shards: Type.Integer({
    minimum: 1,
    maximum: 256,
    description: 'The number of queues that share the messages; cannot be changed',
  }),
  visibilityTimeout: Ms('How long a consumer keeps a message', 1, MAX_VISIBILITY_MS),
  deliveryLimit: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description: 'The number of deliveries after which a message becomes a dead letter',
  }),
  timeToLive: OrNull(Ms('How long after its due time an unhandled message is removed', 1)),
  delay: Ms('The delay of messages that have none of their own'),
  maxSize: OrNull(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The most messages of each shard',
    }),
  ),
  deadLetters: Type.Boolean({ description: 'Whether messages that fail too often are kept' }),
  keepDeadLetters: OrNull(Counted('The most dead letters of each shard; a further one drops the oldest; null: all')),
  keepDeadLettersFor: OrNull(Ms('How long a dead letter is kept at most; null: for ever', 1)),
  keepCompleted: OrNull(
    Counted('The most completed messages of each shard that are kept for programs with the library; null: none'),
  ),
  keepCompletedFor: OrNull(Ms('How long a completed message is kept at most; null: only keepCompleted limits it', 1)),
  concurrency: OrNull(
    Counted('The most messages of each shard that consumers of all instances have at once; null: no limit'),
  ),
  rateLimit: RateLimit('The most deliveries of each shard, of all instances together; null: no limit'),
  groupConcurrency: OrNull(Counted('As concurrency, for each group of messages')),
  groupRateLimit: RateLimit('As rateLimit, for each group of messages'),
  retryDelays: Type.Array(Ms('The wait before the next delivery'), {
    minItems: 1,
    maxItems: 100,
    description:
      'How long a message waits after a negative acknowledgement without a delay, after its first, second … delivery; the last one repeats',
  }),
  endpoint: OrNull(
    Type.String({ pattern: ENDPOINT_ID, description: 'The endpoint that gets the messages as webhooks' }),
  ),
  events: Type.Boolean({ description: 'Whether changes of messages are kept for /v1/events' }),
}

export const TopicInput = Type.Partial(Type.Object(settings), closed)

export const Counts = Type.Object({
  total: Type.Integer(),
  visible: Type.Integer(),
  delayed: Type.Integer(),
  inFlight: Type.Integer(),
  dead: Type.Integer(),
  oldestMs: Type.Number({ description: 'How long the first visible message has been waiting, in milliseconds' }),
})

const Side = Type.Enum(['receive', 'push'])
export const TopicOutput = Type.Object({
  name: Type.String(),
  createdAt: Time('When it was created'),
  settings: Type.Object(settings),
  counts: Type.Optional(Counts),
  paused: Type.Optional(Type.Array(Side, { description: 'What is paused; only with counts' })),
})

export const TopicsQuery = Type.Object({
  cursor: Cursor,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'Default 100' })),
  search: Type.Optional(
    Type.String({ maxLength: 128, description: 'A part of the name; upper and lower case are equal' }),
  ),
  counts: Type.Optional(Type.Literal('1', { description: 'Include the counts of each topic; at most 200 topics' })),
  sort: Type.Optional(
    Type.Enum(['name', 'total', 'visible', 'delayed', 'dead', 'oldest'], {
      description: 'Default: name. All others sort descending, by the counts of the last background scan',
    }),
  ),
})
export const TopicPage = Type.Object({
  topics: Type.Array(TopicOutput),
  cursor: Type.Optional(Type.String()),
  complete: Type.Optional(
    Type.Boolean({ description: 'With a sort by counts; false: the first background scan has not finished' }),
  ),
})

const Headers = Type.Record(Type.String({ minLength: 1, maxLength: 256 }), Type.String({ maxLength: 8_192 }), {
  maxProperties: 100,
})

const content = {
  body: Type.Optional(Type.Unknown({ description: 'Any JSON value' })),
  bodyBase64: Type.Optional(Type.String({ description: 'Bytes as base64, instead of a JSON body' })),
}

export const DueAt = Type.Union(
  [Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 }), Type.String({ format: 'date-time', maxLength: 40 })],
  { description: 'Instead of a delay: epoch milliseconds, or an ISO 8601 time' },
)

const when = {
  delay: Type.Optional(Ms('How long after its acceptance the message is due')),
  dueAt: Type.Optional(DueAt),
  priority: Type.Optional(Type.Integer({ minimum: 0, maximum: 9, description: '9 is the highest' })),
}

/** Settings of one message, instead of those of its topic. */
const own = {
  retryDelays: Type.Array(Ms('The wait before the next delivery'), {
    // generated clients send an empty list for an unset one
    maxItems: 100,
    description: 'The retry delays of this message; empty: those of its topic',
  }),
  endpoint: Type.String({
    pattern: ENDPOINT_ID,
    description: 'The endpoint of its webhook, instead of that of its topic, which must have one',
  }),
}

export const MessageInput = Type.Object(
  {
    id: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'Default: a UUID of version 7' })),
    bizKey: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
    group: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'Such as a tenant: groups take turns and have limits; at most 255 bytes; not with a priority',
      }),
    ),
    ...when,
    timeToLive: Type.Optional(Ms('How long after its due time the unhandled message is removed', 1)),
    deliveryLimit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    retryDelays: Type.Optional(own.retryDelays),
    endpoint: Type.Optional(own.endpoint),
    ...content,
    headers: Type.Optional(Headers),
    existing: Type.Optional(
      Type.Enum(['keep', 'replace', 'postpone'], {
        description: 'What happens when the topic has a message with this id',
      }),
    ),
  },
  closed,
)

export const MessageChange = Type.Object({ ...when, body: content.body }, { ...closed, minProperties: 1 })

export const Outcome = Type.Enum(['added', 'replaced', 'postponed', 'kept', 'journalled'])

export const PushedOutput = Type.Object({
  id: Type.String(),
  outcome: Outcome,
  dueAt: Type.Optional(Time('When it is due; absent with the outcome kept')),
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
        description: 'The topics, which are created like that of a single push',
      }),
    ),
    pattern: Type.Optional(
      Type.String({
        pattern: TOPIC_PATTERN,
        description: 'Instead of topics: all topics of the key whose names match; * stands for any characters',
      }),
    ),
    ...MessageInput.properties,
  },
  // exactly one of the two, written as negations: client generators turn a oneOf or anyOf into separate types
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
    code: Type.String({ description: 'For programs; never changes' }),
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
  results: Type.Array(FanOutResult, { description: 'For each topic its outcome or problem' }),
  failed: Type.Integer({ description: 'The number of topics that refused it' }),
})

/**
 * For the OpenAPI document only: each message is checked by itself. A bare array is taken too, but client generators make no type of both.
 */
export const BatchInput = Type.Object({ messages: Type.Array(MessageInput, { minItems: 1 }) }, closed)

export const BatchResult = Type.Object({
  id: Type.Optional(Type.String()),
  outcome: Type.Optional(Outcome),
  dueAt: Type.Optional(Time('When it is due; absent with the outcome kept')),
  problem: Type.Optional(ProblemOutput),
})

export const BatchOutput = Type.Object({
  results: Type.Array(BatchResult, {
    description: 'For each message in order: as for a single push, or { problem }',
  }),
  failed: Type.Integer({ description: 'The number of messages that were not accepted' }),
})

const shown = {
  ...content,
  bizKey: Type.Optional(Type.String()),
  group: Type.Optional(Type.String()),
  retryDelays: Type.Optional(own.retryDelays),
  endpoint: Type.Optional(own.endpoint),
  headers: Type.Record(Type.String(), Type.String()),
}

export const Failure = Type.Object({ attempt: Type.Integer(), at: Time('When'), reason: Type.String() })

export const MessageOutput = Type.Object({
  id: Type.String(),
  state: Type.String({
    description:
      'visible, delayed, inFlight or dead; from the journal also accepted, handled, removed, expired, moved, refused',
  }),
  dueAt: Time('When it becomes, became, or becomes again visible'),
  priority: Type.Integer(),
  attempts: Type.Integer({ description: 'The number of deliveries so far' }),
  expiresAt: OrNull(Type.Number()),
  failures: Type.Array(Failure),
  ...shown,
  bodyHidden: Type.Optional(Type.Literal(true, { description: 'The key may not see the body and the headers' })),
  bodyCut: Type.Optional(
    Type.Object(
      { bytes: Type.Integer() },
      {
        description:
          'The body has more bytes than maxBody; its beginning is in bodyText if it is JSON, else in bodyBase64',
      },
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
      { description: 'The changes of the message, if the service has a journal' },
    ),
  ),
})

export const MessagePage = Type.Object({
  messages: Type.Array(MessageOutput, { description: 'Fewer than limit if they have more than 8 MiB together' }),
  cursor: Type.Optional(Type.String({ description: 'There can be more' })),
})

export const PageQuery = Type.Object({
  cursor: Cursor,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'Default 100' })),
})

export const BodyQuery = Type.Object({
  maxBody: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 16_777_216, description: 'The most bytes of each body; default: all' }),
  ),
})
export const DeadLettersQuery = Type.Object({ ...PageQuery.properties, ...BodyQuery.properties })

export const MessagesQuery = Type.Object({
  ...PageQuery.properties,
  ...BodyQuery.properties,
  state: Type.Optional(Type.Enum(['visible', 'delayed', 'inFlight'])),
  bizKey: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: 'Needs a journal; finds final messages too' }),
  ),
})

/** The legacy routes take the fields of another delay service. */
export const LegacyPush = Type.Object(
  {
    topic: Type.String({ pattern: TOPIC_NAME }),
    id: MessageInput.properties.id,
    bizKey: MessageInput.properties.bizKey,
    delay: when.delay,
    priority: when.priority,
    ttl: Type.Optional(Ms('How long after its due time the unhandled message is removed', 1)),
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
  topics: Type.Array(Type.String(), { description: 'The topics that had it' }),
  inFlight: Type.Optional(
    Type.Array(Type.String(), { description: 'The topics where a consumer has it, so that it stays' }),
  ),
})
export const LegacyRestore = Type.Object({
  topic: LegacyTopic,
  expire: Flag,
})
export const LegacyRestored = Type.Object({
  checked: Type.Integer({
    description: 'Messages that the journal knows as open, with expire also those that expired',
  }),
  restored: Type.Integer({ description: 'The checked messages that Redis lacked' }),
  refused: Type.Integer({ description: 'The checked messages whose rows are invalid' }),
})
export const LegacyGet = Type.Object({
  wait: Type.Optional(Ms('How long to wait; default 30,000')),
  ack: Type.Optional(Type.Enum(['auto'], { description: 'Acknowledge the message before the answer' })),
})
export const LegacyMessage = Type.Object({
  id: Type.String(),
  topic: Type.String(),
  status: Type.Enum(['inFlight', 'handled'], {
    description: 'Its state: handled if ack=auto has acknowledged it, else inFlight',
  }),
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
        description: 'The most messages; fewer if they have more than about 16 MiB together; default 1',
      }),
    ),
    wait: Type.Optional(Ms('How long to wait for the first message; default 0')),
    visibilityTimeout: Type.Optional(
      Ms('How long this consumer keeps them; default: that of the topic', 1, MAX_VISIBILITY_MS),
    ),
  },
  closed,
)

export const ReceivedMessage = Type.Object({
  id: Type.String(),
  lease: Type.String({ description: 'The text to acknowledge it with' }),
  attempt: Type.Integer({ description: 'The number of this delivery, from 1' }),
  priority: Type.Integer(),
  dueAt: Time('When it was due'),
  leasedUntil: Time('Until this time no other consumer gets it'),
  ...shown,
})
export const ReceiveOutput = Type.Object({ messages: Type.Array(ReceivedMessage) })

const Leases = Type.Array(Type.String({ minLength: 1, maxLength: 1_200 }), { minItems: 1, maxItems: 1_000 })

export const AcknowledgeInput = Type.Object({ leases: Leases }, closed)
export const ExtendInput = Type.Object(
  { leases: Leases, visibilityTimeout: Type.Optional(Ms('From now', 1, MAX_VISIBILITY_MS)) },
  closed,
)
export const NegativeInput = Type.Object(
  {
    leases: Leases,
    delay: Type.Optional(
      Ms('How long until it is visible again; default: from the retryDelays of the message or topic'),
    ),
    reject: Type.Optional(Type.Boolean({ description: 'Make it a dead letter at once' })),
    countAttempt: Type.Optional(Type.Boolean({ description: 'False: this delivery does not count as an attempt' })),
    error: Type.Optional(Type.String({ maxLength: 2_000, description: 'The reason, which is kept with the message' })),
  },
  closed,
)
export const LeaseOutput = Type.Object({
  results: Type.Array(Type.Enum(['ok', 'lost']), {
    description: 'For each lease in order; lost: it was no longer yours, and nothing was changed',
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
        description: 'Only these; not with a filter',
      }),
    ),
    state: Type.Optional(
      Type.Enum(['visible', 'delayed', 'inFlight'], {
        description:
          'Filter: only messages in this state; default: all that no consumer has. It matches no dead letters',
      }),
    ),
    bizKey: BizKey,
    dueFrom: Epoch,
    dueTo: Epoch,
    cursor: Cursor,
  },
  closed,
)
export const PurgeOutput = Type.Object({
  purged: Type.Integer({ description: 'The number of removed messages; about, if all were removed' }),
  cursor: Type.Optional(Type.String({ description: 'With a filter: there can be more; repeat the request with it' })),
})
const matching = {
  endpoint: Type.Optional(
    Type.String({
      pattern: ENDPOINT_ID,
      description: 'Only those whose webhooks go to this endpoint: their own, or that of their topic',
    }),
  ),
  since: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_MS,
      description: 'Only those that died at this time or later, epoch milliseconds',
    }),
  ),
  until: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_MS,
      description: 'Only those that died at this time or before, epoch milliseconds',
    }),
  ),
  reason: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_000,
      description: 'A part of the last reason; upper and lower case are equal',
    }),
  ),
  bizKey: BizKey,
}
const deadLetterFilter = {
  topic: Type.Optional(Type.String({ pattern: TOPIC_NAME, description: 'Default: all topics of the key' })),
  ...matching,
}
const bulk = {
  dryRun: Type.Optional(Type.Boolean({ description: 'Only count those that match. Default false' })),
  cursor: Cursor,
}
const Further = Type.Optional(Type.String({ description: 'There can be more: repeat the request with it' }))
export const RedriveInput = Type.Object(
  {
    count: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000,
        description: 'The most dead letters to move: the oldest, default 100; with a filter, default 1,000',
      }),
    ),
    ids: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 576 }), {
        minItems: 1,
        maxItems: 500,
        description: 'Only these; not with a filter',
      }),
    ),
    ...matching,
    ...bulk,
  },
  closed,
)
export const RedriveOutput = Type.Object({
  redriven: Type.Integer(),
  matched: Type.Optional(Type.Integer({ description: 'With a filter: the number of matches in this part' })),
  cursor: Further,
})

export const EndpointParams = Type.Object({ endpoint: Type.String({ pattern: ENDPOINT_ID }) })

const endpoint = {
  url: Type.String({
    minLength: 1,
    maxLength: 2_048,
    pattern: "^https?://[A-Za-z0-9._~:/?#[\\]@!$&'()*+,;=%-]+$",
    description: 'http or https, to a public host; characters outside RFC 3986 must be encoded',
  }),
  description: Type.String({ maxLength: 500 }),
  perSecond: Type.Number({
    minimum: 0,
    maximum: 100_000,
    description: 'The most webhooks a second of all instances together; 0: no limit',
  }),
  concurrency: Type.Integer({
    minimum: 1,
    maximum: 1_000,
    description: 'The most webhooks of each instance at the same time',
  }),
  timeout: Type.Integer({
    minimum: 100,
    maximum: 120_000,
    description: 'The longest that an answer may take, in milliseconds',
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
      Type.Enum(['v1', 'v1a'], { description: 'The scheme of a new secret: HMAC-SHA256 (default) or Ed25519' }),
    ),
    topics: Type.Optional(
      Type.Array(Type.String({ pattern: TOPIC_NAME }), {
        maxItems: 100,
        description: 'Existing topics that get this endpoint instead of their own',
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
        description: 'gone: it answered 410; failing: it took no webhook for five days',
      }),
      at: Time('When'),
    }),
  ),
  createdAt: Time('When it was created'),
  topics: Type.Optional(Type.Array(Type.String(), { description: 'The topics that use it' })),
  gate: Type.Optional(
    Type.Object(
      {
        state: Type.Enum(['closed', 'open', 'half-open'], {
          description: 'The state of its breaker; closed: webhooks flow; half-open: one webhook tries again',
        }),
        until: Type.Optional(Time('The end of the open state')),
        pausedUntil: Type.Optional(Time('The end of the pause that the endpoint asked for')),
        tried: Type.Integer({ description: 'The webhooks of the last minute' }),
        failed: Type.Integer(),
      },
      { description: 'Only when endpoints are shown' },
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
      { description: 'The last webhook; only when endpoints are shown' },
    ),
  ),
})
export const SecretOutput = Type.Object({
  secret: Type.String({ description: 'Signs webhooks; with v1a the receiver gets publicKey instead' }),
  publicKey: Type.Optional(Type.String()),
  previousUntil: Type.Optional(Time('Until this time the previous secret signs too')),
})
export const EndpointMade = Type.Object({ ...EndpointOutput.properties, ...SecretOutput.properties })
export const EndpointPage = Type.Object({ endpoints: Type.Array(EndpointOutput), cursor: Type.Optional(Type.String()) })
export const RotateInput = Type.Object(
  {
    secret: Type.Optional(Secret),
    scheme: Type.Optional(Type.Enum(['v1', 'v1a'])),
    keepPrevious: Type.Optional(Ms('How long the previous secret signs too; default a day')),
  },
  closed,
)
const sent = {
  status: OrNull(Type.Integer({ description: 'The status of the answer; null: there was none' })),
  error: OrNull(Type.String({ description: 'The reason why there was no answer' })),
  tookMs: Type.Number(),
  answer: Type.String({ description: 'The first 4 KiB of the answer' }),
}
export const TestOutput = Type.Object(sent)
export const RecoverOutput = Type.Object({
  redriven: Type.Integer({ description: 'Dead letters that were moved back' }),
})
export const Delivery = Type.Object({
  id: Type.String({ description: 'The id of the message' }),
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
  endpoint: Type.Optional(Type.String({ pattern: ENDPOINT_ID, description: 'Only webhooks of this endpoint' })),
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
      key: Type.String({ description: 'The id of the API key; service: the service disabled an endpoint' }),
      method: Type.String(),
      path: Type.String(),
      status: Type.Integer({ description: '5xx: the request may have taken effect' }),
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
      startedAt: Time('When it started'),
      seenAt: Time('When it last reported'),
      memory: Type.Number({ description: 'Its memory, in bytes' }),
      url: OrNull(Type.String({ description: 'The address that it listens at' })),
      connections: Type.Integer({ description: 'Connections of clients' }),
      waiting: Type.Integer({ description: 'Receives that wait for messages' }),
      eventLoopMs: Type.Number({ description: 'The lateness of its timers in the last seconds, 99th percentile' }),
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
    { description: 'All masters together; null for a key of some topics' },
  ),
  journal: OrNull(
    Type.Object({
      mode: Type.String(),
      kind: Type.String(),
      lagMs: OrNull(Type.Number({ description: 'The age of the oldest change that SQL lacks; null: not known' })),
      pending: OrNull(Type.Integer({ description: 'The number of changes that SQL lacks' })),
    }),
  ),
  instances: Type.Integer(),
  rates: Type.Object({ ...Rate, dead: Type.Number() }, { description: 'This instance, per second' }),
  lateness: OrNull(Type.Object({ p50: Type.Number(), p99: Type.Number() }), {
    description:
      'How late this instance handed messages out, in milliseconds, since the first request of the last five minutes; null: it handed out none',
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
    { description: 'Problems for an operator' },
  ),
  complete: Type.Boolean({ description: 'False: the first background scan has not finished' }),
})
export const AgendaQuery = Type.Object({
  topic: Type.Optional(Type.String({ pattern: TOPIC_NAME })),
  from: Epoch,
  to: Epoch,
  buckets: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: 'Default 60' })),
})
const span = { from: Time('The beginning'), to: Time('The end, exclusive') }
export const AgendaOutput = Type.Object({
  at: Time('When, by the clock of Redis'),
  ...span,
  bucketMs: Type.Integer(),
  buckets: Type.Array(Type.Object({ ...span, count: Type.Integer() })),
  overdue: Type.Integer({ description: 'Messages due before now that no consumer has' }),
  later: Type.Integer({ description: 'Messages due after the last bucket' }),
  exact: Type.Boolean({ description: 'False: one request could not count all topics or shards' }),
})
export const FlowOutput = Type.Object({
  flow: Type.Array(
    Type.Object({
      at: Time('When'),
      change: Type.String(),
      attempt: OrNull(Type.Integer()),
      by: Type.String({ description: 'The Redis client' }),
      error: OrNull(Type.String()),
    }),
  ),
  source: Type.Enum(['journal', 'none']),
})

export const SignInInput = Type.Object({ key: Type.String({ minLength: 1, maxLength: 200 }) }, closed)
export const SessionOutput = Type.Object({
  key: Type.String({ description: 'The id of the key' }),
  scopes: Type.Array(Type.Enum(['push', 'consume', 'admin', 'read'])),
  topics: OrNull(Type.Array(Type.String(), { description: 'Names, or prefixes with *; null: all' })),
  hidePayloads: Type.Boolean({ description: 'Whether messages are shown without their bodies and headers' }),
  journal: Type.Boolean({ description: 'Whether the service has a journal' }),
  readOnly: Type.Boolean({ description: 'Whether the service was started with --read-only' }),
  version: Type.String(),
})

export const RestoreParams = Type.Object({ restore: Type.String({ pattern: UUID }) })
export const RestoreInput = Type.Object(
  {
    topic: Type.Optional(Type.String({ pattern: TOPIC_NAME, description: 'Default: all topics of the key' })),
    id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 576,
        description: 'The id of one message; default: all messages that are not final',
      }),
    ),
    expired: Type.Optional(
      Type.Boolean({ description: 'Also messages that expired; they no longer expire. Default false' }),
    ),
    dryRun: Type.Optional(Type.Boolean({ description: 'Only count what would be put back. Default false' })),
  },
  closed,
)
export const RestoreOutput = Type.Object({
  id: Type.String({ description: 'The id of the restore' }),
  state: Type.Enum(['running', 'done', 'failed', 'interrupted'], {
    description: 'interrupted: its instance ended; repeat the request to continue',
  }),
  topic: OrNull(Type.String({ description: 'null: all topics of the key' })),
  messageId: OrNull(Type.String({ description: 'null: all messages' })),
  expired: Type.Boolean(),
  dryRun: Type.Boolean(),
  key: Type.String({ description: 'The id of the API key' }),
  startedAt: Time('When it began'),
  updatedAt: Time('When these counts were taken'),
  topics: Type.Integer({ description: 'The number of topics to restore' }),
  topicsDone: Type.Integer(),
  total: OrNull(Type.Integer({ description: 'About how many messages are to be checked; null: not counted yet' })),
  checked: Type.Integer({
    description: 'Messages that the journal knows as open, with expired also those that expired',
  }),
  restored: Type.Integer({ description: 'The checked messages that Redis lacked' }),
  refused: Type.Integer({ description: 'The checked messages whose rows are invalid' }),
  perSecond: Type.Integer({ description: 'Messages checked a second' }),
  msLeft: OrNull(Type.Integer({ description: 'Milliseconds left at this rate; null: not known, or it has ended' })),
  problem: OrNull(ProblemOutput),
})
export const RestoreList = Type.Object({ restores: Type.Array(RestoreOutput) })

export const DeadLetterSearch = Type.Object({ ...deadLetterFilter, ...PageQuery.properties })
export const DeadLetterList = Type.Object({
  deadLetters: Type.Array(
    Type.Object({
      topic: Type.String(),
      id: Type.String(),
      diedAt: Time('When it became a dead letter'),
      attempts: Type.Integer({ description: 'The number of deliveries' }),
      reason: OrNull(Type.String({ description: 'Why the last delivery failed' })),
      endpoint: OrNull(
        Type.String({ description: 'The endpoint of its webhook: its own, or the current one of its topic' }),
      ),
    }),
  ),
  matched: OrNull(Type.Integer({ description: 'The number that match; null: not counted' })),
  cursor: Type.Optional(Type.String({ description: 'There can be more, even if this page is empty' })),
})
export const BulkInput = Type.Object(
  {
    ...deadLetterFilter,
    ...bulk,
  },
  closed,
)
export const BulkOutput = Type.Object({
  matched: Type.Integer({ description: 'The dead letters of this part that match' }),
  done: Type.Integer({ description: 'How many of them were moved back or deleted' }),
  cursor: Further,
})

const ListedMessage = Type.Object({
  topic: Type.String(),
  id: Type.String(),
  state: Type.String(),
  dueAt: Time('When it becomes, became, or becomes again visible; for a dead letter, when it died'),
  attempts: Type.Optional(Type.Integer({ description: 'The number of deliveries so far' })),
  priority: Type.Optional(Type.Integer()),
})
export const MessageSearchQuery = Type.Object({
  topic: Type.Optional(Type.String({ pattern: TOPIC_NAME, description: 'Default: all topics of the key' })),
  id: Type.Optional(Type.String({ minLength: 1, maxLength: 576 })),
  bizKey: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: 'Needs a journal; finds final messages too' }),
  ),
  state: Type.Optional(Type.Enum(['visible', 'delayed', 'inFlight', 'dead'])),
  dueFrom: Epoch,
  dueTo: Epoch,
  ...PageQuery.properties,
})
export const MessagesFound = Type.Object({
  messages: Type.Array(ListedMessage),
  cursor: Type.Optional(Type.String()),
  source: Type.Enum(['redis', 'journal'], { description: 'Where they were searched' }),
  complete: Type.Boolean({
    description: 'False: one request could not read everything, and some messages can be missing',
  }),
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
  complete: Type.Boolean({ description: 'False: one request could not read all topics' }),
})
export const DoctorQuery = Type.Object({
  maxAge: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 86_400_000,
      description: 'The greatest age of a report, in milliseconds, that is returned at once',
    }),
  ),
})
export const DoctorOutput = Type.Object({
  at: Time('When it was examined'),
  findings: Type.Array(
    Type.Object({
      severity: Type.String({ description: 'error, warning or info' }),
      code: Type.String(),
      message: Type.String({ description: 'found and means, in one' }),
      found: Type.String({ description: 'What was found' }),
      means: Type.String({ description: 'What that means; the same for all findings of a code' }),
      advice: OrNull(Type.String({ description: 'How to repair it' })),
      queue: OrNull(Type.String()),
    }),
  ),
  leftOut: Type.Integer({ description: 'How many findings are left out: the thousand worst are here' }),
  notExamined: Type.Integer({
    description: 'How many queues were left when the time was over; each report begins with other queues, at random',
  }),
})
