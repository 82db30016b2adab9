// `node scripts/run.mjs connections-bench`: how the built service refuses connections beyond --max-connections. A process of its own opens
// connections from several loopback addresses, as many at a time as this machine allows, and counts which of them get the whole problem and are
// closed. Prints a line, with the memory of the service before and after.
//
//   node scripts/run.mjs connections-bench [--limit 8000] [--refused 100000]
import { readFileSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { findServerBin, startServer } from './redis.js'
import { HttpConnection, requestOf } from './service-bench/http-client.js'
import { startServiceProcess } from './service-process.js'

const { values } = parseArgs({
  options: { limit: { type: 'string', default: '8000' }, refused: { type: 'string', default: '100000' } },
})
const [limit, refused] = [Number(values.limit), Number(values.refused)]
const AT_ONCE = 500
const bin = findServerBin()
if (bin === undefined) throw new Error('there is no redis-server or valkey-server on PATH')
const redis = await startServer({ bin })
const service = await startServiceProcess(redis.url, ['--max-connections', String(limit)])
const memory = (): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024)
const { hostname, port } = new URL(service.url)
/** `answered`: with the whole problem. */
type Outcome = 'answered' | 'closed' | 'reset' | 'open'
const addressOf = (at: number): string => `127.0.0.${2 + (at % 8)}`

const held: HttpConnection[] = []
const request = requestOf(service, '/livez', '', 'GET')
/** Each asks at once: the service waits 15 s for a first request. */
const open = async (at: number): Promise<HttpConnection> => {
  const connection = await HttpConnection.open(service.url, addressOf(at))
  await connection.ask(request)
  return connection
}
while (held.length < limit)
  held.push(...(await Promise.all(Array.from({ length: Math.min(AT_ONCE, limit - held.length) }, (_, at) => open(at)))))
const full = memory()
const counts: Record<Outcome, number> = { answered: 0, closed: 0, reset: 0, open: 0 }
let answer = ''
let most = full
const begin = performance.now()
for (let from = 0; from < refused; from += AT_ONCE) {
  const some = Array.from({ length: Math.min(AT_ONCE, refused - from) }, (_, at) => refusedOne(addressOf(at)))
  for (const outcome of await Promise.all(some)) counts[outcome]++
  most = Math.max(most, memory())
}
const seconds = (performance.now() - begin) / 1_000
const answered = await Promise.all(held.map((connection) => connection.ask(request).then(() => 1)))
held.pop()?.close()
await new Promise((resolve) => setTimeout(resolve, 500))
await (await HttpConnection.open(service.url)).ask(request) // there is room again
const still = answered.length
console.log(
  `limit ${limit}; ${refused} more in ${seconds.toFixed(1)} s: ${counts.answered} got a whole 503, ${counts.closed} were closed without it, ${counts.reset} reset, ${counts.open} neither. ` +
    `${still} of those before are answered, and one more when one of them has ended. Memory ${full} MB, at most ${most} MB, ${memory()} MB at the end.\n\n${answer}`,
)
for (const connection of held) connection.close()
await service.stop()
await redis.stop()
process.exit(counts.answered < refused || still < limit ? 1 : 0)

/** What becomes of a connection beyond the limit. */
function refusedOne(localAddress: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket: Socket = createConnection({ host: hostname, port: Number(port), localAddress })
    const timer = setTimeout(() => end('open'), 30_000)
    let got = ''
    const end = (outcome: Outcome): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(outcome)
    }
    socket.on('data', (bytes: Buffer) => (got += bytes.toString()))
    socket.once('error', () => end('reset'))
    socket.once('end', () => {
      if (/^HTTP\/1\.1 503 .*"code":"too-many-connections"[^}]*}$/s.test(got)) answer = got
      end(got === answer ? 'answered' : 'closed')
    })
  })
}
