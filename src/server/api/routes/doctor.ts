import type { Doctor } from '../../console/doctor.js'
import { assertCovers } from '../authorize.js'
import type { App } from '../context.js'
import { commandProblem } from '../problem.js'
import * as schemas from '../schemas.js'

/** What the doctor finds. */
export function doctorRoute(app: App, doctor: Doctor): void {
  app.get(
    '/v1/doctor',
    {
      config: { scope: 'admin' },
      schema: {
        tags: ['page'],
        operationId: 'getDoctor',
        summary: 'What the doctor of the library finds in the Redis of the service, at most ten seconds ago',
        response: { 200: schemas.DoctorOutput },
      },
    },
    async ({ apiKey }) => {
      assertCovers(apiKey, '*')
      const report = await doctor.examine().catch(commandProblem)
      return { at: report.at, findings: [...report.findings] }
    },
  )
}
