import { javaCodecs } from '../../dist/java/index.js'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createClient } from '../../dist/index.js'
import { which } from '../../scripts/redis.js'
import { ExternalSession } from './external.js'
import { bulksOf, farAway, payloadOf, timedBulk, type SessionOptions, type Subject } from './subject.js'

const POM = fileURLToPath(new URL('../redisson/pom.xml', import.meta.url))
const PROGRAM = fileURLToPath(new URL('../redisson/Bench.java', import.meta.url))
const CACHE = fileURLToPath(new URL('../../.cache/redisson-bench', import.meta.url))

/** It has no call for many: so many calls are under way. */
const IN_FLIGHT = 1_000

/** Redisson's own RDelayedQueue on a JVM, in a process of its own. */
export const redisson: Subject = {
  name: 'Redisson RDelayedQueue',
  promise: 'at most once',
  bulks: bulksOf([1], [64, 256, 1_000, 4_000]),
  isExternal: true,
  notInQuickRuns: true,
  missing() {
    const tool = ['java', 'mvn'].find((name) => which(name) === undefined)
    return tool === undefined ? undefined : `it needs ${tool} on PATH`
  },
  async open(options) {
    const command = ['java', '-Xmx4g', '-cp', classpath(), PROGRAM] as const
    return ExternalSession.open([...command], options, IN_FLIGHT, (count) => fill(options, count))
  },
}

/** Redisson offers one message at a time, which takes minutes for a million; the bytes are the same. */
async function fill({ url, ca, queue, payloadBytes }: SessionOptions, count: number): Promise<void> {
  await using client = createClient({ url, codec: javaCodecs.kryo5(), ...(ca !== undefined && { tls: { ca } }) })
  const delayed = client.getDelayedQueue(client.getQueue<string>(queue), { deliver: false })
  await timedBulk(count, { size: 5_000, inFlight: 1 }, (from, to) =>
    delayed.offerAll(
      Array.from({ length: to - from }, (_, i) => ({ value: payloadOf(from + i, payloadBytes), delay: farAway() })),
    ),
  )
}

let found: string | undefined

/** Fetched once by Maven, then kept. */
function classpath(): string {
  if (found !== undefined) return found
  const file = `${CACHE}/${redissonVersion()}.classpath`
  if (!existsSync(file)) {
    mkdirSync(CACHE, { recursive: true })
    const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath'
    const args = ['--batch-mode', '--quiet', '-f', POM, goal, `-Dmdep.outputFile=${file}`]
    const { status, stdout, stderr } = spawnSync('mvn', args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`Maven could not fetch Redisson:\n${stdout}${stderr}`)
  }
  return (found = readFileSync(file, 'utf8').trim())
}

export function redissonVersion(): string {
  return /<redisson\.version>([^<]+)</.exec(readFileSync(POM, 'utf8'))?.[1] ?? 'unknown'
}
