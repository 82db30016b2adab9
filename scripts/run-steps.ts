// Runs the checks of lint, some at the same time, all of them even when one fails, and prints a line per step; the output of
// a step is shown only when it fails.
import { spawn } from 'node:child_process'
import { root } from './ensure-installed.mjs'

/** `script` is a JavaScript file, below the repository. */
interface Step {
  name: string
  script: string
  args?: string[]
}

/** @returns whether all passed */
export async function runSteps(steps: readonly Step[], atOnce = 1): Promise<boolean> {
  const left = [...steps]
  let allPassed = true
  const lane = async () => {
    for (let step = left.shift(); step !== undefined; step = left.shift()) {
      const { name, script, args = [] } = step
      const started = performance.now()
      const { code, output } = await run([script, ...args])
      const seconds = ((performance.now() - started) / 1000).toFixed(1)
      console.log(`${code === 0 ? 'ok    ' : 'FAILED'}  ${name}  (${seconds} s)`)
      if (code === 0) continue
      allPassed = false
      console.log(`${output.trimEnd()}\n`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return allPassed
}

function run(args: string[]): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    const keep = (bytes: Buffer) => (output += bytes.toString())
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output }))
  })
}
