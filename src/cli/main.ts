#!/usr/bin/env node
import type { CAC } from 'cac'
import { EXIT_FAILURE, failureLine } from './failure.js'

// A reader that closes the pipe early (`redelayed peek orders | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

process.exitCode = await main()

async function main(): Promise<number> {
  const cac = await loadCac()
  if (cac === undefined) {
    console.error(failureLine('the command line needs the package "cac", which is not installed; run: npm install cac'))
    return EXIT_FAILURE
  }
  const { runProgram } = await import('./program.js')
  return runProgram(cac('redelayed'), process.argv.slice(2))
}

/** It is an optional dependency: the library does not need it. */
async function loadCac(): Promise<((name: string) => CAC) | undefined> {
  try {
    return (await import('cac')).cac
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}
