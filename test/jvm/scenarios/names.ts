/** Both build the same keys from a name, and carry any payload. */
import { expect } from 'chai'
import { randomBytes } from 'node:crypto'
import { codecs, type Codec } from '../../../src/index.js'
import { onCleanup } from '../../integration/fixtures.js'
import { rawClient, uniqueName } from '../../support/redis.js'
import type { JavaCodec } from '../support/jvm.js'
import { LATER, both, expectConsistent, s, scenario, strings, type Both, type Side } from '../support/side.js'
import { java as j, type Typed } from '../support/values.js'

const NAMES: [kind: string, name: (unique: string) => string][] = [
  ['a tag in braces', (unique) => `{${unique}}:orders`],
  ['braces in the middle', (unique) => `a{${unique}}c{d}`],
  ['an open brace only', (unique) => `${unique}{open`],
  ['empty braces', (unique) => `${unique}{}`],
  ['a closing brace only', (unique) => `${unique}}`],
  ['non-ASCII letters', (unique) => `${unique}:заказы-注文-🐝`],
  ['spaces, quotes and line ends', (unique) => `${unique} "a" 'b'\r\n\t\\`],
]

const MEGABYTE = 1024 * 1024

export function nameAndPayloadScenarios(side: Side): void {
  for (const [kind, nameOf] of NAMES) {
    scenario(side, `a name with ${kind}`, async () => {
      const pair = both(side, { name: nameOf(uniqueName('jvm')) })
      onCleanup(() => deleteKeys(pair.name))
      await roundTrips(pair, ['by name'], (value) => s(value))
      await sameKeys(pair)
    })
  }

  scenario(side, 'a name mapper on both sides', async () => {
    const prefix = `app-${process.pid}:`
    const name = uniqueName('mapped')
    const nameMapper = { map: (it: string) => prefix + it, unmap: (it: string) => it.slice(prefix.length) }
    await side.jvm().open({ client: 'mapped', prefix })
    onCleanup(() => side.jvm().close('mapped'))
    onCleanup(() => deleteKeys(prefix + name))
    const mapped = both(side, { name, javaClient: 'mapped', options: { nameMapper } })
    await roundTrips(mapped, ['by mapped name'], (value) => s(value))
    // a client without a mapper finds it under the full name
    await mapped.java.hold()
    await mapped.java.offer(s('pending'), LATER)
    expect(
      await both(side, { name: prefix + name })
        .delayed({ deliver: false })
        .readAll(),
    ).to.deep.equal(['pending'])
    await mapped.java.pollPending()
  })

  const texts: [kind: string, values: string[]][] = [
    ['an empty string', ['']],
    ['non-ASCII text', ['grüße, 你好, 🐝🏽, \u0000, \u2028, \ufeff']],
    ['text that looks like a header', ['\b12345678\u0002\0\0\0\0\0\0\0hi']],
    ['a string of 1 MB', ['ü'.repeat(MEGABYTE / 2)]],
  ]
  for (const [kind, values] of texts) {
    scenario(side, `a payload of ${kind}`, async () => {
      await roundTrips(both(side), values, (value) => s(value))
    })
  }

  const blobs: [kind: string, values: Buffer[]][] = [
    ['every byte', [Buffer.from(Array.from({ length: 256 }, (_, i) => i))]],
    ['no bytes', [Buffer.alloc(0)]],
    ['bytes that are no UTF-8', [Buffer.from('c3280d0a00ff', 'hex')]],
    ['1 MB of random bytes', [randomBytes(MEGABYTE)]],
  ]
  for (const [kind, values] of blobs) {
    scenario(side, `a payload of ${kind}`, async () => {
      const codec = codecs.bytes() as Codec<Buffer>
      const javaCodec: JavaCodec = { name: 'ByteArray' }
      await roundTrips(both<Buffer>(side, { codec, javaCodec }), values, (value) => j.bytes(value))
    })
  }
}

/** Java offers and Node delivers, and the reverse. */
async function roundTrips<T>(pair: Both<T>, values: T[], toJava: (value: T) => Typed): Promise<void> {
  const { java, delayed, queue } = pair
  const delivering = delayed()
  for (const value of values) {
    await java.offerAndLeave(toJava(value), 20)
    expect(await queue.take()).to.deep.equal(value)
  }
  await delivering.destroy()
  const node = delayed({ deliver: false })
  await java.hold()
  for (const value of values) {
    await node.offer(value, 20)
    expect(await java.take()).to.deep.equal(toJava(value))
  }
}

/** Pending entries of each are seen by the other, and the keys are those that the rule in docs/wire-format.md gives. */
async function sameKeys({ name, java, delayed }: Both<string>): Promise<void> {
  const node = delayed({ deliver: false })
  await java.offer(s('of Java'), LATER)
  await node.offer('of Node', LATER)
  expect(await java.readAll()).to.deep.equal(strings(['of Java', 'of Node']))
  expect(await node.readAll()).to.deep.equal(['of Java', 'of Node'])
  await expectConsistent(name)
}

async function deleteKeys(name: string): Promise<void> {
  const braced = name.includes('{') ? name : `{${name}}`
  await rawClient().del(name, `redisson_delay_queue:${braced}`, `redisson_delay_queue_timeout:${braced}`)
}
