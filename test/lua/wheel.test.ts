import { expect } from 'chai'
import { EntryIds } from '../../src/codecs/entry-id.js'
import { encodeEntry, payloadOf, WHEEL_ID_BYTES } from '../../src/codecs/entry.js'
import { RedelayedError } from '../../src/errors.js'
import { resolveSettings } from '../../src/options.js'
import {
  DelayedStore,
  DUE_TOO_LARGE,
  FIRST_ATTEMPT,
  TOO_LATE_TO_REPEAT,
  type OfferedEntry,
} from '../../src/store/delayed-store.js'
import { run, type Sender } from '../../src/store/run.js'
import { wheelClear, wheelCount, type TransferReply } from '../../src/store/scripts.js'
import { TransferStore } from '../../src/store/transfer-store.js'
import { WheelStore } from '../../src/store/wheel-store.js'
import { isLongForm } from '../support/long-form.js'
import { randomFrom } from '../support/random.js'
import { commandCalls, readable, senderOf, useRedis } from './support.js'

/** The start of a minute that the server's clock has not reached. */
const NOW = 4_000_000_020_000
const MINUTE = 60_000
/** A bucket is promoted so long before its minute. */
const LEAD = 45_000

describe('a wheel', () => {
  const rig = useRedis()
  const own = useRedis([])
  const ids = new EntryIds(1)

  /** A queue with a clock of its own, whose keys are deleted afterwards. */
  async function wheel(of = rig) {
    const queue = await of.queue()
    const clock = { now: NOW }
    const settings = resolveSettings({ clock: 'local' }, () => clock.now)
    const { keys } = queue
    const store = new WheelStore(of.sender, keys, settings)
    const schedule = new DelayedStore(of.sender, keys, { settings, layout: 'wheel' })
    const transfers = new TransferStore(of.sender, keys, settings)
    const part = (name: string): string => keys.wheel.replace('redelayed:wheel', `redelayed:${name}`)
    const bucket = (due: number): string => part(`wheel-${Math.floor(due / MINUTE)}`)
    const gone = (due: number): string => part(`gone-${Math.floor(due / MINUTE)}`)
    const make = (payload: string, delayMs: number): OfferedEntry & { id: Buffer } => {
      const id = ids.next(WHEEL_ID_BYTES)
      const entry = encodeEntry(id, Buffer.from(payload))
      return { id, entry, due: { delayMs }, undeliveredUntilMs: FIRST_ATTEMPT }
    }
    const offer = async (payload: string, delayMs: number): Promise<{ id: Buffer; due: number; entry: Buffer }> => {
      const made = make(payload, delayMs)
      return { ...made, due: await store.offer(made) }
    }
    const step = (): Promise<TransferReply> =>
      transfers.transfer({ limit: 1000, client: 'c', announce: false, renew: false, buckets: true })
    /** All that is due, in the order in which it came. */
    const deliver = async (): Promise<string[]> => {
      for (let reply = await step(); reply.next !== null && reply.next <= clock.now;) reply = await step()
      const delivered = await of.redis.lrange(keys.destination, 0, -1)
      await of.redis.del(keys.destination)
      return delivered
    }
    const clear = async (): Promise<void> => {
      await store.clear()
      const left = await of.redis.keys(`*{${queue.name}}*`)
      expect(left.filter((key) => key.includes('wheel') || key.includes('gone'))).to.deep.equal([])
      await of.redis.del(part('horizon'))
    }
    return { queue, keys, clock, store, schedule, transfers, part, bucket, gone, make, offer, step, deliver, clear }
  }

  it('keeps messages due soon in the schedule, and the rest in the buckets of their minutes', async () => {
    const { queue, bucket, clock, offer, step, clear } = await wheel()
    const near = await offer('near', MINUTE - 1)
    const far = await offer('far', MINUTE + 7)
    const late = await offer('late', 5 * MINUTE)
    expect((await queue.read()).timeouts).to.deep.equal([[readable(near.entry), String(near.due)]])
    expect(await rig.redis.lrangeBuffer(bucket(far.due), 0, -1)).to.deep.equal([
      Buffer.concat([Buffer.of(0, 7), far.entry]),
    ])
    expect((await step()).next).to.equal(NOW + MINUTE - LEAD)
    clock.now = NOW + MINUTE - LEAD - 1
    expect(await step()).to.include({ promoted: 0, next: NOW + MINUTE - LEAD })
    clock.now = NOW + MINUTE - LEAD
    expect(await step()).to.include({ promoted: 2, moved: 0, next: near.due })
    expect((await queue.read()).timeouts).to.deep.include([readable(far.entry), String(far.due)])
    expect(await rig.redis.exists(bucket(far.due))).to.equal(0)
    expect(late.due).to.equal(NOW + 5 * MINUTE)
    await clear()
  })

  it('announces a due time or a promotion only where it is the next transfer', async () => {
    const { queue, offer, clear } = await wheel()
    await offer('a', 5 * MINUTE)
    await offer('b', 6 * MINUTE)
    await offer('c', 3 * MINUTE)
    await offer('d', 1_000)
    await offer('e', 2 * MINUTE)
    const published = [5 * MINUTE - LEAD, 3 * MINUTE - LEAD, 1_000].map((at) => String(NOW + at))
    expect(await queue.published()).to.deep.equal(published)
    await clear()
  })

  it('announces it also behind minutes of another program whose time has passed', async () => {
    const { queue, keys, store, offer, clear } = await wheel()
    const near = await offer('near', 1_000)
    await store.cancel(near.id, near.due)
    await rig.redis.zadd(keys.wheel, '-inf', 5, NOW - 100 * MINUTE, 6)
    await queue.published()
    const far = await offer('far', 5 * MINUTE)
    await store.reschedule(far.id, far.due, 1_000, ids.next(WHEEL_ID_BYTES))
    expect(await queue.published()).to.deep.equal([5 * MINUTE - LEAD, 1_000].map((at) => String(NOW + at)))
    await clear()
  })

  it('cancels in a bucket without reading it, and once', async () => {
    const { gone, clock, store, offer, deliver, clear } = await wheel()
    const [a, b] = [await offer('a', 5 * MINUTE), await offer('b', 5 * MINUTE)]
    expect(await store.cancel(a.id, a.due)).to.equal(true)
    expect(await store.cancel(a.id, a.due)).to.equal(false)
    expect(await store.cancel(a.id, a.due + MINUTE)).to.equal(false)
    expect(await store.size()).to.equal(1)
    clock.now = b.due
    expect(await deliver()).to.deep.equal(['b'])
    expect(await store.cancel(b.id, b.due)).to.equal(false)
    expect(await rig.redis.exists(gone(a.due))).to.equal(0)
    await clear()
  })

  it('continues with the promotion of a minute for a cancel of a message in it, also after the clock was set back', async () => {
    const { clock, store, make, step, deliver, clear } = await wheel()
    const many = Array.from({ length: 700 }, (_, n) => make(String(n), 5 * MINUTE))
    const dues = await store.offerTogether(many)
    clock.now += 5 * MINUTE - LEAD
    const { promoted } = await step()
    expect(promoted).to.be.within(1, 200)
    clock.now = NOW
    const [first, last] = [many[0]!, many.at(-1)!]
    expect(await store.cancel(last.id, dues[0]!)).to.equal(true)
    expect(await store.cancel(first.id, dues[0]!)).to.equal(true)
    expect(await store.cancel(last.id, dues[0]!)).to.equal(false)
    expect(await store.size()).to.equal(698)
    clock.now = dues[0]!
    expect(await deliver()).to.deep.equal(many.slice(1, -1).map(({ entry }) => payloadOf(entry).toString()))
    await clear()
  })

  it('delivers the messages of a late bucket before those that are due after it', async () => {
    const { clock, store, make, offer, step, deliver, clear } = await wheel()
    const many = Array.from({ length: 300 }, (_, n) => make(String(n), 5 * MINUTE + n))
    await store.offerTogether(many)
    clock.now = NOW + 7 * MINUTE
    await offer('after', 0)
    expect(await step()).to.include({ moved: 0 })
    expect(await deliver()).to.deep.equal([...many.map((_, n) => String(n)), 'after'])
    await clear()
  })

  it('reschedules from bucket to bucket, to the schedule and back', async () => {
    const { clock, store, offer, deliver, clear } = await wheel()
    const others = Array.from({ length: 1_500 }, (_, n) => offer(`other ${n}`, 20 * MINUTE))
    await Promise.all(others)
    let { id, due } = await offer('moved', 20 * MINUTE)
    for (const delay of [30 * MINUTE, 30 * MINUTE, 1_000, 20 * MINUTE, 20 * MINUTE + 1, 10]) {
      const newId = ids.next(WHEEL_ID_BYTES)
      const newDue = await store.reschedule(id, due, delay, newId)
      expect(newDue).to.equal(clock.now + delay)
      expect(await store.reschedule(id, due, 5, ids.next(WHEEL_ID_BYTES)), 'of the old ticket').to.equal(null)
      expect(await store.cancel(id, due), 'of the old ticket').to.equal(false)
      expect(await store.size()).to.equal(1_501)
      ;[id, due] = [newId, newDue!]
    }
    expect(await store.reschedule(id, due, Number.MAX_SAFE_INTEGER, id)).to.equal(DUE_TOO_LARGE)
    clock.now += 10
    expect(await deliver()).to.deep.equal(['moved'])
    clock.now += 30 * MINUTE
    expect(await deliver())
      .to.have.length(1_500)
      .and.not.to.include('moved')
    await clear()
  })

  it('takes an offer that was sent twice for one message, which a cancel meets wherever its copies are', async () => {
    for (const cancels of [true, false]) {
      const { clock, store, make, deliver, clear } = await wheel()
      const made = make('twice', 5 * MINUTE)
      const first = await store.offer(made)
      clock.now += 50
      const due = await store.offer({ ...made, undeliveredUntilMs: first })
      expect(due).to.equal(first + 50)
      if (cancels) expect(await store.cancel(made.id, due)).to.equal(true)
      clock.now = due
      expect(await deliver()).to.deep.equal(cancels ? [] : ['twice'])
      await clear()
    }
  })

  it('meets both copies where the second one comes while the bucket is being promoted', async () => {
    const { clock, store, make, step, deliver, clear } = await wheel()
    await store.offerTogether(Array.from({ length: 250 }, (_, n) => make(String(n), 5 * MINUTE)))
    const made = make('twice', 5 * MINUTE)
    const first = await store.offer(made)
    clock.now += 5 * MINUTE - LEAD
    await step()
    const due = await store.offer({ ...made, due: { delayMs: LEAD + 30 }, undeliveredUntilMs: first })
    expect(due).to.equal(first + 30)
    expect(await store.cancel(made.id, due)).to.equal(true)
    clock.now += MINUTE
    expect(await deliver())
      .to.have.length(250)
      .and.not.to.include('twice')
    await clear()
  })

  it('repeats no offer whose due time has come to be in another minute', async () => {
    const { clock, store, make, deliver, clear } = await wheel()
    const made = make('once', 6 * MINUTE - 1)
    const first = await store.offer(made)
    clock.now += 1
    expect(await store.offer({ ...made, undeliveredUntilMs: first })).to.equal(TOO_LATE_TO_REPEAT)
    const dated = { ...make('dated', 0), due: { atMs: NOW + 6 * MINUTE } }
    expect(await store.offer(dated)).to.equal(NOW + 6 * MINUTE)
    expect(await store.offer({ ...dated, undeliveredUntilMs: NOW + 6 * MINUTE - 1_000 })).to.equal(NOW + 6 * MINUTE)
    clock.now += 10 * MINUTE
    expect(await deliver()).to.deep.equal(['once', 'dated'])
    await clear()
  })

  it('answers a repetition with the contents of the schedule, and "too late" once the message may have been delivered', async () => {
    const { clock, store, make, clear } = await wheel()
    const made = make('near', 1_000)
    const first = await store.offer(made)
    clock.now += 5
    expect(await store.offer({ ...made, undeliveredUntilMs: first })).to.equal(first)
    expect(await store.offer({ ...make('late', 1_000), undeliveredUntilMs: 1_000 })).to.equal(TOO_LATE_TO_REPEAT)
    await clear()
  })

  it('refuses a due time beyond 2^53-1 as too large, and adds the others', async () => {
    const { store, make, clear } = await wheel()
    const delays = [Number.MAX_SAFE_INTEGER, 1, Number.MAX_SAFE_INTEGER - NOW, 5 * MINUTE]
    const replies = await store.offerTogether(delays.map((delay) => make('x', delay)))
    expect(replies).to.deep.equal([DUE_TOO_LARGE, NOW + 1, Number.MAX_SAFE_INTEGER, NOW + 5 * MINUTE])
    expect(await store.size()).to.equal(3)
    await clear()
  })

  it('adds all where the key of a bucket has another type, and stops nothing where it got one later', async () => {
    const { clock, bucket, gone, store, offer, make, step, deliver, clear } = await wheel()
    await rig.redis.set(bucket(NOW + 5 * MINUTE), 'a stranger')
    const offered = [make('a', 5 * MINUTE), make('b', 6 * MINUTE), make('c', 7 * MINUTE)]
    const dues = await store.offerTogether(offered)
    expect(await store.size()).to.equal(3)
    expect(await store.cancel(offered[0]!.id, dues[0]!)).to.equal(true)
    await rig.redis.set(bucket(dues[1]!), 'a stranger')
    await rig.redis.set(gone(dues[2]!), 'a stranger')
    await offer('d', 8 * MINUTE)
    const errors: string[] = []
    for (const passed of [6 * MINUTE, 4 * MINUTE]) {
      clock.now += passed
      errors.push((await step()).wheelError)
    }
    expect(errors.every((error) => error.startsWith('WRONGTYPE'))).to.equal(true)
    expect(await deliver()).to.deep.equal(['c', 'd'])
    await rig.redis.del(bucket(dues[0]!), bucket(dues[1]!))
    await clear()
  })

  it('waits with a promotion while the cancelled ids are not a set, so that none of their messages are delivered', async () => {
    const { keys, clock, gone, bucket, store, make, offer, step, deliver, clear } = await wheel()
    const many = Array.from({ length: 300 }, (_, n) => make(String(n), 5 * MINUTE))
    const [due = 0] = await store.offerTogether(many)
    const later = await offer('later', 6 * MINUTE)
    const [first, last] = [many[0]!, many.at(-1)!]
    expect(await store.cancel(first.id, due)).to.equal(true)
    expect(await store.cancel(last.id, due)).to.equal(true)
    await rig.redis.rename(gone(due), `${gone(due)}:aside`)
    await rig.redis.set(gone(due), 'a stranger')
    clock.now = due - LEAD
    await offer('near', 0)
    const waiting = await step()
    expect(waiting).to.include({ promoted: 0, moved: 1, next: clock.now + 1_000 })
    expect(waiting.wheelError).to.match(/^WRONGTYPE/)
    clock.now = due - 5_001
    expect(await step()).to.include({ promoted: 0, next: clock.now + 1_000 })
    expect(await rig.redis.llen(bucket(due))).to.equal(300)
    // a cancel meanwhile waits, too
    const cancelling = store.cancel(many[1]!.id, due)
    await rig.redis.rename(`${gone(due)}:aside`, gone(due))
    expect(await cancelling).to.equal(true)
    clock.now = later.due
    const expected = many.slice(2, -1).map(({ entry }) => payloadOf(entry).toString())
    expect(await deliver()).to.deep.equal(['near', ...expected, 'later'])
    expect(await rig.redis.exists(gone(due), keys.wheel)).to.equal(0)
    await clear()
  })

  it('waits also behind a part of the bucket, and no longer than until 5 s before the minute', async () => {
    const { clock, gone, store, make, step, deliver, clear } = await wheel()
    const many = Array.from({ length: 300 }, (_, n) => make(String(n), 5 * MINUTE))
    const [due = 0] = await store.offerTogether(many)
    expect(await store.cancel(many.at(-1)!.id, due)).to.equal(true)
    clock.now = due - LEAD
    expect((await step()).promoted).to.be.within(1, 200)
    await rig.redis.set(gone(due), 'a stranger')
    expect(await step()).to.include({ promoted: 0 })
    clock.now = due - 5_000
    expect((await step()).promoted).to.be.at.least(1)
    clock.now = due
    expect(await deliver()).to.have.length(300)
    await clear()
  })

  it('promotes a minute that another program lets begin early without a wait for its cancelled ids', async () => {
    const { clock, keys, gone, store, make, offer, step, deliver, clear } = await wheel()
    const [due = 0] = await store.offerTogether([make('far', 60 * MINUTE)])
    await rig.redis.zadd(keys.wheel, '-inf', Math.floor(due / MINUTE))
    await rig.redis.set(gone(due), 'a stranger')
    await offer('near', 0)
    expect(await step()).to.include({ promoted: 2, moved: 1 })
    clock.now = due
    expect(await deliver()).to.deep.equal(['near', 'far'])
    await clear()
  })

  it('passes over thousands of minutes that another program has written, with many by one script', async () => {
    const MANY = 4_000
    const minutes = Array.from({ length: MANY }, (_, minute) => minute)
    for (const parts of [[], ['gone'], ['wheel']]) {
      const { queue, keys, store, part, offer, step, make, clear } = await wheel()
      const cancelled = make('cancelled', 5 * MINUTE)
      const [due = 0] = await store.offerTogether([cancelled])
      await offer('near', 0)
      const pipeline = rig.redis.pipeline()
      for (const minute of minutes) {
        if (parts.includes('gone')) pipeline.sadd(part(`gone-${minute}`), 'x')
        if (parts.includes('wheel')) pipeline.rpush(part(`wheel-${minute}`), 'x')
      }
      pipeline.zadd(keys.wheel, ...minutes.flatMap((minute) => ['-inf', minute]))
      await pipeline.exec()
      let steps = 1
      for (let reply = await step(); reply.moved === 0 && steps < MANY; steps++) {
        expect(reply.next, 'the next look').to.be.at.most(NOW)
        reply = await step()
      }
      expect((await queue.read()).destination).to.deep.equal(['near'])
      expect(steps, parts.join()).to.be.below(MANY / 4)
      expect(await store.cancel(cancelled.id, due)).to.equal(true)
      await clear()
    }
  })

  it('delivers due messages with the script that ends a late minute, before another program can write another one', async () => {
    const { queue, keys, offer, step, clear } = await wheel()
    await offer('near', 0)
    await rig.redis.zadd(keys.wheel, '-inf', 5)
    expect(await step()).to.include({ promoted: 1, moved: 1 })
    expect((await queue.read()).destination).to.deep.equal(['near'])
    await clear()
  })

  it('looks at a minute to which another program gave a time that has come when the next one is promoted, and not before', async () => {
    const { queue, clock, keys, offer, step, clear } = await wheel()
    await rig.redis.zadd(keys.wheel, NOW - 1, 5)
    expect(await step()).to.include({ promoted: 0, next: NOW + MINUTE - LEAD })
    await queue.published()
    await offer('near', 1_000)
    expect(await queue.published()).to.deep.equal([String(NOW + 1_000)])
    clock.now = NOW + MINUTE - LEAD
    expect(await step()).to.include({ promoted: 1, moved: 1, next: null })
    await clear()
  })

  it('removes members that are not minutes, a megabyte at a time, and continues at once', async () => {
    const { queue, keys, offer, step, clear } = await wheel()
    await offer('near', 0)
    await offer('far', 5 * MINUTE)
    const names = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(600_000))
    for (const name of names) await rig.redis.zadd(keys.wheel, '-inf', name)
    expect(await step()).to.include({ promoted: 2, next: NOW })
    expect(await step()).to.include({ promoted: 2, next: NOW + 5 * MINUTE - LEAD })
    expect((await queue.read()).destination).to.deep.equal(['near'])
    await clear()
  })

  it('counts and clears beside members that are not minutes, which scripts read a few at a time if they are large', async () => {
    const { queue, keys, store, schedule, offer, clear } = await wheel()
    const { due } = await offer('far', 5 * MINUTE)
    const first = (name: string) => rig.redis.zadd(keys.wheel, '-inf', name)
    for (const name of ['nan', 'inf', '-1', '1e300', '0x10', '999999999999', '']) {
      await first(name)
      expect(await schedule.stats()).to.include({ pending: 1, nextDue: null })
      await rig.redis.zrem(keys.wheel, name)
    }
    const start = due - (due % MINUTE)
    expect(await schedule.stats()).to.include({ pending: 1, nextDue: start })
    for (const letter of ['a', 'b', 'c', 'd', 'e', 'f']) await first(letter.repeat(100_000))
    const counted = (from: number) => run(rig.sender, wheelCount, keys, { nowMs: NOW, from })
    expect(await schedule.stats()).to.include({ pending: 1 })
    expect(await counted(0)).to.include({ pending: 0, more: 4 })
    expect(await counted(4)).to.include({ pending: 1, more: null })
    expect(await store.size()).to.equal(1)
    expect(await run(rig.sender, wheelClear, keys, {})).to.include({ isMore: true })
    expect(await rig.redis.zcard(keys.wheel)).to.equal(3)
    await store.clear()
    expect((await queue.read()).destination).to.deep.equal([])
    await clear()
  })

  it('delivers messages of the schedule if the key of the wheel has another type, and reports it', async () => {
    const { clock, keys, offer, step, schedule, clear } = await wheel()
    await offer('near', 5)
    await rig.redis.set(keys.wheel, 'a stranger')
    clock.now += 5
    const reply = await step()
    expect(reply).to.include({ moved: 1, next: null })
    expect(reply.wheelError).to.match(/^WRONGTYPE/)
    expect((await schedule.stats()).pending).to.equal(0)
    await clear()
  })

  it('adds nothing at maxmemory, where it cancels, promotes and clears all the same', async () => {
    const { clock, bucket, store, make, offer, step, clear } = await wheel(own)
    const offered = [await offer('a', 5 * MINUTE), await offer('b', 5 * MINUTE), await offer('c', 6 * MINUTE)]
    const [a, b] = offered as [(typeof offered)[0], (typeof offered)[0]]
    await own.redis.config('SET', 'maxmemory', '1')
    try {
      const refused = [make('near', 5), make('far', 5 * MINUTE), make('other', 8 * MINUTE)]
      const [error] = await Promise.allSettled([store.offerTogether(refused)])
      expect(error).to.have.property('status', 'rejected')
      expect(await store.size()).to.equal(3)
      expect(await store.cancel(a.id, a.due)).to.equal(true)
      clock.now = NOW + 5 * MINUTE - LEAD
      expect(await step()).to.include({ promoted: 3, wheelError: '', next: b.due })
      expect(await own.redis.exists(bucket(b.due))).to.equal(0)
      expect(await store.cancel(b.id, b.due)).to.equal(true)
      expect(await store.size()).to.equal(1)
      expect(await store.clear()).to.equal(true)
    } finally {
      await own.redis.config('SET', 'maxmemory', '0')
    }
    await clear()
  })

  it('delivers the messages of the schedule if a user may not access the buckets, and reports it', async () => {
    for (const some of [[], ['gone-*'], ['wheel-*']]) {
      const { queue, clock, keys, part, offer, step, clear } = await wheel(own)
      await offer('far', 5 * MINUTE)
      clock.now += 4 * MINUTE + 20_000
      await offer('near', MINUTE) // after the start of the bucket, which would go first
      const known = [...Object.values(keys).map(String), ...some.map(part)].map((key) => `~${key}`)
      await own.redis.call('ACL', 'SETUSER', 'limited', 'reset', 'on', '>secret', '+@all', '&*', ...known)
      const redis = own.redis.duplicate({ username: 'limited', password: 'secret' })
      try {
        const settings = resolveSettings({ clock: 'local' }, () => clock.now)
        const limited = new TransferStore(senderOf(redis), keys, settings)
        const request = { limit: 1000, client: 'd', announce: false, renew: false, buckets: true }
        clock.now += 2 * MINUTE
        const reply = await limited.transfer(request)
        expect(reply, some.join()).to.include({ moved: 1, promoted: 0, next: null })
        expect(reply.wheelError).not.to.equal('')
      } finally {
        redis.disconnect()
        await own.redis.call('ACL', 'DELUSER', 'limited')
      }
      expect(await step()).to.include({ moved: 1, promoted: 2 })
      expect((await queue.read()).destination).to.deep.equal(['near', 'far'])
      await clear()
    }
  })

  it('adds and moves nothing where the key of the wheel has another type, also behind an earlier head', async () => {
    const { queue, keys, bucket, store, make, offer, clear } = await wheel()
    const near = await offer('near', 5)
    await rig.redis.set(keys.wheel, 'a stranger')
    const before = await queue.read()
    const calls = [
      store.offer(make('far', 5 * MINUTE)),
      store.offerTogether([make('far', 5 * MINUTE), make('farther', 6 * MINUTE)]),
      store.reschedule(near.id, near.due, 5 * MINUTE, ids.next(WHEEL_ID_BYTES)),
    ]
    for (const { status } of await Promise.allSettled(calls)) expect(status).to.equal('rejected')
    expect(await queue.read()).to.deep.equal(before)
    expect(await rig.redis.exists(bucket(NOW + 5 * MINUTE), bucket(NOW + 6 * MINUTE))).to.equal(0)
    await rig.redis.del(keys.wheel)
    await clear()
  })

  it('continues with a promotion after the clock was set back', async () => {
    const { clock, keys, store, make, step, clear } = await wheel()
    const many = Array.from({ length: 450 }, (_, n) => make(String(n), 5 * MINUTE))
    await store.offerTogether(many)
    clock.now += 5 * MINUTE - LEAD
    expect((await step()).promoted).to.be.above(0)
    clock.now -= 2 * MINUTE
    for (let reply = await step(); reply.promoted > 0; reply = await step()) {
      const isThereMore = (await store.size()) > 0 && reply.next !== null && reply.next < NOW + 5 * MINUTE
      if (isThereMore) expect(reply.next, 'the next look').to.be.at.most(clock.now)
    }
    const reply = await step()
    expect(reply).to.include({ promoted: 0, next: NOW + 5 * MINUTE })
    expect(await rig.redis.zcard(keys.timeouts)).to.equal(450)
    await clear()
  })

  it('is counted even if another program has added members that are not minutes', async () => {
    const { keys, schedule, offer, step, clear } = await wheel()
    await offer('a', 5 * MINUTE)
    await rig.redis.zadd(keys.wheel, 1, 'a stranger')
    expect((await schedule.stats()).pending).to.equal(1)
    await step()
    expect(await schedule.stats()).to.include({ pending: 1, nextDue: NOW + 5 * MINUTE })
    await clear()
  })

  it('announces an offer behind an entry of another program that is overdue by more than 365 days', async () => {
    const { queue, keys, offer, clear } = await wheel()
    await rig.redis.zadd(keys.timeouts, 0.5, 'a stranger')
    await offer('far', 5 * MINUTE)
    await offer('near', 1_000)
    expect(await queue.published()).to.deep.equal([5 * MINUTE - LEAD, 1_000].map((at) => String(NOW + at)))
    await clear()
  })

  it('removes the expiry that another program has set on a bucket with the next offer, and on cancelled ids with the next one', async () => {
    const { keys, bucket, gone, store, make, offer, clear } = await wheel()
    const [first, near] = [await offer('first', 5 * MINUTE), await offer('near', 1_000)]
    const ways = [
      () => store.offer(make('second', 5 * MINUTE)),
      () => store.offerTogether([make('third', 5 * MINUTE), make('fourth', 5 * MINUTE)]),
      () => store.reschedule(near.id, near.due, 5 * MINUTE, ids.next(WHEEL_ID_BYTES)),
    ]
    for (const add of ways) {
      await rig.redis.pexpire(bucket(first.due), 60_000)
      await add()
      expect(await rig.redis.pttl(bucket(first.due)), String(add)).to.equal(-1)
    }
    expect(await rig.redis.llen(bucket(first.due))).to.equal(5)
    const others = [await offer('b', 5 * MINUTE), await offer('c', 5 * MINUTE)] as const
    expect(await store.cancel(first.id, first.due)).to.equal(true)
    const cancels = [
      () => store.cancel(others[0].id, others[0].due),
      () => store.reschedule(others[1].id, others[1].due, 1_000, ids.next(WHEEL_ID_BYTES)),
    ]
    for (const cancel of cancels) {
      await rig.redis.pexpire(gone(first.due), 60_000)
      await cancel()
      expect(await rig.redis.pttl(gone(first.due)), String(cancel)).to.equal(-1)
    }
    await rig.redis.del(keys.timeouts)
    await clear()
  })

  it('an offer into an existing bucket costs no more commands than one into a new bucket, although it removes an expiry', async () => {
    const { store, make, clear } = await wheel(own)
    await store.offer(make('first', 5 * MINUTE))
    const total = (calls: Record<string, number>) => Object.values(calls).reduce((sum, count) => sum + count, 0)
    const into = (delayMs: number) => commandCalls(own.redis, () => store.offer(make('x', delayMs)))
    const [fresh, older] = [await into(6 * MINUTE), await into(5 * MINUTE)]
    expect(older).to.include({ rpush: 1, persist: 1 })
    expect(total(older)).to.equal(total(fresh))
    await clear()
  })

  it('promotes buckets in time of which another program has deleted the set: a sweep finds them, and leaves other keys', async () => {
    const { clock, keys, bucket, offer, step, deliver, clear } = await wheel()
    const { due } = await offer('far', 5 * MINUTE)
    await offer('farther', 8 * MINUTE)
    await rig.redis.set(bucket(NOW + 3 * MINUTE), 'a stranger')
    await rig.redis.del(keys.wheel)
    clock.now = NOW + 5 * MINUTE - LEAD - 1
    expect(await step()).to.include({ promoted: 0, next: null, wheelError: '' })
    clock.now += 1
    expect(await step()).to.include({ promoted: 2, next: due, wheelError: '' })
    await rig.redis.zadd(keys.wheel, NOW + 60 * MINUTE, String(Math.floor((NOW + 8 * MINUTE) / MINUTE))) // a time of its own
    clock.now = NOW + 8 * MINUTE + 4 * MINUTE - 1
    expect(await deliver()).to.deep.equal(['far', 'farther'])
    await rig.redis.del(bucket(NOW + 3 * MINUTE))
    await clear()
  })

  it('finds a bucket of the last day that no consumer has found in time, or that has a wrong time, by sweeps at jittered times', async () => {
    for (const [late, isFound] of [
      [23 * 60, true],
      [24 * 60 + 30, false],
    ] as const)
      for (const forged of [false, true]) {
        const { clock, keys, offer, step, deliver, clear } = await wheel()
        const { due } = await offer('far', 5 * MINUTE)
        if (forged) await rig.redis.zadd(keys.wheel, 'inf', String(Math.floor(due / MINUTE)))
        else await rig.redis.del(keys.wheel)
        clock.now = due + late * MINUTE
        const promotions = []
        const random = randomFrom(7)
        // as many as find it with a probability of all but one in a million, within the half hour that the bucket has left
        for (let n = 0; n < 420; n++, clock.now += Math.round(4_000 * (0.8 + 0.4 * random())))
          promotions.push((await step()).promoted)
        expect(promotions.filter((promoted) => promoted > 0)).to.deep.equal(isFound ? [2] : [])
        expect(await deliver()).to.deep.equal(isFound ? ['far'] : [])
        if (!isFound) await rig.redis.zadd(keys.wheel, '0', String(Math.floor(due / MINUTE)))
        await clear()
        await rig.redis.del(keys.timeouts)
      }
  })

  it('promotes such a bucket also at maxmemory, and also where every transfer announces', async () => {
    const { clock, keys, offer, transfers, step, clear } = await wheel(own)
    await offer('far', 5 * MINUTE)
    await offer('farther', 8 * MINUTE)
    await own.redis.del(keys.wheel)
    clock.now += 5 * MINUTE - LEAD
    await own.redis.config('SET', 'maxmemory', '1')
    try {
      expect(await step()).to.include({ promoted: 2 })
    } finally {
      await own.redis.config('SET', 'maxmemory', '0')
    }
    clock.now += 3 * MINUTE
    const promotions = []
    for (let n = 0; n < 61; n++, clock.now++)
      promotions.push(
        (await transfers.transfer({ limit: 1, client: 'c', announce: true, renew: false, buckets: true })).promoted,
      )
    expect(promotions.filter((promoted) => promoted > 0)).to.deep.equal([2])
    await own.redis.del(keys.timeouts, keys.destination)
    await clear()
  })

  it('cancels and reschedules in a bucket whose minute another program has removed from the set', async () => {
    for (const way of ['cancel', 'reschedule']) {
      const { clock, keys, store, offer, deliver, clear } = await wheel()
      const { id, due } = await offer('one', 5 * MINUTE)
      await offer('other', 5 * MINUTE)
      await rig.redis.del(keys.wheel)
      if (way === 'cancel') expect(await store.cancel(id, due)).to.equal(true)
      else expect(await store.reschedule(id, due, 9 * MINUTE, ids.next(WHEEL_ID_BYTES))).to.equal(NOW + 9 * MINUTE)
      clock.now = due
      expect(await deliver(), way).to.deep.equal(['other'])
      await clear()
    }
  })

  it('says at once to a cancel and a reschedule that the user may not access the bucket that is being promoted', async () => {
    const { keys, clock, offer, step, clear } = await wheel(own)
    const { id, due } = await offer('far', 5 * MINUTE)
    clock.now = due
    const known = Object.values(keys).map((key) => `~${key}`)
    await own.redis.call('ACL', 'SETUSER', 'limited', 'reset', 'on', '>secret', '+@all', '&*', ...known)
    const redis = own.redis.duplicate({ username: 'limited', password: 'secret' })
    try {
      const limited = new WheelStore(
        senderOf(redis),
        keys,
        resolveSettings({ clock: 'local' }, () => clock.now),
      )
      for (const call of [() => limited.cancel(id, due), () => limited.reschedule(id, due, 5, id)]) {
        const error: unknown = await call().catch((thrown: unknown) => thrown)
        expect(error).to.be.instanceOf(RedelayedError)
        expect((error as Error).message)
          .to.match(/user|permission/)
          .and.not.include('try again')
      }
    } finally {
      redis.disconnect()
      await own.redis.call('ACL', 'DELUSER', 'limited')
    }
    expect(await step()).to.include({ promoted: 2 })
    await clear()
  })

  it('cancels and reschedules in a minute up to the horizon to which another program gave the end of all times', async () => {
    for (const way of ['cancel', 'reschedule', 'cancel of another one']) {
      const { clock, keys, part, store, offer, deliver, clear } = await wheel()
      const { id, due } = await offer('one', 30 * MINUTE)
      await offer('other', 30 * MINUTE)
      const minute = Math.floor(due / MINUTE)
      await rig.redis.zadd(keys.wheel, 'inf', minute)
      await rig.redis.set(part('horizon'), minute + 1_000)
      const newId = ids.next(WHEEL_ID_BYTES)
      if (way === 'cancel') expect(await store.cancel(id, due)).to.equal(true)
      else if (way === 'reschedule')
        expect(await store.reschedule(id, due, 40 * MINUTE, newId)).to.equal(NOW + 40 * MINUTE)
      else expect(await store.cancel(newId, due)).to.equal(false)
      clock.now = due
      expect(await deliver(), way).to.deep.equal(way === 'cancel of another one' ? ['one', 'other'] : ['other'])
      await clear()
    }
  })

  it('cancels nothing at once in a minute up to the horizon with a foreign time and no bucket', async () => {
    const { keys, part, store, clear } = await wheel()
    const due = NOW + 30 * MINUTE
    await rig.redis.zadd(keys.wheel, 'inf', Math.floor(due / MINUTE))
    await rig.redis.set(part('horizon'), Math.floor(due / MINUTE))
    const id = ids.next(WHEEL_ID_BYTES)
    expect(await store.cancel(id, due)).to.equal(false)
    expect(await store.reschedule(id, due, MINUTE, ids.next(WHEEL_ID_BYTES))).to.equal(null)
    await clear()
  })

  it('overwrites a horizon that is more than a day ahead, so that messages get buckets again', async () => {
    const { clock, part, bucket, store, make, offer, deliver, clear } = await wheel()
    const current = Math.floor((NOW + LEAD) / MINUTE)
    await rig.redis.set(part('horizon'), current + 1_440)
    const near = await offer('within a day', 60 * MINUTE)
    expect(await rig.redis.get(part('horizon'))).to.equal(String(current + 1_440))
    expect(await rig.redis.exists(bucket(near.due))).to.equal(0)
    for (const forged of [current + 1_441, 99_999_999, 'inf', '1e300']) {
      await rig.redis.set(part('horizon'), forged)
      const first = await offer('first', 60 * MINUTE)
      expect(await rig.redis.get(part('horizon'))).to.equal(String(current))
      expect(await rig.redis.llen(bucket(first.due))).to.equal(1)
      expect(await store.cancel(first.id, first.due)).to.equal(true)
      await rig.redis.del(bucket(first.due))
    }
    // what went to the schedule meanwhile is cancelled there, and an offer that is repeated there is the same message
    const sent = make('twice', 61 * MINUTE)
    await rig.redis.set(part('horizon'), current + 1_440)
    const due = await store.offer(sent)
    await rig.redis.set(part('horizon'), 99_999_999)
    expect(await store.offer({ ...sent, undeliveredUntilMs: due })).to.equal(due)
    expect(await store.cancel(near.id, near.due)).to.equal(true)
    clock.now = due
    expect(await deliver()).to.deep.equal(['twice'])
    await clear()
  })

  it('asks a promotion that does not get further after pauses, each twice as long as the one before', async () => {
    const { keys, clock, offer, clear } = await wheel()
    const { id, due } = await offer('far', 5 * MINUTE)
    const minute = String(Math.floor(due / MINUTE))
    clock.now = due
    const { sender } = rig
    let calls = 0
    const counting: Sender = {
      call: async (...call) => {
        calls++
        if (calls < 12) await rig.redis.zadd(keys.wheel, due + MINUTE, minute) // a stranger's time, again and again
        return sender.call(...call)
      },
      pipeline: (commands) => sender.pipeline(commands),
    }
    const settings = resolveSettings({ clock: 'local' }, () => clock.now)
    const began = performance.now()
    expect(await new WheelStore(counting, keys, settings).cancel(id, due)).to.equal(true)
    expect(calls).to.be.within(12, 15)
    expect(performance.now() - began, 'pauses of 5, 10, 20, 40 and 80 ms').to.be.at.least(150)
    await clear()
  })

  it('reads few elements at first, which may be large', async () => {
    const { clock, make, store, step, clear } = await wheel()
    await store.offerTogether(Array.from({ length: 3 }, () => make('x'.repeat(600_000), 5 * MINUTE)))
    clock.now += 5 * MINUTE - LEAD
    expect(await step()).to.include({ promoted: 2 })
    expect(await step()).to.include({ promoted: 2 }) // the third, and the bucket
    await clear()
  })

  it('sets aside elements of a bucket that are not entries', async () => {
    const { clock, queue, bucket, offer, deliver, clear } = await wheel()
    const { due } = await offer('good', 5 * MINUTE)
    await rig.redis.rpush(bucket(due), '', 'x', 'xyz', 'no entry')
    clock.now = due + 10 * MINUTE
    expect(await deliver()).to.deep.equal(['good'])
    expect((await queue.read()).quarantine.map((line) => line.split(' ')[0])).to.deep.equal(Array(4).fill('malformed'))
    await clear()
  })

  it('counts and clears more buckets than one script does', async () => {
    const { clock, schedule, store, make, offer, clear } = await wheel()
    const many = Array.from({ length: 1_100 }, (_, n) => make(String(n), (2 + n) * MINUTE))
    for (let at = 0; at < many.length; at += 100) await store.offerTogether(many.slice(at, at + 100))
    await offer('near', 5)
    expect(await store.size()).to.equal(1_101)
    expect(await schedule.stats()).to.include({ pending: 1_101, overdue: 0, nextDue: NOW + 5 })
    clock.now += 1_001 * MINUTE
    expect(await schedule.stats()).to.include({ pending: 1_101, overdue: 1_001 })
    expect(await store.cancel(many[1_099]!.id, NOW + 1_101 * MINUTE)).to.equal(true)
    expect(await store.clear()).to.equal(true)
    expect(await store.exists()).to.equal(false)
    expect(await store.clear()).to.equal(false)
    await clear()
  })

  it('has each message once, in the order of the due times, unless it was cancelled, whatever the clock does', async () => {
    let seed = 20261127
    const random = (below: number): number => {
      seed = (seed * 1103515245 + 12345) % 2 ** 31
      return Math.floor((seed / 2 ** 31) * below)
    }
    for (let game = 0; game < (isLongForm ? 40 : 6); game++) {
      const { clock, store, schedule, make, deliver, clear } = await wheel()
      const pending = new Map<string, { id: Buffer; due: number }>()
      const tickets: { name: string; id: Buffer; due: number; isOver: boolean }[] = []
      const note = (name: string, id: Buffer, due: number): void => {
        pending.set(name, { id, due })
        tickets.push({ name, id, due, isOver: false })
      }
      const end = (name: string): void => {
        pending.delete(name)
        for (const ticket of tickets) if (ticket.name === name) ticket.isOver = true
      }
      const check = async (): Promise<void> => {
        const dues = (await deliver()).map((name) => {
          const due = pending.get(name)?.due
          expect(due, `${name} of game ${game}`).to.be.a('number').and.at.most(clock.now)
          end(name)
          return due!
        })
        expect(dues, `order in game ${game}`).to.deep.equal([...dues].sort((a, b) => a - b))
        expect([...pending.values()].filter(({ due }) => due <= clock.now)).to.deep.equal([])
      }
      for (let move = 0; move < 120; move++) {
        const name = `${game}-${move}`
        const kind = random(20)
        const ticket = tickets[random(tickets.length)]
        if (kind < 7) {
          const made = Array.from({ length: 1 + random(4) }, (_, n) => make(`${name}-${n}`, random(8 * MINUTE)))
          const dues = await store.offerTogether(made)
          made.forEach(({ id, entry }, n) => note(payloadOf(entry).toString(), id, dues[n]!))
        } else if (kind < 8) {
          const made = make(name, random(8 * MINUTE))
          const first = await store.offer(made)
          clock.now += random(2_000)
          const again = await store.offer({ ...made, undeliveredUntilMs: first })
          note(name, made.id, again === TOO_LATE_TO_REPEAT ? first : again)
        } else if (kind < 11 && ticket !== undefined) {
          expect(await store.cancel(ticket.id, ticket.due), `cancel of ${ticket.name}`).to.equal(!ticket.isOver)
          if (!ticket.isOver) end(ticket.name)
        } else if (kind < 14 && ticket !== undefined) {
          const newId = ids.next(WHEEL_ID_BYTES)
          const due = await store.reschedule(ticket.id, ticket.due, random(8 * MINUTE), newId)
          expect(due !== null, `reschedule of ${ticket.name}`).to.equal(!ticket.isOver)
          if (due !== null) {
            end(ticket.name)
            note(ticket.name, newId, due)
          }
        } else if (kind < 17) {
          clock.now += random(3 * MINUTE)
          await check()
        } else if (kind < 18) {
          clock.now -= random(2 * MINUTE)
        } else {
          await check()
        }
      }
      clock.now += 20 * MINUTE
      await check()
      expect(await store.size()).to.equal(0)
      expect(await schedule.stats()).to.include({ pending: 0, overdue: 0, nextDue: null })
      await clear()
    }
  })
})
