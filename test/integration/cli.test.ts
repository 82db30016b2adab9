/** The command line as a user has it: a process of its own, its output, and its exit code. */
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { codecs, dueOf } from '../../src/index.js'
import { cli, inProcess, type Result } from '../support/cli.js'
import { freePort, requireServerBin, startCluster, startRedis } from '../support/redis-server.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, javaEntry, javaOffer, onCleanup, rawKeys, rawState, redisNow } from './fixtures.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const COMMANDS = ['offer', 'peek', 'stats', 'cancel']

/** The JSON document of a command that succeeds. */
async function json([command = '', ...args]: readonly string[], run = inProcess): Promise<unknown> {
  const { code, out, err } = await run([command, '--json', ...args])
  expect({ code, err }).to.deep.equal({ code: 0, err: '' })
  return JSON.parse(out)
}

/** Nothing on stdout, and one line for people on stderr. */
function expectFailure({ code, out, err }: Result, exitCode: number, says: RegExp): void {
  expect(err).to.match(/^redelayed: [^\n]+\n$/)
  expect(err).to.match(says)
  expect({ code, out }).to.deep.equal({ code: exitCode, out: '' })
}

/** Several processes at once, but not all. */
async function inParallel<T>(items: readonly T[], action: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items]
  const worker = async (): Promise<void> => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await action(item)
  }
  await Promise.all(Array.from({ length: 6 }, worker))
}

describe('the command line', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  it('has help for the program and for every command, and a version', async () => {
    const { code, out, err } = await cli(['--help'])
    expect({ code, err }).to.deep.equal({ code: 0, err: '' })
    for (const word of [...COMMANDS, '--url', '--json', 'REDIS_URL']) expect(out).to.include(word)
    await inParallel(COMMANDS, async (command) => {
      const help = await cli([command, '--help'])
      expect({ code: help.code, err: help.err }).to.deep.equal({ code: 0, err: '' })
      expect(help.out).to.match(new RegExp(`Usage:\\n +\\$ redelayed ${command} [<[]`))
      expect(help.out).to.include('--url <url>').and.include('Examples:')
    })
    const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string }
    expect((await cli(['--version'])).out).to.match(new RegExp(`^redelayed/${version} `))
  })

  it('refuses wrong usage with exit code 2 and one line', async () => {
    const queue = uniqueName('usage')
    const ticketOfOther = await offered(uniqueName('other'), '1', '1h')
    const cases: [args: string[], says: RegExp][] = [
      [[], /no command given; expected one of offer, peek, stats, cancel/],
      [['nonsense'], /unknown command "nonsense"/],
      [['nonsense', '--help'], /unknown command "nonsense"/],
      [['offer', queue, '1'], /missing required args/],
      [['offer', queue, '1', '5s', 'more'], /Unused args: `more`/],
      [['offer', queue, '1', '5x'], /delay: expected .* got "5x"/],
      [['offer', queue, '1', '-5'], /delay: expected .* got "-5"/],
      [['offer', queue, '1', '1.5ms'], /delay: expected whole milliseconds/],
      [['offer', queue, '1', '9007199254740993'], /delay/],
      [['offer', queue, '1', '9007199254740991'], /due time is at most/],
      [['offer', queue, 'not json', '5s'], /value: expected JSON/],
      [['offer', queue, 'null', '5s'], /value: expected a value, got null/],
      [
        ['offer', queue, '1', '5s', '--codec', 'xml'],
        /--codec: expected msgpack, json, string, jsonJackson, .*, got "xml"/,
      ],
      [['offer', queue, '1', '5s', '--layout', 'both'], /--layout: expected redisson, compact, wheel, got "both"/],
      [['offer', '', '1', '5s'], /name: expected a non-empty string/],
      [['peek', queue, '--limit', '0'], /--limit: expected a whole number from 1 to 1000, got "0"/],
      [['peek', queue, '--limit', '-3'], /got "-3"/],
      [['peek', queue, '--limit', '1e2x'], /got "1e2x"/],
      [['peek', queue, '--limit'], /value is missing/],
      [['peek', queue, '--frobnicate'], /Unknown option `--frobnicate`/],
      [['peek', queue, queue], /Unused args/],
      [['stats', queue, '--limit', '3'], /Unknown option `--limit`/],
      [['doctor', '--within', '5ms'], /--within: expected 1s to 1d, got "5ms"/],
      [['doctor', queue, '--within', '5s', '--fix'], /--within: not together with --fix/],
      [['ui', '--read-only'], /Unknown option `--read-only`/],
      [['stats', queue, '--url'], /value is missing/],
      [['stats', queue, '--url', 'http://127.0.0.1'], /url: expected the scheme redis/],
      [['stats', queue, '--url', redisUrl(), '--url', redisUrl()], /--url: given more than once/],
      [['cancel', queue], /missing required args/],
      [['cancel', queue, 'abc'], /expected a ticket as returned by offer, got a string of 3 characters/],
      [['cancel', queue, ticketOfOther], /issued by another queue, or was damaged/],
    ]
    for (const [args, says] of cases) expectFailure(await inProcess(args), 2, says)
    await inParallel(cases.slice(0, 6), async ([args, says]) => expectFailure(await cli(args), 2, says))
    expect(await rawClient().exists(rawKeys(queue).timeouts)).to.equal(0)
  })

  describe('offer', () => {
    it('adds a message to the schedule and to the order list, and prints the ticket alone on stdout, the due time on stderr', async () => {
      const queue = uniqueName('offer')
      const before = Math.floor(await redisNow())
      const { code, out, err } = await cli(['offer', queue, '{"id":17,"tags":["é"]}', '90s'])
      expect(code).to.equal(0)
      const [, ticket = ''] = /^(\S+)\n$/.exec(out) ?? []
      const [, due = ''] = /^due (\S+) \(in 1.5 min\)\n$/.exec(err) ?? []
      expect(Date.parse(due)).to.equal(dueOf(ticket))
      expect(dueOf(ticket)).to.be.within(before + 90_000, (await redisNow()) + 90_000)

      const { timeouts, order } = rawKeys(queue)
      const [entry, score] = await rawClient().zrangeBuffer(timeouts, '0', '-1', 'WITHSCORES')
      expect(Number(score)).to.equal(dueOf(ticket))
      expect(await rawClient().lrangeBuffer(order, 0, -1)).to.deep.equal([entry])
      expect(codecs.msgpack().decode(entry!.subarray(17))).to.deep.equal({ id: 17, tags: ['é'] })
    })

    it('prints JSON, stores with other codecs, and leaves the order list out', async () => {
      const stored: [args: string[], payload: string][] = [
        [['{"a": 1}', '1h', '--codec', 'json'], '{"a":1}'],
        [['plain text', '1h', '--codec', 'string'], 'plain text'],
        [['--codec=string', '--', '--json', '1h'], '--json'],
      ]
      await inParallel(stored, async ([args, payload]) => {
        const queue = uniqueName('codec')
        const { code, out, err } = await cli(['offer', '--json', queue, '--layout', 'compact', ...args])
        expect({ code, err }).to.deep.equal({ code: 0, err: '' })
        expect(JSON.parse(out)).to.have.keys('queue', 'ticket', 'due', 'dueAt')
        const { timeouts, order } = rawKeys(queue)
        const [entry] = await rawClient().zrangeBuffer(timeouts, '0', '-1')
        expect(entry!.subarray(1 + entry![0]! + 8).toString()).to.equal(payload)
        expect(await rawClient().exists(order)).to.equal(0)
      })
    })

    it('takes delays in all units', async () => {
      const delays: [text: string, ms: number][] = [
        ['60000', 60_000],
        ['70000ms', 70_000],
        ['64.35s', 64_350],
        ['2m', 120_000],
        ['1.5h', 5_400_000],
        ['2d', 172_800_000],
      ]
      for (const [text, ms] of delays) {
        const before = Math.floor(await redisNow())
        const { due, dueAt } = (await json(['offer', uniqueName('delay'), '-5', text])) as {
          due: number
          dueAt: string
        }
        expect(due - ms).to.be.within(before, await redisNow())
        expect(Date.parse(dueAt)).to.equal(due)
      }
    })
  })

  describe('peek', () => {
    it('shows the next due messages and the ready ones, and takes no message', async () => {
      const queue = uniqueName('peek')
      const now = Math.floor(await redisNow())
      await javaOffer(queue, text('later'), now + 7_260_000)
      await javaOffer(queue, text('soon\x1b[31m\u202e'), now + 3_660_000)
      await javaOffer(queue, text('last'), now + 9_900_000)
      await rawClient().rpush(queue, text('one'), text('two'), text('three'))
      const state = await rawState(queue)

      const { code, out, err } = await cli(['peek', queue, '--limit', '2'])
      expect({ code, err }).to.deep.equal({ code: 0, err: '' })
      const lines = out.trimEnd().split('\n')
      expect(lines[0]).to.equal('3 pending (2 shown, next due first)')
      expect(lines[1]).to.match(/^ {2}DUE +TICKET +VALUE$/)
      expect(lines[2]).to.match(
        /^ {2}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \(in 1 h\) {2}[\w-]{24} {2}"soon\\u001b\[31m\\u202e"$/,
      )
      expect(lines[3]).to.match(/\(in 2 h\) {2}[\w-]{24} {2}"later"$/)
      expect(lines.slice(4)).to.deep.equal([
        '3 delivered and not taken yet (2 shown, next taken first)',
        '  "one"',
        '  "two"',
      ])
      expect(await rawState(queue)).to.deep.equal(state)
    })

    it('prints JSON with tickets that cancel takes, also those of Java that begin with a hyphen', async () => {
      const queue = uniqueName('peek')
      const { timeouts, order } = rawKeys(queue)
      const entry = javaEntry(text('from Java'))
      entry[1] = 0xfb
      const due = Math.floor(await redisNow()) + 3_600_000
      await rawClient().multi().zadd(timeouts, due, entry).rpush(order, entry).exec()

      const document = (await json(['peek', queue])) as { scheduled: { ticket: string }[] }
      const { ticket } = document.scheduled[0]!
      expect(document).to.deep.include({ queue, pending: 1, delivered: 0, ready: [] })
      expect(document.scheduled).to.deep.equal([
        { value: 'from Java', due, ticket, dueAt: new Date(due).toISOString() },
      ])
      expect(ticket).to.match(/^-/)

      expect(await json(['cancel', queue, ticket], cli)).to.deep.equal({ queue, ticket, cancelled: true })
      expect(await rawClient().exists(timeouts, order)).to.equal(0)
    })

    it('shows undecodable payloads as hex, with their tickets, and warns once', async () => {
      const queue = uniqueName('peek')
      const due = Math.floor(await redisNow()) + 3_600_000
      const long = `{"not":"${'x'.repeat(1_000)}"}`
      await javaOffer(queue, '{"not":"msgpack"}', due)
      await javaOffer(queue, long, due + 1)
      await rawClient().rpush(queue, text('readable'), '{"a":1}')
      const state = await rawState(queue)
      const hex = Buffer.from('{"not":"msgpack"}').toString('hex')

      const { code, out, err } = await inProcess(['peek', queue])
      expect(code).to.equal(0)
      expect(err).to.match(/^redelayed: 3 elements shown as hex, because --codec does not fit: [^\n]*msgpack[^\n]*\n$/)
      const lines = out.trimEnd().split('\n')
      expect(lines[2]).to.match(new RegExp(`[\\w-]{24} {2}0x${hex} \\(17 bytes, cannot be decoded\\)$`))
      expect(lines[3]).to.match(/ 0x[0-9a-f]{48}… \(1010 bytes, cannot be decoded\)$/)
      expect(lines.slice(4)).to.deep.equal([
        '2 delivered and not taken yet (next taken first)',
        '  "readable"',
        '  0x7b2261223a317d (7 bytes, cannot be decoded)',
      ])

      const printed = await inProcess(['peek', queue, '--json'])
      const document = JSON.parse(printed.out) as {
        scheduled: { ticket: string; value: unknown }[]
        ready: unknown[]
        undecodable: { list: string; index: number; hex: string; size: number; problem: string }[]
      }
      expect(document.scheduled.map(({ value }) => value)).to.deep.equal([null, null])
      expect(document.ready).to.deep.equal(['readable', null])
      expect(
        document.undecodable.map(({ list, index, hex: { length }, size }) => [list, index, length, size]),
      ).to.deep.equal([
        ['scheduled', 0, 34, 17],
        ['scheduled', 1, 512, 1_010],
        ['ready', 1, 14, 7],
      ])
      expect(await rawState(queue)).to.deep.equal(state)
      const { ticket } = document.scheduled[0]!
      expect(await json(['cancel', queue, ticket])).to.deep.include({ cancelled: true })
      expect((await inProcess(['peek', queue, '--codec', 'json'])).out).to.include('{"not":"xxx')
    })

    it('reads five entries of a quarantine, as each can have any size, and shows their number', async () => {
      const queue = uniqueName('peek')
      const entries = Array.from({ length: 12 }, (_, n) => `malformed ${n + 1} entry ${n}`)
      await rawClient().rpush(rawKeys(queue).quarantine, ...entries)
      const { quarantined } = (await json(['peek', queue])) as { quarantined: { hex: string }[] }
      const texts = quarantined.map(({ hex }) => Buffer.from(hex, 'hex').toString())
      expect(texts).to.deep.equal(['entry 0', 'entry 1', 'entry 2', 'entry 3', 'entry 4'])
      const { out } = await inProcess(['peek', queue])
      expect(out).to.include('12 set aside, because they cannot be read (5 shown, oldest first)')
    })

    it('reads and writes with the codecs of Java, by their names', async () => {
      const values: Record<string, string> = {
        jsonJackson: '{"a":1}',
        typedJsonJackson: '{"a":1}',
        msgpackJackson: '{"a":1}',
        cborJackson: '{"a":1}',
        kryo5: '"text"',
        lz4: '"text"',
        lz4V2: '"text"',
        snappyV2: '"text"',
        long: '9007199254740991',
        integer: '-5',
        double: '1.5',
      }
      for (const [codec, value] of Object.entries(values)) {
        const queue = uniqueName('peek')
        await json(['offer', queue, value, '1h', '--codec', codec])
        const { scheduled } = (await json(['peek', queue, '--codec', codec])) as { scheduled: { value: unknown }[] }
        expect(
          scheduled.map((each) => each.value),
          codec,
        ).to.deep.equal([JSON.parse(value)])
      }
      const queue = uniqueName('peek')
      await rawClient().rpush(queue, 'bytes')
      expect(await json(['peek', queue, '--codec', 'byteArray'])).to.deep.include({ ready: ['Ynl0ZXM='] })
    })
  })

  describe('stats', () => {
    it('counts pending and overdue messages, and reports when no client delivers', async () => {
      const [queue, empty] = [uniqueName('stats'), uniqueName('stats')]
      const now = Math.floor(await redisNow())
      await javaOffer(queue, text('overdue'), now - 7_200_500)
      await javaOffer(queue, text('overdue too'), now - 100)
      await javaOffer(queue, text('later'), now + 3_600_000)
      await rawClient().rpush(queue, text('one'), text('two'))
      await rawClient().rpush(rawKeys(queue).quarantine, 'malformed 1 x')
      const state = await rawState(queue)

      const { code, out, err } = await inProcess(['stats', queue, empty])
      expect({ code, err }).to.deep.equal({ code: 0, err: '' })
      const [headings, first, second, ...advice] = out
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {2,}/))
      expect(headings).to.deep.equal([
        'QUEUE',
        'PENDING',
        'OVERDUE',
        'NEXT DUE',
        'DELIVERED',
        'QUARANTINED',
        'SUBSCRIBERS',
      ])
      expect(first!.map((cell) => cell.replace(/^\S+Z/, 'Z'))).to.deep.equal([
        queue,
        '3',
        '2 (by up to 2 h)',
        'Z (2 h ago)',
        '2',
        '1',
        '0',
      ])
      expect(second).to.deep.equal([empty, '0', '0', '-', '0', '0', '0'])
      expect(advice.flat()).to.deep.equal([
        `${queue}: no client delivers this queue now; one that consumes it, or calls getDelayedQueue on it, does.`,
      ])
      // the commands themselves must not become the ones who deliver
      expect(await rawState(queue)).to.deep.equal(state)
    })

    it('prints JSON, one object for each queue, with the number of subscribers', async () => {
      const queue = uniqueName('stats')
      const subscriber = rawClient().duplicate()
      onCleanup(() => subscriber.quit())
      await subscriber.subscribe(rawKeys(queue).channel)
      const due = Math.floor(await redisNow()) - 5_000
      await javaOffer(queue, text('x'), due)
      const [stats] = (await json(['stats', queue])) as { now: number }[]
      expect(stats).to.deep.equal({
        queue,
        kind: 'delayed',
        now: stats!.now,
        pending: 1,
        overdue: 1,
        oldestOverdueMs: stats!.now - due,
        nextDue: due,
        delivered: 0,
        quarantined: 0,
        subscribers: 1,
        nextDueAt: new Date(due).toISOString(),
        shards: null,
      })
      expect((await inProcess(['stats', queue])).out).not.to.include('no client delivers')
    })

    it('takes names that look like numbers as they are', async () => {
      const [first, second] = (await json(['stats', '007', '--', '-1'], cli)) as { queue: string }[]
      expect([first!.queue, second!.queue]).to.deep.equal(['007', '-1'])
    })
  })

  describe('cancel', () => {
    it('removes a pending message; a second time it is a failure', async () => {
      const queue = uniqueName('cancel')
      const [first, second] = [await offered(queue, '1', '1h'), await offered(queue, '2', '1h')]
      expect(await cli(['cancel', queue, first])).to.deep.equal({ code: 0, out: 'cancelled\n', err: '' })
      expect(await rawClient().zcard(rawKeys(queue).timeouts)).to.equal(1)
      expectFailure(await inProcess(['cancel', queue, first]), 1, /nothing was cancelled/)

      const again = await inProcess(['cancel', queue, first, '--json'])
      expect(again.code).to.equal(1)
      const { error } = JSON.parse(again.err) as { error: object }
      expect(error).to.include({ code: 'ERR_FAILED', exitCode: 1 })
      expect(JSON.parse(again.out)).to.deep.equal({ queue, ticket: first, cancelled: false })
      expect(await json(['cancel', queue, second])).to.deep.equal({ queue, ticket: second, cancelled: true })
      expect(await rawClient().exists(rawKeys(queue).timeouts)).to.equal(0)
    })
  })

  describe('when something is wrong with the server', () => {
    it('fails soon without a server, and does not show the password', async () => {
      const started = performance.now()
      const url = `redis://user:sec@ret@127.0.0.1:${await freePort()}`
      const result = await cli(['stats', 'q', '--url', url])
      expect(performance.now() - started).to.be.below(10_000)
      expectFailure(result, 1, /no connection to Redis within 3 s.*ECONNREFUSED/)
      expect(result.err).not.to.include('ret')
      expectFailure(await cli(['stats', 'q'], { REDIS_URL: url }), 1, /ECONNREFUSED/)
    })

    it('never shows a password in the wrong place', async () => {
      const result = await cli(['peek', 'q', 'redis://:sec@ret@127.0.0.1'])
      expectFailure(result, 2, /Unused args: `redis:\/\/\*\*\*@127\.0\.0\.1`/)
    })

    it('says that the password is wrong', async function () {
      requireServerBin(this)
      const server = await startRedis({ args: ['--requirepass', 'right'] })
      onCleanup(() => server.stop())
      const at = (password: string) => `redis://:${password}@127.0.0.1:${server.port}`
      const wrong = await inProcess(['stats', 'q', '--url', at('wr0ng')])
      expectFailure(wrong, 1, /WRONGPASS/)
      expect(wrong.err).not.to.include('wr0ng')
      expectFailure(await inProcess(['stats', 'q', '--url', server.url]), 1, /NOAUTH/)
      const { err, out } = await inProcess(['stats', 'q', '--json', '--url', server.url])
      const { error } = JSON.parse(err) as { error: object }
      expect(error).to.include({ code: 'ERR_AUTH', exitCode: 1 })
      expect(out).to.equal('')
      expect((await inProcess(['stats', 'q', '--url', at('right')])).code).to.equal(0)
    })

    it('says that a key is of another type', async () => {
      const queue = uniqueName('wrongtype')
      await rawClient().set(queue, 'in the way')
      for (const command of ['stats', 'peek'])
        expectFailure(await inProcess([command, queue]), 1, /another type of value/)
    })
  })

  it('works on a cluster', async function () {
    requireServerBin(this)
    const cluster = await startCluster()
    onCleanup(() => cluster.stop())
    const global = ['--cluster', '--url', `redis://127.0.0.1:${cluster.nodes[0]!.port}`]
    for (const queue of ['a', 'b', 'c']) {
      const { ticket } = (await json(['offer', ...global, queue, '1', '1h'])) as { ticket: string }
      expect(await json(['stats', ...global, queue])).to.have.nested.property('[0].pending', 1)
      expect(await json(['cancel', ...global, queue, ticket])).to.deep.include({ cancelled: true })
    }
  })
})

/** The bytes of a text in MessagePack, the default codec. */
function text(value: string): Buffer {
  return codecs.msgpack().encode(value)
}

async function offered(queue: string, value: string, delay: string): Promise<string> {
  return ((await json(['offer', queue, value, delay])) as { ticket: string }).ticket
}
