import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fits } from '../topics/topic-name.js'
import { startTestService, type Answer, type TestService } from './support/service.js'

describe('patterns of topics', () => {
  it('match by their texts in order, and take no longer for many stars', () => {
    const all = ['a', 'orders', 'orders.eu', 'orders.eu.de', 'mails.eu']
    const fitting = (pattern: string): string[] => all.filter((name) => fits(name, pattern))
    expect(fitting('orders')).to.deep.equal(['orders'])
    expect(fitting('orders*')).to.deep.equal(['orders', 'orders.eu', 'orders.eu.de'])
    expect(fitting('*.eu')).to.deep.equal(['orders.eu', 'mails.eu'])
    expect(fitting('o*e*de')).to.deep.equal(['orders.eu.de'])
    expect(fitting('*')).to.deep.equal(all)
    expect(fits('aba', 'ab*ba'), 'a letter counts once').to.equal(false)
    expect(fits('a'.repeat(128), `${'*a'.repeat(60)}*b`)).to.equal(false)
  })
})

for (const hasJournal of [false, true]) {
  describe(`one message for several topics${hasJournal ? ', with a journal' : ''}`, function () {
    this.timeout(60_000)
    let dir: string
    let server: TestService
    let names: string[]

    beforeEach(async () => {
      dir = mkdtempSync(join(tmpdir(), 'redelayed-fan-out-'))
      server = await startTestService({
        maxFanOut: 5,
        ...(hasJournal && { journal: `sqlite:${join(dir, 'journal.db')}` }),
      })
      const base = server.topic()
      names = ['a', 'b', 'c'].map((end) => server.topic(`${base}.${end}`))
    })
    afterEach(async () => {
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    })

    const fanOut = (body: object, headers: Record<string, string> = {}, key = server.key): Promise<Answer> =>
      server.ask('POST', '/v1/messages', body, { headers, key })
    const counts = async (): Promise<number[]> =>
      Promise.all(names.map(async (name) => (await server.ask('GET', `/v1/topics/${name}`)).body.counts?.total ?? -1))
    const pattern = (): string => `${names[0]!.slice(0, -1)}*`

    it('reaches each topic of a list under one id, at the time of each, and creates missing topics', async () => {
      await server.ask('PUT', `/v1/topics/${names[1]}`, { delay: 60_000, shards: 3 })
      const { status, body } = await fanOut({ topics: names, body: { a: 1 }, headers: { x: 'y' } })
      expect([status, body.failed], JSON.stringify(body)).to.deep.equal([201, 0])
      expect(body.results.map(({ topic, outcome }) => [topic, outcome])).to.deep.equal(names.map((n) => [n, 'added']))
      for (const [at, name] of names.entries()) {
        const found = await server.ask('GET', `/v1/topics/${name}/messages/${body.id}`)
        expect(found.body).to.deep.include({ id: body.id, body: { a: 1 }, headers: { x: 'y' } })
        expect(found.body.state).to.equal(at === 1 ? 'delayed' : 'visible')
        expect(Math.abs(found.body.dueAt - (body.results[at]?.dueAt ?? 0))).to.be.below(5_000)
      }
    })

    it('reaches all topics of a pattern that the key sees, and no others', async () => {
      for (const name of names) await server.ask('PUT', `/v1/topics/${name}`, {})
      const key = server.addKey(['push'], [names[0]!, names[2]!])
      const { status, body } = await fanOut({ pattern: pattern(), id: 'x' }, {}, key)
      expect([status, body.results.map(({ topic }) => topic)]).to.deep.equal([201, [names[0], names[2]]])
      expect(await counts()).to.deep.equal([1, 0, 1])
      expect((await fanOut({ pattern: pattern(), id: 'x' })).body.results.map(({ outcome }) => outcome)).to.deep.equal([
        'kept',
        'added',
        'kept',
      ])
      const again = await fanOut({ pattern: pattern(), id: 'x' })
      expect([again.status, again.body.failed]).to.deep.equal([200, 0])
    })

    it('is refused whole, and changes nothing, if the request is invalid', async () => {
      for (const name of names) await server.ask('PUT', `/v1/topics/${name}`, {})
      const key = server.addKey(['push'], [names[0]!])
      const refused: [object, number, string][] = [
        [{}, 400, 'invalid-request'],
        [{ topics: names, pattern: '*' }, 400, 'invalid-request'],
        [{ topics: [] }, 400, 'invalid-request'],
        [{ topics: [names[0], names[0]] }, 400, 'invalid-request'],
        [{ topics: [names[0], 'redelayed-server:topics'] }, 400, 'invalid-topic'],
        [{ topics: [...names, 'a', 'b', 'c'] }, 400, 'invalid-request'],
        [{ topics: names, delay: 1, dueAt: 1 }, 400, 'invalid-message'],
        [{ topics: names, id: 'ü'.repeat(300) }, 400, 'invalid-message'],
        [{ pattern: 'there-is-none*' }, 404, 'topic-not-found'],
      ]
      for (const [body, status, code] of refused) {
        const answer = await fanOut(body)
        expect([answer.status, answer.body.code], JSON.stringify(body)).to.deep.equal([status, code])
      }
      const forbidden = await fanOut({ topics: names }, {}, key)
      expect([forbidden.status, forbidden.body.code]).to.deep.equal([403, 'forbidden'])
      expect(await counts()).to.deep.equal([0, 0, 0])
    })

    it('is refused at once if the list has one topic hundreds of thousands of times, or twice', async () => {
      for (const count of [2, 400_000]) {
        const { status, body } = await fanOut({ topics: Array.from({ length: count }, () => 'a') })
        expect([status, body.code], `${count}`).to.deep.equal([400, 'invalid-request'])
      }
    })

    it('goes to the others when a topic refuses it, and by its id or key to that one too later', async () => {
      for (const name of names) await server.ask('PUT', `/v1/topics/${name}`, {})
      const pause = (what: 'pause' | 'resume'): Promise<Answer> =>
        server.ask('POST', `/v1/topics/${names[1]}/${what}`, { what: 'push' })
      await pause('pause')
      const first = await fanOut({ pattern: pattern(), body: 1 }, { 'idempotency-key': 'k' })
      expect([first.status, first.body.failed]).to.deep.equal([207, 1])
      expect(first.body.results.map(({ problem, outcome }) => problem?.code ?? outcome)).to.deep.equal([
        'added',
        'topic-paused',
        'added',
      ])
      await pause('resume')
      // a message that was handled meanwhile is not added again
      const { body: got } = await server.ask('POST', `/v1/topics/${names[0]}/receive`, { wait: 5_000 })
      await server.ask('POST', '/v1/leases/acknowledge', { leases: got.messages.map(({ lease }) => lease) })
      const later = server.topic(`${names[0]!.slice(0, -1)}d`) // the pattern fits it, and the request is older
      await server.ask('PUT', `/v1/topics/${later}`, {})
      const second = await fanOut({ pattern: pattern(), body: 1 }, { 'idempotency-key': 'k' })
      expect([second.status, second.body.id, second.body.failed]).to.deep.equal([201, first.body.id, 0])
      expect(second.headers.get('idempotency-replayed')).to.equal('true')
      expect(await counts()).to.deep.equal([0, 1, 1])
      const third = await fanOut({ pattern: pattern(), body: 1 }, { 'idempotency-key': 'k' })
      expect([third.status, third.body]).to.deep.equal([201, second.body])
      const other = await fanOut({ topics: names, body: 1 }, { 'idempotency-key': 'k' })
      expect([other.status, other.body.code]).to.deep.equal([422, 'idempotency-mismatch'])
    })

    it('is a problem with the reason of each topic when no topic takes it', async () => {
      for (const name of names) {
        await server.ask('PUT', `/v1/topics/${name}`, {})
        await server.ask('POST', `/v1/topics/${name}/pause`, { what: 'push' })
      }
      const { status, body } = await fanOut({ topics: names })
      expect([status, body.code]).to.deep.equal([409, 'topic-paused'])
      expect(body.errors?.map(({ path }) => path)).to.deep.equal(names)
    })
  })
}
