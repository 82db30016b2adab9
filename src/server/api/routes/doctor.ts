import type { Doctor } from '../../console/doctor.js'
import { assertCovers } from '../authorize.js'
import type { App } from '../context.js'
import { commandProblem } from '../problem.js'
import * as schemas from '../schemas.js'

/** The findings of the doctor. */
export function doctorRoute(app: App, doctor: Doctor): void {
  app.get(
    '/v1/doctor',
    {
      config: { scope: 'admin' },
      schema: {
        tags: ['page'],
        operationId: 'getDoctor',
        summary:
          "The findings of the library's doctor in the Redis of the service, at most ten seconds or `maxAge` old",
        querystring: schemas.DoctorQuery,
        response: { 200: schemas.DoctorOutput },
      },
    },
    async ({ apiKey, query }) => {
      assertCovers(apiKey, '*')
      const report = await doctor.examine(query.maxAge).catch(commandProblem)
      return { ...report, findings: [...report.findings] }
    },
  )
}
