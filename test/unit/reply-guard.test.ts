import { expect } from 'chai'
import { constants } from 'node:buffer'
import { randomInt } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import type { Redis } from 'ioredis'
import { guardReplies } from '../../src/redis/replies/reply-guard.js'
import { ProtocolError, ReplyScanner } from '../../src/redis/replies/reply-scanner.js'
import { randomFrom } from '../support/random.js'

const { MAX_STRING_LENGTH } = constants
const require = createRequire(import.meta.url)
const { default: DataHandler } = require('ioredis/built/DataHandler.js') as {
  default: new (redis: unknown, options: object) => unknown
}
const Denque = require('denque') as new (items: unknown[]) => { length: number; shift(): unknown }

interface Setup {
  readonly protocol?: 2 | 3
  readonly commands?: readonly string[]
  readonly subscribed?: boolean
  /** The arguments of commands that subscribe. */
  readonly channels?: readonly string[]
}

/** The replies that ioredis decodes from chunks, with its own decoder and handler, on a connection with these commands in flight. */
function connection({ protocol = 3, commands = [], subscribed = false, channels = ['c'] }: Setup) {
  const replies: unknown[] = []
  const messages: unknown[][] = []
  const errors: Error[] = []
  const stream = Object.assign(new EventEmitter(), { resume() {}, destroy() {}, destroyed: false })
  const names = new Set(['subscribe', 'psubscribe', 'unsubscribe', 'punsubscribe'])
  const item = (name: string) => ({
    command: {
      name,
      args: names.has(name) ? channels : [],
      resolve: (reply: unknown) => replies.push(reply),
      reject: (error: Error) => replies.push(error),
    },
  })
  const subscriber = { add() {}, del() {}, channels: () => [] }
  const redis = Object.assign(new EventEmitter(), {
    stream,
    status: 'ready',
    options: {},
    condition: { protocol, subscriber: subscribed && subscriber },
    commandQueue: new Denque(commands.map(item)),
    handleReconnection: (error: Error, { command }: ReturnType<typeof item>) => command.reject(error),
    recoverFromFatalError: (error: Error) => errors.push(error),
    flushQueue(error: Error) {
      for (let next; (next = redis.commandQueue.shift() as ReturnType<typeof item> | undefined);)
        next.command.reject(error)
      stream.removeAllListeners('data')
    },
    disconnect() {},
  })
  redis.on('message', (...args: unknown[]) => messages.push(args))
  redis.on('error', (error: Error) => errors.push(error))
  return {
    replies,
    messages,
    errors,
    guard() {
      guardReplies(redis as unknown as Redis)
      return this
    },
    open() {
      new DataHandler(redis, {})
      redis.emit('connect')
      return this
    },
    write(...chunks: readonly (Buffer | string)[]) {
      for (const chunk of chunks) stream.emit('data', typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : chunk)
      return this
    },
  }
}

/** All of RESP3 that Redis sends, and how many replies it is, besides pushes. */
const EVERYTHING =
  '+OK\r\n-ERR no\r\n:12\r\n:-1\r\n$3\r\nabc\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n$1\r\na\r\n*2\r\n:1\r\n_\r\n_\r\n#t\r\n#f\r\n,1.5e-3\r\n,inf\r\n,nan\r\n' +
  '(-123456789012345678901234567890\r\n=7\r\ntxt:abc\r\n!5\r\nERR x\r\n%1\r\n+a\r\n:1\r\n~2\r\n+x\r\n$2\r\n\r\n\r\n' +
  '>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nv\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n*1\r\n*1\r\n*1\r\n$12\r\nhello world!\r\n$5\r\n$1\r\na\r\n'
const REPLIES = 23

const enough = Array.from({ length: REPLIES }, () => 'get')

describe('the guard of replies', () => {
  it('changes nothing about what ioredis decodes, wherever the bytes are split', () => {
    const bytes = Buffer.from(EVERYTHING, 'latin1')
    const plain = connection({ commands: enough, subscribed: true }).open().write(bytes)
    expect(plain.replies.length).to.equal(REPLIES)
    expect(plain.messages).to.eql([['c', 'v']])
    for (let first = 0; first <= bytes.length; first++) {
      for (const second of [first, first + 1, first + 2, first + 9]) {
        const made = connection({ commands: enough, subscribed: true }).guard().open()
        made.write(bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second))
        expect(made.errors, `split at ${first} and ${second}`).to.eql([])
        expect(made.replies, `split at ${first} and ${second}`).to.eql(plain.replies)
        expect(made.messages).to.eql(plain.messages)
      }
    }
    const single = connection({ commands: enough, subscribed: true }).guard().open()
    single.write(...[...bytes].map((byte) => Buffer.from([byte])))
    expect([single.errors, single.replies, single.messages]).to.eql([[], plain.replies, plain.messages])
  })

  const WRONG: readonly [what: string, bytes: string, setup: Setup, reason: RegExp][] = [
    ['a length with a byte that is not a digit', '$*\r\nabc\r\n', { commands: ['get'] }, /a length is not a number/],
    ['a negative length', '*-5\r\n', { commands: ['get'] }, /a length is negative/],
    ['a length of gigabytes', '$999999999999\r\nabc', { commands: ['get'] }, /a length is too large/],
    ['a billion elements', '*1000000000\r\n:1\r\n', { commands: ['get'] }, /a length is too large/],
    ['a million elements and more', '*1048577\r\n:1\r\n', { commands: ['EVALSHA'] }, /a length is too large/],
    [
      'nested elements for which no reply has room',
      '*1\r\n*16385\r\n:1\r\n',
      { commands: ['get'] },
      /a length is too large/,
    ],
    ['a string longer than any text', `$${MAX_STRING_LENGTH + 1}\r\nx`, { commands: ['get'] }, /a length is too large/],
    [
      'a message of more than 1 MiB',
      '>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1048577\r\nx',
      { subscribed: true },
      /a length is too large/,
    ],
    [
      'a message of more than 1 MiB with RESP2, right after the subscription',
      '*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1048577\r\nx',
      { protocol: 2, commands: ['subscribe'] },
      /a length is too large/,
    ],
    ['ten thousand levels', '*1\r\n'.repeat(10_000), { commands: ['get'] }, /nested too deep/],
    ['a text of HTTP', 'HTTP/1.1 400 Bad Request\r\n\r\n', { commands: ['get'] }, /an unknown type/],
    ['zeros', '\0'.repeat(64), { commands: ['get'] }, /an unknown type/],
    ['a string that is shorter than its length', '$2\r\nabc\r\n', { commands: ['get'] }, /a string does not end/],
    ['a line without an end', `+${'x'.repeat(70_000)}`, { commands: ['get'] }, /a line is too long/],
    ['an integer of letters', ':1a\r\n', { commands: ['get'] }, /a value is not of its type/],
    ['a push of nil', '>1\r\n_\r\n', { commands: ['get'] }, /a message without a kind/],
    ['an empty push', '>0\r\n', {}, /a message without a kind/],
    ['a message of one part', '>1\r\n$7\r\nmessage\r\n', { subscribed: true }, /a message without its parts/],
    ['a message of nil', '>3\r\n$7\r\nmessage\r\n_\r\n_\r\n', { subscribed: true }, /a message without its parts/],
    [
      'a message of nil with RESP2',
      '*3\r\n$7\r\nmessage\r\n$-1\r\n$-1\r\n',
      { protocol: 2, subscribed: true },
      /a message without its parts/,
    ],
    [
      'an empty array with RESP2',
      '*0\r\n',
      { protocol: 2, subscribed: true, commands: ['ping'] },
      /a message without a kind/,
    ],
    ['nil that was not asked for with RESP2', '$-1\r\n', { protocol: 2, subscribed: true }, /a reply to no command/],
    [
      'a subscription that was not asked for',
      '>3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n',
      { commands: ['get'] },
      /not asked for/,
    ],
    [
      'an end of a subscription that was not asked for',
      '>3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n',
      { subscribed: true },
      /not asked for/,
    ],
    [
      'another channel than the one that was asked for',
      '>3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:1\r\n',
      { commands: ['subscribe'] },
      /not asked for/,
    ],
    [
      'another channel with RESP2',
      '*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:1\r\n',
      { protocol: 2, commands: ['subscribe'] },
      /not asked for/,
    ],
    [
      'the end of another channel than the one that was asked for',
      '>3\r\n$11\r\nunsubscribe\r\n$1\r\nd\r\n:1\r\n',
      { subscribed: true, commands: ['unsubscribe'] },
      /not asked for/,
    ],
    [
      'another channel as the second of two',
      '>3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:2\r\n',
      { commands: ['subscribe'], channels: ['c', 'e'] },
      /not asked for/,
    ],
    ['nil in reply to SUBSCRIBE', '_\r\n', { commands: ['subscribe'] }, /a reply that its command does not have/],
    [
      'a subscription of nil',
      '>3\r\n$9\r\nsubscribe\r\n_\r\n:1\r\n',
      { commands: ['subscribe'] },
      /a message without its parts/,
    ],
    ['an integer in reply to INFO', ':1\r\n', { commands: ['info'] }, /a reply that its command does not have/],
    ['nil in reply to nothing', '$-1\r\n', {}, /a reply to no command/],
    [
      'a message without a subscription',
      '>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nv\r\n',
      { commands: ['get'] },
      /without a subscription/,
    ],
    [
      'small pushes without end',
      `>2\r\n+stray\r\n$100\r\n${'x'.repeat(100)}\r\n`.repeat(10_000),
      { commands: ['get'] },
      /too many pushes/,
    ],
    [
      'large pushes without end',
      `>2\r\n+stray\r\n$700000\r\n${'x'.repeat(700_000)}\r\n`.repeat(2),
      { commands: ['get'] },
      /too many pushes/,
    ],
    ['a reply that comes twice', '$1\r\na\r\n$1\r\na\r\n', { commands: ['get'] }, /a reply to no command/],
  ]
  for (const [what, bytes, setup, reason] of WRONG) {
    it(`${what} ends the connection, in one piece and byte by byte`, () => {
      for (const chunks of [
        [bytes],
        bytes.length < 1_000 ? Array.from(bytes, (byte) => byte) : [bytes.slice(0, 9), bytes.slice(9)],
      ]) {
        const { errors } = connection(setup)
          .guard()
          .open()
          .write(...chunks)
        expect(errors.map(String)).to.have.lengthOf(1)
        expect(errors[0]).to.be.instanceOf(ProtocolError)
        expect(errors[0]?.message).to.match(reason)
      }
    })
  }

  it('lets a whole list have more elements, and a reply that is no message longer strings', () => {
    for (const [protocol, command] of [
      [2, 'LRANGE'],
      [3, 'LRANGE'],
      [2, 'ZRANGE'],
    ] as const) {
      const made = connection({ protocol, commands: [command, 'get'] })
        .guard()
        .open()
      made.write(`*1048577\r\n${':1\r\n'.repeat(1_048_577)}*1\r\n$1048577\r\n${'x'.repeat(1_048_577)}\r\n`)
      expect(made.errors).to.eql([])
      expect(made.replies.map((reply) => (reply as unknown[]).length)).to.eql([1_048_577, 1])
    }
  })

  it('passes on what came before a wrong byte, and rejects the rest', () => {
    const { replies } = connection({ commands: ['get', 'get', 'get'] })
      .guard()
      .open()
      .write('+a\r\n$1\r\nb\r\n$x\r\nc\r\n')
    expect(replies.slice(0, 2).map(String)).to.eql(['a', 'b'])
    expect(replies[2]).to.be.instanceOf(ProtocolError)
  })

  it('lets errors answer SUBSCRIBE, and unknown pushes pass', () => {
    const made = connection({ commands: ['subscribe', 'get'] })
      .guard()
      .open()
    made.write('-NOPERM no\r\n>2\r\n+unknown\r\n_\r\n+OK\r\n')
    expect(made.errors).to.eql([])
    expect(made.replies.map(String)).to.eql(['ReplyError: NOPERM no', 'OK'])
  })

  it('counts unknown pushes only since the last reply', () => {
    const many = `>2\r\n+stray\r\n$100\r\n${'x'.repeat(100)}\r\n`.repeat(5_000)
    const made = connection({ commands: ['get', 'get', 'get'] })
      .guard()
      .open()
    made.write(many, '+a\r\n', many, '+b\r\n', many, '+c\r\n')
    expect(made.errors).to.eql([])
    expect(made.replies.map(String)).to.eql(['a', 'b', 'c'])
  })

  it('lets subscriptions, their messages and what else is asked pass with RESP2 and RESP3', () => {
    for (const [protocol, sign] of [
      [2, '*'],
      [3, '>'],
    ] as const) {
      const bytes = Buffer.from(
        `+OK\r\n${sign}3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n${sign}3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nv\r\n` +
          `${protocol === 2 ? '*2\r\n$4\r\npong\r\n$1\r\nn\r\n' : '$1\r\nn\r\n'}${sign}3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n`,
      )
      for (let at = 0; at <= bytes.length; at++) {
        const made = connection({ protocol, commands: ['select', 'subscribe', 'ping', 'unsubscribe'] })
          .guard()
          .open()
        made.write(bytes.subarray(0, at), bytes.subarray(at))
        expect(made.errors, `RESP${protocol} split at ${at}`).to.eql([])
        expect(made.messages).to.eql([['c', 'v']])
        expect(made.replies).to.have.lengthOf(4)
      }
    }
  })

  it('lets channels of several commands pass in their order, wherever the bytes are split', () => {
    const channels = ['a', 'a', 'ü\ud800', 'x'.repeat(20_000)]
    const acknowledged = (kind: string): string =>
      channels
        .map((each) => `>3\r\n$${kind.length}\r\n${kind}\r\n$${Buffer.byteLength(each)}\r\n${each}\r\n:1\r\n`)
        .join('')
    const bytes = Buffer.from(['subscribe', 'subscribe', 'unsubscribe'].map(acknowledged).join(''))
    for (let at = 0; at <= bytes.length; at += at % 20_300 < 400 ? 1 : 97) {
      const made = connection({ commands: ['subscribe', 'subscribe', 'unsubscribe'], channels })
        .guard()
        .open()
      made.write(bytes.subarray(0, at), bytes.subarray(at))
      expect(made.errors, `split at ${at}`).to.eql([])
      expect(made.replies).to.have.lengthOf(3)
    }
  })

  it('accepts the acknowledgements of an UNSUBSCRIBE without channels', () => {
    const made = connection({ subscribed: true, commands: ['unsubscribe'], channels: [] })
      .guard()
      .open()
    made.write('>3\r\n$11\r\nunsubscribe\r\n$1\r\nd\r\n:0\r\n')
    expect(made.errors).to.eql([])
  })

  it('leaves ioredis no input on which it loops or throws, of 10,000 with wrong bytes', async function () {
    this.timeout(30_000)
    const seed = randomInt(2 ** 31)
    const draw = randomFrom(seed)
    const upTo = (n: number): number => Math.floor(draw() * n)
    const whole = frames(Buffer.from(EVERYTHING, 'latin1'))
    const subscriptions = [
      '>3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n',
      '*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nv\r\n',
    ]
    const base = [...whole, ...subscriptions.map((text) => Buffer.from(text)), Buffer.from('$-1\r\n')]
    const special = Buffer.from('+-:$*%>_\r\n0919')
    let refused = 0
    for (let i = 0; i < 10_000; i++) {
      let bytes = Buffer.concat(Array.from({ length: 1 + upTo(4) }, () => base[upTo(base.length)] as Buffer))
      for (let changes = upTo(4); changes > 0 && bytes.length > 2; changes--) {
        const at = upTo(bytes.length)
        const how = upTo(3)
        if (how === 0) bytes[at] = special[upTo(special.length)] as number
        else if (how === 1) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)])
        else bytes[at] = upTo(256)
      }
      const cut = upTo(bytes.length + 1)
      const { errors } = connection({
        protocol: upTo(2) === 0 ? 2 : 3,
        subscribed: upTo(2) === 0,
        commands: Array.from({ length: upTo(5) }, () => ['get', 'subscribe', 'unsubscribe', 'get'][upTo(4)] as string),
      })
        .guard()
        .open()
        .write(bytes.subarray(0, cut), bytes.subarray(cut), '+OK\r\n:1\r\n')
      expect(
        errors.every((error) => error instanceof ProtocolError),
        `${String(errors)} with seed ${seed}`,
      ).to.equal(true)
      refused += errors.length
    }
    await new Promise((resolve) => setImmediate(resolve)) // what ioredis throws it throws in a later turn, and Mocha catches it
    expect(refused).to.be.above(2_000)
  })
})

function frames(bytes: Buffer): Buffer[] {
  const scanner = new ReplyScanner()
  const found: Buffer[] = []
  for (let at = 0, end; (end = scanner.next(bytes, at)) !== -1; at = end) found.push(bytes.subarray(at, end))
  return found
}
