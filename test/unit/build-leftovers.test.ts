import { expect } from 'chai'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeLeftovers } from '../../scripts/build-leftovers.js'

describe('what killed builds of the service left', () => {
  it('is removed, and the folders of builds under way and all others stay', () => {
    const folder = mkdtempSync(join(tmpdir(), 'redelayed-leftovers-'))
    try {
      const { pid: gone } = spawnSync(process.execPath, ['--version'])
      const stay = ['dist', `dist.${process.pid}`, `dist.${process.pid}.old`, `dist.${gone}.x`, 'topics']
      for (const name of [...stay, `dist.${gone}`, `dist.${gone}.old`]) {
        mkdirSync(join(folder, name))
        writeFileSync(join(folder, name, 'index.js'), '')
      }
      removeLeftovers(folder)
      expect(readdirSync(folder).sort()).to.deep.equal(stay.sort())
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
