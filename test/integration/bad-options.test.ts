import { expect } from 'chai'
import {
  DecodeError,
  EncodeError,
  InvalidArgumentError,
  createClient,
  type ClientOptions,
  type Codec,
} from '../../src/index.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, expectError, makeClient, rawKeys, type Wanted } from './fixtures.js'

const INVALID = 'ERR_INVALID_ARGUMENT'

/** Values of the wrong type, as JavaScript callers pass them. */
const as = (value: unknown): never => value as never

describe('bad input for the client', () => {
  afterEach(cleanUp)

  const options: [what: string, options: unknown, ...says: string[]][] = [
    ['an unknown option', { uri: 'redis://h' }, 'options.uri', 'one of url, host'],
    [
      'two ways to connect',
      { url: 'redis://h', host: 'h' },
      'one of url, host, sentinels, cluster, replicated, redis',
      'url and host',
    ],
    ['a url of another kind', { url: 'http://h' }, 'url', 'redis://', 'got another'],
    ['a url that is none', { url: 'nonsense' }, 'url', 'redis://'],
    ['a database that is not a number', { url: 'redis://h/x' }, 'database in url', 'something else'],
    ['a password twice', { url: 'redis://:a@h', password: 'b' }, 'password', 'either in the url or in the options'],
    ['a port out of range', { host: 'h', port: 70_000 }, 'port', '1 to 65535', '70000'],
    ['an empty host', { host: '' }, 'host', 'a non-empty string', 'an empty string'],
    ['no sentinels', { sentinels: [], name: 'm' }, 'sentinels', 'a non-empty array'],
    ['sentinels without a name', { sentinels: [{ host: 'h' }] }, 'name', 'a non-empty string', 'undefined'],
    ['a client that is none', { redis: {} }, 'redis', 'an ioredis client'],
    ['a fractional sweep', { sweepInterval: 0.5 }, 'sweepInterval', '100 to 3600000', '0.5'],
    ['a clock that is none', { clock: 'sun' }, 'clock', '"redis" or "local"', 'a string of 3 characters'],
    ['too many connections', { blockingConnections: 65 }, 'blockingConnections', '1 to 64', '65'],
    [
      'a flag that is none',
      { consumersDeliver: 'yes' },
      'consumersDeliver',
      'true or false',
      'a string of 3 characters',
    ],
    ['fine waits that are no flag', { fineWaits: 2 }, 'fineWaits', 'true or false', '2'],
    ['a codec that is none', { codec: { name: 'x' } }, 'codec', 'name, encode and decode'],
    ['a mapper that is none', { nameMapper: () => 'x' }, 'nameMapper', 'map and unmap', 'a function'],
    ['no object', 5, 'options', 'an object', '5'],
    ['a password of another type', { password: 5 }, 'password', 'a string', 'number'],
  ]
  for (const [what, given, ...says] of options) {
    it(what, () =>
      expectError([InvalidArgumentError, { code: INVALID, says }], () => createClient(given as ClientOptions)),
    )
  }

  it('names that are empty or no text', async () => {
    const client = makeClient()
    for (const name of ['', null, undefined, 5, {}]) {
      const wanted = { code: INVALID, says: ['name', 'a non-empty string'] }
      await expectError([InvalidArgumentError, wanted], () => client.getQueue(as(name)))
      await expectError([InvalidArgumentError, wanted], () => client.getBlockingQueue(as(name)))
    }
    const mapped = makeClient({ nameMapper: { map: () => '', unmap: () => '' } })
    const wanted = { code: INVALID, says: ['nameMapper', 'a non-empty string'] }
    await expectError([InvalidArgumentError, wanted], () => mapped.getQueue('x'))
  })

  it('options and destinations of queues', async () => {
    const client = makeClient()
    const queue = client.getQueue(uniqueName())
    const invalid = (...says: string[]): Wanted => [InvalidArgumentError, { code: INVALID, says }]
    await expectError(invalid('options.kodec', 'codec'), () => client.getQueue('x', as({ kodec: 1 })))
    await expectError(invalid('codec', 'a function'), () => client.getQueue('x', { codec: as(() => {}) }))
    await expectError(invalid('consumersDeliver', '1'), () => client.getBlockingQueue('x', { consumersDeliver: as(1) }))
    await expectError(invalid('layout', '"redisson" or "compact"', 'a string of 4 characters'), () =>
      client.getDelayedQueue(queue, { layout: as('fifo') }),
    )
    await expectError(invalid('options.layuot'), () => client.getDelayedQueue(queue, as({ layuot: 'compact' })))
    await expectError(invalid('destination', 'a string of 6 characters'), () => client.getDelayedQueue(as('orders')))
    const foreign = makeClient().getQueue('x')
    await expectError(invalid('destination', 'this client', 'another client'), () => client.getDelayedQueue(foreign))
    expect(await rawClient().pubsub('NUMSUB', rawKeys(queue.name).channel), 'no task was left').to.include(0)
  })

  it('a codec that throws or gives no bytes', async () => {
    const client = makeClient()
    const codec = (encode: () => Buffer): Codec => ({ name: 'mine', encode, decode: () => JSON.parse('{') as unknown })
    const name = uniqueName()
    const throws = client.getQueue(name, { codec: codec(() => { throw new Error('boom') }) }) // prettier-ignore
    await expectError([EncodeError, { code: 'ERR_ENCODE', queue: name, says: ['mine', 'boom'] }], () =>
      throws.offer('x'),
    )
    const text = client.getQueue(name, { codec: codec(() => as('text')) })
    await expectError(
      [EncodeError, { code: 'ERR_ENCODE', queue: name, says: ['mine', 'a string of 4 characters'] }],
      () => text.offer('x'),
    )
    await rawClient().rpush(name, 'x')
    await expectError([DecodeError, { code: 'ERR_DECODE', queue: name, says: ['mine'] }], () => throws.peek())
    expect(await rawClient().lrange(name, 0, -1)).to.deep.equal(['x'])
  })
})
