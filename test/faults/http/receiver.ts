import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

/** A verified webhook. */
export interface Arrived {
  readonly body: unknown
  readonly attempt: number
}

/** The endpoint of webhooks: checks their signatures, and answers as `handle` says. While `isSilent` it takes webhooks and answers none. */
export class Receiver {
  isSilent = false
  /** Gets each webhook and returns the status of the answer. */
  handle: (arrived: Arrived) => number = () => 500
  /** Called when an answer was written. */
  onAnswered: (arrived: Arrived, status: number) => void = () => undefined
  onWrong: (text: string) => void = () => undefined
  #verifier: Webhook | undefined
  readonly #server: Server
  readonly #held = new Set<ServerResponse>()

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<Receiver> {
    const server = createServer()
    const receiver = new Receiver(server)
    server.on('request', (request, response) => receiver.#take(request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return receiver
  }

  /** The number of webhooks that wait for an answer. */
  get held(): number {
    return this.#held.size
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** The secret with which the service signs. */
  set secret(secret: string) {
    this.#verifier = new Webhook(secret)
  }

  /** Ends the silence: what it had not answered gets no answer. */
  speak(): void {
    this.isSilent = false
    for (const response of this.#held) response.destroy()
    this.#held.clear()
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', (part: string) => (text += part))
    // an instance that is killed breaks its requests off
    request.on('error', () => undefined)
    request.on('end', () => {
      if (this.isSilent) {
        this.#held.add(response)
        response.once('close', () => this.#held.delete(response))
        return
      }
      const arrived = this.#verified(text, request)
      const status = arrived === undefined ? 400 : this.handle(arrived)
      response.writeHead(status).end(() => {
        if (arrived !== undefined) this.onAnswered(arrived, status)
      })
    })
  }

  #verified(text: string, { headers }: IncomingMessage): Arrived | undefined {
    try {
      const body = this.#verifier?.verify(text, headers as Record<string, string>)
      return { body, attempt: Number(headers['redelayed-attempt']) }
    } catch (error) {
      this.onWrong(`a webhook is not signed as it should be: ${String(error)}`)
      return undefined
    }
  }
}
