// The schemas of the routes of a service with --read-only.
import { Type, type TSchema } from 'typebox'
import { AgendaOutput } from './schemas.js'

const Time = (description: string) => Type.Number({ description: `${description}, epoch milliseconds` })
const OrNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const Epoch = Type.Optional(Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 }))
const Count = OrNull(Type.Integer())
const Text = OrNull(Type.String())
const Strings = (description: string) => Type.Array(Type.String(), { description })

export const QueuesQuery = Type.Object({
  search: Type.Optional(Type.String({ maxLength: 600, description: 'A part of the name' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'Default 100' })),
  cursor: Type.Optional(Type.String({ maxLength: 4_000, pattern: '^[A-Za-z0-9_-]+$' })),
})
export const QueuesOutput = Type.Object({
  at: Time('When, by the clock of Redis'),
  total: Type.Integer({ description: 'The number of all queues, whatever the search' }),
  queues: Type.Array(
    Type.Object({
      name: Type.String(),
      kind: Type.Enum(['delayed', 'reliable']),
      shards: Count,
      pending: Count,
      ready: Count,
      inFlight: Count,
      dead: Count,
      quarantined: Count,
      nextDueAt: OrNull(Type.Number()),
      overdueMs: OrNull(Type.Number()),
      subscribers: Count,
      paused: Strings('add, poll'),
      stuckRepeats: Count,
      error: OrNull(Type.String({ description: 'Why it cannot be read' })),
    }),
  ),
  cursor: Type.Optional(Type.String()),
})

export const QueueParams = Type.Object({ queue: Type.String({ minLength: 1, maxLength: 1_000 }) })
export const QueueQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, description: 'The most entries of each list. Default 20' }),
  ),
  codec: Type.Optional(
    Type.String({
      maxLength: 30,
      description: 'The codec of the payloads, by its name on the command line. Default msgpack',
    }),
  ),
})
const Payload = Type.Object(
  {
    text: OrNull(Type.String({ description: 'As JSON, the first 4,096 characters' })),
    isCut: Type.Boolean(),
    hex: OrNull(Type.String({ description: 'The first 256 bytes of a payload that cannot be decoded' })),
    size: Count,
    problem: Text,
  },
  { description: 'null: the key may not see payloads' },
)
const Message = Type.Object({
  id: Text,
  shard: Text,
  state: Type.String({ description: 'visible, delayed, inFlight or dead' }),
  at: Time('When it becomes, became, or becomes again visible'),
  ticket: OrNull(Type.String({ description: 'Cancels the element of a delayed queue' })),
  priority: Count,
  attempts: Count,
  failure: OrNull(Type.String({ description: 'The last failure' })),
  payload: OrNull(Payload),
})
export const QueueOutput = Type.Object({
  name: Type.String(),
  at: OrNull(Time('When, by the clock of Redis')),
  delayed: OrNull(
    Type.Object({
      pending: Type.Integer(),
      ready: Type.Integer(),
      scheduled: Type.Array(Message),
      delivered: Type.Array(OrNull(Payload)),
      quarantined: Type.Array(
        Type.Object({ reason: Type.String(), at: Time('When it was set aside'), hex: Text, size: Type.Integer() }),
      ),
    }),
  ),
  reliable: OrNull(
    Type.Object({
      visible: Type.Integer(),
      delayed: Type.Integer(),
      inFlight: Type.Integer(),
      dead: Type.Integer(),
      paused: Strings('add, poll'),
      messages: Type.Array(Message),
      deadLetters: Type.Array(Message),
    }),
  ),
})

export const QueueAgendaQuery = Type.Object({
  from: Epoch,
  to: Epoch,
  buckets: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: 'Default 60' })),
})
export const QueueAgenda = AgendaOutput
