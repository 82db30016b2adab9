import { expect } from 'chai'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiKeys, makeKey } from '../api/api-keys.js'

describe('the keys file', () => {
  let dir: string
  let path: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-keys-'))
    path = join(dir, 'api-keys')
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  it('is read again for a key that it did not have a moment ago', () => {
    const [first, second] = [makeKey(), makeKey(['read'])]
    writeFileSync(path, `${first.line}\n`)
    const keys = new ApiKeys(path, (error) => {
      throw error
    })
    expect(keys.find(first.key)?.id).to.equal(first.line.slice(0, 12))
    expect(keys.find(second.key)).to.equal(undefined)
    appendFileSync(path, `${second.line}\n`)
    expect(keys.find(second.key)?.scopes).to.deep.equal(new Set(['read']))
  })

  it('keeps the keys that it had while one of its lines is wrong, and reports that once', () => {
    const [first, second] = [makeKey(), makeKey()]
    const errors: unknown[] = []
    writeFileSync(path, `${first.line}\n`)
    const keys = new ApiKeys(path, (error) => errors.push(error))
    appendFileSync(path, 'no key\n')
    for (let i = 0; i < 3; i++) expect(keys.find(second.key)).to.equal(undefined)
    expect(errors.map(String)).to.have.length(1)
    expect(String(errors[0])).to.contain('line 2')
    expect(keys.find(first.key)?.id).to.equal(first.line.slice(0, 12))
  })

  it('keeps the keys that it had while the file is missing, and reports each time once', () => {
    const [first, second] = [makeKey(), makeKey()]
    const errors: unknown[] = []
    writeFileSync(path, `${first.line}\n`)
    const keys = new ApiKeys(path, (error) => errors.push(error))
    for (let times = 1; times <= 2; times++) {
      rmSync(path)
      for (let i = 0; i < 3; i++) expect(keys.find(second.key)).to.equal(undefined)
      expect(errors.map((error) => (error as { code?: string }).code)).to.deep.equal(Array(times).fill('ENOENT'))
      expect(keys.find(first.key)?.id).to.equal(first.line.slice(0, 12))
      writeFileSync(path, `${first.line}\n`)
      expect(keys.find(second.key)).to.equal(undefined)
    }
  })
})
