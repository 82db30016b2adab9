import { expect } from 'chai'
import { HealthReader } from '../console/health.js'

const INFO = 'redis_version:7.0.15\r\nused_memory:1000\r\n'

describe('the health of the service', () => {
  it('says what Redis and SQL answer, also when the endpoints cannot be read', async () => {
    const errors: unknown[] = []
    const reader = new HealthReader(
      {
        info: async () => [INFO],
        pingJournal: () => Promise.reject(new Error('SQL is down')),
        endpoints: () => Promise.reject(new Error('the record is of another type')),
        gate: { state: async () => ({ state: 'closed', tried: 0, failed: 0 }) },
        now: () => 0,
      },
      (error) => errors.push(error),
    )
    const { redis, journalAnswers, endpoints, wellEndpoints } = await reader.read()
    expect(redis).to.include({ state: 'ok', version: '7.0.15', usedMemory: 1_000 })
    expect({ journalAnswers, endpoints, wellEndpoints }).to.deep.equal({
      journalAnswers: false,
      endpoints: [],
      wellEndpoints: null,
    })
    expect(errors.map(String)).to.deep.equal(['Error: the record is of another type'])
    await reader.stop()
  })
})
