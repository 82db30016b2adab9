/** What scripts/test-jvm.ts built and hands over in the environment. */
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

export function isBefore({ version }: Build, other: string): boolean {
  const [ours = [], theirs = []] = [version, other].map((text) => text.split('.').map(Number))
  const at = theirs.findIndex((part, i) => part !== ours[i])
  return at !== -1 && (ours[at] ?? 0) < (theirs[at] ?? 0)
}

/** Redisson before 3.21.1 writes and reads another entry format, and gets stuck on this one. */
export function writesOldEntries(build: Build): boolean {
  return isBefore(build, '3.21.1')
}
