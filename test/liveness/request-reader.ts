const SUBCOMMANDS = new Set(['CLIENT', 'SCRIPT', 'CLUSTER', 'SENTINEL'])

/** Reads the commands out of what a client sends: `HELLO`, `CLIENT ID`. Arguments are passed over. */
export class RequestReader {
  readonly #onCommand: (command: string) => void
  #buffer: Buffer = Buffer.alloc(0)

  constructor(onCommand: (command: string) => void) {
    this.#onCommand = onCommand
  }

  push(bytes: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? bytes : Buffer.concat([this.#buffer, bytes])
    for (let read = this.#request(); read !== undefined; read = this.#request()) {
      const [words, end] = read
      this.#buffer = this.#buffer.subarray(end)
      const [name = '', sub = ''] = words.map((word) => word.toUpperCase())
      this.#onCommand(SUBCOMMANDS.has(name) ? `${name} ${sub}` : name)
    }
  }

  /** The first two words of the next request that is there as a whole, and where it ends. */
  #request(): [words: string[], end: number] | undefined {
    const head = this.#number(0, '*')
    if (head === undefined) return undefined
    let [count, at] = head
    const words: string[] = []
    for (; count > 0; count--) {
      const length = this.#number(at, '$')
      if (length === undefined) return undefined
      const [bytes, start] = length
      if (this.#buffer.length < start + bytes + 2) return undefined
      if (words.length < 2) words.push(this.#buffer.toString('latin1', start, start + Math.min(bytes, 20)))
      at = start + bytes + 2
    }
    return [words, at]
  }

  #number(at: number, sign: string): [value: number, next: number] | undefined {
    const end = this.#buffer.indexOf('\r\n', at)
    if (end === -1) return undefined
    const text = this.#buffer.toString('latin1', at, end)
    if (!text.startsWith(sign)) throw new Error(`expected ${sign} and a number, got ${JSON.stringify(text)}`)
    return [Number(text.slice(1)), end + 2]
  }
}
