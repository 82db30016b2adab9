import { doctorOperations } from './doctor-operations.js'
import { listOperations } from './list-operations.js'
import { objectOperations } from './object-operations.js'
import { scheduleOperations } from './schedule-operations.js'

/** Every script of `src/store` by its name there; a new one gets its operation in one of these files. */
export const operations = { ...scheduleOperations, ...listOperations, ...objectOperations, ...doctorOperations }
