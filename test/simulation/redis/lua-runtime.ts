/** Strings are bytes, one per UTF-16 unit. */
export type LuaValue = undefined | boolean | number | string | LuaTable | LuaFunction
export type LuaFunction = (...args: LuaValue[]) => LuaValue[]

/** An error that a script or a command raised; `message` is what the server answers, with its code. */
export class LuaError extends Error {}

export class LuaTable {
  readonly list: LuaValue[]
  readonly #others = new Map<LuaValue, LuaValue>()

  constructor(list: readonly LuaValue[] = []) {
    this.list = [...list]
    this.#trim()
  }

  get(key: LuaValue): LuaValue {
    if (typeof key === 'number' && key >= 1 && key <= this.list.length) return this.list[key - 1]
    return this.#others.get(key)
  }

  set(key: LuaValue, value: LuaValue): void {
    if (typeof key === 'number' && Number.isInteger(key) && key >= 1 && key <= this.list.length + 1) {
      this.list[key - 1] = value
      this.#trim()
      for (let next = this.list.length + 1; this.#others.size > 0 && this.#others.has(next); next++) {
        this.list.push(this.#others.get(next))
        this.#others.delete(next)
      }
    } else if (value === undefined) this.#others.delete(key)
    else this.#others.set(key, value)
  }

  with(key: LuaValue, value: LuaValue): this {
    this.set(key, value)
    return this
  }

  #trim(): void {
    while (this.list.length > 0 && this.list.at(-1) === undefined) this.list.pop()
  }
}

export function toNumber(value: LuaValue): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) || /^0x[\da-f]+$/i.test(text)) return Number(text)
  const special = /^([+-]?)(inf|nan)$/i.exec(text) // strtod of the C library reads these
  if (special === null) return undefined
  return special[2]?.toLowerCase() === 'nan' ? NaN : special[1] === '-' ? -Infinity : Infinity
}

export function toText(value: LuaValue): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'number') throw new LuaError(`attempt to concatenate a ${typeOf(value)} value`)
  if (Number.isInteger(value) && Math.abs(value) < 1e14) return String(value)
  if (!Number.isFinite(value)) return Number.isNaN(value) ? '-nan' : value > 0 ? 'inf' : '-inf'
  const [mantissa = '', exponent] = value.toPrecision(14).split('e')
  const short = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa
  return exponent === undefined ? short : `${short}e${exponent.replace(/^([+-])(\d)$/, '$10$2')}`
}

function typeOf(value: LuaValue): string {
  if (value === undefined) return 'nil'
  if (value instanceof LuaTable) return 'table'
  return typeof value
}

/** The functions that compiled code calls. */
export const runtime = {
  number(value: LuaValue): number {
    const number = toNumber(value)
    if (number === undefined) throw new LuaError(`attempt to perform arithmetic on a ${typeOf(value)} value`)
    return number
  },
  text: toText,
  length(value: LuaValue): number {
    if (typeof value === 'string') return value.length
    if (value instanceof LuaTable) return value.list.length
    throw new LuaError(`attempt to get length of a ${typeOf(value)} value`)
  },
  modulo: (a: number, b: number): number => a - Math.floor(a / b) * b,
  isLess(a: LuaValue, b: LuaValue): boolean {
    if (typeof a === 'number' && typeof b === 'number') return a < b
    if (typeof a === 'string' && typeof b === 'string') return a < b
    throw new LuaError(`attempt to compare ${typeOf(a)} with ${typeOf(b)}`)
  },
  isAtMost(a: LuaValue, b: LuaValue): boolean {
    if (typeof a === 'number' && typeof b === 'number') return a <= b
    if (typeof a === 'string' && typeof b === 'string') return a <= b
    throw new LuaError(`attempt to compare ${typeOf(a)} with ${typeOf(b)}`)
  },
  index(table: LuaValue, key: LuaValue): LuaValue {
    if (table instanceof LuaTable) return table.get(key)
    throw new LuaError(`attempt to index a ${typeOf(table)} value`)
  },
  assign(table: LuaValue, key: LuaValue, value: LuaValue): void {
    if (!(table instanceof LuaTable)) throw new LuaError(`attempt to index a ${typeOf(table)} value`)
    if (key === undefined || Number.isNaN(key)) throw new LuaError('index is nil or NaN')
    table.set(key, value)
  },
  table: (list: readonly LuaValue[]): LuaTable => new LuaTable(list),
  call(value: LuaValue): LuaFunction {
    if (typeof value === 'function') return value
    throw new LuaError(`attempt to call a ${typeOf(value)} value`)
  },
  global(globals: Readonly<Record<string, LuaValue>>, name: string): LuaValue {
    if (!(name in globals)) throw new LuaError(`Script attempted to access nonexistent global variable '${name}'`)
    return globals[name]
  },
  *iterate([next, state, control]: LuaValue[]): Generator<LuaValue[]> {
    for (;;) {
      const values = runtime.call(next)(state, control)
      control = values[0]
      if (control === undefined) return
      yield values
    }
  },
}

function table(entries: Readonly<Record<string, LuaValue>>): LuaTable {
  const made = new LuaTable()
  for (const [key, value] of Object.entries(entries)) made.set(key, value)
  return made
}

const nextOf: LuaFunction = (list, at) => {
  const value = runtime.index(list, Number(at) + 1)
  return value === undefined ? [] : [Number(at) + 1, value]
}

function sub(text: LuaValue, from: LuaValue, to: LuaValue = -1): string {
  const bytes = toText(text)
  const place = (at: number): number => (at < 0 ? Math.max(bytes.length + at + 1, 0) : at)
  return bytes.slice(Math.max(place(runtime.number(from)), 1) - 1, Math.max(place(runtime.number(to)), 0))
}

function format(...[pattern, ...values]: LuaValue[]): string {
  return toText(pattern).replace(/%(%|\.(\d+)f|d|s)/g, (_, what: string, digits?: string) => {
    if (what === '%') return '%'
    const value = values.shift()
    if (what === 's') return toText(value)
    const number = runtime.number(value)
    if (!Number.isFinite(number)) return toText(number)
    return what === 'd' ? String(Math.trunc(number)) : toFixed(number, Number(digits))
  })
}

/** As the C library: exact, ties to even, and no exponent. */
function toFixed(number: number, digits: number): string {
  if (Math.abs(number) >= 1e21) return BigInt(number).toString()
  if (digits === 0) {
    const floor = Math.floor(number)
    const rounded = number - floor === 0.5 ? floor + (floor % 2 === 0 ? 0 : 1) : Math.round(number)
    return Object.is(rounded, -0) ? '-0' : String(rounded)
  }
  return number.toFixed(digits)
}

/** A Lua pattern as a regular expression; those that the scripts use mean the same but for the escape. */
function patternOf(pattern: LuaValue, flags = 's'): RegExp {
  return new RegExp(
    toText(pattern).replace(/%(.)/g, (_, escaped: string) => ESCAPED[escaped] ?? `\\${escaped}`),
    flags,
  )
}

const ESCAPED: Readonly<Record<string, string>> = { d: '\\d', s: '\\s', w: '[A-Za-z0-9]', a: '[A-Za-z]' }

/** The globals of a script besides `redis`, `KEYS` and `ARGV`. */
export const LIBRARY: Readonly<Record<string, LuaValue>> = {
  ipairs: (list) => [nextOf, list, 0],
  pairs: (list) => {
    if (!(list instanceof LuaTable)) throw new LuaError('bad argument #1 to pairs')
    return [nextOf, list, 0]
  },
  _G: new LuaTable(), // the clock moves in scripts, so there is no `os`
  rawget: (list, key) => [list instanceof LuaTable ? list.get(key) : undefined],
  type: (value) => [typeOf(value)],
  tonumber: (value) => [toNumber(value)],
  tostring: (value) => [value === undefined ? 'nil' : typeof value === 'boolean' ? String(value) : toText(value)],
  unpack: (list, from = 1, to) => {
    if (!(list instanceof LuaTable)) throw new LuaError('bad argument #1 to unpack')
    const values: LuaValue[] = []
    const end = to === undefined ? list.list.length : runtime.number(to)
    for (let at = runtime.number(from); at <= end; at++) values.push(list.get(at))
    return values
  },
  error: (value) => {
    throw new LuaError(value instanceof LuaTable ? toText(value.get('err')) : toText(value))
  },
  pcall: (call, ...args) => {
    try {
      return [true, ...runtime.call(call)(...args)]
    } catch (error) {
      if (error instanceof LuaError) return [false, error.message]
      throw error
    }
  },
  math: table({
    floor: (x) => [Math.floor(runtime.number(x))],
    ceil: (x) => [Math.ceil(runtime.number(x))],
    max: (...list) => [Math.max(...list.map((x) => runtime.number(x)))],
    min: (...list) => [Math.min(...list.map((x) => runtime.number(x)))],
    huge: Infinity,
  }),
  string: table({
    sub: (text, from, to) => [sub(text, from, to)],
    byte: (text, from = 1, to = from) => {
      const part = sub(text, from, to)
      return Array.from(part, (byte) => byte.charCodeAt(0))
    },
    char: (...codes) => [String.fromCharCode(...codes.map((x) => runtime.number(x)))],
    rep: (text, count) => [toText(text).repeat(runtime.number(count))],
    format: (...args) => [format(...args)],
    match: (text, pattern) => {
      const found = patternOf(pattern).exec(toText(text))
      if (found === null) return [undefined]
      return found.length > 1 ? found.slice(1) : [found[0]]
    },
    find: (text, what, from = 1, plain) => {
      if (plain !== true) throw new LuaError('only plain finds are known here')
      const at = toText(text).indexOf(toText(what), runtime.number(from) - 1)
      return at < 0 ? [undefined] : [at + 1, at + toText(what).length]
    },
    gmatch: (text, pattern) => {
      const found = toText(text).matchAll(patternOf(pattern, 'gs'))
      return [
        () => {
          const { value } = found.next() as { value?: RegExpExecArray }
          if (value === undefined) return [undefined]
          return value.length > 1 ? value.slice(1) : [value[0]]
        },
      ]
    },
    gsub: () => {
      throw new LuaError('gsub is not known here')
    },
    len: (text) => [toText(text).length],
  }),
}
