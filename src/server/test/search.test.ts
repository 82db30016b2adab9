import { expect } from 'chai'
import { MessageSearch } from '../console/message-search.js'
import { JournalError } from '../errors.js'
import type { Topic } from '../topics/topic.js'
import { eventually } from './support/eventually.js'
import { startTestService, type TestService } from './support/service.js'

interface Listed {
  readonly topic: string
  readonly id: string
  readonly state: string
  readonly dueAt: number
  readonly priority?: number
}
interface Page {
  readonly messages: readonly Listed[]
  readonly cursor?: string
  readonly complete: boolean
}

describe('messages found over all topics', function () {
  this.timeout(60_000)
  let service: TestService
  beforeEach(async () => {
    service = await startTestService()
  })
  afterEach(() => service.stop())

  const push = async (topic: string, message: object): Promise<number> => {
    const { status, body } = await service.ask('POST', `/v1/topics/${topic}/messages`, message)
    expect(status).to.equal(201)
    return body.dueAt
  }
  const page = async (path: string, key = service.key): Promise<Page> => {
    const { status, body } = await service.ask('GET', path, undefined, { key })
    expect(status, JSON.stringify(body)).to.equal(200)
    return body as unknown as Page
  }
  const all = async (path: string): Promise<string[]> => {
    const ids: string[] = []
    for (let cursor = ''; ;) {
      const found = await page(path + cursor)
      ids.push(...found.messages.map(({ id }) => id))
      if (found.cursor === undefined) return ids
      cursor = `&cursor=${found.cursor}`
    }
  }

  it('are sorted by due time over priorities, shards and topics, in pages', async () => {
    const [one, two] = [service.topic(), service.topic()]
    await service.ask('PUT', `/v1/topics/${two}`, { shards: 4 })
    const at = Date.now() + 3_600_000
    const order = [3, 0, 2, 1, 4]
    for (const n of order) await push(one, { id: `one-${n}`, dueAt: at + 10 * n, priority: n })
    for (const n of order) await push(two, { id: `two-${n}`, dueAt: at + 10 * n + 5, priority: 9 - n })
    const expected = [0, 1, 2, 3, 4].flatMap((n) => [`one-${n}`, `two-${n}`])
    const own = (ids: readonly string[]): string[] => ids.filter((id) => expected.includes(id))
    expect(own(await all(`/v1/agenda/messages?from=${at}&to=${at + 1_000}&limit=3`))).to.deep.equal(expected)
    expect(await all(`/v1/agenda/messages?topic=${one}&from=${at + 20}&to=${at + 40}`)).to.deep.equal([
      'one-2',
      'one-3',
    ])
  })

  it('are shown once each if many are due in one millisecond', async () => {
    const topic = service.topic()
    const dueAt = Date.now() + 3_600_000
    const ids = Array.from({ length: 57 }, (_, n) => `m${n}`)
    await service.ask('POST', `/v1/topics/${topic}/messages/batch`, { messages: ids.map((id) => ({ id, dueAt })) })
    const found = await all(`/v1/messages?topic=${topic}&limit=10`)
    expect(found).to.have.length(57)
    expect(found.toSorted()).to.deep.equal(ids.toSorted())
  })

  it('are found by id in any topic, and by state', async () => {
    const [one, two] = [service.topic(), service.topic()]
    const id = `order-${one}`
    for (const topic of [one, two]) await push(topic, { id, delay: 60_000 })
    const found = await page(`/v1/messages?id=${id}`)
    expect(found.messages.map(({ topic }) => topic).toSorted()).to.deep.equal([one, two].toSorted())
    expect(found.messages[0]).to.include({ id, state: 'delayed' })

    for (const each of ['held', 'due', 'dead']) await push(one, { id: each, priority: each === 'due' ? 0 : 9 })
    const { body } = await service.ask('POST', `/v1/topics/${one}/receive`, { max: 2 })
    const lease = body.messages.find((message) => message.id === 'dead')?.lease
    await service.ask('POST', '/v1/leases/negative-acknowledge', { leases: [lease], reject: true })
    for (const [state, expected] of [
      ['visible', 'due'],
      ['inFlight', 'held'],
      ['dead', 'dead'],
      ['delayed', id],
    ] as const) {
      const { messages } = await page(`/v1/messages?topic=${one}&state=${state}`)
      expect(messages.map((each) => [each.id, each.state])).to.deep.equal([[expected, state]])
    }
    const held = async (span: string) =>
      (await page(`/v1/messages?topic=${one}&state=inFlight&${span}`)).messages.map((each) => each.id)
    expect(await held('dueTo=1000')).to.deep.equal([])
    expect(await held('dueFrom=1000')).to.deep.equal(['held'])
  })

  it('are found in flight over all topics, those of some shards too', async () => {
    const [one, two] = [service.topic(), service.topic()]
    await service.ask('PUT', `/v1/topics/${two}`, { shards: 3 })
    for (const topic of [one, two]) await push(topic, { id: `held-${topic}` })
    for (const topic of [one, two]) await service.ask('POST', `/v1/topics/${topic}/receive`, { wait: 5_000 })
    const found = await all('/v1/messages?state=inFlight&limit=1')
    expect(found.filter((id) => id.startsWith('held-test-'))).to.have.members([`held-${one}`, `held-${two}`])
  })

  it('are found by id in Redis while SQL is away, which is then not asked for each topic', async () => {
    let asked = 0
    const topicOf = (name: string) =>
      ({
        inRedis: async (id: string) =>
          name === 'c' ? { id, state: 'delayed', dueAt: 1, attempts: 0, priority: 0 } : undefined,
        remembered: async () => {
          asked++
          throw new JournalError('ERR_JOURNAL_UNAVAILABLE', 'SQL does not answer')
        },
      }) as unknown as Topic
    const names = Array.from({ length: 100 }, (_, at) => `t${at}`)
    const topics = { openIfThere: async (name: string) => topicOf(name), now: () => 0, hasJournal: true }
    const search = new MessageSearch(topics, undefined as never, undefined as never, undefined as never)
    const { messages, source, complete } = await search.find([...names, 'c'], { id: 'x' }, 10)
    expect(messages.map(({ topic }) => topic)).to.deep.equal(['c'])
    expect({ source, complete }).to.deep.equal({ source: 'redis', complete: false })
    expect(asked).to.be.below(names.length / 2)
  })

  it('are those of the topics of the key only', async () => {
    const [own, other] = [service.topic(), service.topic()]
    const key = service.addKey(['read'], [own])
    for (const topic of [own, other]) await push(topic, { id: `of-${topic}`, delay: 60_000 })
    await eventually(async () => {
      expect((await service.ask('GET', `/v1/messages?topic=${own}`, undefined, { key })).status).to.equal(200)
    })
    for (const path of ['/v1/messages?limit=1000', '/v1/agenda/messages?limit=1000', `/v1/messages?id=of-${other}`]) {
      const { messages } = await page(path, key)
      expect(
        messages.every(({ topic }) => topic === own),
        path,
      ).to.equal(true)
    }
    const refused = await service.ask('GET', `/v1/messages?topic=${other}`, undefined, { key })
    expect(refused.status).to.equal(403)
    expect((await service.ask('GET', '/v1/doctor', undefined, { key })).status).to.equal(403)
  })

  it('show the pauses of their topics', async () => {
    const topic = service.topic()
    await push(topic, { id: 'a', delay: 60_000 })
    const paused = async (): Promise<unknown> => {
      const one = await service.ask('GET', `/v1/topics/${topic}`)
      const list = await service.ask('GET', `/v1/topics?search=${topic}&counts=1`)
      const [listed] = list.body.topics as unknown as { paused: unknown }[]
      expect(listed?.paused).to.deep.equal((one.body as unknown as { paused: unknown }).paused)
      return listed?.paused
    }
    expect(await paused()).to.deep.equal([])
    await service.ask('POST', `/v1/topics/${topic}/pause`, {})
    expect(await paused()).to.deep.equal(['receive'])
    await service.ask('POST', `/v1/topics/${topic}/pause`, { what: 'push' })
    expect(await paused()).to.deep.equal(['receive', 'push'])
    for (const what of ['receive', 'push']) await service.ask('POST', `/v1/topics/${topic}/resume`, { what })
    expect(await paused()).to.deep.equal([])
  })

  it('need a journal to be found by a business key', async () => {
    const { status, body } = await service.ask('GET', '/v1/messages?bizKey=order-1')
    expect([status, body.code]).to.deep.equal([409, 'no-journal'])
  })

  it('refuses odd filters', async () => {
    for (const path of [
      '/v1/messages?state=handled',
      '/v1/messages?cursor=x',
      '/v1/messages?dueFrom=-1',
      '/v1/messages?topic=%00',
      '/v1/agenda/messages?from=1e99',
      `/v1/agenda/messages?cursor=${Buffer.from('[1,"x"]').toString('base64url')}`,
    ])
      expect((await service.ask('GET', path)).status, path).to.equal(400)
  })

  it('are in a Redis that the doctor examines in a process of its own, at most every ten seconds', async () => {
    const first = await service.ask('GET', '/v1/doctor')
    expect(first.status, JSON.stringify(first.body)).to.equal(200)
    const report = first.body as unknown as { at: number; findings: readonly Record<string, unknown>[] }
    expect(report.at).to.be.greaterThan(1_600_000_000_000)
    for (const finding of report.findings)
      expect(finding).to.have.keys('severity', 'code', 'message', 'found', 'means', 'advice', 'queue')
    const again = await service.ask('GET', '/v1/doctor')
    expect((again.body as unknown as { at: number }).at).to.equal(report.at)
  })
})
