import { expect } from 'chai'
import type { ChannelListener } from '../../src/redis/subscriber.js'
import { ConnectionError, RedelayedError, ShutdownError } from '../../src/errors.js'
import type { EventName, RedelayedEvents } from '../../src/events.js'
import { queueKeys } from '../../src/keys.js'
import type { Sender } from '../../src/store/run.js'
import { transfer as transferScript } from '../../src/store/scripts.js'
import { resolveSettings, type Tuning } from '../../src/options.js'
import { TransferRegistry, type TransferTarget } from '../../src/scheduler/transfer-registry.js'
import { FakeClock } from '../support/fake-clock.js'

const NOW = 1_700_000_000_000
const ORDERS: TransferTarget = { name: 'orders', keys: queueKeys('mapped:orders') }
const OTHER: TransferTarget = { name: 'other', keys: queueKeys('other') }

interface Reply {
  moved?: number
  next?: string
  lateness?: string
  malformed?: number
  negative?: number
  subscribers?: number
  orderError?: string
  workedUs?: number
  leader?: string
  leaseUntil?: string
  orphans?: number
  quarantineError?: string
  postponed?: number
  largeHead?: string
  largeFirst?: string
  promoted?: number
  wheelError?: string
}

describe('TransferRegistry', () => {
  // The registry runs on the system clock, so that one is replaced; mocha keeps the real functions for itself.
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }
  let clock: FakeClock
  beforeEach(() => {
    clock = new FakeClock(5000)
    const { setTimeout, clearTimeout, now } = {
      setTimeout: clock.setTimeout.bind(clock),
      clearTimeout: clock.clearTimeout.bind(clock),
      now: clock.now.bind(clock),
    }
    Object.assign(globalThis, { setTimeout, clearTimeout })
    Object.defineProperty(performance, 'now', { value: now, configurable: true })
  })
  afterEach(() => {
    Object.assign(globalThis, real)
    Reflect.deleteProperty(performance, 'now')
  })

  function setUp(tuning: Tuning = {}) {
    const sent: { destination: string; args: string[]; resend: string | undefined; at: number }[] = []
    const replies: (Reply | Error)[] = []
    const gate: { wait: Promise<void> | undefined } = { wait: undefined }
    const sender: Sender = {
      async call(command, args, options) {
        expect(command).to.equal('EVALSHA')
        const [sha, count, , , destination, , key, wheel, ...rest] = args.map(String)
        expect([sha, count]).to.deep.equal([transferScript.source.sha1, '6'])
        expect(key).to.equal(`redelayed:leader:{${destination}}`)
        expect(wheel).to.equal(`redelayed:wheel:{${destination}}`)
        sent.push({ destination: destination!, args: rest, resend: options?.resend, at: clock.now() })
        const reply = replies.shift() ?? {}
        await gate.wait
        if (reply instanceof Error) throw reply
        const {
          moved = 0,
          next = '',
          lateness = '0',
          malformed = 0,
          negative = 0,
          subscribers = 1,
          orderError = '',
          workedUs = 0,
          leader = 'none',
          leaseUntil = '0',
          orphans = 0,
          quarantineError = '',
          postponed = 0,
          largeHead = '',
          largeFirst = '',
          promoted = 0,
          wheelError = '',
        } = reply
        const now = (NOW + clock.now()).toFixed(3)
        const aside = [orphans, quarantineError, postponed, largeHead, largeFirst, promoted, wheelError]
        return [
          moved,
          next,
          now,
          lateness,
          malformed,
          negative,
          subscribers,
          orderError,
          workedUs,
          leader,
          leaseUntil,
          ...aside,
        ]
      },
      pipeline: () => expect.fail('there is nothing to pipeline'),
    }
    const listeners = new Map<string, ChannelListener>()
    const changes: string[] = []
    const channels = {
      add(channel: string, listener: ChannelListener) {
        expect(listeners.has(channel)).to.equal(false)
        listeners.set(channel, listener)
        changes.push(`+${channel}`)
      },
      remove(channel: string) {
        listeners.delete(channel)
        changes.push(`-${channel}`)
      },
    }
    const events: { name: EventName; event: RedelayedEvents[EventName] }[] = []
    const delivered: string[] = []
    const registry = new TransferRegistry({
      sender,
      channels,
      settings: resolveSettings(tuning),
      client: 'this',
      emit: (name, event) => events.push({ name, event }),
      blocking: { prefer: (destination) => delivered.push(destination) },
      fineWaits: undefined,
    })
    const listener = (target = ORDERS) => listeners.get(target.keys.channel)!
    return { registry, sent, replies, gate, listeners, listener, changes, events, delivered }
  }

  /** Lets promises settle, and runs no timer. */
  const settle = () => clock.advance(0)

  describe('acquire', () => {
    it('subscribes, and transfers when the subscription is acknowledged', async () => {
      const { registry, sent, changes, listener, events } = setUp()
      void registry.acquire(ORDERS)
      expect(changes).to.deep.equal([`+${ORDERS.keys.channel}`])
      await settle()
      expect(sent).to.deep.equal([])
      listener().onSubscribed()
      await settle()
      expect(sent).to.deep.equal([
        {
          destination: 'mapped:orders',
          args: [
            ORDERS.keys.channel,
            '-1',
            '2000',
            '100',
            sent[0]!.args[4],
            '25',
            '3',
            '4',
            '3600000',
            '0',
            '0',
            '2097152',
            '',
            '',
            '0',
          ],
          resend: 'harmless',
          at: 5000,
        },
      ])
      expect(events).to.deep.equal([{ name: 'subscribed', event: { queue: 'orders' } }])
      await registry.close()
    })

    it('sends back what the last reply said of large entries', async () => {
      const { registry, sent, replies, listener } = setUp()
      void registry.acquire(ORDERS)
      replies.push({ largeHead: '1.5e+300', largeFirst: '7' }, new Error('lost'), { largeFirst: '8' })
      for (let n = 0; n < 4; n++) {
        listener().onSubscribed()
        await settle()
      }
      expect(sent.map(({ args }) => args.slice(-3, -1))).to.deep.equal([
        ['', ''],
        ['1.5e+300', '7'],
        ['1.5e+300', '7'],
        ['', '8'],
      ])
      replies.push({ largeFirst: '8' }, { largeFirst: '8' })
      for (const ms of [59_000, 2_000]) {
        await clock.advance(ms)
        listener().onSubscribed()
        await settle()
      }
      expect(sent.at(-1)?.args.slice(-3, -1)).to.deep.equal(['', ''])
      await registry.close()
    })

    it('is undone by as many releases', async () => {
      const { registry, changes } = setUp()
      const releases = [registry.acquire(ORDERS), registry.acquire(ORDERS), registry.acquire(ORDERS)]
      expect(changes).to.have.length(1)
      await releases[1]!()
      await releases[0]!()
      expect(changes).to.have.length(1)
      await releases[2]!()
      expect(changes).to.deep.equal([`+${ORDERS.keys.channel}`, `-${ORDERS.keys.channel}`])
      await registry.close()
    })

    it('counts each release once, however often it is called', async () => {
      const { registry, changes } = setUp()
      const first = registry.acquire(ORDERS)
      const second = registry.acquire(ORDERS)
      await first()
      await first()
      await Promise.all([first(), first()])
      expect(changes).to.have.length(1)
      await second()
      expect(changes).to.have.length(2)
      await registry.close()
    })

    it('keeps queues apart', async () => {
      const { registry, changes } = setUp()
      const orders = registry.acquire(ORDERS)
      void registry.acquire(OTHER)
      await orders()
      expect(changes).to.deep.equal([`+${ORDERS.keys.channel}`, `+${OTHER.keys.channel}`, `-${ORDERS.keys.channel}`])
      await registry.close()
    })

    it('can be released at once', async () => {
      const { registry, changes, sent } = setUp()
      await registry.acquire(ORDERS)()
      await clock.advance(100_000)
      expect(changes).to.deep.equal([`+${ORDERS.keys.channel}`, `-${ORDERS.keys.channel}`])
      expect(sent).to.deep.equal([])
      expect(clock.pending).to.deep.equal([])
      await registry.close()
    })

    it('can be released and acquired again in the same turn', async () => {
      const { registry, listener, sent, changes } = setUp()
      const release = registry.acquire(ORDERS)
      const stale = listener()
      const released = release()
      void registry.acquire(ORDERS)
      await released
      expect(changes.map((change) => change[0])).to.deep.equal(['+', '-', '+'])
      stale.onSubscribed()
      stale.onMessage(String(NOW))
      await clock.advance(10)
      expect(sent).to.deep.equal([])
      listener().onSubscribed()
      await settle()
      expect(sent).to.have.length(1)
      await registry.close()
    })

    it('is not undone by the second call of a release that belongs to an earlier life', async () => {
      const { registry, changes } = setUp()
      const first = registry.acquire(ORDERS)
      await first()
      void registry.acquire(ORDERS)
      await first()
      expect(changes.map((change) => change[0])).to.deep.equal(['+', '-', '+'])
      await registry.close()
    })

    it('waits on release for the transfer under way', async () => {
      const { registry, listener, gate } = setUp()
      const release = registry.acquire(ORDERS)
      let open = () => {}
      gate.wait = new Promise((resolve) => (open = resolve))
      listener().onSubscribed()
      let released = false
      void release().then(() => (released = true))
      await settle()
      expect(released).to.equal(false)
      open()
      await settle()
      expect(released).to.equal(true)
      await registry.close()
    })
  })

  describe('consume', () => {
    it('continues for a minute after the last consumer, and then stops with a sweep', async () => {
      const { registry, listener, changes, sent } = setUp()
      const release = registry.consume(ORDERS)
      listener().onSubscribed()
      await clock.advance(10_000)
      release()
      await clock.advance(58_000)
      expect(changes).to.have.length(1)
      await clock.advance(10_000)
      expect(changes).to.deep.equal([`+${ORDERS.keys.channel}`, `-${ORDERS.keys.channel}`])
      const scripts = sent.length
      await clock.advance(100_000)
      expect(sent).to.have.length(scripts)
      expect(clock.pending).to.deep.equal([])
      await registry.close()
    })

    it('continues while one of several consumers waits', async () => {
      const { registry, changes } = setUp()
      const releases = [registry.consume(ORDERS), registry.consume(ORDERS)]
      releases[0]!()
      await clock.advance(200_000)
      expect(changes).to.have.length(1)
      releases[1]!()
      await clock.advance(70_000)
      expect(changes).to.have.length(2)
      await registry.close()
    })

    it('continues when a consumer comes back within the minute', async () => {
      const { registry, changes } = setUp()
      for (let i = 0; i < 10; i++) {
        registry.consume(ORDERS)()
        await clock.advance(50_000)
      }
      expect(changes).to.have.length(1)
      await registry.close()
    })

    it('keeps the queue that its owner releases', async () => {
      const { registry, changes } = setUp()
      const release = registry.acquire(ORDERS)
      const stop = registry.consume(ORDERS)
      await release()
      expect(changes).to.have.length(1)
      stop()
      await clock.advance(70_000)
      expect(changes).to.have.length(2)
      await registry.close()
    })

    it('lingers when its owner releases it after the consumer', async () => {
      const { registry, changes } = setUp()
      const release = registry.acquire(ORDERS)
      registry.consume(ORDERS)()
      await release()
      expect(changes).to.have.length(1)
      await clock.advance(70_000)
      expect(changes).to.have.length(2)
      await registry.close()
    })
  })

  describe('the channel', () => {
    /** Acquired and subscribed, with the Redis clock known. */
    async function subscribed(tuning?: Tuning) {
      const setup = setUp({ sweepInterval: 3_600_000, ...tuning })
      void setup.registry.acquire(ORDERS)
      setup.listener().onSubscribed()
      await settle()
      setup.sent.length = 0
      return setup
    }
    const redisTime = (ahead: number) => NOW + clock.now() + ahead

    it('announces due times', async () => {
      const { registry, listener, sent } = await subscribed()
      listener().onMessage(String(redisTime(100)))
      await clock.advance(99)
      expect(sent).to.deep.equal([])
      await clock.advance(1)
      expect(sent).to.have.length(1)
      expect(sent[0]!.args.at(-6)).to.equal('1')
      await registry.close()
    })

    for (const message of [
      '',
      ' ',
      'now',
      '-1',
      '1e3',
      '12.5',
      '0x10',
      '1 2',
      '9007199254740992',
      '99999999999999999999',
      '-9223372036854775808',
      'NaN',
      'Infinity',
      '１２',
    ]) {
      it(`says nothing with ${JSON.stringify(message)}`, async () => {
        const { registry, listener, sent } = await subscribed()
        listener().onMessage(String(redisTime(100)))
        listener().onMessage(message)
        await clock.advance(99)
        expect(sent).to.deep.equal([])
        await clock.advance(1)
        expect(sent).to.have.length(1)
        await registry.close()
      })
    }

    it('is subscribed again after a reconnect, and the queue is transferred at once', async () => {
      const { registry, listener, sent, events } = await subscribed()
      listener().onUnsubscribed()
      expect(sent).to.deep.equal([])
      listener().onSubscribed()
      await settle()
      expect(sent).to.have.length(1)
      expect(events.filter(({ name }) => name === 'subscribed')).to.have.length(2)
      await registry.close()
    })

    it('reports its errors with the name of the queue', async () => {
      const { registry, listener, events } = await subscribed()
      const cause = new RedelayedError('ERR_AUTH', 'no permission')
      listener().onError(cause)
      const error = events.at(-1)!.event as RedelayedError
      expect(error).to.include({ code: 'ERR_AUTH', queue: 'orders', cause })
      expect(error.message).to.match(/no permission/)
      await registry.close()
    })

    it('makes an own offer known only while it is not subscribed', async () => {
      const { registry, listener, sent } = await subscribed()
      registry.onOffered(ORDERS, redisTime(50))
      await clock.advance(60)
      expect(sent).to.deep.equal([])

      listener().onUnsubscribed()
      registry.onOffered(ORDERS, redisTime(50))
      registry.onOffered(ORDERS, redisTime(500))
      await clock.advance(50)
      expect(sent).to.have.length(1)
      await registry.close()
    })

    it('makes an own offer known before the first subscription', async () => {
      const { registry, sent } = setUp()
      void registry.acquire(ORDERS)
      registry.onOffered(ORDERS, redisTime(5))
      await clock.advance(5)
      expect(sent).to.have.length(1)
      await registry.close()
    })

    it('leaves offers alone to queues that this client does not transfer', async () => {
      const { registry, sent } = await subscribed()
      registry.onOffered(OTHER, redisTime(5))
      await clock.advance(50)
      expect(sent).to.deep.equal([])
      await registry.close()
    })
  })

  describe('replies', () => {
    it('become events and wake the consumers', async () => {
      const { registry, replies, listener, events, delivered } = setUp()
      replies.push({ moved: 3, lateness: '7', malformed: 2, negative: 1 })
      void registry.acquire(ORDERS)
      listener().onSubscribed()
      await settle()
      expect(events.slice(1)).to.deep.equal([
        { name: 'transferred', event: { queue: 'orders', count: 3, maxLatenessMs: 7 } },
        { name: 'quarantined', event: { queue: 'orders', reason: 'malformed', count: 2 } },
        { name: 'quarantined', event: { queue: 'orders', reason: 'negative-due', count: 1 } },
      ])
      expect(delivered).to.deep.equal(['mapped:orders'])
      await registry.close()
    })

    it('without messages say nothing', async () => {
      const { registry, listener, events, delivered } = setUp()
      void registry.acquire(ORDERS)
      listener().onSubscribed()
      await settle()
      expect(events.map(({ name }) => name)).to.deep.equal(['subscribed'])
      expect(delivered).to.deep.equal([])
      await registry.close()
    })

    it('report a broken order list though messages were moved', async () => {
      const { registry, replies, listener, events } = setUp()
      replies.push({ moved: 1, orderError: 'WRONGTYPE Operation against a key' })
      void registry.acquire(ORDERS)
      listener().onSubscribed()
      await settle()
      expect(events.map(({ name }) => name)).to.deep.equal(['subscribed', 'transferred', 'error'])
      const error = events.at(-1)!.event as RedelayedError
      expect(error).to.include({ code: 'ERR_COMMAND', queue: 'orders' })
      expect(error.message).to.match(/order list.*WRONGTYPE/)
      await registry.close()
    })

    it('report a quarantine that takes nothing once in a minute', async () => {
      const { registry, replies, listener, events } = setUp({ sweepInterval: 3_600_000 })
      const reply = { quarantineError: 'WRONGTYPE Operation against a key' }
      void registry.acquire(ORDERS)
      const errors: number[] = []
      for (const ms of [0, 30_000, 30_000]) {
        await clock.advance(ms)
        replies.push(reply)
        listener().onSubscribed()
        await settle()
        errors.push(events.filter(({ name }) => name === 'error').length)
      }
      expect(errors).to.deep.equal([1, 1, 2])
      expect((events.at(-1)!.event as RedelayedError).message).to.match(/quarantine list.*WRONGTYPE/)
      await registry.close()
    })

    for (const progress of [{ moved: 1 }, { malformed: 1 }, { negative: 1 }, { postponed: 1 }]) {
      it(`are followed by the next script at once while something is due: ${JSON.stringify(progress)}`, async () => {
        const { registry, listener, sent, replies } = setUp()
        replies.push(...Array.from({ length: 20 }, () => ({ ...progress, next: String(NOW) })))
        const release = registry.acquire(ORDERS)
        listener().onSubscribed()
        await settle()
        expect(sent).to.have.length(21)
        await release()
      })
    }

    it('that change nothing although something is due are not followed at once without end', async () => {
      const { registry, listener, sent, replies } = setUp()
      replies.push(...Array.from({ length: 20 }, () => ({ next: String(NOW) })))
      const release = registry.acquire(ORDERS)
      listener().onSubscribed()
      await settle()
      expect(sent).to.have.length(11)
      await release()
    })

    it('arm the timer', async () => {
      const { registry, replies, listener, sent } = setUp({ sweepInterval: 3_600_000 })
      replies.push({ next: String(NOW + clock.now() + 30) })
      void registry.acquire(ORDERS)
      listener().onSubscribed()
      await clock.advance(29)
      expect(sent).to.have.length(1)
      await clock.advance(1)
      expect(sent).to.have.length(2)
      await registry.close()
    })

    it('a transfer that the shutdown of the client ended is no error, also if it was under way', async () => {
      const { registry, replies, listener, events } = setUp()
      const cause = new ShutdownError('the client was shut down')
      replies.push(new ConnectionError(`it broke: ${cause.message}`, 'unknown', { cause }), cause)
      void registry.acquire(ORDERS)
      listener().onSubscribed()
      await clock.advance(60_000)
      expect(replies).to.deep.equal([])
      expect(events.filter(({ name }) => name === 'error')).to.deep.equal([])
    })

    it('that are errors are reported, and the transfer is tried again', async () => {
      const { registry, replies, listener, sent, events } = setUp()
      const cause = new ConnectionError('it broke', 'unknown')
      replies.push(cause)
      void registry.acquire(ORDERS)
      listener().onSubscribed()
      await clock.advance(101)
      const error = events.at(-1)!.event as RedelayedError
      expect(error).to.include({ code: 'ERR_CONNECTION', queue: 'orders', cause })
      expect(sent).to.have.length(2)
      await registry.close()
    })
  })

  it('sends the clock of this process with `clock: local`', async () => {
    const { registry, listener, sent } = setUp({ clock: 'local' })
    const before = Date.now()
    void registry.acquire(ORDERS)
    listener().onSubscribed()
    await settle()
    expect(Number(sent[0]!.args[1])).to.be.within(before, Date.now())
    await registry.close()
  })

  it('sweeps each queue about every interval', async () => {
    const { registry, sent } = setUp({ sweepInterval: 1000 })
    void registry.acquire(ORDERS)
    void registry.acquire(OTHER)
    await clock.advance(60_000)
    for (const { keys } of [ORDERS, OTHER]) {
      const times = sent.filter(({ destination }) => destination === keys.destination).map(({ at }) => at)
      expect(times.length).to.be.within(55, 65)
      const gaps = times.slice(1).map((time, n) => time - times[n]!)
      expect(Math.max(...gaps)).to.be.at.most(1300)
    }
    await registry.close()
  })

  describe('close', () => {
    it('stops all queues, waits for transfers under way, and refuses further use', async () => {
      const { registry, listener, gate, changes, sent } = setUp()
      const release = registry.acquire(ORDERS)
      void registry.consume(OTHER)
      let open = () => {}
      gate.wait = new Promise((resolve) => (open = resolve))
      listener().onSubscribed()
      let closed = false
      const closing = registry.close().then(() => (closed = true))
      await settle()
      expect(closed).to.equal(false)
      open()
      await closing
      expect(clock.pending).to.deep.equal([])
      expect(changes.slice(2)).to.deep.equal([`-${ORDERS.keys.channel}`, `-${OTHER.keys.channel}`])
      expect(() => registry.acquire(ORDERS))
        .to.throw(RedelayedError)
        .with.property('code', 'ERR_SHUTDOWN')
      expect(() => registry.consume(OTHER))
        .to.throw(RedelayedError)
        .with.property('code', 'ERR_SHUTDOWN')
      registry.onOffered(ORDERS, NOW)
      await release()
      await registry.close()
      expect(changes).to.have.length(4)
      await clock.advance(100_000)
      expect(sent).to.have.length(1)
      expect(clock.pending).to.deep.equal([])
    })

    it('waits for a queue that was released just before', async () => {
      const { registry, listener, gate } = setUp()
      const release = registry.acquire(ORDERS)
      let open = () => {}
      gate.wait = new Promise((resolve) => (open = resolve))
      listener().onSubscribed()
      void release()
      let closed = false
      const closing = registry.close().then(() => (closed = true))
      await settle()
      expect(closed).to.equal(false)
      open()
      await closing
    })

    it('emits no error for failures afterwards', async () => {
      const { registry, listener, gate, replies, events } = setUp()
      void registry.acquire(ORDERS)
      replies.push(new ConnectionError('it broke', 'unknown'))
      let open = () => {}
      gate.wait = new Promise((resolve) => (open = resolve))
      const gone = listener()
      gone.onSubscribed()
      const closing = registry.close()
      open()
      await closing
      gone.onError(new ConnectionError('it broke', 'unknown'))
      expect(events.map(({ name }) => name)).to.deep.equal(['subscribed'])
    })
  })
})
