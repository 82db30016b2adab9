import { expect } from 'chai'
import { fork } from 'node:child_process'
import {
  ChangesBehindError,
  ChangesLostError,
  ShutdownError,
  UnsupportedOperationError,
  codecs,
  type ChangeBatch,
  type ChangePosition,
  type ChangesConfig,
  type MessagesEvent,
  type QuarantinedEvent,
  type RedelayedClient,
  type ReliableQueue,
} from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { checkReliable } from '../../src/doctor/checks/reliable.js'
import { openAccess } from '../../src/doctor/access.js'
import { inspectReliable } from '../../src/doctor/inspect-reliable.js'
import { readGauges } from '../../src/observability/measures.js'
import { eventually } from '../support/events.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, onCleanup, rejection } from './fixtures.js'

const CHILD = new URL('fixtures/change-reader-process.ts', import.meta.url)

interface Made {
  readonly name: string
  readonly client: RedelayedClient
  readonly queue: ReliableQueue<string>
  /** The same queue in another process, as far as Redis knows. */
  readonly other: ReliableQueue<string>
  readonly key: string
}

async function make(config: ChangesConfig = { keep: 'recent' }): Promise<Made> {
  const name = uniqueName('changes')
  forgetReliable(name)
  const [client, another] = [makeClient(), makeClient()]
  const queue = client.getReliableQueue<string>(name, { codec: codecs.string() })
  const other = another.getReliableQueue<string>(name, { codec: codecs.string() })
  await queue.setConfig({ changes: config })
  return { name, client, queue, other, key: reliableKeys(name).changes }
}

/** The next `count` batches. */
async function take(batches: AsyncIterator<ChangeBatch>, count: number): Promise<ChangeBatch[]> {
  const taken: ChangeBatch[] = []
  while (taken.length < count) {
    const next = await batches.next()
    if (next.done === true) break
    taken.push(next.value)
  }
  return taken
}

const inShort = (batches: readonly ChangeBatch[]): string[] =>
  batches.map(({ changes }) => changes.map(({ change, id }) => `${change} ${id}`).join(', '))

describe('the changes of a reliable queue', function () {
  this.timeout(30_000)
  afterEach(cleanUp)

  it('are those of all processes, from the setting on, without a restart', async () => {
    const { queue, other } = await make({ keep: 'recent', payloads: true })
    await other.add('text', { id: 'a', priority: 3, headers: { h: '1' }, timeToLive: 60_000, deliveryLimit: 4 })
    const message = await queue.poll()
    await message?.negativeAcknowledge({ error: new Error('busy') })
    await other.cancel('a')
    const batches = await take(queue.changes({ from: 'start' }), 4)
    expect(inShort(batches)).to.deep.equal(['added a', 'polled a', 'failed a', 'removed a'])
    const [added, polled, failed, removed] = batches.map(({ changes }) => changes[0])
    expect(added).to.deep.include({ priority: 3, deliveryLimit: 4 })
    expect(added?.headers).to.deep.include({ h: '1' })
    expect(Buffer.from(added?.payload ?? []).toString()).to.equal('text')
    expect(added?.expiresAt).to.equal((added?.dueAt ?? 0) + 60_000)
    expect(polled).to.deep.include({ attempt: 1, priority: 3, dueAt: message?.visibleUntil })
    expect(failed).to.deep.include({ attempt: 1, error: 'Error: busy' })
    expect(removed).to.deep.equal({ change: 'removed', id: 'a' })
    const [byOther, byQueue, again, last] = batches.map(({ client }) => client)
    expect([again, last]).to.deep.equal([byQueue, byOther])
    expect(byOther).to.not.equal(byQueue)
    expect(new Set(batches.map(({ position }) => position.epoch)).size).to.equal(1)
    expect(await queue.getConfig()).to.deep.equal({
      changes: { keep: 'recent', maxLength: 10_000, payloads: true },
    })
  })

  it('come to each reader without a group, from where it begins', async () => {
    const { queue, other } = await make()
    await queue.add('a', { id: 'a' })
    await queue.add('b', { id: 'b' })
    const [first] = await take(queue.changes({ from: 'start' }), 1)
    expect(inShort(await take(other.changes({ from: first!.position }), 1))).to.deep.equal(['added b'])
    const tail = queue.changes()
    let got: string[] | undefined
    const read = take(tail, 1).then((batches) => (got = inShort(batches)))
    await eventually(async () => {
      await queue.add('c', { existing: 'replace', id: 'c' })
      expect(got).to.deep.equal(['added c'])
    })
    await read
    await tail.return()
  })

  it('are shared by a group, and acknowledged', async () => {
    const { queue, other, key } = await make({ keep: 'groups' })
    const [one, two] = [queue, other].map((each) => each.changes({ group: 'g' }))
    for (let n = 0; n < 20; n++) await queue.add('x', { id: String(n) })
    const seen: string[] = []
    const read = async (batches: AsyncGenerator<ChangeBatch>): Promise<void> => {
      for await (const { position, changes } of batches) {
        seen.push(...changes.map(({ id }) => id))
        expect(await queue.acknowledgeChanges('g', position)).to.equal(1)
        if (seen.length === 20) return
      }
    }
    await Promise.race([read(one!), read(two!)])
    expect(seen.sort()).to.deep.equal(Array.from({ length: 20 }, (_, n) => String(n)).sort())
    const status = await queue.changeStatus()
    expect(status.groups).to.have.length(1)
    expect(status.groups[0]).to.include({ name: 'g', pending: 0, oldest: null })
    expect(await rawClient().xlen(key), 'only the last one is left').to.equal(1)
    expect(await queue.removeChangeGroup('g')).to.equal(true)
    expect(await queue.removeChangeGroup('g')).to.equal(false)
  })

  it('that a killed reader had come to another one of its group', async () => {
    const { name, queue } = await make({ keep: 'groups' })
    await queue.add('a', { id: 'a' })
    await queue.add('b', { id: 'b' })
    const child = fork(CHILD, [redisUrl(), name, 'g'], { execArgv: ['--import', 'tsx'] })
    onCleanup(() => child.kill('SIGKILL'))
    const got: string[] = []
    child.on('message', (ids) => got.push(...(ids as string[])))
    await eventually(() => expect(got).to.deep.equal(['a', 'b']), 20_000)
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    const batches = await take(queue.changes({ group: 'g', claimAfter: 50 }), 2)
    expect(inShort(batches)).to.deep.equal(['added a', 'added b'])
    const positions = batches.map(({ position }) => position)
    expect(await queue.acknowledgeChanges('g', ...positions)).to.equal(2)
  })

  it('that a reader had not acknowledged come first when it comes back under its name', async () => {
    const { queue } = await make({ keep: 'groups' })
    for (const id of ['a', 'b', 'c']) await queue.add('x', { id })
    const before = queue.changes({ group: 'g', consumer: 'me' })
    const [a, b] = await take(before, 2)
    await before.return()
    await queue.acknowledgeChanges('g', a!.position)
    const after = queue.changes({ group: 'g', consumer: 'me' })
    const [again, c] = await take(after, 2)
    expect(again).to.deep.equal(b)
    expect(inShort([c!])).to.deep.equal(['added c'])
  })

  describe('at their bound', () => {
    it('make adding fail, nothing half done, until a group has acknowledged', async () => {
      const { queue, other } = await make({ keep: 'groups', maxLength: 100 })
      for (let n = 0; n < 100; n++) await other.add('x', { id: String(n) })
      expect(await rejection(other.add('x', { id: 'more' }))).to.be.instanceOf(ChangesBehindError)
      const many = (await rejection(other.addMany([{ payload: 'x' }, { payload: 'y' }]))) as unknown
      expect(many).to.have.property('failures').with.length(2)
      expect(await rejection(other.upsertSchedule('s', 'x', { every: 60_000 }))).to.be.instanceOf(ChangesBehindError)
      await queue.deadLetters.add('x')
      expect(await rejection(queue.redrive())).to.be.instanceOf(ChangesBehindError)
      expect(await queue.size()).to.equal(100)
      const messages = await queue.pollMany({ count: 50 })
      expect(await queue.acknowledge(...messages)).to.deep.equal(messages.map(() => true))
      const batches = await take(queue.changes({ group: 'g' }), 102)
      await queue.acknowledgeChanges('g', ...batches.map(({ position }) => position))
      expect((await other.add('x', { id: 'more' })).outcome).to.equal('added')
      expect(await queue.redrive()).to.equal(1)
    })
  })

  describe('a position', () => {
    async function positioned(): Promise<Made & { position: ChangePosition }> {
      const made = await make({ keep: 'groups' })
      await made.queue.add('x')
      const [batch] = await take(made.queue.changes({ from: 'start' }), 1)
      return { ...made, position: batch!.position }
    }
    const reasonOf = async (queue: ReliableQueue<string>, from: ChangePosition, group?: string): Promise<string> => {
      const error = await rejection(queue.changes({ from, ...(group !== undefined && { group }) }).next())
      expect(error).to.be.instanceOf(ChangesLostError)
      expect(error).to.include({ code: 'ERR_CHANGES_LOST', queue: queue.name })
      return (error as typeof error & { readonly reason: string }).reason
    }

    it('is of another epoch when the stream was lost', async () => {
      const { queue, key, position } = await positioned()
      await rawClient().unlink(key)
      await queue.add('y')
      expect(await reasonOf(queue, position)).to.equal('epoch')
      expect(await reasonOf(queue, position, 'g')).to.equal('epoch')
      expect((await queue.changeStatus()).epoch).to.not.equal(position.epoch)
    })

    it('is after the last when Redis went back in time', async () => {
      const { queue, key, position } = await positioned()
      const dump = await rawClient().dumpBuffer(key)
      await queue.add('y')
      const [, later] = await take(queue.changes({ from: 'start' }), 2)
      await rawClient().restore(key, 0, dump, 'REPLACE')
      expect(await reasonOf(queue, later!.position)).to.equal('rewound')
      expect(await reasonOf(queue, later!.position, 'g')).to.equal('rewound')
      const first = queue.changes({ from: position, group: 'g' })
      await queue.add('z', { id: 'z' })
      expect(inShort(await take(first, 1))).to.deep.equal(['added z'])
      // others have added since, so that the last id is not smaller any more: the entry itself is missing
      expect(await reasonOf(queue, later!.position)).to.equal('trimmed')
    })

    it('stays there after all groups have acknowledged it', async () => {
      const { queue, position } = await positioned()
      const reader = queue.changes({ group: 'g' })
      await take(reader, 1)
      await queue.acknowledgeChanges('g', position)
      await queue.add('z', { id: 'z' })
      expect(inShort(await take(queue.changes({ from: position, group: 'g' }), 1))).to.deep.equal(['added z'])
    })

    it('is refused when it is invalid', async () => {
      const { queue } = await make()
      for (const from of ['now', { epoch: 'e', id: '1' }, { epoch: '', id: '1-1' }, null]) {
        expect(await rejection(queue.changes({ from: from as never }).next())).to.include({
          code: 'ERR_INVALID_ARGUMENT',
        })
      }
      expect(await rejection(queue.acknowledgeChanges('g', { epoch: 'e', id: 'x' }))).to.include({
        code: 'ERR_INVALID_ARGUMENT',
      })
    })
  })

  it('cannot be read if the queue keeps no changes', async () => {
    const { queue, key } = await make()
    await queue.add('x')
    await queue.setConfig({ changes: false })
    expect(await rawClient().exists(key)).to.equal(0)
    expect(await rejection(queue.changes().next())).to.be.instanceOf(UnsupportedOperationError)
    expect(await rejection(queue.allEvents())).to.be.instanceOf(UnsupportedOperationError)
    expect(await queue.changeStatus()).to.deep.equal({
      ...{ epoch: null, first: null, last: null, length: 0, limit: null },
      ...{ groupCount: 0, groups: [] },
    })
    expect(await queue.getConfig()).to.deep.equal({})
  })

  it('can be read by pages, from a position that is kept elsewhere', async () => {
    const { queue, key } = await make({ keep: 'groups', payloads: true })
    expect(await queue.releaseChanges('journal', '0-0')).to.equal(true)
    await queue.addMany(['a', 'b'].map((id) => ({ payload: id, id })))
    await rawClient().xadd(key, '*', 'any', 'thing')
    await queue.remove('a')
    const { status, epoch, last, batches } = await queue.readChanges({ after: { id: '0-0', epoch: null } })
    expect([status, batches.length]).to.deep.equal(['ok', 3])
    expect(batches.map(({ changes }) => changes.map(({ change, id }) => `${change} ${id}`))).to.deep.equal([
      ['added a', 'added b'],
      [],
      ['removed a'],
    ])
    const positions = batches.map(({ position }) => position)
    for (const position of positions) expect(position.epoch).to.equal(epoch)
    expect(positions[2]?.id).to.equal(last)
    const [after = { epoch: '', id: '' }] = positions
    expect((await queue.readChanges({ after, count: 1 })).batches.map(({ position }) => position)).to.deep.equal([
      positions[1],
    ])
    expect(await queue.releaseChanges('journal', positions[1]?.id ?? '')).to.equal(true)
    expect((await queue.changeStatus()).first).to.equal(positions[1]?.id)
    expect(await queue.readChanges({ after })).to.deep.equal({ status: 'trimmed', epoch, last, batches: [] })
  })

  it('are read after an entry only where it is the same, and not another one of its id', async () => {
    const { queue, key } = await make({ keep: 'groups' })
    for (const id of ['a', 'b', 'c'.repeat(500)]) await queue.add('', { id })
    const all = (await queue.readChanges({ after: { id: '0-0', epoch: null } })).batches.map(({ position }) => position)
    for (const after of all) {
      expect(after.digest).to.match(/^[0-9a-f]{40}$/)
      expect((await queue.readChanges({ after })).status).to.equal('ok')
    }
    const [first = { id: '', epoch: '' }, second = { id: '', epoch: '' }] = all
    const other = { ...second, digest: first.digest }
    expect((await queue.readChanges({ after: other })).status).to.equal('trimmed')
    expect((await queue.readChanges({ after: { ...other, digest: null } })).status).to.equal('ok')
    await rawClient().xadd(key, '*', 'any', 'thing', 'and', 'more')
    const { batches } = await queue.readChanges({ after: all[2] ?? first })
    expect(batches.map(({ position }) => position.digest)).to.deep.equal([undefined])
  })

  it('are read in pages of a few megabytes, however large their payloads are', async function () {
    this.timeout(30_000)
    const { queue } = await make({ keep: 'groups', payloads: true })
    const payload = 'x'.repeat(3 * 1024 * 1024)
    for (let n = 0; n < 4; n++) await queue.add(payload, { id: String(n) })
    const first = await queue.readChanges({ after: { id: '0-0', epoch: null } })
    expect(first.batches.map(({ changes }) => changes[0]?.id)).to.deep.equal(['0', '1'])
    const after = first.batches.at(-1)?.position ?? { id: '', epoch: '' }
    const second = await queue.readChanges({ after })
    expect(second.batches.map(({ changes }) => changes[0]?.id)).to.deep.equal(['2', '3'])
  })

  it('wrong options are refused', async () => {
    const { queue } = await make()
    const wrong: unknown[] = [
      { keep: 'all' },
      { keep: 'groups', maxAge: 5_000 },
      { keep: 'recent', maxLength: 99 },
      { keep: 'recent', maxAge: 10 },
      { keep: 'recent', payloads: 1 },
      { keep: 'recent', other: 1 },
      true,
    ]
    for (const changes of wrong) {
      const refused = await rejection(queue.setConfig({ changes: changes as never }))
      expect(refused, JSON.stringify(changes)).to.include({ code: 'ERR_INVALID_ARGUMENT' })
    }
    for (const options of [{ consumer: 'c' }, { group: '' }, { group: 'g', claimAfter: 0 }, { groups: 'g' }]) {
      const refused = await rejection(queue.changes(options).next())
      expect(refused, JSON.stringify(options)).to.include({ code: 'ERR_INVALID_ARGUMENT' })
    }
    const start = { id: '0-0', epoch: null }
    for (const options of [
      {},
      { after: null },
      { after: { id: 'x', epoch: null } },
      { after: { id: '1-1', epoch: 'é' } },
      { after: { ...start, digest: 'x' } },
      { after: start, count: 0 },
      { after: start, count: 10_001 },
      { after: start, group: 'g' },
    ]) {
      const refused = await rejection(queue.readChanges(options as never))
      expect(refused, JSON.stringify(options)).to.include({ code: 'ERR_INVALID_ARGUMENT' })
    }
    expect(await rejection(queue.releaseChanges('', '1-1'))).to.include({ code: 'ERR_INVALID_ARGUMENT' })
    expect(await rejection(queue.releaseChanges('g', 'x'))).to.include({ code: 'ERR_INVALID_ARGUMENT' })
  })

  it('end with the signal, and with the client', async () => {
    const { client, queue } = await make()
    const ending = new AbortController()
    const read = rejection(queue.changes({ signal: ending.signal }).next())
    const own = rejection(queue.changes({ group: 'g' }).next())
    ending.abort(new Error('enough'))
    expect((await read).message).to.equal('enough')
    await eventually(async () => expect((await queue.changeStatus()).groups).to.have.length(1))
    await client.shutdown()
    expect(await own).to.be.instanceOf(ShutdownError)
  })

  it('of another program are passed over, and stop neither readers nor the queue', async () => {
    const { client, queue, key } = await make({ keep: 'groups' })
    const quarantined: QuarantinedEvent[] = []
    client.on('quarantined', (event) => quarantined.push(event))
    await rawClient().xadd(key, '*', 'any', 'thing')
    await rawClient().xadd(key, '*', 'changes', 'nonsense')
    await rawClient().xadd(key, '*', 'changes', 'e me\nk,,,,0,999999999,0\n')
    await rawClient().xadd(key, '*', 'changes', Buffer.alloc(3_000_000, 'x'))
    await queue.add('x', { id: 'x' })
    for (const group of ['g', undefined]) {
      const read = queue.changes({ from: 'start', ...(group !== undefined && { group }) })
      expect(inShort(await take(read, 1))).to.deep.equal(['added x'])
    }
    // the group has acknowledged them, so that only the last one is left for the other reader
    expect(quarantined.map(({ reason, count }) => `${reason} ${count}`)).to.deep.equal([
      'undecodable 4',
      'undecodable 1',
    ])
    expect((await queue.changeStatus()).groups[0]?.pending).to.equal(1)
  })

  it('a stream that is removed begins again, for the readers of a group too', async () => {
    const { queue, key } = await make({ keep: 'groups' })
    await queue.add('a', { id: 'a' })
    const reader = queue.changes({ group: 'g' })
    const [before] = await take(reader, 1)
    const next = take(reader, 1)
    await rawClient().unlink(key)
    await queue.add('b', { id: 'b' })
    const [after] = await next
    expect(inShort([after!])).to.deep.equal(['added b'])
    expect(after?.position.epoch).to.not.equal(before?.position.epoch)
  })

  describe('as events', () => {
    it('come from all processes, each once, until it is ended', async () => {
      const { client, queue, other } = await make()
      const heard: string[] = []
      const onClient: string[] = []
      for (const name of ['added', 'polled', 'acknowledged', 'failed', 'rejected', 'expired', 'removed'] as const) {
        queue.on(name, ({ ids }: MessagesEvent) => heard.push(`${name} ${ids.join(' ')}`))
        client.on(name, ({ queue: of, ids }: MessagesEvent) => {
          if (of === queue.name) onClient.push(`${name} ${ids.join(' ')}`)
        })
      }
      const ends = await Promise.all([queue.allEvents(), client.getReliableQueue(queue.name).allEvents()])
      await queue.add('x', { id: 'own' })
      await other.addMany([
        { payload: 'x', id: 'a' },
        { payload: 'x', id: 'b' },
      ])
      const message = await other.poll()
      await message?.acknowledge()
      await other.remove('a', 'own', 'b')
      await other.add('x', { id: 'c', deliveryLimit: 2 })
      for (let deliveries = 0; deliveries < 2; deliveries++) {
        const next = await other.poll({ timeout: 10_000 })
        await next?.negativeAcknowledge()
      }
      await other.add('x', { id: 'd', timeToLive: 1 })
      const addedBy = await other.now()
      await eventually(async () => expect(await other.now()).to.be.above(addedBy + 1))
      expect(await other.poll()).to.equal(null)
      const all = [
        'added own',
        'added a b',
        `polled ${message?.id}`,
        `acknowledged ${message?.id}`,
        `removed ${['a', 'own', 'b'].filter((id) => id !== message?.id).join(' ')}`,
        'added c',
        'polled c',
        'failed c',
        'polled c',
        'rejected c',
        'added d',
        'expired d',
      ]
      await eventually(() => expect(heard).to.deep.equal(all))
      expect(onClient).to.deep.equal(all)
      for (const end of ends) await end()
      await other.add('x', { id: 'unheard' })
      await queue.add('x', { id: 'heard' })
      expect(heard.slice(all.length)).to.deep.equal(['added heard'])
    })
  })

  it('are measured', async () => {
    const { queue } = await make({ keep: 'groups' })
    await queue.add('a')
    await queue.add('b')
    const batches = await take(queue.changes({ group: 'g' }), 1)
    expect(batches).to.have.length(1)
    const readings = (await readGauges([queue])).filter(({ name }) => name.startsWith('queue_changes'))
    const labels = { queue: queue.name }
    expect(readings[0]).to.deep.equal({ name: 'queue_changes', labels, value: 2 })
    // before Redis 7 the server does not say the lag
    const saysLag = typeof (await queue.changeStatus()).groups[0]?.lag === 'number'
    const version = /^redis_version:(\d+)/m.exec(await rawClient().info('server'))?.[1]
    if (Number(version) >= 7) expect(saysLag).to.equal(true)
    expect(readings).to.have.length(saysLag ? 2 : 1)
    if (saysLag) {
      expect(readings[1]).to.deep.equal({ name: 'queue_changes_lag', labels: { ...labels, group: 'g' }, value: 2 })
    }
  })

  it('are examined by the doctor', async () => {
    const { name, queue, key } = await make({ keep: 'groups', maxLength: 100 })
    const access = await openAccess({ url: redisUrl() })
    onCleanup(() => access.close())
    const found = async (): Promise<string[]> => {
      const state = await inspectReliable(access.sender, name)
      return checkReliable(state!).map(({ level, code }) => `${level} ${code}`)
    }
    expect(await found()).to.deep.equal(['info changes-unread'])
    for (let n = 0; n < 100; n++) await queue.add('x')
    await rawClient().xadd(key, '*', 'any', 'thing')
    await rawClient().xgroup('CREATE', key, 'idle', '0')
    expect(await found()).to.deep.equal([
      'error changes-behind',
      'warning change-group-idle',
      'warning changes-foreign',
    ])
    await rawClient().set(key, 'in the way')
    expect(await found()).to.deep.equal(['error wrong-type'])
    await queue.cancel((await queue.poll())?.id ?? '')
    await rawClient().unlink(key)
    expect(await found()).to.deep.equal(['error changes-not-recorded', 'info changes-unread'])
  })
})
