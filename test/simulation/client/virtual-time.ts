import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import type { Process, World } from '../world.js'

const EPOCH_MS = 1.7e12
/** A turn of the event loop takes time: who lets turns pass until a moment has come would otherwise wait for ever. */
const TURN_MS = 0.05

interface Scene {
  readonly world: World
  readonly connect: () => net.Socket
}

/** The current simulation; without one, Node's own time applies. */
let scene: Scene | undefined
let installed = false

/**
 * Replaces what the code takes from Node of time, chance and the network, until the returned function is called. Whoever
 * sets a timer in an event of a process owns it: it fires only while that process lives and runs.
 */
export function virtualize(world: World, connect: () => net.Socket): () => void {
  if (!installed) install()
  scene = { world, connect }
  const restore = [
    replace(globalThis, {
      setTimeout: (callback: Callback, ms = 1, ...args: unknown[]) => new Timer(world, callback, ms, args, false),
      setInterval: (callback: Callback, ms = 1, ...args: unknown[]) => new Timer(world, callback, ms, args, true),
      setImmediate: (callback: Callback, ...args: unknown[]) => new Immediate(world, callback, args),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    }),
    replace(performance, { now: () => world.current?.clock.now() ?? world.now }),
    replace(Date, { now: () => Math.floor(EPOCH_MS + (world.current?.wallSkew ?? 0) + world.now) }),
    replace(Math, { random: world.random }),
    replace(Error, { stackTraceLimit: 0 }), // they are never read, and they take a fifth of the time
  ]
  return () => {
    scene = undefined
    for (const undo of restore) undo()
  }
}

type Callback = (...args: unknown[]) => void

/** Once, because telling Node's modules of it takes a while. */
function install(): void {
  installed = true
  const { randomBytes, randomFillSync, randomInt } = crypto
  const { createConnection } = net
  replace(crypto, {
    randomBytes: (size: number) => (scene === undefined ? randomBytes(size) : fill(Buffer.alloc(size), scene.world)),
    randomFillSync: (buffer: Uint8Array) => (scene === undefined ? randomFillSync(buffer) : fill(buffer, scene.world)),
    randomInt: (...range: [number, number]) => {
      if (scene === undefined) return randomInt(...range)
      const [min, max] = range.length > 1 ? range : [0, range[0]]
      return min + Math.floor(scene.world.random() * (max - min))
    },
  })
  replace(net, {
    createConnection: (...args: Parameters<typeof createConnection>) =>
      scene === undefined ? createConnection(...args) : scene.connect(),
  })
  syncBuiltinESMExports()
}

function replace<T extends object>(target: T, values: Partial<Record<keyof T, unknown>>): () => void {
  const before = Object.keys(values).map((name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const)
  for (const [name, value] of Object.entries(values)) {
    Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: true })
  }
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(target, name)
      else Object.defineProperty(target, name, descriptor)
    }
  }
}

function fill<B extends Uint8Array>(buffer: B, world: World): B {
  for (let at = 0; at < buffer.length; at++) buffer[at] = Math.floor(world.random() * 256)
  return buffer
}

function clear(timer: unknown): void {
  if (timer instanceof Timer || timer instanceof Immediate) timer.cancel()
}

class Timer {
  readonly #world: World
  readonly #owner: Process | undefined
  readonly #callback: Callback
  readonly #ms: number
  readonly #args: unknown[]
  readonly #repeats: boolean
  #handle: unknown

  constructor(world: World, callback: Callback, ms: number, args: unknown[], repeats: boolean) {
    this.#world = world
    this.#owner = world.current
    this.#callback = callback
    this.#ms = ms
    this.#args = args
    this.#repeats = repeats
    this.#start()
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  refresh(): this {
    this.cancel()
    this.#start()
    return this
  }

  cancel(): void {
    if (this.#owner === undefined) (this.#handle as { run: unknown }).run = undefined
    else this.#owner.clock.clearTimeout(this.#handle)
  }

  #start(): void {
    this.#handle =
      this.#owner === undefined
        ? this.#world.after(this.#ms, () => this.#fire())
        : this.#owner.clock.setTimeout(() => this.#fire(), this.#ms)
  }

  #fire(): void {
    if (this.#repeats) this.#start()
    this.#callback(...this.#args)
  }
}

class Immediate {
  readonly #event: { run: unknown }

  constructor(world: World, callback: Callback, args: unknown[]) {
    this.#event = world.after(TURN_MS, () => callback(...args), world.current)
  }

  cancel(): void {
    this.#event.run = undefined
  }
}
