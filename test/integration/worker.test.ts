import { expect } from 'chai'
import { fork } from 'node:child_process'
import { once as onceEvent } from 'node:events'
import {
  ConnectionError,
  InvalidArgumentError,
  RejectMessage,
  ShutdownError,
  VisibilityLostError,
  codecs,
  retryIn,
  type SettledEvent,
  type Handler,
  type Handlers,
  type PollManyOptions,
  type RedelayedClient,
  type ReliableMessage,
  type ReliableQueue,
  type Worker,
  type WorkerOptions,
} from '../../src/index.js'
import { eventually } from '../support/events.js'
import { expectWarning } from '../support/hooks.js'
import { requireServerBin, startRedis } from '../support/redis-server.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { startProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, numbers, onCleanup, rawTo, redisNow } from './fixtures.js'

const raw = rawClient

interface Made {
  readonly client: RedelayedClient
  readonly queue: ReliableQueue<string>
  readonly work: (
    handlers: Handler<string> | Handlers<string>,
    options?: WorkerOptions,
  ) => Worker & { readonly handled: SettledEvent[] }
}

function make(): Made {
  const client = makeClient()
  const queue = makeQueue(client)
  return {
    client,
    queue,
    work(handlers, options) {
      const worker = client.createWorker(queue, handlers, options)
      const handled: SettledEvent[] = []
      worker.on('settled', (event) => handled.push(event))
      return Object.assign(worker, { handled })
    },
  }
}

function makeQueue(client: RedelayedClient): ReliableQueue<string> {
  const name = uniqueName('worker')
  onCleanup(async () => {
    for (const suffix of ['', ':dead']) {
      const due = numbers(10).map((priority) => `due-${priority}`)
      const parts = ['messages', 'deliveries', 'failures', 'config', 'once', 'in-flight', ...due]
      await raw().unlink(...parts.map((part) => `redelayed:reliable:${part}:{${name}}${suffix}`))
    }
  })
  return client.getReliableQueue<string>(name, { codec: codecs.string() })
}

/** A handler that waits until the test opens the gate. */
function gate() {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  const seen: string[] = []
  const handler = async (payload: string): Promise<void> => {
    seen.push(payload)
    await opened
  }
  return { handler, open, seen }
}

describe('worker', () => {
  afterEach(cleanUp)

  it('handles every message once, and acknowledges it', async () => {
    const { queue, work } = make()
    const seen: string[] = []
    const worker = work((payload) => void seen.push(payload), { concurrency: 10, prefetch: 10 })
    await queue.addMany(numbers(500).map((payload) => ({ payload })))
    await eventually(() => expect(worker.counts.completed).to.equal(500))
    expect(seen.sort()).to.deep.equal(numbers(500).sort())
    expect(await queue.size()).to.equal(0)
    expect(worker.handled.every(({ outcome, attempt }) => outcome === 'completed' && attempt === 1)).to.equal(true)
  })

  it('handles no more at the same time than it may, and takes no more than it may keep', async () => {
    const { queue, work } = make()
    const { handler, open, seen } = gate()
    const worker = work(handler, { concurrency: 3, prefetch: 2 })
    await queue.addMany(numbers(10).map((payload) => ({ payload })))
    await eventually(async () => expect((await queue.counts()).inFlight).to.equal(5))
    expect([seen.length, worker.active]).to.deep.equal([3, 3])
    open()
    await eventually(() => expect(worker.counts.completed).to.equal(10))
  })

  it('gives each message to the handler of its task; one without a handler fails, and is not lost', async () => {
    const { queue, work } = make()
    const seen: string[] = []
    const worker = work(
      {
        greet: (name) => void seen.push(`hello ${name}`),
        part: (name) => void seen.push(`bye ${name}`),
      },
      { backoff: [60_000] },
    )
    await queue.addTask('greet', 'Ann')
    await queue.addTask('part', 'Bob', { delay: 10 })
    await queue.addTask('toString', 'Eve', { id: 'unknown' })
    await eventually(() => expect(worker.counts).to.include({ completed: 2, failed: 1 }))
    expect(seen).to.have.members(['hello Ann', 'bye Bob'])
    expect((await queue.get('unknown'))?.failures[0]?.reason).to.match(
      /UnknownTaskError: no handler for the task "toString"/,
    )
    expect((await queue.get('unknown'))?.state).to.equal('delayed')
  })

  it('delivers a failed message again after the delays of its list, then buries it with its history', async () => {
    const { queue, work } = make()
    await queue.add('fails', { id: 'x', deliveryLimit: 3 })
    const times: number[] = []
    const worker = work(
      async () => {
        times.push(await redisNow())
        throw new Error(`no ${times.length}`)
      },
      { backoff: ['50ms', 100] },
    )
    await eventually(() => expect(worker.counts.failed).to.equal(3))
    expect(times.slice(1).map((time, at) => time - (times[at] ?? 0))).to.satisfy(
      ([first, second]: number[]) => (first ?? 0) >= 50 && (second ?? 0) >= 100,
    )
    const dead = await queue.deadLetters.get('x')
    expect(dead?.failures.map(({ reason }) => reason)).to.deep.equal(['Error: no 1', 'Error: no 2', 'Error: no 3'])
  })

  it('handlers may throw any value', async () => {
    const { queue, work } = make()
    const worker = work((payload) => {
      const thrown: unknown = payload === 'a' ? undefined : payload === 'b' ? 'text' : null
      throw thrown
    })
    await queue.addMany(['a', 'b', 'c'].map((payload) => ({ payload, deliveryLimit: 1 })))
    await eventually(() => expect(worker.counts.failed).to.equal(3))
    expect(await queue.deadLetters.size()).to.equal(3)
  })

  it('a handler that fails with one of our own errors has failed like any other', async () => {
    const { queue, work } = make()
    const errors = [new ShutdownError('another client'), new VisibilityLostError()]
    const worker = work(() => Promise.reject(errors.pop() ?? new Error('no more')), { backoff: [60_000] })
    await queue.addMany([{ payload: 'a' }, { payload: 'b' }])
    await eventually(() => expect(worker.counts.failed).to.equal(2))
  })

  it('a worker refuses a queue of another kind', () => {
    const { client } = make()
    const blocking = client.getBlockingQueue<string>(uniqueName())
    expect(() => client.createWorker(blocking as never, () => undefined))
      .to.throw(InvalidArgumentError)
      .with.property('message')
      .that.includes('queues[0]: expected a reliable queue, or { queue, weight }, got an object (BlockingQueue)')
  })

  it('a `retryIn` without a time is a failure with an error that names it', async () => {
    const { queue, work } = make()
    const worker = work(() => retryIn(-1), { backoff: [60_000] })
    await queue.add('a', { id: 'x' })
    await eventually(() => expect(worker.counts.failed).to.equal(1))
    expect((await queue.get('x'))?.failures[0]?.reason).to.match(/retryIn: expected a whole number/)
  })

  it('rejects a message at once if the handler throws `RejectMessage`', async () => {
    const { queue, work } = make()
    const worker = work(() => {
      throw new RejectMessage('malformed address')
    })
    await queue.add('bad', { id: 'x' })
    await eventually(() => expect(worker.counts.rejected).to.equal(1))
    expect((await queue.deadLetters.get('x'))?.failures[0]?.reason).to.equal('RejectMessage: malformed address')
  })

  it('a handler that meets a held lock frees its worker, and its message counts no attempt', async () => {
    const { queue, work } = make()
    const attempts: number[] = []
    const others: string[] = []
    const worker = work((payload, { message }) => {
      if (payload !== 'locked') return others.push(payload)
      attempts.push(message.attempt)
      return attempts.length < 3 ? retryIn(40) : undefined
    })
    await queue.add('locked', { deliveryLimit: 1 })
    await queue.add('other')
    await eventually(() => expect(worker.counts).to.include({ completed: 2, deferred: 2 }))
    expect([attempts, others]).to.deep.equal([[1, 1, 1], ['other']])
  })

  it('keeps a message as long as its handler works', async () => {
    const { queue, work } = make()
    const { handler, open } = gate()
    const worker = work(handler, { visibilityTimeout: 900 }) // a process that stands still for so long loses its messages
    await queue.add('long', { id: 'x' })
    await eventually(() => expect(worker.active).to.equal(1))
    const { visibleAt = NaN } = (await queue.get('x')) ?? {}
    await eventually(async () => expect((await queue.get('x'))?.visibleAt).to.be.greaterThan(visibleAt + 900))
    expect(await queue.poll()).to.equal(null)
    open()
    await eventually(() => expect(worker.counts.completed).to.equal(1))
    expect(worker.handled[0]?.attempt).to.equal(1)
  })

  it('never takes back the time that a handler gave itself', async () => {
    const { queue, work } = make()
    const { handler, open, seen } = gate()
    let until = NaN
    const worker = work(
      async (payload, { message }) => {
        if (payload === 'long') {
          await message.extend(60_000)
          until = message.visibleUntil
        }
        await handler(payload)
      },
      { visibilityTimeout: 300, concurrency: 2 },
    )
    await queue.addMany([
      { payload: 'long', id: 'long' },
      { payload: 'short', id: 'short' },
    ])
    await eventually(() => expect(seen).to.have.length(2))
    const { visibleAt = NaN } = (await queue.get('short')) ?? {}
    await eventually(async () => expect((await queue.get('short'))?.visibleAt).to.be.greaterThan(visibleAt + 300))
    expect((await queue.get('long'))?.visibleAt).to.equal(until)
    open()
    await eventually(() => expect(worker.counts.completed).to.equal(2))
  })

  it('nor the time that it is giving itself while a heartbeat comes', async function () {
    requireServerBin(this)
    const server = await startRedis()
    onCleanup(() => server.stop())
    const proxy = await startProxy({ targetPort: server.port })
    onCleanup(() => proxy.stop())
    const plain = rawTo(server.port)
    const endOf = async (id: string) => Number(await plain.zscore('redelayed:reliable:in-flight:{mails}', `0${id}`))
    const client = makeClient({ host: '127.0.0.1', port: proxy.port })
    client.on('error', () => {})
    const queue = client.getReliableQueue<string>('mails', { codec: codecs.string() })
    await queue.addMany(['long', 'short'].map((id) => ({ payload: id, id })))
    let before = NaN
    const { handler, open } = gate()
    const worker = client.createWorker(
      queue,
      async (payload, { message }) => {
        if (payload === 'short') return handler(payload)
        await eventually(() => expect(worker.active).to.equal(2))
        await message.extend(1_500) // so that the server knows the script
        before = await endOf('short')
        proxy.blackhole('toClient')
        await message.extend(60_000)
      },
      { visibilityTimeout: 1_500, concurrency: 2 },
    )
    await eventually(async () => expect(await endOf('long')).to.be.greaterThan((await redisNow(plain)) + 50_000))
    const atOnce = await endOf('long')
    await eventually(async () => expect(await endOf('short')).to.be.greaterThan(before))
    expect(await endOf('long')).to.equal(atOnce)
    proxy.blackhole(false)
    open()
  })

  it('aborts the signal of a handler that has lost its message, and answers nothing for it', async () => {
    const { queue, work } = make()
    let [hasBegun, reason]: [boolean, unknown] = [false, undefined]
    const worker = work(
      (_, { signal }) =>
        new Promise(() => {
          signal.addEventListener('abort', () => (reason = signal.reason as unknown), { once: true })
          hasBegun = true
        }),
      { visibilityTimeout: 1_500 },
    )
    await queue.add('taken away', { id: 'x' })
    await eventually(() => expect(hasBegun).to.equal(true))
    await queue.remove('x')
    await queue.add('anew', { id: 'x', delay: 60_000 })
    await eventually(() => expect(worker.counts.lost).to.equal(1))
    expect(reason).to.be.instanceOf(VisibilityLostError)
    expect((await queue.get('x'))?.attempts).to.equal(0)
  })

  it('a handler that takes too long has failed, also one that never ends', async () => {
    const { queue, work } = make()
    const worker = work(() => new Promise(() => undefined), { timeout: 30, backoff: [60_000] })
    await queue.add('hangs', { id: 'x' })
    await eventually(() => expect(worker.counts.failed).to.equal(1))
    expect((await queue.get('x'))?.failures[0]?.reason).to.match(/HandlerTimeoutError/)
  })

  it('serves several queues by their weights, and starves no queue', async () => {
    const { client } = make()
    const [often, seldom] = [makeQueue(client), makeQueue(client)]
    await often.addMany(numbers(40).map(() => ({ payload: 'often' })))
    await seldom.addMany(numbers(40).map(() => ({ payload: 'seldom' })))
    const order: string[] = []
    const queues = [{ queue: often, weight: 3 }, seldom]
    const worker = client.createWorker(queues, (payload) => void order.push(payload))
    await eventually(() => expect(worker.counts.completed).to.equal(80))
    expect(order.slice(0, 40).filter((payload) => payload === 'often')).to.have.length(30)
  })

  it('strictly serves the first queue first', async () => {
    const { client } = make()
    const [first, second] = [makeQueue(client), makeQueue(client)]
    await second.addMany(numbers(10).map(() => ({ payload: 'second' })))
    await first.addMany(numbers(10).map(() => ({ payload: 'first' })))
    const order: string[] = []
    const worker = client.createWorker([first, second], (payload) => void order.push(payload), { strict: true })
    await eventually(() => expect(worker.counts.completed).to.equal(20))
    expect(order).to.deep.equal([...numbers(10).map(() => 'first'), ...numbers(10).map(() => 'second')])
    await second.add('late')
    await eventually(() => expect(worker.counts.completed).to.equal(21))
  })

  for (const strict of [true, false]) {
    it(`a queue that fails does not keep ${strict ? 'strictly served' : 'weighted'} others from their messages`, async () => {
      const { client } = make()
      const [broken, healthy] = [makeQueue(client), makeQueue(client)]
      await raw().set(`redelayed:reliable:in-flight:{${broken.name}}`, 'no schedule')
      const worker = client.createWorker([broken, healthy], () => undefined, { strict, concurrency: 10 })
      const errors: Error[] = []
      worker.on('error', (error) => errors.push(error))
      await healthy.add('before')
      await eventually(() => expect(worker.counts.completed).to.equal(1))
      await healthy.add('while waiting')
      await eventually(() => expect(worker.counts.completed).to.equal(2))
      expect(errors[0]).to.include({ code: 'ERR_WRONG_TYPE', queue: broken.name })
    })
  }

  for (const [what, count, order] of [
    ['a lone message is handled before the worker asks for more', 1, ['poll', 'handled', 'poll']],
    ['after a full round the worker asks for more before it handles', 2, ['poll', 'poll', 'handled', 'handled']],
  ] as const) {
    it(what, async () => {
      const { queue, work } = make()
      await queue.addMany(
        numbers(count)
          .map(String)
          .map((payload) => ({ payload })),
      )
      const seen: string[] = []
      const pollFor = queue.pollFor.bind(queue)
      const noted = (options: PollManyOptions, beforehand: boolean) => {
        seen.push('poll')
        return pollFor(options, beforehand)
      }
      Object.assign(queue, { pollFor: noted })
      work(() => void seen.push('handled'), { concurrency: 4 })
      await eventually(() => expect(seen.slice(0, order.length)).to.deep.equal(order))
    })
  }

  it('an error without a listener goes to the client, which warns of it once', async () => {
    const warned = expectWarning(/ERR_WRONG_TYPE queue/)
    const { client } = make()
    const [broken, healthy] = [makeQueue(client), makeQueue(client)]
    await raw().set(`redelayed:reliable:in-flight:{${broken.name}}`, 'no schedule')
    let asked = 0
    const pollFor = broken.pollFor.bind(broken)
    const counted = (options: PollManyOptions, beforehand: boolean) => {
      asked++
      return pollFor(options, beforehand)
    }
    Object.assign(broken, { pollFor: counted })
    const worker = client.createWorker([broken, healthy], () => undefined)
    await healthy.addMany(numbers(10).map((payload) => ({ payload })))
    await eventually(() => expect(worker.counts.completed).to.equal(10))
    await eventually(() => expect(asked).to.be.greaterThan(1))
    expect((await warned).message).to.include(broken.name)
    const heard: Error[] = []
    client.on('error', (error) => heard.push(error))
    await eventually(() => expect(heard[0]).to.include({ code: 'ERR_WRONG_TYPE', queue: broken.name }))
  })

  for (const strict of [true, false]) {
    it(`a queue that does not answer does not keep ${strict ? 'strictly served' : 'weighted'} others, nor a close`, async () => {
      const { client } = make()
      const [frozen, healthy] = [makeQueue(client), makeQueue(client)]
      let asked = 0
      Object.assign(frozen, { pollFor: () => new Promise(() => asked++) })
      const worker = client.createWorker([frozen, healthy], () => undefined, { strict })
      await healthy.addMany(numbers(20).map((payload) => ({ payload })))
      await eventually(() => expect(worker.counts.completed).to.equal(20))
      expect(asked).to.equal(1)
      const since = performance.now()
      await worker.close()
      expect(performance.now() - since).to.be.lessThan(2_000)
    })
  }

  it('a close is bounded, also when Redis never answers an acknowledgement', async () => {
    const { queue, work } = make()
    let asked = 0
    Object.assign(queue, { acknowledge: () => new Promise(() => asked++) })
    const worker = work(() => undefined, { shutdownTimeout: 10 })
    await queue.add('x')
    await eventually(() => expect(asked).to.equal(1))
    const since = performance.now()
    await worker.close()
    expect(performance.now() - since).to.be.lessThan(8_000)
    expect([worker.counts.completed, worker.isIdle]).to.deep.equal([0, false])
  })

  for (const [what, wait] of [
    ['without a promise', () => undefined],
    ['with a promise', async () => undefined],
  ] as const) {
    it(`handlers that block the process, ${what}, lose none of the messages behind them`, async () => {
      const { queue, work } = make()
      await queue.addMany(numbers(21).map((payload) => ({ payload })))
      const handler = () => {
        for (const until = performance.now() + 100; performance.now() < until;);
        return wait()
      }
      const worker = work(handler, { visibilityTimeout: 1_000, prefetch: 20 })
      // the answers to the last acknowledgements come after the handlers have ended
      await eventually(() => expect(worker.counts.completed + worker.counts.lost).to.equal(21))
      expect(worker.counts).to.include({ completed: 21, lost: 0 })
      expect(worker.handled).to.have.length(21)
      expect(worker.handled.every(({ attempt }) => attempt === 1)).to.equal(true)
      expect(await queue.size()).to.equal(0)
    })
  }

  it('an error of `backoff` is an error of the worker, and the message has failed with its own', async () => {
    const { queue, work } = make()
    const backoff = (async () => raise(new TypeError('broken'))) as unknown as () => number
    const failure = new Error('no')
    const worker = work(() => raise(failure), { backoff })
    const errors: Error[] = []
    worker.on('error', (error) => errors.push(error))
    const { id } = await queue.add('x')
    await eventually(() => expect(worker.handled).to.have.length(1))
    expect(worker.handled[0]).to.include({ outcome: 'failed', error: failure })
    expect(errors.map(({ message }) => message).join()).to.match(/what backoff returns/)
    const { state, failures } = (await queue.get(id)) ?? {}
    expect([state, failures?.[0]?.reason]).to.deep.equal(['delayed', 'Error: no'])
  })

  it('retries failed acknowledgements, one by one', async () => {
    const { queue, work } = make()
    const acknowledge = queue.acknowledge.bind(queue)
    let asked = 0
    Object.assign(queue, {
      acknowledge: async (...messages: ReliableMessage<string>[]) => {
        if (asked++ === 0) throw new ConnectionError('refused', 'not-applied')
        return acknowledge(...messages)
      },
    })
    await queue.addMany(numbers(5).map((payload) => ({ payload })))
    const worker = work(() => undefined, { concurrency: 10 })
    await eventually(() => expect(worker.counts.completed).to.equal(5))
    expect(asked).to.equal(1)
    expect([worker.counts.lost, await queue.size()]).to.deep.equal([0, 0])
  })

  it('serves queues of different payloads', async () => {
    const { client, queue } = make()
    const numbersOnly = client.getReliableQueue<number>(makeQueue(client).name, { codec: codecs.json<number>() })
    const seen: [from: string, payload: string | number][] = []
    const worker = client.createWorker(
      [queue, { queue: numbersOnly }],
      (payload, context) => void seen.push([context.queue, payload]),
    )
    await queue.add('text')
    await numbersOnly.add(5)
    await eventually(() => expect(worker.counts.completed).to.equal(2))
    expect(seen).to.have.deep.members([
      [queue.name, 'text'],
      [numbersOnly.name, 5],
    ])
  })

  it('takes no more than its rate limit allows', async () => {
    const { queue, work } = make()
    const times: number[] = []
    const worker = work(() => void times.push(performance.now()), {
      concurrency: 100,
      rateLimit: { max: 5, perMs: 200 },
    })
    await queue.addMany(numbers(15).map((payload) => ({ payload })))
    await eventually(() => expect(worker.counts.completed).to.equal(15))
    for (let at = 5; at < times.length; at++) expect((times[at] ?? 0) - (times[at - 5] ?? 0)).to.be.greaterThan(150)
  })

  it('takes nothing while it is paused', async () => {
    const { queue, work } = make()
    const worker = work(() => undefined)
    await queue.add('a')
    await eventually(() => expect(worker.counts.completed).to.equal(1))
    worker.pause()
    await queue.add('b')
    expect((await queue.poll({ timeout: 1_000, acknowledge: 'auto' }))?.payload).to.equal('b')
    await queue.add('c')
    worker.resume()
    await eventually(() => expect(worker.counts.completed).to.equal(2))
  })

  it('a close lets handlers finish, and gives back messages that none has seen', async () => {
    const { queue, work } = make()
    const { handler, open, seen } = gate()
    const worker = work(handler, { concurrency: 1, prefetch: 3 })
    await queue.addMany(numbers(6).map((payload) => ({ payload })))
    await eventually(async () => expect((await queue.counts()).inFlight).to.equal(4))
    const closed = Promise.all([worker.close(), worker.close()])
    await eventually(async () => expect(await queue.counts()).to.include({ inFlight: 1, visible: 5 }))
    open()
    await closed
    expect([seen, worker.counts.completed, worker.counts.released]).to.deep.equal([['0'], 1, 3])
    expect((await queue.poll())?.attempt).to.equal(1)
  })

  it('a close does not wait longer than it may: the signals are aborted, and the messages go back', async () => {
    const { queue, work } = make()
    const worker = work(() => new Promise(() => undefined), { shutdownTimeout: 20 })
    await queue.add('hangs')
    await eventually(() => expect(worker.active).to.equal(1))
    await worker.close()
    expect(worker.counts.released).to.equal(1)
    expect((await queue.poll())?.attempt).to.equal(1)
  })

  it('is closed by the shutdown of its client', async () => {
    const { client, queue, work } = make()
    const { handler, open, seen } = gate()
    const worker = work(handler, { prefetch: 5 })
    const name = queue.name
    await queue.addMany(numbers(3).map((payload) => ({ payload })))
    await eventually(() => expect(seen).to.have.length(1))
    const down = client.shutdown()
    open()
    await down
    expect(worker.counts).to.include({ completed: 1, released: 2 })
    const other = makeClient().getReliableQueue<string>(name, { codec: codecs.string() })
    expect(await other.counts()).to.include({ visible: 2, inFlight: 0 })
  })

  it('a message whose worker was killed comes back to another', async function () {
    this.timeout(60_000)
    const { queue, work } = make()
    const child = fork(new URL('fixtures/worker-process.ts', import.meta.url), [redisUrl(), queue.name], {
      execArgv: ['--import', 'tsx'],
    })
    onCleanup(() => child.kill('SIGKILL'))
    await queue.add('survives')
    await onceEvent(child, 'message')
    child.kill('SIGKILL')
    const worker = work(() => undefined)
    await eventually(() => expect(worker.counts.completed).to.equal(1))
    // more where the killed process was so slow that a visibility timeout of its own ended
    expect(worker.handled[0]?.attempt).to.be.at.least(2)
  })

  it('rejects bad arguments with the expected and the received kind', () => {
    const { client, queue } = make()
    const handler = (): void => undefined
    const bad: [() => unknown, RegExp][] = [
      [() => client.createWorker([], handler), /queues: expected at least one/],
      [() => client.createWorker({} as never, handler), /queues\[0\].queue/],
      [() => makeClient().createWorker(queue, handler), /queues\[0\]: expected a queue of this client/],
      [() => client.createWorker(queue, 5 as never), /handlers/],
      [() => client.createWorker(queue, { a: 5 } as never), /handlers.a/],
      [() => client.createWorker(queue, handler, { concurrency: 0 }), /concurrency/],
      [() => client.createWorker(queue, handler, { visibilityTimeout: 10 }), /visibility/],
      [() => client.createWorker(queue, handler, { backoff: [] }), /backoff/],
      [() => client.createWorker(queue, handler, { backoff: ['soon' as '1s'] }), /backoff\[0\]: .*'15m'/],
      [() => client.createWorker(queue, handler, { backoff: { type: 'fixed', delay: -1 } }), /backoff.delay/],
      [() => client.createWorker(queue, handler, { backoff: { type: 'exponential', delay: 1, jitter: 2 } }), /jitter/],
      [() => client.createWorker(queue, handler, { rateLimit: { max: 0, perMs: 1 } }), /rateLimit.max/],
      [() => client.createWorker(queue, handler, { nonsense: 1 } as never), /options.nonsense/],
      [() => client.createWorker([{ queue, weight: 0 }], handler), /queues\[0\].weight/],
    ]
    for (const [call, says] of bad) expect(call, says.source).to.throw(InvalidArgumentError, says)
  })
})

function raise(thrown: unknown): never {
  throw thrown
}
