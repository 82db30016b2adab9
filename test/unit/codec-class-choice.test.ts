import { javaCodecs, java, type JacksonOptions } from '../../src/java/index.js'
import { expect } from 'chai'
import { codecs, type Codec } from '../../src/codecs/index.js'
import { EncodeError } from '../../src/errors.js'

const EVIL = 'com.evil.Gadget'
const ORDER = 'com.x.Order'

class Order {
  id = 1
}

const wrapped: [name: string, make: (options?: JacksonOptions) => Codec][] = [
  ['jsonJackson', javaCodecs.jsonJackson],
  ['msgpackJackson', javaCodecs.msgpackJackson],
  ['cborJackson', javaCodecs.cborJackson],
]

describe('the class that an encoder writes', () => {
  for (const [name, make] of wrapped) {
    describe(name, () => {
      const codec = make({ classes: { [ORDER]: { type: Order, fields: { meta: 'Map<String, Object>' } } } })
      const chosen: [what: string, value: unknown, path: string][] = [
        ['an object', { '@class': EVIL, a: 1 }, '$'],
        ['an object in a list of an object', { list: [1, { '@class': EVIL }] }, '$.list[1]'],
        ['a map of java.util', { m: { '@class': 'java.util.Properties' } }, '$.m'],
        ['an object in a Map', new Map([['k', { '@class': EVIL }]]), '$.k'],
        ['a Map', new Map([['@class', EVIL]]), '$'],
        ['a declared map', Object.assign(new Order(), { meta: { '@class': EVIL } }), '$.meta'],
        ['the fields of another class', java.of(ORDER, { '@class': EVIL }), '$'],
        ['the entries of a map class', java.of('java.util.TreeMap', { '@class': EVIL }), '$'],
        ['the result of a toJSON', { o: new (class Sly { toJSON = () => ({ '@class': EVIL }) })() }, '$.o'], // prettier-ignore
        ['an own property called __proto__', JSON.parse(`{"__proto__":{"@class":"${EVIL}"}}`), '$.__proto__'],
      ]
      for (const [what, value, path] of chosen) {
        it(`is not chosen by ${what}`, () => {
          for (const each of [
            codec,
            make({
              unknownClass: 'refuse',
              classes: { [ORDER]: { type: Order, fields: { meta: 'Map<String, Object>' } } },
            }),
          ]) {
            // prettier-ignore
            expect(() => each.encode(value))
              .to.throw(EncodeError, /@class/)
              .with.property('path', path)
          }
        })
      }

      it('cannot be chosen by an array, which has a class of its own', () => {
        for (const list of [['com.evil.Gadget', { a: 1 }], ['java.lang.Long', 5], [['[B', 'AQI=']]]) {
          const bytes = codec.encode(list)
          expect(bytes.toString('latin1')).to.include('java.util.ArrayList')
          expect(codec.decode(bytes)).to.deep.equal(list)
        }
      })

      it('is the declared one, that of java.of, or any one where the application allows it', () => {
        expect(codec.decode(codec.encode({ '@class': ORDER, id: 2 }))).to.deep.equal(
          Object.assign(new Order(), { id: 2 }),
        )
        const bytes = codec.encode(java.of(EVIL, { a: 1 }))
        expect(codec.decode(bytes)).to.deep.equal({ '@class': EVIL, a: 1 })
        expect(make({ plainClasses: true }).encode({ '@class': EVIL, a: 1 })).to.deep.equal(bytes)
      })

      it('comes back in exact mode for objects of classes that are not declared', () => {
        const exact = make({ exact: true })
        const bytes = codec.encode([java.of(EVIL, { a: 1, b: java.of('com.x.Y', { c: null }) })])
        expect(exact.encode(exact.decode(bytes)).toString('latin1')).to.equal(bytes.toString('latin1'))
      })
    })
  }

  it('is not a class in plain JSON, whose reader knows the type', () => {
    expect(javaCodecs.typedJsonJackson().encode({ '@class': EVIL }).toString()).to.equal(`{"@class":"${EVIL}"}`)
    expect(codecs.json().encode({ '@class': EVIL }).toString()).to.equal(`{"@class":"${EVIL}"}`)
  })

  it('is only a declared one with Kryo', () => {
    expect(() => javaCodecs.kryo5().encode({ a: { '@class': EVIL } }))
      .to.throw(EncodeError, /neither built in nor declared/)
      .with.property('path', '$.a')
  })
})
