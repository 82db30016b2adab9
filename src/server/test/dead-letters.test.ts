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

  /** Makes dead letters with the given reasons; resolves when all exist. */
  async function makeDeadLetters(
    topic: string,
    ids: readonly string[],
    error: string,
    more: { readonly bizKey?: string; readonly endpoint?: string } = {},
  ): Promise<void> {
    for (let at = 0; at < ids.length; at += 1_000) {
      const messages = ids.slice(at, at + 1_000).map((id) => ({ id, body: id, ...more }))
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

  it('are found by topic, in pages that miss none and repeat none, also if many died in one millisecond', async () => {
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

  it('of a business key are found, moved back and deleted, and no others', async () => {
    const topic = service.topic()
    await makeDeadLetters(topic, ['a', 'b', 'c'], 'boom', { bizKey: 'order-7' })
    await makeDeadLetters(topic, ['d'], 'boom', { bizKey: 'order-8' })
    await makeDeadLetters(topic, ['e'], 'boom')
    expect(await all(`topic=${topic}&bizKey=order-8`)).to.deep.equal([`${topic}/d`])
    expect((await search(`topic=${topic}&bizKey=order-7`)).matched).to.equal(3)
    expect((await search(`topic=${topic}&bizKey=order-7&limit=2`)).matched, 'not counted').to.equal(null)
    expect(await bulk('redrive', { topic, bizKey: 'order-8' })).to.equal(1)
    const purge = (how: object) =>
      service.ask('POST', `/v1/topics/${topic}/purge`, { what: 'dead-letters', bizKey: 'order-7', ...how })
    expect((await purge({ dueTo: 1_000 })).body).to.deep.equal({ purged: 0 })
    expect((await purge({ dueFrom: 1_000 })).body).to.deep.equal({ purged: 3 })
    expect(await all(`topic=${topic}`)).to.deep.equal([`${topic}/e`])
    const key = service.addKey(['read'], ['*'], true)
    await eventually(async () => {
      const refused = await service.ask('GET', '/v1/dead-letters?bizKey=order-7', undefined, { key })
      expect([refused.status, refused.body.code]).to.deep.equal([403, 'forbidden'])
    })
  })

  it('are moved back if they match, and no others', async () => {
    const topic = service.topic()
    await service.ask('PUT', `/v1/topics/${topic}`, { shards: 3 })
    const ids = Array.from({ length: 1_300 }, (_, at) => `m${at}`)
    await makeDeadLetters(topic, ids, 'timeout')
    await makeDeadLetters(topic, ['keep'], 'other')
    // each request ends after a while: a busy machine needs more requests
    let [matched, cursor] = [0, undefined as string | undefined]
    do {
      const how = { topic, reason: 'timeout', dryRun: true, ...(cursor !== undefined && { cursor }) }
      const { body } = await service.ask('POST', '/v1/dead-letters/redrive', how)
      expect([(body as Page).matched ?? -1, (body as Page).done]).to.satisfy(
        ([found, done]: [number, number]) => found <= 1_000 && done === 0,
      )
      matched += (body as Page).matched ?? 0
      cursor = body.cursor
    } while (cursor !== undefined)
    expect(matched).to.equal(1_300)
    expect(await bulk('redrive', { topic, reason: 'TIMEOUT' })).to.equal(1_300)
    expect(await all(`topic=${topic}`)).to.deep.equal([`${topic}/keep`])
    const { body } = await service.ask('GET', `/v1/topics/${topic}`)
    expect(body.counts.total).to.equal(1_300)
  })

  it('of one topic are moved back by the path of the topic if they match', async () => {
    const [topic, other] = [service.topic(), service.topic()]
    await service.ask('PUT', `/v1/topics/${topic}`, { shards: 3 })
    await makeDeadLetters(topic, ['a', 'b'], 'timeout', { bizKey: 'order-7' })
    await makeDeadLetters(topic, ['c', 'd', 'e'], 'broken')
    await makeDeadLetters(other, ['a'], 'timeout')
    const ask = (how: object): Promise<Answer> => service.ask('POST', `/v1/topics/${topic}/dead-letters/redrive`, how)
    /** Redrives with as many requests as needed; resolves with the most that one of them moved. */
    const redrive = async (how: object): Promise<{ redriven: number; matched: number; most: number }> => {
      const sum = { redriven: 0, matched: 0, most: 0 }
      for (let cursor: string | undefined; ;) {
        const { status, body } = await ask({ ...how, ...(cursor !== undefined && { cursor }) })
        expect(status, JSON.stringify(body)).to.equal(200)
        const { redriven, matched } = body as unknown as { redriven: number; matched: number }
        sum.redriven += redriven
        sum.matched += matched
        sum.most = Math.max(sum.most, redriven)
        cursor = body.cursor
        if (cursor === undefined) return sum
      }
    }
    const { deadLetters } = await search(`topic=${topic}&reason=timeout`)
    const first = Math.min(...deadLetters.map(({ diedAt }) => diedAt))
    expect(await redrive({ reason: 'timeout', dryRun: true })).to.include({ redriven: 0, matched: 2 })
    expect(await redrive({ until: first - 60_000 })).to.include({ redriven: 0, matched: 0 })
    expect(await redrive({ since: first, bizKey: 'order-7' })).to.include({ redriven: 2, matched: 2 })
    const { cursor } = (await ask({ reason: 'broken', count: 1, dryRun: true })).body
    expect(await redrive({ reason: 'broken', count: 2 })).to.satisfy(
      ({ redriven, matched, most }: { redriven: number; matched: number; most: number }) =>
        redriven === 3 && matched === 3 && most <= 2,
    )
    expect([await dead(topic), await dead(other)]).to.deep.equal([0, 1])
    for (const [wrong, code] of [
      [{ ids: ['a'], reason: 'x' }, 'invalid-request'],
      [{ ids: ['a'], dryRun: false }, 'invalid-request'],
      [{ topic }, 'invalid-request'],
      [{ reason: '' }, 'invalid-request'],
      [{ cursor }, 'invalid-cursor'],
    ] as const) {
      const { status, body } = await ask(wrong)
      expect([status, body.code], JSON.stringify(wrong)).to.deep.equal([400, code])
    }
  })

  it('are found by their own endpoint or that of their topic', async () => {
    const [topic, plain] = [service.topic(), service.topic()]
    const make = async (): Promise<string> =>
      (await service.ask('POST', '/v1/endpoints', { url: 'https://example.com/hook' })).body.id
    const [usual, own] = [await make(), await make()]
    // messages are not sent meanwhile
    for (const id of [usual, own]) await service.ask('PATCH', `/v1/endpoints/${id}`, { enabled: false })
    await service.ask('PUT', `/v1/topics/${topic}`, { endpoint: usual })
    await makeDeadLetters(topic, ['usual'], 'boom')
    await makeDeadLetters(topic, ['own'], 'boom', { endpoint: own })
    await makeDeadLetters(plain, ['none'], 'boom')
    expect(await all(`endpoint=${usual}`)).to.deep.equal([`${topic}/usual`])
    expect(await all(`endpoint=${own}`)).to.deep.equal([`${topic}/own`])
    const { body } = await service.ask('POST', `/v1/topics/${topic}/dead-letters/redrive`, { endpoint: own })
    expect(body).to.include({ redriven: 1, matched: 1 })
    for (const id of [usual, own]) await service.ask('DELETE', `/v1/endpoints/${id}?force`)
  })

  it('are deleted if they match; those that cannot be moved back stay', async () => {
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

  it('refuse cursors of another kind, and odd filters', async () => {
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
