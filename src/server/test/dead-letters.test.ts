import { expect } from 'chai'
import { eventually } from './support/eventually.js'
import { startTestService, type Answer, type AnswerBody, type TestService } from './support/service.js'

interface Found {
  readonly topic: string
  readonly id: string
  readonly diedAt: number
  readonly attempts: number
  readonly reason: string | null
}
type Page = AnswerBody & {
  readonly deadLetters: readonly Found[]
  readonly matched: number | null
  readonly done: number
}

describe('the dead letters of all topics', function () {
  this.timeout(60_000)
  let service: TestService
  beforeEach(async () => {
    service = await startTestService()
  })
  afterEach(() => service.stop())

  /** Makes dead letters whose reason is given; resolves when all are there. */
  async function makeDeadLetters(topic: string, ids: readonly string[], error: string): Promise<void> {
    for (let at = 0; at < ids.length; at += 1_000) {
      const messages = ids.slice(at, at + 1_000).map((id) => ({ id, body: id }))
      const { body } = await service.ask('POST', `/v1/topics/${topic}/messages/batch`, { messages })
      expect(body.failed).to.equal(0)
    }
    for (let left = ids.length; left > 0;) {
      const { body } = await service.ask('POST', `/v1/topics/${topic}/receive`, { max: 500 })
      left -= body.messages.length
      const leases = body.messages.map(({ lease }) => lease)
      if (leases.length > 0)
        await service.ask('POST', '/v1/leases/negative-acknowledge', { leases, reject: true, error })
    }
  }
  const search = async (query: string): Promise<Page> => {
    const { status, body } = await service.ask('GET', `/v1/dead-letters?${query}`)
    expect(status, JSON.stringify(body)).to.equal(200)
    return body as Page
  }
  const all = async (query: string): Promise<string[]> => {
    const found: string[] = []
    for (let cursor = ''; ;) {
      const page = await search(query + cursor)
      found.push(...page.deadLetters.map(({ topic, id }) => `${topic}/${id}`))
      if (page.cursor === undefined) return found
      cursor = `&cursor=${page.cursor}`
    }
  }
  const bulk = async (what: string, given: object): Promise<number> => {
    let done = 0
    for (let cursor: string | undefined; ;) {
      const { status, body }: Answer = await service.ask('POST', `/v1/dead-letters/${what}`, {
        ...given,
        ...(cursor && { cursor }),
      })
      expect(status, JSON.stringify(body)).to.equal(200)
      done += (body as Page).done
      cursor = body.cursor
      if (cursor === undefined) return done
    }
  }
  const dead = async (topic: string): Promise<number> => {
    const { body } = await service.ask('GET', `/v1/topics/${topic}`)
    return (body.counts as { dead?: number }).dead ?? -1
  }

  it('are found by topic, in pages that miss none and repeat none, also where many died in one millisecond', async () => {
    const topic = service.topic()
    const ids = Array.from({ length: 230 }, (_, at) => `m${at}`)
    await makeDeadLetters(topic, ids, 'boom')
    const found = await all(`topic=${topic}&limit=50`)
    expect(found.toSorted()).to.deep.equal(ids.map((id) => `${topic}/${id}`).toSorted())
    const first = await search(`topic=${topic}&limit=1`)
    expect(first.matched).to.equal(230)
    expect(first.deadLetters[0]).to.include({ topic, attempts: 1 })
    expect(first.deadLetters[0]?.reason).to.include('boom')
  })

  it('are found by their reason and by the time of their death', async () => {
    const topic = service.topic()
    await makeDeadLetters(topic, ['a', 'b'], 'connection refused')
    await makeDeadLetters(topic, ['c'], 'Not Found')
    expect(await all(`topic=${topic}&reason=not%20found`)).to.deep.equal([`${topic}/c`])
    const [, , last] = (await search(`topic=${topic}`)).deadLetters
    const diedAt = last?.diedAt ?? 0
    expect(await all(`topic=${topic}&since=${diedAt}`)).to.include(`${topic}/c`)
    expect(await all(`topic=${topic}&since=${diedAt + 1}`)).to.deep.equal([])
    expect(await all(`topic=${topic}&until=${diedAt - 60_000}`)).to.deep.equal([])
  })

  it('are moved back where they match, and no others', async () => {
    const topic = service.topic()
    await service.ask('PUT', `/v1/topics/${topic}`, { shards: 3 })
    const ids = Array.from({ length: 1_300 }, (_, at) => `m${at}`)
    await makeDeadLetters(topic, ids, 'timeout')
    await makeDeadLetters(topic, ['keep'], 'other')
    const dry = await service.ask('POST', '/v1/dead-letters/redrive', { topic, reason: 'timeout', dryRun: true })
    expect(dry.body).to.deep.include({ matched: 1_000, done: 0 })
    expect(await bulk('redrive', { topic, reason: 'TIMEOUT' })).to.equal(1_300)
    expect(await all(`topic=${topic}`)).to.deep.equal([`${topic}/keep`])
    const { body } = await service.ask('GET', `/v1/topics/${topic}`)
    expect(body.counts.total).to.equal(1_300)
  })

  it('are deleted where they match; what cannot be moved back stays', async () => {
    const topic = service.topic()
    await makeDeadLetters(topic, ['a', 'b', 'c'], 'boom')
    await service.ask('POST', `/v1/topics/${topic}/messages`, { id: 'b', body: 'again', delay: 60_000 })
    expect(await bulk('redrive', { topic })).to.equal(2)
    expect(await all(`topic=${topic}`)).to.deep.equal([`${topic}/b`])
    expect(await bulk('delete', { topic })).to.equal(1)
    expect(await dead(topic)).to.equal(0)
  })

  it('of topics that are not for a key are neither shown nor touched', async () => {
    const [own, other] = [service.topic(), service.topic()]
    await makeDeadLetters(own, ['mine'], 'boom')
    await makeDeadLetters(other, ['theirs'], 'boom')
    const key = service.addKey(['read', 'admin'], [own])
    await eventually(async () => {
      const shown = await service.ask('GET', '/v1/dead-letters', undefined, { key })
      expect((shown.body as Partial<Page>).deadLetters?.map(({ id }) => id)).to.deep.equal(['mine'])
    })
    const refused = await service.ask('POST', '/v1/dead-letters/delete', { topic: other }, { key })
    expect(refused.status).to.equal(403)
    await service.ask('POST', '/v1/dead-letters/delete', {}, { key })
    expect([await dead(own), await dead(other)]).to.deep.equal([0, 1])
  })

  it('are found by no cursor of another kind, and by no odd filter', async () => {
    for (const query of [
      'cursor=x',
      `cursor=${Buffer.from('["a"]').toString('base64url')}`,
      'since=-1',
      'reason=',
      'endpoint=x',
      'topic=%00',
    ])
      expect((await service.ask('GET', `/v1/dead-letters?${query}`)).status, query).to.equal(400)
  })
})
