import { createConnection, type Socket } from 'node:net'

/** Where requests go, and with which key. */
export interface Target {
  readonly url: string
  readonly key: string
}

/** The bytes of a request, which can be sent any number of times. */
export function requestOf({ url, key }: Target, path: string, body = '', method = 'POST'): Buffer {
  const { host } = new URL(url)
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${key}`,
    `Content-Type: application/json`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

interface Waiting {
  readonly resolve: (body: string) => void
  readonly reject: (error: Error) => void
}

/**
 * One connection with one request at a time. Node's own client takes more of a core than the service under test; this one reads only what the
 * service answers: a status and a body of known length.
 */
export class HttpConnection {
  readonly #socket: Socket
  #waiting: Waiting | undefined
  #rest = ''

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the service has closed the connection')))
  }

  static open(url: string, localAddress?: string): Promise<HttpConnection> {
    const { hostname, port } = new URL(url)
    const socket = createConnection({ host: hostname, port: Number(port), ...(localAddress && { localAddress }) })
    return new Promise((resolve, reject) => {
      socket.once('error', reject)
      socket.once('connect', () => resolve(new HttpConnection(socket)))
    })
  }

  /** The body of the answer; rejects where it is no 2xx. */
  ask(request: Buffer): Promise<string> {
    if (this.isClosed) return Promise.reject(new Error('the service has closed the connection'))
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#socket.write(request)
    })
  }

  /** The service closes one that nothing is sent on for a while. */
  get isClosed(): boolean {
    return this.#socket.destroyed || !this.#socket.writable
  }

  close(): void {
    this.#waiting = undefined
    this.#socket.destroy()
  }

  #read(bytes: Buffer): void {
    this.#rest += bytes.toString('latin1')
    const head = this.#rest.indexOf('\r\n\r\n')
    if (head < 0) return
    const [, length = '0'] = /\r\ncontent-length: (\d+)/i.exec(this.#rest.slice(0, head)) ?? []
    const end = head + 4 + Number(length)
    if (this.#rest.length < end) return
    const [status, body] = [Number(this.#rest.slice(9, 12)), this.#rest.slice(head + 4, end)]
    this.#rest = this.#rest.slice(end)
    const waiting = this.#waiting
    this.#waiting = undefined
    if (status < 300) waiting?.resolve(body)
    else waiting?.reject(new Error(`${status} ${body}`))
  }

  #fail(error: Error): void {
    this.#waiting?.reject(error)
    this.#waiting = undefined
  }
}

/** As many connections as there are requests at once. */
export class HttpPool {
  readonly #target: Target
  readonly #free: HttpConnection[] = []
  readonly #all: HttpConnection[] = []

  constructor(target: Target) {
    this.#target = target
  }

  async call(path: string, body?: string, method?: string): Promise<string> {
    return this.send(requestOf(this.#target, path, body, method))
  }

  async send(request: Buffer): Promise<string> {
    let connection = this.#free.pop()
    while (connection?.isClosed === true) connection = this.#free.pop()
    if (connection === undefined) {
      connection = await HttpConnection.open(this.#target.url)
      this.#all.push(connection)
    }
    const answer = await connection.ask(request)
    this.#free.push(connection)
    return answer
  }

  close(): void {
    for (const connection of this.#all) connection.close()
  }
}
