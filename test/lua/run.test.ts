import { expect } from 'chai'
import { CommandError } from '../../src/errors.js'
import { offer } from '../../src/store/scripts.js'
import { run, runMany, type Sender } from '../../src/store/run.js'
import type { CallOptions } from '../../src/store/sender.js'
import { expected, ordered, rejection, useRedis, type Fixture } from './support.js'

/** On a server of its own, because the scripts of all clients are forgotten. */
describe('sending scripts', () => {
  const rig = useRedis([])
  const NOW = 1_000_000
  const entries = Array.from({ length: 6 }, (_, n) => ordered(`id${n}`, `p${n}`))
  const argsOf = (queue: Fixture, entry: Buffer) => ({
    channel: queue.keys.channel,
    nowMs: NOW,
    delayMs: 1,
    entry,
    ordered: true,
    undeliveredUntilMs: -1,
  })
  const all = expected({ timeouts: entries.map((entry) => [entry, NOW + 1] as const), order: entries })

  beforeEach(() => rig.redis.script('FLUSH'))

  /** Notes what is sent, and makes the server forget its scripts before the pipelined command number `forgetBefore`. */
  function watched(forgetBefore: number[] = []): Sender & { sent: string[][] } {
    const { sender } = rig
    const sent: string[][] = []
    return {
      sent,
      call(command, args, options) {
        sent.push([command])
        return sender.call(command, args, options)
      },
      async pipeline(commands) {
        sent.push(commands.map(([command]) => command))
        const at = forgetBefore.shift()
        if (at === undefined) return sender.pipeline(commands)
        const replies = await sender.pipeline([...commands.slice(0, at), ['SCRIPT', ['FLUSH']], ...commands.slice(at)])
        return replies.toSpliced(at, 1)
      },
    }
  }

  it('sends the text once to a server that does not know the script, and the hash from then on', async () => {
    const queue = await rig.queue()
    const sender = watched()
    for (const entry of entries) expect(await run(sender, offer, queue.keys, argsOf(queue, entry))).to.equal(NOW + 1)
    expect(sender.sent.flat()).to.deep.equal(['EVALSHA', 'EVAL', ...Array.from({ length: 5 }, () => 'EVALSHA')])
    expect(await queue.read()).to.deep.equal(all)
    expect(await rig.redis.script('EXISTS', offer.source.sha1)).to.deep.equal([1])
  })

  it('sends large arguments once, also to a server that does not know the script', async () => {
    const queue = await rig.queue()
    const large = Array.from({ length: 3 }, (_, n) => ordered(`id${n}`, 'p'.repeat(offer.source.source.length)))
    const sender = watched()
    for (const entry of large) expect(await run(sender, offer, queue.keys, argsOf(queue, entry))).to.equal(NOW + 1)
    expect(sender.sent.flat()).to.deep.equal(['EVAL', 'EVALSHA', 'EVALSHA'])
    await rig.redis.script('FLUSH')
    const entry = ordered('id4', 'p'.repeat(offer.source.source.length))
    expect(await run(sender, offer, queue.keys, argsOf(queue, entry))).to.equal(NOW + 1)
    expect(sender.sent.flat().slice(3)).to.deep.equal(['EVALSHA', 'EVAL'])
  })

  it('sends the text again to a server that forgot the script', async () => {
    const queue = await rig.queue()
    for (const entry of entries) {
      await rig.redis.script('FLUSH')
      expect(await run(rig.sender, offer, queue.keys, argsOf(queue, entry))).to.equal(NOW + 1)
    }
    expect(await queue.read()).to.deep.equal(all)
  })

  it('passes on other errors without a second attempt', async () => {
    const queue = await rig.queue()
    await run(rig.sender, offer, queue.keys, argsOf(queue, entries[0]!))
    await queue.write({})
    await rig.redis.set(queue.keys.timeouts, 'in the way')
    const sender = watched()
    const offered = run(sender, offer, queue.keys, argsOf(queue, entries[0]!))
    expect(await rejection(offered)).to.include({ code: 'ERR_WRONG_TYPE' })
    expect(sender.sent).to.deep.equal([['EVALSHA']])
  })

  it('passes on whether the command may be sent again, and when the whole began', async () => {
    const seen: [string, CallOptions | undefined][] = []
    const sender: Sender = {
      call: async (command, _args, options) => {
        seen.push([command, options])
        if (command === 'EVALSHA') throw new CommandError('NOSCRIPT', 'NOSCRIPT')
        return 5
      },
      pipeline: async () => [],
    }
    const queue = await rig.queue()
    await run(sender, offer, queue.keys, argsOf(queue, entries[0]!), { resend: 'reads' })
    const startedAt = seen[0]?.[1]?.startedAt
    expect(startedAt).to.be.a('number')
    expect(seen).to.deep.equal([
      ['EVALSHA', { resend: 'reads', startedAt }],
      ['EVAL', { resend: 'reads', startedAt, continues: true }],
    ])
  })

  it('repeats a pipeline that met an unknown script, the first command with the text', async () => {
    const queue = await rig.queue()
    const sender = watched()
    const replies = await runMany(
      sender,
      offer,
      queue.keys,
      entries.map((entry) => argsOf(queue, entry)),
    )
    expect(replies).to.deep.equal(entries.map(() => NOW + 1))
    expect(sender.sent).to.deep.equal([
      Array.from({ length: 6 }, () => 'EVALSHA'),
      ['EVAL', ...Array.from({ length: 5 }, () => 'EVALSHA')],
    ])
    expect(await queue.read()).to.deep.equal(all)
  })

  for (const at of [1, 3, 5]) {
    it(`repeats only the calls that met an unknown script when it is forgotten before command ${at + 1} of a pipeline`, async () => {
      const queue = await rig.queue()
      await rig.redis.script('LOAD', offer.source.source)
      const sender = watched([at])

      const replies = await runMany(
        sender,
        offer,
        queue.keys,
        entries.map((entry) => argsOf(queue, entry)),
      )

      expect(replies).to.deep.equal(entries.map(() => NOW + 1))
      expect(sender.sent[1]).to.deep.equal(['EVAL', ...Array.from({ length: 5 - at }, () => 'EVALSHA')])
      expect(sender.sent).to.have.length(2)
      expect(await queue.read()).to.deep.equal(all)
    })
  }

  it('sends the text with each call to a server that forgets its scripts again and again', async () => {
    const queue = await rig.queue()
    await rig.redis.script('LOAD', offer.source.source)
    const sender = watched([1, 1, 1])
    const replies = await runMany(
      sender,
      offer,
      queue.keys,
      entries.map((entry) => argsOf(queue, entry)),
    )
    expect(replies).to.deep.equal(entries.map(() => NOW + 1))
    expect(sender.sent.at(-1)).to.deep.equal(['EVAL', 'EVAL', 'EVAL'])
    expect(await queue.read()).to.deep.equal(all)
  })

  it('keeps each result or error at its place, and repeats no other error', async () => {
    const queue = await rig.queue()
    await rig.redis.script('LOAD', offer.source.source)
    const sender = watched()
    const broken = { ...argsOf(queue, entries[1]!), delayMs: Number.NaN }
    const args = [argsOf(queue, entries[0]!), broken, argsOf(queue, entries[2]!)]
    const [first, second, third] = await runMany(sender, offer, queue.keys, args)
    expect([first, third]).to.deep.equal([NOW + 1, NOW + 1])
    expect(second).to.be.an('error').that.includes({ code: 'ERR_COMMAND' })
    expect(sender.sent).to.have.length(1)
  })

  it('keeps the other results beside an invalid reply', async () => {
    const queue = await rig.queue()
    const sender: Sender = { call: async () => null, pipeline: async () => [NOW, null, NOW + 1] }
    const args = entries.slice(0, 3).map((entry) => argsOf(queue, entry))
    const [first, second, third] = await runMany(sender, offer, queue.keys, args)
    expect([first, third]).to.deep.equal([NOW, NOW + 1])
    expect(second).to.be.an('error').that.includes({ code: 'ERR_INTERNAL' })
  })

  it('sends nothing for no arguments', async () => {
    const queue = await rig.queue()
    const sender = watched()
    expect(await runMany(sender, offer, queue.keys, [])).to.deep.equal([])
    expect(sender.sent.flat()).to.deep.equal([])
  })
})
