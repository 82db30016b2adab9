import { types } from 'node:util'
import { AddManyError, OfferAllError, RedelayedError, attributeTo, withCallers } from '../errors.js'

type Method<O> = (this: O, ...args: unknown[]) => unknown

interface Naming<O> {
  /** The queue of an object's errors. Default: unknown, so that a name set by a deeper layer stays. */
  readonly queueOf?: (object: O) => string
  /** The operation names of internal methods, and of methods whose own name is not clear enough. */
  readonly as?: { readonly [M in keyof O]?: string }
}

/**
 * Wraps each method of a class so that its errors name the call: the queue, the method as `operation`, and the callers. The errors of
 * single items get the operation too. If methods call each other, the operation is the one that the application called.
 */
export function namesOperations<O extends object>(type: { readonly prototype: O }, naming: Naming<O> = {}): void {
  const as = new Map(Object.entries<string | undefined>(naming.as ?? {}))
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(type.prototype))) {
    if (name === 'constructor' || typeof property.value !== 'function') continue
    const value = named(property.value as Method<O>, as.get(name) ?? name, naming.queueOf)
    Object.defineProperty(value, 'name', { value: name })
    Object.defineProperty(type.prototype, name, { ...property, value })
  }
}

function named<O extends object>(method: Method<O>, operation: string, queueOf: Naming<O>['queueOf']): Method<O> {
  function noted(thrown: unknown, object: O): unknown {
    if (!(thrown instanceof RedelayedError)) return thrown
    if (queueOf !== undefined) attributeTo(thrown, queueOf(object))
    thrown.operation = operation
    for (const { error } of failuresIn(thrown)) error.operation = operation
    return withCallers(thrown)
  }

  async function outcome(result: Promise<unknown>, object: O): Promise<unknown> {
    try {
      return await result
    } catch (thrown) {
      throw noted(thrown, object)
    }
  }

  async function* steps(generator: AsyncGenerator, object: O): AsyncGenerator {
    try {
      return (yield* generator) as unknown
    } catch (thrown) {
      throw noted(thrown, object)
    }
  }

  return function (...args) {
    let result: unknown
    try {
      result = method.apply(this, args)
    } catch (thrown) {
      throw noted(thrown, this)
    }
    if (result instanceof Promise) return outcome(result, this)
    return types.isGeneratorObject(result) ? steps(result as unknown as AsyncGenerator, this) : result
  }
}

/** The errors of single items, which are not thrown themselves. */
function failuresIn(error: RedelayedError): OfferAllError['failures'] {
  return error instanceof OfferAllError || error instanceof AddManyError ? error.failures : []
}
