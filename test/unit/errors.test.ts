import { expect } from 'chai'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import * as errors from '../../src/errors.js'

const {
  AddManyError,
  AuthError,
  BatchClosedError,
  ChangesBehindError,
  ChangesLostError,
  CommandError,
  ConnectionError,
  CrossSlotError,
  DecodeError,
  DurabilityError,
  EncodeError,
  InternalError,
  InvalidArgumentError,
  InvalidTicketError,
  NoSuchElementError,
  NotCompletedError,
  OfferAllError,
  OperationDisabledError,
  PayloadTooLargeError,
  QueueFullError,
  ReadOnlyError,
  RedelayedError,
  ShutdownError,
  UnsupportedOperationError,
  UnsupportedServerError,
  WrongTypeError,
  attributeTo,
  copyOf,
  describe: describeValue,
  toError,
} = errors

describe('errors', () => {
  const cause = new Error('underneath')
  const details = { queue: 'orders', cause }
  const all: [name: string, code: string, error: InstanceType<typeof RedelayedError>, message: string][] = [
    ['RedelayedError', 'ERR_X', new RedelayedError('ERR_X', 'text', details), 'text'],
    [
      'InvalidArgumentError',
      'ERR_INVALID_ARGUMENT',
      new InvalidArgumentError('n', 'a number', 'x', details),
      'n: expected a number, got a string of 1 character',
    ],
    ['InvalidTicketError', 'ERR_INVALID_TICKET', new InvalidTicketError('text', details), 'text'],
    [
      'EncodeError',
      'ERR_ENCODE',
      new EncodeError('json', '$.a', 'no', details),
      'codec json cannot encode the value at $.a: no',
    ],
    ['DecodeError', 'ERR_DECODE', new DecodeError('json', 'no', details), 'codec json cannot decode the bytes: no'],
    [
      'PayloadTooLargeError',
      'ERR_PAYLOAD_TOO_LARGE',
      new PayloadTooLargeError(9, 8, details),
      'the encoded value has 9 bytes, the limit is 8',
    ],
    ['ConnectionError', 'ERR_CONNECTION', new ConnectionError('text', 'unknown', details), 'text'],
    ['AuthError', 'ERR_AUTH', new AuthError('text', details), 'text'],
    [
      'WrongTypeError',
      'ERR_WRONG_TYPE',
      new WrongTypeError(details),
      'a key of this queue holds another type of value; nothing was changed',
    ],
    [
      'ReadOnlyError',
      'ERR_READ_ONLY',
      new ReadOnlyError(details),
      'the server is a read-only replica; connect to the master',
    ],
    [
      'CrossSlotError',
      'ERR_CROSS_SLOT',
      new CrossSlotError(details),
      'its keys lie in different cluster slots; a name with "{" needs a non-empty {tag}',
    ],
    [
      'CommandError',
      'ERR_COMMAND',
      new CommandError('OOM', 'OOM no', details),
      'the server refused the command: OOM no',
    ],
    ['UnsupportedServerError', 'ERR_UNSUPPORTED_SERVER', new UnsupportedServerError('text', details), 'text'],
    [
      'ShutdownError',
      'ERR_SHUTDOWN',
      new ShutdownError('the client was shut down', details),
      'the client was shut down; no further calls are possible',
    ],
    ['NoSuchElementError', 'ERR_NO_SUCH_ELEMENT', new NoSuchElementError(details), 'the queue is empty'],
    ['UnsupportedOperationError', 'ERR_UNSUPPORTED_OPERATION', new UnsupportedOperationError('text', details), 'text'],
    [
      'OfferAllError',
      'ERR_OFFER_ALL',
      new OfferAllError(['t', null], [{ index: 1, error: new ReadOnlyError() }], details),
      '1 of 2 items were not accepted; item 1: the server is a read-only replica; connect to the master',
    ],
    [
      'DurabilityError',
      'ERR_DURABILITY',
      new DurabilityError('t', { replicas: 2, aof: false }, { replicas: 1, aof: false }, 50, {
        queue: 'orders',
        cause,
      }),
      'the message was accepted, but the server did not wait: underneath',
    ],
    [
      'AddManyError',
      'ERR_ADD_MANY',
      new AddManyError([null], [{ index: 0, error: new ReadOnlyError() }], details),
      '1 of 1 items were not added; item 0: the server is a read-only replica; connect to the master',
    ],
    [
      'QueueFullError',
      'ERR_QUEUE_FULL',
      new QueueFullError(details),
      'the queue holds as many messages as its maxSize allows',
    ],
    [
      'ChangesBehindError',
      'ERR_CHANGES_BEHIND',
      new ChangesBehindError(details),
      'the change stream is full: its groups have left too many changes unread',
    ],
    [
      'ChangesLostError',
      'ERR_CHANGES_LOST',
      new ChangesLostError('epoch', details),
      'the change stream of the queue does not have that position: it is of another epoch',
    ],
    [
      'OperationDisabledError',
      'ERR_OPERATION_DISABLED',
      new OperationDisabledError('add', details),
      'the operation "add" of the queue is disabled',
    ],
    [
      'BatchClosedError',
      'ERR_BATCH_CLOSED',
      new BatchClosedError(details),
      'the batch is closed: nothing is added to it any more',
    ],
    [
      'NotCompletedError',
      'ERR_NOT_COMPLETED',
      new NotCompletedError('dead', 'Error: no such address', details),
      'the message was not completed: it is a dead letter: Error: no such address',
    ],
    ['InternalError', 'ERR_INTERNAL', new InternalError('id', 'text', details), '[id] text; please report this'],
  ]
  for (const [name, code, error, message] of all) {
    it(`${name} has its name, code ${code}, queue and cause`, () => {
      expect(error).to.be.instanceOf(RedelayedError).and.instanceOf(Error)
      expect(error.cause).to.be.instanceOf(Error).with.property('message', 'underneath')
      expect(error).to.include({ name, code, queue: 'orders', message: `queue "orders": ${message}` })
      expect(String(error)).to.equal(`${name}: queue "orders": ${message}`)
      expect(error.stack).to.include('errors.test')
    })
  }

  const missed: [asked: [number, boolean], acknowledged: [number, boolean], says: string][] = [
    [[2, false], [1, false], 'received by 1 of 2 replicas'],
    [[0, true], [0, false], 'in the memory of the server, not synced'],
    [[2, true], [1, true], 'synced by the server, and synced by 1 of 2 replicas'],
    [[2, true], [0, false], 'in the memory of the server, not synced, and synced by 0 of 2 replicas'],
  ]
  for (const [[asked, askedAof], [replicas, aof], says] of missed) {
    it(`DurabilityError: ${says}`, () => {
      const error = new DurabilityError('t', { replicas: asked, aof: askedAof }, { replicas, aof }, 50)
      expect(error.message).to.equal(`the message was accepted, but within 50 ms it was only ${says}`)
      expect(error.ticket).to.equal('t')
    })
  }

  it('are all in the table above', () => {
    const classes = Object.entries(errors).filter(
      ([, value]) =>
        value === RedelayedError || (typeof value === 'function' && value.prototype instanceof RedelayedError),
    )
    expect(all.map(([name]) => name)).to.have.members(classes.map(([name]) => name))
    expect(new Set(all.map(([, code]) => code)).size).to.equal(all.length)
  })

  it('have no cause and no queue unless one is given', () => {
    const error = new ReadOnlyError()
    expect(error).to.not.have.property('cause')
    expect(error.queue).to.equal(undefined)
  })

  it('keep the fields that programs read', () => {
    expect(new ConnectionError('text', 'not-applied')).to.have.property('outcome', 'not-applied')
    expect(new CommandError('OOM', 'OOM no')).to.have.property('redisCode', 'OOM')
    expect(new EncodeError('json', '$.a[3]', 'no')).to.have.property('path', '$.a[3]')
    const failures = [{ index: 0, error: new ReadOnlyError() }]
    expect(new OfferAllError([null], failures)).to.deep.include({ tickets: [null], failures })
  })

  describe('attributeTo', () => {
    it('names the queue in property and message', () => {
      const error = new ReadOnlyError()
      expect(attributeTo(error, 'the "orders"')).to.equal(error)
      expect(error.queue).to.equal('the "orders"')
      expect(error.message).to.match(/^queue "the \\"orders\\"": the server is/)
    })

    it('leaves an error alone that names its queue', () => {
      const error = attributeTo(new ReadOnlyError({ queue: 'first' }), 'second')
      expect(error.queue).to.equal('first')
      expect(error.message).to.equal(new ReadOnlyError({ queue: 'first' }).message)
    })
  })

  describe('copyOf', () => {
    it('gives each caller an error of its own, with everything that the first has', () => {
      const original = new CommandError('OOM', 'OOM no', { cause })
      const copies = [copyOf(original), copyOf(original)]
      copies.forEach((copy, n) => attributeTo(copy, `queue${n}`))
      expect(copies.map(({ queue }) => queue)).to.deep.equal(['queue0', 'queue1'])
      expect(original.queue).to.equal(undefined)
      expect(original.message).to.equal('the server refused the command: OOM no')
      for (const copy of copies) {
        expect(copy).to.be.instanceOf(CommandError)
        expect(copy).to.include({ name: 'CommandError', code: 'ERR_COMMAND', redisCode: 'OOM', cause: original.cause })
        expect(copy.stack).to.equal(original.stack)
      }
    })
  })

  describe('describe', () => {
    class Order {
      readonly secret = 'card number'
    }
    const cases: [value: unknown, text: string][] = [
      [null, 'null'],
      [undefined, 'undefined'],
      [true, 'true'],
      [1.5, '1.5'],
      [NaN, 'NaN'],
      [5n, '5n'],
      ['', 'an empty string'],
      ['x', 'a string of 1 character'],
      ['secret', 'a string of 6 characters'],
      [2n ** 200n, 'a bigint of more than 128 bits'],
      [[1, 2], 'an array of 2'],
      [new Date(0), '1970-01-01T00:00:00.000Z'],
      [new Date(NaN), 'an invalid Date'],
      [{ secret: 1 }, 'an object (Object)'],
      [new Order(), 'an object (Order)'],
      [new Map([['secret', 1]]), 'an object (Map)'],
      [Buffer.from('secret'), 'an object (Buffer)'],
      [Object.create(null), 'an object (no prototype)'],
      [Object.create({ constructor: undefined }), 'an object (no prototype)'],
      [() => 'secret', 'a function'],
      [Order, 'a function'],
      [Symbol('secret'), 'a symbol'],
    ]
    for (const [value, text] of cases) {
      it(`says ${text.slice(0, 40)}`, () => {
        expect(describeValue(value)).to.equal(text)
      })
    }

    it('never shows the content of long strings and objects, and is always short', () => {
      fc.assert(
        fc.property(
          fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
          (value) => {
            const text = describeValue(value)
            if (typeof value !== 'bigint') expect(text.length).to.be.at.most(260)
            if (typeof value === 'object' && value !== null) expect(text).to.match(/^an? |^[+-]?\d+-\d\d-\d\dT/)
          },
        ),
      )
      expect(describeValue(['secret'])).to.not.include('secret')
      expect(describeValue('secret'.repeat(10))).to.not.include('secret')
    })
  })

  it('are made of whatever is thrown', () => {
    const error = new TypeError('x')
    expect(toError(error)).to.equal(error)
    expect(toError('text')).to.be.instanceOf(Error).with.property('message', 'text')
    expect(toError(undefined)).to.be.instanceOf(Error).with.property('message', 'undefined')
    expect(toError({ secret: 1 }))
      .to.be.instanceOf(Error)
      .with.property('message', 'an object (Object)')
  })

  it('keep the cause of another realm, as those of Node are under Jest', () => {
    const foreign = runInNewContext(`
      Object.assign(new Error('connect ECONNREFUSED', { cause: new Error('why') }), { code: 'ECONNREFUSED' })`) as Error
    expect(foreign).not.to.be.instanceOf(Error)
    expect(toError(foreign)).to.equal(foreign)
    const { cause } = new errors.ConnectionError('no connection', 'not-applied', { cause: foreign })
    expect(cause).to.be.instanceOf(Error).that.includes({ message: 'connect ECONNREFUSED', code: 'ECONNREFUSED' })
    expect((cause as Error).cause)
      .to.be.instanceOf(Error)
      .with.property('message', 'why')
  })
})
