/** The two commands that run scripts; an ioredis client of a server or a cluster has them. */
export interface ScriptRunner {
  evalsha(sha1: string, keys: number, ...keysAndArgs: (string | number)[]): Promise<unknown>
  eval(source: string, keys: number, ...keysAndArgs: (string | number)[]): Promise<unknown>
}

/** Runs a script on its key, or its keys in one slot; a server that does not know the script gets its text. */
export async function runScript(
  redis: ScriptRunner,
  script: { readonly sha1: string; readonly source: string },
  key: string | readonly string[],
  ...args: readonly (string | number)[]
): Promise<unknown> {
  const keys = typeof key === 'string' ? [key] : key
  try {
    return await redis.evalsha(script.sha1, keys.length, ...keys, ...args)
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
    return redis.eval(script.source, keys.length, ...keys, ...args)
  }
}
