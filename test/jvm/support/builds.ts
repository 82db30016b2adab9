/** What scripts/test-jvm.mjs built and hands over in the environment. */
export interface Build {
  readonly version: string
  /** For `java -cp`. */
  readonly classpath: string
}

export function builds(): Build[] {
  const json = process.env.REDELAYED_JVM_BUILDS
  if (json === undefined) throw new Error('start these tests with `npm run test:jvm`, which builds the Java side')
  return JSON.parse(json) as Build[]
}

/** Redisson before 3.21.1 writes and reads another entry format, and gets stuck on this one. */
export function writesOldEntries({ version }: Build): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  return major < 3 || (major === 3 && (minor < 21 || (minor === 21 && patch < 1)))
}
