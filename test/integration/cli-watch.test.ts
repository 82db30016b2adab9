/** `redelayed watch`: what it says of queues that are at work, and how it ends. */
import { expect } from 'chai'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { openAccess } from '../../src/doctor/access.js'
import { screenOn } from '../../src/cli/screen.js'
import { Watcher, type Observation } from '../../src/cli/watched.js'
import { inProcess, spawnAtTerminal, spawnCli } from '../support/cli.js'
import { freePort, requireServerBin, startRedis } from '../support/redis-server.js'
import { redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, javaOffer, makeClient, onCleanup, redisNow } from './fixtures.js'

const HOUR = 3_600_000

/** A watcher of one reliable queue; each look is one observation. */
async function makeWatcher(queue: string, shards: readonly string[] | null = null) {
  const client = makeClient()
  const access = await openAccess({ url: redisUrl() })
  onCleanup(() => access.close())
  const reliable = (name: string) => client.getReliableQueue(name)
  const stats = (name: string) => client.getDelayedQueue(client.getQueue(name), { deliver: false }).stats()
  const watcher = new Watcher({ access, reliable, stats }, { delayed: [], reliable: [{ queue, shards }] })
  return async (): Promise<Observation> => (await watcher.look())[0] as Observation
}

/** The program in a process of its own, line by line. */
function start(args: readonly string[]) {
  const child = spawnCli(['watch', ...args])
  onCleanup(() => child.kill('SIGKILL'))
  let err = ''
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const line = async (): Promise<string> => {
    const { value } = (await lines.next()) as { value?: string }
    return value ?? expect.fail(`the program has ended: ${err}`)
  }
  const end = async (): Promise<{ code: unknown; err: string }> => {
    const [code] = child.exitCode === null ? ((await once(child, 'exit')) as unknown[]) : [child.exitCode]
    return { code, err }
  }
  return { child, line, end }
}

describe('redelayed watch', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  it('counts changes between two readings of the change stream, and the lateness of deliveries', async () => {
    const name = uniqueName('watch')
    forgetReliable(name)
    const queue = makeClient().getReliableQueue<string>(name)
    await queue.setConfig({ changes: { keep: 'recent' } })
    await queue.add('before')
    const look = await makeWatcher(name)
    expect(await look()).to.deep.include({ pending: 1, due: 1, inFlight: 0, growth: null, rates: null, lateness: null })

    await queue.addMany(Array.from({ length: 7 }, (_, n) => ({ payload: 'x', id: `x${n}` })))
    const messages = await queue.pollMany({ count: 5 })
    await queue.acknowledge(...messages.slice(0, 2))
    await queue.negativeAcknowledge(messages.slice(2, 3), { delay: HOUR })
    await queue.negativeAcknowledge(messages.slice(3, 4), { reject: true })
    const second = await look()
    expect(second).to.include({ pending: 4, due: 3, inFlight: 1, dead: 1, isPartial: false })
    const { added, polled, acknowledged, failed, dead } = second.rates!
    // per second, of a time that is not known here
    expect(
      [polled / added, acknowledged / added, failed / added, dead / added].map((each) => Math.round(each * 7)),
    ).to.deep.equal([5, 2, 1, 1])
    expect(second.growth! / added).to.be.closeTo(4 / 7, 1e-9)
    // of the first message the watch has not seen when it was due
    expect(second.lateness!.messages).to.equal(4)
    expect(second.lateness!.medianMs).to.be.within(0, second.lateness!.mostMs)

    await queue.setConfig({ changes: false })
    expect((await look()).rates).to.equal(null)
    await queue.setConfig({ changes: { keep: 'recent' } })
    expect((await look()).rates).to.equal(null)
    await queue.add('y')
    expect((await look()).rates!.added).to.be.greaterThan(0)
  })

  it('reports more changes than it reads, and continues with the last ones', async () => {
    const name = uniqueName('watch')
    forgetReliable(name)
    const client = makeClient()
    const queue = client.getReliableQueue<number>(name)
    await queue.setConfig({ changes: { keep: 'recent', maxLength: 100_000 } })
    const look = await makeWatcher(name)
    await look()
    // one entry for each script: 20 pages of 500 are read. What one queue object adds in one turn is one script.
    const queues = Array.from({ length: 500 }, () => client.getReliableQueue<number>(name))
    for (let n = 0; n < 21; n++) await Promise.all(queues.map((each) => each.add(n)))
    expect(await look()).to.include({ isPartial: true, pending: 10_500 })
    await queue.add(1)
    const { isPartial, rates, growth } = await look()
    expect(isPartial).to.equal(false)
    expect(rates!.added).to.be.closeTo(growth!, 1e-9)
  })

  it('sums up the shards of a queue', async () => {
    const queue = makeClient().getShardedReliableQueue<number>(uniqueName('watch'), { shards: 3 })
    for (const name of queue.names) forgetReliable(name)
    await queue.setConfig({ changes: { keep: 'recent' } })
    const look = await makeWatcher(queue.name, queue.names)
    await look()
    await queue.addMany(Array.from({ length: 30 }, (_, payload) => ({ payload })))
    const { shards, pending, rates, growth } = await look()
    expect({ shards, pending }).to.deep.equal({ shards: 3, pending: 30 })
    expect(rates!.added).to.be.closeTo(growth!, 1e-9)
  })

  it('prints a line for each round and queue, with --json one document, and ends after --count', async () => {
    const [reliable, delayed] = [uniqueName('watch'), uniqueName('watch')]
    forgetReliable(reliable)
    const queue = makeClient().getReliableQueue<string>(reliable)
    await queue.add('x')
    await queue.disableOperation('poll')
    await javaOffer(delayed, 'x', Math.floor(await redisNow()) - 5_000)

    const { code, out, err } = await inProcess(['watch', reliable, delayed, '--count', '2', '--interval', '100ms'])
    expect({ code, err }).to.deep.equal({ code: 0, err: '' })
    const lines = out.trimEnd().split('\n')
    expect(lines).to.have.lengthOf(4)
    expect(lines[0]).to.match(/^\S+Z delayed "\S+": pending: 1, due: 1, oldest: [^,]+, not delivered$/)
    expect(lines[3]).to.match(
      /^\S+Z reliable "\S+": pending: 1, due: 1, oldest: [^,]+, in flight: 0, dead: 0, growth: 0\.0\/s, paused$/,
    )

    const printed = await inProcess(['watch', reliable, '--json', '--count', '2', '--interval', '100ms'])
    const documents = printed.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { queues: object[] })
    expect(documents).to.have.lengthOf(2)
    expect(documents[1]!.queues[0]).to.include({
      queue: reliable,
      kind: 'reliable',
      pending: 1,
      growth: 0,
      hint: 'paused',
    })
  })

  it('refuses intervals and counts that make no sense', async () => {
    const cases: [args: string[], says: RegExp][] = [
      [['--interval', '99'], /--interval: expected 100ms to 1h, got "99"/],
      [['--interval', '2h'], /--interval: expected 100ms to 1h/],
      [['--count', '0'], /--count: expected a whole number/],
      [[''], /name: expected a non-empty string/],
    ]
    for (const [args, says] of cases) {
      const { code, out, err } = await inProcess(['watch', ...args])
      expect({ code, out }).to.deep.equal({ code: 2, out: '' })
      expect(err).to.match(says)
    }
  })

  it('ends with exit code 0 by SIGINT, by SIGTERM and when its reader ends', async () => {
    const name = uniqueName('watch')
    const endBy = async (how: (program: ReturnType<typeof start>) => unknown): Promise<void> => {
      const program = start([name, '--json', '--interval', '100ms'])
      expect(JSON.parse(await program.line())).to.have.nested.property('queues[0].queue', name)
      how(program)
      expect(await program.end()).to.deep.equal({ code: 0, err: '' })
    }
    await Promise.all([
      endBy(({ child }) => child.kill('SIGINT')),
      endBy(({ child }) => child.kill('SIGTERM')),
      endBy(({ child }) => child.stdout.destroy()),
    ])
  })

  it('shows that Redis is away, and continues when it is back', async function () {
    requireServerBin(this)
    const port = await freePort()
    const first = await startRedis({ port })
    onCleanup(() => first.stop())
    const queue = makeClient({ url: first.url }).getReliableQueue('q')
    await queue.add('x')
    const program = start(['q', '--json', '--interval', '100ms', '--url', first.url])
    const until = async (property: string): Promise<object> => {
      for (;;) {
        const { queues } = JSON.parse(await program.line()) as { queues: [object] }
        if (property in queues[0]) return queues[0]
      }
    }
    expect(await until('pending')).to.include({ pending: 1 })
    await first.stop()
    expect(await until('error')).to.have.nested.property('error.code', 'ERR_CONNECTION')
    const second = await startRedis({ port })
    onCleanup(() => second.stop())
    expect(await until('pending')).to.include({ pending: 0 })
    program.child.kill('SIGINT')
    expect((await program.end()).code).to.equal(0)
  })

  it('redraws in place at a terminal, and ends with exit code 0 after Ctrl-C', async function () {
    if (spawnSync('script', ['--version']).error !== undefined) this.skip()
    const name = uniqueName('watch')
    const queue = makeClient().getReliableQueue(name)
    forgetReliable(name)
    const child = spawnAtTerminal(['watch', name, '--interval', '100ms'], { columns: 40, rows: 12 })
    onCleanup(() => child.kill('SIGKILL'))
    let out = ''
    const shown = (text: string): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (out.includes(text)) resolve()
        }
        child.stdout.on('data', look)
        look()
      })
    child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
    const redrawn = 'A\r\x1b[0J' // up, to the left, and clear to the end
    await shown(redrawn)
    await queue.add('x')
    const picture = out.slice(out.lastIndexOf(redrawn) + redrawn.length)
    for (const line of picture.split('\r\n')) expect(line.length).to.be.lessThan(40)
    child.stdin.write('\x03')
    const [code] = (await once(child, 'exit')) as [number | null]
    expect(code).to.equal(0)
  })

  it('redraws in place, within the width and the height of the terminal', () => {
    const written: string[] = []
    const screen = screenOn({ columns: 10, rows: 5, write: (text) => written.push(text) })
    screen.draw(['a', 'b'])
    screen.draw(['0123456789ab', 'b', 'c', 'd', 'e'])
    screen.draw(['a'])
    expect(written).to.deep.equal([
      '\x1b[0Ja\nb\n',
      '\x1b[2A\r\x1b[0J012345678\nb\nc\n… 2 more\n',
      '\x1b[4A\r\x1b[0Ja\n',
    ])
  })
})
