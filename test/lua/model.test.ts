import { expect } from 'chai'
import fc from 'fast-check'
import { run } from '../../src/lua/run.js'
import { amend, offer, poll, transfer } from '../../src/lua/scripts.js'
import { expected, ordered, raw, readable, unordered, useRedis, type Fixture } from './support.js'

/** Random use of the scripts that change a schedule, compared with a model after each step, entry by entry. */
describe('all scripts together', () => {
  const rig = useRedis()
  const LEASE = 25
  const IDLE = 3_600_000

  interface Pending {
    entry: Buffer
    due: number
    /** `null` for bytes that are no entry. */
    payload: string | null
  }

  /** The same queue as plain arrays; every method says what would be published. */
  class Model {
    now = 1_000_000
    pending: Pending[] = []
    order: Buffer[] = []
    destination: string[] = []
    quarantine: Buffer[] = []

    add(added: Pending, inOrder: boolean): number[] {
      this.pending.push(added)
      if (inOrder) this.order.push(added.entry)
      this.#sort()
      return this.pending[0] === added ? [added.due] : []
    }

    amend(found: Pending, due: number | null): number[] {
      const head = this.pending[0]
      if (due === null) this.#remove(found)
      else found.due = due
      this.#sort()
      const changed = head === found || this.pending[0] === found
      return changed && this.pending[0] !== undefined ? [this.pending[0].due] : []
    }

    transfer(limit: number): { moved: number; published: number[] } {
      let [moved, aside] = [0, 0]
      for (const one of this.pending.filter(({ due }) => due < 0)) {
        this.#setAside('negative-due', one)
        aside++
      }
      const negative = aside
      while (moved + aside - negative < limit && this.pending[0] !== undefined && this.pending[0].due <= this.now) {
        const [head] = this.pending
        if (head.payload === null) {
          this.#setAside('malformed', head)
          aside++
        } else {
          this.#remove(head)
          this.destination.push(head.payload)
          moved++
        }
      }
      const next = this.pending[0]?.due
      const look = next === undefined ? this.now + IDLE : next <= this.now ? this.now + LEASE : next
      return { moved, published: moved + aside > 0 ? [look] : [] }
    }

    poll(count: number, byOffer: boolean): Buffer[] {
      const known = (entry: Buffer) => this.pending.find((one) => one.entry.equals(entry))
      const chosen = byOffer ? this.order.map(known).filter((one) => one !== undefined) : [...this.pending]
      const taken = chosen.slice(0, count)
      for (const one of taken) this.#remove(one)
      return taken.map(({ entry }) => entry)
    }

    #setAside(reason: string, one: Pending): void {
      this.quarantine.push(Buffer.concat([Buffer.from(`${reason} ${this.now} `), one.entry]))
      this.#remove(one)
    }

    #remove(one: Pending): void {
      this.pending.splice(this.pending.indexOf(one), 1)
      const at = this.order.findIndex((entry) => entry.equals(one.entry))
      if (at !== -1) this.order.splice(at, 1)
    }

    #sort(): void {
      this.pending.sort((x, y) => x.due - y.due || Buffer.compare(x.entry, y.entry))
    }
  }

  type Step =
    | { do: 'offer'; delay: number; id: string; free: boolean }
    | { do: 'poison'; delay: number; bytes: string; inOrder: boolean }
    | { do: 'cancel'; which: number }
    | { do: 'reschedule'; which: number; delay: number }
    | { do: 'transfer'; wait: number; limit: number }
    | { do: 'poll'; count: number; byOffer: boolean }

  const delay = fc.oneof({ weight: 2, arbitrary: fc.constant(20) }, fc.integer({ min: 0, max: 40 }))
  const step = (layout: 'list' | 'none' | 'mixed', poison: boolean): fc.Arbitrary<Step> => {
    const free = layout === 'mixed' ? fc.boolean() : fc.constant(layout === 'none')
    const id = fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom('a', 'b', '\x00', '\x7f', '\xff') })
    const bytes = fc.string({ maxLength: 3, unit: fc.constantFrom('\x00', '\x05', '\x08', 'z', '\xff') })
    const which = fc.nat({ max: 50 })
    const limit = fc.oneof({ weight: 3, arbitrary: fc.constant(1000) }, fc.nat({ max: 3 }))
    return fc.oneof(
      { weight: 12, arbitrary: fc.record({ do: fc.constant('offer' as const), delay, id, free }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), which }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('reschedule' as const), which, delay }) },
      { weight: 5, arbitrary: fc.record({ do: fc.constant('transfer' as const), wait: fc.nat({ max: 30 }), limit }) },
      {
        weight: 1,
        arbitrary: fc.record({
          do: fc.constant('poll' as const),
          count: fc.integer({ min: 1, max: 3 }),
          byOffer: fc.boolean(),
        }),
      },
      {
        weight: poison ? 3 : 0,
        arbitrary: fc.record({
          do: fc.constant('poison' as const),
          delay: fc.oneof(fc.constant(-2_000_000), fc.integer({ min: -5, max: 30 })),
          bytes,
          inOrder: fc.boolean(),
        }),
      },
    )
  }

  async function perform(one: Step, model: Model, queue: Fixture, serial: number): Promise<number[]> {
    const channel = queue.keys.channel
    const nowMs = model.now
    switch (one.do) {
      case 'offer': {
        const payload = `payload ${serial}`
        const entry = one.free ? unordered(one.id, payload, 5) : ordered(one.id, payload)
        const args = { channel, nowMs, delayMs: one.delay, entry, ordered: !one.free, undeliveredUntilMs: -1 }
        expect(await run(rig.sender, offer, queue.keys, args)).to.equal(nowMs + one.delay)
        return model.add({ entry, due: nowMs + one.delay, payload }, !one.free)
      }
      case 'poison': {
        const entry = raw(one.bytes)
        if (model.pending.some((known) => known.entry.equals(entry))) return []
        const due = nowMs + one.delay
        await rig.redis.zadd(queue.keys.timeouts, due, entry)
        if (one.inOrder) await rig.redis.rpush(queue.keys.order, entry)
        model.add({ entry, due, payload: null }, one.inOrder)
        return []
      }
      case 'cancel':
      case 'reschedule': {
        const known = model.pending.filter(({ payload }) => payload !== null)
        const found = known[one.which % Math.max(1, known.length)]
        if (found === undefined) return []
        const prefix = found.entry.subarray(0, 1 + found.entry[0]!)
        // of two entries with the same id and due time either one may be meant; the ids that are drawn are never equal
        const same = known.filter(
          (other) => other.due === found.due && other.entry.subarray(0, prefix.length).equals(prefix),
        )
        if (same.length > 1) return []
        const delayMs = one.do === 'cancel' ? -1 : one.delay
        const due = one.do === 'cancel' ? null : nowMs + one.delay
        const reply = await run(rig.sender, amend, queue.keys, { channel, nowMs, due: found.due, prefix, delayMs })
        expect(reply).to.equal(due ?? 0)
        return model.amend(found, due)
      }
      case 'transfer': {
        model.now += one.wait
        const args = {
          channel,
          nowMs: model.now,
          budgetUs: 1_000_000,
          limit: one.limit,
          leaseMs: LEASE,
          idleMs: IDLE,
          announce: false,
        }
        const reply = await run(rig.sender, transfer, queue.keys, args)
        const { moved, published } = model.transfer(one.limit)
        expect(reply).to.include({ moved, next: model.pending[0]?.due ?? null, orderError: '' })
        return published
      }
      case 'poll': {
        const entries = await run(rig.sender, poll, queue.keys, { count: one.count, ordered: one.byOffer })
        expect(entries.map(readable)).to.deep.equal(model.poll(one.count, one.byOffer).map(readable))
        return []
      }
    }
  }

  for (const layout of ['list', 'none', 'mixed'] as const) {
    for (const poison of [false, true]) {
      it(`behave as their model with ${layout === 'mixed' ? 'both kinds of entries' : `order '${layout}'`}${poison ? ' and poison' : ''}`, async () => {
        const queue = await rig.queue()
        await fc.assert(
          fc.asyncProperty(fc.array(step(layout, poison), { maxLength: 60, size: 'max' }), async (steps) => {
            await queue.write({})
            await queue.published()
            const model = new Model()
            for (const [serial, one] of steps.entries()) {
              const published = await perform(one, model, queue, serial)
              const { pending, order, destination, quarantine } = model
              const timeouts = pending.map(({ entry, due }) => [entry, due] as const)
              expect(await queue.read()).to.deep.equal(expected({ timeouts, order, destination, quarantine }))
              expect(await queue.published()).to.deep.equal(published.map(String))
            }
          }),
          { numRuns: 40 },
        )
      }).timeout(60_000)
    }
  }

  it('deliver the same whether the order list allows the fast path or not', async () => {
    const due = fc.integer({ min: 0, max: 30 })
    await fc.assert(
      fc.asyncProperty(fc.array(due, { minLength: 1, maxLength: 60 }), fc.boolean(), async (dues, shuffled) => {
        const entries = dues.map((_, n) => ordered(String(n).padStart(4, '0'), `p${n}`))
        const byDue = entries.map((entry, n) => [entry, dues[n]!] as const).sort((x, y) => x[1] - y[1])
        const fast = await rig.queue({ timeouts: byDue, order: byDue.map(([entry]) => entry) })
        const slow = await rig.queue({ timeouts: byDue, order: shuffled ? entries : entries.toReversed() })
        const done = await Promise.all(
          [fast, slow].map(async (queue) => {
            const channel = queue.keys.channel
            const args = {
              channel,
              nowMs: 20,
              budgetUs: 1_000_000,
              limit: 1000,
              leaseMs: 1,
              idleMs: 1,
              announce: false,
            }
            const { workedUs, ...reply } = await run(rig.sender, transfer, queue.keys, args)
            expect(workedUs).to.be.at.least(0)
            const { order, ...rest } = await queue.read()
            return { reply, ...rest, order: [...order].sort(), published: await queue.published() }
          }),
        )
        expect(done[1]).to.deep.equal(done[0])
      }),
      { numRuns: 60 },
    )
  }).timeout(60_000)
})
