import { expect } from 'chai'
import { InvalidArgumentError, codecs, type RestoreItem, type RestoreOptions } from '../../src/index.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { startProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, onCleanup, numbers } from './fixtures.js'

describe('restoring messages of a reliable queue', () => {
  afterEach(cleanUp)

  function make() {
    const name = uniqueName('restore')
    const client = makeClient()
    onCleanup(async () => {
      const parts = [
        'messages',
        'deliveries',
        'failures',
        'config',
        'once',
        'in-flight',
        ...numbers(10).map((n) => `due-${n}`),
      ]
      await rawClient().unlink(
        ...parts.flatMap((part) => [
          `redelayed:reliable:${part}:{${name}}`,
          `redelayed:reliable:${part}:{${name}}:dead`,
        ]),
      )
    })
    return client.getReliableQueue<string>(name, { codec: codecs.string() })
  }

  it('restores read messages unchanged', async () => {
    const queue = make()
    await queue.add('failed', { id: 'failed', deliveryLimit: 5, headers: { a: 'b' }, timeToLive: 3_600_000 })
    const [message] = await queue.pollMany({ count: 1 })
    await message!.negativeAcknowledge({ delay: 60_000, error: new Error('no') })
    await queue.add('later', { id: 'later', delay: 90_000, priority: 7 })
    const saved = await queue.getAllRaw(['failed', 'later'])
    expect(saved[0]).to.deep.include({ attempts: 1, deliveryLimit: 5, headers: { a: 'b' }, inFlight: false })
    expect(saved[0]?.failures[0]?.reason).to.include('no')
    await queue.clear()
    const items = saved.filter((each) => each !== null)
    expect(await queue.restoreMany(items)).to.deep.equal(['restored', 'restored'])
    expect(await queue.getAllRaw(['failed', 'later'])).to.deep.equal(saved)
    expect(await queue.restoreMany(items)).to.deep.equal(['present', 'present'])
  })

  it('reads the other messages if the meta data of one cannot be read, and reports it', async () => {
    const queue = make()
    for (const id of ['a', 'bad', 'c']) await queue.add(id, { id, delay: 60_000 })
    await rawClient().hset(`redelayed:reliable:messages:{${queue.name}}`, 'bad', Buffer.of(255))
    const said: unknown[] = []
    queue.on('error', (error) => said.push(error))
    const found = await queue.getAllRaw(['a', 'bad', 'c', 'none'])
    expect(found.map((message) => message?.id)).to.deep.equal(['a', undefined, 'c', undefined])
    expect(said).to.have.length(1)
    expect(said[0]).to.include({ code: 'ERR_DECODE', queue: queue.name })
  })

  it('sends nothing again that had no answer: a consumer can have handled it', async () => {
    const queue = make()
    await queue.add('x', { id: 'a' })
    const [saved] = await queue.getAllRaw(['a'])
    const { hostname, port } = new URL(redisUrl())
    const proxy = await startProxy({ targetHost: hostname, targetPort: Number(port) })
    onCleanup(() => proxy.stop())
    const other = makeClient({ host: '127.0.0.1', port: proxy.port, commandTimeout: 1_000 })
    const remote = other.getReliableQueue<string>(queue.name, { codec: codecs.string() })
    await remote.size()
    await queue.clear()
    proxy.blackhole('toClient')
    const restored = remote.restoreMany([saved!]).catch((thrown: unknown) => thrown)
    const message = await queue.poll({ timeout: 20_000 })
    await message!.acknowledge()
    proxy.blackhole(false)
    expect(await restored).to.include({ code: 'ERR_CONNECTION', outcome: 'unknown' })
    expect(await queue.size()).to.equal(0)
  })

  it('restores more than one script takes, and dead letters', async () => {
    const queue = make()
    const dueAt = (await queue.now()) + 60_000
    const item = (id: string): RestoreItem => ({
      ...{ id, dueAt, priority: 3, attempts: 2, headers: {}, payload: Buffer.from(id) },
      ...{ expiresAt: null, deliveryLimit: null, failures: [] },
    })
    const items = numbers(1_200).map((n) => item(`m${n}`))
    expect(new Set(await queue.restoreMany(items))).to.deep.equal(new Set(['restored']))
    expect(await queue.counts()).to.include({ total: 1_200, delayed: 1_200 })
    await queue.deadLetters.restoreMany([item('dead')])
    expect((await queue.deadLetters.get('dead'))?.payload).to.equal('dead')
    const ids: string[] = []
    for await (const page of queue.listAllRaw({ pageSize: 100 })) ids.push(...page.map(({ id }) => id))
    expect(new Set(ids).size).to.equal(1_200)
    expect(await queue.restoreMany([{ ...item('m5'), payload: Buffer.from('new'), replaces: dueAt }])).to.deep.equal([
      'replaced',
    ])
    expect((await queue.get('m5'))?.payload).to.equal('new')
  })

  it('delivers due messages at once', async () => {
    const queue = make()
    const polled = queue.poll({ timeout: 20_000 })
    const [restored] = await queue.restoreMany([
      {
        id: 'x',
        dueAt: 5,
        priority: 0,
        attempts: 3,
        headers: {},
        payload: Buffer.from('x'),
        expiresAt: null,
        deliveryLimit: null,
        failures: [],
      },
    ])
    expect(restored).to.equal('restored')
    expect(await polled).to.include({ id: 'x', payload: 'x', attempt: 4, visibleAt: 5 })
  })

  it('checks everything before it sends anything', async () => {
    const queue = make()
    const good: RestoreItem = {
      id: 'x',
      dueAt: 5,
      priority: 0,
      attempts: 0,
      headers: {},
      payload: Buffer.from('x'),
      expiresAt: null,
      deliveryLimit: null,
      failures: [],
    }
    for (const wrong of [
      { id: '' },
      { dueAt: -1 },
      { dueAt: 0.5 },
      { priority: 10 },
      { attempts: -1 },
      { payload: 'x' },
      { expiresAt: 0 },
      { headers: 5 },
      { failures: 5 },
      { other: 1 },
    ]) {
      const error = await queue
        .restoreMany([good, { ...good, ...wrong } as RestoreItem])
        .catch((thrown: unknown) => thrown)
      expect(error, JSON.stringify(wrong)).to.be.instanceOf(InvalidArgumentError)
    }
    for (const options of [{ known: 1 }, { other: true }]) {
      const error = await queue.restoreMany([good], options as RestoreOptions).catch((thrown: unknown) => thrown)
      expect(error, JSON.stringify(options)).to.be.instanceOf(InvalidArgumentError)
    }
    expect(await queue.size()).to.equal(0)
  })
})
