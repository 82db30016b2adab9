// A proxy before the service whose stream of overviews is faster: the service sends about one a second.
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const STREAM = '/v1/overview/stream'
/** The proxy catches up after this time, whatever a timer costs. */
const TURN_MS = 5

export interface FastStream {
  readonly url: string
  /** How many overviews it has sent. */
  sent(): number
  close(): void
}

/** Passes each request on, and after the first overview of a stream sends `perSecond` of them, each with other figures. */
export async function startFastStream(serviceUrl: string, perSecond: number): Promise<FastStream> {
  let sent = 0
  const server = createServer((asked, answer) => {
    const { method, headers, url = '/' } = asked
    const passed = request(new URL(url, serviceUrl), { method, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      if (url === STREAM) void firstOf(response).then((first) => send(first, answer))
      else response.pipe(answer)
    })
    answer.once('close', () => passed.destroy())
    passed.once('error', () => answer.destroy())
    asked.pipe(passed)
  })
  const send = (first: Record<string, never>, answer: ServerResponse): void => {
    const begun = performance.now()
    let count = 0
    const timer = setInterval(() => {
      for (const wanted = ((performance.now() - begun) / 1_000) * perSecond; count < wanted; count++) {
        sent++
        answer.write(`event: overview\ndata: ${JSON.stringify(changed(first, count))}\n\n`)
      }
    }, TURN_MS)
    answer.once('close', () => clearInterval(timer))
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: () => sent,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function firstOf(response: IncomingMessage): Promise<Record<string, never>> {
  return new Promise((resolve) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (part: string) => {
      text += part
      const [, data] = /^data: (.*)\n\n/m.exec(text) ?? []
      if (data === undefined) return
      response.removeAllListeners('data').resume()
      resolve(JSON.parse(data) as Record<string, never>)
    })
  })
}

/** The same overview with other figures in its tiles, its table and its chart, which has all points of 15 minutes. */
function changed(first: Record<string, never>, count: number): object {
  const figure = (most: number): number => Math.abs(Math.sin(count / 7)) * most
  const at = Date.now()
  const { counts, busiest } = first as unknown as {
    counts: Record<string, number>
    busiest: { counts: Record<string, number> }[]
  }
  const grown = (one: Record<string, number>) => ({ ...one, total: (one['total'] ?? 0) + count })
  const rates = (of: number) => ({ pushed: of, delivered: of / 2, acknowledged: of / 3, failed: of / 50 })
  return {
    ...first,
    at,
    counts: grown(counts),
    busiest: busiest.map((one) => ({ ...one, counts: grown(one.counts) })),
    rates: { ...rates(figure(1_000)), dead: figure(3) },
    series: Array.from({ length: 180 }, (_, n) => ({ at: at - (179 - n) * 5_000, ...rates(figure(50 + n)) })),
  }
}
