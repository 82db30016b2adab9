import { expect } from 'chai'
import { Instances } from '../console/instances.js'

const NOW = 1_800_000_000_000.25

describe('the instances of the service', () => {
  it('are listed although other programs have written into their key', async () => {
    const fields = new Map<string, string>()
    const redis = {
      hset: (_: string, field: string, value: string) => Promise.resolve(fields.set(field, value)),
      evalsha: () => Promise.resolve([...fields.values()]),
      eval: () => expect.fail('the server knows the script'),
      hdel: (_: string, ...gone: string[]) => Promise.resolve(gone.map((field) => fields.delete(field))),
    }
    const readings = () => Promise.resolve({ url: null, connections: 1, waiting: 0 })
    const instances = new Instances(redis, '1.2.3', () => NOW)
    await instances.start(readings, (error) => expect.fail(String(error)))
    try {
      const [own] = await instances.list()
      expect(own).to.include({ version: '1.2.3', pid: process.pid })
      const wrong = [
        '',
        'null',
        '5',
        '[',
        '{}',
        '[[]]',
        JSON.stringify({ ...own, memory: '1' }),
        JSON.stringify({ ...own, host: 'h'.repeat(1_001) }),
        JSON.stringify({ ...own, seenAt: null, url: 5 }),
      ]
      for (const [at, text] of wrong.entries()) fields.set(`wrong ${at}`, text)
      expect(await instances.list()).to.deep.equal([own])
    } finally {
      await instances.stop()
    }
  })
})
