/** The number of attempts before a slow run counts, because a garbage collection is not the input's fault. */
const TRIES = 5
/** The time of `yardstick` on a fast idle machine, for which the limits are meant. */
const YARDSTICK_MS = 50
const YARDSTICK = '\u200b'.repeat(2 ** 20)

/**
 * The milliseconds of CPU that an action takes on such a machine: what took longer than the limit is tried again and compared
 * with work that is known, because every instruction is slower on a busy machine.
 */
export async function leastCpuMs(limitMs: number, action: () => unknown): Promise<number> {
  let least = await cpuMs(action)
  for (let tries = 1; tries < TRIES && least >= limitMs; tries++) {
    const slowness = Math.max(1, (await cpuMs(yardstick)) / YARDSTICK_MS)
    least = Math.min(least, (await cpuMs(action)) / slowness)
  }
  return least
}

function yardstick(): string {
  return YARDSTICK.replace(/\p{Cf}/gu, () => 'x')
}

async function cpuMs(action: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await action()
  return cpuMsSince(before)
}

/** The milliseconds of CPU of this process since a `process.cpuUsage()`: unlike the clock's, neighbours do not take of them. */
export function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
