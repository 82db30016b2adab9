import { UnsupportedServerError } from '../../index.js'
import { openAccess, type Access } from '../../doctor/access.js'
import { examine, treatment, type Examination } from '../../doctor/doctor.js'
import { aboutServer, type Finding } from '../../doctor/finding.js'
import { Report } from '../doctor-report.js'
import { UsageError } from '../failure.js'
import { globalOptions, type RawOptions } from '../input.js'
import { Progress } from '../progress.js'
import { connectOptions } from '../session.js'

export async function doctor(queues: readonly string[], options: RawOptions): Promise<void> {
  if (queues.includes('')) throw new UsageError('name: expected a non-empty string')
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
    const before = await examine(access, queues, progress.show)
    report.examined(before)
    report.end(options['fix'] === true ? await repaired(access, before, report, progress) : before.findings)
  } finally {
    progress.clear()
    await access.close()
  }
}

/** Prints the plan, carries it out, and returns the findings that are left. */
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
