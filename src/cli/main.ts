#!/usr/bin/env node
import type { CAC } from 'cac'
import { EXIT_FAILURE, failureLine } from './failure.js'

// a reader that closes the pipe early (`redelayed peek orders | head`) is not a failure
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

void main().then((code) => (process.exitCode = code))

async function main(): Promise<number> {
  const cac = await loadCac()
  if (cac === undefined) {
    console.error(failureLine('the command line needs the package "cac", which is not installed; run: npm install cac'))
    return EXIT_FAILURE
  }
  const { runProgram } = await import('./program.js')
  return runProgram(cac('redelayed'), process.argv.slice(2))
}

/** Loads cac, an optional dependency, which the library does not need. */
async function loadCac(): Promise<((name: string) => CAC) | undefined> {
  try {
    return (await import('cac')).cac
  } catch (error) {
    if (/MODULE_NOT_FOUND$/.test(String((error as NodeJS.ErrnoException).code))) return undefined
    throw error
  }
}
