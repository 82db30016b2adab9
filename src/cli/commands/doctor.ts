import { UnsupportedServerError } from '../../index.js'
import { openAccess, type Access } from '../../doctor/access.js'
import { examine, treatment, type Examination } from '../../doctor/doctor.js'
import { aboutServer, type Finding } from '../../doctor/finding.js'
import { Report } from '../doctor-report.js'
import { UsageError } from '../failure.js'
import { quoted } from '../../text.js'
import { globalOptions, parseDelay, textOption, type RawOptions } from '../input.js'
import { Progress } from '../progress.js'
import { connectOptions } from '../session.js'

const [LEAST_MS, MOST_MS] = [1_000, 86_400_000]

export async function doctor(queues: readonly string[], options: RawOptions): Promise<void> {
  if (queues.includes('')) throw new UsageError('name: expected a non-empty string')
  const within = textOption(options, 'within')
  if (within !== undefined && options['fix'] === true) throw new UsageError('--within: not together with --fix')
  const withinMs = within === undefined ? undefined : parseWithin(within)
  const global = globalOptions(options)
  const progress = new Progress()
  const report = new Report(global.json, progress)
  let access: Access
  try {
    access = await openAccess(connectOptions(global))
  } catch (error) {
    if (!(error instanceof UnsupportedServerError)) throw error
    const tooOld = aboutServer('', 'server-too-old', 'error', error.message)
    report.examined({ isCluster: global.cluster, servers: [], queues: [], reliable: [], findings: [tooOld], left: 0 })
    report.end([tooOld])
    return
  }
  try {
    const before = await examine(access, queues, progress.show, withinMs)
    report.examined(before)
    report.end(options['fix'] === true ? await repaired(access, before, report, progress) : before.findings)
  } finally {
    progress.clear()
    await access.close()
  }
}

function parseWithin(text: string): number {
  const millis = parseDelay(text)
  if (millis >= LEAST_MS && millis <= MOST_MS) return millis
  throw new UsageError(`--within: expected 1s to 1d, got ${quoted(text)}`)
}

/** Prints the plan, carries it out, and returns the remaining findings. */
async function repaired(
  access: Access,
  before: Examination,
  report: Report,
  progress: Progress,
): Promise<readonly Finding[]> {
  const { plan, carryOut } = treatment(access, before, progress.show)
  report.planned(plan)
  const { fixed, left } = await carryOut()
  report.repaired(fixed, left)
  return left
}
