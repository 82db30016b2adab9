import { runtime, type LuaFunction, type LuaValue } from './lua-runtime.js'

/**
 * Translates the Lua 5.1 of our scripts to JavaScript: a simulation runs some hundred scripts per seed, and an interpreter takes
 * longer for one of them than this takes for all. Strings are bytes (latin1), every call returns an array of results. What
 * the scripts do not use (metatables, coroutines, goto) is missing; differential.test.ts compares with the real thing.
 */
export function compile(source: string): (globals: Readonly<Record<string, LuaValue>>) => LuaValue[] {
  const body = new Compiler(source).chunk()
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the scripts are ours, and this is what a compiler does
  const make = new Function('R', 'G', `'use strict'; let T; ${body} return [];`) as (
    runtimeOf: typeof runtime,
    globals: Readonly<Record<string, LuaValue>>,
  ) => LuaValue[]
  return (globals) => make(runtime, globals)
}

const TOKEN =
  /\s+|--\[\[[\s\S]*?\]\]|--[^\n]*|([A-Za-z_]\w*)|(0x[\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|'((?:[^'\\\n]|\\[\s\S])*)'|"((?:[^"\\\n]|\\[\s\S])*)"|(\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}[\];:,.])/y
const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
)
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' }
/** Left and right binding power. */
const BINARY: Readonly<Record<string, readonly [number, number]>> = {
  or: [1, 2],
  and: [3, 4],
  '<': [5, 6],
  '>': [5, 6],
  '<=': [5, 6],
  '>=': [5, 6],
  '~=': [5, 6],
  '==': [5, 6],
  '..': [8, 7],
  '+': [9, 10],
  '-': [9, 10],
  '*': [11, 12],
  '/': [11, 12],
  '%': [11, 12],
  '^': [16, 15],
}
const UNARY = 13

interface Token {
  readonly kind: 'name' | 'keyword' | 'number' | 'string' | 'symbol' | 'end'
  readonly text: string
}

/** JavaScript for an expression; one that may have several results is an array of them. */
interface Expression {
  readonly js: string
  readonly many?: boolean
  /** It can be assigned to. */
  readonly assign?: (value: string) => string
  /** For a field: the code to evaluate before any assignment. */
  readonly parts?: readonly [table: string, key: string]
}

class Compiler {
  readonly #tokens: Token[]
  #at = 0
  #names = 0
  #scopes: Map<string, string>[] = [new Map<string, string>()]

  constructor(source: string) {
    this.#tokens = tokensOf(source)
  }

  chunk(): string {
    const js = this.#block()
    this.#expect('')
    return js
  }

  #block(...declared: readonly (readonly [name: string, js: string])[]): string {
    this.#scopes.push(new Map(declared))
    let js = ''
    while (!['', 'end', 'else', 'elseif', 'until'].includes(this.#peek)) js += this.#statement()
    this.#scopes.pop()
    return js
  }

  #statement(): string {
    if (this.#accept(';')) return ''
    if (this.#accept('local')) return this.#accept('function') ? this.#localFunction() : this.#local()
    if (this.#accept('if')) return this.#if()
    if (this.#accept('while')) {
      const test = this.#condition()
      this.#expect('do')
      return `while (${test}) {${this.#blockEnd()}}\n`
    }
    if (this.#accept('for')) return this.#for()
    if (this.#accept('do')) return `{${this.#blockEnd()}}\n`
    if (this.#accept('break')) return 'break;\n'
    if (this.#accept('return')) {
      const list = ['', 'end', 'else', 'elseif', 'until', ';'].includes(this.#peek) ? [] : this.#expressions()
      this.#accept(';')
      return `return ${spread(list)};\n`
    }
    return this.#assignmentOrCall()
  }

  #blockEnd(...declared: readonly (readonly [name: string, js: string])[]): string {
    const js = this.#block(...declared)
    this.#expect('end')
    return js
  }

  #local(): string {
    const names = [this.#name()]
    while (this.#accept(',')) names.push(this.#name())
    const values = this.#accept('=') ? this.#expressions() : []
    const targets = names.map((name) => [name, this.#fresh(name)] as const)
    for (const [name, js] of targets) this.#scopes.at(-1)?.set(name, js)
    const [only] = values
    if (targets.length === 1 && values.length <= 1) {
      return `let ${targets[0]?.[1]} = ${only === undefined ? 'undefined' : one(only)};\n`
    }
    return `let [${targets.map(([, js]) => js).join()}] = ${spread(values)};\n`
  }

  #localFunction(): string {
    const name = this.#name()
    const js = this.#fresh(name)
    this.#scopes.at(-1)?.set(name, js)
    return `const ${js} = ${this.#function()};\n`
  }

  #function(): string {
    this.#expect('(')
    const parameters: (readonly [string, string])[] = []
    let rest = ''
    while (!this.#accept(')')) {
      if (this.#accept('...')) {
        rest = '...varargs'
      } else {
        const name = this.#name()
        parameters.push([name, this.#fresh(name)])
      }
      this.#accept(',')
    }
    const list = [...parameters.map(([, js]) => js), ...(rest === '' ? [] : [rest])]
    return `((${list.join()}) => {let T; ${this.#blockEnd(...parameters)} return [];})`
  }

  #if(): string {
    let js = `if (${this.#condition()}) {`
    this.#expect('then')
    js += `${this.#block()}}`
    for (;;) {
      if (this.#accept('elseif')) {
        js += ` else if (${this.#condition()}) {`
        this.#expect('then')
        js += `${this.#block()}}`
      } else if (this.#accept('else')) js += ` else {${this.#block()}}`
      else break
    }
    this.#expect('end')
    return `${js}\n`
  }

  #for(): string {
    const first = this.#name()
    if (this.#accept('=')) {
      const [from = none, to = none, step = { js: '1' }] = this.#expressions()
      this.#expect('do')
      const [js, end, by, at] = [first, 'end', 'step', 'at'].map((name) => this.#fresh(name)) as [
        string,
        string,
        string,
        string,
      ]
      const body = this.#blockEnd([first, js])
      const head = `let ${at} = R.number(${one(from)}), ${end} = R.number(${one(to)}), ${by} = R.number(${one(step)})`
      return `for (${head}; ${by} > 0 ? ${at} <= ${end} : ${at} >= ${end}; ${at} += ${by}) {let ${js} = ${at}; ${body}}\n`
    }
    const names = [first]
    while (this.#accept(',')) names.push(this.#name())
    this.#expect('in')
    const values = this.#expressions()
    this.#expect('do')
    const targets = names.map((name) => [name, this.#fresh(name)] as const)
    const body = this.#blockEnd(...targets)
    return `for (const [${targets.map(([, js]) => js).join()}] of R.iterate(${spread(values)})) {${body}}\n`
  }

  #assignmentOrCall(): string {
    const first = this.#suffixed()
    if (this.#peek !== '=' && this.#peek !== ',') return `${first.js};\n`
    const targets = [first]
    while (this.#accept(',')) targets.push(this.#suffixed())
    this.#expect('=')
    const values = this.#expressions()
    const [only] = values
    if (targets.length === 1 && only !== undefined && values.length === 1) return `${first.assign?.(one(only))};\n`
    const value = this.#fresh('values')
    let js = ''
    const fixed = targets.map((target) => {
      if (target.parts === undefined) return target
      const [table, key] = [this.#fresh('table'), this.#fresh('key')]
      js += `const ${table} = ${target.parts[0]}, ${key} = ${target.parts[1]}; `
      return indexed(table, key)
    })
    js += `const ${value} = ${spread(values)}; `
    return `{${js}${fixed.map((target, at) => target.assign?.(`${value}[${at}]`)).join('; ')};}\n`
  }

  #condition(): string {
    return truthy(one(this.#expression()))
  }

  #expressions(): Expression[] {
    const list = [this.#expression()]
    while (this.#accept(',')) list.push(this.#expression())
    return list
  }

  #expression(power = 0): Expression {
    let left = this.#unary()
    for (;;) {
      const operator = this.#peek
      const [before, after] = (this.#isString ? undefined : BINARY[operator]) ?? [-1, -1]
      if (before < power || before < 0) return left
      this.#at++
      left = { js: binary(operator, one(left), one(this.#expression(after))) }
    }
  }

  #unary(): Expression {
    if (this.#isString) return this.#simple()
    if (this.#accept('not')) return { js: `!(${truthy(one(this.#expression(UNARY)))})` }
    if (this.#accept('#')) return { js: `R.length(${one(this.#expression(UNARY))})` }
    if (this.#accept('-')) return { js: `(-R.number(${one(this.#expression(UNARY))}))` }
    return this.#simple()
  }

  #simple(): Expression {
    const { kind, text } = this.#token
    if (kind === 'number' || kind === 'string') {
      this.#at++
      return { js: kind === 'number' ? String(Number(text)) : JSON.stringify(text) }
    }
    if (this.#accept('nil')) return none
    if (this.#accept('true')) return { js: 'true' }
    if (this.#accept('false')) return { js: 'false' }
    if (this.#accept('...')) return { js: 'varargs', many: true }
    if (this.#accept('{')) return { js: this.#table() }
    if (this.#accept('function')) return { js: this.#function() }
    return this.#suffixed()
  }

  #suffixed(): Expression {
    let left: Expression
    if (this.#accept('(')) {
      left = { js: one(this.#expression()) }
      this.#expect(')')
    } else left = this.#variable(this.#name())
    for (;;) {
      if (this.#isString || this.#token.kind === 'end') return left
      if (this.#accept('.')) left = indexed(one(left), JSON.stringify(this.#name()))
      else if (this.#accept('[')) {
        left = indexed(one(left), one(this.#expression()))
        this.#expect(']')
      } else if (this.#accept('(')) {
        const list = this.#peek === ')' ? [] : this.#expressions()
        this.#expect(')')
        left = { js: `R.call(${one(left)})(${spread(list).slice(1, -1)})`, many: true }
      } else return left
    }
  }

  #variable(name: string): Expression {
    for (const scope of [...this.#scopes].reverse()) {
      const js = scope.get(name)
      if (js !== undefined) return { js, assign: (value) => `${js} = ${value}` }
    }
    return { js: `R.global(G, ${JSON.stringify(name)})` } // none can be assigned to in a script
  }

  #table(): string {
    const list: Expression[] = []
    let named = ''
    while (!this.#accept('}')) {
      const next = this.#tokens[this.#at + 1]
      if (this.#accept('[')) {
        const key = one(this.#expression())
        this.#expect(']')
        this.#expect('=')
        named += `.with(${key}, ${one(this.#expression())})`
      } else if (this.#token.kind === 'name' && next?.kind === 'symbol' && next.text === '=') {
        const key = this.#name()
        this.#expect('=')
        named += `.with(${JSON.stringify(key)}, ${one(this.#expression())})`
      } else list.push(this.#expression())
      if (!this.#accept(',')) this.#accept(';')
    }
    return `R.table(${spread(list)})${named}`
  }

  #fresh(name: string): string {
    return `${name}_${++this.#names}`
  }

  get #token(): Token {
    return this.#tokens[this.#at] ?? END
  }

  get #isString(): boolean {
    return this.#token.kind === 'string'
  }

  get #peek(): string {
    return this.#isString ? "'" : this.#token.text
  }

  #accept(text: string): boolean {
    if (this.#isString || this.#token.text !== text) return false
    this.#at++
    return true
  }

  #expect(text: string): void {
    if (this.#peek !== text) throw new Error(`Lua: expected ${text || 'the end'}, got ${this.#token.text}`)
    this.#at++
  }

  #name(): string {
    const { kind, text } = this.#token
    if (kind !== 'name') throw new Error(`Lua: expected a name, got ${text}`)
    this.#at++
    return text
  }
}

const END: Token = { kind: 'end', text: '' }
const none: Expression = { js: 'undefined' }

function one({ js, many }: Expression): string {
  return many === true ? `${js}[0]` : js
}

/** All results of the last expression, one of each other. */
function spread(list: readonly Expression[]): string {
  const last = list.at(-1)
  const items = list.slice(0, -1).map(one)
  if (last !== undefined) items.push(last.many === true ? `...${last.js}` : last.js)
  return `[${items.join()}]`
}

function truthy(js: string): string {
  return `(T = ${js}) !== undefined && T !== false`
}

function indexed(table: string, key: string): Expression {
  return {
    js: `R.index(${table}, ${key})`,
    parts: [table, key],
    assign: (value) => `R.assign(${table}, ${key}, ${value})`,
  }
}

function binary(operator: string, left: string, right: string): string {
  switch (operator) {
    case 'and':
      return `(${truthy(left)} ? ${right} : T)`
    case 'or':
      return `(${truthy(left)} ? T : ${right})`
    case '==':
      return `(${left} === ${right})`
    case '~=':
      return `(${left} !== ${right})`
    case '..':
      return `(R.text(${left}) + R.text(${right}))`
    case '<':
      return `R.isLess(${left}, ${right})`
    case '>':
      return `R.isLess(${right}, ${left})`
    case '<=':
      return `R.isAtMost(${left}, ${right})`
    case '>=':
      return `R.isAtMost(${right}, ${left})`
    case '%':
      return `R.modulo(R.number(${left}), R.number(${right}))`
    case '^':
      return `(R.number(${left}) ** R.number(${right}))`
    default:
      return `(R.number(${left}) ${operator} R.number(${right}))`
  }
}

function tokensOf(source: string): Token[] {
  const tokens: Token[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < source.length) {
    const at = TOKEN.lastIndex
    const match = TOKEN.exec(source)
    if (match === null) throw new Error(`Lua: cannot read ${source.slice(at, at + 20)}`)
    const [, name, number, single, double, symbol] = match
    const string = single ?? double
    if (name !== undefined) tokens.push({ kind: KEYWORDS.has(name) ? 'keyword' : 'name', text: name })
    else if (number !== undefined) tokens.push({ kind: 'number', text: number })
    else if (string !== undefined) tokens.push({ kind: 'string', text: unescape(string) })
    else if (symbol !== undefined) tokens.push({ kind: 'symbol', text: symbol })
  }
  return tokens
}

function unescape(text: string): string {
  return text.replace(/\\(\d{1,3}|[\s\S])/g, (_, code: string) =>
    /^\d/.test(code) ? String.fromCharCode(Number(code)) : (ESCAPES[code] ?? code),
  )
}

export type { LuaFunction, LuaValue }
