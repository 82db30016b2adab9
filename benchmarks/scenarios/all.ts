/** All scenarios in the order in which they run: what the README shows comes first. */
import { codecSpeed } from '../codecs/main.js'
import type { Scenario } from '../lib/scenario.js'
import { adding } from './adding.js'
import { bullmqBench } from './bullmq-bench.js'
import { burst } from './burst.js'
import { changeStream } from './change-stream.js'
import { clientCosts } from './client-costs.js'
import { connections } from './connections.js'
import { costs } from './costs.js'
import { lateness } from './lateness.js'
import { layouts } from './layouts.js'
import { limits } from './limits.js'
import { manyClients } from './many-clients.js'
import { memory } from './memory.js'
import { mixed } from './mixed.js'
import { offers } from './offers.js'
import { openLoop } from './open-loop.js'
import { planning } from './planning.js'
import { recovery } from './recovery.js'
import { reliableChanges } from './reliable-changes.js'
import { sharded } from './sharded.js'
import { surroundings } from './surroundings.js'
import { taking } from './taking.js'
import { tenMillion } from './ten-million.js'
import { transferScripts } from './transfer-scripts.js'
import { transfersCompact, transfersRedisson } from './transfers.js'
import { workers } from './workers.js'

export const SCENARIOS: readonly Scenario[] = [
  ...lateness,
  ...adding,
  ...taking,
  ...workers,
  burst,
  ...memory,
  recovery,
  mixed,
  openLoop,
  ...surroundings,
  clientCosts,
  planning,
  sharded,
  ...costs,
  manyClients,
  ...connections,
  ...bullmqBench,
  offers,
  transfersCompact,
  transfersRedisson,
  transferScripts,
  tenMillion,
  layouts,
  reliableChanges,
  ...changeStream,
  ...limits,
  codecSpeed,
]

/** What is worth a short look: two minutes. */
export const QUICK: readonly string[] = [
  'lateness-uniform',
  'add-bulk',
  'take-batches',
  'worker-100',
  'burst-until-taken',
  'memory-100-bytes',
]
