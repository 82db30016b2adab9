import { javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { codecs } from '../../src/index.js'
import { cleanUp, forgetReliable, makeClient, onCleanup, rawKeys } from '../integration/fixtures.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { bombs } from './bombs.js'
import { wrapping } from './codecs.js'

const run = promisify(execFile)
const HEAP_MIB = 128
const script = fileURLToPath(new URL('fixtures/bombs-in-queues-process.ts', import.meta.url))

const subjects = [
  ['lz4', 'lz4 of kryo5: nulls', javaCodecs.lz4()],
  ['msgpack', 'msgpack: empty maps', codecs.msgpack()],
  ['cborJackson', 'cborJackson: empty maps', javaCodecs.cborJackson()],
] as const

describe('object bombs in a queue', () => {
  afterEach(cleanUp)

  for (const [name, what, codec] of subjects) {
    it(`are set aside by a consumer of ${HEAP_MIB} MiB, which continues: ${what}`, async () => {
      const { codec: wrapped, bytes } = bombs.find((bomb) => bomb.what === what)!
      const bomb = wrapping[wrapped]?.(bytes()) ?? bytes()
      const queueName = uniqueName('bomb')
      const redis = rawClient()
      onCleanup(async () => {
        const { destination, quarantine } = rawKeys(queueName)
        await redis.del(destination, quarantine)
      })
      await redis.rpush(queueName, bomb, codec.encode('good'))
      // both queues get the bytes as they are, past every codec
      const reliable = makeClient().getReliableQueue(`${queueName}:reliable`, { codec: codecs.bytes() })
      forgetReliable(reliable.name)
      await reliable.setConfig({ deliveryLimit: 1 })
      await reliable.add(bomb)
      await reliable.add(codec.encode('good'))

      const args = [`--max-old-space-size=${HEAP_MIB}`, '--import=tsx', script, redisUrl(), queueName, name]
      const { stdout } = await run(process.execPath, args, { timeout: 60_000 })
      expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).to.deep.equal({
        peek: 'ERR_DECODE',
        readAll: ['good'],
        take: 'good',
        polled: 'good',
        deadLetters: 1,
        quarantined: 2,
      })
    }).timeout(90_000)
  }
})
