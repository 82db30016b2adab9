import { expect } from 'chai'
import { createHash } from 'node:crypto'
import { plantLua } from '../support/lua-plant.js'

const source = `
-- if count > most then count = most end
local text = 'a -- b'
if count > most then
  count = most --[[ not more ]] end
call(text)
call(text, 1)
`
const script = { source, sha1: '', name: 'example' }

describe('plantLua', () => {
  it('puts other code in the place of the pattern, whatever the layout, comments and names are', () => {
    const { source: changed, name } = plantLua(script, 'if $n > $most then $n = $most end', 'limit($n)')
    expect(changed).to.equal(source.replace(/if count > most then\n[^]*?end/, ' limit(count) '))
    expect(name).to.equal('example')
  })

  it('has the SHA-1 of the changed script', () => {
    const changed = plantLua(script, 'call($text, 1)', '')
    expect(changed.sha1).to.equal(createHash('sha1').update(changed.source).digest('hex'))
  })

  it('finds nothing in comments, and comments within strings', () => {
    expect(() => plantLua(script, 'not more', '')).to.throw('the script has 0 times: not more')
    expect(plantLua(script, "'a -- b'", 'nil').source).to.contain('local text =  nil ')
  })

  it('a name stands for the same one wherever it occurs', () => {
    expect(() => plantLua(script, 'if $n > $most then $n = $n end', '')).to.throw('0 times')
  })

  it('refuses a pattern that occurs twice', () => {
    expect(() => plantLua(script, 'call($text', '')).to.throw('the script has 2 times: call($text')
  })
})
